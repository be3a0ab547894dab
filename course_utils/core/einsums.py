"""An einsum pattern: its dimensions, its loops, and the cost of each order of multiplying.

A pattern is written as in einops, "b i h, b j h -> b i j": operands, each a list of named
dimensions, and the dimensions that are kept. The others are summed.
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
from functools import cache

from course_utils.core.say.language import template, translated

LONGEST = 400  # the most characters of a pattern
MOST_OPERANDS = 12  # whose orders are compared; each operand more takes three times as long
EXAMPLE = '"b d, d k -> b k"'  # of a pattern, for messages
LETTERS = string.ascii_letters  # the dimensions' names in torch.einsum's notation

Names = tuple[str, ...]
# An order of multiplying: an operand's place, or a pair of trees that are multiplied with each
# other. ((A B) C) is the tree ((0, 1), 2).
Tree = int | tuple


@dataclass(frozen=True)
class Einsum:
    """A parsed pattern: the dimensions of each operand in their order, and those of the result."""

    operands: tuple[Names, ...]
    output: Names

    @property
    def names(self) -> Names:
        """Every dimension once, in order of appearance."""
        # A dictionary has each key once, and keeps their order.
        return tuple(dict.fromkeys(itertools.chain(*self.operands)))

    @property
    def summed(self) -> Names:
        """The dimensions that the result no longer has."""
        return tuple(name for name in self.names if name not in self.output)

    @property
    def summed_first(self) -> Names:
        """The dimensions that one operand alone has, and the result does not have.

        No product needs them, so torch sums them before it multiplies, which makes that operand
        smaller.

        >>> parsed("a b c, c d -> a d").summed_first
        ('b',)
        """
        operands_with = Counter(itertools.chain(*self.operands))  # how many, by dimension
        return tuple(name for name in self.summed if operands_with[name] == 1)

    def role(self, name: str) -> str:
        """The dimension's role: "summed", "batch" or "kept".

        It is summed if the result lacks it, a batch dimension if all of several operands have it,
        and otherwise kept.

        >>> pattern = parsed("b i h, b j h -> b i j")
        >>> [f"{name}: {pattern.role(name)}" for name in pattern.names]
        ['b: batch', 'i: kept', 'h: summed', 'j: kept']
        """
        if name not in self.output:
            return "summed"
        # A single operand cannot share a dimension with others.
        everywhere = len(self.operands) > 1 and all(name in operand for operand in self.operands)
        return "batch" if everywhere else "kept"

    @property
    def pattern(self) -> str:
        """The pattern in einops' notation."""
        operands = [" ".join(operand) for operand in self.operands]
        return f"{', '.join(operands)} -> {' '.join(self.output)}"

    @property
    def equation(self) -> str:
        """The pattern in torch.einsum's notation, where a dimension is one letter."""
        letters = dict(zip(self.names, LETTERS, strict=False))  # some letters are left over

        def spelled(names: Names) -> str:
            return "".join(letters[name] for name in names)

        operands = [spelled(operand) for operand in self.operands]
        return f"{','.join(operands)}->{spelled(self.output)}"

    def steps(self, sizes: Mapping[str, int]) -> int:
        """How often the innermost line of the loops runs: the product of all sizes."""
        return math.prod(sizes[name] for name in self.names)


# Reading.

# What can be wrong with a pattern.
FROM_NO_OPERAND = template("In “{marked}”, at ▸◂: {name} comes from no operand.")
PERHAPS_SEVERAL = template(
    "In “{marked}”, at ▸◂: {name} comes from no operand. Put spaces between the names."
)
NO_ARROW = template(
    "In “{marked}”, at ▸◂: the -> is missing, and behind it what the result keeps. "
    "A pattern looks like {example}."
)
SECOND_ARROW = template("In “{marked}”, at ▸◂: a second ->. A pattern looks like {example}.")
COMMA = template("In “{marked}”, at ▸◂: there is one result, so no comma behind the ->.")
TWICE = template(
    "In “{marked}”, at ▸◂: {name} stands twice in one place, which would take a diagonal: "
    "give each dimension a name of its own."
)
DOTS = template("In “{marked}”, at ▸◂: here every dimension needs a name, so no dots.")
PARENTHESES = template(
    "In “{marked}”, at ▸◂: parentheses split and merge dimensions, which is rearrange's work "
    "and not einsum's."
)
HALF_AN_ARROW = template("In “{marked}”, at ▸◂: an arrow is written ->.")
NO_NAME = template("In “{marked}”, at ▸◂: {name} is no name of a dimension.")


def parsed(pattern: str) -> Einsum:
    """The pattern, taken apart. ValueError, with the place marked, if it is no einsum.

    >>> parsed("b d, d k -> b k")
    Einsum(operands=(('b', 'd'), ('d', 'k')), output=('b', 'k'))
    """
    if len(pattern) > LONGEST:
        refused = translated(
            "A pattern of {count} characters is too long; {longest} are enough here.",
            count=len(pattern),
            longest=LONGEST,
        )
        raise ValueError(refused)
    pattern = pattern.replace("→", "->")
    arrow = _arrow(pattern)
    operands = []  # for each, its names with their positions in the pattern
    start = 0  # positions are counted in the whole pattern, in which a message marks a mistake
    for operand in pattern[:arrow].split(","):
        end = start + len(operand)
        operands.append(_names(pattern, start, end))
        start = end + len(",")

    known = set().union(*operands)
    output = _names(pattern, arrow + len("->"), len(pattern))
    for name, at in output.items():
        if name not in known:
            lacks_spaces = _lacks_spaces(name, operands, output)
            sentence = PERHAPS_SEVERAL if lacks_spaces else FROM_NO_OPERAND
            raise _mistake(pattern, at, at + len(name), sentence, name=name)
    return Einsum(tuple(tuple(operand) for operand in operands), tuple(output))


def _lacks_spaces(name: str, operands: list[dict], output: dict) -> bool:
    """Whether short names may stand without spaces, here or, as in "btw->b", in an operand."""
    if len(name) > 1:
        return True
    one_each = all(len(names) <= 1 for names in (*operands, output))
    return one_each and any(name in word for names in operands for word in names)


def _arrow(pattern: str) -> int:
    """The position of the pattern's arrow.

    ValueError if there is no arrow or a second one, or if a comma follows the arrow.
    """
    arrow = pattern.find("->")
    if arrow < 0:
        end = len(pattern)
        raise _mistake(pattern, end, end, NO_ARROW, example=EXAMPLE)
    second = pattern.find("->", arrow + len("->"))
    if second >= 0:
        raise _mistake(pattern, second, second + len("->"), SECOND_ARROW, example=EXAMPLE)
    comma = pattern.find(",", arrow)
    if comma >= 0:
        raise _mistake(pattern, comma, comma + 1, COMMA)
    return arrow


def _names(pattern: str, start: int, end: int) -> dict[str, int]:
    """The names from `start` to `end` in the pattern, each with its position in the pattern.

    These are the names of one operand or of the result. ValueError if something there is no name.

    >>> _names("b d, d k -> b k", 0, 3)
    {'b': 0, 'd': 2}
    """
    positions: dict[str, int] = {}
    # Each match is a name (a letter or _, then letters, digits and _), several dots, or one other
    # character that is no space.
    for match in re.finditer(r"[^\W\d]\w*|\.\.+|\S", pattern[start:end]):
        name = match[0]
        at = start + match.start()
        # Python takes two names for one if they are the same in this normal form, such as a name
        # with the ligature of f and i, and the same name with these two letters.
        is_normal = unicodedata.normalize("NFKC", name) == name
        has_outer_underscore = name.strip("_") != name  # einops allows none
        if not (is_normal and name.isidentifier()) or has_outer_underscore:
            raise _mistake(pattern, at, at + len(name), _why_no_name(name), name=name)
        if name in positions:
            raise _mistake(pattern, at, at + len(name), TWICE, name=name)
        positions[name] = at
    return positions


def _why_no_name(name: str) -> str:
    """The sentence on why this piece of a pattern does not name a dimension."""
    if name.startswith("."):
        return DOTS
    if name in ("(", ")"):
        return PARENTHESES
    if name in ("-", ">"):
        return HALF_AN_ARROW
    return NO_NAME


def _mistake(pattern: str, start: int, end: int, sentence: str, **gaps: str) -> ValueError:
    """A new error that marks the pattern from `start` to `end`, and says what is wrong there."""
    marked = f"{pattern[:start]}▸{pattern[start:end]}◂{pattern[end:]}"
    return ValueError(translated(sentence, marked=marked, **gaps))


# The slow loops that a pattern means.


def loop_nest(einsum: Einsum, sizes: Mapping[str, int]) -> str:
    """The loops in Python, one for each dimension: kept ones outside, summed ones inside.

    >>> print(loop_nest(parsed("i k, k j -> i j"), {"i": 2, "k": 3, "j": 4}))
    for i in range(2):
        for j in range(4):
            total = 0
            for k in range(3):
                total += A[i, k] * B[k, j]
            result[i, j] = total
    """
    spelled = _spelled(einsum)  # the name in the loops, by dimension
    lines = []
    indent = ""

    def indexed(tensor: str, names: Names) -> str:
        """An element in Python, such as A[i, k]; for a tensor without dimensions, A."""
        if not names:
            return tensor
        return f"{tensor}[{', '.join(spelled[name] for name in names)}]"

    for name in einsum.output:
        lines.append(f"{indent}for {spelled[name]} in range({sizes[name]}):")
        indent += "    "
    outside = indent  # of lines inside the loops over kept dimensions, but outside all others
    lines.append(f"{outside}total = 0")
    for name in einsum.summed:
        lines.append(f"{indent}for {spelled[name]} in range({sizes[name]}):")
        indent += "    "
    factors = [indexed(operand_name(n), names) for n, names in enumerate(einsum.operands)]
    lines.append(f"{indent}total += {' * '.join(factors)}")
    lines.append(f"{outside}{indexed('result', einsum.output)} = total")
    return "\n".join(lines)


def _spelled(einsum: Einsum) -> dict[str, str]:
    """Each dimension's name in the loops: its own, or with a _ behind it if that is taken.

    Python's keywords and the names that the loops use themselves are taken: the dimension "in" is
    called in_. A name with the _ is always free, because `_names` refuses names that end in _.
    """
    taken = {"result", "total", "range", *keyword.kwlist}
    for place in range(len(einsum.operands)):
        taken.add(operand_name(place))
    return {name: f"{name}_" if name in taken else name for name in einsum.names}


def operand_name(place: int) -> str:
    """The operand's letter: A for place 0. After Z, it is operand_26."""
    if place < len(string.ascii_uppercase):
        return string.ascii_uppercase[place]
    return f"operand_{place}"


# Orders of multiplying.


@dataclass(frozen=True)
class Order:
    """One way to multiply all operands, two at a time, and its cost."""

    tree: Tree  # which operands and products are multiplied with each other
    flops: int
    largest: int  # elements of the largest product, intermediate or result

    @property
    def text(self) -> str:
        """The order with brackets: ((A B) C)."""
        return _tree_text(self.tree)


def _tree_text(tree: Tree) -> str:
    """The tree with brackets: ((A B) C)."""
    if isinstance(tree, int):
        return operand_name(tree)
    first, second = tree
    return f"({_tree_text(first)} {_tree_text(second)})"


def orders(einsum: Einsum, sizes: Mapping[str, int], *, only_cheapest: bool = False) -> list[Order]:
    """Every order with its cost, the cheapest first: 15 for four operands, 105 for five.

    Before a pair is multiplied, the dimensions that one operand alone has are summed. That sum
    counts 0, as all additions without a product do. A pair that sums a dimension which both have
    costs 2 FLOPs for each combination of the dimensions that are left. Any other pair costs 1 for
    each: torch's counter, which counts matrix products only, counts 0 there.

    >>> pattern, sizes = parsed("a b, b c, c d -> a d"), {"a": 64, "b": 4, "c": 64, "d": 4}
    >>> [(order.text, order.flops) for order in orders(pattern, sizes)]
    [('(A (B C))', 4096), ('((A B) C)', 65536), ('((A C) B)', 196608)]
    """
    operands = len(einsum.operands)
    if operands > MOST_OPERANDS:
        raise ValueError(
            f"{operands} operands have too many orders to compare; {MOST_OPERANDS} are possible."
        )
    groups = _Groups(einsum, sizes)

    @cache
    def orders_of(group: int) -> list[Order]:
        """Return the orders of multiplying a group's operands; bit n of `group` is operand n."""
        if group.bit_count() == 1:
            place = group.bit_length() - 1  # the number of the group's only bit
            return [Order(place, flops=0, largest=0)]  # one operand is not multiplied yet
        group_orders = []
        elements = groups.volume(groups.kept(group))  # of the group's product
        for half in _halves(group):
            others = group ^ half  # the operands of the group that are not in the half
            pair_flops = groups.pair_flops(half, others)
            for first, second in itertools.product(orders_of(half), orders_of(others)):
                tree = (first.tree, second.tree)
                flops = first.flops + second.flops + pair_flops
                largest = max(first.largest, second.largest, elements)
                group_orders.append(Order(tree, flops, largest))
        group_orders.sort(key=lambda order: order.flops)
        return group_orders[:1] if only_cheapest else group_orders

    all_operands = (1 << operands) - 1  # a group: one bit for each operand
    return orders_of(all_operands)


class _Groups:
    """Groups of operands. A group is a whole number: its bit n says whether operand n is in it."""

    def __init__(self, einsum: Einsum, sizes: Mapping[str, int]) -> None:
        self.einsum = einsum
        self.sizes = sizes
        self.kept = cache(self._kept)  # many orders have the same groups

    def _kept(self, group: int) -> frozenset[str]:
        """The dimensions of a group's product that the result or an operand outside needs."""
        inside = set()
        needed_outside = {*self.einsum.output}
        for n, names in enumerate(self.einsum.operands):
            is_inside = group >> n & 1  # bit n of the group
            if is_inside:
                inside.update(names)
            else:
                needed_outside.update(names)
        return frozenset(inside & needed_outside)

    def volume(self, names: frozenset[str]) -> int:
        """The number of combinations of these dimensions: the elements of a tensor with them."""
        return math.prod(self.sizes[name] for name in names)

    def pair_flops(self, first: int, second: int) -> int:
        """The FLOPs of multiplying the products of two groups.

        Each combination of their dimensions costs 2 if a dimension is summed, and 1 otherwise.
        """
        dimensions = self.kept(first) | self.kept(second)  # of the two products
        summed = dimensions - self.kept(first | second)  # `first | second` is the joint group
        if summed:
            return 2 * self.volume(dimensions)
        return self.volume(dimensions)


def _halves(group: int) -> Iterator[int]:
    """Yield each way to split a group in two, as the half that has the group's first operand.

    Bit n of a number stands for operand n. The other half is the rest of the group: 0b111 is split
    into 0b101 and 0b010, into 0b011 and 0b100, and into 0b001 and 0b110.
    """
    first = group & -group  # the group's lowest bit, such as 0b010 of 0b110
    # `(n - 1) & group` is the next number below n that has only bits of the group.
    half = (group - 1) & group
    while half:
        if half & first:  # otherwise this split is yielded as its other half
            yield half
        half = (half - 1) & group
