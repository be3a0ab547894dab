"""Where the words of a lab's picture stand, in the font of the still picture."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
from PIL import ImageFont

from course_utils.engine.labs.lab import Lab

_FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
_MOVED = re.compile(r"translate\(([-\d.]+) ([-\d.]+)\) scale\(([\d.]+)\)")
_BOLD = {"strong", "formula", "measured-words", "alarm"}
_SIZES = {"place": 12, "small": 12, "large": 16}  # as in picture.css
_USUAL_SIZE = 14
Box = tuple[str, float, float, float, float]  # the text; left, top, right, bottom


@cache
def _font(bold: bool) -> ImageFont.FreeTypeFont:
    """Return the still picture's font, in the size 100, from which other sizes follow."""
    file = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(_FONTS / file), 100)


@cache
def _length(said: str, bold: bool) -> float:
    """Return how wide the text is in the size 100."""
    return _font(bold).getlength(said)


def boxes(svg: str) -> Iterator[Box]:
    """Yield each text with the rectangle that it fills, in the picture's coordinates."""
    yield from _boxes_in(ElementTree.fromstring(svg), 0, 0, 1)


def _boxes_in(node: ElementTree.Element, dx: float, dy: float, scale: float) -> Iterator[Box]:
    """Yield the boxes in a node, whose own coordinates are scaled and then moved by (dx, dy)."""
    moved = _MOVED.match(node.get("transform") or "")
    if moved:
        dx, dy, scale = (float(number) for number in moved.groups())
    if node.tag.endswith("text"):
        said = "".join(node.itertext())
        if said:
            yield _box_of(node, said, dx, dy, scale)
    for child in node:
        yield from _boxes_in(child, dx, dy, scale)


def _box_of(node: ElementTree.Element, said: str, dx: float, dy: float, scale: float) -> Box:
    """Return the box of one text. A node has the y of its baseline, and letters reach below it."""
    classes = set((node.get("class") or "").split())
    size = scale * _size(classes)
    width = _length(said, bool(classes & _BOLD)) * size / 100
    x = dx + scale * float(node.get("x"))
    y = dy + scale * float(node.get("y"))
    left = x
    if "end" in classes:
        left = x - width
    elif "middle" in classes:
        left = x - width * 0.5
    return said, left, y - 0.75 * size, left + width, y + 0.2 * size


def _size(classes: set[str]) -> float:
    for name, size in _SIZES.items():
        if name in classes:
            return size
    return _USUAL_SIZE


def words(lab: object) -> str:
    """Return all texts of the lab's picture, in the order in which it draws them."""
    picture = ElementTree.fromstring(lab.screen.svg)
    return " ".join("".join(node.itertext()) for node in picture)


def words_on(lab: Lab) -> set[str]:
    """Return the labels of whatever a reader can press, tick, drag or unfold."""
    labels = {"All numbers", "Stop", *lab.presets, *lab.jobs, *lab.actions}
    for field in lab.fields.values():
        labels.add(field.label)
        labels.update(getattr(field, "options", ()))
    return labels


def assert_all_can_be_read(svg: str, *, beyond: float = 3) -> None:
    """Check that no two texts overlap, and that none leaves the picture.

    At its left and right edge a text may stand out by `beyond`.
    """
    drawn = ElementTree.fromstring(svg)
    *_, width, height = (float(number) for number in drawn.get("viewBox").split())
    above: list[Box] = []  # the texts that reach down to where the next one begins
    for box in sorted(_boxes_in(drawn, 0, 0, 1), key=lambda box: box[2]):
        said, left, top, right, bottom = box
        assert -beyond <= left < right <= width + beyond, said
        assert 0 <= top < bottom <= height, said
        above = [other for other in above if other[4] > top]
        for other, other_left, _, other_right, _ in above:
            overlap = left < other_right and other_left < right
            assert not overlap, (said, other)
        above.append(box)
    assert above
