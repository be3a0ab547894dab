"""Two small labs, for tests of what hosts labs: of one slider, and of a guess that is drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from course_utils.core.say import Guess
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.fields import drawn, reveal, whole
from course_utils.engine.labs.lab import Lab, View
from course_utils.engine.labs.panel import Panel


@dataclass(frozen=True)
class Small:
    """A number."""

    n: int = whole("n", 3, 0, 20)


def draw(n: int) -> View:
    """The number; with 13 a mistake of the reader, with 14 one of the lab."""
    if n == 13:
        raise ValueError("13 is not allowed here; take 12.")
    if n == 14:
        raise RuntimeError("a fault of the lab")
    return View(svg.picture(10, 10, svg.text(0, 9, str(n))), f"n is {n}")


def made(asks: type, view: Callable[..., View], **more: object) -> Lab:
    """A lab of these questions."""
    return type(
        "MadeLab", (Lab,), {"name": "Small lab", "asks": asks, "view": staticmethod(view), **more}
    )()


def small(show: Callable[[int], View] = draw, **named: Mapping[str, object]) -> Lab:
    """Shown by `show(n)`; its jobs and actions take n alone, too; or it has presets."""
    for kind in named.keys() & {"jobs", "actions"}:
        named[kind] = {label: _of_n(work) for label, work in named[kind].items()}
    return made(Small, lambda asked, found: show(asked.n), **named)


def small_lab(*of: Callable[[int], View], **named: Mapping[str, object]) -> Panel:
    """The same in Jupyter."""
    return Panel(small(*of, **named))


def _of_n(work: Callable) -> Callable:
    return lambda lab, asked, found: work(asked.n)


# A lab in whose picture a guess is drawn.
SQUARES = [1, 4, 9]
TRACKS = [marks.Track((100 + 80 * n, 180), (100 + 80 * n, 30)) for n in range(len(SQUARES))]


@dataclass(frozen=True)
class Guessed:
    """How large three squares are, and a slider that moves by itself."""

    guess: Sequence[int | None] = drawn(
        "squares", marks="abc", levels=21, says=lambda mark, level: f"{level} cm²"
    )
    n: int = whole("n", 3, 0, 20, play=True)
    shown: bool = reveal()


class DrawingLab(Lab):
    """Squares are guessed, then shown."""

    name = "Drawing lab"
    asks = Guessed

    def guesses(self, asked: Guessed, found: object) -> Sequence[Guess]:
        """Each set mark beside its square."""
        pairs = zip("abc", asked.guess, SQUARES, strict=True)
        return [Guess(name, level, square) for name, level, square in pairs if level is not None]

    def view(self, asked: Guessed, found: object) -> View:
        """The marks, and when they are asked for, the squares."""
        parts, guesses = (
            [marks.drawn("guess", asked, TRACKS, through=True)],
            self.guesses(asked, found),
        )
        if asked.shown:
            squares = [track.at(square / 20) for track, square in zip(TRACKS, SQUARES, strict=True)]
            parts += [
                svg.polyline(squares, class_="line measured"),
                *marks.offs(guesses, asked, "guess", TRACKS),
            ]
        meaning = marks.farthest(guesses) if asked.shown else ""
        return View(svg.picture(400, 220, *parts), meaning or f"n is {asked.n}.")
