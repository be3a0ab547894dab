"""A deck for Anki, a program that brings cards back after growing intervals.

`make cards` writes it into cards/course.apkg. A card cannot draw sizes, so each question is there
with several.
"""

import html
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from course_utils.stage.recall.bank import QUESTIONS
from course_utils.stage.recall.napkin import number_of
from course_utils.stage.recall.question import Drawn, distinct

FILE = Path("cards") / "course.apkg"
SIZES_EACH = 4  # how many cards there are of each question
# Anki knows a deck and a kind of card by these numbers, which were drawn once. With the same ones a
# new deck replaces the cards of an old one, and keeps what Anki knows of them.
DECK_ID = 1_876_420_531
MODEL_ID = 1_306_948_277
DECK = "Where the memory and the compute go"
# Colours are left to Anki, which has a dark mode.
STYLE = """.card {
  font-family: system-ui, sans-serif;
  font-size: 20px;
  line-height: 1.45;
  max-width: 36em;
  margin: 0 auto;
}"""


class Card(NamedTuple):
    """A card. `name` stays the same from one version of the course to the next."""

    name: str
    front: str  # in HTML, as is the back
    back: str
    tag: str


def cards() -> Iterator[Card]:
    """Yield the cards, in the order of the notebooks."""
    for question in QUESTIONS.values():
        yield from map(_card, distinct(question, SIZES_EACH))


def write(path: Path, of_deck: Iterable[Card], at_s: float | None = None) -> int:
    """Write a deck of these cards into the file; returns how many there are.

    Anki changes a card that it has if the deck's is newer. The deck is from the time `at_s`, in
    seconds since 1970, or else from now.
    """
    # Only this command needs genanki, which `make cards` installs.
    import genanki

    model = genanki.Model(
        MODEL_ID,
        DECK,
        fields=[{"name": "Front"}, {"name": "Back"}],
        templates=[
            {
                "name": "Card",
                "qfmt": "{{Front}}",
                "afmt": "{{FrontSide}}<hr id=answer>{{Back}}",
            }
        ],
        css=STYLE,
    )
    deck = genanki.Deck(DECK_ID, DECK)
    for card in of_deck:
        fields = [card.front, card.back]
        guid = genanki.guid_for(card.name)
        deck.add_note(genanki.Note(model, fields, guid=guid, tags=[card.tag]))
    path.parent.mkdir(exist_ok=True)
    genanki.Package(deck).write_to_file(path, timestamp=at_s)
    return len(deck.notes)


def _card(drawn: Drawn) -> Card:
    asked = drawn.asked
    notebook = f"notebook-{number_of(drawn.question.chapter)}"
    back = f"<b>{html.escape(asked.answer_text)}</b><br>{html.escape(asked.derivation)}"
    return Card(f"{drawn.question.name} {drawn.seed}", html.escape(asked.text), back, notebook)


def main() -> int:
    """Write the deck; returns the exit code, which is 1 if the file cannot be written."""
    try:
        count = write(FILE, cards())
    except OSError as error:
        print(f"Nothing was written: {error.strerror}, {FILE}.", file=sys.stderr)
        return 1
    print(f"{FILE}: {count} cards. In Anki: File, Import.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
