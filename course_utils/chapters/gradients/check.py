"""The exercises of notebook 05.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from einops import einsum
from torch import Tensor, nn

from course_utils.chapters.gradients.attention_check import (  # noqa: F401  exercises, too
    latent_cache_bytes,
    window_pairs,
)
from course_utils.chapters.gradients.beyond_check import (  # noqa: F401  exercises, too
    even_length,
    part_shares,
    row_norms,
    two_layers_backward,
)
from course_utils.chapters.gradients.drawn import drawn
from course_utils.chapters.gradients.frozen_check import (  # noqa: F401  exercises, too
    frozen_bytes,
    frozen_flops,
    largest_rank,
)
from course_utils.chapters.gradients.kept_check import layer_bytes  # noqa: F401  an exercise, too
from course_utils.chapters.gradients.parts import of_step_flops
from course_utils.core import measure, predict
from course_utils.core.say import Number, count_text, number_text
from course_utils.engine.judging import Answers, NotYetError, call, function, objection, outcome
from course_utils.engine.judging.agreement import agree
from course_utils.engine.judging.errors import stopped
from course_utils.engine.judging.sentences import name_of

# Shapes of x, of w, and of g, the gradient of x w. In the first case all are square, so that no
# shape tells a wrong index.
ONE_LAYER = [
    ((3, 3), (3, 3), (3, 3)),
    ((5, 4), (4, 2), (5, 2)),
    ((1, 2), (2, 6), (1, 6)),
]


@function(lambda: drawn(ONE_LAYER, seed=4), tolerance=1e-5, gives=("w.grad", "x.grad"))
def layer_backward(x: Tensor, w: Tensor, g: Tensor) -> Answers:
    """The check of a reader's layer_backward(x, w, g): (gradient of w, gradient of x) of x w."""
    of_w = einsum(x, g, "i j, i k -> j k")
    of_x = einsum(w, g, "j k, i k -> i j")
    yield (
        (of_w, of_x),
        "w.grad = xᵀ g is a sum over the rows, x.grad = g wᵀ a sum over the layer's outputs.",
    )
    yield (of_x, of_w), "The gradient of w comes first."
    yield (of_w / len(x), of_x), "The gradient of w is a sum over the rows, not a mean."
    # Where the shapes do not fit, the outcome is an error, and so is the reader's.
    neither_transposed = outcome(lambda: (x @ g, g @ w))
    yield (
        neither_transposed,
        "Check which index is summed: in w.grad the rows i, in x.grad the outputs k.",
    )
    w_not_transposed = outcome(lambda: (of_w, g @ w))
    yield (
        w_not_transposed,
        "x.grad[i, j] sums w[j, k] · g[i, k] over k: it is g times w transposed.",
    )
    rows_of_w = outcome(lambda: (of_w, einsum(w, g, "i j, i k -> i j")))
    yield (
        rows_of_w,
        "i counts the rows of the data, and w has none: "
        "x.grad[i, j] sums w[j, k] · g[i, k] over k.",
    )
    of_w_transposed = einsum(g, x, "i k, i j -> k j")
    yield (of_w_transposed, of_x), "w.grad has the shape of w: transpose it."
    yield from _of_one_product(x, w, g)
    yield (None, None), "Nothing has gone backward here. Compute both gradients from x, w and g."
    yield of_w, "Two gradients are wanted: of w and of x."
    yield (
        (of_w.T, of_x.T),
        "Both are transposed: a gradient has the same shape as its matrix.",
    )


def _of_one_product(x: Tensor, w: Tensor, g: Tensor) -> Answers:
    """Yield pairs of gradients of which one is a product of the wrong matrices, or no product."""
    of_w = x.T @ g
    of_x = g @ w.T
    sums_in_w_grad = "Check which index is summed: in w.grad it is i, so x has to be transposed."
    # Where the shapes do not fit, the outcome is an error, and so is the reader's.
    yield outcome(lambda: (x @ g, of_x)), sums_in_w_grad
    yield outcome(lambda: (x @ g.T, of_x)), sums_in_w_grad
    yield outcome(lambda: (g @ x.T, of_x)), sums_in_w_grad
    order_in_x_grad = (
        "Row i of x.grad is made of row i of g. So g comes first, and then w, transposed."
    )
    yield outcome(lambda: (of_w, w @ g)), order_in_x_grad
    yield outcome(lambda: (of_w, w.T @ g)), order_in_x_grad
    yield (of_w, w @ g.T), order_in_x_grad
    for number_by_number in (
        lambda: (x * g, w * g),
        lambda: (x.T * g, g * w.T),
        lambda: (x.T * g, of_x),
        lambda: (of_w, g * w.T),
    ):
        yield (
            outcome(number_by_number),
            "With * matrices are multiplied element by element. A matrix product is written with "
            "@.",
        )


# Rows of a batch, and the widths of the layers.
STEPS = [
    (16, [9, 5, 4, 3]),  # sizes with which no mistake looks like another one
    (4, [3, 5]),
    (64, [512, 2048, 2048, 10]),
]


@function(STEPS, parts=of_step_flops, unit="FLOPs")
def step_flops(batch: int, widths: Sequence[int]) -> Answers:
    """The check of a reader's step_flops(batch, widths): forward and backward, on plain data."""
    right = predict.mlp_flops(batch, widths).total
    yield right, "Three products in each layer, without the first layer's gradient of the data."
    layers = [2 * batch * d * k for d, k in pairwise(widths)]
    forward = sum(layers)
    yield (
        3 * forward,
        "That is the rule of 6. The first layer reads plain data, and skips a product.",
    )
    yield right - forward, "That is the backward pass; the forward pass belongs to a step, too."
    yield forward, "That is the forward pass alone."
    yield from _of_first_layer(batch, widths, right)
    yield 3 * forward - layers[-1], "It is the first layer that skips a product, not the last."
    yield (
        3 * sum(layers[1:]),
        "The first layer still runs forward, and its weights want their gradient.",
    )
    yield right // 2, "Each multiplication comes with an addition: 2 FLOPs."
    yield right // batch, "That is for one row; there are `batch` of them."
    any_number = "There may be any number of layers: go through all pairs of neighbours in widths."
    yield right - 3 * sum(layers[2:]), any_number  # two layers
    yield 2 * layers[0], any_number  # one
    of_neighbours = "A layer has D · K weights: multiply each width by the next, and add these up."
    yield 6 * batch * sum(widths), of_neighbours
    yield 6 * batch * math.prod(widths), of_neighbours


def _of_first_layer(batch: int, widths: Sequence[int], right: int) -> Answers:
    """Yield wrong counts of a step's FLOPs, by mistakes with the product that is skipped."""
    layers = [2 * batch * d * k for d, k in pairwise(widths)]
    forward = sum(layers)
    yield (
        right - layers[0],
        "Of the first layer only the gradient of its input is left out, not that of its weights.",
    )
    weights_of_first = widths[0] * widths[1]
    for skipped in (
        weights_of_first,
        2 * weights_of_first,
        batch * weights_of_first,
        widths[0],
        2 * batch * widths[0],
    ):
        yield (
            3 * forward - skipped,
            "The skipped product takes 2 · batch · D · K FLOPs, like any other.",
        )
    yield (
        3 * forward * (1 - 1 / (3 * len(layers))),
        "That is right only if all layers have the same size. It is the first that skips one.",
    )


# A batch in parts. The reader's function is judged by the gradients that it leaves, and by the
# activations that it keeps at one time.

ROWS = 24
# A function may keep up to so many times the bytes that one part keeps. It is allowed to copy the
# part's rows, and then keeps 1.6 times as many. With two parts at once, it keeps twice as many.
MORE_THAN_A_PART = 1.8
TOLERANCE = 1e-4  # relative: how far rounding may move a gradient that is added up in parts
ONLY_LAST = (
    "only the last part's gradients are left. "
    "backward() adds: set nothing to zero between the parts."
)
LossOf = Callable[[Tensor], Tensor]
Accumulate = Callable[[nn.Module, LossOf, Tensor, int], object]


def ours(model: nn.Module, loss_of: LossOf, batch: Tensor, parts: int) -> None:
    """Go forward and backward with each part in turn, its loss divided by the number of parts."""
    for part in batch.chunk(parts):
        loss = loss_of(model(part)) / parts
        loss.backward()


@objection(
    "In 4, 1, 2 and 8 parts the gradients are those of the whole batch, one part at a time.",
    ours=ours,
    hints=(
        "Go forward and backward with one part before you touch the next: then only its "
        "activations are kept.",
        "backward() adds to .grad. The mean over the whole batch is the mean of the parts' means, "
        "so divide each part's loss by the number of parts.",
    ),
)
def accumulated(answer: Accumulate) -> None:
    """The check of a reader's my_accumulate(…): the whole batch's gradients, part by part."""
    # The reader sees the complaint about the first of these numbers of parts that goes wrong. So 1
    # is not the first: a batch in one part hides the usual mistakes, such as an undivided loss.
    for parts in (4, 1, 2, 8):
        complaint = _complaint(answer, parts)
        if complaint:
            count = count_text(parts, "part")
            raise NotYetError(f"{name_of(answer)}, with {ROWS} rows in {count}: {complaint}")


@dataclass(frozen=True)
class Attempt:
    """What happened while a reader's function ran."""

    error: BaseException | None
    forward: Sequence[int]  # of each forward pass, how many rows went through
    most_rows: int  # the most rows that had gone forward and not yet backward, at one time
    most_bytes: int  # the most bytes that autograd kept at one time


def _complaint(answer: Accumulate, parts: int) -> str:
    """Return the first thing that is wrong with gradients or memory, or an empty string."""
    model, batch = _model_and_batch()  # new ones, which no former attempt has changed
    weights = list(model.parameters())
    weights_before = [weight.detach().clone() for weight in weights]
    of_whole = _gradients(model, batch)
    of_last = _gradients(model, batch.chunk(parts)[-1])

    attempt = _attempt(answer, model, batch, parts)
    if attempt.error:
        return f"it {stopped(answer, attempt.error)}"
    if not all(map(torch.equal, weights, weights_before)):
        return (
            "the weights have moved. The optimizer's step comes later; "
            "here only gradients are wanted."
        )
    theirs = [weight.grad for weight in weights]
    if any(gradient is None for gradient in theirs):
        return (
            "no gradients are left in .grad: call .backward() on each part's loss, "
            "and set nothing to zero after it."
        )
    if not agree(theirs, of_whole, TOLERANCE):
        return (
            _in_other_parts(attempt.forward, parts)
            or _how_they_differ(theirs, of_whole, of_last, parts)
            or _in_rows(sum(attempt.forward))
        )
    return _kept_too_long(attempt, parts)


def _gradients(model: nn.Module, rows: Tensor) -> list[Tensor]:
    """Return the right gradients for these rows, and leave `.grad` as it is."""
    loss = _loss(model(rows))
    return list(torch.autograd.grad(loss, list(model.parameters())))


def _attempt(answer: Accumulate, model: nn.Module, batch: Tensor, parts: int) -> Attempt:
    """Run the reader's function, and watch how many rows go forward before others go backward."""
    error: BaseException | None = None
    passes: list[int] = []  # the rows of each pass: above 0 if forward, below 0 if backward

    def went_forward(_: nn.Module, __: object, result: Tensor) -> None:
        """Note the rows of a forward pass, and later those of its backward pass, below 0."""
        rows = len(result)
        passes.append(rows)
        if result.requires_grad:
            # This hook must not hold the result itself, which would then be kept.
            result.register_hook(lambda _: passes.append(-rows))

    def run() -> None:
        nonlocal error
        _, error = call(lambda: answer(model, _loss, batch, parts))

    with model.register_forward_hook(went_forward):
        # Weights and batch are there anyway, whatever autograd keeps.
        kept = measure.saved_bytes_over_time(run, exclude=[*model.parameters(), batch])
    # The running sum: how many rows, after each pass, have gone forward and not yet backward.
    rows_on_the_way = accumulate(passes)
    most_rows = max(rows_on_the_way, default=0)  # 0 if the function never called the model
    forward = [rows for rows in passes if rows > 0]
    return Attempt(error, forward, most_rows, most_bytes=max(kept))


def _in_other_parts(forward: Sequence[int], parts: int) -> str:
    """Return what is wrong if the batch went through in more or fewer parts than were asked for.

    The sentence is empty if it did not, or went through at once or not just once.
    """
    if len(forward) in (0, 1, parts) or sum(forward) != ROWS:
        return ""
    went = count_text(len(forward), "part")
    if forward[0] == parts:
        return (
            f"the batch went through in {went} of {count_text(parts, 'row')} each. "
            "batch.split takes the number of rows in a part, batch.chunk the number of parts."
        )
    return f"the batch went through in {went}: make as many as `parts` says, batch.chunk(parts)."


def _how_they_differ(
    theirs: list[Tensor], of_whole: list[Tensor], of_last: list[Tensor], parts: int
) -> str:
    """Return which mistake explains a reader's gradients that are not those of the whole batch.

    The sentence is empty if none of them does.
    `theirs` are the reader's, `of_whole` the right ones of the whole batch, and `of_last` the right
    ones of its last part.
    """

    def theirs_are(factor: Number, expected: list[Tensor]) -> bool:
        """Whether the reader's gradients are `factor` times the expected ones."""
        return agree(theirs, [factor * gradient for gradient in expected], TOLERANCE)

    if theirs_are(parts, of_whole):
        return f"the gradients are {parts} times too large: divide each part's loss by that."
    if theirs_are(1 / parts, of_whole):
        return f"the gradients are {parts} times too small: divide by {parts} once."
    # The last part's loss may have been divided by the number of parts, as it should be.
    if theirs_are(1, of_last) or theirs_are(1 / parts, of_last):
        return ONLY_LAST
    factor = _factor(theirs, of_whole)
    if factor and theirs_are(factor, of_whole):
        times = number_text(factor, 3)
        return (
            f"the gradients are {times} times those of the whole batch. "
            "Divide each part's loss by the number of parts, and by nothing else."
        )
    return ""


def _factor(theirs: list[Tensor], of_whole: list[Tensor]) -> float:
    """Return the number by which `of_whole` comes closest to the reader's gradients."""
    a = torch.cat([gradient.flatten() for gradient in theirs])
    b = torch.cat([gradient.flatten() for gradient in of_whole])
    if a.shape != b.shape:
        return 0.0
    return (a @ b / (b @ b)).item()


def _in_rows(rows: int) -> str:
    """Return what is wrong with gradients for which so many rows went forward."""
    if rows != ROWS:
        return (
            f"{rows} rows went through the model, but the batch has {ROWS}. "
            "Let each part of batch.chunk(parts) go through once."
        )
    return "the gradients differ from those of the whole batch."


def _kept_too_long(attempt: Attempt, parts: int) -> str:
    """Return what is wrong if more than one part was kept at one time, else an empty string."""
    if attempt.most_rows > ROWS // parts:
        return _in_other_parts(attempt.forward, parts) or (
            f"the activations of {attempt.most_rows} rows are kept at one time. "
            "Call .backward() for each part before the next."
        )
    if attempt.most_bytes > MORE_THAN_A_PART * _bytes_of_a_part(parts):
        return (
            "the activations of parts that went backward are still in memory. "
            "Leave out retain_graph=True."
        )
    return ""


def _bytes_of_a_part(parts: int) -> int:
    """Return the most bytes that autograd keeps of one part, as the function `ours` runs it."""
    model, batch = _model_and_batch()
    attempt = _attempt(ours, model, batch, parts)
    return attempt.most_bytes


def _model_and_batch() -> tuple[nn.Module, Tensor]:
    """Return a new model and a batch, the same at each call.

    torch's shared generator on the CPU, which draws them, is put back afterwards.
    """
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.Linear(4, 2))
        return model, torch.randn(ROWS, 6)


def _loss(results: Tensor) -> Tensor:
    """Return a mean over the rows, as the exercise says of `loss_of`."""
    return results.pow(2).sum(-1).mean()
