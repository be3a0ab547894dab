"""What a hostile reader answers to a lab, drawn from its fields: legal, nearly legal, or nonsense."""

import random

import ipywidgets as widgets

from course_utils.engine.labs import fields
from course_utils.engine.labs.control_parts import LARGEST
from course_utils.engine.labs.fields import Field, Said
from course_utils.engine.labs.lab import Lab
from course_utils.engine.labs.panel import Panel

SIZES = (1, 2, 3, 7, 32, 100, 1000, 1024, 4096, 16_384, LARGEST)  # small and large, even and odd
FILE = "was_here"  # which no lab writes
STUFF = "0123456789 .,-+^*:()[]{}<>=>&'\"\\/_abcdehijkxBDK→×"
# Nonsense, and what would leave a trace if it were run, as Python says it. No tuples: ipywidgets' message for one fails.
HOSTILE = (
    *("''", "' '", "'\\x00'", "'\\n\\t'", "'9' * 100_000", "'(' * 3_000", "'\\u202e٣½²'", "'🦜' * 50", "'−1'", "'NaN'"),
    *("'<script>window.wasHere=1</script>'", "'\"><img src=x onerror=\"window.wasHere=1\">'", "'&lt;b&gt;'", "']]><!--'"),
    *("'javascript:window.wasHere=1'", "'${window.wasHere=1}'", "'$x$ \\\\href{javascript:wasHere=1}{x}'", "'%s%n'"),
    *("'</text></svg><iframe srcdoc=\"<script>parent.wasHere=1</script>\">'", "'\"><svg onload=\"wasHere=1\">'"),
    *(f"\"__import__('pathlib').Path('{FILE}').touch()\"", f"\"'); open('{FILE}', 'w'); ('\"", f"'$(touch {FILE})'"),
    *(f"'../{FILE}'", "'../../x'", "'{0.__class__}'", "0", "-1", "1", "2**20", "2**63", "10**400", "-(10**400)"),
    *("0.5", "1e308", "-1e-320", "nan", "inf", "None", "True", "False", "[]", "{}", "{'b': 2}", "b'x'"),
)  # fmt: skip


def legal(field: Field, draw: random.Random, so_far: Said) -> object:
    """A legal answer to a question, in view of those that were drawn before it."""
    match field:
        case fields.Size():
            return draw.choice(SIZES)
        case fields.Sizes():  # small ones: their product is what costs
            return {name: draw.choice(SIZES[:5]) for name in field.names(so_far)}
        case fields.OneOf():
            return draw.choice(list(field.options.values()))
        case fields.Several():
            some = draw.sample(list(field.options), draw.randrange(1, len(field.options) + 1))
            return tuple(name for name in field.options if name in some)
        case fields.Whole():
            return draw.randrange(field.least, field.end(so_far) + 1, field.step)
        case fields.Tick():
            return draw.random() < 0.5
        case fields.Drawn():
            return tuple(draw.choice((None, draw.randrange(field.levels))) for _ in field.marks)
        case fields.Typed():
            return draw.choice(list(field.examples))
    raise TypeError(f"No answer is known to a {type(field).__name__}.")


class Reader:
    """Draws one answer after the other to a lab's questions."""

    def __init__(self, lab: Lab, draw: random.Random) -> None:
        self.lab, self.draw = lab, draw

    def answer(self, name: str, so_far: dict[str, object]) -> str:
        """To the question of that name, in view of the other answers; as Python says it."""
        kind = self.draw.choice(("legal", "legal", "legal", "nearly", "hostile"))
        if kind == "nearly":
            return repr(self.nearly(str(so_far[name])))
        if kind == "legal":
            try:
                return repr(legal(self.lab.fields[name], self.draw, so_far))
            except ValueError:  # another answer is nonsense, and says what this one may be
                pass
        return self.draw.choice(HOSTILE)

    def nearly(self, words: str) -> str:
        """The words, with a few characters changed."""
        words = list(words[:200])
        for _ in range(self.draw.randrange(1, 4)):
            place = self.draw.randrange(len(words) + 1)
            words[place : place + self.draw.randrange(3)] = self.draw.choice((*STUFF, ""))
        return "".join(words)


def buttons(box: widgets.Widget) -> list[widgets.Button]:
    """All that are in it, however deep."""
    if isinstance(box, widgets.Button):
        return [box]
    return [one for child in getattr(box, "children", ()) for one in buttons(child)]


def button(panel: Panel, label: str) -> widgets.Button:
    return next(one for one in buttons(panel) if one.description == label)
