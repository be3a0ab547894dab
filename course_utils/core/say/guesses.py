"""A reader's guess, and how far off it was."""

import math
import numbers
from dataclasses import dataclass
from types import ModuleType

from course_utils.core.say.language import template
from course_utils.core.say.wording import Number, as_float

# What a number is called by how it was found, as `kind` and the heads of comparisons have it. Both
# are English in the code, and are translated where a reader sees them.
KINDS = (
    template("predicted"),
    template("forecast"),
    template("supposed"),
    template("measured"),
    template("counted"),
    template("calculated"),
    template("recorded"),
    template("reported"),
    template("found"),
)


@dataclass(frozen=True)
class Guess:
    """What was asked, what the reader guessed, and what was measured: numbers, or options in words.

    `kind` is "measured", "reported" or "calculated", by how the value `measured` was found. If
    `digits` is set, a guess is right if it agrees with `measured` in that many significant digits.
    `unit` is that of both numbers, such as "GB" or "percent". A guess that was drawn in a picture
    has the id of the picture's `cell`, because a lab may ask in several cells.
    """

    asked: str
    said: Number | str
    measured: Number | str
    kind: str = "measured"
    digits: int | None = None
    unit: str = ""
    cell: str = ""

    @property
    def word(self) -> str:
        """How close the guess is, in one of the words of `closeness`. A wrong option is missed.

        >>> Guess("GB", 2.4, 2.416).word, Guess("format", "fp16", "bf16").word
        ('spot on', 'missed')
        """
        closeness = _closeness()
        if self.is_right:
            return closeness.SPOT_ON
        if self.is_choice:
            return closeness.MISSED
        said = as_float(self.said)
        measured = as_float(self.measured)
        return closeness.closeness(said, measured, self.unit, self.digits)

    @property
    def off(self) -> float:
        """The larger of guess and measured value, divided by the smaller; so at least 1.

        It is 1 if the guess is right, and infinite if no factor makes the guess right, as for a
        wrong word or a guess of 0.

        >>> Guess("bytes", 50, 100).off, Guess("bytes", 100, 100).off
        (2.0, 1.0)
        >>> Guess("format", "fp16", "bf16").off
        inf
        """
        if self.is_right:
            return 1.0
        if self.ratio == 0:  # `ratio` is 0 where there is no ratio
            return math.inf
        return max(self.ratio, 1 / self.ratio)

    @property
    def is_right(self) -> bool:
        """Whether the guess equals what was measured.

        If `digits` is set, both are rounded to that many significant digits first.

        >>> Guess("bytes", 16, 16.0003, digits=3).is_right, Guess("share", 0.333, 1 / 3).is_right
        (True, False)
        """
        if self.said == self.measured:
            return True
        if self.is_choice or not self.digits:
            return False
        return self._as_shown(self.said) == self._as_shown(self.measured)

    @property
    def words(self) -> str:
        """How close the guess is, and how far off, as a sentence without its full stop.

        A question follows if the reader may have answered in another unit.

        >>> Guess("bytes", 90, 100).words, Guess("largest", 65_536, 65_504.0).words
        ('Close: 0.9 times what was measured', 'Spot on: 65,536 for 65,504')
        >>> Guess("GB", 2.4e9, 2.416).words
        'Far: a factor of 993 million too large. Is it in the unit that was asked for?'
        """
        return _how_far().words(self)

    @property
    def hint(self) -> str:
        """A question that follows `how_far` if the reader may have answered in another unit."""
        return _how_far().hint(self)

    @property
    def how_far(self) -> str:
        """How far off the guess is, in the words that fit its unit.

        >>> Guess("MFU", 11, 2, unit="percent").how_far, Guess("layers", 11, 12).how_far
        ('9 points too high', '1 too low')
        """
        return _how_far().how_far(self)

    @property
    def difference(self) -> str:
        """How far off the guess is; empty if it is spot on, or if only both numbers say it.

        >>> Guess("bytes", 0, 8).difference, Guess("bytes", 16, 8).difference
        ('', 'a factor of 2 too large')
        >>> Guess("bytes", 12, 16, unit="bytes").difference
        '4 bytes too few'
        """
        return _how_far().difference(self)

    @property
    def is_choice(self) -> bool:
        """Whether the guess is one of several options in words, and no number."""
        return isinstance(self.said, str) or isinstance(self.measured, str)

    def _as_shown(self, n: Number) -> float:
        """Return the number, rounded to `digits` significant digits."""
        return float(f"{as_float(n):.{self.digits}g}")

    @property
    def ratio(self) -> float:
        """The guess divided by what was measured; 0 if the result is no finite number above 0."""
        try:
            ratio = self.said / self.measured
        except (TypeError, ZeroDivisionError, OverflowError):
            return 0.0
        return ratio if 0 < ratio < math.inf else 0.0


def _closeness() -> ModuleType:
    """Return the module `closeness`, which only a notebook with a guess has to load.

    The import stands here, and not above, because every notebook loads this module.
    """
    from course_utils.core.say import closeness

    return closeness


def _how_far() -> ModuleType:
    """Return the module `how_far`, which only a guess's sentence has to load."""
    from course_utils.core.say import how_far

    return how_far


def is_open(guess: object) -> bool:
    """Whether the reader has not guessed yet. In a notebook, `...` stands for a guess to come."""
    return guess is ... or guess is None


def plain(guess: object) -> Number | None:
    """Return the guess as a Python number; None if the guess is no real number.

    A whole number that is too large for a float becomes infinite.
    """
    if isinstance(guess, bool) or not isinstance(guess, numbers.Real):
        return None
    rounded = as_float(guess)
    if isinstance(guess, numbers.Integral) and math.isfinite(rounded):
        return int(guess)
    return rounded


def brief(guess: object) -> str:
    """Return what was typed instead of a guess, on one line and short enough for a sentence."""
    return short(" ".join(repr(guess).split()))


def short(words: str) -> str:
    """Return the words, or their beginning if they are longer than 40 characters."""
    return words if len(words) <= 40 else f"{words[:30]} …"


def nearest_between(said: Number, one: Number, other: Number) -> Number:
    """Return the number between two estimates that is nearest to a guess, and so judges it.

    >>> nearest_between(5, 20, 10), nearest_between(12, 20, 10)
    (10, 12)
    """
    least, most = sorted((one, other))
    return min(max(said, least), most)
