"""What a hostile reader does to a lab: one line of Python after the other, drawn in view of its panel."""

import random
import re

import ipywidgets as widgets

from course_utils.labs.panel import Panel

# As Python says them.
HOSTILE = (
    *("''", "' '", "'\\x00'", "'\\n\\t'", "'9' * 100_000", "'(' * 3_000", "'\\u202e٣½²'", "'🦜' * 50", "'−1'", "'NaN'"),
    *("'<script>alert(1)</script>'", "'\"><img src=x onerror=alert(1)>'", "'&lt;b&gt;'", "']]><!--'"),
    *("\"__import__('os')\"", "\"__import__('os').system('true')\"", "'{0.__class__}'", "'%s%n'", "'../../x'"),
    *("0", "-1", "1", "2**20", "2**63", "10**400", "-(10**400)", "0.5", "1e308", "-1e-320", "nan", "inf"),
    *("None", "True", "False", "[]", "()", "{}", "{'b': 2}", "('Adam', 'Eve')", "b'x'"),
)  # fmt: skip
STUFF = "0123456789 .,-+^*:()[]{}<>=>&'\"\\/_abcdehijkxBDK→×"


class Reader:
    """Draws one move after the other, in view of the panel."""

    def __init__(self, panel: Panel, draw: random.Random) -> None:
        self.draw = draw
        texts = [v for preset in panel._presets.values() for v in preset.values() if isinstance(v, str)]
        self.tokens = sorted({token for words in texts for token in re.findall(r"\w+|\W", words)}) or ["1"]

    def move(self, panel: Panel, lab: str) -> str:
        """A line of Python."""
        kinds = {
            self._page: 40,
            self._cell: 12,
            self._set: 12,
            self._pick: 10,
            self._click: 14,
            self._strange: 3,
            self._together: 2,
            self._job: 3,
            self._still: 0.3,
        }
        kind = self.draw.choices(list(kinds), list(kinds.values()))[0]
        if self.draw.random() < 0.004:
            closed = "panel.close(); " if self.draw.random() < 0.5 else ""  # or the cell was run again
            return f"{closed}panel = labs.{lab}()"
        return kind(panel)

    def _page(self, panel: Panel) -> str:
        name = self.draw.choice(list(panel.controls))
        place, widget = f"panel.controls[{name!r}]", panel.controls[name]
        while getattr(widget, "children", ()):
            part = self.draw.randrange(len(widget.children))
            place, widget = f"{place}.children[{part}]", widget.children[part]
        if hasattr(widget, "index"):
            index = self.draw.randrange(len(widget.options))
            return f"page({place}, index={index if self.draw.random() < 0.95 else self._hostile()})"
        return f"page({place}, value={self._value(widget)})"

    def _cell(self, panel: Panel) -> str:
        name = self.draw.choice(list(panel.controls))
        return f"panel.controls[{name!r}].value = {self._value(panel.controls[name])}"

    def _set(self, panel: Panel) -> str:
        names = self.draw.sample(
            list(panel.controls), min(len(panel.controls), self.draw.choice((1, 2, 3, 99)))
        )
        said = ", ".join(f"{name!r}: {self._value(panel.controls[name])}" for name in names)
        return f"panel.set(**{{{said}}})"

    def _pick(self, panel: Panel) -> str:
        keys = re.findall(r'data-key="([^"]*)"', panel.screen.svg)
        chance = self.draw.random()
        if keys and chance < 0.9:
            return f"message(panel, {{'pick': {keys[int(chance / 0.9 * len(keys))]!r}}})"
        return f"message(panel, {{'pick': {self._hostile()}}})"

    def _click(self, panel: Panel) -> str:
        safe = [b.description for b in buttons(panel) if b.description not in panel._jobs]
        return f"click(panel, {self.draw.choice(safe)!r})"

    def _job(self, panel: Panel) -> str:
        if not panel._jobs:
            return self._click(panel)
        rest = self.draw.choice((0, 0, 0.02, 0.1, 0.5, 1.5))
        return f"click(panel, {self.draw.choice(list(panel._jobs))!r}); rest(panel, {rest})"

    def _together(self, panel: Panel) -> str:
        labels = [button.description for button in buttons(panel)]
        return f"together(panel, {self.draw.choice(labels)!r}, {self.draw.choice(labels)!r})"

    def _strange(self, panel: Panel) -> str:
        value = self._hostile()
        return self.draw.choice(
            (
                f"message(panel, {value})",
                f"panel.preset(str({value}))",
                f"panel.set(**{{str({value})[:9]: 1}})",
                "panel.stop()",
            )
        )

    def _still(self, panel: Panel) -> str:
        return "still(panel)"

    def _hostile(self) -> str:
        return self.draw.choice(HOSTILE)

    def _value(self, widget: widgets.Widget) -> str:
        """Good, nearly good, or hostile; as Python says it."""
        chance = self.draw.random()
        if chance < 0.15 and isinstance(widget, widgets.Text):
            return self.draw.choice([value for value in HOSTILE if value[0] in "'\""])
        if chance > 0.88 and not hasattr(widget, "options"):
            return self._hostile()
        if chance < 0.12:  # ipywidgets' own message for a tuple fails
            return self.draw.choice([value for value in HOSTILE if not value.startswith("(")])
        if hasattr(widget, "options"):
            return repr(
                self.draw.choice(
                    [option[-1] if isinstance(option, tuple) else option for option in widget.options]
                )
            )
        if isinstance(widget, widgets.Checkbox):
            return repr(self.draw.random() < 0.5)
        if hasattr(widget, "min"):
            low, high = widget.min, widget.max
            at = self.draw.choice((low, high, low - 1, high + 1, self.draw.uniform(low, high)))
            return repr(type(widget.value)(at))
        if isinstance(widget.value, dict):
            return repr(
                {name: self._size() for name in widget.value} | {self.draw.choice(self.tokens): self._size()}
            )
        if isinstance(widget.value, tuple):
            return repr(
                tuple(self.draw.sample([b.description for b in widget.children], self.draw.randrange(6)))
            )
        if hasattr(widget, "children"):
            return repr(self._size())
        return repr(self._text(str(widget.value)))

    def _size(self) -> object:
        power = self.draw.randrange(21)
        return self.draw.choice(
            (power, 2**power, f"2^{power}", f"{2**power:,}", self.draw.randrange(1, 2**20))
        )

    def _text(self, now: str) -> str:
        """Somewhere between what stands there and nonsense."""
        how = self.draw.random()
        if how < 0.3:
            return "".join(self.draw.choices(self.tokens, k=self.draw.randrange(1, 12)))
        if how < 0.45:
            return str(self._size())
        words = list(now[:200])
        for _ in range(self.draw.randrange(1, 4)):
            place = self.draw.randrange(len(words) + 1)
            words[place : place + self.draw.randrange(3)] = self.draw.choice(
                (self.draw.choice(STUFF), self.draw.choice(self.tokens), "")
            )
        return "".join(words)


def buttons(box: widgets.Widget) -> list[widgets.Button]:
    """All that are in it, however deep."""
    if isinstance(box, widgets.Button):
        return [box]
    return [one for child in getattr(box, "children", ()) for one in buttons(child)]


def button(panel: Panel, label: str) -> widgets.Button:
    """The one of that name."""
    return next(one for one in buttons(panel) if one.description == label)
