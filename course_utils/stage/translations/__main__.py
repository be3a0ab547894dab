"""`make translations`: bring the catalogues of all languages up to date, and list what is left.

LANGUAGE=de does so for one language, and begins it if there is none. Where a page has a
translation, it is written beside the English one, such as `README.zh.md`. The numbers of what is
translated go to `counts.json`, which a test compares with the notebooks as they are.

`python -m course_utils.stage.translations check zh_CN 04_flops` says only what is wrong with the
entries of one catalogue, and changes nothing.
"""

import json
import re
import sys

from course_utils.core.record import write_whole
from course_utils.stage.translations import catalogue, pages
from course_utils.stage.translations.catalogue import MISSING, STALE, TRANSLATED, Compared, Row
from course_utils.stage.translations.entry import faults
from course_utils.stage.translations.sources import Unit, sources

COUNTS = "counts.json"
SHOWN = 60  # characters of a text in the list of what is to be done


def main(arguments: list[str]) -> int:
    """Bring catalogues up to date, or check some of them; return the exit status."""
    if arguments[:1] == ["check"]:
        language, *names = arguments[1:]
        return checked(language, names)
    for language in arguments or catalogue.languages():
        if not re.fullmatch(r"[a-z]{2,3}(_[A-Z]{2})?", language):
            print(f"LANGUAGE={language} is no code of a language, such as de or pt_BR.")
            return 2
        for name, units in sources().items():
            bring_up_to_date(language, name, units)
        pages.write(language)
    write_whole(catalogue.FOLDER / COUNTS, f"{json.dumps(counted(), indent=1)}\n".encode())
    return 0


def counted() -> dict[str, dict[str, dict[str, int]]]:
    """Return how many units are translated, stale, missing and orphaned, by language and source."""
    found = {}
    now = sources()
    for language in catalogue.languages():
        found[language] = {}
        for name, units in now.items():
            entries = catalogue.entries(catalogue.path_of(language, name))
            found[language][name] = catalogue.compared(units, entries).counts
    return found


def bring_up_to_date(language: str, name: str, units: list[Unit]) -> None:
    """Write the catalogue of one source with what the source has now, and print what is left."""
    path = catalogue.path_of(language, name)
    now = catalogue.compared(units, catalogue.entries(path))
    catalogue.write(path, language, now.rows)
    print(f"{path.parent.name}/{path.name}: {in_words(now)}")
    for row in now.rows:
        if row.state == STALE:
            print(f"  stale, in {row.unit.context}:")
            print(f"    was: {row.before}")
            print(f"    is:  {row.unit.english}")
    _print_missing([row for row in now.rows if row.state == MISSING], now)
    for entry in now.orphans:
        print(f"  dropped, since nothing in {name} is like it: {_beginning(entry.msgid)}")


def _print_missing(missing: list[Row], now: Compared) -> None:
    """Print what is missing, unless it is everything."""
    if len(missing) == len(now.rows):
        return
    for row in missing:
        print(f"  missing, in {row.unit.context}: {_beginning(row.unit.english)}")


def checked(language: str, names: list[str]) -> int:
    """Print what is wrong with the entries of some catalogues, or of all; returns 1 if anything.

    The entries are compared with the sources as they are now.
    """
    found = 0
    for name, units in sources().items():
        if names and name not in names:
            continue
        now = catalogue.compared(units, catalogue.entries(catalogue.path_of(language, name)))
        print(f"{language}/{name}.po: {in_words(now)}")
        for row in now.rows:
            wrong = wrong_with(row, language)
            found += len(wrong)
            for sentence in wrong:
                print(f"  {row.unit.context}, {_beginning(row.unit.english)}: {sentence}")
    return int(found > 0)


def wrong_with(row: Row, language: str) -> list[str]:
    """Return what is wrong with a translation; nothing of one that nobody is shown."""
    if row.state != TRANSLATED:
        return []
    return faults(row.unit.english, row.translation, language)


def in_words(now: Compared) -> str:
    """Return the counts, such as "12 translated, 0 stale, 3 missing, 0 orphaned"."""
    return ", ".join(f"{count} {state}" for state, count in now.counts.items())


def _beginning(text: str) -> str:
    """Return the text, or its beginning if it is long."""
    line = text.replace("\n", " ")
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
