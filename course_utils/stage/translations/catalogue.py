"""The catalogue of a source in one language: a PO file, compared with what the source has now.

An entry is found by its context and the very English text. So a change of the English makes its
entry stale at once: the English is shown until somebody has looked at the entry. What a file's
header says is neither read nor needed.
"""

from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path

import polib

from course_utils.core.record import write_whole
from course_utils.stage.translations.sources import Unit

FOLDER = Path(__file__).parent  # has a folder for each language
FUZZY = "fuzzy"  # gettext's word for an entry whose English has changed
ALIKE = 0.4  # two texts of one cell that are at least so similar are taken for the same one
TRANSLATED = "translated"
STALE = "stale"
MISSING = "missing"
ORPHANED = "orphaned"


@dataclass(frozen=True)
class Row:
    """A unit of the source, its translation, and how it stands with it.

    `before` is the English that a stale translation was made from.
    """

    unit: Unit
    state: str
    translation: str = ""
    before: str = ""
    comment: str = ""  # the translator's


@dataclass(frozen=True)
class Compared:
    """A source's units as rows, and the entries of its catalogue that belong to none of them."""

    rows: list[Row]
    orphans: list[polib.POEntry] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """How many units are translated, stale and missing, and how many entries are orphaned."""
        counts = dict.fromkeys((TRANSLATED, STALE, MISSING), 0)
        for row in self.rows:
            counts[row.state] += 1
        return {**counts, ORPHANED: len(self.orphans)}


def languages() -> list[str]:
    """Return the languages that have a folder of catalogues, such as "zh_CN"."""
    return sorted({path.parent.name for path in FOLDER.glob("*/*.po")})


def path_of(language: str, source: str) -> Path:
    """Return the path of a catalogue."""
    return FOLDER / language / f"{source}.po"


def entries(path: Path) -> list[polib.POEntry]:
    """Return the entries of a catalogue; none if there is no such file."""
    if not path.is_file():
        return []
    return [entry for entry in polib.pofile(str(path), encoding="utf-8") if not entry.obsolete]


def compared(units: list[Unit], catalogue: list[polib.POEntry]) -> Compared:
    """Compare what the source has now with the catalogue."""
    left = {(entry.msgctxt or "", entry.msgid): entry for entry in catalogue}
    rows = []
    for unit in units:
        entry = left.pop((unit.context, unit.english), None)
        rows.append(_row(unit, entry) if entry else Row(unit, MISSING))
    left = {key: entry for key, entry in left.items() if entry.msgstr}
    rows = _with_moved(rows, left)
    rows = _with_changed(rows, left)
    return Compared(rows, list(left.values()))


def _row(unit: Unit, entry: polib.POEntry) -> Row:
    """Return the row of a unit that has an entry of its own."""
    if not entry.msgstr:
        return Row(unit, MISSING, comment=entry.tcomment)
    state = STALE if FUZZY in entry.flags else TRANSLATED
    return Row(unit, state, entry.msgstr, entry.previous_msgid or "", entry.tcomment)


def _with_moved(rows: list[Row], left: dict[tuple[str, str], polib.POEntry]) -> list[Row]:
    """Give units that were moved to another place, word by word, the entries that they had."""
    found = []
    for row in rows:
        same = [key for key in left if key[1] == row.unit.english]
        if row.state == MISSING and same:
            found.append(_row(row.unit, left.pop(same[0])))
        else:
            found.append(row)
    return found


def _with_changed(rows: list[Row], left: dict[tuple[str, str], polib.POEntry]) -> list[Row]:
    """Give units that were changed the entries that they had, as stale ones."""
    found = []
    for row in rows:
        key = _most_alike(row.unit, left) if row.state == MISSING else None
        if key is None:
            found.append(row)
            continue
        entry = left.pop(key)
        # Where the entry was stale before, the translation is still that of the older English.
        before = entry.previous_msgid or entry.msgid
        found.append(Row(row.unit, STALE, entry.msgstr, before, entry.tcomment))
    return found


def _most_alike(unit: Unit, left: dict[tuple[str, str], polib.POEntry]) -> tuple[str, str] | None:
    """Return the key of the entry, in the same context, that is most like the unit; or None."""
    best = None
    most = ALIKE
    for context, english in left:
        if context == unit.context:
            alike = SequenceMatcher(None, english, unit.english, autojunk=False).ratio()
            if alike >= most:
                most = alike
                best = (context, english)
    return best


def write(path: Path, language: str, rows: list[Row]) -> None:
    """Write the catalogue, in the source's order. Nothing in it says when it was written."""
    catalogue = polib.POFile(wrapwidth=0)
    catalogue.metadata = {
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
    }
    for row in rows:
        is_stale = row.state == STALE
        catalogue.append(
            polib.POEntry(
                msgctxt=row.unit.context,
                msgid=row.unit.english,
                msgstr=row.translation,
                comment=row.unit.note,
                tcomment=row.comment,
                flags=[FUZZY] if is_stale else [],
                previous_msgid=row.before if is_stale and row.before else None,
            )
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, f"{catalogue}".rstrip("\n").encode() + b"\n")


class Translations:
    """What a catalogue says to its readers: translations that are complete and not stale."""

    def __init__(self, catalogue: list[polib.POEntry]) -> None:
        self._by_place: dict[tuple[str, str], str] = {}
        self._by_text: dict[str, set[str]] = {}
        for entry in catalogue:
            if entry.msgstr and FUZZY not in entry.flags:
                self._by_place[entry.msgctxt or "", entry.msgid] = entry.msgstr
                self._by_text.setdefault(entry.msgid, set()).add(entry.msgstr)

    @property
    def any(self) -> bool:
        """Whether there is any translation at all."""
        return bool(self._by_place)

    @property
    def by_english(self) -> dict[str, str]:
        """All translations by their English, for sources in which a place changes no meaning."""
        return {english: translation for (_, english), translation in self._by_place.items()}

    def find(self, context: str, english: str) -> str | None:
        """Return the translation of a text, or None.

        A part of a cell, such as "c0a1-2", has the cell's context. A text that stands elsewhere
        too, as a title in a list does, is found by its words if all its translations are the same.
        """
        cell, _, _ = context.rpartition("-")
        for place in (context, cell):
            if (place, english) in self._by_place:
                return self._by_place[place, english]
        elsewhere = self._by_text.get(english, set())
        return next(iter(elsewhere)) if len(elsewhere) == 1 else None


def translations(language: str, source: str) -> Translations:
    """Return what the catalogue of a source says; nothing if there is no such file."""
    path = path_of(language, source)
    changed_ns = path.stat().st_mtime_ns if path.is_file() else 0
    return _translations(path, changed_ns)


@lru_cache(64)
def _translations(path: Path, changed_ns: int) -> Translations:
    """Return what the file said at that time. It is cached, since a page reads all of them."""
    return Translations(entries(path))
