"""The exercise of notebook 5 on a batch in parts.

The reader's function is judged by the gradients that it leaves, and by the activations that it
keeps at one time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor, nn

from course_utils.core import measure
from course_utils.core.say import Number, number_text
from course_utils.core.say.language import template, translated
from course_utils.engine.judging import NotYetError, call, objection
from course_utils.engine.judging.agreement import agree
from course_utils.engine.judging.errors import stopped
from course_utils.engine.judging.sentences import name_of

ROWS = 24
# A function may keep up to so many times the bytes that one part keeps. It is allowed to copy the
# part's rows, and then keeps 1.6 times as many. With two parts at once, it keeps twice as many.
MORE_THAN_A_PART = 1.8
TOLERANCE = 1e-4  # relative: how far rounding may move a gradient that is added up in parts
ONLY_LAST = template(
    "only the last part's gradients are left. "
    "backward() adds: set nothing to zero between the parts."
)
ONE_BACKWARD = template(
    "only the last part went backward. Call .backward() for each part, inside the loop."
)
# By whether there is only one.
PARTS = {True: template("{count} part"), False: template("{count} parts")}
ROWS_EACH = {True: template("{count} row"), False: template("{count} rows")}
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
            raise NotYetError(
                translated(
                    "{name}, with {rows} rows in {parts}: {complaint}",
                    name=name_of(answer),
                    rows=ROWS,
                    parts=_counted(PARTS, parts),
                    complaint=complaint,
                )
            )


@dataclass(frozen=True)
class Attempt:
    """What happened while a reader's function ran."""

    error: BaseException | None
    forward: Sequence[int]  # of each forward pass, how many rows went through
    backward: int  # how many backward passes there were
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
        return translated("it {stopped}", stopped=stopped(answer, attempt.error))
    if not all(map(torch.equal, weights, weights_before)):
        return translated(
            "the weights have moved. The optimizer's step comes later; "
            "here only gradients are wanted."
        )
    theirs = [weight.grad for weight in weights]
    if any(gradient is None for gradient in theirs):
        return translated(
            "no gradients are left in .grad: call .backward() on each part's loss, "
            "and set nothing to zero after it."
        )
    if not agree(theirs, of_whole, TOLERANCE):
        return (
            _in_other_parts(attempt.forward, parts)
            or _how_they_differ(theirs, of_whole, parts)
            or _of_last_part(theirs, of_last, parts, attempt.backward)
            or _in_rows(sum(attempt.forward))
        )
    return _kept_too_long(attempt, parts)


def _counted(words: Mapping[bool, str], count: int) -> str:
    """Return a count with its noun, such as "4 parts"."""
    return translated(words[count == 1], count=count)


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
        rows = result[..., 0].numel()  # 1 of a row without the batch's dimension
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
    backward = len(passes) - len(forward)
    return Attempt(error, forward, backward, most_rows, most_bytes=max(kept))


def _in_other_parts(forward: Sequence[int], parts: int) -> str:
    """Return what is wrong if the batch went through in more or fewer parts than were asked for.

    The sentence is empty if it did not, or went through at once or not just once.
    """
    if len(forward) in (0, 1, parts) or sum(forward) != ROWS:
        return ""
    went = _counted(PARTS, len(forward))
    if forward[0] == parts:
        return translated(
            "the batch went through in {went} of {rows} each. "
            "batch.split takes the number of rows in a part, batch.chunk the number of parts.",
            went=went,
            rows=_counted(ROWS_EACH, parts),
        )
    return translated(
        "the batch went through in {went}: make as many as `parts` says, batch.chunk(parts).",
        went=went,
    )


def _are_times(theirs: list[Tensor], factor: Number, expected: list[Tensor]) -> bool:
    """Whether the reader's gradients are `factor` times the expected ones."""
    return agree(theirs, [factor * gradient for gradient in expected], TOLERANCE)


def _of_last_part(theirs: list[Tensor], of_last: list[Tensor], parts: int, backward: int) -> str:
    """Return why the reader's gradients are those of the last part alone; empty if they are not.

    `backward` says how many backward passes there were.
    """
    # The last part's loss may have been divided by the number of parts, as it should be.
    if not any(_are_times(theirs, factor, of_last) for factor in (1, 1 / parts)):
        return ""
    return translated(ONE_BACKWARD if backward == 1 else ONLY_LAST)


def _how_they_differ(theirs: list[Tensor], of_whole: list[Tensor], parts: int) -> str:
    """Return which number the gradients of the whole batch are multiplied by; empty if by none.

    `theirs` are the reader's gradients, and `of_whole` the right ones.
    """
    if _are_times(theirs, parts, of_whole):
        return translated(
            "the gradients are {times} times too large: divide each part's loss by that.",
            times=parts,
        )
    if _are_times(theirs, 1 / parts, of_whole):
        return translated(
            "the gradients are {times} times too small: divide by {times} once.", times=parts
        )
    factor = _factor(theirs, of_whole)
    if factor and _are_times(theirs, factor, of_whole):
        return translated(
            "the gradients are {times} times those of the whole batch. "
            "Divide each part's loss by the number of parts, and by nothing else.",
            times=number_text(factor, 3),
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
        return translated(
            "{rows} rows went through the model, but the batch has {all}. "
            "Let each part of batch.chunk(parts) go through once.",
            rows=rows,
            all=ROWS,
        )
    return translated("the gradients differ from those of the whole batch.")


def _kept_too_long(attempt: Attempt, parts: int) -> str:
    """Return what is wrong if more than one part was kept at one time, else an empty string."""
    if attempt.most_rows > ROWS // parts:
        return _in_other_parts(attempt.forward, parts) or translated(
            "the activations of {rows} rows are kept at one time. "
            "Call .backward() for each part before the next.",
            rows=attempt.most_rows,
        )
    if attempt.most_bytes > MORE_THAN_A_PART * _bytes_of_a_part(parts):
        return translated(
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
