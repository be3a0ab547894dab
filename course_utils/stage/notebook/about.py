"""What a notebook says of itself: in its metadata under the key "course", else in its heading."""

from collections.abc import Mapping
from dataclasses import dataclass

from course_utils.core.say import listed
from course_utils.stage.notebook.files import Cell, Notebook, source
from course_utils.stage.notebook.prose import title_in

KEY = "course"


@dataclass(frozen=True)
class About:
    """Its title, the question that it answers, its minutes, and what its reader needs.

    Who needs other notebooks needs their numbers, who needs something else its words.
    `chapter` is the chapter whose checks its turns call. What is not known is empty, or 0.
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
        said = []
        if self.minutes:
            beyond = f", and {self.minutes_beyond} beyond" if self.minutes_beyond else ""
            said.append(f"{self.minutes} minutes{beyond}.")
        if self.needs:
            are_notebooks = self.needs[0].isdecimal()
            notebooks = f"notebook{'s' * (len(self.needs) > 1)} " if are_notebooks else ""
            said.append(f"You need: {notebooks}{listed(self.needs)}.")
        return " ".join(said)


def about(notebook: Notebook, name: str) -> About:
    """What the notebook in the file of that name is about.

    Colab, or whoever copies its cells, may have lost the metadata.

    >>> cells = [{"cell_type": "markdown", "source": "# 4 · FLOPs: what a product costs"}]
    >>> about({"cells": cells, "metadata": {}}, "04_flops.ipynb")
    About(title='FLOPs', question='', minutes=0, minutes_beyond=0, needs=(), chapter='flops')
    """
    said = said_in(notebook)
    return About(
        title=_text(said.get("title")) or _title(notebook["cells"]) or name.partition(".")[0],
        question=_text(said.get("question")),
        minutes=_whole(said.get("minutes")),
        minutes_beyond=_whole(said.get("minutes_beyond")),
        needs=tuple(map(str, needs)) if isinstance(needs := said.get("needs"), list) else (),
        chapter=_text(said.get("chapter")) or chapter_in(name),
    )


def unknown(name: str) -> About:
    """What is known of a notebook that cannot be read: its file's name.

    >>> unknown("07_mixed_precision.ipynb").title
    'Mixed precision'
    """
    chapter = chapter_in(name)
    return About(title=chapter.replace("_", " ").capitalize(), chapter=chapter)


def with_the_courses_words(own: Notebook, course: Notebook) -> Notebook:
    """The reader's notebook with what the course's says of itself; all other metadata stays."""
    said = said_in(course)
    return {**own, "metadata": {**own["metadata"], KEY: said}} if said else own


def said_in(notebook: Notebook) -> Mapping[str, object]:
    """What stands in the metadata; nothing, if nothing of ours does."""
    metadata = notebook.get("metadata")
    said = metadata.get(KEY) if isinstance(metadata, dict) else None
    return said if isinstance(said, dict) else {}


def chapter_in(name: str) -> str:
    """The chapter of a file: floats for 01_floats.ipynb."""
    return name.partition("_")[2].partition(".")[0]


def _title(cells: list[Cell]) -> str:
    """The title in the first text that has one: a copy for Colab begins with code."""
    titles = (title_in(source(cell)) for cell in cells if cell["cell_type"] == "markdown")
    return next(filter(None, titles), "")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
