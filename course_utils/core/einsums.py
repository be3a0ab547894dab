"""What an einsum pattern says: its names and their roles, the loops it stands for, and what each order of multiplying costs.

A pattern is written as in einops, "b i h, b j h -> b i j": operands, each a list of named dimensions, and
the dimensions that are kept. The others are summed.
"""

import itertools
import keyword
import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial

LONGEST = 400  # characters
MOST_OPERANDS = 12  # whose orders are compared; each one more takes three times as long
EXAMPLE = '"b d, d k -> b k"'
LETTERS = string.ascii_letters

Names = tuple[str, ...]
Tree = int | tuple  # an operand's place, or a pair of trees that are multiplied with each other


@dataclass(frozen=True)
class Einsum:
    """A parsed pattern."""

    operands: tuple[Names, ...]
    output: Names

    @property
    def names(self) -> Names:
        """Every dimension once, in order of appearance."""
        return tuple(dict.fromkeys(itertools.chain(*self.operands)))

    @property
    def summed(self) -> Names:
        """The dimensions that the result no longer has."""
        return tuple(name for name in self.names if name not in self.output)

    @property
    def summed_first(self) -> Names:
        """The dimensions that one operand alone has and the result lacks: no product needs them.

        torch sums them before it multiplies, which makes that operand smaller.

        >>> parsed("a b c, c d -> a d").summed_first
        ('b',)
        """
        held = Counter(itertools.chain(*self.operands))
        return tuple(name for name in self.summed if held[name] == 1)

    def role(self, name: str) -> str:
        """Summed if the result lacks it, batch if it is everywhere, kept if it is in the result and some operands.

        >>> pattern = parsed("b i h, b j h -> b i j")
        >>> [f"{name}: {pattern.role(name)}" for name in pattern.names]
        ['b: batch', 'i: kept', 'h: summed', 'j: kept']
        """
        if name not in self.output:
            return "summed"
        everywhere = len(self.operands) > 1 and all(name in operand for operand in self.operands)
        return "batch" if everywhere else "kept"

    @property
    def pattern(self) -> str:
        """The pattern in einops' notation."""
        return f"{', '.join(map(' '.join, self.operands))} -> {' '.join(self.output)}"

    @property
    def equation(self) -> str:
        """The pattern in torch.einsum's notation, where a dimension is one letter."""
        letter = dict(zip(self.names, LETTERS, strict=False))
        sides = ["".join(letter[name] for name in side) for side in (*self.operands, self.output)]
        return ",".join(sides[:-1]) + "->" + sides[-1]

    def steps(self, sizes: Mapping[str, int]) -> int:
        """How often the innermost line of the loops runs: the product of all sizes."""
        return math.prod(sizes[name] for name in self.names)


# Reading.


def parsed(pattern: str) -> Einsum:
    """Take a pattern apart.

    >>> parsed("b d, d k -> b k")
    Einsum(operands=(('b', 'd'), ('d', 'k')), output=('b', 'k'))
    """
    if len(pattern) > LONGEST:
        raise ValueError(
            f"A pattern of {len(pattern)} characters is too long; {LONGEST} are enough here."
        )
    pattern = pattern.replace("→", "->")
    arrows = [match.start() for match in re.finditer("->", pattern)]
    if len(arrows) != 1:
        at = arrows[1] if arrows else len(pattern)
        what = "a second ->" if arrows else "the -> is missing, and behind it what the result keeps"
        raise _mistake(
            pattern, at, at + 2 * bool(arrows), what, f" A pattern looks like {EXAMPLE}."
        )
    comma = pattern.find(",", arrows[0])
    if comma >= 0:
        raise _mistake(pattern, comma, comma + 1, "there is one result, so no comma behind the ->")
    ends = [match.start() for match in re.finditer(",", pattern)] + [arrows[0]]
    starts = [0, *(end + 1 for end in ends[:-1])]
    operands = [_side(pattern, start, end) for start, end in zip(starts, ends, strict=True)]
    known = set().union(*({name for name, _ in operand} for operand in operands))
    output = _side(pattern, arrows[0] + 2, len(pattern))
    for name, at in output:
        if name not in known:
            hint = " Put spaces between the names." if len(name) > 1 else ""
            raise _mistake(pattern, at, at + len(name), f"{name} comes from no operand", hint)
    *sides, result = (tuple(name for name, _ in side) for side in (*operands, output))
    return Einsum(tuple(sides), result)


def _side(pattern: str, start: int, end: int) -> list[tuple[str, int]]:
    """The names of one operand or of the result, each with its place in the pattern."""
    found: list[tuple[str, int]] = []
    for match in re.finditer(r"[^\W\d]\w*|\.\.+|\S", pattern[start:end]):
        name, at = match[0], start + match.start()
        plain = unicodedata.normalize("NFKC", name) == name  # or Python takes two names for one
        if not (plain and name.isidentifier() and name.strip("_") == name):
            raise _mistake(pattern, at, at + len(name), _why_not(name))
        if any(name == earlier for earlier, _ in found):
            what = f"{name} stands twice in one place, which would take a diagonal: give each dimension a name of its own"
            raise _mistake(pattern, at, at + len(name), what)
        found.append((name, at))
    return found


def _why_not(name: str) -> str:
    if name.startswith("."):
        return "here every dimension needs a name, so no dots"
    if name in ("(", ")"):
        return "parentheses split and merge dimensions, which is rearrange's work and not einsum's"
    if name == "-" or name == ">":
        return "an arrow is written ->"
    return f"{name} is no name of a dimension"


def _mistake(pattern: str, start: int, end: int, what: str, hint: str = "") -> ValueError:
    marked = f"{pattern[:start]}▸{pattern[start:end]}◂{pattern[end:]}"
    return ValueError(f"In “{marked}”, at ▸◂: {what}.{hint}")


# The slow loops that it stands for.


def loop_nest(einsum: Einsum, sizes: Mapping[str, int]) -> str:
    """The loops as Python would have them, one for each dimension: the kept ones outside, the summed ones inside.

    >>> print(loop_nest(parsed("i k, k j -> i j"), {"i": 2, "k": 3, "j": 4}))
    for i in range(2):
        for j in range(4):
            total = 0
            for k in range(3):
                total += A[i, k] * B[k, j]
            result[i, j] = total
    """
    spelled, kept, summed = _spelled(einsum), len(einsum.output), len(einsum.summed)

    def indexed(of: str, names: Names) -> str:
        return f"{of}[{', '.join(spelled[name] for name in names)}]" if names else of

    loops = [
        f"for {spelled[name]} in range({sizes[name]}):" for name in (*einsum.output, *einsum.summed)
    ]
    product = " * ".join(indexed(operand_name(n), names) for n, names in enumerate(einsum.operands))
    result = f"{indexed('result', einsum.output)} = total"
    lines = [*loops[:kept], "total = 0", *loops[kept:], f"total += {product}", result]
    depths = [*range(kept + 1), *range(kept, kept + summed + 1), kept]
    return "\n".join("    " * depth + line for depth, line in zip(depths, lines, strict=True))


def _spelled(einsum: Einsum) -> dict[str, str]:
    """Each dimension's name in the loops; with a trailing _ if it means something else in Python."""
    taken = {
        "result",
        "total",
        "range",
        *keyword.kwlist,
        *map(operand_name, range(len(einsum.operands))),
    }
    return {name: f"{name}_" if name in taken else name for name in einsum.names}


def operand_name(place: int) -> str:
    return LETTERS[26 + place] if place < 26 else f"operand_{place}"


# Orders of multiplying.


@dataclass(frozen=True)
class Order:
    """One way to multiply all operands in pairs: the pairs, the FLOPs, and the numbers of the largest intermediate."""

    tree: Tree
    flops: int
    largest: int  # elements of the largest product on the way, the result among them

    @property
    def text(self) -> str:
        """The order with brackets: ((A B) C)."""
        return _tree_text(self.tree)


def _tree_text(tree: Tree) -> str:
    return operand_name(tree) if isinstance(tree, int) else f"({' '.join(map(_tree_text, tree))})"


def orders(einsum: Einsum, sizes: Mapping[str, int], *, only_cheapest: bool = False) -> list[Order]:
    """Every order with its cost, the cheapest first: 3 for three operands, 15 for four, 105 for five.

    A pair that sums a dimension which both have is a matrix product, or several: it costs 2 FLOPs for each
    combination of the dimensions that are left after what one operand alone has is summed. That sum counts 0,
    as all additions without a product do. Where a pair sums nothing that both have, each combination is one
    multiplication, and costs 1; torch's counter, which counts matrix products only, says 0 there.

    >>> pattern, sizes = parsed("a b, b c, c d -> a d"), {"a": 64, "b": 4, "c": 64, "d": 4}
    >>> [(order.text, order.flops) for order in orders(pattern, sizes)]
    [('(A (B C))', 4096), ('((A B) C)', 65536), ('((A C) B)', 196608)]
    """
    if len(einsum.operands) > MOST_OPERANDS:
        many = len(einsum.operands)
        raise ValueError(
            f"{many} operands have too many orders to compare; {MOST_OPERANDS} are possible."
        )
    left_of = cache(partial(_left_of, einsum))

    def volume(names: frozenset[str]) -> int:
        return math.prod(sizes[name] for name in names)

    @cache
    def ways(group: int) -> list[Order]:
        if group.bit_count() == 1:
            return [Order(group.bit_length() - 1, 0, 0)]
        found, size = [], volume(left_of(group))
        for part in _halves(group):
            both = left_of(part) | left_of(group ^ part)
            flops = (2 if both - left_of(group) else 1) * volume(both)
            for one, other in itertools.product(ways(part), ways(group ^ part)):
                total = one.flops + other.flops + flops
                found.append(
                    Order((one.tree, other.tree), total, max(one.largest, other.largest, size))
                )
        found.sort(key=lambda order: order.flops)
        return found[:1] if only_cheapest else found

    return ways((1 << len(einsum.operands)) - 1)  # everyone


def _left_of(einsum: Einsum, group: int) -> frozenset[str]:
    """A group's dimensions that an operand outside or the result has; others are summed by then."""
    operands = list(enumerate(einsum.operands))
    inside = frozenset().union(*(names for n, names in operands if group >> n & 1))
    outside = frozenset(einsum.output).union(
        *(names for n, names in operands if not group >> n & 1)
    )
    return inside & outside


def _halves(group: int) -> Iterator[int]:
    """Each way to split a set of operands in two, once, by the half that has the first of them."""
    first = group & -group
    part = (group - 1) & group
    while part:
        if part & first:
            yield part
        part = (part - 1) & group
