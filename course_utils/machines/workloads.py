"""What a training step is made of, and the step itself, ready to be timed on a device.

The numbers are random, as in `products`, and each workload's tensors are made when it is asked for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from course_utils import measure, models, predict
from course_utils.quantities import Number

Call = Callable[[], object]
_FP32_BYTES = 4
_SAFE_SHARE = 0.6  # of the free memory: an allocator's blocks and a library's scratch space are not predicted


@dataclass(frozen=True)
class Scale:
    """How large the workloads are: a CPU's core takes seconds for what a GPU does in milliseconds."""

    numbers: int  # that are copied
    rows: int  # of a normalisation and a softmax
    columns: int
    heads: int  # of attention, each 64 wide
    attended: int  # the sequence of attention
    batch: int  # of attention and, at most, of a training step
    sequence: int
    shape: predict.Transformer = predict.MODELS["GPT-2 small"]
    model: str = "GPT-2 small"


GPU = Scale(2**28, 16_384, 4096, heads=16, attended=4096, batch=16, sequence=1024)
CPU = Scale(2**25, 4096, 1024, heads=12, attended=1024, batch=1, sequence=1024)


@dataclass(frozen=True)
class Job:
    """A workload before it is timed: what it has to do, what it needs, and how to make the call."""

    name: str
    sizes: Mapping[str, int]
    dtype: str
    make: Callable[[], Call]
    flops: int = 0
    bytes: int = 0
    needs_bytes: int = 0
    tokens: int = 0
    predicted_peak_bytes: int = 0


def jobs(device: str, dtype: str, scale: Scale) -> list[Job]:
    """Every workload, the small ones first; `dtype` is what products, attention and normalisations are done in."""
    return [
        _copy(device, scale),
        _scale_in_place(device, scale),
        *_normalisation(device, dtype, scale),
        _softmax(device, dtype, scale),
        _cross_entropy(device, scale),
        *_attention(device, dtype, scale),
        *(_optimizer(device, scale, way) for way in ("foreach", "fused")),
        *(_training_step(device, dtype, scale, recompute) for recompute in (False, True)),
    ]


def _dtype(name: str) -> torch.dtype:
    return measure.DTYPES[name]


def _copy(device: str, scale: Scale) -> Job:
    def make() -> Call:
        source = torch.ones(scale.numbers, device=device)
        target = source.clone()
        return lambda: target.copy_(source)

    moved = 2 * _FP32_BYTES * scale.numbers
    return Job("copy", {"numbers": scale.numbers}, "fp32", make, bytes=moved, needs_bytes=moved)


def _scale_in_place(device: str, scale: Scale) -> Job:
    def make() -> Call:
        x = torch.ones(scale.numbers, device=device)
        return lambda: x.mul_(1.0)

    one = _FP32_BYTES * scale.numbers
    return Job("scale in place", {"numbers": scale.numbers}, "fp32", make, bytes=2 * one, needs_bytes=one)


def _normalisation(device: str, dtype: str, scale: Scale) -> list[Job]:
    one = predict.tensor_bytes((scale.rows, scale.columns), dtype)

    def make(backward: bool) -> Call:
        kind = {"device": device, "dtype": _dtype(dtype), "requires_grad": backward}
        x = torch.randn(scale.rows, scale.columns, **kind)
        weight, bias = torch.ones(scale.columns, **kind), torch.zeros(scale.columns, **kind)

        def forward() -> Tensor:
            return functional.layer_norm(x, (scale.columns,), weight, bias)

        if not backward:
            return forward
        gradient = torch.randn_like(x)
        return lambda: torch.autograd.grad(forward(), (x, weight, bias), gradient)

    sizes = {"rows": scale.rows, "columns": scale.columns}
    return [
        Job("LayerNorm, forward", sizes, dtype, partial(make, False), bytes=2 * one, needs_bytes=3 * one),
        # Forward x to y; backward x and y's gradient to x's.
        Job(
            "LayerNorm, forward + backward",
            sizes,
            dtype,
            partial(make, True),
            bytes=5 * one,
            needs_bytes=5 * one,
        ),
    ]


def _softmax(device: str, dtype: str, scale: Scale) -> Job:
    def make() -> Call:
        x = torch.randn(scale.rows, scale.columns, device=device, dtype=_dtype(dtype))
        return lambda: torch.softmax(x, -1)

    one = predict.tensor_bytes((scale.rows, scale.columns), dtype)
    sizes = {"rows": scale.rows, "columns": scale.columns}
    return Job("softmax", sizes, dtype, make, bytes=2 * one, needs_bytes=3 * one)


def _cross_entropy(device: str, scale: Scale) -> Job:
    rows, columns = scale.batch * scale.sequence, scale.shape.vocabulary

    def make() -> Call:
        logits = torch.randn(rows, columns, device=device)
        targets = torch.randint(columns, (rows,), device=device)
        return lambda: functional.cross_entropy(logits, targets)

    one = predict.tensor_bytes((rows, columns), "fp32")
    # A kernel need only read; torch also writes every logarithm.
    return Job(
        "cross-entropy", {"tokens": rows, "vocabulary": columns}, "fp32", make, bytes=one, needs_bytes=3 * one
    )


def _attention(device: str, dtype: str, scale: Scale) -> list[Job]:
    batch, heads, s, width = min(scale.batch, 4), scale.heads, scale.attended, 64
    one = predict.tensor_bytes((batch, heads, s, width), dtype)
    product = 2 * batch * heads * s * s * width

    def make(backward: bool) -> Call:
        def drawn() -> Tensor:
            return torch.randn(
                batch, heads, s, width, device=device, dtype=_dtype(dtype), requires_grad=backward
            )

        q, k, v = drawn(), drawn(), drawn()
        if not backward:
            return lambda: functional.scaled_dot_product_attention(q, k, v)
        gradient = torch.randn_like(q)
        return lambda: torch.autograd.grad(
            functional.scaled_dot_product_attention(q, k, v), (q, k, v), gradient
        )

    sizes = {"batch": batch, "heads": heads, "sequence": s, "width of a head": width}
    forward = Job(
        "fused attention, forward",
        sizes,
        dtype,
        partial(make, False),
        flops=2 * product,
        bytes=4 * one,
        needs_bytes=6 * one,
    )
    # Backward are five products, for the scores are computed anew; it reads q, k, v, the result and its gradient.
    return [
        forward,
        replace(
            forward,
            name="fused attention, forward + backward",
            make=partial(make, True),
            flops=7 * product,
            bytes=(4 + 5 + 3) * one,
            needs_bytes=16 * one,
        ),
    ]


def _optimizer(device: str, scale: Scale, way: str) -> Job:
    """One step of AdamW on a model's parameters in fp32: it reads p, g, m and v, and writes p, m and v."""
    model = partial(models.Transformer, **vars(scale.shape))

    def make() -> Call:
        parameters = list(model().to(device).parameters())
        for p in parameters:
            p.grad = torch.randn_like(p)
        return torch.optim.AdamW(parameters, **{way: True}).step

    one = _FP32_BYTES * scale.shape.parameters
    sizes = {"parameters": scale.shape.parameters}
    return Job(f"AdamW, {way}", sizes, "fp32", make, bytes=7 * one, needs_bytes=6 * one)


# A training step.


def step_peak_bytes(
    shape: predict.Transformer, dtype: str, batch: int, sequence: int, *, recompute: bool = False
) -> int:
    """The most that a step holds beyond parameters, averages and data, at one of three moments.

    Here gradients are freed between steps. So at the loss there are none yet, and it is `predict.step_moments`'.
    At the backward pass's end there are all, and of a matrix that is input and output those of both beside their
    sum. In the optimizer's step there are all, and for a master copy once more in fp32. The loss itself stays.
    Where a vocabulary is far smaller than GPT-2's, a moment between these may be the largest.

    >>> step_peak_bytes(predict.MODELS["GPT-2 small"], "bf16", 1, 1024) / 1e9
    0.923385864
    """
    ways = {"dtype": dtype, "fused": True, "recompute": recompute}
    at_the_loss = predict.step_moments(shape, batch, sequence, **ways)["loss"].total
    each, master = predict.dtype_bytes(dtype), 0 if dtype == "fp32" else _FP32_BYTES
    twice = shape.parameters_by_part["token embedding"] if shape.tied_output else 0
    all_gradients = max(each * (shape.parameters + 2 * twice), (each + master) * shape.parameters)
    return max(at_the_loss, all_gradients + _FP32_BYTES)


def training_step(
    shape: predict.Transformer,
    dtype: str,
    batch: int,
    sequence: int,
    *,
    recompute: bool = False,
    device: str = "cpu",
) -> Call:
    """Forward, cross-entropy in fp32, backward, and fused AdamW: on the parameters, or in 16 bits on a master copy of them."""
    sizes = vars(shape) | {"context": max(shape.context, sequence)}
    model = models.Transformer(**sizes, fused=True, recompute=recompute, dtype=_dtype(dtype)).to(device)
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

    def needs(batch: int) -> Number:
        return state + step_peak_bytes(shape, dtype, batch, s)

    room, batch = _SAFE_SHARE * measure.free_bytes(device), scale.batch
    while batch > 1 and needs(batch) > room:
        batch //= 2
    again = ", each layer recomputed" if recompute else ""
    peak = step_peak_bytes(shape, dtype, batch, s, recompute=recompute)
    return Job(
        f"{scale.model}, a training step{again}",
        {"batch": batch, "sequence": s},
        dtype,
        partial(training_step, shape, dtype, batch, s, recompute=recompute, device=device),
        flops=shape.training_flops(batch, s).total,  # what the model needs, so that its share is the MFU
        needs_bytes=state + peak,
        tokens=batch * s,
        predicted_peak_bytes=peak,
    )
