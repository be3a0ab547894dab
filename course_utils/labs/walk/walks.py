"""A tensor as a walk through a storage: shape, strides and offset."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

Sizes = tuple[int, ...]
Dimensions = Sequence[tuple[int, int]]  # of each dimension its size and its stride


@dataclass(frozen=True)
class Walk:
    """A way to walk through a storage."""

    steps: Dimensions
    offset: int = 0

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
