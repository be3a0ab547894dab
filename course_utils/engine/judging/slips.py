"""The slips that a reader makes with the parts of a sum, and what each one adds to the sum."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from course_utils.core.accountant import Model
from course_utils.core.say import Number
from course_utils.core.say.language import template, translated

Parts = Mapping[str, Number]  # the sizes, by the names of the parts
SAME = 1e-9  # relative: two sums of the same numbers may differ in their last bits
# What was wrongly done to a part. It follows the part's name, and `beside` of a slip fills its gap.
LEFT_OUT = template("left out")
TWICE = template("counted twice")
OF_ONE_LAYER = template("of one layer alone")
AS_LARGE = template("as large as {beside}")
HALF = template("only half counted")
A_SHARE = template("only 1/{beside} counted")
TIMES = template("counted {beside} times")
# The numbers of A_SHARE and TIMES: a byte has 8 bits, and 2, 3 or 4 tensors may be
# alike, such as queries, keys and values.
FRACTIONS = (2, 3, 4, 8)


@dataclass(frozen=True)
class Slip:
    """The names of some parts of the sum, and in words what was wrongly done to them.

    `beside` is another part's name, or a number, if `how` has a gap for it.
    """

    names: tuple[str, ...]
    how: str
    beside: object = ""

    @property
    def in_words(self) -> str:
        return translated(self.how, beside=self.beside)


def changes_by_slip(parts: Parts, case: Sequence[object]) -> dict[Slip, tuple[int, Number]]:
    """Return each slip's rank, from 0 for the likeliest, and what the slip adds to the sum.

    The slip of leaving out a forward pass of 120 FLOPs has (0, -120).
    """
    ranked = {}
    for rank, group in enumerate(_groups(parts, case)):
        for slip, change in group.items():
            ranked[slip] = (rank, change)
    return ranked


def _groups(parts: Parts, case: Sequence[object]) -> Iterator[dict[Slip, Number]]:
    """Yield groups of slips that are equally likely, the likeliest group first.

    A group has for each slip the number that the slip adds to the sum, mostly a negative one.
    `case` has the arguments of the reader's function. If a Model is among them, one of its layers
    may have been counted in place of all.
    """
    yield {Slip((name,), LEFT_OUT): -size for name, size in parts.items()}
    yield {Slip((name,), TWICE): size for name, size in parts.items()}
    for count in range(2, len(parts)):  # several parts left out together, but not all
        left_out = {}
        for names in combinations(parts, count):
            left_out[Slip(names, LEFT_OUT)] = -sum(parts[name] for name in names)
        yield left_out
    for model in case:
        # In a model of two layers, one layer alone is a half, which can have other reasons.
        if isinstance(model, Model) and model.layers > 2:
            rest = 1 / model.layers - 1  # below 0: the share of a part that is then missing
            yield {Slip((name,), OF_ONE_LAYER): rest * parts[name] for name in parts}
    as_large = {}  # a part whose size was mistaken for that of another part
    for name, other in permutations(parts, 2):
        slip = Slip((name,), AS_LARGE, other)
        as_large[slip] = parts[other] - parts[name]
    yield as_large
    for n in FRACTIONS:
        how = HALF if n == 2 else A_SHARE
        # If only 1/4 of a part is counted, 3/4 of it are missing: the slip adds -3/4 of the part.
        yield {Slip((name,), how, n): (1 / n - 1) * parts[name] for name in parts}
        if n > 2:  # TWICE is above
            yield {Slip((name,), TIMES, n): (n - 1) * parts[name] for name in parts}
