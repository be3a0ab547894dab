"""Opens the deck of cards in Anki itself, as a reader does who imports it.

`make in-anki` installs Anki's own library in an environment of its own, in .versions. There the
deck is imported into an empty collection, a card is answered, and then the same deck is imported
again, and a newer one in which one card has changed. Each card has to show its question and its
answer, none may be there twice, and what Anki knows of the answered card has to stay.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests import ROOT

ANKI = "26.9.3"
CHANGED = "A derivation that was changed. "
LATER_S = 60.0  # between the two decks
GOOD = 3  # the button of Anki for an answer that was right


def opened(folder: Path) -> dict[str, object]:
    """Import both decks of the folder, and return what Anki has and shows of them.

    This runs where Anki is installed, and the course is not.
    """
    from anki.collection import Collection, ImportAnkiPackageOptions, ImportAnkiPackageRequest

    collection = Collection(str(folder / "collection.anki2"))

    def imported(name: str) -> dict[str, int]:
        options = ImportAnkiPackageOptions()
        request = ImportAnkiPackageRequest(package_path=str(folder / name), options=options)
        log = collection.import_anki_package(request).log
        return {"new": len(log.new), "updated": len(log.updated), "there": len(log.duplicate)}

    first = imported("deck.apkg")
    answered = collection.get_card(collection.find_cards("")[0])
    answered.start_timer()
    collection.sched.answerCard(answered, GOOD)
    again = imported("deck.apkg")
    shown = [shown_of(collection.get_card(card)) for card in collection.find_cards("")]
    newer = imported("newer.apkg")
    return {
        "imports": [first, again, newer],
        "shown": shown,
        "notes": collection.note_count(),
        "decks": [deck.name for deck in collection.decks.all_names_and_ids()],
        "times answered": collection.get_card(answered.id).reps,
        "changed": len(collection.find_notes(f'"{CHANGED.strip()}"')),
    }


def shown_of(card: object) -> list[str]:
    """Return the front and the whole back of a card as Anki shows them, without their style."""
    return [side.partition("</style>")[2] for side in (card.question(), card.answer())]


def faults(found: Mapping[str, object], expected: list[list[str]]) -> Iterator[str]:
    """Yield what is wrong with what Anki has; `expected` are the fronts and backs of all cards."""
    count = len(expected)
    imports = [
        {"new": count, "updated": 0, "there": 0},
        {"new": 0, "updated": 0, "there": count},
        {"new": 0, "updated": count, "there": 0},
    ]
    for which, said, wanted in zip(
        ("first", "second", "newer"), found["imports"], imports, strict=True
    ):
        if said != wanted:
            yield f"The {which} import had {said}, not {wanted}."
    if found["notes"] != count:
        yield f"There are {found['notes']} notes, not {count}."
    if found["times answered"] != 1:
        yield "What Anki knew of the answered card is gone."
    if found["changed"] != 1:
        yield "The card that has changed is as it was."
    different = [one for one in expected if one not in found["shown"]]
    if different or len(found["shown"]) != count:
        yield f"{len(different)} cards are not shown as they were written, such as {different[:1]}."


def main() -> int:
    """Write both decks, open them with Anki, and say what is wrong; returns the exit code."""
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = asked.parse_args()
    if options.inside:
        print(json.dumps(opened(options.inside)))
        return 0

    from course_utils.stage.recall import cards
    from tests.tools.versions import environment

    of_deck = list(cards.cards())
    first, *others = of_deck
    expected = [[card.front, f"{card.front}<hr id=answer>{card.back}"] for card in of_deck]
    python = environment("anki", [f"anki=={ANKI}"])
    with tempfile.TemporaryDirectory() as folder:
        cards.write(Path(folder, "deck.apkg"), of_deck)
        changed = first._replace(back=CHANGED + first.back)
        cards.write(Path(folder, "newer.apkg"), [changed, *others], time.time() + LATER_S)
        command = [python, "-m", "tests.tools.in_anki", "--inside", folder]
        run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found = json.loads(run.stdout)
    wrong = list(faults(found, expected))
    print(f"Anki {ANKI}: {found['notes']} cards in {', '.join(found['decks'])}.")
    print("\n".join(wrong) if wrong else "Each shows its question and answer, and none is twice.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
