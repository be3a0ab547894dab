"""A few elements of SVG. A lab's picture is one string, live in a page or turned into a PNG.

Shapes carry a class and no colour of their own: `picture.css` holds the colours, and in the page
they follow the reader's theme.
"""

import math
import re
from collections.abc import Iterable
from functools import cache
from html import escape

from course_utils.core.say import Number

# The classes shade-0 to shade-63 colour things by their order, from dark to light.
SHADES = 64
# These characters cannot stand in XML.
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@cache
def _named(attribute: str) -> str:
    """Return the attribute's name as SVG writes it, such as " aria-label=" for aria_label."""
    return f" {attribute.rstrip('_').replace('_', '-')}="


def element(tag: str, *children: str, **attributes: object) -> str:
    """Return <tag name="value">children</tag>; `class_`, `aria_label` become class, aria-label."""
    parts = [f'{_named(name)}"{escape(str(value))}"' for name, value in attributes.items()]
    inside = "".join(parts)
    if not children:
        return f"<{tag}{inside}/>"
    return f"<{tag}{inside}>{''.join(children)}</{tag}>"


def text(x: Number, y: Number, words: str, **attributes: object) -> str:
    """Return words at a position. Markup in them is escaped."""
    words = _NO_XML.sub("\ufffd", words)  # the sign for a character that cannot be shown
    words = escape(words, quote=False)  # between two tags, quotes stand for themselves
    return element("text", words, x=f"{x:g}", y=f"{y:g}", **attributes)


def rect(x: Number, y: Number, width: Number, height: Number, **attributes: object) -> str:
    """Return a rectangle with slightly rounded corners."""
    return element(
        "rect",
        x=f"{x:g}",
        y=f"{y:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        rx=2,
        **attributes,
    )


def button(*children: str, key: str, row: str, label: str, **attributes: object) -> str:
    """Return a part of the picture that can be clicked.

    A click sends `key` to the lab. Arrow keys go through the buttons row by row; `row` is the name
    of the button's row. `label` is what a screen reader says.
    """
    names = {"role": "button", "aria_label": label, "data_key": key, "data_row": row}
    # In this order, since `switch` passes a role that replaces "button".
    return element("g", *children, **names | attributes)


def switch(*children: str, key: str, row: str, label: str, on: bool) -> str:
    """Return a button that is on or off; the other arguments are those of `button`."""
    return button(
        *children,
        key=key,
        row=row,
        label=label,
        role="switch",
        class_="one" if on else "zero",
        aria_checked=str(on).lower(),
    )


def polyline(points: Iterable[tuple[Number, Number]], **attributes: object) -> str:
    """Return a line through points."""
    places = [f"{x:.1f},{y:.1f}" for x, y in points]
    return element("polyline", points=" ".join(places), **attributes)


def dot(x: Number, y: Number, radius: Number = 5, **attributes: object) -> str:
    """Return a filled circle around (x, y)."""
    return element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius:g}", **attributes)


def cross(x: Number, y: Number, arm: Number = 5, **attributes: object) -> str:
    """Return an X, which marks where something ended."""
    left = x - arm
    right = x + arm
    falling = polyline([(left, y - arm), (right, y + arm)], **attributes)
    rising = polyline([(left, y + arm), (right, y - arm)], **attributes)
    return falling + rising


def scaled(x: Number, y: Number, scale: Number, *children: str) -> str:
    """Return a part of the picture, moved to (x, y), and drawn smaller if the scale is below 1."""
    scale = min(1, math.floor(1000 * scale) / 1000)  # rounded down, so that it surely fits
    return element("g", *children, transform=f"translate({x:g} {y:g}) scale({scale:g})")


def picture(width: Number, height: Number, *children: str) -> str:
    """Return the whole drawing, which the page scales to the width that there is."""
    frame = f"0 0 {width:g} {height:g}"
    return element("svg", *children, xmlns="http://www.w3.org/2000/svg", viewBox=frame)
