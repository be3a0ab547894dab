"""Gradient accumulation: judged by the gradients, and by how many rows wait for their backward pass at one time."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_utils.checks.judging import NotYetError, call, objection
from course_utils.checks.judging.agreement import near
from course_utils.checks.judging.sentences import name_of, stopped
from course_utils.quantities import Number

ROWS, WIDTHS = 24, (6, 4, 2)
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
        words = _Watched(parts).complaint(answer)
        if words:
            raise NotYetError(
                f"{name_of(answer)}, with {ROWS} rows in {parts} part{'s' * (parts > 1)}: {words}"
            )


class _Watched:
    """A model and a batch, and how many rows have gone forward and not yet backward."""

    def __init__(self, parts: int) -> None:
        self.parts, draw = parts, torch.Generator().manual_seed(3)
        d, h, k = WIDTHS
        self.model = nn.Sequential(nn.Linear(d, h), nn.GELU(), nn.Linear(h, k))
        for p in self.model.parameters():
            p.data = torch.randn(p.shape, generator=draw)
        self.batch = torch.randn(ROWS, d, generator=draw)
        self.largest = self.waiting = self.most_waiting = 0

    def complaint(self, answer: Accumulate) -> str:
        """What is wrong with the reader's function, or an empty string."""
        weights, before = [*self.model.parameters()], [p.detach().clone() for p in self.model.parameters()]
        whole = torch.autograd.grad(_loss(self.model(self.batch)), weights)
        with self.model.register_forward_hook(self._went_forward):
            _, error = call(lambda: answer(self.model, _loss, self.batch, self.parts))
        if error:
            return f"it {stopped(answer, error)}"
        if not all(map(torch.equal, weights, before)):
            return "the weights have moved. The optimizer's step comes later; here only gradients are wanted."
        if any(p.grad is None for p in weights):
            return "no gradients are left in .grad: call .backward() on each part's loss."
        return self._wrong_gradients([p.grad for p in weights], whole) or self._wrong_memory()

    def _went_forward(self, _: nn.Module, __: object, result: Tensor) -> None:
        rows = len(result)
        self.largest, self.waiting = max(self.largest, rows), self.waiting + rows
        self.most_waiting = max(self.most_waiting, self.waiting)
        if result.requires_grad:
            result.register_hook(lambda _: setattr(self, "waiting", self.waiting - rows))

    def _wrong_gradients(self, found: list[Tensor], whole: tuple[Tensor, ...]) -> str:
        def times(factor: Number, of: tuple[Tensor, ...] = whole) -> bool:
            return all(near(one, factor * other, 1e-4) for one, other in zip(found, of, strict=True))

        if times(1):
            return ""
        if times(self.parts):
            return (
                f"the gradients are {self.parts} times too large. Each part's loss is a mean over its own rows: "
                "divide it by the number of parts."
            )
        if times(1 / self.parts):
            return f"the gradients are {self.parts} times too small: divide by the number of parts once."
        last = torch.autograd.grad(
            _loss(self.model(self.batch.chunk(self.parts)[-1])), [*self.model.parameters()]
        )
        if times(1, last) or times(1 / self.parts, last):
            return "only the last part's gradients are left. backward() adds: set nothing to zero between the parts."
        off = max((one - other).abs().max().item() for one, other in zip(found, whole, strict=True))
        return f"the gradients differ from those of the whole batch by up to {off:.2g}."

    def _wrong_memory(self) -> str:
        if self.largest > ROWS // self.parts:
            return f"the model was given {self.largest} rows at once, and so keeps the activations of all of them."
        if self.most_waiting > ROWS // self.parts:
            return (
                "the activations of several parts are kept at one time. "
                "Call .backward() for each part before the next one goes forward."
            )
        return ""


def _loss(results: Tensor) -> Tensor:
    return results.pow(2).sum(-1).mean()
