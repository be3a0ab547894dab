"""What the walk lab asks: a tensor, how far the walk through it goes, and a view of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from course_utils.core.say.language import template, translated
from course_utils.engine.labs.fields import Said, choice, drawn, reveal, said_is, whole

Sizes = tuple[int, ...]
OWNED = 24  # how many places the storage, drawn as a strip, has
LARGEST = 12  # the largest stride that can be chosen
SHAPES = {
    "(4, 6)": (4, 6),
    "(6, 4)": (6, 4),
    "(3, 4)": (3, 4),
    "(4, 3)": (4, 3),
    "(3, 2, 4)": (3, 2, 4),
}
AS_IT_IS = "as it is"
VIEWS = {  # each with the sizes that follow the -1
    AS_IT_IS: (),
    "view(-1)": (),
    "view(-1, 2)": (2,),
    "view(-1, 4)": (4,),
    "view(-1, 6)": (6,),
    "view(-1, 8)": (8,),
    "view(-1, 2, 2, 2)": (2, 2, 2),
}


def _has_three_dimensions(answers: Said) -> bool:
    """Whether the chosen shape has three dimensions; otherwise no third stride is asked for."""
    return len(SHAPES[answers["shape"]]) == 3


def _last_step(answers: Said) -> int:
    """Return how many steps the whole walk has; before *Show*, how many the first row has.

    The slider `steps` ends there. A walk through n elements has n - 1 steps.
    """
    shape = SHAPES[answers["shape"]]
    elements = math.prod(shape) if answers["shown"] else shape[-1]
    return elements - 1


def _whole_walk(shape: Sizes, strides: Sizes, new: str = "view(-1)") -> Mapping[str, object]:
    """Return a preset in which the walk has gone through all elements of the tensor."""
    preset = {
        "shape": str(shape),
        "offset": 0,
        "new": new,
        "shown": True,
        "steps": math.prod(shape) - 1,
    }
    for dimension, stride in enumerate(strides):
        preset[f"stride_{dimension}"] = stride
    return preset


PRESETS = {
    "where does a slice go on?": {
        "shape": "(3, 4)",
        "offset": 8,
        "new": AS_IT_IS,
        "shown": False,
        "steps": 1,
        "stride_0": 6,
        "stride_1": 1,
    },
    "is every second column even?": _whole_walk((4, 3), (6, 2)),
    "is a transpose even?": _whole_walk((6, 4), (1, 6)),
    "may one row be repeated?": _whole_walk((3, 4), (0, 1), "view(-1, 2)"),
    "which view is possible?": _whole_walk((3, 2, 4), (4, 12, 1), "view(-1, 2, 2, 2)"),
}


class Step(NamedTuple):
    """A step from one element to another; `start` and `end` are their numbers along the walk."""

    start: int
    end: int
    length: int  # in places of the storage; below 0 if the step goes back


class Steps(NamedTuple):
    """All steps along one dimension of a view."""

    size: int
    block: int  # elements that a step passes
    steps: Sequence[Step]

    @property
    def usual(self) -> int:
        """The length of the first step; 0 without any step.

        If the dimension has a stride, this is it, and all other steps are as long.
        """
        return self.steps[0].length if self.steps else 0

    @property
    def even(self) -> bool:
        """Whether all steps are equally long, so that the dimension has a stride."""
        return all(step.length == self.usual for step in self.steps)


@dataclass(frozen=True)
class Walked:
    """A tensor in a strip of 24 numbers, the steps that the walk has gone, and a view of it."""

    # Of each `whole`: its label, its default, the least and the most.
    shape: str = choice("shape", tuple(SHAPES), "(3, 4)", menu=True)
    stride_0: int = whole("stride 0", 6, 0, LARGEST, width_px=160)
    stride_1: int = whole("stride 1", 1, 0, LARGEST, width_px=160)
    stride_2: int = whole("stride 2", 1, 0, LARGEST, width_px=160, when=_has_three_dimensions)
    offset: int = whole("offset", 8, 0, OWNED - 1, width_px=160)
    # A view is tried after *Show*: before, its steps are not drawn, so its button would do nothing.
    new: str = choice("viewed", tuple(VIEWS), AS_IT_IS, when=said_is("shown", True))
    shown: bool = reveal()
    steps: int = whole("steps", 1, 0, _last_step, width_px=200, play=True)
    landing: Sequence[int | None] = drawn(
        "next row",
        marks=(template("where the next row begins"),),
        levels=OWNED,
        says=lambda _mark, place: translated("position {position}", position=place),
        # Which view is tried does not change where the rows of the tensor begin.
        about=("shape", "stride_0", "stride_1", "stride_2", "offset"),
    )

    def __post_init__(self) -> None:
        """Raise a ValueError if no size in place of the view's -1 is possible.

        The product of the view's other sizes has to divide the number of elements.
        """
        elements = math.prod(self.sizes)
        rest = VIEWS[self.new]  # the sizes that follow the -1
        if elements % math.prod(rest):
            refused = translated(
                "No size in place of -1 makes {shape} hold {elements} elements.",
                shape=(-1, *rest),
                elements=elements,
            )
            raise ValueError(refused)

    @property
    def sizes(self) -> Sizes:
        """The size of each dimension."""
        return SHAPES[self.shape]

    @property
    def strides(self) -> Sizes:
        """How many places of the storage a step along each dimension goes."""
        strides = (self.stride_0, self.stride_1, self.stride_2)
        return strides[: len(self.sizes)]

    @property
    def indices(self) -> list[Sizes]:
        """The index of each element, row by row."""
        ranges = [range(size) for size in self.sizes]
        return list(product(*ranges))

    @cached_property
    def places(self) -> list[int]:
        """The place of each element: offset + Σ index × stride.

        A place may lie beyond the strip; torch refuses such a tensor.
        """
        strides = self.strides
        places = []
        for index in self.indices:
            place = self.offset
            for i, stride in zip(index, strides, strict=True):
                place += i * stride
            places.append(place)
        return places

    @property
    def visited(self) -> Sequence[int]:
        """The places that the walk has reached, from the first element's on.

        Before *Show* the walk stays in the first row. Its number of places is one more than its
        number of steps.
        """
        most = len(self.places) if self.shown else self.sizes[-1]
        return self.places[: min(self.steps + 1, most)]

    @property
    def lands_at(self) -> int:
        """The place of the second row's first element."""
        return self.places[self.sizes[-1]]

    @property
    def viewed_as(self) -> Sizes:
        """The shape of the view, with a size in place of -1; without a view, the tensor's shape."""
        rest = self.sizes[1:] if self.new == AS_IT_IS else VIEWS[self.new]
        first = len(self.places) // math.prod(rest)
        return (first, *rest)

    @cached_property
    def dimensions(self) -> list[Steps]:
        """The steps along each dimension of the view."""
        shape = self.viewed_as
        dimensions = []
        for dimension, size in enumerate(shape):
            block = math.prod(shape[dimension + 1 :])
            dimensions.append(Steps(size, block, self._steps(size, block)))
        return dimensions

    def _steps(self, size: int, block: int) -> list[Step]:
        """Return the steps along a dimension of this size, in the order of the walk.

        `block` is how many elements the walk visits at one index of the dimension: the product of
        the sizes behind it.
        """
        steps = []
        for end in range(block, len(self.places), block):
            index = end // block % size  # along this dimension, where the step ends
            if index > 0:  # to index 0, the walk comes by a step along an earlier dimension
                start = end - block
                steps.append(Step(start, end, self.places[end] - self.places[start]))
        return steps
