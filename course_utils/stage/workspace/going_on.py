"""Where the reader goes on: the first button of the contents page, and the end of a recall."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_utils.core import record
from course_utils.stage.translations import sentences, templates
from course_utils.stage.translations.edition import ENGLISH, Edition
from course_utils.stage.workspace import progress
from course_utils.stage.workspace.progress import Known


@dataclass(frozen=True)
class GoOn:
    """Where the button leads, and its words.

    `name` is the notebook's file, or empty. If `is_start`, the reader has done nothing yet.
    `finished` is a sentence on what is finished; it is empty if the notebook in which the reader
    was last is not.
    """

    words: str
    name: str
    link: str
    is_start: bool = False
    finished: str = ""


def go_on(
    mine: Path,
    course: Sequence[Known],
    link: Callable[[str], str],
    napkin: str,
    spoken: str = ENGLISH,
) -> GoOn | None:
    """Return where the reader goes on: at the cell that ran last, or else with notebook 1.

    If that notebook is finished, it is the next one that is not, and after the whole course the
    napkin. `link` returns the address that opens a file, and `napkin` is the address of that page.
    The words are in the language `spoken`. None if the course has no notebooks.
    """
    if not course:
        return None
    chapters = [known.about.chapter for known in course]
    chapter, _ = progress.latest(mine)
    if chapter not in chapters:
        first = course[0]
        title = _edition(first, spoken).words(first.about.title, "title")
        words = sentences.start(spoken, 1, title)
        return GoOn(words, first.name, link(first.name), is_start=True)
    here = chapters.index(chapter)
    following = [*range(here, len(course)), *range(here)]
    unfinished = next(_unfinished(mine, course, following), None)
    if unfinished is None:
        words = sentences.said(spoken, templates.TAKE_NAPKIN)
        finished = sentences.said(spoken, templates.ALL_FINISHED)
        return GoOn(words, "", napkin, finished=finished)
    finished = ""
    if unfinished != here:
        finished = sentences.said(spoken, templates.FINISHED, number=here + 1)
    title, address = _at(course[unfinished], mine, link, spoken)
    name = course[unfinished].name
    words = sentences.go_on(spoken, unfinished + 1, title)
    return GoOn(words, name, address, finished=finished)


def _unfinished(mine: Path, course: Sequence[Known], order: Sequence[int]) -> Iterator[int]:
    """Yield the notebooks that are not finished, in that order, by their places in the course."""
    done = record.done(mine)
    guesses = record.guesses(mine)
    for place in order:
        known = course[place]
        chapter = known.about.chapter
        said = record.said_so_far(mine, chapter)
        if not progress.is_finished(known, done, guesses.get(chapter, []), said):
            yield place


def _at(known: Known, mine: Path, link: Callable[[str], str], spoken: str) -> tuple[str, str]:
    """Return the title of the section or turn where the reader is in a notebook, and its address.

    Of a notebook that is not begun, it is the notebook's title.
    """
    cell = record.place(mine, known.about.chapter)
    address = link(known.name)
    title = _edition(known, spoken).words(known.about.title, "title")
    if not cell:
        return title, address
    heading = progress.heading_of(cell, known, mine / known.name)
    if heading:
        title = _edition(known, spoken).words(heading)
    return title, f"{address}#cell-id={cell}" if address else ""


def _edition(known: Known, spoken: str) -> Edition:
    """Return the notebook in that language."""
    return Edition(spoken, known.name.removesuffix(".ipynb"))
