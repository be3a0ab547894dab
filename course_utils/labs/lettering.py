"""How much room words take, by the font's own widths, so that they can be placed before anybody sees them."""

import json
import math
from pathlib import Path

from course_utils.labs.svg import text
from course_utils.quantities import Number

# DejaVu Sans, which the still picture is set in; in thousandths of its size.
_WIDTHS = json.loads(Path(__file__).with_name("font_widths.json").read_text(encoding="utf-8"))
_BOLD = {"strong", "formula", "measured-words", "alarm"}  # classes of picture.css, and below their sizes
_SIZES = {"tiny": 8, "place": 10, "small": 12, "large": 16}
USUAL_SIZE = 14
WIDEST = 1000  # what a character that is not in the table is taken for


def width_of(words: str, class_: str = "") -> float:
    """From the first letter to the last, in the picture's units.

    >>> width_of("2BDK"), width_of("2BDK", "strong small")
    (38.472, 36.756)
    """
    classes = set(class_.split())
    widths = _WIDTHS["bold" if classes & _BOLD else "regular"]
    size = next((size for name, size in _SIZES.items() if name in classes), USUAL_SIZE)
    return sum(widths.get(letter, WIDEST) for letter in words) * size / 1000


def fitted(x: Number, y: Number, words: str, right: Number, class_: str = "") -> str:
    """Words that begin at x, and are drawn smaller where they would run beyond `right`."""
    taken = width_of(words, class_)
    if taken <= right - x:
        return text(x, y, words, class_=class_)
    scale = math.floor(1000 * (right - x) / taken) / 1000
    return f'<g transform="translate({x:g} {y:g}) scale({scale:g})">{text(0, 0, words, class_=class_)}</g>'
