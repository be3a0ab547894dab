"""A slider of powers of two, beside which the power stands with the number that it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.core.say.language import template
from course_utils.core.say.wording import factor_text
from course_utils.engine.labs.control_parts import ControlPart
from course_utils.engine.labs.fields import Said, Whole, asks

IN_FULL = 31  # below 2^31, a number has all its digits: at most ten


def _power_words(exponent: int) -> str:
    """Return a power of two with its number, in full or, if that is long, with three digits.

    >>> _power_words(16), _power_words(40)
    ('2^16 = 65,536', '2^40 ≈ 1.1 trillion')
    """
    number = 2**exponent
    if exponent < IN_FULL:
        return f"2^{exponent} = {number:,}"
    return f"2^{exponent} ≈ {factor_text(number)}"


@dataclass(frozen=True, kw_only=True)
class PowerOfTwo(Whole):
    """The exponent of a power of two, from 0 to `most`, on a slider that shows the number."""

    refusal = template("{label} cannot be {value}. It is the whole exponent of a power of two.")
    least: int = 0
    most: int

    def parts(self, held: int, said: Said) -> list[ControlPart]:
        """Return a slider with an option for each power, and with `play` the button beside it."""
        slider, *button = super().parts(held, said)
        words = self._words()
        slider = slider._replace(value=words[held], options=words)
        return [slider, *button]

    def moved(self, held: int, part: ControlPart, to: object) -> object:
        """Return the exponent of the power that was chosen; else None, which `held` refuses."""
        words = self._words()
        return words.index(to) if to in words else None

    def _words(self) -> Sequence[str]:
        return tuple(_power_words(exponent) for exponent in range(self.most + 1))


def power_of_two(label: str, default: int, most: int, **more: object) -> Any:
    """Ask for a power of two from 1 to 2^most; the answer is its exponent, as the default is."""
    return asks(PowerOfTwo(label=label, default=default, most=most, **more))
