"""A notebook's title, question and minutes, from its metadata or else from its heading."""

from collections.abc import Mapping
from dataclasses import dataclass

from course_utils.core.say import listed
from course_utils.stage.notebook.files import Cell, Notebook, source
from course_utils.stage.notebook.prose import title_in

KEY = "course"  # of the course's entry in a notebook's metadata


@dataclass(frozen=True)
class About:
    """A notebook's title, the question that it answers, its minutes, and what its reader needs.

    `needs` has the numbers of the notebooks to read before, or else other words. `chapter` is the
    chapter whose checks the notebook's turns call. A field that is not known is empty, or 0.
    """

    title: str
    question: str = ""
    minutes: int = 0
    minutes_beyond: int = 0
    needs: tuple[str, ...] = ()
    chapter: str = ""

    @property
    def minutes_and_needs(self) -> str:
        """How long the notebook takes and what its reader needs, as sentences.

        >>> About("FLOPs", minutes=65, minutes_beyond=103, needs=("1", "2")).minutes_and_needs
        '65 minutes, and 103 beyond. You need: notebooks 1 and 2.'
        """
        sentences = []
        if self.minutes and self.minutes_beyond:
            sentences.append(f"{self.minutes} minutes, and {self.minutes_beyond} beyond.")
        elif self.minutes:
            sentences.append(f"{self.minutes} minutes.")
        if self.needs:
            word = self._word_before_needs()
            sentences.append(f"You need: {word}{listed(self.needs)}.")
        return " ".join(sentences)

    def _word_before_needs(self) -> str:
        """Return "notebook " or "notebooks " before numbers, and "" before a word like "Python"."""
        if not self.needs[0].isdecimal():
            return ""
        return "notebook " if len(self.needs) == 1 else "notebooks "


def about(notebook: Notebook, name: str) -> About:
    """Return the notebook's title, question, minutes and needs; `name` is its file's name.

    Where the metadata has no entry of the course, since Colab may lose it, the title is taken from
    the heading or else from the file's name, and the chapter from the file's name.

    >>> cells = [{"cell_type": "markdown", "source": "# 4 · FLOPs: what a product costs"}]
    >>> about({"cells": cells, "metadata": {}}, "04_flops.ipynb")
    About(title='FLOPs', question='', minutes=0, minutes_beyond=0, needs=(), chapter='flops')
    """
    entry = course_entry(notebook)
    title = _text(entry.get("title"))
    if not title:
        title = _title(notebook["cells"])
    if not title:
        title, _, _ = name.partition(".")
    chapter = _text(entry.get("chapter"))
    if not chapter:
        chapter = chapter_in(name)
    return About(
        title=title,
        question=_text(entry.get("question")),
        minutes=_whole(entry.get("minutes")),
        minutes_beyond=_whole(entry.get("minutes_beyond")),
        needs=_texts(entry.get("needs")),
        chapter=chapter,
    )


def unknown(name: str) -> About:
    """Return the little that is known of a notebook that cannot be read, from its file's name.

    >>> unknown("07_mixed_precision.ipynb").title
    'Mixed precision'
    """
    chapter = chapter_in(name)
    return About(title=chapter.replace("_", " ").capitalize(), chapter=chapter)


def with_course_entry(own: Notebook, course: Notebook) -> Notebook:
    """Return the reader's notebook with the metadata entry KEY of the course's notebook.

    So a copy has the title, question and minutes that the course has now. The reader's other
    metadata stays.
    """
    entry = course_entry(course)
    if not entry:  # the reader's copy keeps the entry that it has
        return own
    return {**own, "metadata": {**own["metadata"], KEY: entry}}


def course_entry(notebook: Notebook) -> Mapping[str, object]:
    """Return the course's entry in the notebook's metadata, or an empty one if there is none."""
    metadata = notebook.get("metadata")
    if not isinstance(metadata, dict):
        return {}
    entry = metadata.get(KEY)
    return entry if isinstance(entry, dict) else {}


def chapter_in(name: str) -> str:
    """Return the chapter in a file's name, such as "floats" in "01_floats.ipynb"."""
    _, _, after_number = name.partition("_")
    chapter, _, _ = after_number.partition(".")
    return chapter


def _title(cells: list[Cell]) -> str:
    """Return the first title in a cell of text, or "" if there is none.

    It need not be in the first cell, because copies for Colab have a cell before it.
    """
    for cell in cells:
        if cell["cell_type"] == "markdown":
            title = title_in(source(cell))
            if title:
                return title
    return ""


# Somebody may have edited the metadata by hand, so a value of a wrong type counts as none.


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
