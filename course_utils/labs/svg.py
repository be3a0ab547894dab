"""A few words of SVG, so that a lab's picture is one short string: live in the page, still as PNG.

Shapes carry a class and no colour of their own: `picture.css` holds the colours, and in the page
they follow the reader's theme.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

import matplotlib
import resvg_py

from course_utils.figures import COLOURS
from course_utils.figures.png import in_few_colours
from course_utils.quantities import Number

PICTURE_CSS = Template((Path(__file__).parent / "picture.css").read_text(encoding="utf-8")).substitute(
    COLOURS
)
PAGE_CSS = re.sub(r"^(?=[.a-z])", ".course-picture ", PICTURE_CSS, flags=re.MULTILINE)
# Outside a page there are no theme variables: each takes the value it falls back on.
STILL_CSS = re.sub(r"var\(--[\w-]+, ([^)]+)\)", r"\1", PICTURE_CSS)
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that no XML can hold


def element(tag: str, *children: str, **attributes: object) -> str:
    """<tag name="value">children</tag>; `class_` and `aria_label` become class and aria-label."""
    names = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    inside = "".join(f' {name}="{escape(str(value))}"' for name, value in names)
    return f"<{tag}{inside}>{''.join(children)}</{tag}>" if children else f"<{tag}{inside}/>"


def text(x: Number, y: Number, words: str, **attributes: object) -> str:
    """Words at a place; whatever they are, they stay words."""
    return element(
        "text", escape(_NO_XML.sub("\ufffd", words), quote=False), x=f"{x:g}", y=f"{y:g}", **attributes
    )


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


def point(*children: str, key: str, row: str, label: str) -> str:
    """A part of the picture that answers when it is pointed at, by the mouse or by the arrow keys."""
    names = {"aria_label": label, "data_key": key, "data_row": row, "data_point": ""}
    return element("g", *children, role="button", **names)


def polyline(points: Iterable[tuple[Number, Number]], **attributes: object) -> str:
    """A line through points."""
    return element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), **attributes)


def dot(x: Number, y: Number, radius: Number = 5, **attributes: object) -> str:
    """A filled circle."""
    return element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius:g}", **attributes)


@dataclass(frozen=True)
class LogPlot:
    """Axes with logarithmic scales: where a value lies in the picture, and the frame around it."""

    left: Number
    top: Number
    width: Number
    height: Number
    x_range: tuple[Number, Number]
    y_range: tuple[Number, Number]

    def x(self, value: Number) -> Number:
        """The horizontal place of a value; beyond the range, the edge."""
        return self.left + self.width * _share(value, self.x_range)

    def y(self, value: Number) -> Number:
        """The vertical place of a value; beyond the range, the edge."""
        return self.top + self.height * (1 - _share(value, self.y_range))

    def at(self, x: Number, y: Number) -> tuple[Number, Number]:
        """The place of a point."""
        return self.x(x), self.y(y)

    def frame(
        self,
        title: str,
        x_label: str,
        y_label: str,
        x_text: Callable[[Number], str],
        y_text: Callable[[Number], str],
    ) -> str:
        """Grid lines at the powers of ten, every so many of them named, and what the axes are."""
        bottom, right = self.top + self.height, self.left + self.width
        parts = [
            text(self.left, self.top - 26, title, class_="strong"),
            text(self.left, self.top - 8, y_label, class_="faint"),
            text(right, bottom + 36, x_label, class_="faint end"),
        ]
        for value in self._x_ticks():
            parts.append(polyline([(self.x(value), self.top), (self.x(value), bottom)], class_="grid"))
            parts.append(text(self.x(value), bottom + 18, x_text(value), class_="middle small"))
        for value in _decades(self.y_range, most=6):
            parts.append(polyline([(self.left, self.y(value)), (right, self.y(value))], class_="grid"))
            parts.append(text(self.left - 6, self.y(value) + 4, y_text(value), class_="end small"))
        return "".join(parts)

    def _x_ticks(self) -> list[Number]:
        return _decades(self.x_range, most=6)


class StepPlot(LogPlot):
    """The same over steps, which are counted from 0 and stand at even distances."""

    def x(self, value: Number) -> Number:
        """The horizontal place of a step."""
        low, high = self.x_range
        return self.left + self.width * (value - low) / (high - low)

    def _x_ticks(self) -> list[Number]:
        low, high = self.x_range
        apart = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if high - low <= 6 * n)
        return list(range(low, high + 1, apart))


def _share(value: Number, limits: tuple[Number, Number]) -> Number:
    low, high = (math.log(limit) for limit in limits)
    return min(1.0, max(0.0, (math.log(value) - low) / (high - low))) if value > 0 else 0.0


def _decades(limits: tuple[Number, Number], most: int) -> list[Number]:
    low, high = math.ceil(math.log10(limits[0]) - 1e-9), math.floor(math.log10(limits[1]) + 1e-9)
    step = max(1, math.ceil((high - low + 1) / most))
    return [10.0**power for power in range(low, high + 1, step)]


def picture(width: Number, height: Number, *children: str) -> str:
    """The whole drawing, which scales to the width it is given."""
    return element("svg", *children, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {height:g}")


def captioned(svg: str, words: str) -> str:
    """The drawing with a line of words below it."""
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups())
    line = text(width / 2, height + 22, words, class_="faint middle")
    taller = re.sub(r'viewBox="[^"]*"', f'viewBox="0 0 {width:g} {height + 34:g}"', svg, count=1)
    return f"{taller.removesuffix('</svg>')}{line}</svg>"


def still_png(svg: str, words: str = "", *, width_px: int = 1400) -> bytes:
    """The drawing as PNG, in light colours on white, with the fonts that matplotlib carries.

    The words that describe it travel inside.
    """
    full = resvg_py.svg_to_bytes(
        svg_string=svg,
        style_sheet=STILL_CSS,
        width=width_px,
        background="white",
        skip_system_fonts=True,
        font_dirs=[str(Path(matplotlib.get_data_path()) / "fonts" / "ttf")],
        font_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
    )
    return in_few_colours(bytes(full), {"Description": words})
