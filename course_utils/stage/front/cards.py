"""A picture for each notebook's card: a part of one of its labs, stored by `make pictures`."""

from functools import cache
from pathlib import Path

from markupsafe import Markup

FOLDER = Path(__file__).with_name("labs")
STYLE = "labs.css"  # the file with the pictures' colours


@cache
def picture(chapter: str) -> Markup:
    """Return the picture of that chapter as SVG; empty if there is none."""
    try:
        return Markup((FOLDER / f"{chapter}.svg").read_text(encoding="utf-8"))
    except OSError:  # a notebook that somebody has added to the course
        return Markup()
