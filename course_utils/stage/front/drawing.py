"""The parts of `parts.html` as HTML, and the style of the pages that show them."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from course_utils.core.colours import COLOURS
from course_utils.core.say.language import template, translated
from course_utils.stage.front.cards import FOLDER, STYLE

HERE = Path(__file__).parent
SCRIPT = (HERE / "front.js").read_text(encoding="utf-8")


def environment(folder: Path) -> Environment:
    """Return an environment for the templates of a folder, which may import `parts.html`.

    They say whole sentences by `translated`, as Python does, where an element has other words, too.
    """
    made = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FileSystemLoader([folder, HERE]),
    )
    made.globals.update(translated=translated, template=template)
    return made


def base() -> str:
    """Return the CSS that all pages share: their colours and their type."""
    return (HERE / "base.css").read_text(encoding="utf-8")


def style() -> str:
    """Return the CSS of the parts, with the colours of the series, and of the cards' pictures."""
    own = (HERE / "front.css").read_text(encoding="utf-8")
    # The names of colours, which are Python's, have an underscore where CSS has a hyphen.
    variables = [f"  --{name.replace('_', '-')}: {colour};" for name, colour in COLOURS.items()]
    colours = "\n".join([":root {", *variables, "}"])
    return "\n".join([colours, base(), own, (FOLDER / STYLE).read_text(encoding="utf-8")])
