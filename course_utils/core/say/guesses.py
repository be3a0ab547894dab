"""A reader's guess, and how far off it was."""

import math
import numbers
from dataclasses import dataclass
from types import ModuleType

from course_utils.core.say.language import template, translated
from course_utils.core.say.wording import (
    Number,
    as_float,
    factor_text,
    in_words,
    three_digits,
    times_text,
)

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
        if self._is_choice:
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
        if self._ratio == 0:  # `_ratio` is 0 where there is no ratio
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
        if self._is_choice or not self.digits:
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
        word = translated(self.word)
        # capitalize() would lower all other letters, which another language may have.
        first = word[0].upper() + word[1:]
        return translated("{word}: {how_far}", word=first, how_far=f"{self.how_far}{self.hint}")

    @property
    def hint(self) -> str:
        """A question that follows `how_far` if the reader may have answered in another unit."""
        if not self._may_be_another_unit:
            return ""
        return translated(". Is it in the unit that was asked for?")

    @property
    def how_far(self) -> str:
        """How far off the guess is, in the words that fit its unit.

        >>> Guess("MFU", 11, 2, unit="percent").how_far, Guess("layers", 11, 12).how_far
        ('9 points too high', '1 too low')
        """
        if self.word == _closeness().SPOT_ON:
            return self._nearly
        return self.difference or self._beside  # both numbers, where no difference says it

    @property
    def difference(self) -> str:
        """How far off the guess is; empty if it is spot on, or if only both numbers say it.

        >>> Guess("bytes", 0, 8).difference, Guess("bytes", 16, 8).difference
        ('', '2 times what was measured')
        """
        # Options have no difference, and are treated like a number that is not finite.
        measured = as_float(self.measured) if not self._is_choice else math.inf
        if self.word == _closeness().SPOT_ON or not math.isfinite(measured):
            return ""
        apart = as_float(self.said) - measured
        is_high = apart > 0
        whole = _closeness().whole_judged_by(measured, self.unit)  # such as 100, or 0
        if whole in (1, 100):  # a share or percent
            points = three_digits(abs(apart) * 100 / whole)
            if is_high:
                return translated("{points} points too high", points=points)
            return translated("{points} points too low", points=points)
        is_off_by_one = self.word == _closeness().CLOSE and abs(apart) == 1
        if whole or is_off_by_one:  # a count: "1 too low" says more than a factor
            number = three_digits(abs(apart))
            if is_high:
                return translated("{number} too high", number=number)
            return translated("{number} too low", number=number)
        if self.off == math.inf:  # no factor leads from the guess to the value, as from 0
            return ""
        return self._times if self.off < 10 else self._factor(is_high=is_high)

    @property
    def _times(self) -> str:
        """The ratio of a guess that is not far off, such as "2 times what was measured"."""
        times = times_text(self._ratio)
        kind = translated(self.kind)
        if self._is_participle:
            return translated("{times} what was {kind}", times=times, kind=kind)
        return translated("{times} the number {kind}", times=times, kind=kind)

    def _factor(self, *, is_high: bool) -> str:
        """The ratio of a guess that is far off, such as "a factor of 12.8 too small"."""
        factor = factor_text(self.off)
        if is_high:
            return translated("a factor of {factor} too large", factor=factor)
        return translated("a factor of {factor} too small", factor=factor)

    @property
    def _is_participle(self) -> bool:
        """Whether `kind` is "measured" or another participle, and not words like "with a step"."""
        return self.kind.endswith("ed")

    @property
    def _beside(self) -> str:
        """Both numbers in a sentence, such as "you said 3, and what was measured is 4"."""
        said = self._text(self.said)
        kind = translated(self.kind)
        measured = self._measured_text
        if self._is_participle:
            return translated(
                "you said {said}, and what was {kind} is {measured}",
                said=said,
                kind=kind,
                measured=measured,
            )
        return translated(
            "you said {said}, and the number {kind} is {measured}",
            said=said,
            kind=kind,
            measured=measured,
        )

    @property
    def _nearly(self) -> str:
        """What to say of a guess that is spot on: "2.4 GB for 2.42 GB", or "2.42 GB"."""
        said = self._text(self.said)
        if self.is_right or said == self._measured_text:
            return said
        return translated("{said} for {measured}", said=said, measured=self._measured_text)

    @property
    def _measured_text(self) -> str:
        """The measured value as text: an option, or a number as the picture has it."""
        return self._text(self.measured, self.digits)

    def _text(self, value: Number | str, digits: int | None = None) -> str:
        """Return an option or a number as text, short enough for a sentence."""
        is_option = isinstance(value, str)
        return short(value) if is_option else in_words(value, self.unit, digits)

    @property
    def _is_choice(self) -> bool:
        """Whether the guess is one of several options in words, and no number."""
        return isinstance(self.said, str) or isinstance(self.measured, str)

    @property
    def _may_be_another_unit(self) -> bool:
        """Whether the guess is off by about a hundred, or by about a power of 1,000 or 1,024."""
        factors = [100]  # percent in place of a share
        for power in (1, 2, 3, 4):
            factors += [1000**power, 1024**power]
        about = 0.12  # how far from such a factor the guess may be off, as a share of the factor
        # `off` is at least 1, whether the guess is too large or too small.
        return any(abs(self.off / factor - 1) < about for factor in factors)

    def _as_shown(self, n: Number) -> float:
        """Return the number, rounded to `digits` significant digits."""
        return float(f"{as_float(n):.{self.digits}g}")

    @property
    def _ratio(self) -> float:
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
