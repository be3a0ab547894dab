"""A reader's guess, and how far off it was."""

import math
import numbers
from dataclasses import dataclass

from course_utils.core.say.wording import Number, number_text, times_text


@dataclass(frozen=True)
class Guess:
    """What was asked, what the reader guessed, and what was measured: numbers, or options in words.

    `kind` is "measured", "reported" or "calculated", by how the value `measured` was found. If
    `digits` is set, a guess is right if it agrees with `measured` in that many significant digits.
    """

    asked: str
    said: Number | str
    measured: Number | str
    kind: str = "measured"
    digits: int | None = None

    @property
    def off(self) -> float:
        """How many times too large or too small the guess is.

        The factor is 1 if the guess is right, and infinite if no factor makes it right.

        >>> Guess("bytes", 50, 100).off, Guess("bytes", 100, 100).off
        (2.0, 1.0)
        >>> Guess("format", "fp16", "bf16").off
        inf
        """
        if self.is_right:
            return 1.0
        if self._ratio == 0:
            return math.inf
        return max(self._ratio, 1 / self._ratio)

    @property
    def is_right(self) -> bool:
        """Whether the guess equals what was measured.

        If `digits` is set, both are rounded to that many significant digits first.

        >>> Guess("bytes", 16, 16.0003, digits=3).is_right, Guess("share", 0.333, 1 / 3).is_right
        (True, False)
        """
        if self.said == self.measured:
            return True
        are_numbers = isinstance(self.said, Number) and isinstance(self.measured, Number)
        if not are_numbers or not self.digits:
            return False
        return self._as_shown(self.said) == self._as_shown(self.measured)

    @property
    def is_near(self) -> bool:
        """Whether the guess is off by less than 0.5 %, and need not be exact.

        It has to be exact if what was measured is a whole number below a million.

        >>> Guess("share", 0.333, 1 / 3).is_near, Guess("largest", 65_536, 65_504.0).is_near
        (True, False)
        """
        if not self._is_within_half_a_percent:
            return False
        has_to_be_exact = self.measured == int(self.measured) and self.measured < 1e6
        return not has_to_be_exact

    @property
    def words(self) -> str:
        """How far off the guess was, as the end of a sentence.

        A question follows if the reader may have answered in another unit.

        >>> Guess("bytes", 90, 100).words, Guess("largest", 65_536, 65_504.0).words
        ('0.9 times what was measured', '32 too large: this number is exact')
        >>> Guess("GB", 2.4e9, 2.416).words
        '993,377,483 times what was measured. Is it in the unit that was asked for?'
        """
        if self.is_right:
            return "right"
        if self.off == math.inf:
            return f"not what was {self.kind}"
        if self._is_within_half_a_percent:
            way = "too large" if self.said > self.measured else "too small"
            if self.is_near:
                return f"near: less than 0.5 % {way}"
            difference = abs(self.said - self.measured)
            return f"{number_text(difference)} {way}: this number is exact"
        hint = ". Is it in the unit that was asked for?" if self._may_be_another_unit else ""
        return f"{times_text(self._ratio)} what was {self.kind}{hint}"

    @property
    def _is_within_half_a_percent(self) -> bool:
        return 1 < self.off < 1.005

    @property
    def _may_be_another_unit(self) -> bool:
        """Whether the guess is off by about a hundred, or by about a power of 1,000 or 1,024."""
        factors = [100]
        for power in (1, 2, 3, 4):
            factors += [1000**power, 1024**power]
        about = 0.12  # how far off the factor may be, as a share
        return any(abs(self.off / factor - 1) < about for factor in factors)

    def _as_shown(self, n: Number) -> float:
        """The number, rounded to `digits` significant digits."""
        return float(f"{n:.{self.digits}g}")

    @property
    def _ratio(self) -> float:
        """The guess divided by what was measured; 0 if that is no finite number above 0."""
        try:
            ratio = self.said / self.measured
        except (TypeError, ZeroDivisionError, OverflowError):
            return 0.0
        return ratio if 0 < ratio < math.inf else 0.0


def is_open(guess: object) -> bool:
    """Whether the reader has not guessed yet. In a notebook, `...` stands for a guess to come."""
    return guess is ... or guess is None


def plain(guess: object) -> Number | None:
    """The guess as a Python number; None if the guess is no real number.

    A whole number that is too large for a float becomes infinite.
    """
    if isinstance(guess, bool) or not isinstance(guess, numbers.Real):
        return None
    try:
        rounded = float(guess)
    except OverflowError:
        return math.inf if guess > 0 else -math.inf
    if isinstance(guess, numbers.Integral):
        return int(guess)
    return rounded


def brief(guess: object) -> str:
    """What was typed instead of a guess, short enough for a sentence."""
    return short(" ".join(repr(guess).split()))


def short(words: str) -> str:
    """The words, or the beginning of them if they are longer than 40 characters."""
    return words if len(words) <= 40 else f"{words[:30]} …"
