"""What a training step is made of, and the step itself, ready to be timed on a device.

The numbers are random, as in `subjects/child_processes/products.py`, and each workload's tensors are made when it is asked for.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from course_utils.core import measure, predict
from course_utils.subjects import models
from course_utils.subjects.machines.recording import Workload

Call = Callable[[], object]
_FP32_BYTES = 4
_SAFE_SHARE = (
    0.6  # of the free memory: an allocator's blocks and a library's scratch space are not predicted
)
_HEAD = 64  # the width of attention's heads


@dataclass(frozen=True)
class Scale:
    """How large products and workloads are. A CPU core takes seconds for what a GPU does in milliseconds."""

    sides: tuple[int, ...]  # of the products
    numbers: int  # that are copied
    rows: int  # of a normalisation and a softmax
    columns: int
    heads: int  # of attention
    attended: int  # the sequence of attention
    batch: int  # of attention and, at most, of a training step
    sequence: int
    shape: predict.Shape = predict.MODELS["GPT-2 small"]
    model: str = "GPT-2 small"


SIDES = 1, 16, 64, 256, 1024, 4096
GPU = Scale((*SIDES, 16_384), 2**28, 16_384, 4096, heads=16, attended=4096, batch=16, sequence=1024)
CPU = Scale(SIDES, 2**25, 4096, 1024, heads=12, attended=1024, batch=1, sequence=1024)


@dataclass(frozen=True)
class Job:
    """A workload that is not timed yet (its seconds are NaN), how to make its call, and the memory it needs."""

    workload: Workload
    make: Callable[[], Call]
    needs_bytes: int


def jobs(device: str, dtype: str, scale: Scale) -> list[Job]:
    """Every workload, the small ones first; `dtype` is what products, attention and normalisations are done in."""
    return [
        *_operations(device, dtype, scale),
        *(_optimizer(device, scale, way) for way in ("foreach", "fused")),
        *(_training_step(device, dtype, scale, recompute) for recompute in (False, True)),
    ]


def _job(
    name: str,
    sizes: Mapping[str, int],
    dtype: str,
    make: Callable[[], Call],
    needs: int,
    **counts: int,
) -> Job:
    return Job(Workload(name, sizes, dtype, math.nan, math.nan, **counts), make, needs)


def _call(
    operation: Callable[..., Tensor],
    shapes: list[tuple[int, ...]],
    backward: bool = False,
    **kind: object,
) -> Call:
    """A call of the operation on random operands, or with their gradients. Its result has the shape of the first operand."""
    operands = [torch.randn(shape, requires_grad=backward, **kind) for shape in shapes]
    if not backward:
        return partial(operation, *operands)
    gradient = torch.randn_like(operands[0])
    return lambda: torch.autograd.grad(operation(*operands), operands, gradient)


def _operations(device: str, dtype: str, scale: Scale) -> Iterator[Job]:
    """Copies, what is around the products, and attention."""
    in_fp32 = partial(_call, device=device, dtype=torch.float32)
    call = partial(_call, device=device, dtype=measure.DTYPES[dtype])

    n, sizes, moved = scale.numbers, {"numbers": scale.numbers}, 2 * _FP32_BYTES * scale.numbers
    yield _job(
        "copy", sizes, "fp32", partial(in_fp32, Tensor.copy_, [(n,)] * 2), moved, bytes=moved
    )
    in_place = partial(in_fp32, partial(Tensor.mul_, other=1.0), [(n,)])
    yield _job("scale in place", sizes, "fp32", in_place, moved, bytes=moved)

    def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional.layer_norm(x, (columns,), weight, bias)

    rows, columns = matrix = scale.rows, scale.columns
    sizes, one = {"rows": rows, "columns": columns}, predict.tensor_bytes(matrix, dtype)
    name, normalise = (
        "LayerNorm, forward",
        partial(call, layer_norm, [matrix, (columns,), (columns,)]),
    )
    yield _job(name, sizes, dtype, normalise, 3 * one, bytes=2 * one)
    both = partial(normalise, backward=True)  # forward x to y; backward x and y's gradient to x's
    yield _job(f"{name} + backward", sizes, dtype, both, 5 * one, bytes=5 * one)
    weigh = partial(call, partial(torch.softmax, dim=-1), [matrix])
    yield _job("softmax", sizes, dtype, weigh, 3 * one, bytes=2 * one)

    tokens, vocabulary = logits = scale.batch * scale.sequence, scale.shape.vocabulary
    sizes, one = {"tokens": tokens, "vocabulary": vocabulary}, predict.tensor_bytes(logits, "fp32")
    loss = partial(
        functional.cross_entropy, target=torch.randint(vocabulary, (tokens,), device=device)
    )
    # A kernel need only read; torch also writes every logarithm.
    yield _job("cross-entropy", sizes, "fp32", partial(in_fp32, loss, [logits]), 3 * one, bytes=one)

    head = batch, heads, s, width = min(scale.batch, 4), scale.heads, scale.attended, _HEAD
    sizes = {"batch": batch, "heads": heads, "sequence": s, "width of a head": width}
    one, product = predict.tensor_bytes(head, dtype), 2 * batch * heads * s * s * width
    name, attention = "fused attention, forward", functional.scaled_dot_product_attention
    attend = partial(call, attention, [head] * 3)
    yield _job(name, sizes, dtype, attend, 6 * one, flops=2 * product, bytes=4 * one)
    # Backward are five products, for the scores are computed anew; it reads q, k, v, the result and its gradient.
    counts = {"flops": (2 + 5) * product, "bytes": (4 + 5 + 3) * one}
    yield _job(
        f"{name} + backward", sizes, dtype, partial(attend, backward=True), 16 * one, **counts
    )


def _optimizer(device: str, scale: Scale, way: str) -> Job:
    """One step of AdamW on a model's parameters in fp32: it reads p, g, m and v, and writes p, m and v."""

    def make() -> Call:
        parameters = list(models.Transformer(scale.shape).to(device).parameters())
        for p in parameters:
            p.grad = torch.randn_like(p)
        return torch.optim.AdamW(parameters, **{way: True}).step

    one, sizes = _FP32_BYTES * scale.shape.parameters, {"parameters": scale.shape.parameters}
    return _job(f"AdamW, {way}", sizes, "fp32", make, 6 * one, bytes=7 * one)


# A training step.


def predicted_peak_bytes(
    shape: predict.Shape, dtype: str, batch: int, sequence: int, *, recompute: bool = False
) -> int:
    """The most that a step holds beyond parameters, averages and data.

    Here gradients are freed between steps. In the optimizer's step there are all, and for a master copy once more in
    fp32; the loss itself stays.

    >>> predicted_peak_bytes(predict.MODELS["GPT-2 small"], "bf16", 1, 1024) / 1e9
    0.923385864
    """
    recipe = "fp32 adamw" if dtype == "fp32" else "bf16 adamw"
    step = predict.timeline(shape, batch, sequence, recipe=recipe, recompute=recompute)
    before = step.peak - step.state["parameters"] - step.state["optimizer"]
    each = predict.dtype_bytes(dtype) + (0 if dtype == "fp32" else _FP32_BYTES)
    return max(before, each * shape.parameters + _FP32_BYTES)


def training_step(
    shape: predict.Shape,
    dtype: str,
    batch: int,
    sequence: int,
    *,
    recompute: bool = False,
    device: str = "cpu",
) -> Call:
    """Forward, cross-entropy in fp32, backward, and fused AdamW: on the parameters, or in 16 bits on a master copy of them."""
    longer = replace(shape, context=max(shape.context, sequence))
    kind = {"fused": True, "recompute": recompute, "dtype": measure.DTYPES[dtype]}
    model = models.Transformer(longer, **kind).to(device)
    adamw = partial(torch.optim.AdamW, fused=True)
    if dtype != "fp32":
        adamw = partial(models.WithMaster, make_optimizer=adamw, keep_gradients=False)
    optimizer = adamw(model.parameters())
    ids = torch.randint(shape.vocabulary, (batch, sequence + 1), device=device)
    read, targets = ids[:, :-1].contiguous(), ids[:, 1:].flatten()

    def step() -> None:
        logits = model(read)  # nobody else may hold them when the backward pass begins
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), targets)
        del logits
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _training_step(device: str, dtype: str, scale: Scale, recompute: bool) -> Job:
    """The batch is the largest power of two, up to the scale's, that fits; both steps have the same."""
    shape, s = scale.shape, scale.sequence
    state = (14 if dtype != "fp32" else 12) * shape.parameters  # gradients are among the peak
    free = _SAFE_SHARE * measure.free_bytes(device) - state
    batch = scale.batch
    while batch > 1 and predicted_peak_bytes(shape, dtype, batch, s) > free:
        batch //= 2
    peak = predicted_peak_bytes(shape, dtype, batch, s, recompute=recompute)
    return _job(
        f"{scale.model}, a training step{', each layer recomputed' if recompute else ''}",
        {"batch": batch, "sequence": s},
        dtype,
        partial(training_step, shape, dtype, batch, s, recompute=recompute, device=device),
        state + peak,
        flops=shape.training_flops(
            batch, s
        ).total,  # what the model needs, so that its share is the MFU
        tokens=batch * s,
        predicted_peak_bytes=peak,
    )
