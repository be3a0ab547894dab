"""What the walk lab asks: shape, strides and offset of a tensor, how far its walk has gone, and a view of it."""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from course_utils.engine.labs.fields import Said, choice, drawn, reveal, whole

Sizes = tuple[int, ...]
OWNED = 24  # numbers in the strip
LARGEST = 12  # stride
SHAPES = {f"{shape}": shape for shape in ((4, 6), (6, 4), (3, 4), (4, 3), (3, 2, 4))}
AS_IT_IS = "as it is"
VIEWS = {
    AS_IT_IS: (),
    "view(-1)": (),
    "view(-1, 2)": (2,),
    "view(-1, 4)": (4,),
    "view(-1, 6)": (6,),
    "view(-1, 8)": (8,),
    "view(-1, 2, 2, 2)": (2, 2, 2),
}


def _has_three(said: Said) -> bool:
    return len(SHAPES[said["shape"]]) == 3


def _last_step(said: Said) -> int:
    """The steps of the whole walk; before the reveal, those along the first row."""
    shape = SHAPES[said["shape"]]
    return (math.prod(shape) if said["shown"] else shape[-1]) - 1


def _preset(shape: Sizes, strides: Sizes, **more: object) -> Mapping[str, object]:
    named = {f"stride_{i}": stride for i, stride in enumerate(strides)}
    whole_walk = {"shown": True, "steps": math.prod(shape) - 1}
    return {"shape": f"{shape}", "offset": 0, "new": "view(-1)"} | whole_walk | named | more


PRESETS = {
    "where does a slice go on?": _preset(
        (3, 4), (6, 1), offset=8, new=AS_IT_IS, shown=False, steps=1
    ),
    "is every second column even?": _preset((4, 3), (6, 2)),
    "is a transpose even?": _preset((6, 4), (1, 6)),
    "may one row be repeated?": _preset((3, 4), (0, 1), new="view(-1, 2)"),
    "which view is possible?": _preset((3, 2, 4), (4, 12, 1), new="view(-1, 2, 2, 2)"),
}


class Steps(NamedTuple):
    """The steps along one dimension of a view: for each, the two elements, counted along the walk, and its length."""

    size: int
    block: int  # elements that a step along it passes
    steps: Sequence[tuple[int, int, int]]

    @property
    def usual(self) -> int:
        """The length of the first step, which all others need to have."""
        return self.steps[0][2] if self.steps else 0

    @property
    def even(self) -> bool:
        """Whether all are equally long, so that one stride says it."""
        return all(length == self.usual for *_, length in self.steps)


@dataclass(frozen=True)
class Walked:
    """A tensor in a strip of 24 numbers, how far the walk has gone, and the shape in which it is viewed."""

    shape: str = choice("shape", tuple(SHAPES), "(3, 4)", menu=True)
    stride_0: int = whole("stride 0", 6, 0, LARGEST, width_px=160)
    stride_1: int = whole("stride 1", 1, 0, LARGEST, width_px=160)
    stride_2: int = whole("stride 2", 1, 0, LARGEST, width_px=160, when=_has_three)
    offset: int = whole("offset", 8, 0, OWNED - 1, width_px=160)
    new: str = choice("viewed", tuple(VIEWS), AS_IT_IS)
    shown: bool = reveal()
    steps: int = whole("steps", 1, 0, _last_step, width_px=200, play=True)
    landing: Sequence[int | None] = drawn(
        "next row",
        marks=("where the next row begins",),
        levels=OWNED,
        says=lambda _, level: f"place {level}",
    )

    def __post_init__(self) -> None:
        """Raise a sentence if the view's other sizes do not divide the elements."""
        elements, rest = math.prod(self.sizes), VIEWS[self.new]
        if elements % math.prod(rest):
            raise ValueError(
                f"No size in place of -1 makes {(-1, *rest)} hold {elements} elements."
            )

    @property
    def sizes(self) -> Sizes:
        """The size of each dimension."""
        return SHAPES[self.shape]

    @property
    def strides(self) -> Sizes:
        """How far a step along each dimension goes."""
        return (self.stride_0, self.stride_1, self.stride_2)[: len(self.sizes)]

    @property
    def indices(self) -> list[Sizes]:
        """The index of each element, row by row."""
        return [*product(*map(range, self.sizes))]

    @cached_property
    def places(self) -> list[int]:
        """Where each of them lies: offset + Σ index × stride; torch refuses a tensor that leaves the strip."""
        return [self.offset + sum(map(operator.mul, index, self.strides)) for index in self.indices]

    @property
    def gone(self) -> Sequence[int]:
        """The places that the walk has come to; before the reveal, those of the first row at most."""
        most = len(self.places) if self.shown else self.sizes[-1]
        return self.places[: min(self.steps + 1, most)]

    @property
    def lands_at(self) -> int:
        """The place of the second row's first element."""
        return self.places[self.sizes[-1]]

    @property
    def viewed_as(self) -> Sizes:
        """The new shape, with the size that stands for -1."""
        rest = self.sizes[1:] if self.new == AS_IT_IS else VIEWS[self.new]
        return len(self.places) // math.prod(rest), *rest

    @cached_property
    def dimensions(self) -> list[Steps]:
        """The steps along each dimension of the view."""
        found = []
        for dimension, size in enumerate(self.viewed_as):
            block = math.prod(self.viewed_as[dimension + 1 :])
            starts = range(0, len(self.places) - block, block)
            ends = (start + block for start in starts)
            pairs = [(a, b) for a, b in zip(starts, ends, strict=True) if b % (size * block)]
            found.append(
                Steps(size, block, [(a, b, self.places[b] - self.places[a]) for a, b in pairs])
            )
        return found
