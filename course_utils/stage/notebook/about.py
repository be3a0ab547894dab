"""What a notebook says of itself: in its metadata under the key "course", else in its heading."""

from collections.abc import Mapping
from dataclasses import dataclass

from course_utils.core.say import listed
from course_utils.stage.notebook.files import Cell, Notebook, source
from course_utils.stage.notebook.prose import title_in

KEY = "course"


@dataclass(frozen=True)
class About:
    """A notebook's title, the question that it answers, its minutes, and what its reader needs.

    `needs` has the numbers of other notebooks, or else words. `chapter` is the chapter whose
    checks the notebook's turns call. What is not known is empty, or 0.
    """

    title: str
    question: str = ""
    minutes: int = 0
    minutes_beyond: int = 0
    needs: tuple[str, ...] = ()
    chapter: str = ""

    @property
    def minutes_and_needs(self) -> str:
        """How long it takes and what its reader needs, as sentences.

        >>> About("FLOPs", minutes=65, minutes_beyond=103, needs=("1", "2")).minutes_and_needs
        '65 minutes, and 103 beyond. You need: notebooks 1 and 2.'
        """
        sentences = []
        if self.minutes and self.minutes_beyond:
            sentences.append(f"{self.minutes} minutes, and {self.minutes_beyond} beyond.")
        elif self.minutes:
            sentences.append(f"{self.minutes} minutes.")
        if self.needs:
            sentences.append(f"You need: {self._notebooks_before_numbers()}{listed(self.needs)}.")
        return " ".join(sentences)

    def _notebooks_before_numbers(self) -> str:
        if not self.needs[0].isdecimal():
            return ""
        return "notebook " if len(self.needs) == 1 else "notebooks "


def about(notebook: Notebook, name: str) -> About:
    """What the notebook in the file of that name is about.

    Where the metadata is lost, as Colab may lose it, the heading and the file's name have to do.

    >>> cells = [{"cell_type": "markdown", "source": "# 4 · FLOPs: what a product costs"}]
    >>> about({"cells": cells, "metadata": {}}, "04_flops.ipynb")
    About(title='FLOPs', question='', minutes=0, minutes_beyond=0, needs=(), chapter='flops')
    """
    said = said_in(notebook)
    title = _text(said.get("title"))
    if not title:
        title = _title(notebook["cells"])
    if not title:
        title, _, _ = name.partition(".")
    chapter = _text(said.get("chapter"))
    if not chapter:
        chapter = chapter_in(name)
    return About(
        title=title,
        question=_text(said.get("question")),
        minutes=_whole(said.get("minutes")),
        minutes_beyond=_whole(said.get("minutes_beyond")),
        needs=_texts(said.get("needs")),
        chapter=chapter,
    )


def unknown(name: str) -> About:
    """What is known of a notebook that cannot be read: its file's name.

    >>> unknown("07_mixed_precision.ipynb").title
    'Mixed precision'
    """
    chapter = chapter_in(name)
    return About(title=chapter.replace("_", " ").capitalize(), chapter=chapter)


def with_the_courses_words(own: Notebook, course: Notebook) -> Notebook:
    """The reader's notebook with the course's entry in its metadata; the other entries stay."""
    said = said_in(course)
    if not said:
        return own
    return {**own, "metadata": {**own["metadata"], KEY: said}}


def said_in(notebook: Notebook) -> Mapping[str, object]:
    """The course's entry in the notebook's metadata, or an empty one."""
    metadata = notebook.get("metadata")
    if not isinstance(metadata, dict):
        return {}
    said = metadata.get(KEY)
    return said if isinstance(said, dict) else {}


def chapter_in(name: str) -> str:
    """The chapter of a file: floats for 01_floats.ipynb."""
    _, _, after_number = name.partition("_")
    chapter, _, _ = after_number.partition(".")
    return chapter


def _title(cells: list[Cell]) -> str:
    """The first title in a cell of text. On Colab the first cell of all is code."""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            title = title_in(source(cell))
            if title:
                return title
    return ""


# The metadata may hold anything: whoever edits it by hand makes mistakes.


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
