"""The parts of which a control is made, as plain data.

A host, which is the panel or a page, makes a widget or HTML of each part.
"""

import math
import re
from contextlib import suppress
from typing import NamedTuple

from course_utils.core.say import Number
from course_utils.core.say.guesses import short
from course_utils.core.say.language import translated

LARGEST = 2**20  # the largest size
STEP = 0.25  # of a size's slider, which moves the exponent of a power of two
LETTER_PX = 8  # the width of a letter, large enough that names are not cut
# Matches 2^10 and 2 ** 10.
POWER = re.compile(r"2 *(?:\^|\*\*) *(\d{1,3})", re.ASCII)
# Matches 1024, 1,024 and 1_024.
WHOLE_NUMBER = re.compile(r"\d{1,12}|\d{1,3}([,_]\d{3})+", re.ASCII)
EXPONENT = re.compile(r"\d(?:\.\d+)?[eE]\d", re.ASCII)  # such as 1e3 or 1.5e4


class ControlPart(NamedTuple):
    """One part of a control that can be moved.

    These are the kinds:

    - "slider": it goes from `least` to `most`, or has a position for each of the `options`.
    - "powers": a slider whose value is the exponent of a power of two. If its value is None, the
      slider stays where it is.
    - "typed": a text field beside the slider before it, without a visible name of its own.
    - "readout": the same, but it takes the place of the slider's own readout, and what is typed
      there is sent when the reader presses Enter or leaves the field.
    - "play": a button beside the slider before it, which moves that slider.
    - "text", "tick", "toggle", "menu" and "buttons".

    The value of a part with `options` is the name of an option.
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
    name_px: int = 0  # the part of `width_px` that is for the name


# A size has a slider in powers of two, and a text field beside it.


def size_of(name: str, typed: object) -> int:
    """Return the size that was typed, as a whole number. ValueError, with examples, if it is none.

    `name` is the size's name, for the error.

    >>> size_of("B", "1,024"), size_of("B", "2^14"), size_of("B", "1e3"), size_of("B", 3)
    (1024, 16384, 1000, 3)
    """
    number = _number_in(str(typed).strip())
    if number is None or not 1 <= number <= LARGEST:
        refusal = translated(
            "{name} is a size: a whole number from 1 to 1,048,576, like 1024 or 2^10. "
            "“{typed}” is none.",
            name=name,
            typed=short(str(typed)),
        )
        raise ValueError(refusal)
    return number


def _number_in(words: str) -> int | None:
    """Return the number that is written as 1024, 1,024, 1_024, 1e3, 2^10 or 2**10; else None."""
    power = POWER.fullmatch(words)
    if power:
        return 2 ** int(power[1])
    if WHOLE_NUMBER.fullmatch(words):
        return int(words.replace(",", ""))
    if EXPONENT.fullmatch(words) and float(words).is_integer():
        return int(float(words))
    return None


def size_parts(
    name: str, held: object, slider_px: int, name_px: int, *, hidden: bool
) -> list[ControlPart]:
    """Return a slider in powers of two, at the step nearest to the size, and a text field.

    `held` is the size as it was dragged or typed, such as 1000 or "2^10".
    """
    # The slider's value is an exponent: from 0, for the size 1, to that of the largest size.
    slider = ControlPart(
        kind="powers",
        label=name,
        value=_nearest_step(held),
        hidden=hidden,
        most=math.log2(LARGEST),
        step=STEP,
        width_px=slider_px + name_px,
        name_px=name_px,
    )
    field = ControlPart(kind="typed", label=name, value=str(held), hidden=hidden)
    return [slider, field]


def size_moved(held: object, part: ControlPart, to: object) -> object:
    """Return the size after its slider or its text field was moved; `held` is the size before.

    `to` is the exponent at which the slider is now, or the text that was typed. A slider that is
    moved to the step where it is already leaves the size as it was typed.
    """
    if part.kind != "powers":  # the text field
        return to
    if not math.isfinite(to):  # a page may send anything
        return held
    step = STEP * round(to / STEP)  # a page's float may lie a little beside it
    has_moved = step != _nearest_step(held)
    return round(2**to) if has_moved else held


def _nearest_step(held: object) -> Number | None:
    """Return the slider's step that is nearest to the size; None if what was typed is no size."""
    # The error is not shown here, so it needs no name. Size.read raises it again, with the name.
    with suppress(ValueError):
        exponent = math.log2(size_of("", held))
        return STEP * round(exponent / STEP)
    return None
