"""A language for tests in which everything is translated: each English unit in quotation marks."""

from pathlib import Path

from course_utils.stage.translations import catalogue
from course_utils.stage.translations.catalogue import TRANSLATED, Row
from course_utils.stage.translations.sources import Unit, sources

QUOTED = "xq"  # its code, which no language has


def quoted(english: str) -> str:
    """Return the translation of a unit: «English», and in a row of a table each column so."""
    if not english.startswith("|"):
        return f"«{english}»"
    columns = english.split("|")
    return "|".join(f" «{column.strip()}» " if column.strip() else column for column in columns)


def write_quoted(folder: Path) -> None:
    """Write catalogues with everything translated into that folder."""
    for name, units in sources().items():
        rows = [Row(unit, TRANSLATED, quoted(unit.english)) for unit in units]
        catalogue.write(folder / QUOTED / f"{name}.po", QUOTED, rows)


def write_some(folder: Path, language: str, source: str, some: dict[tuple[str, str], str]) -> None:
    """Write a catalogue with these translations, by context and English."""
    rows = []
    for (context, english), translation in some.items():
        rows.append(Row(Unit(context, english), TRANSLATED, translation))
    catalogue.write(folder / language / f"{source}.po", language, rows)
