"""What a cell shows: not attempted yet, right, or not yet, with a sentence or two."""

from dataclasses import dataclass
from html import escape

from course_utils.figures import COLOURS

COLOUR = {"not attempted yet": COLOURS["limit"], "right": "#00875f", "not yet": COLOURS["alarm"]}


class NotYetError(Exception):
    """An answer is not right yet: the sentences that the reader is told."""


@dataclass(frozen=True)
class Verdict:
    """What the reader is told."""

    status: str  # "not attempted yet", "right", "not yet"
    words: str = ""

    @property
    def right(self) -> bool:
        """Whether the answer passed."""
        return self.status == "right"

    def __repr__(self) -> str:
        return f"{self.status.capitalize()}. {self.words}".strip()

    def _repr_html_(self) -> str:
        border = f"border-left: 4px solid {COLOUR[self.status]}; padding: 4px 10px"
        return f'<div style="{border}"><b>{self.status.capitalize()}.</b> {escape(self.words)}</div>'


NOT_ATTEMPTED = Verdict(
    "not attempted yet", "Put your answer where the ... stands, and run both cells again."
)
