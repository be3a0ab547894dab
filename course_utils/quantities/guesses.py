"""A reader's guess, and how far off it was."""

import math
import numbers
from dataclasses import dataclass

from course_utils.quantities.wording import Number, times_text


@dataclass(frozen=True)
class Guess:
    """What was asked, what the reader said, and what was measured: numbers, or words to choose from.

    `kind` says how the third came about, if not by measuring: it was "reported", or "calculated".
    """

    asked: str
    said: Number | str
    measured: Number | str
    kind: str = "measured"

    @property
    def off(self) -> float:
        """How many times too large or too small; 1 where it is right, infinite where no factor would mend it.

        >>> Guess("bytes", 50, 100).off, Guess("bytes", 100, 100).off, Guess("format", "fp16", "bf16").off
        (2.0, 1.0, inf)
        """
        ratio = self._ratio
        return max(ratio, 1 / ratio) if ratio else math.inf

    @property
    def is_right(self) -> bool:
        """Whether it is off by less than 0.5 %.

        >>> Guess("share", 0.333, 1 / 3).is_right
        True
        """
        return self.off < 1.005

    @property
    def words(self) -> str:
        """How far off it was, as the end of a sentence.

        >>> Guess("bytes", 90, 100).words
        '0.9 times what was measured'
        """
        if self.off == 1:
            return "right"
        if self.is_right:
            return "right, but for less than 0.5 %"
        return f"{times_text(self._ratio) if self.off < math.inf else 'not'} what was {self.kind}"

    @property
    def _ratio(self) -> float:
        """What was said, as a share of what was measured; 0 for none."""
        if self.said == self.measured:
            return 1.0
        try:
            ratio = self.said / self.measured
        except (TypeError, ZeroDivisionError, OverflowError):
            return 0.0
        return ratio if 0 < ratio < math.inf else 0.0


def is_open(guess: object) -> bool:
    """Whether nothing is guessed yet."""
    return guess is ... or guess is None


def plain(guess: object) -> Number | None:
    """One of Python's own numbers, or None for what is no real number; infinite beyond every float, as it is shown."""
    if isinstance(guess, bool) or not isinstance(guess, numbers.Real):
        return None
    try:
        rounded = float(guess)
    except OverflowError:
        return math.inf if guess > 0 else -math.inf
    return int(guess) if isinstance(guess, numbers.Integral) else rounded


def brief(guess: object) -> str:
    """What was typed instead of a guess, as it may stand in a sentence."""
    return short(" ".join(repr(guess).split()))


def short(words: str) -> str:
    """At most 40 letters of it."""
    return words if len(words) <= 40 else f"{words[:30]} …"
