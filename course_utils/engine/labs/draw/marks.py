"""A guess that the reader draws: marks on tracks, and how far off they were. `screen.js` moves them."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from course_utils.core.say import Guess, Number, three_digits
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.svg import dot, element, polyline, text
from course_utils.engine.labs.fields import Drawn

RADIUS = 8


class Track(NamedTuple):
    """Where a mark can be: its lowest level is at `start`, its highest at `end`."""

    start: Point
    end: Point

    def at(self, share: Number) -> Point:
        """The place at that share of the way, from 0 to 1."""
        (x, y), (to_x, to_y) = self
        return x + share * (to_x - x), y + share * (to_y - y)


def drawn(name: str, asked: object, tracks: Sequence[Track], *, through: bool = False) -> str:
    """The marks of the field of that name, on their tracks; with `through`, a line through those that are set.

    When `asked.shown` says that the measurement is in the picture, they can no longer be moved.
    """
    field, levels = _field(asked, name), getattr(asked, name)
    places = [track.at(_share(field, level)) for track, level in zip(tracks, levels, strict=True)]
    line = [place for place, level in zip(places, levels, strict=True) if level is not None]
    parts = [polyline(line, class_="guess-line", data_through=name)] if through else []
    for number, (track, level, place) in enumerate(zip(tracks, levels, places, strict=True)):
        if asked.shown and level is None:
            continue  # too late to set it
        said = "not set" if level is None else field.says(number, level)
        parts.append(
            element(
                "g",
                polyline(track, class_="track"),
                dot(*place, RADIUS, class_="mark"),
                class_="unset" if level is None else "set",
                role="slider",
                aria_label=field.marks[number],
                aria_valuemin=0,
                aria_valuemax=field.levels - 1,
                aria_valuenow=round(_share(field, level) * (field.levels - 1)),
                aria_valuetext=said,
                aria_disabled=str(asked.shown).lower(),
                aria_orientation="vertical" if track.start[0] == track.end[0] else "horizontal",
                data_mark=f"{name} {number}",
                data_track=" ".join(f"{n:.1f}" for point in track for n in point),
            )
        )
    return "".join(parts)


def offs(
    guesses: Sequence[Guess], asked: object, name: str, tracks: Sequence[Track]
) -> Iterator[str]:
    """Beside each mark that is set, how many times too large or too small it was."""
    field, levels = _field(asked, name), getattr(asked, name)
    set_ = [
        (track, level) for track, level in zip(tracks, levels, strict=True) if level is not None
    ]
    for guess, (track, level) in zip(guesses, set_, strict=True):
        x, y = track.at(_share(field, level))
        yield text(x + RADIUS + 4, y + 4, _off(guess), class_="small strong halo")


def farthest(guesses: Sequence[Guess]) -> str:
    """One sentence on the guess that was farthest off; empty if there is none."""
    if not guesses:
        return ""
    guess = max(guesses, key=lambda one: one.off)
    which = "Your guess" if len(guesses) == 1 else f"The farthest of your guesses, {guess.asked},"
    return f"{which} is {guess.words.partition('. ')[0]}."


def _off(guess: Guess) -> str:
    if guess.is_right or guess.off == math.inf:
        return "right" if guess.is_right else "not right"
    return f"× {three_digits(guess.said / guess.measured)}"


def _field(asked: object, name: str) -> Drawn:
    return asked.__dataclass_fields__[name].metadata["field"]


def _share(field: Drawn, level: int | None) -> float:
    return 0.5 if level is None else level / (field.levels - 1)
