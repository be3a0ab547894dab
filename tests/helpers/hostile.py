"""What a hostile reader answers to a lab: something legal, something nearly legal, or nonsense."""

import random
from collections.abc import Sequence

import ipywidgets as widgets

from course_utils.engine.labs import fields
from course_utils.engine.labs.control_parts import LARGEST
from course_utils.engine.labs.fields import Field, Said
from course_utils.engine.labs.lab import Lab
from course_utils.engine.labs.named_sizes import Sizes
from course_utils.engine.labs.panel import Panel

SIZES = (1, 2, 3, 7, 32, 100, 1000, 1024, 4096, 16_384, LARGEST)  # small and large, even and odd
FILE = "was_here"  # no lab writes such a file, so if it exists, an answer has been run
# The characters with which an answer is changed a little.
STUFF = "0123456789 .,-+^*:()[]{}<>=>&'\"\\/_abcdehijkxBDK→×"
# Each answer is written as Python writes it. No tuple is among them, because the message that
# ipywidgets would send for one fails.
ODD_TEXTS = (
    "''",
    "' '",
    "'\\x00'",
    "'\\n\\t'",
    "'9' * 100_000",
    "'(' * 3_000",
    "'\\u202e٣½²'",
    "'🦜' * 50",
    "'−1'",
    "'NaN'",
)
# Markup and code that would leave a trace if a page showed it as HTML, or if anything ran it.
INJECTIONS = (
    "'<script>window.wasHere=1</script>'",
    '\'"><img src=x onerror="window.wasHere=1">\'',
    "'&lt;b&gt;'",
    "']]><!--'",
    "'javascript:window.wasHere=1'",
    "'${window.wasHere=1}'",
    "'$x$ \\\\href{javascript:wasHere=1}{x}'",
    "'%s%n'",
    "'</text></svg><iframe srcdoc=\"<script>parent.wasHere=1</script>\">'",
    '\'"><svg onload="wasHere=1">\'',
    f"\"__import__('pathlib').Path('{FILE}').touch()\"",
    f"\"'); open('{FILE}', 'w'); ('\"",
    f"'$(touch {FILE})'",
    f"'../{FILE}'",
    "'../../x'",
    "'{0.__class__}'",
)
NUMBERS = (
    "0",
    "-1",
    "1",
    "2**20",
    "2**63",
    "10**400",
    "-(10**400)",
    "0.5",
    "1e308",
    "-1e-320",
    "nan",
    "inf",
)
OTHER_TYPES = ("None", "True", "False", "[]", "{}", "{'b': 2}", "b'x'")
HOSTILE = ODD_TEXTS + INJECTIONS + NUMBERS + OTHER_TYPES


def legal(field: Field, draw: random.Random, so_far: Said) -> object:
    """Draw a legal answer to a question; which ones are legal can depend on the answers so far."""
    match field:
        case fields.OneOf() | fields.Several() | fields.Typed():
            return _offered(field, draw)
        case fields.Size():
            return draw.choice(SIZES)
        case Sizes():  # small ones, because a lab's work grows with their product
            return {name: draw.choice(SIZES[:5]) for name in field.names(so_far)}
        case fields.Whole():
            return draw.randrange(field.least, field.end(so_far) + 1, field.step)
        case fields.Tick():
            return draw.random() < 0.5
        case fields.Drawn():
            return tuple(draw.choice((None, draw.randrange(field.levels))) for _ in field.marks)
    raise TypeError(f"No answer is known to a {type(field).__name__}.")


def _offered(field: Field, draw: random.Random) -> object:
    """Return one or several of the answers that the field itself offers."""
    if isinstance(field, fields.OneOf):
        return draw.choice(list(field.options.values()))
    if isinstance(field, fields.Several):
        return _some_of(field.options, draw)
    return draw.choice(list(field.examples))


def _some_of(options: Sequence[str], draw: random.Random) -> tuple[str, ...]:
    """At least one of the options, in their order."""
    count = draw.randrange(1, len(options) + 1)
    chosen = draw.sample(list(options), count)
    return tuple(option for option in options if option in chosen)


class Reader:
    """Draws one answer after the other to a lab's questions."""

    def __init__(self, lab: Lab, draw: random.Random) -> None:
        self.lab = lab
        self.draw = draw

    def answer(self, name: str, so_far: dict[str, object]) -> str:
        """Answer the question of that name, in view of the other answers; as Python writes it."""
        kind = self.draw.choice(("legal", "legal", "legal", "nearly", "hostile"))
        if kind == "nearly":
            return repr(self.nearly(str(so_far[name])))
        if kind == "legal":
            try:
                return repr(legal(self.lab.fields[name], self.draw, so_far))
            except ValueError:  # what is legal here depends on another answer, which is nonsense
                pass
        return self.draw.choice(HOSTILE)

    def nearly(self, words: str) -> str:
        """Return the words with up to three changes: a character added, replaced or removed."""
        characters = list(words[:200])
        for _ in range(self.draw.randrange(1, 4)):
            begin = self.draw.randrange(len(characters) + 1)
            written = self.draw.choice((*STUFF, ""))
            end = begin + self.draw.randrange(3)
            characters[begin:end] = written
        return "".join(characters)


def buttons(box: widgets.Widget) -> list[widgets.Button]:
    """Return all buttons in that box, however deep."""
    if isinstance(box, widgets.Button):
        return [box]
    found = []
    for child in getattr(box, "children", ()):
        found.extend(buttons(child))
    return found


def button(panel: Panel, label: str) -> widgets.Button:
    """Return the panel's button with this label."""
    return next(found for found in buttons(panel) if found.description == label)
