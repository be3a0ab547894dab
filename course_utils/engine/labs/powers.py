"""A slider of powers of two, beside which the power stands with the number that it is.

The two stand in a text field, so a reader can also type the exponent or the number.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.core.say import Number, typed
from course_utils.core.say.guesses import short
from course_utils.core.say.language import template, translated
from course_utils.core.say.wording import factor_text
from course_utils.engine.labs.control_parts import ControlPart
from course_utils.engine.labs.fields import Said, Whole, asks

IN_FULL = 31  # below 2^31, a number has all its digits: at most ten
READOUT_PX = 170  # the width of the text field, which is enough for "2^30 = 1,073,741,824"


def _power_words(exponent: int) -> str:
    """Return a power of two with its number, in full or, if that is long, with three digits.

    >>> _power_words(16), _power_words(40)
    ('2^16 = 65,536', '2^40 ≈ 1.1 trillion')
    """
    number = 2**exponent
    if exponent < IN_FULL:
        return f"2^{exponent} = {number:,}"
    return f"2^{exponent} ≈ {factor_text(number)}"


def _exponent_of(text: str, most: int) -> int:
    """Return the exponent of the power that was typed; ValueError if it is none up to 2^most.

    What is typed is the exponent itself, or else the power. The words that stand in the field are
    read by their first half, so a reader can change the exponent in them.

    >>> _exponent_of("16", 26), _exponent_of("65,536", 26), _exponent_of("2^17 = 65,536", 26)
    (16, 16, 17)
    """
    first_half = re.split("[=≈]", text)[0].strip()
    if re.fullmatch(r"\d\d?", first_half) and int(first_half) <= most:
        return int(first_half)
    powers = [2**exponent for exponent in range(most + 1)]
    number = _number_in(first_half)
    if number not in powers:
        raise ValueError(
            translated(
                "“{typed}” is no power of two from 1 to 2^{most}. Type its exponent, like 10, or "
                "the number itself, like 1024 or 2^10.",
                typed=short(text.strip()),
                most=most,
            )
        )
    return powers.index(number)


def _number_in(text: str) -> Number | None:
    """Return the number that the text means; None if it means none."""
    try:
        return typed.read(text)
    except ValueError:
        return None


@dataclass(frozen=True, kw_only=True)
class PowerOfTwo(Whole):
    """The exponent of a power of two, from 0 to `most`, dragged on a slider or typed beside it."""

    refusal = template("{label} cannot be {value}. It is the whole exponent of a power of two.")
    least: int = 0
    most: int

    def held(self, value: object) -> int:
        """Return the exponent; ValueError if what was typed is neither an exponent nor a power."""
        number = _exponent_of(value, self.most) if isinstance(value, str) else value
        return super().held(number)

    def parts(self, held: int, said: Said) -> list[ControlPart]:
        """Return a slider with an option for each power, a text field, and with `play` a button."""
        slider, *button = super().parts(held, said)
        words = self._words()
        slider = slider._replace(
            value=words[held],
            options=words,
            width_px=self.width_px - READOUT_PX,
        )
        readout = ControlPart(
            kind="readout",
            label=self.label,
            value=words[held],
            hidden=slider.hidden,
            width_px=READOUT_PX,
        )
        return [slider, readout, *button]

    def _words(self) -> Sequence[str]:
        return tuple(_power_words(exponent) for exponent in range(self.most + 1))


def power_of_two(label: str, default: int, most: int, **more: object) -> Any:
    """Ask for a power of two from 1 to 2^most; the answer is its exponent, as the default is."""
    return asks(PowerOfTwo(label=label, default=default, most=most, **more))
