"""Colours stand out from each page as WCAG AA asks.

Words do 4.5 to 1, and shapes that mean something 3 to 1.
"""

import re
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from course_utils.chapters.floats.figures import range_and_gap
from course_utils.chapters.tensors.walk_lab.picture import shade
from course_utils.core import floats
from course_utils.engine.judging.verdict import COLOUR
from course_utils.engine.labs.draw import still
from course_utils.engine.labs.draw.svg import SHADES
from tests.engine import test_figures

# JupyterLab's own colours, as black or white over its page.
PAGES = {
    "light": {
        "page": "#ffffff",
        "font-color0": "#000000",
        "font-color2": "#757575",
        "border": "#bdbdbd",
    },
    "dark": {
        "page": "#111111",
        "font-color0": "#ffffff",
        "font-color2": "#919191",
        "border": "#616161",
    },
}
# #111111 is written on these.
ON_COLOUR = ("sign", "exponent", "fraction", "batch", "kept", "summed")
ON_COLOUR += ("forward", "weight_gradient", "input_gradient")
PARTS = (
    "parameters",
    "gradients",
    "optimizer",
    "master",
    "activations",
    "logits",
    "passing",
    "gathered",
)
# Rules for elements to which another rule applies as well.
ONE_ON_ANOTHER = {".line.under": ".line.predicted"}
for part in PARTS:
    ONE_ON_ANOTHER[f".part.{part}"] = ".part"
HELPERS = {".grid", ".cut", ".saved", ".halo"}  # lines to measure by, and gaps
RULE = re.compile(r"^(?P<selector>[^@\n{]+) \{\s(?P<body>[^}]*)\s\}", re.MULTILINE)


def luminance(colour: str) -> float:
    red = linear(colour[1:3])
    green = linear(colour[3:5])
    blue = linear(colour[5:7])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(hex_digits: str) -> float:
    share = int(hex_digits, 16) / 255
    if share <= 0.04045:
        return share / 12.92
    return ((share + 0.055) / 1.055) ** 2.4


def contrast(a: str, b: str) -> float:
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


def over(colour: str, page: str, opacity: float) -> str:
    """The colour that is seen where this one lies over the page."""
    digits = []
    for at in (1, 3, 5):  # red, green, blue
        above = int(colour[at : at + 2], 16)
        below = int(page[at : at + 2], 16)
        digits.append(f"{round(opacity * above + (1 - opacity) * below):02x}")
    return "#" + "".join(digits)


def rules(theme: str) -> dict[str, dict[str, str]]:
    """What is said of each selector, with the theme's colours for its variables."""
    css = Path(still.__file__).parents[1].joinpath("screen.css").read_text(encoding="utf-8")
    on_dark = r"^\[data-jp-theme-light=\"false\"\] \.course-picture "
    lines = [still.PICTURE_CSS]
    for line in css.splitlines():
        if theme == "dark" and re.match(on_dark, line):
            rule = re.sub(on_dark, "", line)
            lines.append(still.Template(rule).substitute(still.COLOURS))
    found: dict[str, dict[str, str]] = {}
    for rule in RULE.finditer("\n".join(lines)):
        said = {}
        for declaration in re.findall(r"[^;]+(?=;)", rule["body"]):
            name, value = declaration.strip().split(": ", 1)
            said[name] = value
        for name, value in said.items():
            variable = re.match(r"var\(--jp-(?:ui-)?(font-color\d|border|layout)", value)
            if variable:
                said[name] = PAGES[theme][variable[1].replace("layout", "page")]
        for selector in re.sub(r":is\((.*)\)", r"\1", rule["selector"]).split(", "):
            found[selector] = found.get(selector, {}) | said
    return found


def seen(said: dict[str, str], page: str) -> float:
    """How far the fill or the outline stands out, whichever does more."""
    contrasts = []
    for kind in ("fill", "stroke"):
        colour = said.get(kind, "none")
        if colour.startswith("#"):
            opacity = float(said.get(f"{kind}-opacity", 1))
            contrasts.append(contrast(over(colour, page, opacity), page))
    return max(contrasts, default=99)


def test_the_formula_is_the_one_of_the_standard():
    assert contrast("#ffffff", "#000000") == 21
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48  # the grey that famously just fails


@pytest.mark.parametrize("theme", PAGES)
def test_words_in_pictures_can_be_read(theme):
    page = PAGES[theme]["page"]
    found = rules(theme)
    words = ("text", ".faint", ".place", ".alarm", ".formula", ".measured-words", ".unseen text")
    for name in words:
        assert seen(found[name], page) >= 4.5, name
    for name in ON_COLOUR:
        assert contrast(still.COLOURS[name], "#111111") >= 4.5, name


@pytest.mark.parametrize("theme", PAGES)
def test_shapes_that_mean_something_stand_out_by_their_fill_or_their_outline(theme):
    page = PAGES[theme]["page"]
    found = rules(theme)
    shapes = [name for name in found if name not in HELPERS and "text" not in name]
    assert len(shapes) > 50
    for name in shapes:
        applied = found.get(ONE_ON_ANOTHER.get(name), {}) | found[name]
        assert seen(applied, page) >= 3, name


def test_digits_can_be_read_on_every_shade():
    colours = dict(re.findall(r"\.([\w-]+) (?:rect|text) { fill: (#\w+)", still.PICTURE_CSS))
    shades = [shade(place, SHADES).split() for place in range(SHADES)]
    assert len({shade for shade, _ in shades}) == SHADES
    # 3 is WCAG's least for large letters; these are bold to the eye.
    assert [shade for shade, ink in shades if contrast(colours[shade], colours[ink]) < 3] == []


def test_a_verdicts_edge_stands_out_on_both_pages():
    for page in PAGES.values():
        assert [word for word, colour in COLOUR.items() if contrast(colour, page["page"]) < 3] == []


def behind(text: Text, axes: Axes) -> str:
    """The colour behind a text of a figure: that of the uppermost patch, or the page's white."""
    x, y = text.get_transform().transform(text.get_unitless_position())
    below = [patch for patch in axes.patches if patch.get_window_extent().contains(x, y)]
    if below:
        *_, opacity = below[-1].get_facecolor()
        if opacity == 1:
            return to_hex(below[-1].get_facecolor())
    return "#ffffff"


def test_words_and_lines_of_figures_stand_out_from_what_is_behind_them():
    drawn = {"formats": range_and_gap(floats.FORMATS)}
    for name, figure in vars(test_figures).items():
        if isinstance(figure, Figure):
            drawn[name] = figure
    assert len(drawn) > 10
    for name, figure in drawn.items():
        for axes in figure.axes:
            for text in axes.texts:
                ratio = contrast(to_hex(text.get_color()), behind(text, axes))
                assert ratio >= 4.5, (name, text.get_text(), ratio)
            for line in (line for line in axes.get_lines() if line.get_gid() != "grid"):
                shown = over(to_hex(line.get_color()), "#ffffff", line.get_alpha() or 1)
                assert contrast(shown, "#ffffff") >= 3, name
