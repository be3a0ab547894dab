"""An accountant of training: the bytes, the FLOPs and the days that a transformer takes, from its shape alone.

    python accountant.py config.json --gpus 1024 --tokens 15e12

A multiply-add is 2 FLOPs. Products alone count, all S × S scores among them. Attention and each norm are one kernel.
"""

import argparse
import json
import math
from dataclasses import dataclass

BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int64": 8, "int32": 4, "int8": 1, "bool": 1}
OPTIMIZER_NUMBERS = {"sgd": 0, "momentum": 1, "adamw": 2}  # that it keeps for each parameter
SHARDED_FROM = {"optimizer": 1, "master": 1, "gradients": 2, "parameters": 3}  # ZeRO's stage
LOGIT_BYTES, SECONDS_PER_DAY = 12, 86_400  # the loss holds three fp32 tensors of the logits' shape
GPU_DAYS_PER_FAILURE = 54 * 16_384 / 419  # Llama 3's 405B on H100s: arXiv 2407.21783, section 3.3.4
SAVE_S, RESTART_S = 60, 300  # assumed
GPT2_NAMES = {"n_layer": "num_hidden_layers", "n_embd": "hidden_size", "n_head": "num_attention_heads"}
GPT2_NAMES |= {"n_inner": "intermediate_size", "n_positions": "max_position_embeddings"}
OPTIONS = {  # what can be asked: a default, and what it is
    "gpus": (8, "GPUs"),
    "tokens": (15e12, "tokens to train on"),
    "recipe": ("bf16+master adamw", "the formats of each part, and the optimizer"),
    "stage": (3, "of ZeRO: 3 shards everything, 0 nothing"),
    "batch": (1, "sequences on each GPU at a time"),
    "sequence": (0, "tokens of a sequence; 0 is the whole context"),
    "recomputed": (0, "layers that are recomputed"),
    "memory": (80e9, "bytes of a GPU"),
    "peak": (989.5e12, "dense bf16 FLOP/s of a GPU: NVIDIA's data sheet for the H100 SXM"),
    "share": (0.4, "of the peak that the hardware reaches: assumed"),
}


@dataclass(frozen=True)
class Model:
    layers: int
    width: int
    heads: int
    kv_heads: int  # heads that keys and values have
    head_width: int
    inner: int  # width inside the feed-forward
    vocabulary: int
    context: int  # tokens of a sequence, at most
    gated: bool = True  # three matrices in the feed-forward: gate, up, down
    biases: tuple[str, ...] = ()  # the matrices that have one
    norm_vectors: int = 1  # RMSNorm has a weight; LayerNorm has a weight and a bias
    head_norms: bool = False  # queries and keys are normalised, head by head
    learned_positions: bool = False
    tied: bool = False  # the embedding is the output matrix, too


def tensor_bytes(shape, dtype):
    """Numbers × bytes of a number."""
    return math.prod(shape) * BYTES[dtype]


def storage_bytes(tensors):
    """Each storage once, and whole, however many tensors look at it."""
    return sum({s._cdata: s.nbytes() for s in (tensor.untyped_storage() for tensor in tensors)}.values())


def matrices(m):
    """The matrices of one layer: name → (inputs, outputs)."""
    queries, keys, up = m.heads * m.head_width, m.kv_heads * m.head_width, (m.width, m.inner)
    attention = {"query": (m.width, queries), "key": (m.width, keys), "value": (m.width, keys)}
    feed_forward = {"up": up, "gate": up} if m.gated else {"up": up}
    return attention | {"out": (queries, m.width)} | feed_forward | {"down": (m.inner, m.width)}


def parameters(m):
    """Matrices, biases and normalisations of L layers; then the embeddings and the last normalisation."""
    shapes, norm = matrices(m), m.norm_vectors * m.width
    layer = sum(inputs * outputs for inputs, outputs in shapes.values())
    layer += sum(shapes[name][1] for name in m.biases) + 2 * norm + 2 * m.head_width * m.head_norms
    rows = m.vocabulary * (1 if m.tied else 2) + (m.context if m.learned_positions else 0)
    return m.layers * layer + rows * m.width + norm


def forward_flops(m, batch, sequence):
    """2 for each weight of a product and token, and two products of S × S scores for each head."""
    tokens = batch * sequence
    layer = 2 * tokens * sum(inputs * outputs for inputs, outputs in matrices(m).values())
    scores = 2 * 2 * tokens * sequence * m.heads * m.head_width
    return m.layers * (layer + scores) + 2 * tokens * m.width * m.vocabulary


def days(flops, gpus, peak, share):
    """FLOPs over the FLOP/s that all GPUs reach together."""
    return flops / (gpus * peak * share) / SECONDS_PER_DAY


def layer_bytes(m, batch, sequence, dtype):
    """What autograd keeps of one layer between the forward and the backward pass."""
    normalisations = 2 * 2 * m.width  # the input and the result of each
    attention = (2 + m.head_norms) * (m.heads + m.kv_heads) * m.head_width  # queries to result
    feed_forward = (4 if m.gated else 2) * m.inner
    numbers = batch * sequence * (normalisations + attention + feed_forward)
    row_sums = batch * sequence * m.heads  # of the scores, in fp32
    return numbers * BYTES[dtype] + row_sums * BYTES["fp32"]


def state_bytes(numbers, recipe, gpus, stage):
    """Bytes of each part on each GPU. What the stage shards is split evenly, rounded up."""
    share = (numbers + gpus - 1) // gpus
    held = {part: share if stage >= SHARDED_FROM[part] else numbers for part in recipe}
    return {part: held[part] * sum(BYTES[dtype] for dtype in dtypes) for part, dtypes in recipe.items()}


def recipe(name):
    """The dtypes of each part, by a name such as "fp32 adamw" or "bf16+master adamw, fp32 gradients"."""
    formats, _, gradients = name.partition(", ")
    formats, optimizer = formats.split()
    dtype, _, master = formats.partition("+")
    return {
        "parameters": (dtype,),
        "gradients": ("fp32" if gradients else dtype,),
        "optimizer": ("fp32" if master else dtype,) * OPTIMIZER_NUMBERS[optimizer],
        "master": ("fp32",) if master else (),
    }


def step_bytes(m, batch, sequence, dtype, recomputed):
    """What a step adds at the loss: the most of it if V is 8 widths or more, and the tokens half a width or more."""
    inputs = tensor_bytes((batch, sequence, m.width), dtype)
    kept = (m.layers - recomputed) * layer_bytes(m, batch, sequence, dtype) + recomputed * inputs
    return kept + 2 * inputs + LOGIT_BYTES * batch * sequence * m.vocabulary


def step_flops(m, batch, sequence, recomputed):
    """Forward, a backward of twice that, and forward again for recomputed layers, without their last product."""
    forward, tokens = forward_flops(m, batch, sequence), batch * sequence
    layer = (forward - 2 * tokens * m.width * m.vocabulary) // m.layers
    return 3 * forward + recomputed * (layer - 2 * tokens * m.inner * m.width)


def interval(save_s, failure_s):
    """Young's rule: the seconds between two saves at which saving costs as much as lost work."""
    return math.sqrt(2 * save_s * failure_s)


def lost_share(interval_s, save_s, failure_s, restart_s):
    """What saving, lost work and restarts take of the time, each by itself."""
    return save_s / interval_s + interval_s / (2 * failure_s) + restart_s / failure_s


def model_from(config):
    """The shape that a config.json of GPT-2, Llama, Mistral, Qwen 2 or Qwen 3 describes."""
    kind, config = config.get("model_type"), {GPT2_NAMES.get(name, name): config[name] for name in config}
    unknown = kind not in ("gpt2", "llama", "mistral", "qwen2", "qwen3") or config.get("mlp_bias")
    if unknown or any("expert" in name for name in config):
        raise ValueError(f"This reads gpt2, llama, mistral, qwen2 and qwen3, without experts; got {kind!r}.")
    gpt2, width, heads = kind == "gpt2", config["hidden_size"], config["num_attention_heads"]
    biases = 6 if gpt2 else 3 if kind == "qwen2" else 4 if config.get("attention_bias") else 0
    return Model(
        *(config["num_hidden_layers"], width, heads, config.get("num_key_value_heads") or heads),
        *(config.get("head_dim") or width // heads, config.get("intermediate_size") or 4 * width),
        *(config["vocab_size"], config["max_position_embeddings"]),
        gated=not gpt2,
        biases=("query", "key", "value", "out", "up", "down")[:biases],
        norm_vectors=2 if gpt2 else 1,
        head_norms=kind == "qwen3",
        learned_positions=gpt2,
        tied=config.get("tie_word_embeddings", gpt2),
    )


def account(m, gpus, tokens, recipe_name, stage, batch, sequence, recomputed, memory, peak, share):
    """All lines. As in accumulation, an earlier batch's gradients are there at the loss; else it holds less by them."""
    possible = min(gpus, tokens, batch, peak, share) > 0 and stage in range(4) and share <= 1
    if not possible or min(sequence, recomputed, m.layers - recomputed) < 0:
        raise ValueError("Sizes are above 0, the stage is 0 to 3, the share at most 1, recomputed at most L.")
    numbers, sequence, parts = parameters(m), sequence or m.context, recipe(recipe_name)
    state = state_bytes(numbers, parts, gpus, stage)
    step = step_bytes(m, batch, sequence, *parts["parameters"], recomputed)
    held = sum(state.values()) + step
    flops = step_flops(m, 1, sequence, recomputed) * tokens / sequence
    failure_s = GPU_DAYS_PER_FAILURE * SECONDS_PER_DAY / gpus
    save_every_s = interval(SAVE_S, failure_s)
    lost = lost_share(save_every_s, SAVE_S, failure_s, RESTART_S)
    lines = {"parameters": numbers} | {f"bytes of {part}": nbytes for part, nbytes in state.items()}
    lines |= {"bytes of a step": step, "bytes together": held, "fits": "yes" if held <= memory else "no"}
    lines |= {"FLOPs": flops, "days": days(flops, gpus, peak, share)}
    return lines | {"seconds between two saves": save_every_s, "share of time lost to crashes": lost}


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("config", help="the config.json of GPT-2, Llama, Mistral, Qwen 2 or Qwen 3")
    for name, (default, meaning) in OPTIONS.items():
        ask.add_argument(f"--{name}", type=type(default), default=default, help=f"{meaning} ({default})")
    asked = vars(ask.parse_args())
    with open(asked.pop("config"), encoding="utf-8") as file:
        m = model_from(json.load(file))
    for name, value in account(m, *asked.values()).items():
        print(f"{name:<32}{value:>24,}" if isinstance(value, int) else f"{name:<32}{value:>24.5}")


if __name__ == "__main__":
    main()
