"""What a reader has met before a question comes back: the guesses and turns of its section."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course_utils.stage.notebook import code, prose
from course_utils.stage.notebook.about import about
from course_utils.stage.notebook.files import Notebook, read, source
from course_utils.stage.notebook.outline import outline
from course_utils.stage.recall.question import Question


@dataclass(frozen=True)
class Section:
    """A section: its title, and the names by which the record knows its guesses and its turns.

    A name is such as ("floats", "one matrix"), or ("floats", "encode") for a turn. A guess that is
    drawn in a picture is named by the picture's cell.
    """

    title: str
    names: frozenset[tuple[str, str]] = frozenset()


NOWHERE = Section("")  # of a cell that the notebook does not have


def section_of(question: Question, course: Path) -> Section:
    """Return the section of the cell that teaches the question, in the course's notebooks."""
    return _sections_in(course).get(question.cell, NOWHERE)


def notebook_of(question: Question, course: Path) -> str:
    """Return the name of the notebook's file, such as "01_floats.ipynb"; "" if there is none."""
    for path in course.glob(f"*_{question.chapter}.ipynb"):
        return path.name
    return ""


@cache  # the course's own notebooks do not change while a server runs
def _sections_in(course: Path) -> dict[str, Section]:
    """Return the section of each cell, by the cell's id, of all notebooks in the folder."""
    by_cell: dict[str, Section] = {}
    for path in sorted(course.glob("0*.ipynb")):
        try:
            notebook = read(path)
        except (OSError, ValueError):
            continue  # the contents page says what is wrong with it
        by_cell.update(_sections(notebook, about(notebook, path.name).chapter))
    return by_cell


def _sections(notebook: Notebook, chapter: str) -> dict[str, Section]:
    """Return the section of each cell of the notebook.

    A cell with a heading inside it belongs to the section that begins there.
    """
    has = outline(notebook)
    checks = {turn.cells[0]: turn.exercise for turn in has.turns}
    drawn = {part.id for part in has.parts if part.is_drawn_guess}
    titles: dict[str, str] = {}  # by the cell's id
    names: dict[str, set[tuple[str, str]]] = {}  # by the section's title
    title = ""
    for cell in notebook["cells"]:
        text = source(cell)
        if cell["cell_type"] == "markdown":
            for heading in prose.headings(text):
                title = heading.title if heading.level == 2 else title
        here = names.setdefault(title, set())
        titles[cell["id"]] = title
        if cell["id"] in checks:
            here.add((chapter, checks[cell["id"]]))
        if cell["id"] in drawn:
            here.add((chapter, cell["id"]))
        if cell["cell_type"] == "code":
            here.update((chapter, name) for name in _asked(text))
    return {cell: Section(title, frozenset(names[title])) for cell, title in titles.items()}


def _asked(text: str) -> Iterator[str]:
    """Yield the names of the guesses that a cell of code asks for."""
    if "ask(" in text:  # most cells have none, and need not be parsed
        for ask in code.asks_in(text):
            yield from ask.questions
