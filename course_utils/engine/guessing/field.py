"""The field of a guess in Jupyter. Its page's side is in field.js."""

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template

import anywidget
import traitlets

from course_utils.core.colours import COLOURS
from course_utils.core.say import OpenGuess, in_words
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.core.say.open_guesses import with_unit

_HERE = Path(__file__).parent
WIDGET = "application/vnd.jupyter.widget-view+json"
ASKS = template("Your guess:")  # how the sentence begins that stands in place of a field
IN_FULL_BELOW = 10**6  # bytes
WORKED_OUT = re.compile(r"\d.*[-+*/^×÷]")  # matches what is an operation with numbers
RUN = template("(To type it, run this cell.)")
CLOSED = template("Your guess stays as it was when Show was pressed.")
CLOSED_WITHOUT = template("Show was pressed before there was a guess.")
NO_ANSWER = template(
    "What you typed could not be taken as an answer, so it does not count as a guess."
)


def labels() -> dict[str, str]:
    """Return what field.js says, by its names for it. The page fills in the gaps."""
    return {
        "yourGuess": translated("Your guess"),
        "show": translated("Show"),
        "share": translated("from 0 to 1, or in %"),
        "canChange": translated("You can change it until the answer is shown."),
        "guessed": translated("You can change it until you press Show."),
        "again": translated("Change it, or press Show again: then what you typed does not count."),
        "busy": translated(
            "Python is still busy. The answer comes up once it has read what you typed."
        ),
        "kept": translated("Your last guess is kept: {said}."),
        "open": translated("What follows comes up with Show, with your guess or without one."),
        "behind": translated(
            "Your guess above comes first. What follows comes up with Show, with your guess or "
            "without one."
        ),
        "ahead": translated("The answer to your guess comes first: run the cell above."),
        "rest": translated("what is left"),
        "bar": translated("{name}, bar, {unit}"),
        "left": translated("So far {sum} of {whole} {unit} ({goal}), and {left} are left."),
        "beyond": translated("So far {sum} of {whole} {unit} ({goal}): {beyond} too many."),
        "noGuess": translated("no guess"),
        "restarted": translated("The kernel has been restarted. Run this cell again."),
    }


class Field(anywidget.AnyWidget):
    """A line for each question of a guess, with what was typed, and the button *Show* below them.

    The page sends {"say": {"name": …, "typed": …}} and {"show": true}. The typed text is parsed
    here and not on the page, so that notebooks and phones parse it alike. While a text is no
    answer, the page sends "show" only when *Show* is pressed a second time.
    """

    _esm = (_HERE / "field.js").read_text(encoding="utf-8")
    _css = Template((_HERE / "field.css").read_text(encoding="utf-8")).substitute(COLOURS)

    labels = traitlets.Dict().tag(sync=True)  # the words of the page, in the reader's language
    # A line for each question, as `_line` returns it.
    lines = traitlets.List().tag(sync=True)
    unit = traitlets.Unicode().tag(sync=True)
    has_gone_on = traitlets.Bool(False).tag(sync=True)  # whether *Show* was pressed
    is_closed = traitlets.Bool(False).tag(sync=True)  # whether *Show* settled the guess
    words = traitlets.Unicode().tag(sync=True)  # below all lines
    failure = traitlets.Unicode().tag(sync=True)  # an error of the course, no mistake of the reader

    def __init__(self, guess: OpenGuess) -> None:
        super().__init__()
        self.guess = guess
        self.labels = labels()
        # By question: the text that was typed last, also if it is no answer to the question.
        self._typed: dict[str, str] = {}
        # By question: the text that was typed last, of those that are an answer.
        self._accepted: dict[str, str] = {}
        # By question: the sentence on why the text is no answer. A text that is one has no entry.
        self._faults: dict[str, str] = {}
        guess.on_change.append(self._show)
        self.on_msg(self._on_message)
        self._show()

    def say(self, name: str, typed: str) -> None:
        """Take `typed` as what the reader has typed into the field of the question `name`."""
        if name not in self.guess.names:  # the page may send anything
            return
        self._typed[name] = typed
        self._faults.pop(name, None)
        try:
            self.guess.say(name, typed)  # which calls _show by way of on_change
            self._accepted[name] = typed
        except ValueError as error:
            self._faults[name] = str(error)
            self._show()  # here, since the guess has not changed, and so on_change is not called

    def show_what_follows(self) -> None:
        """Do what the button *Show* does. A text that was refused gives way to the guess before it.

        Without one, the text stays, and a sentence says that it does not count.
        """
        for name in list(self._faults):
            if self._typed[name] and name not in self.guess.said:
                self._faults[name] = translated(NO_ANSWER)
                continue
            del self._faults[name]
            del self._typed[name]  # the field shows what is kept of the guess, or nothing
            if name in self._accepted:
                self._typed[name] = self._accepted[name]
        self.guess.go_on()  # which calls _show by way of on_change

    def _on_message(self, _: object, content: object, __: object) -> None:
        """Do what the page's message asks for; if that fails, show the error in the field.

        ipywidgets calls this with the widget, the content of the message, and its binary data.
        """
        try:
            self._obey(content)
        except Exception as error:  # a callback's error would be seen by nobody
            self.failure = translated(
                "The field itself failed: {kind}: {error}", kind=type(error).__name__, error=error
            )

    def _obey(self, content: object) -> None:
        """Do what a message from the page asks for; a message of another form is ignored."""
        if not isinstance(content, Mapping):
            return
        said = content.get("say")
        if isinstance(said, Mapping):
            self.say(str(said.get("name")), str(said.get("typed")))
        if content.get("show"):
            self.show_what_follows()

    def _show(self) -> None:
        """Send the state of the guess to the page, at first and after each change of the guess."""
        with self.hold_sync():  # in one message
            self.unit = self.guess.unit
            self.lines = [self._line(name) for name in self.guess.names]
            self.has_gone_on = self.guess.has_gone_on
            self.is_closed = self.guess.is_closed
            self.words = self._words()

    def _words(self) -> str:
        """Return the sentence below a guess that cannot be changed any more; empty before."""
        if not self.guess.is_closed:
            return ""
        if self.guess.said:
            return translated(CLOSED)
        return "" if self._faults else translated(CLOSED_WITHOUT)  # a fault says more

    def _line(self, name: str) -> dict[str, object]:
        """Return what the page shows for one question.

        `typed` is the text in the field; `said` is how it was understood, with its unit; and
        `fault` is the sentence on a text that makes no sense.
        """
        typed = self._typed.get(name, self.guess.typed(name))
        fault = self._faults.get(name, "")
        accepted = self._accepted.get(name, "") if fault else typed
        return {
            "name": name,
            "options": list(self.guess.among),
            "said": as_read(self.guess, name, accepted),
            "typed": typed,
            "fault": fault,
        }

    # The rest is what a notebook stores, and what is shown where no kernel runs.

    # Replaces a method of ipywidgets 7, which shows the widget alone.
    _ipython_display_ = None

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict[str, object], dict[str, object]]:
        """Return the live view and a sentence in its place, and anywidget's metadata for Colab."""
        _, metadata = super()._repr_mimebundle_(**kwargs)
        bundle = {
            WIDGET: {"version_major": 2, "version_minor": 0, "model_id": self.model_id},
            "text/plain": _sentence(self.guess),
        }
        return bundle, metadata


def as_read(guess: OpenGuess, name: str, typed: str = "") -> str:
    """Return how the guess was understood, with its unit; empty if there is none.

    From a million bytes on, it is in the unit that fits, because nobody can read 16,100,000,000.
    What was worked out of what was `typed`, such as 4 * 12288**2 / 1e9, has three digits if it is
    longer than six.
    """
    number = guess.said.get(name)
    is_long = isinstance(number, float) and float(f"{number:.6g}") != number
    if is_long and WORKED_OUT.search(typed):
        return with_unit(float(f"{number:.3g}"), guess.unit)
    if guess.unit == "bytes" and number is not None and number >= IN_FULL_BELOW:
        return in_words(number, guess.unit)
    # Years have days and quarters of days: nobody reads 1095.75.
    if guess.unit == "days" and number is not None and number >= 1000:
        return with_unit(float(f"{number:.4g}"), guess.unit)
    return guess.in_words(name)


def _sentence(guess: OpenGuess) -> str:
    """Return the question in words, for where no kernel runs: what is asked for, in which unit."""
    return in_a_row(translated(ASKS), _question(guess), translated(RUN))


def _question(guess: OpenGuess) -> str:
    """Return what is asked for with the options or the unit, if there are any."""
    names = ", ".join(guess.names)
    unit = guess.unit
    if guess.among:
        options = ", ".join(guess.among)
        return translated("{names}? One of these: {options}.", names=names, options=options)
    if not unit:
        return translated("{names}?", names=names)
    if unit.startswith("of "):  # a count, as in "of 200"
        return translated("{names}, of {whole}?", names=names, whole=unit.removeprefix("of "))
    if unit == "share":
        return translated("{names}, from 0 to 1?", names=names)
    return translated("{names}, in {unit}?", names=names, unit=unit)
