"""Draws the cards' pictures of the contents page and of the site's front page: `make pictures`.

Each is a part of a lab's drawing without its words, which nobody could read at a card's size. It
shows nothing that its notebook asks the reader to guess. The pages put the pictures into their
HTML, so that they follow a dark theme. They are stored, because a page that had to draw eight labs
first would be late.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from course_utils.chapters import labs
from course_utils.engine.labs.draw import still
from course_utils.engine.labs.session import Session
from course_utils.stage.front.cards import FOLDER, STYLE

WORDS = re.compile(r"<(text|title)\b.*?</\1>", re.DOTALL)
# What only a lab that is alive needs: its handles, names and descriptions.
ALIVE_ONLY = re.compile(r' (?:data-[\w-]+|role|tabindex|aria-[\w-]+)="[^"]*"')
NUMBER = re.compile(r"\d+\.\d+")
SHADE = re.compile(r"^\.course-picture \.(shade-\d+) .*\n", re.MULTILINE)


@dataclass(frozen=True)
class Card:
    """The part of a lab's drawing that a card shows, after a preset."""

    lab: str
    part: str  # x, y, width and height, in the drawing's units
    preset: str = ""

    def session(self) -> Session:
        """Return the lab in that state."""
        session = Session(labs.lab_named(self.lab))
        if self.preset:
            session.preset(self.preset)
        session.set({})  # draws it where no preset does
        return session

    def svg(self) -> str:
        """Return the part of the drawing, without words."""
        light = ALIVE_ONLY.sub("", WORDS.sub("", self.session().shown["svg"]))
        light = NUMBER.sub(lambda number: f"{round(float(number[0]), 1):g}", light)
        x, y, width, height = self.part.split()
        # A drawing inside a drawing is cut at its edges, whatever the shape of the card.
        place = f'x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{self.part}"'
        inner = still.VIEW_BOX.sub(place, light, count=1)
        return f'<svg viewBox="{self.part}">{inner}</svg>\n'


CARDS = {  # by the chapter's name
    "floats": Card("float", "40 22 660 376", preset="0.1 exact?"),
    "tensors": Card("walk", "104 26 560 150", preset="is every second column even?"),
    "einsum": Card("heads", "66 24 476 190"),
    "flops": Card("box", "44 4 372 262", preset="and eight of them?"),
    "gradients": Card("chain", "34 16 960 300"),
    "optimizers": Card("optimizer", "4 40 312 220"),
    "mixed_precision": Card("precision", "62 12 510 150"),
    "checkpointing": Card("plan", "140 40 520 260", preset="a node has it all?"),
}


def drawn() -> dict[str, str]:
    """Return the text of each file: a picture for each chapter, and the style of all."""
    texts = {f"{chapter}.svg": card.svg() for chapter, card in CARDS.items()}
    used = set(re.findall(r"\bshade-\d+\b", "".join(texts.values())))
    # Of 64 shades, the pages get those that are seen.
    texts[STYLE] = SHADE.sub(lambda rule: rule[0] if rule[1] in used else "", still.PAGE_CSS)
    return texts


def draw(folder: Path = FOLDER) -> None:
    """Write the files that are not as the labs draw them now."""
    for name, text in drawn().items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"{name} is drawn anew.")
