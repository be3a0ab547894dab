"""What a cell shows: not attempted yet, right, or not yet, with a sentence or two."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html import escape

from IPython.display import DisplayHandle, display

import course_utils.core.accountant as course
from course_utils.core import keeping
from course_utils.core.colours import COLOURS
from course_utils.core.say.language import in_a_row, template, translated

COLOUR = {  # by the status of a verdict
    "not attempted yet": COLOURS["limit"],
    "not judged": COLOURS["limit"],
    "not used": COLOURS["limit"],
    "right": "#00875f",
    "not yet": COLOURS["alarm"],
}
# How a reader sees each status. Everywhere else, the record and grading among it, it is English.
AS_SHOWN = {
    "not attempted yet": template("Not attempted yet."),
    "not judged": template("Not judged."),
    "not used": template("Not used."),
    "right": template("Right."),
    "not yet": template("Not yet."),
}


class NotYetError(Exception):
    """An answer is not right yet.

    `words` are the sentences that the reader sees. `advice` is the part of `words` that the
    exercise lists for this mistake; it is empty if the mistake is not listed. `without_case` takes
    the place of `words` where a class is graded on cases kept secret; it defaults to `words`.
    """

    def __init__(self, words: str, advice: str = "", *, without_case: str = "") -> None:
        super().__init__(words, advice)
        self.without_case = without_case or words


def _nothing() -> object:
    """Return `...`: the `ours` of a verdict without a right answer."""
    return ...


@dataclass(frozen=True)
class Verdict:
    """The result of a check.

    `words` are the sentences that the reader sees, in one line or several. For a wrong answer,
    `advice` is that on the mistake, if the exercise lists it; `looks_like` is the same, or else
    `words`; `without_case` takes the place of `words` where the cases are kept secret. `ours`
    returns a right answer. `hints` are all hints of the exercise. `hint` is a heading and the hint
    shown below the verdict; both may be empty. `earlier_hints` are those before it, which stay
    folded above it.
    """

    status: str  # one of those in COLOUR
    words: str = ""
    exercise: str = field(default="", compare=False)  # the name of its check
    looks_like: str = field(default="", compare=False)
    advice: str = field(default="", compare=False)
    without_case: str = field(default="", compare=False)
    answer: object = field(default=..., repr=False, compare=False)  # the reader's
    ours: Callable[[], object] = field(default=_nothing, repr=False, compare=False)
    hints: tuple[str, ...] = field(default=(), repr=False, compare=False)
    hint: tuple[str, str] = field(default=("", ""), repr=False, compare=False)
    earlier_hints: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)
    # The check that judged the answer.
    check: Callable[[object], "Verdict"] | None = field(default=None, repr=False, compare=False)

    @property
    def or_ours(self) -> object:
        """Show the verdict, and return the reader's answer if it is right, else ours.

        A cell says `days = check.days(my_days).or_ours`, so the cells below it work without a right
        answer, too. The verdict says which of the two is returned.
        """
        if self.right:
            self._ipython_display_()
            return self.answer
        words = in_a_row(self.words, translated("What follows uses ours."))
        replace(self, words=words)._ipython_display_()
        return self.ours()

    @property
    def kept(self) -> object:
        """Show the verdict, and return the reader's answer if it is right, else our term.

        A right answer becomes the term of the exercise's name in the reader's accountant. Our term
        is the one in `core.accountant`, and not the right answer of the check: that may be torch's
        own count, which is slow, and with which the notebook compares the term.
        """
        if not self.right:
            term = getattr(course, self.exercise)  # such as the function tensor_bytes
            return replace(self, ours=lambda: term).or_ours
        words = in_a_row(self.words, keeping.keep(self.exercise, self.answer, self.check))
        return replace(self, words=words).or_ours

    @property
    def right(self) -> bool:
        return self.status == "right"

    def _ipython_display_(self) -> None:
        """Show the verdict with a hint, in a way that lets `take_back` replace it later."""
        SHOWN.append(self)  # for `after_cell`, which reads the list once the cell has run
        # IPython gives a handle to what is shown with a display_id.
        handle = display(self._with_hint()._bundle(), raw=True, display_id=True)
        if handle:  # in a notebook
            HANDLES[self.exercise] = handle

    def _with_hint(self) -> "Verdict":
        """Return the verdict with the hint that is due, if the answer is wrong."""
        from course_utils.engine.judging import hints  # only a verdict that is shown needs them

        if self.right:
            hints.forget(self.exercise)
        if self.status != "not yet":
            return self
        asked = (self.exercise, self.answer, self.hints)
        hint = hints.next_hint(*asked, self.advice)
        return replace(self, hint=hint, earlier_hints=hints.earlier_hints(*asked))

    def take_back(self, words: str) -> None:
        """Replace the shown verdict by these words.

        `after_cell` calls this when the cell of the answer has run again, so that the verdict may
        no longer hold.
        """
        handle = HANDLES.pop(self.exercise, None)
        if handle:
            handle.update(Verdict("not judged", words)._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        """Return the verdict as text and as HTML, by their MIME types."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __repr__(self) -> str:
        name, hint = self.hint
        named_hint = f"{name}: {hint}" if name else hint
        return in_a_row(translated(AS_SHOWN[self.status]), self.words, named_hint)

    def _repr_html_(self) -> str:
        """Return the verdict as Jupyter shows it: beside a coloured line, with its hint folded."""
        style = f"border-left: 4px solid {COLOUR[self.status]}; padding: 4px 10px"
        status = f"<b>{escape(translated(AS_SHOWN[self.status]))}</b>"
        # Not `in_a_row`: where no words follow, the space stays in English.
        lines = escape(self.words).replace("\n", "<br>")
        words = translated("{text} {sentence}", text=status, sentence=lines)
        return f'<div style="{style}">{words}{self._hint_html()}</div>'

    def _hint_html(self) -> str:
        """Return each hint so far below its heading, folded: the reader may think before opening.

        `hints.next_hint` gives the sentence that leads to the solution without a heading. It gives
        nothing away, so it is shown open.
        """
        return "".join(_folded(name, hint) for name, hint in (*self.earlier_hints, self.hint))


def _folded(name: str, hint: str) -> str:
    """Return one hint as HTML: below its heading, or open if it has none; "" if there is none."""
    if name:
        inside = f'<summary style="cursor: pointer">{escape(name)}</summary>{escape(hint)}'
        return f'<details style="margin-top: 4px">{inside}</details>'
    if hint:
        return f'<div style="margin-top: 4px">{escape(hint)}</div>'
    return ""


# The verdicts that the running cell has shown. Outside a notebook nothing empties this list, so its
# length is limited.
SHOWN: deque[Verdict] = deque(maxlen=9)
HANDLES: dict[str, DisplayHandle] = {}  # by exercise, the display that shows its latest verdict
NOT_ATTEMPTED = Verdict(
    "not attempted yet", template("Put your answer where the ... stands, and run both cells again.")
)
