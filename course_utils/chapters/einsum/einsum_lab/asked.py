"""What the einsum lab asks: a pattern, a size for each of its names, a dtype."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from course_utils.core import einsums
from course_utils.core.einsums import Einsum, Order
from course_utils.core.say import Number
from course_utils.core.say.language import translated
from course_utils.engine.labs.control_parts import size_of
from course_utils.engine.labs.fields import Said, choice, typed
from course_utils.engine.labs.named_sizes import MOST_NAMES, NEW_NAMES_SIZE, sizes

MOST_OPERANDS = 5
Found = Mapping[tuple, Number]  # the measured seconds of each order, by `Asked.key(order)`


def _preset(pattern: str, **sizes_by_name: int) -> dict[str, object]:
    """Return a preset that sets the lab's pattern and the size of each of its names."""
    return {"pattern": pattern, "sizes": sizes_by_name}


PRESETS = {
    "what is A times B?": _preset("b d, d k -> b k", b=16, d=8, k=4),
    "what is batch in attention?": _preset("b h i d, b h j d -> b h i j", b=2, h=4, i=8, j=8, d=16),
    "who needs no sum?": _preset("i, j -> i j", i=16, j=16),
    "is a sum free?": _preset("b s h -> b", b=2, s=3, h=4),
    "which order is cheapest?": _preset("a b, b c, c d -> a d", a=512, b=8, c=512, d=8),
    "when is attention linear?": _preset("i d, j d, j v -> i v", i=1024, j=1024, d=32, v=32),
}
ATTENTION = PRESETS["what is batch in attention?"]
PATTERNS_OF_PRESETS = [preset["pattern"] for preset in PRESETS.values()]
EXAMPLES = (
    *PATTERNS_OF_PRESETS,
    "batch row, row -> batch",
    "a b c d e f g h, h g f e -> a d",
    "a b, b c, c d, d e, e f -> a f",
    "a b c d, e f g h, a e, b f, c g -> d h",
    "->",
)


def _names_in_pattern(answers: Said) -> Sequence[str]:
    """Return the names in the pattern that was typed, for each of which a size is asked."""
    return einsums.parsed(answers["pattern"]).names


@dataclass(frozen=True)
class Asked:
    """An einsum with its sizes and dtype."""

    pattern: str = typed("einsum", ATTENTION["pattern"], examples=EXAMPLES, width_px=440)
    dtype: str = choice("dtype", ("fp32", "fp64", "bf16"), "fp32")
    sizes: Mapping[str, object] = sizes("sizes", ATTENTION["sizes"], _names_in_pattern)

    def __post_init__(self) -> None:
        """Raise a ValueError if the pattern is illegal, or has too many operands or names."""
        operands = len(self.einsum.operands)
        if operands > MOST_OPERANDS:
            refused = translated(
                "{count} operands have more orders than fit in here. Take up to {most}.",
                count=operands,
                most=MOST_OPERANDS,
            )
            raise ValueError(refused)
        names = len(self.einsum.names)
        if names > MOST_NAMES:
            refused = translated(
                "{count} names are more than this lab has sliders for. Take up to {most}.",
                count=names,
                most=MOST_NAMES,
            )
            raise ValueError(refused)

    @cached_property
    def einsum(self) -> Einsum:
        """The parsed pattern."""
        return einsums.parsed(self.pattern)

    @cached_property
    def size(self) -> dict[str, int]:
        """The size of each name of the pattern, as a number; in `sizes` it may be a typed text."""
        sizes_by_name = {}
        for name in self.einsum.names:
            typed_size = self.sizes.get(name, NEW_NAMES_SIZE)
            sizes_by_name[name] = size_of(name, typed_size)
        return sizes_by_name

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The operands' shapes and, last, the result's."""
        sides = (*self.einsum.operands, self.einsum.output)
        return [tuple(self.size[name] for name in side) for side in sides]

    @cached_property
    def orders(self) -> list[Order]:
        """Every order of multiplying, the cheapest first."""
        return einsums.orders(self.einsum, self.size)

    @property
    def flops(self) -> int:
        """The FLOPs of the cheapest order."""
        return self.orders[0].flops

    @property
    def cheapest(self) -> list[Order]:
        """The orders that take the fewest FLOPs; often there is only one."""
        return [order for order in self.orders if order.flops == self.flops]

    def key(self, order: Order) -> tuple:
        """Return the key under which `Found` has the seconds of this order.

        It has all settings on which the time depends, so no time is shown beside another product.
        """
        return (self.einsum, tuple(self.size.items()), self.dtype, order.tree)
