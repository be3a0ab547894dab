"""What a cell shows: not attempted yet, right, or not yet, with a sentence or two."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html import escape

from IPython.display import DisplayHandle, display

import course_utils.core.accountant as course
from course_utils.core import keeping
from course_utils.engine.figures.colours import COLOURS

COLOUR = dict.fromkeys(("not attempted yet", "not judged", "not used"), COLOURS["limit"]) | {
    "right": "#00875f",
    "not yet": COLOURS["alarm"],
}


class NotYetError(Exception):
    """An answer is not right yet: the sentences that the reader is told; and of these, the advice on a listed mistake.

    `without_case` is what may be told to those who are not to know the case.
    """

    def __init__(self, words: str, advice: str = "", *, without_case: str = "") -> None:
        super().__init__(words, advice)
        self.without_case = without_case or words


@dataclass(frozen=True)
class Verdict:
    status: str  # one of those in COLOUR
    words: str = ""
    exercise: str = field(default="", compare=False)  # its check's name
    looks_like: str = field(
        default="", compare=False
    )  # the advice on a listed mistake; else the words
    without_case: str = field(
        default="", compare=False
    )  # the words for those who are not to know the case
    answer: object = field(default=..., repr=False, compare=False)  # the reader's
    ours: Callable[[], object] = field(default=lambda: ..., repr=False, compare=False)
    check: Callable[[object], "Verdict"] | None = field(
        default=None, repr=False, compare=False
    )  # what judged it

    @property
    def or_ours(self) -> object:
        """The reader's answer if it is right, else ours. The verdict is shown, and says which is used."""
        told = (
            self
            if self.right
            else replace(self, words=f"{self.words} What follows uses ours.".strip())
        )
        told._ipython_display_()
        return self.answer if self.right else self.ours()

    @property
    def kept(self) -> object:
        """The reader's, which becomes the term of this name in their accountant, if it is right; else our term.

        Our term, and not what the check judges by: torch's count is slow, and what follows stands beside it.
        """
        if not self.right:
            return replace(self, ours=lambda: getattr(course, self.exercise)).or_ours
        said = keeping.keep(self.exercise, self.answer, self.check)
        return replace(self, words=f"{self.words} {said}".strip()).or_ours

    @property
    def right(self) -> bool:
        return self.status == "right"

    def _ipython_display_(self) -> None:
        """Show it in a way that `take_back` can change later."""
        SHOWN.append(self)
        handle = display(self._bundle(), raw=True, display_id=True)
        if handle is not None:  # in a notebook
            HANDLES[self.exercise] = handle

    def take_back(self, words: str) -> None:
        """Replace the shown verdict by these words."""
        if handle := HANDLES.pop(self.exercise, None):
            handle.update(Verdict("not judged", words)._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __repr__(self) -> str:
        return f"{self.status.capitalize()}. {self.words}".strip()

    def _repr_html_(self) -> str:
        border = f"border-left: 4px solid {COLOUR[self.status]}; padding: 4px 10px"
        return (
            f'<div style="{border}"><b>{self.status.capitalize()}.</b> {escape(self.words)}</div>'
        )


# The verdicts that the running cell has shown; and by exercise, the display that shows its latest verdict.
SHOWN: deque[Verdict] = deque(maxlen=9)
HANDLES: dict[str, DisplayHandle] = {}
NOT_ATTEMPTED = Verdict(
    "not attempted yet", "Put your answer where the ... stands, and run both cells again."
)
