"""What there is to translate: the notebooks and the pages of text, each as a list of units.

Everything is read anew from the course's own files each time, so no list of it can be out of date.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils.stage.notebook import prose
from course_utils.stage.notebook.about import course_entry
from course_utils.stage.notebook.files import Notebook, read, source
from course_utils.stage.translations import package
from course_utils.stage.translations.templates import CONTENTS, SENTENCES, TEMPLATES, units_of
from course_utils.stage.translations.units import pieces, units

ROOT = Path(__file__).parents[3]  # the folder of a clone
PAGES = ("notebooks/GLOSSARY.md", "notebooks/INSTRUCTORS.md", "README.md")
SENTENCES_OF_CODE = "sentences"  # the catalogue of what the package says to a reader
EXERCISES = "exercises"  # and that of what it says about an answer: advice, reasons and hints
SOLUTION = "Solution"  # the title of all solutions, which is translated once in each notebook
ABOUT = ("title", "question")  # what a notebook's metadata say in words
HEADING = re.compile(r'#{1,6} (?:<a id="(?P<anchor>[^"]*)"></a>)?')
ON_A_SLIDE = "on a slide, where no picture can be moved"


@dataclass(frozen=True)
class Unit:
    """A text that is translated as a whole, and where it stands.

    `context` is a cell's id, or on a page the nearest heading's anchor. `note` is for translators.
    """

    context: str
    english: str
    note: str = ""


def sources(root: Path = ROOT) -> dict[str, list[Unit]]:
    """Return the units of each source, by its name, such as "04_flops" or "GLOSSARY"."""
    found = {}
    for path in sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        found[path.stem] = of_notebook(read(path))
    for page in PAGES:
        path = root / page
        found[path.stem] = of_page(path.read_text(encoding="utf-8"))
    found[CONTENTS] = of_templates(root / "course_utils" / "stage")
    sentences = package.sentences_of(root / "course_utils")
    found[SENTENCES_OF_CODE] = _as_units(sentences + package.labels_of_labs())
    found[EXERCISES] = _as_units(package.exercises_of(root / "course_utils"))
    return found


def _as_units(found: list[tuple[str, str]]) -> list[Unit]:
    return [Unit(context, english) for context, english in found]


def of_templates(folder: Path) -> list[Unit]:
    """Return the units of the contents pages: their sentences, and those of their templates.

    The context of the latter is the template's path.
    """
    found = [Unit("sentence", sentence) for sentence in SENTENCES]
    for name in TEMPLATES:
        text = (folder / name).read_text(encoding="utf-8")
        found += [Unit(name, unit) for unit in units_of(text)]
    return _each_once(found)


def of_notebook(notebook: Notebook) -> list[Unit]:
    """Return the units of a notebook: its metadata's words, then those of its cells of text."""
    entry = course_entry(notebook)
    found = [Unit(name, str(entry[name])) for name in ABOUT if entry.get(name)]
    for need in entry.get("needs", ()):
        if not str(need).isdecimal():
            found.append(Unit("needs", str(need)))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            found += of_cell(cell["id"], source(cell))
    return _each_once(found)


def of_cell(context: str, text: str) -> list[Unit]:
    """Return the units of a cell of text, and those that a slide has instead.

    A slide leaves out sentences on what to do in a live picture. What remains of a paragraph is a
    unit of its own, since nobody can say which sentences of a translation to leave out.
    """
    found = []
    for unit in units(text):
        found.append(Unit(SOLUTION.lower() if unit == SOLUTION else context, unit))
    on_a_slide = prose.for_a_still(prose.without_contents(prose.without_folds(text)))
    here = {unit.english for unit in found}
    for unit in units(on_a_slide) + units(prose.without_contents(text)):
        if unit not in here:
            found.append(Unit(context, unit, ON_A_SLIDE))
    return found


def of_page(text: str) -> list[Unit]:
    """Return the units of a page of text, whose contexts are its headings' anchors.

    >>> of_page('# Words\\n\\n## <a id="gb"></a>GB\\n\\nA unit.')[-1]
    Unit(context='gb', english='A unit.', note='')
    """
    found = [Unit(place.context, place.text) for place in placed(text) if place.is_unit]
    return _each_once(found)


@dataclass(frozen=True)
class Placed:
    """A piece of a page, and the anchor of the heading that it stands below, or is.

    `has_anchor` says that the heading's marks name its anchor.
    """

    text: str
    context: str
    is_unit: bool
    is_heading: bool = False
    has_anchor: bool = False


def placed(text: str) -> Iterator[Placed]:
    """Yield the pieces of a page with their places."""
    context = ""
    marks = None  # those of a heading, where its words come next
    for piece in pieces(text):
        begins_a_heading = HEADING.fullmatch(piece.text)
        is_heading = marks is not None and not begins_a_heading
        named = marks["anchor"] if is_heading else None
        if is_heading:
            context = named or anchor_of(piece.text)
        yield Placed(piece.text, context, piece.is_unit, is_heading, bool(named))
        marks = begins_a_heading


def anchor_of(heading: str) -> str:
    """Return the anchor that a heading without one gets from its words, as on GitHub.

    >>> anchor_of("A class on a JupyterHub")
    'a-class-on-a-jupyterhub'
    """
    words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return words.replace(" ", "-")


def _each_once(found: list[Unit]) -> list[Unit]:
    """Return the units without those that stand in the same context twice."""
    once = {}
    for unit in found:
        once.setdefault((unit.context, unit.english), unit)
    return list(once.values())
