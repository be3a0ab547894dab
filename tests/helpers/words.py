"""Where the words of a lab's picture stand, in the font of the still one."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
from PIL import ImageFont

from course_utils.engine.labs.lab import Lab

_FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
_BOLD = {"strong", "formula", "measured-words", "alarm"}
_SIZES = {"place": 12, "small": 12, "large": 16}  # as picture.css has them
Box = tuple[str, float, float, float, float]  # the words; left, top, right, bottom


@cache
def _font(bold: bool) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(_FONTS / f"DejaVuSans{'-Bold' if bold else ''}.ttf"), 100)


@cache
def _length(said: str, bold: bool) -> float:
    return _font(bold).getlength(said)


def boxes(svg: str) -> Iterator[Box]:
    """Each text with the space that it takes."""
    yield from _boxes_in(ElementTree.fromstring(svg), 0, 0, 1)


def _boxes_in(node: ElementTree.Element, dx: float, dy: float, scale: float) -> Iterator[Box]:
    moved = node.get("transform")
    if moved and (moved := re.match(r"translate\(([-\d.]+) ([-\d.]+)\) scale\(([\d.]+)\)", moved)):
        dx, dy, scale = map(float, moved.groups())
    if node.tag.endswith("text"):
        classes, said = set((node.get("class") or "").split()), "".join(node.itertext())
        size = scale * next((size for name, size in _SIZES.items() if name in classes), 14)
        width = _length(said, bool(classes & _BOLD)) * size / 100
        x, y = dx + scale * float(node.get("x")), dy + scale * float(node.get("y"))
        left = x - width * (1 if "end" in classes else 0.5 if "middle" in classes else 0)
        if said:
            yield said, left, y - 0.75 * size, left + width, y + 0.2 * size
    for child in node:
        yield from _boxes_in(child, dx, dy, scale)


def words(lab: object) -> str:
    return " ".join("".join(node.itertext()) for node in ElementTree.fromstring(lab.screen.svg))


def words_on(lab: Lab) -> set[str]:
    """Whatever a reader can press, tick, drag or unfold, as it is written there."""
    words = {"All numbers", "Stop", *lab.presets, *lab.jobs, *lab.actions}
    for field in lab.fields.values():
        words |= {field.label, *getattr(field, "options", ())}
    return words


def assert_all_can_be_read(svg: str, *, beyond: float = 3) -> None:
    """No words overlap, and none run out of the picture by more than that."""
    drawn = ElementTree.fromstring(svg)
    *_, width, height = map(float, drawn.get("viewBox").split())
    above: list[Box] = []  # those that reach down to where the next one begins
    for box in sorted(_boxes_in(drawn, 0, 0, 1), key=lambda box: box[2]):
        said, left, top, right, bottom = box
        assert -beyond <= left < right <= width + beyond, said
        assert 0 <= top < bottom <= height, said
        above = [other for other in above if other[4] > top]
        for other, left2, _, right2, _ in above:
            assert not (left < right2 and left2 < right), (said, other)
        above.append(box)
    assert above
