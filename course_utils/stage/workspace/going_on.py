"""Where the reader goes on: the first button of the contents page, and the end of a recall."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_utils.core import record
from course_utils.stage.workspace import progress
from course_utils.stage.workspace.progress import Known

ALL_FINISHED = (
    "You have finished all eight notebooks: all turns and guesses of their main paths are done."
)


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
    mine: Path, course: Sequence[Known], link: Callable[[str], str], napkin: str
) -> GoOn | None:
    """Return where the reader goes on: at the cell that ran last, or else with notebook 1.

    If that notebook is finished, it is the next one that is not, and after the whole course the
    napkin. `link` returns the address that opens a file, and `napkin` is the address of that page.
    None if the course has no notebooks.
    """
    if not course:
        return None
    chapters = [known.about.chapter for known in course]
    chapter, _ = progress.latest(mine)
    if chapter not in chapters:
        first = course[0]
        words = f"Start: 1, {first.about.title}"
        return GoOn(words, first.name, link(first.name), is_start=True)
    here = chapters.index(chapter)
    following = [*range(here, len(course)), *range(here)]
    unfinished = next(_unfinished(mine, course, following), None)
    if unfinished is None:
        return GoOn("Take the napkin: ten questions", "", napkin, finished=ALL_FINISHED)
    finished = ""
    if unfinished != here:
        finished = (
            f"You have finished notebook {here + 1}: all turns and guesses of its main path are "
            "done."
        )
    words, address = _at(course[unfinished], mine, link)
    name = course[unfinished].name
    return GoOn(f"Continue: {unfinished + 1}, {words}", name, address, finished=finished)


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


def _at(known: Known, mine: Path, link: Callable[[str], str]) -> tuple[str, str]:
    """Return the title of the section or turn where the reader is in a notebook, and its address.

    Of a notebook that is not begun, it is the notebook's title.
    """
    cell = record.place(mine, known.about.chapter)
    address = link(known.name)
    if not cell:
        return known.about.title, address
    heading = progress.heading_of(cell, known, mine / known.name)
    title = heading if heading else known.about.title
    return title, f"{address}#cell-id={cell}" if address else ""
