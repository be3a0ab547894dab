"""Training steps and steps of decoding on one GPU, beside what the course predicts of them.

`make gpu` calls it, once for each of its parts:

    python -m tests.tools.gpu_steps step folder      a model of a billion parameters
    python -m tests.tools.gpu_steps mixture folder   a small mixture of experts
    python -m tests.tools.gpu_steps decode folder    decoding: weights and caches that are read
    python -m tests.tools.gpu_steps largest folder   the largest batch that fits, and one more
    python -m tests.tools.gpu_steps theirs folder    the same model, as transformers writes it

Each part writes what it measures to a JSON file in the folder, after each measurement anew, so that
nothing is lost if its time is up. What can't be measured has a sentence instead of a number.
"""

import argparse
import dataclasses
import gc
import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from course_utils.chapters.flops import workloads
from course_utils.core import accountant, measure
from course_utils.core.accountant import Mixture, Model
from course_utils.core.datasheets import MACHINES
from course_utils.core.measure import internals
from course_utils.core.predict import Shape, shape_of
from course_utils.core.say import Number
from course_utils.subjects import models
from course_utils.subjects.child_processes import products

Call = Callable[[], object]

# Llama 3.2 1B, by its config but for the context: the embedding is the output, too.
BILLION = Model(
    layers=16,
    width=2048,
    heads=32,
    kv_heads=8,
    head_width=64,
    inner=8192,
    vocabulary=128_256,
    context=8192,
    tied=True,
)
SMALL_MIXTURE = Model(
    layers=8,
    width=1024,
    heads=16,
    kv_heads=4,
    head_width=64,
    inner=4096,
    vocabulary=32_000,
    context=2048,
    mixture=Mixture(experts=16, used=2, inner=1024),
)
BATCH = 4
SEQUENCE = 2048
USERS = (1, 4, 16, 64, 128, 256)
CACHED_TOKENS = 4096  # of each user
LARGE = 8192  # rows and columns of a product whose energy is measured
STEP_S = 4.0  # the longest that a step is sampled
ENERGY_S = 3.0  # how long steps run while their energy is measured


class Results:
    """Results by name, which are written to a file after each one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, object] = {}

    def add(self, name: str, measured: Callable[[], object]) -> None:
        """Measure, and write the result down, or in a sentence why there is none."""
        begun = time.monotonic()
        try:
            self.found[name] = measured()
        except Exception as error:  # whatever fails, the next measurement is still to be made
            self.found[name] = f"none: {type(error).__name__}: {error}".splitlines()[0]
        said = self.found[name] if isinstance(self.found[name], int | float | str) else "written"
        print(f"{name}: {said} ({time.monotonic() - begun:.1f} s)", flush=True)
        unfinished = self.path.with_suffix(".new")
        unfinished.write_text(json.dumps(self.found), encoding="utf-8")
        unfinished.replace(self.path)  # a file that is there is whole, whenever a part is ended


def missing(found: Mapping[str, object]) -> list[str]:
    """Return the names of what could not be measured: it has a sentence in place of a result."""
    return [name for name, result in found.items() if str(result).startswith("none: ")]


def is_gpu(device: str) -> bool:
    return torch.device(device).type == "cuda"


def held_bytes(device: str) -> int:
    """Return the bytes of all tensors on the GPU now; 0 on a CPU, where nobody counts them."""
    return torch.cuda.memory_allocated(device) if is_gpu(device) else 0


def forget_what_was_freed() -> None:
    gc.collect()
    torch.cuda.empty_cache()


def seconds(call: Call, device: str, at_most_s: Number) -> dict[str, Number]:
    timing = measure.time_call(call, device=device, at_most_s=at_most_s)
    return {"seconds": timing.seconds, "spread": timing.spread, "samples": len(timing.samples)}


def joules(call: Call, device: str) -> dict[str, Number]:
    """Return the energy of one call by the GPU's own meter, and the mean power meanwhile."""
    import pynvml

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    call()
    torch.cuda.synchronize(device)
    before = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)  # in thousandths of a joule
    begun = time.perf_counter()
    calls = 0
    while time.perf_counter() - begun < ENERGY_S:
        call()
        torch.cuda.synchronize(device)
        calls += 1
    took_s = time.perf_counter() - begun
    used = (pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) - before) / 1000
    return {"joules": used / calls, "watts": used / took_s, "calls": calls, "took_s": took_s}


def most_reserved_bytes(call: Call, device: str) -> dict[str, int]:
    """Return the most that torch's allocator has of the GPU during a call, and what is in use then.

    What is in use beyond that is the GPU's context and the programs that were loaded.
    """
    import pynvml

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    torch.cuda.reset_peak_memory_stats(device)
    call()
    torch.cuda.synchronize(device)
    reserved = torch.cuda.max_memory_reserved(device)
    used = pynvml.nvmlDeviceGetMemoryInfo(gpu).used
    return {"reserved": reserved, "used": used, "held": torch.cuda.max_memory_allocated(device)}


def idle_watts() -> Number:
    """Return the power of a GPU that does nothing, over a second."""
    import pynvml

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    before = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
    time.sleep(1)
    return (pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) - before) / 1000


# What the GPU's allocator says of a step.


class AllocatorWatch(internals.Mode):
    """Writes down, for each operation, the bytes that torch's allocator for GPUs says.

    These are the bytes that were asked for, before they are rounded to blocks. An entry has the
    operation's name, what is held before it, the most during it, and what is held after it.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device
        self.entries: list[tuple[str, int, int, int]] = []

    def run(self, func: Callable[..., object], args: tuple, kwargs: dict[str, object]) -> object:
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_stats(self.device)["requested_bytes.all.current"]
        result = func(*args, **kwargs)
        stats = torch.cuda.memory_stats(self.device)
        most = stats["requested_bytes.all.peak"]
        after = stats["requested_bytes.all.current"]
        self.entries.append((str(func.overloadpacket), before, most, after))
        return result


def operations(call: Call, device: str) -> list[tuple[str, int, int, int]]:
    """Return what the allocator says of each operation of a call."""
    with AllocatorWatch(device) as watch:
        call()
    return watch.entries


def history(call: Call, device: str) -> list[tuple[str, int, str]]:
    """Return each allocation and each release of a call, by torch's own memory history.

    An entry has what happened, the bytes, and the names of the innermost functions.
    """
    torch.cuda.synchronize(device)
    torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    try:
        call()
        torch.cuda.synchronize(device)
        snapshot = torch.cuda.memory._snapshot(device)
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    entries = []
    (trace,) = (trace for trace in snapshot["device_traces"] if trace)
    for event in trace:
        where = " < ".join(frame["name"] for frame in event.get("frames", [])[:4])
        entries.append((event["action"], event["size"], where))
    return entries


# The parts.


def step(device: str, results: Results, model: Model, batch: int, sequence: int) -> None:
    """Measure a training step, and one in which each layer is recomputed."""
    results.add("model", lambda: dataclasses.asdict(model))
    results.add("sizes", lambda: {"batch": batch, "sequence": sequence})
    results.add("idle watts", idle_watts)
    for recompute in (False, True):
        way = "recomputed" if recompute else "plain"
        forget_what_was_freed()
        before = held_bytes(device)
        options = {"recompute": recompute, "device": device}
        call = workloads.training_step(shape_of(model), "bf16", batch, sequence, **options)
        call()
        call()
        results.add(f"{way}: state bytes", lambda before=before: held_bytes(device) - before)
        predicted = partial(workloads.predicted_peak_bytes, recompute=recompute)
        results.add(
            f"{way}: predicted peak bytes",
            partial(predicted, shape_of(model), "bf16", batch, sequence),
        )
        results.add(f"{way}: peak bytes", partial(measure.peak_bytes, call, device=device))
        results.add(f"{way}: reserved bytes", partial(most_reserved_bytes, call, device))
        results.add(f"{way}: time", partial(seconds, call, device, STEP_S))
        results.add(f"{way}: energy", partial(joules, call, device))
        results.add(f"{way}: operations", partial(operations, call, device))
        results.add(f"{way}: history", partial(history, call, device))
        del call
    forget_what_was_freed()
    n = LARGE if is_gpu(device) else 64
    product = products.matmul_call(n, n, n, "bf16", device)
    results.add(f"product of {n}: time", partial(seconds, product, device, STEP_S))
    results.add(f"product of {n}: energy", partial(joules, product, device))


def mixture(device: str, results: Results, model: Model, batch: int, sequence: int) -> None:
    """Measure a training step of a mixture of experts: its FLOPs, bytes and seconds."""
    results.add("model", lambda: dataclasses.asdict(model))
    results.add("sizes", lambda: {"batch": batch, "sequence": sequence})
    torch.manual_seed(0)
    forget_what_was_freed()
    before = held_bytes(device)
    with torch.device(device):  # numbers are drawn there, because a CPU takes long for so many
        network = models.MixtureTransformer(model, dtype=torch.bfloat16)
    results.add("parameters", lambda: sum(p.numel() for p in network.parameters()))
    results.add("predicted parameters", lambda: accountant.stored_parameters(model))
    make_adamw = partial(torch.optim.AdamW, fused=True)
    optimizer = models.WithMaster(network.parameters(), make_adamw, keep_gradients=False)
    ids = torch.randint(model.vocabulary, (batch, sequence + 1), device=device)
    inputs = ids[:, :-1].contiguous()
    targets = ids[:, 1:].flatten()

    def forward() -> Tensor:
        logits = network(inputs)
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets)

    def call() -> None:
        forward().backward()
        optimizer.step()
        optimizer.zero_grad()

    call()
    call()
    results.add("state bytes", lambda: held_bytes(device) - before)
    results.add("forward FLOPs", lambda: measure.flops(forward).total)
    results.add(
        "predicted forward FLOPs",
        lambda: accountant.active_forward_flops(model, batch, sequence),
    )
    parameters = list(network.parameters())
    results.add("kept bytes", lambda: measure.saved_bytes(forward, exclude=parameters))
    results.add("peak bytes", partial(measure.peak_bytes, call, device=device))
    results.add("time", partial(seconds, call, device, STEP_S))
    results.add("energy", partial(joules, call, device))
    results.add("operations", partial(operations, call, device))
    results.add("history", partial(history, call, device))


def decode(device: str, results: Results, model: Model, users: tuple, tokens: int) -> None:
    """Time steps of decoding, written out, beside the roof that the accountant predicts.

    Every matrix of every layer multiplies one token of each user, and attention reads each user's
    cache. On a GPU all of it is one CUDA graph, so that launching takes no time.
    """
    results.add("model", lambda: dataclasses.asdict(model))
    results.add("sizes", lambda: {"users": users, "tokens": tokens})
    dtype = torch.bfloat16
    shapes = accountant.matrices(model)
    layers = []
    for _ in range(model.layers):
        of_layer = {}
        for name, (inputs, outputs) in shapes.items():
            drawn = torch.randn(inputs, outputs, dtype=dtype, device=device)
            of_layer[name] = drawn / inputs**0.5
        layers.append(of_layer)
    output = torch.randn(model.width, model.vocabulary, dtype=dtype, device=device)
    cache_shape = (2, model.layers, max(users), model.kv_heads, tokens, model.head_width)
    results.add("cache bytes", lambda: accountant.cache_bytes(model, tokens, "bf16") * max(users))
    cache = torch.empty(cache_shape, dtype=dtype, device=device)
    for part in cache.flatten(0, 1):
        part.normal_()
    h100 = MACHINES["H100 SXM"]
    for count in users:
        x = torch.randn(count, model.width, dtype=dtype, device=device)
        call = partial(decoding_step, x, layers, output, cache[:, :, :count], model)
        results.add(
            f"{count} users: roof on an H100's data sheet",
            partial(
                accountant.decode_seconds,
                model,
                count,
                tokens,
                "bf16",
                h100.bytes_per_sec,
                h100.peak("bf16"),
            ),
        )
        results.add(f"{count} users: time", lambda call=call: timed_in_a_graph(call, device))
        weights_alone = partial(decoding_step, x, layers, output, None, model)
        results.add(
            f"{count} users, without the cache: time",
            lambda call=weights_alone: timed_in_a_graph(call, device),
        )


def decoding_step(
    x: Tensor, layers: list[Mapping[str, Tensor]], output: Tensor, cache: Tensor | None, m: Model
) -> Tensor:
    """Return the logits of one token of each user: normalisations, matrices, and the cache.

    Heads that share a key go to attention as if they were that many queries, so that the cache is
    read once for all of them. Positions are not rotated, and the new key and value not written.
    """
    for number, matrices in enumerate(layers):
        normed = functional.rms_norm(x, (m.width,))
        queries = normed @ matrices["query"]
        # Computed because their weights are read; the cache is not written.
        normed @ matrices["key"]
        normed @ matrices["value"]
        attended = queries
        if cache is not None:
            sharing = m.heads // m.kv_heads
            split = queries.view(len(x), m.kv_heads, sharing, m.head_width)
            keys = cache[0, number]
            values = cache[1, number]
            attended = functional.scaled_dot_product_attention(split, keys, values)
        x = x + attended.reshape(len(x), -1) @ matrices["out"]
        normed = functional.rms_norm(x, (m.width,))
        gated = functional.silu(normed @ matrices["gate"]) * (normed @ matrices["up"])
        x = x + gated @ matrices["down"]
    return functional.rms_norm(x, (m.width,)) @ output


@torch.no_grad()
def timed_in_a_graph(call: Call, device: str) -> dict[str, Number]:
    if not is_gpu(device):
        return seconds(call, device, at_most_s=0.5)
    call()  # kernels are loaded before the graph is captured
    torch.cuda.synchronize(device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return seconds(graph.replay, device, at_most_s=0.5)


def largest(device: str, results: Results, model: Model, sequence: int) -> None:
    """Try the largest batch that is predicted to fit, one sequence less, and one more.

    Each is tried with the allocator as it is, and with segments that it can expand.
    """
    shape = shape_of(model)
    call = workloads.training_step(shape, "bf16", 1, 16, device=device)
    call()
    state = held_bytes(device)
    del call
    forget_what_was_freed()
    free = measure.free_bytes(device)
    batch = 0
    while state + _peak(shape, batch + 1, sequence) <= free:
        batch += 1
    results.add("sizes", lambda: {"sequence": sequence, "free": free, "state": state})
    results.add("predicted largest batch", lambda: batch)
    for way in ("as it is", "expandable"):
        if way == "expandable":
            expand = partial(torch.cuda.memory._set_allocator_settings, "expandable_segments:True")
            results.add("expandable segments", lambda expand=expand: expand() or "set")
        for tried in range(max(1, batch - 1), batch + 2):
            name = f"{way}: a batch of {tried}"
            results.add(name, partial(_fits, shape, tried, sequence, device))
            forget_what_was_freed()


def _peak(shape: Shape, batch: int, sequence: int) -> int:
    return workloads.predicted_peak_bytes(shape, "bf16", batch, sequence)


def _fits(shape: Shape, batch: int, sequence: int, device: str) -> dict[str, object]:
    """Return whether three steps run, what was predicted beyond the state, and the most held."""
    said = {"predicted": _peak(shape, batch, sequence), "fits": True}
    torch.cuda.reset_peak_memory_stats(device)
    try:
        call = workloads.training_step(shape, "bf16", batch, sequence, device=device)
        for _ in range(3):
            call()
    except torch.OutOfMemoryError as error:
        said |= {"fits": False, "error": str(error)}
    said["held"] = torch.cuda.max_memory_allocated(device)
    said["reserved"] = torch.cuda.max_memory_reserved(device)
    return said


def theirs(device: str, results: Results, model: Model, batch: int, sequence: int) -> None:
    """Measure what the same model keeps and holds as Hugging Face's transformers writes it."""
    import transformers

    results.add("version", lambda: transformers.__version__)
    config = transformers.LlamaConfig(
        num_hidden_layers=model.layers,
        hidden_size=model.width,
        num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads,
        head_dim=model.head_width,
        intermediate_size=model.inner,
        vocab_size=model.vocabulary,
        max_position_embeddings=model.context,
        tie_word_embeddings=model.tied,
        use_cache=False,
        attn_implementation="sdpa",
        dtype="bfloat16",
    )
    with torch.device(device):
        network = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
        ours = models.Transformer(shape_of(model), fused=True, dtype=torch.bfloat16)
    results.add("their parameters", lambda: sum(p.numel() for p in network.parameters()))
    results.add("our parameters", lambda: sum(p.numel() for p in ours.parameters()))
    ids = torch.randint(model.vocabulary, (batch, sequence), device=device)
    ways = {
        "theirs": (network, lambda: network.model(ids).last_hidden_state),
        "ours": (ours, lambda: ours.hidden(ids)),
    }
    for who, (module, hidden) in ways.items():
        parameters = list(module.parameters())
        results.add(f"{who}: kept", partial(measure.saved_bytes, hidden, exclude=parameters))
        results.add(f"{who}: FLOPs", lambda hidden=hidden: measure.flops(hidden).total)

        def back(hidden: Call = hidden, module: nn.Module = module) -> None:
            hidden().sum().backward()
            module.zero_grad()

        results.add(f"{who}: peak", partial(measure.peak_bytes, back, device=device))
        results.add(f"{who}: time", partial(seconds, back, device, STEP_S))
        results.add(f"{who}: operations", partial(operations, back, device))


PARTS = {
    "step": partial(step, model=BILLION, batch=BATCH, sequence=SEQUENCE),
    "mixture": partial(mixture, model=SMALL_MIXTURE, batch=BATCH, sequence=SEQUENCE),
    "decode": partial(decode, model=BILLION, users=USERS, tokens=CACHED_TOKENS),
    "largest": partial(largest, model=BILLION, sequence=SEQUENCE),
    "theirs": partial(theirs, model=BILLION, batch=BATCH, sequence=SEQUENCE),
}


def main(arguments: list[str]) -> int:
    """Measure one part. The status is 1 if something could not be measured."""
    parser = argparse.ArgumentParser(prog="gpu_steps", description="Measure steps on a GPU.")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("folder", type=Path, help="where the JSON file is written")
    asked = parser.parse_args(arguments)
    results = Results(asked.folder / f"{asked.part}.json")
    PARTS[asked.part]("cuda", results)
    return int(bool(missing(results.found)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
