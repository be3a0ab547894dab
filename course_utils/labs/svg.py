"""A few words of SVG, so that a lab's picture is one short string: live in the page, still as PNG.

Shapes carry a class and no colour of their own: `picture.css` holds the colours, and in the page
they follow the reader's theme.
"""

import re
from html import escape
from pathlib import Path
from string import Template

import matplotlib
import resvg_py

from course_utils.figures import COLOURS
from course_utils.quantities import Number

PICTURE_CSS = Template((Path(__file__).parent / "picture.css").read_text()).substitute(COLOURS)
PAGE_CSS = re.sub(r"^(?=[.a-z])", ".course-picture ", PICTURE_CSS, flags=re.MULTILINE)
# Outside a page there are no theme variables: each takes the value it falls back on.
STILL_CSS = re.sub(r"var\(--[\w-]+, ([^)]+)\)", r"\1", PICTURE_CSS)


def element(tag: str, *children: str, **attributes: object) -> str:
    """<tag name="value">children</tag>; `class_` and `aria_label` become class and aria-label."""
    names = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    inside = "".join(f' {name}="{escape(str(value))}"' for name, value in names)
    return f"<{tag}{inside}>{''.join(children)}</{tag}>" if children else f"<{tag}{inside}/>"


def text(x: Number, y: Number, words: str, **attributes: object) -> str:
    """Words at a place; whatever they are, they stay words."""
    return element("text", escape(words, quote=False), x=f"{x:g}", y=f"{y:g}", **attributes)


def rect(x: Number, y: Number, width: Number, height: Number, **attributes: object) -> str:
    """A rectangle with slightly rounded corners."""
    size = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:g}", "height": f"{height:g}"}
    return element("rect", **size, rx=2, **attributes)


def button(*children: str, key: str, row: str, label: str, on: bool) -> str:
    """A part of the picture that can be clicked, or reached by the arrow keys and pressed."""
    return element(
        "g",
        *children,
        class_="one" if on else "zero",
        role="switch",
        aria_checked=str(on).lower(),
        aria_label=label,
        data_key=key,
        data_row=row,
    )


def picture(width: Number, height: Number, *children: str) -> str:
    """The whole drawing, which scales to the width it is given."""
    return element("svg", *children, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {height:g}")


def still_png(svg: str, width_px: int = 1600) -> bytes:
    """The drawing as PNG, in light colours on white, with the fonts that matplotlib carries."""
    return resvg_py.svg_to_bytes(
        svg_string=svg,
        style_sheet=STILL_CSS,
        width=width_px,
        background="white",
        skip_system_fonts=True,
        font_dirs=[str(Path(matplotlib.get_data_path()) / "fonts" / "ttf")],
        font_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
    )
