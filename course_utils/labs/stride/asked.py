"""What the stride lab asks: a shape, a chain of operations, an element; and the tensors that come of it."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from course_utils import chains
from course_utils.chains import EXAMPLES, INDEX_EXAMPLE, Operation
from course_utils.labs.fields import choice, typed
from course_utils.labs.lab import Change
from course_utils.labs.stride.operations import walked
from course_utils.labs.stride.walks import Walk, in_order

MOST_ELEMENTS = 128  # that a tensor may have here; each is drawn
MOST_DIMENSIONS = 6
LARGEST = f"Take up to {MOST_DIMENSIONS} dimensions, and {MOST_ELEMENTS} elements in all and along each."
DTYPES = ("fp32", "fp64", "bf16")
PRESETS = {
    question: {"shape": shape, "operations": operations, "element": ""}
    for question, shape, operations in (
        ("where does a matrix lie?", "4 6", ""),
        ("what does t() move?", "4 6", "t()"),
        ("what does a slice see?", "4 6", "[1:, ::2]"),
        ("can a slice be viewed?", "4 6", "[:, ::2].view(2, 2, 3)"),
        ("when is a view refused?", "2 3 4", "transpose(0, 1).view(6, 4)"),
        ("and reshape?", "2 3 4", "transpose(0, 1).reshape(6, 4)"),
        ("one row for all?", "6", "expand(4, 6)"),
        ("do windows overlap?", "8", "unfold(0, 3, 1)"),
        ("how are heads split?", "2 3 8", "view(2, 3, 4, 2).transpose(1, 2)"),
    )
}
# What a button appends; "kept" stands for every dimension there is.
BUTTONS = {
    "transpose": "transpose(-2, -1)",
    "permute": "permute({inside_out})",
    "[1:]": "[1:]",
    "[..., ::2]": "[..., ::2]",
    "select": "select(0, 0)",
    "view(-1)": "view(-1)",
    "reshape(-1)": "reshape(-1)",
    "flatten": "flatten()",
    "expand": "expand(3{kept})",
    "unfold": "unfold(-1, 2, 1)",
    "contiguous": "contiguous()",
}
_SHAPES = ("4 6", "2 3 4", "24", "0 3", "128", "128 1", "1 128", "8 1 16", "2 2 2 2 2 4", "64 1 2", "1 1 100")
_CHAINS = (*EXAMPLES.values(), "", INDEX_EXAMPLE, "t().reshape(-1)", "expand(2, -1, -1)", "[..., ::3]")


class Tensor(NamedTuple):
    """One tensor of the chain: the operation, whose storage it has, and its walk."""

    operation: str
    storage: str  # "its own", "shared" or "copied"
    walk: Walk


@dataclass(frozen=True)
class Way:
    """All tensors from the base on, the numbers in the last one's storage, and why the next operation is refused."""

    tensors: Sequence[Tensor]
    numbers: Sequence[int]
    refusal: str = ""

    @property
    def end(self) -> Walk:
        """The last tensor's walk."""
        return self.tensors[-1].walk

    def then(self, link: Operation) -> "Way":
        """The way after one more operation, or with the reason why it is refused."""
        try:
            walk = walked(link, self.end, len(self.numbers))
            elements = math.prod(walk.shape)
            if max(elements, *walk.shape, 0) > MOST_ELEMENTS or len(walk.shape) > MOST_DIMENSIONS:
                raise ValueError(f"gives the shape {walk.shape}, larger than this lab draws. {LARGEST}")
        except ValueError as error:
            return replace(self, refusal=f"The operation {link.text} {error}")
        tensor = Tensor(link.text, "copied" if walk.copied else "shared", walk)
        if not walk.copied:
            return Way([*self.tensors, tensor], self.numbers)
        there = dict(zip(walk.places.values(), self.end.places.values(), strict=True))
        return Way([*self.tensors, tensor], [self.numbers[there[place]] for place in range(elements)])


@dataclass(frozen=True)
class Chain:
    """A tensor of a shape that counts from 0 up, what is done to it, and the element that is looked at."""

    shape: str = typed("shape", "4 6", examples=_SHAPES, width_px=150)
    dtype: str = choice("dtype", DTYPES, "fp32")
    operations: str = typed("operations", "t()", examples=_CHAINS, width_px=370)
    element: str = typed("element", "2 1", examples=("2 1", "0 0 0", "-1 -1", "3", ""), width_px=130)

    def __post_init__(self) -> None:
        """Refuse a shape, a chain or an element that cannot be read."""
        _ = self.sizes, self.links, index_of(self.element)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The base's shape."""
        return shape_of(self.shape)

    @cached_property
    def links(self) -> list[Operation]:
        """The operations."""
        return chains.chain(self.operations)

    @cached_property
    def way(self) -> Way:
        """The tensors from the base to the last, or to the operation that torch would refuse."""
        base = Tensor("base", "its own", in_order(self.sizes))
        way = Way([base], range(math.prod(self.sizes)))
        for link in self.links:
            way = way if way.refusal else way.then(link)
        return way

    @cached_property
    def index(self) -> tuple[int, ...] | None:
        """The index that was typed; if the last tensor has no such element, its last element's."""
        index, shape = index_of(self.element), self.way.end.shape
        if len(index) == len(shape) and all(-n <= i < n for i, n in zip(index, shape, strict=True)):
            return tuple(i % n for i, n in zip(index, shape, strict=True))
        return tuple(n - 1 for n in shape) if math.prod(shape) else None


def shape_of(said: str) -> tuple[int, ...]:
    """What was typed, as a shape.

    >>> shape_of("2 3 4"), shape_of("(2, 3)")
    ((2, 3, 4), (2, 3))
    """
    written = re.fullmatch(r"[\d\s,×x()]{1,60}", said, re.ASCII)
    shape = tuple(map(int, re.findall(r"\d+", said))) if written else ()
    if not 1 <= len(shape) <= MOST_DIMENSIONS:
        raise ValueError(f"“{said[:60]}” is no shape. Type 1 to {MOST_DIMENSIONS} sizes, like 4 6 or 2, 3.")
    if max(math.prod(shape), *shape) > MOST_ELEMENTS:
        raise ValueError(f"The shape {shape} is larger than this lab draws. {LARGEST}")
    return shape


def index_of(said: str) -> list[int]:
    """What was typed, as an element's index; an empty text has none.

    >>> index_of("[2, -1]")
    [2, -1]
    """
    parts = said.replace("−", "-").strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    if not all(re.fullmatch(r"-?\d{1,6}", part, re.ASCII) for part in parts):
        raise ValueError(f"“{said[:60]}” is no element. Type its indices, like 2 1, or point at it.")
    return [int(part) for part in parts]


def pointed_at(key: str, chain: Chain) -> Mapping[str, object]:
    """The controls after an element has been pointed at."""
    return {"element": key}


def appending(link: str) -> Callable[[object, Chain, object], Change]:
    """The action of a button that appends `link`, in place of an operation that was refused."""

    def append(lab: object, chain: Chain, pointer: object) -> Change:
        dimensions = len(chain.way.end.shape)
        inside_out = ", ".join(map(str, reversed(range(dimensions))))
        added = chains.chain(link.format(inside_out=inside_out, kept=", -1" * dimensions))
        longer = chains.typed([*chain.links[: len(chain.way.tensors) - 1], *added])
        chains.chain(longer)  # one that would be too long stays as it is, so that undo can read it
        return Change({"operations": longer})

    return append
