"""The products of a forward pass as boxes, in HTML: a picture that takes hardly any space."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from course_utils.core.say.wording import factor_text
from course_utils.engine.figures.filling import refuse_names, refuse_other_than_numbers
from course_utils.engine.figures.style import COLOURS

# By name, what each part multiplies, in the order in which a token passes. No line ends in a shape.
_IN_EACH_LAYER = {
    "query, key, value": "inputs × outputs",
    "queries × keys": "of each head: (S,\xa0head_width) times (head_width,\xa0S)",
    "softmax": "no product",
    "scores × values": "of each head: (S,\xa0S) times (S,\xa0head_width)",
    "out, gate, up, down": "inputs × outputs",
}
_ONCE = {"embedding": "looked up, no product", "output": "m.width × m.vocabulary"}
_KEYWORDS = {  # of the boxes, as arguments
    "query_key_value": "query, key, value",
    "queries_keys": "queries × keys",
    "scores_values": "scores × values",
    "out_gate_up_down": "out, gate, up, down",
    "output": "output",
}
_ROW = "display:flex;flex-wrap:wrap;align-items:center;gap:8px"
_BOX = "border:1px solid;padding:4px 6px;text-align:center"
_SIZE = "display:block;max-width:150px;margin:auto"
_FILLED = f";background:{COLOURS['parameters']};color:#1a1a1a"


@dataclass(frozen=True)
class Boxes:
    """The boxes, as HTML and in words. `counts` has the FLOPs of those that are filled, by name."""

    counts: Mapping[str, int]

    def _repr_html_(self) -> str:
        layer = " → ".join(self._box(name, size) for name, size in _IN_EACH_LAYER.items())
        once = "".join(self._box(name, size) for name, size in _ONCE.items())
        # In such a row each arrow, though bare text, is an item by itself.
        return (
            '<div style="max-width:1000px;font-size:14px;line-height:1.3">'
            '<div style="border:1px solid;padding:6px"><b>m.layers times</b>'
            f'<div style="{_ROW};margin-top:6px">{layer}</div></div>'
            f'<div style="{_ROW};margin-top:6px">{once}</div></div>'
        )

    def _box(self, name: str, size: str) -> str:
        style = _BOX + _FILLED if name in self.counts else _BOX
        words = escape(self._named(name))
        return (
            f'<div style="{style}"><b>{words}</b>'
            f'<small style="{_SIZE}">{escape(size)}</small></div>'
        )

    def _named(self, name: str) -> str:
        """Return the name, with the FLOPs behind it if it is filled."""
        if name not in self.counts:
            return name
        return f"{name}: {factor_text(self.counts[name])}"

    def __repr__(self) -> str:
        """Return the boxes in words, in the same order."""
        layer = " → ".join(f"{self._named(name)} ({size})" for name, size in _IN_EACH_LAYER.items())
        once = "; ".join(f"{self._named(name)} ({size})" for name, size in _ONCE.items())
        return f"m.layers times: {layer}. Once: {once}."


def forward_boxes(*unnamed: object, **counts: int) -> Boxes:
    """Return a forward pass as boxes: the products of a layer, and below them what comes once.

    A box in `counts`, such as `output=1024`, is filled, and says that it takes so many FLOPs.
    A name without a box that can be filled is refused, and so is what is no number or has no name.
    """
    refuse_names(list(_KEYWORDS), unnamed, counts, "output=1024")
    refuse_other_than_numbers(counts, "output=1024")
    return Boxes({_KEYWORDS[keyword]: count for keyword, count in counts.items()})
