"""A few words of SVG, so that a lab's picture is one short string: live in the page, still as PNG.

Shapes carry a class and no colour of their own: `picture.css` holds the colours, and in the page
they follow the reader's theme.
"""

import math
import re
from collections.abc import Iterable
from functools import cache
from html import escape

from course_utils.core.say import Number

SHADES = (
    64  # from the first place of something to its last: classes shade-0 to shade-63, dark to light
)
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that no XML can hold


@cache
def _named(attribute: str) -> str:
    return f" {attribute.rstrip('_').replace('_', '-')}="


def element(tag: str, *children: str, **attributes: object) -> str:
    """<tag name="value">children</tag>; `class_` and `aria_label` become class and aria-label."""
    inside = "".join(
        [f'{_named(name)}"{escape(str(value))}"' for name, value in attributes.items()]
    )
    return f"<{tag}{inside}>{''.join(children)}</{tag}>" if children else f"<{tag}{inside}/>"


def text(x: Number, y: Number, words: str, **attributes: object) -> str:
    """Words at a place. Markup in them is escaped."""
    return element(
        "text",
        escape(_NO_XML.sub("\ufffd", words), quote=False),
        x=f"{x:g}",
        y=f"{y:g}",
        **attributes,
    )


def rect(x: Number, y: Number, width: Number, height: Number, **attributes: object) -> str:
    """A rectangle with slightly rounded corners."""
    size = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:g}", "height": f"{height:g}"}
    return element("rect", **size, rx=2, **attributes)


def button(*children: str, key: str, row: str, label: str, **attributes: object) -> str:
    """A part of the picture for the mouse and the arrow keys."""
    names = {"role": "button", "aria_label": label, "data_key": key, "data_row": row}
    return element("g", *children, **names | attributes)


def switch(*children: str, key: str, row: str, label: str, on: bool) -> str:
    """A button that is on or off."""
    said = {"role": "switch", "class_": "one" if on else "zero", "aria_checked": str(on).lower()}
    return button(*children, key=key, row=row, label=label, **said)


def polyline(points: Iterable[tuple[Number, Number]], **attributes: object) -> str:
    """A line through points."""
    return element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), **attributes)


def dot(x: Number, y: Number, radius: Number = 5, **attributes: object) -> str:
    """A filled circle."""
    return element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius:g}", **attributes)


def cross(x: Number, y: Number, arm: Number = 5, **attributes: object) -> str:
    """An X: where something ended."""
    return "".join(
        polyline([(x - arm, y - d), (x + arm, y + d)], **attributes) for d in (arm, -arm)
    )


def scaled(x: Number, y: Number, scale: Number, *children: str) -> str:
    """A part of the picture, moved to a place; with a scale below 1 it is drawn smaller."""
    scale = min(1, math.floor(1000 * scale) / 1000)
    return element("g", *children, transform=f"translate({x:g} {y:g}) scale({scale:g})")


def picture(width: Number, height: Number, *children: str) -> str:
    """The whole drawing, which scales to the width it is given."""
    return element(
        "svg", *children, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {height:g}"
    )
