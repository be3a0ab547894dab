"""Colours stand out as WCAG AA asks: words 4.5 to 1, shapes that mean something 3 to 1, on each page they stand on."""

import re
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from course_utils.chapters.floats.figures import reach_and_step
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
ON_COLOUR = (
    "sign",
    "exponent",
    "fraction",
    "batch",
    "kept",
    "summed",
)  # what #111111 is written on
ONE_ON_ANOTHER = {
    f".part.{part}": ".part"
    for part in (
        "parameters",
        "gradients",
        "optimizer",
        "master",
        "activations",
        "logits",
        "passing",
        "gathered",
    )
}
ONE_ON_ANOTHER |= {".line.under": ".line.predicted"}
HELPERS = {".grid", ".cut", ".saved", ".halo"}  # lines to measure by, and gaps
RULE = re.compile(r"^(?P<selector>[^@\n{]+) \{\s(?P<body>[^}]*)\s\}", re.MULTILINE)


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    low, high = sorted(map(luminance, (a, b)))
    return (high + 0.05) / (low + 0.05)


def over(colour: str, page: str, opacity: float) -> str:
    mixed = [
        opacity * int(colour[n : n + 2], 16) + (1 - opacity) * int(page[n : n + 2], 16)
        for n in (1, 3, 5)
    ]
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def rules(theme: str) -> dict[str, dict[str, str]]:
    """What is said of each selector, with the theme's colours for its variables."""
    css = Path(still.__file__).parents[1].joinpath("screen.css").read_text(encoding="utf-8")
    on_dark = r"^\[data-jp-theme-light=\"false\"\] \.course-picture "
    extra = (
        [line for line in css.splitlines() if re.match(on_dark, line)] if theme == "dark" else []
    )
    lines = still.PICTURE_CSS + "\n".join(
        still.Template(re.sub(on_dark, "", line)).substitute(still.COLOURS) for line in extra
    )
    found: dict[str, dict[str, str]] = {}
    for rule in RULE.finditer(lines):
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
    drawn = [
        over(said[kind], page, float(said.get(f"{kind}-opacity", 1)))
        for kind in ("fill", "stroke")
        if said.get(kind, "none").startswith("#")
    ]
    return max((contrast(colour, page) for colour in drawn), default=99)


def test_the_formula_is_the_one_of_the_standard():
    assert contrast("#ffffff", "#000000") == 21
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48  # the grey that famously just fails


@pytest.mark.parametrize("theme", PAGES)
def test_words_in_pictures_can_be_read(theme):
    page, found = PAGES[theme]["page"], rules(theme)
    words = ("text", ".faint", ".place", ".alarm", ".formula", ".measured-words", ".unseen text")
    assert {
        name: round(seen(found[name], page), 2) for name in words if seen(found[name], page) < 4.5
    } == {}
    assert [name for name in ON_COLOUR if contrast(still.COLOURS[name], "#111111") < 4.5] == []


@pytest.mark.parametrize("theme", PAGES)
def test_shapes_that_mean_something_stand_out_by_their_fill_or_their_outline(theme):
    page, found = PAGES[theme]["page"], rules(theme)
    shapes = {
        name: seen({**found.get(ONE_ON_ANOTHER.get(name), {}), **said}, page)
        for name, said in found.items()
        if name not in HELPERS and "text" not in name
    }
    assert len(shapes) > 50
    assert {name: round(ratio, 2) for name, ratio in shapes.items() if ratio < 3} == {}


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
    """The colour that a text of a figure stands on: of the last patch below its place, or the page's white."""
    x, y = text.get_transform().transform(text.get_unitless_position())
    below = [patch for patch in axes.patches if patch.get_window_extent().contains(x, y)]
    return (
        to_hex(below[-1].get_facecolor())
        if below and below[-1].get_facecolor()[3] == 1
        else "#ffffff"
    )


def test_words_and_lines_of_figures_stand_out_from_what_is_behind_them():
    drawn = {
        name: figure for name, figure in vars(test_figures).items() if isinstance(figure, Figure)
    }
    drawn |= {"formats": reach_and_step(floats.FORMATS)}
    assert len(drawn) > 10
    for name, figure in drawn.items():
        for axes in figure.axes:
            for text in axes.texts:
                ratio = contrast(to_hex(text.get_color()), behind(text, axes))
                assert ratio >= 4.5, (name, text.get_text(), ratio)
            for line in (line for line in axes.get_lines() if line.get_gid() != "grid"):
                shown = over(to_hex(line.get_color()), "#ffffff", line.get_alpha() or 1)
                assert contrast(shown, "#ffffff") >= 3, name
