"""Gradient accumulation: judged by the gradients, and by how many rows wait for their backward pass at one time."""

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_utils.checks.judging import NotYetError, call, objection
from course_utils.checks.judging.agreement import agree
from course_utils.checks.judging.sentences import name_of, stopped

ROWS = 24
ONLY_LAST = "only the last part's gradients are left. backward() adds: set nothing to zero between the parts."
LossOf = Callable[[Tensor], Tensor]
Accumulate = Callable[[nn.Module, LossOf, Tensor, int], object]


def ours(model: nn.Module, loss_of: LossOf, batch: Tensor, parts: int) -> None:
    """Forward and backward for one part after the other, each loss divided by their number."""
    for part in batch.chunk(parts):
        (loss_of(model(part)) / parts).backward()


@objection(
    "In 4, 1, 2 and 8 parts the gradients are those of the whole batch, one part at a time.", ours=ours
)
def accumulated(answer: Accumulate) -> None:
    """Leave in `.grad` the gradient of the whole batch's mean loss, with one part's activations at a time."""
    for parts in (4, 1, 2, 8):
        if words := _complaint(answer, parts):
            raise NotYetError(
                f"{name_of(answer)}, with {ROWS} rows in {parts} part{'s' * (parts > 1)}: {words}"
            )


def _complaint(answer: Accumulate, parts: int) -> str:
    draw = torch.Generator().manual_seed(3)
    model, batch = (
        nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.Linear(4, 2)),
        torch.randn(ROWS, 6, generator=draw),
    )
    weights = [*model.parameters()]
    for p in weights:
        p.data = torch.randn(p.shape, generator=draw)
    before = [p.detach().clone() for p in weights]
    data = batch, batch.chunk(parts)[-1]
    whole, last = ([*torch.autograd.grad(_loss(model(rows)), weights)] for rows in data)
    rows: list[int] = []  # that go forward, and below 0 those that go backward

    def went_forward(_: nn.Module, __: object, result: Tensor) -> None:
        rows.append(len(result))
        if result.requires_grad:
            result.register_hook(lambda _: rows.append(-len(result)))

    with model.register_forward_hook(went_forward):
        _, error = call(lambda: answer(model, _loss, batch, parts))
    if error:
        return f"it {stopped(answer, error)}"
    if not all(map(torch.equal, weights, before)):
        return "the weights have moved. The optimizer's step comes later; here only gradients are wanted."
    found = [p.grad for p in weights]
    if any(gradient is None for gradient in found):
        return "no gradients are left in .grad: call .backward() on each part's loss."
    if not agree(found, whole, 1e-4):
        for factor, of, words in (
            (parts, whole, f"the gradients are {parts} times too large: divide each part's loss by that."),
            (1 / parts, whole, f"the gradients are {parts} times too small: divide by {parts} once."),
            (1, last, ONLY_LAST),
            (1 / parts, last, ONLY_LAST),
        ):
            if agree(found, [factor * gradient for gradient in of], 1e-4):
                return words
        return "the gradients differ from those of the whole batch."
    if (most := max(itertools.accumulate(rows), default=0)) > ROWS // parts:
        return f"the activations of {most} rows are kept at one time. Call .backward() for each part before the next."
    return ""


def _loss(results: Tensor) -> Tensor:
    return results.pow(2).sum(-1).mean()
