"""The parts of which a control is made, as plain data: a host makes a widget or HTML of each."""

import math
import re
from contextlib import suppress
from typing import NamedTuple

from course_utils.core.say import Number

LARGEST = 2**20  # size
STEP = 0.25  # of a size's slider, in powers of two
LETTER_PX = 8  # no narrower, so that names are not cut


class ControlPart(NamedTuple):
    """One thing of a control that can be moved, as plain data. The panel makes a widget of it, the page an HTML element.

    A "slider" goes from `least` to `most`, or has a place for each of the `options`. "powers" is a slider whose value
    is a power of two's exponent; None leaves it where it is. Beside it stands "typed", a text field without a name of
    its own. Beside a slider may stand "play", a button that moves it. The others are "text", "tick", "toggle", "menu"
    and "buttons". A choice is told by the option's name.
    """

    kind: str
    label: str
    value: object
    hidden: bool = False
    least: Number = 0
    most: Number = 0
    step: Number = 1
    options: tuple[str, ...] = ()
    placeholder: str = ""
    width_px: int = 0
    name_px: int = 0  # of that width, for the name


# A size: a slider in powers of two, and a text field beside it.


def size_of(name: str, said: object) -> int:
    """What was typed, as a whole number.

    >>> size_of("B", "1,024"), size_of("B", "2^14"), size_of("B", 3)
    (1024, 16384, 3)
    """
    words = str(said).strip()
    power = re.fullmatch(r"2 *(?:\^|\*\*) *(\d{1,3})", words, re.ASCII)
    if power or re.fullmatch(r"\d{1,12}|\d{1,3}([,_]\d{3})+", words, re.ASCII):
        number = 2 ** int(power[1]) if power else int(words.replace(",", ""))
        if 1 <= number <= LARGEST:
            return number
    raise ValueError(
        f"{name} is a size: a whole number from 1 to 1,048,576, like 1024 or 2^10. “{str(said)[:40]}” is none."
    )


def size_parts(
    name: str, held: object, slider_px: int, name_px: int, *, hidden: bool
) -> list[ControlPart]:
    """A slider in powers of two, at the step nearest to the size, and a text field beside it."""
    width_px = slider_px + name_px
    look = {"most": math.log2(LARGEST), "step": STEP, "width_px": width_px, "name_px": name_px}
    return [
        ControlPart("powers", name, _nearest_step(held), hidden, **look),
        ControlPart("typed", name, str(held), hidden),
    ]


def size_moved(held: object, part: ControlPart, to: object) -> object:
    """The size after its slider or its text field has been moved."""
    if part.kind != "powers":
        return to
    stays = not math.isfinite(to) or STEP * round(to / STEP) == _nearest_step(held)
    return held if stays else round(2**to)


def _nearest_step(held: object) -> Number | None:
    with suppress(ValueError):  # what is no size has none; the lab says so
        return STEP * round(math.log2(size_of("", held)) / STEP)
    return None
