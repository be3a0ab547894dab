"""How much space words take, by the font's own widths, so that they can be placed before anybody sees them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from course_utils.core.say import Number
from course_utils.engine.labs.draw.svg import dot, rect, scaled, text

# DejaVu Sans, which the still picture is set in; in thousandths of its size.
_WIDTHS = json.loads(Path(__file__).with_name("font_widths.json").read_text(encoding="utf-8"))
_BOLD = {
    "strong",
    "formula",
    "measured-words",
    "alarm",
}  # classes of picture.css, and below their sizes
_SIZES = {"place": 12, "small": 12, "large": 16}
_DOTS = {"formula": "predicted", "measured-words": "measured"}
USUAL_SIZE = 14
_MONOSPACED = 603  # each character of "code"
WIDEST = 1000  # what a character that is not in the table is taken for


def width_of(words: str, class_: str = "") -> float:
    """The width of the words, in the picture's units.

    >>> width_of("2BDK"), width_of("2BDK", "strong small")
    (38.472, 36.756)
    """
    classes = set(class_.split())
    widths = _WIDTHS["bold" if classes & _BOLD else "regular"]
    size = next((size for name, size in _SIZES.items() if name in classes), USUAL_SIZE)
    if "code" in classes:
        return _MONOSPACED * len(words) * size / 1000
    return sum(widths.get(letter, WIDEST) for letter in words) * size / 1000


def fitted(x: Number, y: Number, words: str, right: Number, class_: str = "") -> str:
    """Words that begin at x, and are drawn smaller where they would run beyond `right`."""
    taken = width_of(words, class_)
    if taken <= right - x:
        return text(x, y, words, class_=class_)
    return scaled(x, y, (right - x) / taken, text(0, 0, words, class_=class_))


def columns(
    rows: Sequence[Sequence[str]],
    x: Number,
    y: Number,
    right: Number,
    classes: Sequence[str],
    *,
    step: Number = 21,
    gap: Number = 20,
) -> str:
    """A table with its head first. A column is as wide as its widest cell; the table shrinks if it is too wide.

    Of a row's baseline, y is the first; `classes` are those of the columns, the head's is "faint".
    """
    placed, start = [], 0
    for cells, class_ in zip(zip(*rows, strict=True), classes, strict=True):
        styles = ["faint", *[class_] * (len(rows) - 1)]
        placed += zip(range(len(rows)), [start] * len(rows), cells, styles, strict=True)
        start += max(map(width_of, cells, styles)) + gap
    drawn = [
        text(at, step * row, cell, class_=style) for row, at, cell, style in sorted(placed) if cell
    ]
    return scaled(x, y, (right - x) / (start - gap), *drawn)


def labelled_lines(
    rows: Iterable[tuple[str, str, str]], x: Number, y: Number, right: Number, *, step: Number
) -> Iterator[str]:
    """A line for each row: its name, then its words from x on, with a dot before what was predicted or measured."""
    for row, (name, words, class_) in enumerate(rows):
        at = y + step * row
        yield text(0, at, name, class_="faint")
        yield fitted(x, at, words, right, class_)
        if class_ in _DOTS:
            yield dot(x - 11, at - 5, class_=_DOTS[class_])


def key(items: Sequence[tuple[str, str]], x: Number, y: Number, class_: str = "small") -> str:
    """A key in one row: for each colour a small square and words."""
    parts = []
    for colour, words in items:
        parts += [rect(x, y - 11, 13, 13, class_=colour), text(x + 19, y, words, class_=class_)]
        x += 19 + width_of(words, class_) + 18
    return "".join(parts)
