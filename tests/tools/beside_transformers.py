"""Compares the accountant with Hugging Face's transformers, family by family.

`make beside` draws configs of each family that the accountant reads, makes the models in an
environment of their own, and lets torch count: parameters, the FLOPs of a forward pass, the bytes
that autograd keeps, and a step's peak. It prints how many of them the accountant counts to the
digit, and with which terms of `beside_kept` beside its own. `make beside ARGS=--store` also writes
a few of these cases to the file that a test reads, so that CI needs no transformers.

Nothing here has been written by the course but the draws and the comparison: the models are those
of the library that everybody uses.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from itertools import accumulate

from course_utils.core import accountant
from tests import ROOT
from tests.tools.beside_kept import UNFUSED, Run, at_the_loss, more, ours, outside_windows

TRANSFORMERS = "5.24.0"
TORCH = "2.13.0"
STORED = ROOT / "tests" / "core" / "beside_transformers.json"
STORED_OF_EACH = 3  # cases of each family that are stored
BATCH = 3
SEQUENCE = 48
# So many logits that a step is fullest at its loss.
VOCABULARY = (1000, 1500)
DTYPES = {"fp32": "float32", "bf16": "bfloat16"}  # and torch's names of them

NO_NUMBERS = ("model_type", "layer_types", "q_lora_rank", "n_inner")  # fields that are kept, too

Config = dict[str, object]


def dense(draw: random.Random) -> Config:
    """Return the fields that all families have, with small sizes."""
    kv_heads = draw.choice([1, 2, 3])
    heads = kv_heads * draw.choice([1, 2, 4])
    head_width = draw.choice([4, 8, 16])
    return {
        "hidden_size": heads * head_width,
        "intermediate_size": draw.randint(1, 90),
        "num_hidden_layers": draw.randint(1, 5),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": draw.randint(*VOCABULARY),
        "max_position_embeddings": draw.randint(SEQUENCE, 100),
        "tie_word_embeddings": draw.random() < 0.5,
    }


def of_gpt2(draw: random.Random) -> Config:
    """Return a GPT-2, in its own names."""
    heads = draw.choice([1, 2, 4])
    return {
        "n_embd": heads * draw.choice([4, 8]),
        "n_inner": draw.choice([None, draw.randint(1, 90)]),
        "n_layer": draw.randint(1, 5),
        "n_head": heads,
        "n_positions": draw.randint(SEQUENCE, 100),
        "vocab_size": draw.randint(*VOCABULARY),
        "tie_word_embeddings": draw.random() < 0.5,
        "resid_pdrop": 0.0,  # the course's models have no dropout
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
    }


def with_biases(draw: random.Random) -> Config:
    """Return a dense model whose attention may have biases."""
    return dense(draw) | {"attention_bias": draw.random() < 0.5}


def with_own_head_width(draw: random.Random) -> Config:
    """Return a dense model whose heads together need not be as wide as the model."""
    return with_biases(draw) | {"head_dim": draw.choice([4, 8, 16])}


def window(draw: random.Random) -> Config:
    """Return a window that is shorter than the sequence, as long, or longer."""
    return {"sliding_window": draw.choice([draw.randint(1, 99), SEQUENCE - 1, SEQUENCE])}


def with_window(draw: random.Random) -> Config:
    """Return a dense model with heads of any width, and with a window."""
    return with_own_head_width(draw) | window(draw)


def of_mistral(draw: random.Random) -> Config:
    """Return a dense model with a window in all layers."""
    return dense(draw) | window(draw)


def of_qwen2(draw: random.Random) -> Config:
    """Return a dense model whose later layers may have a window."""
    return dense(draw) | in_later_layers(draw)


def of_qwen3(draw: random.Random) -> Config:
    """Return a dense model with heads of any width, whose later layers may have a window."""
    return with_own_head_width(draw) | in_later_layers(draw)


def in_later_layers(draw: random.Random) -> Config:
    """Return a window that may be used, and if so, from some layer on."""
    used = {"use_sliding_window": draw.random() < 0.5, "max_window_layers": draw.randint(0, 5)}
    return used | window(draw)


def of_mixtral(draw: random.Random) -> Config:
    """Return a mixture in all layers."""
    experts = draw.randint(2, 9)
    return dense(draw) | {
        "num_local_experts": experts,
        "num_experts_per_tok": draw.randint(1, experts),
    }


def of_qwen3_moe(draw: random.Random) -> Config:
    """Return a mixture whose experts have a width of their own."""
    experts = draw.randint(2, 9)
    return with_own_head_width(draw) | {
        "num_experts": experts,
        "num_experts_per_tok": draw.randint(1, experts),
        "moe_intermediate_size": draw.randint(1, 40),
        "use_sliding_window": draw.random() < 0.5,
        **window(draw),
    }


def of_gpt_oss(draw: random.Random) -> Config:
    """Return a mixture with biases and sinks."""
    return of_mixtral(draw) | {
        "head_dim": draw.choice([4, 8]),
        "attention_bias": draw.random() < 0.5,
        **window(draw),
    }


def of_deepseek(draw: random.Random) -> Config:
    """Return a mixture with latent attention, whose first layers may be dense."""
    fields = dense(draw)
    experts = 2 * draw.randint(2, 6)
    content_width = 2 * draw.randint(1, 6)
    position_width = draw.choice([2, 4, 8])
    key_width = content_width + position_width
    fields["num_key_value_heads"] = fields["num_attention_heads"]
    return fields | {
        "n_routed_experts": experts,
        "num_experts_per_tok": draw.randint(1, experts // 2),
        "n_shared_experts": draw.randint(1, 3),
        "moe_intermediate_size": draw.randint(1, 40),
        "first_k_dense_replace": draw.randint(0, fields["num_hidden_layers"]),
        "n_group": 2,
        "topk_group": 1,
        "q_lora_rank": draw.choice([None, draw.randint(1, 20)]),
        # Even, because DeepSeek-V2's rotation takes pairs of numbers as complex ones.
        "kv_lora_rank": 2 * draw.randint(1, 10),
        "qk_nope_head_dim": content_width,
        "qk_rope_head_dim": position_width,
        "v_head_dim": draw.choice([key_width, draw.randint(1, 12)]),
    }


FAMILIES: dict[str, Callable[[random.Random], Config]] = {
    "gpt2": of_gpt2,
    "llama": with_biases,
    "mistral": of_mistral,
    "qwen2": of_qwen2,
    "qwen3": of_qwen3,
    "gemma": with_own_head_width,
    "gemma2": with_window,
    "gemma3_text": with_window,
    "mixtral": of_mixtral,
    "qwen3_moe": of_qwen3_moe,
    "gpt_oss": of_gpt_oss,
    "deepseek_v2": of_deepseek,
    "deepseek_v3": of_deepseek,
}


def counted(kind: str, fields: Config, dtype: str) -> Config:
    """Make the model with transformers, and return its config.json and what torch counts of it."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(kind, **fields)
    # "eager": attention and experts are written out in products that torch counts.
    eager = {"attn_implementation": "eager", "experts_implementation": "eager"}
    model = AutoModelForCausalLM.from_config(config, **eager)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):  # published files have it among the weights
            parameters += buffer.numel()
    ids = torch.zeros(BATCH, SEQUENCE, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(ids)
    by_module = counter.get_flop_counts()
    flops = counter.get_total_flops()
    for name, by_operation in by_module.items():
        if name.endswith("rotary_emb"):  # some families make the angles by a product of matrices
            flops -= sum(by_operation.values())
    as_published = json.loads(config.to_json_string(use_diff=False))
    as_published["model_type"] = kind
    config = AutoConfig.for_model(kind, **fields)  # a new one, since `from_config` changes it
    attention = "eager" if kind in UNFUSED else "sdpa"
    kernels = {"attn_implementation": attention, "experts_implementation": "eager"}
    torch.manual_seed(0)  # routers pick experts by these weights, so each run draws the same
    trained = AutoModelForCausalLM.from_config(config, **kernels).to(getattr(torch, DTYPES[dtype]))
    trained.train()
    return {
        "config": as_published,
        "parameters": parameters,
        "flops": flops,
        "dtype": dtype,
        "kept": kept_by_torch(trained, ids),
        "peak": peak_by_torch(trained, ids),
        "busy_experts": busy_experts(trained, ids),
    }


def busy_experts(model: object, ids: object) -> int:
    """Return how many experts get a token, in all layers together."""
    found = []

    def note(_experts: object, given: tuple) -> None:
        _hidden, picked, _shares = given
        found.append(picked.unique().numel())

    for name, module in model.named_modules():
        if name.endswith(".experts"):
            module.register_forward_pre_hook(note)
    model(ids, use_cache=False)
    return sum(found)


def kept_by_torch(model: object, ids: object) -> int:
    """Return the bytes that autograd keeps from the embedding to the last norm, but parameters."""
    import torch

    known = {parameter.untyped_storage() for parameter in model.parameters()}
    # Weak references, because what does not lead to the result is freed again.
    kept = weakref.WeakSet()

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.add(tensor.untyped_storage())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = model.base_model(ids, use_cache=False)
    nbytes = sum(storage.nbytes() for storage in kept if storage not in known)
    del result  # until here it holds what autograd keeps
    return nbytes


def peak_by_torch(model: object, ids: object) -> int:
    """Return the most bytes that a step has allocated at a time, as torch's profiler sees them.

    Gradients of an earlier batch are there already.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile

    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        model(ids, labels=ids, use_cache=False).loss.backward()
    changes = []
    for event in profiled.profiler.kineto_results.events():
        if event.name() == "[memory]":
            changes.append((event.start_ns(), event.nbytes()))
    changes.sort(key=lambda change: change[0])
    return max(accumulate(nbytes for _, nbytes in changes))


def count_all(each: int, seed: int) -> Iterator[Config]:
    """Draw configs of each family, and yield what is counted of each."""
    for kind, draw_fields in FAMILIES.items():
        draw = random.Random(f"{seed} {kind}")
        for number in range(each):
            dtype = list(DTYPES)[number % 2]
            yield counted(kind, draw_fields(draw), dtype)


def run_of(case: Config, m: accountant.Model) -> Run:
    """Return the case's run of the model `m`, which the accountant has read from its config."""
    kind = case["config"]["model_type"]
    return Run(kind, m, BATCH, SEQUENCE, case["dtype"], case["busy_experts"])


def differences(case: Config) -> list[str]:
    """Return what the accountant counts otherwise, or why it refuses the config."""
    try:
        m = accountant.model_from(case["config"])
    except ValueError as error:
        return [str(error)]
    run = run_of(case, m)
    kept = ours(run) + sum(more(run).values())
    said = {
        "parameters": accountant.stored_parameters(m),
        "flops": accountant.active_forward_flops(m, BATCH, SEQUENCE) + outside_windows(run),
        "kept": kept,
        "peak": kept + sum(at_the_loss(run).values()),
    }
    return [
        f"{name}: {number:,}, and torch counts {case[name]:,}"
        for name, number in said.items()
        if number != case[name]
    ]


def compared(cases: list[Config]) -> bool:
    """Print how many of each family agree, and the first that does not. Return whether all do."""
    for kind in FAMILIES:
        of_kind = [case for case in cases if case["config"]["model_type"] == kind]
        wrong = [(case, why) for case in of_kind if (why := differences(case))]
        print(f"{kind:<14}{len(of_kind) - len(wrong):>5} of {len(of_kind)} to the digit")
        for case, why in wrong[:1]:
            print(f"  {'; '.join(why)}\n  {json.dumps(case['config'])}")
        print(f"{'':<14}kept beside ours: {'; '.join(terms_of(of_kind))}")
    print(NOT_COMPARED)
    return not any(map(differences, cases))


NOT_COMPARED = """
Kept bytes and peaks are of fused attention, but for gemma2 and gpt_oss, which have none there.
Peaks are of steps that are fullest at their loss. Other moments, recomputed layers, kernels that
compute all experts together, and GPUs are not compared."""


def terms_of(cases: list[Config]) -> list[str]:
    """Return the names of all that these models keep beside what the accountant counts."""
    names = []
    for case in cases:
        m = accountant.model_from(case["config"])
        names += more(run_of(case, m))
    return list(dict.fromkeys(names))


def short(case: Config) -> Config:
    """Return the case with those fields of its config that are numbers or whose effect is known."""
    kept = {}
    for name, value in case["config"].items():
        if isinstance(value, int) or name in NO_NUMBERS:
            kept[name] = value
    return case | {"config": kept}


def main() -> int:
    """Count in the environment that has transformers, and compare here."""
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--each", type=int, default=200, help="configs of each family")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--store", action="store_true", help="write the cases that a test reads")
    asked.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = asked.parse_args()
    if options.inside:
        for case in count_all(options.each, options.seed):
            print(json.dumps(case), flush=True)
        return 0

    from tests.tools.versions import environment

    wanted = [f"torch=={TORCH}", f"transformers=={TRANSFORMERS}"]
    python = environment(f"transformers-{TRANSFORMERS}", wanted)
    program = [python, "-m", "tests.tools.beside_transformers", "--inside"]
    numbers = ["--each", str(options.each), "--seed", str(options.seed)]
    quiet = os.environ | {"TRANSFORMERS_VERBOSITY": "error"}
    whole = [*program, *numbers]
    run = subprocess.run(whole, cwd=ROOT, env=quiet, stdout=subprocess.PIPE, check=True)
    cases = [json.loads(line) for line in run.stdout.splitlines() if line.startswith(b"{")]
    print(f"transformers {TRANSFORMERS}, torch {TORCH}")
    agree = compared(cases)
    if options.store:
        store(cases)
    return 0 if agree else 1


def store(cases: list[Config]) -> None:
    """Write the first cases of each family to the file that a test reads."""
    kept = []
    for kind in FAMILIES:
        of_kind = [case for case in cases if case["config"]["model_type"] == kind]
        kept += map(short, of_kind[:STORED_OF_EACH])
    lines = ",\n".join(json.dumps(case) for case in kept)
    STORED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
