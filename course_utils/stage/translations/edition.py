"""A source in one language, for whoever shows it: the last step, after everything was found in it.

What a notebook has is found by the wording of its English. So whoever shows a notebook parses the
English, and asks an edition last. A translated cell carries its English along, and `in_english`
gives it back to whoever has to parse a copy.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from course_utils.stage.notebook.files import Cell, Notebook, contents_of, parsed, source
from course_utils.stage.translations import catalogue
from course_utils.stage.translations.catalogue import Translations
from course_utils.stage.translations.sources import anchor_of, placed
from course_utils.stage.translations.units import ENGLISH, pieces

CARRIED = "course_translated"  # the entry of a cell's metadata with its language and its English
BETWEEN_COLUMNS = re.compile(r"(?<!\\)\|")
BEGIN_OF_ENGLISH = f'<span lang="{ENGLISH}">'
END_OF_ENGLISH = "</span>"


@dataclass(frozen=True)
class Edition:
    """One source, such as "04_flops" or "GLOSSARY", in one language.

    A source of which nothing is translated is shown as it is, without any marks.
    """

    language: str
    source: str

    @cached_property
    def translations(self) -> Translations:
        """What the catalogue says, as it was when it was first asked."""
        return catalogue.translations(self.language, self.source)

    @property
    def is_english(self) -> bool:
        """Whether nothing is translated."""
        return self.language == ENGLISH or not self.translations.any

    @property
    def shown_language(self) -> str:
        """The language for an element's `lang`, such as "zh-CN"."""
        return ENGLISH if self.is_english else self.language.replace("_", "-")

    def text(self, context: str, english: str) -> str:
        """Return a text in Markdown, each unit translated, or else marked as English."""
        if self.is_english:
            return english
        shown = []
        for piece in pieces(english):
            shown.append(self._unit(context, piece.text) if piece.is_unit else piece.text)
        return "".join(shown)

    def words(self, english: str, context: str = "") -> str:
        """Return a title or another single unit translated, or else as it is, without marks."""
        if self.is_english:
            return english
        return self.translations.find(context, english) or english

    def page(self, english: str) -> str:
        """Return a page of text. Its headings keep the anchors that links lead to."""
        if self.is_english:
            return english
        shown = []
        for place in placed(english):
            text = place.text
            if place.is_unit:
                text = self._unit(place.context, text)
            if place.is_heading and place.is_unit and not place.has_anchor:
                text = f'<a id="{anchor_of(place.text)}"></a>{text}'
            shown.append(text)
        return "".join(shown)

    def notebook(self, english: Notebook) -> Notebook:
        """Return the notebook with its cells of text translated; each carries its English."""
        if self.is_english:
            return english
        return {**english, "cells": [self._cell(cell) for cell in english["cells"]]}

    def contents(self, english: bytes, *, is_notebook: bool) -> bytes:
        """Return the contents of a file, a notebook or a page, in this language.

        ValueError if it is no notebook that the course can read.
        """
        if is_notebook:
            notebook = parsed(english)
            return english if self.is_english else contents_of(self.notebook(notebook))
        return self.page(english.decode()).encode()

    def _cell(self, cell: Cell) -> Cell:
        """Return the cell translated, if it is one of text."""
        if cell["cell_type"] != "markdown":
            return cell
        english = source(cell)
        shown = self.text(cell["id"], english)
        carried = {"language": self.language, "english": english}
        metadata = {**cell["metadata"], CARRIED: carried}
        return {**cell, "source": shown.splitlines(keepends=True), "metadata": metadata}

    def _unit(self, context: str, english: str) -> str:
        translation = self.translations.find(context, english)
        return marked(english) if translation is None else translation


IN_ENGLISH = Edition(ENGLISH, "")  # any source as it is


def marked(english: str) -> str:
    """Return a unit marked as English, each column of a table's row by itself.

    >>> marked("Not yet.")
    '<span lang="en">Not yet.</span>'
    """
    if not english.startswith("|"):
        return f"{BEGIN_OF_ENGLISH}{english}{END_OF_ENGLISH}"
    columns = []
    for column in BETWEEN_COLUMNS.split(english):
        words = column.strip()
        columns.append(column.replace(words, marked(words)) if words else column)
    return "|".join(columns)


def in_english(notebook: Notebook) -> Notebook:
    """Return the notebook with the English of its translated cells, for whoever parses it.

    What a reader has written into a translated cell is not in it.
    """
    return {**notebook, "cells": [_in_english(cell) for cell in notebook["cells"]]}


def language_of(notebook: Notebook) -> str:
    """Return the language that most of the notebook's translated cells are in, or English."""
    spoken = Counter(carried["language"] for carried in map(_carried, notebook["cells"]) if carried)
    return spoken.most_common(1)[0][0] if spoken else ENGLISH


def _in_english(cell: Cell) -> Cell:
    carried = _carried(cell)
    if not carried:
        return cell
    rest = {name: value for name, value in cell["metadata"].items() if name != CARRIED}
    return {**cell, "source": carried["english"], "metadata": rest}


def _carried(cell: Cell) -> dict[str, str]:
    """Return what a translated cell carries; empty if it is not translated, or was damaged."""
    metadata = cell.get("metadata")
    carried = metadata.get(CARRIED) if isinstance(metadata, dict) else None
    if not isinstance(carried, dict):
        return {}
    is_whole = all(isinstance(carried.get(name), str) for name in ("language", "english"))
    return carried if is_whole else {}
