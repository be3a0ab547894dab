"""An accountant of training: the bytes, the FLOPs and the days that a transformer takes, from its shape alone.

    python accountant.py config.json --gpus 1024 --tokens 15e12

A multiply-add is 2 FLOPs, and matrix products alone count, all S × S scores among them. The bytes are those of fused
attention, which does not keep the scores. Its backward pass computes them a second time, and that is not counted.
"""

import argparse
import json
import math
from dataclasses import dataclass, replace

BYTES = {
    "fp64": 8,
    "fp32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8": 1,
    "int64": 8,
    "int32": 4,
    "int8": 1,
    "bool": 1,
}
OPTIMIZER_NUMBERS = {"sgd": 0, "momentum": 1, "adamw": 2}  # that it keeps for each parameter
FORMATS = ("fp64", "fp32", "fp16", "bf16", "fp16+master", "bf16+master")  # that a recipe can name
SHARDED_FROM = {"optimizer": 1, "master": 1, "gradients": 2, "parameters": 3}  # ZeRO's stage
LOGIT_BYTES, SECONDS_PER_DAY = 12, 86_400  # the loss holds three fp32 tensors of the logits' shape
GPU_DAYS_PER_FAILURE = 54 * 16_384 / 419  # Llama 3's 405B on H100s: arXiv 2407.21783, section 3.3.4
SAVE_S, RESTART_S = 60, 300  # assumed
PEAK = 989.5e12  # dense FLOP/s of an H100 SXM in 16 bits: NVIDIA's data sheet
LONGEST = 8192  # tokens of a sequence, where nobody says another number: assumed
GPT2_NAMES = {
    "n_layer": "num_hidden_layers",
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
}
GPT2_NAMES |= {"n_inner": "intermediate_size", "n_positions": "max_position_embeddings"}
NO_WINDOW = {"sliding_window": 4096, "use_sliding_window": False}
DEFAULTS = {  # what the transformers library takes where a config.json says nothing
    "gpt2": {"tie_word_embeddings": True},
    "llama": {},
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "qwen2": {"num_key_value_heads": 32} | NO_WINDOW,
    "qwen3": {"num_key_value_heads": 32, "head_dim": 128} | NO_WINDOW,
}
NOT_COUNTED = (
    "expert",
    "moe",
    "lora",
    "quantization",
    "cross_attention",
    "mlp_bias",
    "qk_norm",
    "nextn",
    "pruned",
)
OPTIONS = {  # what can be asked: a default, and what it is
    "gpus": (8, "GPUs"),
    "tokens": (15e12, "tokens to train on"),
    "recipe": ("bf16+master adamw", "the formats of each part, and the optimizer"),
    "stage": (3, "of ZeRO: 3 shards everything, 0 nothing"),
    "batch": (1, "sequences on each GPU at a time"),
    "sequence": (None, f"tokens of a sequence; if you do not say, the context, at most {LONGEST}"),
    "recomputed": (0, "layers that are recomputed"),
    "memory": (80e9, "bytes of a GPU"),
    "peak": (PEAK, "dense FLOP/s of a GPU in the recipe's format: by default an H100's in 16 bits"),
    "share": (0.4, "of the peak that the counted FLOPs reach: assumed"),
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
    context: int  # tokens of a sequence, at most: the positions, or the window of attention
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
    return sum(
        {s._cdata: s.nbytes() for s in (tensor.untyped_storage() for tensor in tensors)}.values()
    )


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
    return {
        part: held[part] * sum(BYTES[dtype] for dtype in dtypes) for part, dtypes in recipe.items()
    }


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
    """What a step adds to the state at the loss. `moments` says whether that is the most."""
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
    """What saving, lost work and restarts take of the time, at most: each as if the others took none."""
    return save_s / interval_s + interval_s / (2 * failure_s) + restart_s / failure_s


THE_LOSS, OF_THE_OUTPUT = "the loss", "the output's gradient"
IN_A_LAYER = "the last layer's gradients"


def moments(m, batch, sequence, dtype, gradient_dtype, recomputed):
    """What a step adds at each moment of its passes that can be the fullest, with the gradients of an earlier batch.

    Going backward, the gradient of a whole matrix is made before it is added to that of the earlier batch. What an
    optimizer copies in its own step, gradients in fp32 for instance, is not here.
    """
    refuse_narrow(m)
    hidden = tensor_bytes((batch, sequence, m.width), dtype)
    logits = tensor_bytes((batch, sequence, m.vocabulary), dtype)
    kept = (m.layers - recomputed) * layer_bytes(m, batch, sequence, dtype) + recomputed * hidden
    table = (m.vocabulary, m.width)
    table_kept = tensor_bytes(table, gradient_dtype)
    cast = cast_bytes(table, dtype, gradient_dtype)
    output = tensor_bytes(table, dtype) + max(hidden + logits, cast)
    waiting = (
        table_kept if m.tied else 0
    )  # the output's gradient, to which the embedding's is added
    in_a_layer = layer_gradients_bytes(m, batch, sequence, dtype, gradient_dtype, recomputed)
    embedding = waiting + tensor_bytes(table, dtype) + hidden + cast
    if m.tied:
        embedding = max(embedding, 3 * table_kept)  # one, another, and their sum
    found = {
        THE_LOSS: step_bytes(m, batch, sequence, dtype, recomputed),
        OF_THE_OUTPUT: kept + 2 * hidden + output,
        IN_A_LAYER: in_a_layer + waiting,
        "the embedding's gradient": embedding,
    }
    if m.learned_positions:
        used = tensor_bytes((sequence, m.width), dtype)
        positions = (m.context, m.width)
        made = tensor_bytes(positions, dtype) + cast_bytes(positions, dtype, gradient_dtype)
        found["the positions' gradient"] = hidden + used + made + waiting
    return found


def layer_gradients_bytes(m, batch, sequence, dtype, gradient_dtype, recomputed):
    """What a step adds while the last layer goes backward. If it was recomputed, it is whole again by then."""
    hidden = tensor_bytes((batch, sequence, m.width), dtype)
    inside = tensor_bytes((batch, sequence, m.inner), dtype)
    whole = max(1, m.layers - recomputed)
    kept = whole * layer_bytes(m, batch, sequence, dtype) + (m.layers - whole) * hidden
    down = (m.inner, m.width)
    cast = cast_bytes(down, dtype, gradient_dtype)
    if recomputed < m.layers:
        cast += inside  # which a recomputed layer has let go of by then
    most = tensor_bytes(down, dtype) + max(inside, cast)
    if m.gated:
        most = max(most, 2 * inside)  # both factors have a gradient
    return kept + hidden + most


def cast_bytes(shape, dtype, gradient_dtype):
    """A gradient that was made in one format is copied, if gradients are kept in another."""
    return 0 if gradient_dtype == dtype else tensor_bytes(shape, gradient_dtype)


def refuse_narrow(m):
    """Raise a sentence if the fullest moment may be one that `moments` does not know."""
    queries = m.heads * m.head_width
    if m.inner < m.width or 3 * m.inner < 4 * queries:
        raise ValueError(
            f"The feed-forward is {m.inner:,} wide. It has to be as wide as the model, {m.width:,}, and 4/3 as wide "
            f"as all its queries, {queries:,}: of other models it is not known here when a step is fullest."
        )


def gathered_bytes(m, dtype, gpus, stage, moment):
    """What a GPU has whole for a while, of weights and gradients that all GPUs hold in parts.

    The weights of the tables and the last normalisation are whole during the whole step. Their gradients behind the
    layers are whole from when they are made to the step's end: at the loss there are none, and at the output's gradient
    `moments` counts it already. Inside the layers come one layer's weights, those of the next, and one layer's
    gradients. (As FSDP does it, layer by layer.)
    """
    if gpus == 1 or stage < SHARDED_FROM["parameters"]:
        return 0
    layer = parameters(replace(m, layers=2)) - parameters(replace(m, layers=1))
    numbers = parameters(m) - m.layers * layer  # around the layers
    if moment not in (THE_LOSS, OF_THE_OUTPUT):
        numbers += m.norm_vectors * m.width
        if not m.tied:
            numbers += m.vocabulary * m.width
    if moment == IN_A_LAYER:
        numbers += (min(2, m.layers) + 1) * layer
    return tensor_bytes((numbers,), dtype)


def rest_bytes(m, batch, sequence, dtype):
    """At most: angles of the positions, LayerNorm's statistics, a step counter for each tensor, a few lone numbers."""
    rest = 0 if m.learned_positions else tensor_bytes((sequence, m.head_width), dtype)
    norms = 4 * m.layers + 1  # two in a layer, two more for its heads
    if m.norm_vectors == 2:
        rest += tensor_bytes((batch, sequence, 2, norms), dtype)
    tensors = m.layers * (len(matrices(m)) + len(m.biases)) + norms * m.norm_vectors + 3
    return rest + 4 * (tensors + 4)


def model_from(config):
    """The shape that a config.json of GPT-2, Llama, Mistral, Qwen 2 or Qwen 3 describes."""
    kind = config.get("model_type") if isinstance(config, dict) else None
    if not isinstance(kind, str) or kind not in DEFAULTS:
        raise ValueError(
            f"This reads the config.json of {', '.join(DEFAULTS)}; its model_type is {kind!r}."
        )
    config = DEFAULTS[kind] | {GPT2_NAMES.get(name, name): value for name, value in config.items()}
    refuse_unknown(kind, config)
    gpt2 = kind == "gpt2"
    width = size_in(config, "hidden_size")
    heads = size_in(config, "num_attention_heads")
    if config.get("head_dim") is None and width % heads:
        raise ValueError(f"hidden_size {width:,} is no multiple of num_attention_heads, {heads:,}.")
    kv_heads = size_in(config, "num_key_value_heads", heads)
    if heads % kv_heads:
        raise ValueError(
            f"num_attention_heads {heads:,} is no multiple of num_key_value_heads, {kv_heads:,}."
        )
    context = size_in(config, "max_position_embeddings")
    if config.get("use_sliding_window", True):
        context = min(context, size_in(config, "sliding_window", context))
    biases = ()
    if gpt2:
        biases = ("query", "key", "value", "out", "up", "down")
    elif kind == "qwen2":
        biases = ("query", "key", "value")
    elif config.get("attention_bias"):
        biases = ("query", "key", "value", "out")
    return Model(
        layers=size_in(config, "num_hidden_layers"),
        width=width,
        heads=heads,
        kv_heads=kv_heads,
        head_width=size_in(config, "head_dim", width // heads),
        inner=size_in(config, "intermediate_size", 4 * width if gpt2 else None),
        vocabulary=size_in(config, "vocab_size"),
        context=context,
        gated=not gpt2,
        biases=biases,
        norm_vectors=2 if gpt2 else 1,
        head_norms=kind == "qwen3",
        learned_positions=gpt2,
        tied=bool(config.get("tie_word_embeddings")),
    )


def refuse_unknown(kind, config):
    """Raise a sentence on a field that changes the account, and of which this program does not know how."""
    for name, value in config.items():
        if value and any(word in name for word in NOT_COUNTED):
            raise ValueError(
                f"The config has {name}: this program does not know what that changes."
            )
    layers = config.get("layer_types") or []
    known = ("full_attention", "sliding_attention")
    if not isinstance(layers, list) or any(one not in known for one in layers):
        raise ValueError(
            f"layer_types names {' and '.join(known)}; this program does not know others."
        )
    if config.get("attention_bias") and kind not in ("llama", "qwen3"):
        raise ValueError(
            f"The config has attention_bias, which a model of type {kind} does not know."
        )


def size_in(config, name, otherwise=None):
    """A whole number from 1 up, by its name in a config.json."""
    value = config.get(name)
    if value is None:
        value = otherwise
    if value is None:
        raise ValueError(f"The config has no {name}.")
    if type(value) is not int or value < 1:
        raise ValueError(f"{name} is a whole number from 1 up; the config has {value!r}.")
    return value


def known_recipe(name):
    """The recipe of that name, or a sentence on which names there are."""
    formats_and_optimizer, comma, gradients = name.partition(", ")
    formats, _, optimizer = formats_and_optimizer.partition(" ")
    known = formats in FORMATS and optimizer in OPTIMIZER_NUMBERS
    if not known or (comma and gradients != "fp32 gradients"):
        raise ValueError(
            f"A recipe is one of {', '.join(FORMATS)}, then one of {', '.join(OPTIMIZER_NUMBERS)}, and "
            f'perhaps ", fp32 gradients"; got {name!r}.'
        )
    return recipe(name)


def refuse_impossible(m, gpus, tokens, stage, batch, sequence, recomputed, memory, peak, share):
    """Raise a sentence on what cannot be asked."""
    sizes = {"gpus": gpus, "tokens": tokens, "batch": batch, "sequence": sequence}
    sizes |= {"memory": memory, "peak": peak, "share": share}
    for name, value in sizes.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} is a number above 0; got {value!r}.")
    if sequence > m.context:
        raise ValueError(
            f"A sequence has at most {m.context:,} tokens here, as many as the model has positions for, or as its "
            f"attention looks back; got {sequence:,}."
        )
    if share > 1:
        raise ValueError(f"share is a share of the peak, at most 1; got {share!r}.")
    if stage not in range(4):
        raise ValueError(f"ZeRO's stage is 0, 1, 2 or 3; got {stage!r}.")
    if not 0 <= recomputed <= m.layers:
        raise ValueError(
            f"Of {m.layers} layers, 0 to {m.layers} can be recomputed; got {recomputed!r}."
        )


def account(m, gpus, tokens, recipe_name, stage, batch, sequence, recomputed, memory, peak, share):
    """All lines. As in accumulation, the gradients of an earlier batch are in memory during the whole step.

    A step that is a batch of its own holds them only at its end, so its forward and backward pass never hold more than
    this says. The optimizer's own step can, if it copies gradients: in fp32, for a master, 4 bytes for each number.
    """
    if sequence is None:
        sequence = min(m.context, LONGEST)
    refuse_impossible(m, gpus, tokens, stage, batch, sequence, recomputed, memory, peak, share)
    numbers = parameters(m)
    parts = known_recipe(recipe_name)
    state = state_bytes(numbers, parts, gpus, stage)
    (dtype,) = parts["parameters"]
    (gradient_dtype,) = parts["gradients"]
    if peak == PEAK and BYTES[dtype] != 2:
        raise ValueError(
            f"The recipe computes in {dtype}, and {PEAK:.4g} FLOP/s is a peak of 16 bits: say --peak."
        )

    added = moments(m, batch, sequence, dtype, gradient_dtype, recomputed)
    gathered = {moment: gathered_bytes(m, dtype, gpus, stage, moment) for moment in added}
    fullest = max(added, key=lambda moment: added[moment] + gathered[moment])
    rest = rest_bytes(m, batch, sequence, dtype)
    held = sum(state.values()) + added[fullest] + gathered[fullest] + rest

    flops = step_flops(m, 1, sequence, recomputed) * tokens / sequence
    failure_s = GPU_DAYS_PER_FAILURE * SECONDS_PER_DAY / gpus
    save_every_s = interval(SAVE_S, failure_s)
    lost = lost_share(save_every_s, SAVE_S, failure_s, RESTART_S)
    return {
        "parameters": numbers,
        "tokens of a sequence": sequence,
        **{f"bytes of {part}": nbytes for part, nbytes in state.items()},
        "fullest moment of a step": fullest,
        "bytes that the step adds then": added[fullest],
        "bytes gathered then": gathered[fullest],
        "bytes of the rest": rest,
        "bytes together": held,
        "fits": "yes" if held <= memory else "no",
        "FLOPs": flops,
        "days without saves and failures": days(flops, gpus, peak, share),
        "seconds between two saves": save_every_s,
        "share that is lost, at most": min(lost, 1.0),  # at most: each is counted as if alone
    }


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("config", help="the config.json of GPT-2, Llama, Mistral, Qwen 2 or Qwen 3")
    for name, (default, meaning) in OPTIONS.items():
        kind = int if default is None else type(default)
        ask.add_argument(
            f"--{name}", type=kind, default=default, help=f"{meaning} (default: {default})"
        )
    asked = vars(ask.parse_args())
    path = asked.pop("config")
    try:
        with open(path, encoding="utf-8") as file:
            m = model_from(json.load(file))
        lines = account(m, *asked.values())
    except json.JSONDecodeError as error:
        ask.error(f"{path} is no JSON: {error}")
    except (OSError, ValueError, OverflowError, RecursionError) as error:
        ask.error(str(error))
    for name, value in lines.items():
        if isinstance(value, int):
            print(f"{name:<34}{value:>26,}")
        elif isinstance(value, str):
            print(f"{name:<34}{value:>26}")
        else:
            print(f"{name:<34}{value:>26,.5}")


if __name__ == "__main__":
    main()
