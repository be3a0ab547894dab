"""What a training step is made of, and the step itself, ready to be timed on a device.

`new_recording` times them one after the other. The numbers are random, as in
`subjects/child_processes/products.py`. A workload's large tensors are made only when its `Job`
makes the call.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from course_utils.core import measure, predict
from course_utils.core.say import Number
from course_utils.subjects import models
from course_utils.subjects.machines.recording import Workload

Call = Callable[[], object]
_FP32_BYTES = 4
# A step may fill this share of the free memory. The rest is for the allocator's blocks and the
# libraries' scratch space, which nobody predicts.
_SAFE_SHARE = 0.6
_HEAD_WIDTH = 64
_MOST_SEQUENCES = 4  # the largest batch of attention


@dataclass(frozen=True)
class Scale:
    """How large the products and workloads of a recording are: `GPU` and `CPU` are two scales.

    A CPU core takes seconds for what a GPU does in milliseconds, so its scale is smaller.
    """

    sides: tuple[int, ...]  # of the products: B, D and K take each of these sizes
    numbers: int  # that are copied, or scaled in place
    rows: int  # of the matrix that is normalised, or goes through softmax
    columns: int  # of the same matrix
    heads: int  # of attention
    attended: int  # tokens of a sequence in attention
    batch: int  # of the loss; the most that attention and a training step may have
    sequence: int  # tokens of a sequence in the loss and in a training step
    shape: predict.Shape = predict.MODELS["GPT-2 small"]  # of the model that is trained
    model: str = "GPT-2 small"  # the name of that model
    # Of more products: B, D and K take each of these sizes, but not together with `sides`.
    more_sides: tuple[int, ...] = ()


SIDES = (1, 16, 64, 256, 1024, 4096)
GPU = Scale(
    sides=(*SIDES, 16_384),
    numbers=2**28,
    rows=16_384,
    columns=4096,
    heads=16,
    attended=4096,
    batch=16,
    sequence=1024,
    # The sizes of OpenXLA's and AMD's tables, so that a recording can be held against theirs.
    more_sides=(256, 512, 1024, 2048, 4096),
)
CPU = Scale(
    sides=SIDES,
    numbers=2**25,
    rows=4096,
    columns=1024,
    heads=12,
    attended=1024,
    batch=1,
    sequence=1024,
)


@dataclass(frozen=True)
class Job:
    """A workload that is not timed yet, the function that makes its call, and its memory."""

    workload: Workload  # its time is NaN until it is timed
    make: Callable[[], Call]  # makes the tensors, and returns the call that is to be timed
    needs_bytes: int  # if fewer are free, the workload is left out


def jobs(device: str, dtype: str, scale: Scale) -> list[Job]:
    """Return a job for every workload, the small ones first.

    They are timed in this order, so a slow machine leaves out the large ones. Normalisations,
    attention and the training step are done in `dtype`.
    """
    return [
        *_copies(device, scale),
        *_normalisations(device, dtype, scale),
        _loss(device, scale),
        *_attention(device, dtype, scale),
        _optimizer(device, scale, "foreach"),
        _optimizer(device, scale, "fused"),
        _training_step(device, dtype, scale, recompute=False),
        _training_step(device, dtype, scale, recompute=True),
    ]


def _job(
    name: str,
    sizes: Mapping[str, int],
    dtype: str,
    make: Callable[[], Call],
    needs_bytes: int,
    **counts: int,
) -> Job:
    """Return the job of a workload that is still to be timed.

    `counts` are the other fields of its `Workload`, such as flops, bytes and tokens. `needs_bytes`
    is generous: besides the tensors, it leaves room for what torch allocates itself.
    """
    not_timed_yet = {"seconds": math.nan, "spread": math.nan}
    workload = Workload(name, sizes, dtype, **not_timed_yet, **counts)
    return Job(workload, make, needs_bytes)


def _call(
    operation: Callable[..., Tensor],
    shapes: list[tuple[int, ...]],
    backward: bool = False,
    **tensor_options: object,
) -> Call:
    """Make random operands, and return a call of the operation on them.

    A job's `make` is a partial of this function, so the operands are made only when `make` is
    called. `tensor_options` are their device and dtype. With `backward`, the call computes the
    operands' gradients, too. The operation's result has the shape of the first operand.
    """
    operands = [torch.randn(shape, requires_grad=backward, **tensor_options) for shape in shapes]
    if not backward:
        return partial(operation, *operands)
    gradient = torch.randn_like(operands[0])  # that of the result
    return lambda: torch.autograd.grad(operation(*operands), operands, gradient)


def _copies(device: str, scale: Scale) -> Iterator[Job]:
    """Yield the jobs that do little but move numbers."""
    # Called with an operation and shapes, it makes the operands, and returns the call to be timed.
    call = partial(_call, device=device, dtype=torch.float32)
    shape = (scale.numbers,)
    sizes = {"numbers": scale.numbers}
    moved = 2 * _FP32_BYTES * scale.numbers  # read and written
    copy = partial(call, Tensor.copy_, [shape, shape])
    yield _job("copy", sizes, "fp32", copy, needs_bytes=moved, bytes=moved)
    # Multiplying by 1 reads and writes every number, and leaves it as it is.
    in_place = partial(call, partial(Tensor.mul_, other=1.0), [shape])
    yield _job("scale in place", sizes, "fp32", in_place, needs_bytes=moved, bytes=moved)


def _normalisations(device: str, dtype: str, scale: Scale) -> Iterator[Job]:
    """Yield the jobs of LayerNorm, forward and with its backward pass, and of softmax."""
    call = partial(_call, device=device, dtype=measure.DTYPES[dtype])
    matrix = (scale.rows, scale.columns)
    vector = (scale.columns,)
    sizes = {"rows": scale.rows, "columns": scale.columns}
    nbytes = predict.tensor_bytes(matrix, dtype)  # of the matrix; the vectors are small

    def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional.layer_norm(x, vector, weight, bias)

    # In each of the three jobs, `needs_bytes` is one `nbytes` more than the tensors take.
    name = "LayerNorm, forward"
    normalise = partial(call, layer_norm, [matrix, vector, vector])
    yield _job(name, sizes, dtype, normalise, needs_bytes=3 * nbytes, bytes=2 * nbytes)
    # Forward reads x and writes y; backward reads x and y's gradient, and writes x's gradient.
    both = partial(normalise, backward=True)
    yield _job(f"{name} + backward", sizes, dtype, both, needs_bytes=5 * nbytes, bytes=5 * nbytes)
    softmax = partial(call, partial(torch.softmax, dim=-1), [matrix])
    yield _job("softmax", sizes, dtype, softmax, needs_bytes=3 * nbytes, bytes=2 * nbytes)


def _loss(device: str, scale: Scale) -> Job:
    """Return the job of cross-entropy, in fp32."""
    tokens = scale.batch * scale.sequence
    vocabulary = scale.shape.vocabulary
    logits = (tokens, vocabulary)
    sizes = {"tokens": tokens, "vocabulary": vocabulary}
    targets = torch.randint(vocabulary, (tokens,), device=device)
    cross_entropy = partial(functional.cross_entropy, target=targets)
    make = partial(_call, cross_entropy, [logits], device=device, dtype=torch.float32)
    # A kernel need only read the logits. torch also writes every logarithm, so the tensors take
    # twice as much.
    nbytes = predict.tensor_bytes(logits, "fp32")
    return _job("cross-entropy", sizes, "fp32", make, needs_bytes=3 * nbytes, bytes=nbytes)


def _attention(device: str, dtype: str, scale: Scale) -> Iterator[Job]:
    """Yield the jobs of fused attention, forward and with its backward pass."""
    batch = min(scale.batch, _MOST_SEQUENCES)
    heads = scale.heads
    sequence = scale.attended
    shape = (batch, heads, sequence, _HEAD_WIDTH)
    sizes = {"batch": batch, "heads": heads, "sequence": sequence, "width of a head": _HEAD_WIDTH}
    nbytes = predict.tensor_bytes(shape, dtype)
    # The forward pass has two products: queries × keys, and scores × values.
    product_flops = 2 * batch * heads * sequence * sequence * _HEAD_WIDTH
    name = "fused attention, forward"
    forward = partial(
        _call,
        functional.scaled_dot_product_attention,
        [shape, shape, shape],
        device=device,
        dtype=measure.DTYPES[dtype],
    )
    yield _job(
        name,
        sizes,
        dtype,
        forward,
        needs_bytes=6 * nbytes,  # two of them to spare
        flops=2 * product_flops,
        bytes=4 * nbytes,  # queries, keys, values and the result
    )
    # The backward pass has five products, because the scores are computed anew. It reads queries,
    # keys, values, the result and its gradient, and writes three gradients.
    yield _job(
        f"{name} + backward",
        sizes,
        dtype,
        partial(forward, backward=True),
        needs_bytes=16 * nbytes,  # eight of them to spare
        flops=(2 + 5) * product_flops,
        bytes=(4 + 5 + 3) * nbytes,
    )


def _optimizer(device: str, scale: Scale, way: str) -> Job:
    """Return the job of one step of AdamW on a model's parameters in fp32.

    The step reads parameters, gradients and both averages, and writes all but the gradients. `way`
    is the option of torch's AdamW that is set: "foreach" or "fused".
    """

    def make() -> Call:
        """Make the parameters with random gradients, and return the optimizer's step."""
        parameters = list(models.Transformer(scale.shape).to(device).parameters())
        for p in parameters:
            p.grad = torch.randn_like(p)
        return torch.optim.AdamW(parameters, **{way: True}).step

    numbers = scale.shape.parameters
    nbytes = _FP32_BYTES * numbers  # of the parameters, and as many of each other part
    sizes = {"parameters": numbers}
    # Parameters, gradients and both averages need 4 * nbytes; the rest is to spare, see `_job`.
    needs_bytes = 6 * nbytes
    return _job(f"AdamW, {way}", sizes, "fp32", make, needs_bytes, bytes=7 * nbytes)


# A training step.


def predicted_peak_bytes(
    shape: predict.Shape, dtype: str, batch: int, sequence: int, *, recompute: bool = False
) -> int:
    """Return the most bytes that a step holds beyond parameters, averages and data.

    These are held between the calls of `training_step` already, and so is a master copy. Gradients
    are not, since each call frees its own, so they count here. The most is held either before the
    optimizer's update or in it. In the update, all gradients and the loss are held; if it updates a
    master copy, the gradients are held in fp32, too.

    >>> predicted_peak_bytes(predict.MODELS["GPT-2 small"], "bf16", 1, 1024) / 1e9
    0.923385864
    """
    recipe = "fp32 adamw" if dtype == "fp32" else "bf16 adamw"
    step = predict.timeline(shape, batch, sequence, recipe=recipe, recompute=recompute)
    # What is held before the step is subtracted. These recipes have no master copy: what its update
    # holds is counted below.
    before_update = step.peak - step.state["parameters"] - step.state["optimizer"]
    gradient_bytes = predict.dtype_bytes(dtype)
    if dtype != "fp32":
        gradient_bytes += _FP32_BYTES  # those of the master copy are in fp32
    in_update = gradient_bytes * shape.parameters + _FP32_BYTES  # the loss is one number
    return max(before_update, in_update)


def training_step(
    shape: predict.Shape,
    dtype: str,
    batch: int,
    sequence: int,
    *,
    recompute: bool = False,
    device: str = "cpu",
) -> Call:
    """Return a call that takes a training step: forward, cross-entropy, backward and fused AdamW.

    Cross-entropy is in fp32. In 16 bits AdamW updates a master copy of the parameters, otherwise
    the parameters themselves.
    """
    # A model with learned positions needs one for each token of the sequence.
    with_long_context = replace(shape, context=max(shape.context, sequence))
    options = {"fused": True, "recompute": recompute, "dtype": measure.DTYPES[dtype]}
    with torch.device(device):  # its numbers are drawn there: a CPU takes long for a billion
        model = models.Transformer(with_long_context, **options)
    adamw = partial(torch.optim.AdamW, fused=True)
    if dtype != "fp32":
        adamw = partial(models.WithMaster, make_optimizer=adamw, keep_gradients=False)
    optimizer = adamw(model.parameters())
    # Each token's target is the token after it, so there is one more.
    ids = torch.randint(shape.vocabulary, (batch, sequence + 1), device=device)
    inputs = ids[:, :-1].contiguous()
    targets = ids[:, 1:].flatten()

    def step() -> None:
        """Go forward and backward, update the parameters, and free the gradients."""
        logits = model(inputs)
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), targets)
        del logits  # else this name would hold their memory during the backward pass
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _training_step(device: str, dtype: str, scale: Scale, *, recompute: bool) -> Job:
    """Return the job of a training step, in which each layer is recomputed if `recompute` is True.

    The batch is the same in both cases, so that the two jobs can be compared.
    """
    shape = scale.shape
    sequence = scale.sequence
    # Bytes of each parameter: the parameter itself, perhaps its master copy, and AdamW's averages.
    # The gradients are counted in the peak.
    bytes_each = 12 if dtype == "fp32" else 14  # 4 + 8, or 2 + 4 + 8
    state = bytes_each * shape.parameters
    free_for_a_step = _SAFE_SHARE * measure.free_bytes(device) - state
    batch = _largest_batch(dtype, scale, free_for_a_step)
    peak = predicted_peak_bytes(shape, dtype, batch, sequence, recompute=recompute)
    name = f"{scale.model}, a training step"
    if recompute:
        name += ", each layer recomputed"
    # The FLOPs are those that the model needs, so that their share of the peak is the MFU.
    flops = shape.training_flops(batch, sequence).total
    make = partial(training_step, shape, dtype, batch, sequence, recompute=recompute, device=device)
    return _job(
        name,
        {"batch": batch, "sequence": sequence},
        dtype,
        make,
        needs_bytes=state + peak,
        flops=flops,
        tokens=batch * sequence,
        predicted_peak_bytes=peak,
    )


def _largest_batch(dtype: str, scale: Scale, free_bytes: Number) -> int:
    """Return the scale's batch, halved until a step that recomputes nothing fits; at least 1."""
    batch = scale.batch
    while batch > 1:
        if predicted_peak_bytes(scale.shape, dtype, batch, scale.sequence) <= free_bytes:
            break
        batch //= 2
    return batch
