"""Two small labs for tests of what hosts labs: one has a slider, in the other a guess is drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from course_utils.core.say import Guess
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.fields import drawn, reveal, whole
from course_utils.engine.labs.lab import Lab, View
from course_utils.engine.labs.panel import Panel


@dataclass(frozen=True)
class Small:
    """One whole number, asked with a slider."""

    n: int = whole("n", 3, 0, 20)


def draw(n: int) -> View:
    """Show n. 13 raises the error of a reader's mistake, and 14 the error of a bug in the lab."""
    if n == 13:
        raise ValueError("13 is not allowed here; take 12.")
    if n == 14:
        raise RuntimeError("a fault of the lab")
    return View(svg.picture(10, 10, svg.text(0, 9, str(n))), f"n is {n}")


def made(asks: type, view: Callable[..., View], **more: object) -> Lab:
    """Return a lab that asks the questions of `asks`, and whose other members `more` names."""
    members = {"name": "Small lab", "asks": asks, "view": staticmethod(view), **more}
    lab_type = type("MadeLab", (Lab,), members)
    return lab_type()


def small(show: Callable[[int], View] = draw, **named: Mapping[str, object]) -> Lab:
    """Return a lab of one slider, shown by `show(n)`.

    `named` gives it `jobs` and `actions`, which also take n alone, or `presets`.
    """
    for kind in ("jobs", "actions"):
        if kind in named:
            named[kind] = {label: _of_n(work) for label, work in named[kind].items()}
    return made(Small, lambda asked, found: show(asked.n), **named)


def small_lab(show: Callable[[int], View] = draw, **named: Mapping[str, object]) -> Panel:
    """Return the panel of such a lab, as Jupyter shows it."""
    return Panel(small(show, **named))


def _of_n(work: Callable) -> Callable:
    """Return a lab's method that calls `work` with the lab's n alone."""
    return lambda lab, asked, found: work(asked.n)


# A lab in whose picture a guess is drawn.
SQUARES = [1, 4, 9]
TRACKS = [marks.Track((100 + 80 * n, 180), (100 + 80 * n, 30)) for n in range(len(SQUARES))]


@dataclass(frozen=True)
class Guessed:
    """A drawn guess of the areas of three squares, and a slider that can move by itself."""

    guess: Sequence[int | None] = drawn(
        "squares", marks="abc", levels=21, says=lambda mark, level: f"{level} cm²"
    )
    n: int = whole("n", 3, 0, 20, play=True)
    shown: bool = reveal()


class DrawingLab(Lab):
    """The reader guesses three squares, and then sees them."""

    name = "Drawing lab"
    asks = Guessed

    def guesses(self, asked: Guessed, found: object) -> Sequence[Guess]:
        """Return each mark that is set, beside its square."""
        guesses = []
        for name, level, square in zip("abc", asked.guess, SQUARES, strict=True):
            if level is not None:
                guesses.append(Guess(name, level, square))
        return guesses

    def view(self, asked: Guessed, found: object) -> View:
        """Return the marks, and once they are asked for, the squares."""
        guesses = self.guesses(asked, found)
        parts = [marks.drawn("guess", asked, TRACKS, through=True)]
        meaning = ""
        if asked.shown:
            squares = [track.at(square / 20) for track, square in zip(TRACKS, SQUARES, strict=True)]
            parts.append(svg.polyline(squares, class_="line measured"))
            parts.extend(marks.words_beside(guesses, asked, "guess", TRACKS))
            meaning = marks.summed_up(guesses)
        return View(svg.picture(400, 220, *parts), meaning or f"n is {asked.n}.")
