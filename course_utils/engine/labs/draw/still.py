"""A lab's picture where no kernel runs: a PNG with its words, in the colours of `picture.css`."""

import re
from functools import cache
from pathlib import Path
from string import Template

import matplotlib
import resvg_py
from matplotlib.ft2font import FT2Font

from course_utils.core.colours import COLOURS
from course_utils.engine.figures import chinese
from course_utils.engine.figures.png import in_few_colours
from course_utils.engine.labs.draw.svg import SHADES, text


def stylesheet(path: Path) -> str:
    """Return the text of a CSS file, with the course's colours filled in."""
    return Template(path.read_text(encoding="utf-8")).substitute(COLOURS)


def _shades() -> str:
    """Return the CSS rules of the classes shade-0 to shade-63, with the colours of viridis."""
    outline = "var(--jp-ui-font-color2, #5f6b76)"
    rules = []
    for number, colour in enumerate(matplotlib.colormaps["viridis"].resampled(SHADES).colors):
        fill = f"fill: {matplotlib.colors.to_hex(colour)}; stroke: {outline}"
        rules.append(f".shade-{number} rect {{ {fill}; stroke-width: 0.5; }}\n")
    return "".join(rules)


def _confined(css: str) -> str:
    """Return the same rules for pictures of the course alone, whatever else is on the page.

    `.dot, text {` becomes `.course-picture .dot, .course-picture text {`.
    """

    def with_place(selectors: re.Match[str]) -> str:
        """Return the selectors of a rule, each within .course-picture, and the bracket."""
        confined = [f".course-picture {one.strip()}" for one in selectors[1].split(",")]
        return f"{', '.join(confined)} {{"

    # Matches a rule's selectors up to its bracket, such as ".dot, text {" at the start of a line.
    return re.sub(r"^([.a-z][^{}]*)\{", with_place, css, flags=re.MULTILINE)


PICTURE_CSS = stylesheet(Path(__file__).with_name("picture.css")) + _shades()
PAGE_CSS = _confined(PICTURE_CSS)
# Outside a page there are no theme variables, so each becomes the value that it falls back on:
# var(--jp-ui-font-color2, #5f6b76) becomes #5f6b76.
STILL_CSS = re.sub(r"var\(--[\w-]+, ([^)]+)\)", r"\1", PICTURE_CSS)
FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
WIDTH = 1000  # of every picture, in units; on a page they are at most so many pixels
VIEW_BOX = re.compile(r'viewBox="0 0 (\S+) (\S+)"')


def captioned(svg: str, words: str) -> str:
    """Return the drawing with a line of words below it, for which it becomes 34 units taller."""
    view_box = VIEW_BOX.search(svg)  # such as viewBox="0 0 1000 440"
    width = float(view_box[1])
    height = float(view_box[2])
    line = text(width / 2, height + 22, words, class_="faint middle")
    frame = f'viewBox="0 0 {width:g} {height + 34:g}"'
    taller = svg[: view_box.start()] + frame + svg[view_box.end() :]
    return f"{taller.removesuffix('</svg>')}{line}</svg>"


@cache
def _letters(*, with_chinese: bool) -> frozenset[str]:
    """Return the characters that the fonts of the still picture have."""
    codes = set()
    paths = [FONTS / "DejaVuSans.ttf"]
    if with_chinese:  # a picture in English does not open the font of Chinese letters
        paths.append(chinese.FONT)
    for path in paths:
        codes.update(FT2Font(str(path)).get_charmap())
    return frozenset(map(chr, codes))


def can_draw(svg: str) -> bool:
    """Whether a font has each letter in the drawing; a box would stand for one that both lack."""
    letters = _letters(with_chinese=chinese.is_in(svg))
    return letters.issuperset(svg.replace("\n", ""))


def still_png(svg: str, words: str = "", *, width_px: int = 1400) -> bytes:
    """Return the drawing as PNG, in light colours on white, in the fonts that matplotlib carries.

    Chinese letters come from a font of the course. The words, which describe the drawing, are
    stored inside the PNG.
    """
    png = resvg_py.svg_to_bytes(
        svg_string=svg,
        style_sheet=STILL_CSS,
        width=width_px,
        background="white",
        skip_system_fonts=True,
        font_dirs=[str(FONTS)],
        font_files=[str(chinese.FONT)] if chinese.is_in(svg) else None,
        font_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
    )
    return in_few_colours(bytes(png), {"Description": words})
