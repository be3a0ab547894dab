"""How much space words take, from the widths of the font's letters.

So words can be placed before anybody sees them.
"""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from course_utils.core.say import Number
from course_utils.engine.labs.draw.svg import dot, rect, scaled, text

# Of DejaVu Sans, which the still picture is set in; in thousandths of the font's size.
_WIDTHS = json.loads(Path(__file__).with_name("font_widths.json").read_text(encoding="utf-8"))
# These are classes of picture.css: those in bold, and those of another than the usual size.
_BOLD = {"strong", "formula", "measured-words", "alarm"}
_SIZES = {"place": 12, "small": 12, "large": 16}
# The dot that stands before words of a class, by that class.
_DOTS = {"formula": "predicted", "measured-words": "measured"}
USUAL_SIZE = 14
_MONOSPACED = 603  # each character of "code"
# Of a character that is not in the table: Chinese ones are as wide as high, and no other is wider.
WIDEST = 1000


def width_of(words: str, class_: str = "") -> float:
    """Return the width of the words in these classes of picture.css, in the picture's units.

    >>> width_of("2BDK"), width_of("2BDK", "strong small"), width_of("总和")
    (38.472, 36.756, 28.0)
    """
    classes = set(class_.split())
    size = USUAL_SIZE
    for name in _SIZES:
        if name in classes:
            size = _SIZES[name]
            break
    if "code" in classes:
        return sum(WIDEST if _is_wide(letter) else _MONOSPACED for letter in words) * size / 1000
    widths = _WIDTHS["bold" if classes & _BOLD else "regular"]
    return sum(widths.get(letter, WIDEST) for letter in words) * size / 1000


def _is_wide(letter: str) -> bool:
    """Whether a letter is as wide as high in any font, as Chinese ones and their marks are."""
    return unicodedata.east_asian_width(letter) in ("W", "F")


def fitted(
    x: Number, y: Number, words: str, right: Number, class_: str = "", **attributes: object
) -> str:
    """Return words that begin at x, and are drawn smaller if they would run beyond `right`."""
    width = width_of(words, class_)
    space = right - x
    if width <= space:
        return text(x, y, words, class_=class_, **attributes)
    # At (0, 0), because `scaled` moves the words to (x, y).
    return scaled(x, y, space / width, text(0, 0, words, class_=class_, **attributes))


def scale_words(x: Number, y: Number, words: str, right: Number, name: str) -> str:
    """Return the words on a scale that changes with the controls, such as "scale: 0 to 3 GB".

    They end at `right` at the latest. screen.js marks them for a while when they have changed, so
    that no scale moves unnoticed. `name` tells the scale from the picture's others.
    """
    return fitted(x, y, words, right, "small strong faint", data_scale=name)


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
    """Return a table, whose first row is its head. A column is as wide as its widest cell.

    The table shrinks if it would run beyond `right`. The head's baseline is at y, and that of each
    further row `step` below. `classes` has the class of each column; the head's cells are "faint".
    """
    placed = []  # of each cell: its row's number, its left edge, its words and their class
    start = 0  # the left edge of the column
    by_column = list(zip(*rows, strict=True))  # the cells of each column, its head first
    for cells, class_ in zip(by_column, classes, strict=True):
        widest = 0
        for row_number, words in enumerate(cells):
            style = "faint" if row_number == 0 else class_
            placed.append((row_number, start, words, style))
            widest = max(widest, width_of(words, style))
        start += widest + gap
    drawn = []
    for row_number, left, words, style in sorted(placed):  # row by row, as one reads
        if words:
            drawn.append(text(left, step * row_number, words, class_=style))
    width = start - gap  # without the gap behind the last column; `scaled` never enlarges
    return scaled(x, y, (right - x) / width, *drawn)


def labelled_lines(
    rows: Iterable[tuple[str, str, str]], x: Number, y: Number, right: Number, *, step: Number
) -> Iterator[str]:
    """Yield a line for each row (name, words, class): the name at x = 0, and the words from `x` on.

    A dot stands before words on what was predicted or measured.
    """
    for number, (name, words, class_) in enumerate(rows):
        baseline = y + step * number
        yield text(0, baseline, name, class_="faint")
        yield fitted(x, baseline, words, right, class_)
        if class_ in _DOTS:
            # To the left of the words, and level with the middle of their letters.
            yield dot(x - 11, baseline - 5, class_=_DOTS[class_])


def key(items: Sequence[tuple[str, str]], x: Number, y: Number, class_: str = "small") -> str:
    """Return a key in one row, which begins at x: a small square for each colour, and its words.

    An item is (the CSS class of the colour, words). The words' baseline is at y.
    """
    parts = []
    for colour, words in items:
        parts.append(rect(x, y - 11, 13, 13, class_=colour))
        parts.append(text(x + 19, y, words, class_=class_))
        x += 19 + width_of(words, class_) + 18  # with 18 of space before the next square
    return "".join(parts)
