"""A tensor as a walk through a storage: shape, strides and offset."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product

Sizes = tuple[int, ...]
Steps = Sequence[tuple[int, int]]  # of each dimension its size and its stride


@dataclass(frozen=True)
class Walk:
    """A way to walk through a storage. `copied` means a new storage, filled in the order of the walk."""

    steps: Steps
    offset: int = 0
    copied: bool = False

    @property
    def shape(self) -> Sizes:
        """The size of each dimension."""
        return tuple(size for size, _ in self.steps)

    @property
    def strides(self) -> Sizes:
        """How far a step along each dimension goes."""
        return tuple(stride for _, stride in self.steps)

    @cached_property
    def places(self) -> dict[Sizes, int]:
        """Each element's place in the storage: offset + Σ index × stride."""
        return {
            index: self.offset + sum(map(operator.mul, index, self.strides))
            for index in product(*map(range, self.shape))
        }

    @property
    def contiguous(self) -> bool:
        """Whether it visits the storage in order; a dimension of one element is never stepped along."""
        pairs = zip(self.steps, in_order(self.shape).steps, strict=True)
        return 0 in self.shape or all(one == due for one, due in pairs if one[0] != 1)

    @property
    def dense(self) -> bool:
        """Whether it visits each place once, in whichever order."""
        steps = sorted((stride, size) for size, stride in self.steps if size != 1)
        due = accumulate((size for _, size in steps), operator.mul, initial=1)
        return 0 in self.shape or all(stride == one for (stride, _), one in zip(steps, due, strict=False))


def in_order(shape: Sequence[int], *, copied: bool = False) -> Walk:
    """The walk of a contiguous tensor of that shape."""
    steps, stride = [], 1
    for size in reversed(shape):
        steps.insert(0, (size, stride))
        stride *= max(size, 1)
    return Walk(tuple(steps), copied=copied)
