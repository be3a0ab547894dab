"""A guess that the reader draws: marks on tracks, and how far off each was.

`screen.js` moves the marks.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from course_utils.core.say import Guess, Number, three_digits
from course_utils.core.say.closeness import (
    CLOSE,
    FAR,
    MISSED,
    POWER,
    SPOT_ON,
    WORDS,
    whole_judged_by,
)
from course_utils.core.say.language import template, translated
from course_utils.engine.labs.draw.lettering import width_of
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.svg import dot, element, polyline, text
from course_utils.engine.labs.fields import Drawn

RADIUS = 8
WIDE = 10_000  # a factor from which on there is no room for all of its digits beside a mark
PERCENTS = (25, 50, 75, 100)
SHARES = (1, 100)  # the whole of a share, and of a percentage
# By whether there are several guesses, and whether the word is "right power of ten".
FARTHEST = {
    (False, False): template("Your guess is {word}: {how_far}."),
    (False, True): template("Your guess is in the {word}: {how_far}."),
    (True, False): template("The farthest of your guesses ({asked}) is {word}: {how_far}."),
    (True, True): template("The farthest of your guesses ({asked}) is in the {word}: {how_far}."),
}
# How many of several guesses have a word.
WITH_WORD = {
    SPOT_ON: template("{count} spot on"),
    CLOSE: template("{count} close"),
    POWER: template("{count} in the right power of ten"),
    FAR: template("{count} far"),
    MISSED: template("{count} missed"),
}
ALL_SPOT_ON = template("All {count} of your guesses are spot on.")
SUMMED_UP = template("Your {count} guesses: {words}; the farthest ({asked}): {how_far}.")


class Track(NamedTuple):
    """The line on which a mark moves: its lowest level is at `start`, its highest at `end`."""

    start: Point
    end: Point

    def at(self, share: Number) -> Point:
        """Return the point at that share of the way, from 0 to 1."""
        x, y = self.start
        to_x, to_y = self.end
        return x + share * (to_x - x), y + share * (to_y - y)


def drawn(
    name: str,
    asked: object,
    tracks: Sequence[Track],
    *,
    through: bool = False,
    in_percent: bool = False,
) -> str:
    """Return the marks of the field `name`, on their tracks. `asked` has the answers to all fields.

    With `in_percent`, a scale stands along the first track until the answer is shown; after that,
    a mark that is the only one says whose it is. With `through`, a line goes through the marks that
    are set. Once `asked.shown` is True, the measurement is in the picture: marks can no longer be
    moved, and those not set are left out.
    """
    levels = getattr(asked, name)  # one for each mark; None if the mark is not set
    marks = []
    set_places = []
    for number, (track, level) in enumerate(zip(tracks, levels, strict=True)):
        if level is not None:
            set_places.append(track.at(_share(asked, name, level)))
        if level is not None or not asked.shown:
            marks.append(_mark(name, asked, number, track))
    line = polyline(set_places, class_="guess-line", data_through=name) if through else ""
    scale = "".join(_percents(tracks[0])) if in_percent and not asked.shown else ""
    is_named = in_percent and asked.shown and len(tracks) == 1
    words = [_whose(place, tracks[0]) for place in set_places if is_named]
    return scale + line + "".join(marks + words)


def _percents(track: Track) -> Iterator[str]:
    """Draw a scale in percent along a track, for marks that are set while the picture is hidden.

    Its numbers are below a track that goes across, and at the left of one that goes upwards.
    """
    (start_x, _), (end_x, _) = track
    for percent in PERCENTS:
        x, y = track.at(percent / 100)
        number = f"{percent} %"
        if start_x == end_x:
            yield polyline([(x - 4, y), (x + 4, y)], class_="axis")
            yield text(x - RADIUS - 4, y + 4, number, class_="end small faint")
        else:
            yield polyline([(x, y - 4), (x, y + 4)], class_="axis")
            yield text(x, y + 20, number, class_="middle small faint")


def _mark(name: str, asked: object, number: int, track: Track) -> str:
    """Return one mark of the field, which keyboards and screen readers take for a slider."""
    field = _field(asked, name)
    level = getattr(asked, name)[number]
    top = field.top(vars(asked))
    share = _share(asked, name, level)
    x, y = track.at(share)
    start_x, start_y = track.start
    end_x, end_y = track.end
    return element(
        "g",
        polyline(track, class_="track"),
        dot(x, y, RADIUS, class_="mark"),
        class_="unset" if level is None else "set",
        role="slider",
        aria_label=translated(field.marks[number]),
        aria_valuemin=0,
        aria_valuemax=top,
        aria_valuenow=round(share * top),
        aria_valuetext=translated("not set") if level is None else field.says(number, level),
        aria_disabled=str(asked.shown).lower(),
        aria_orientation="vertical" if start_x == end_x else "horizontal",
        # From these two, screen.js knows which mark it is, and from where to where it can move.
        data_mark=f"{name} {number}",
        data_track=f"{start_x:.1f} {start_y:.1f} {end_x:.1f} {end_y:.1f}",
    )


def _whose(place: Point, track: Track) -> str:
    """Return words that say whose a mark is, at its right if the track is long enough there."""
    x, y = place
    words = translated("your mark")
    beside = RADIUS + 4
    right, _ = track.end
    if x + beside + width_of(words, "small strong") <= right:
        return text(x + beside, y + 4, words, class_="small strong halo")
    return text(x - beside, y + 4, words, class_="small strong halo end")


def ring(x: Number, y: Number) -> str:
    """Return a ring that is seen on a mark, too, because its edge has the page's colour."""
    return dot(x, y, 6, class_="cut") + dot(x, y, 6, class_="start")


def words_beside(
    guesses: Sequence[Guess], asked: object, name: str, tracks: Sequence[Track]
) -> Iterator[str]:
    """Yield the words beside each mark that is set: how far the guess is off.

    `guesses` has a guess for each mark that is set, in the order of the tracks.
    """
    places = []
    for track, level in zip(tracks, getattr(asked, name), strict=True):
        if level is not None:
            places.append(track.at(_share(asked, name, level)))
    for guess, (x, y) in zip(guesses, places, strict=True):
        # At the right of the mark; 4 lower, so that the letters' middle is level with the mark's.
        yield text(x + RADIUS + 4, y + 4, _how_far_off(guess), class_="small strong halo")


def summed_up(guesses: Sequence[Guess]) -> str:
    """Return one sentence on the guesses; empty if there are none.

    Of three or more it says how many have which word, as in "Your 9 guesses: 7 close, 2 far". It
    names the one that was farthest off.
    """
    if not guesses:
        return ""
    guess = max(guesses, key=_how_far)
    if len(guesses) < 3:
        return _on_farthest(guess, guesses)
    words = [one.word for one in guesses]
    if words.count(SPOT_ON) == len(words):
        return translated(ALL_SPOT_ON, count=f"{len(words)}")
    with_word = []
    for word in WORDS:  # from the best to the worst
        if word in words:
            with_word.append(translated(WITH_WORD[word], count=f"{words.count(word)}"))
    return translated(
        SUMMED_UP,
        count=f"{len(words)}",
        words=", ".join(with_word),
        asked=translated(guess.asked),
        how_far=guess.how_far,
    )


def _on_farthest(guess: Guess, guesses: Sequence[Guess]) -> str:
    """Return the sentence on the farthest of one or two guesses."""
    return translated(
        FARTHEST[len(guesses) > 1, guess.word.startswith("right")],
        asked=translated(guess.asked),
        word=translated(guess.word),
        how_far=guess.how_far,
    )


def _how_far(guess: Guess) -> tuple[int, float]:
    """Return the place of the guess's word from the best one on, and then how far off it is.

    That is in points of a share, or a factor, as its sentence says it.
    """
    in_points = whole_judged_by(guess.measured, guess.unit) in SHARES
    off = abs(guess.said - guess.measured) if in_points else guess.off
    return WORDS.index(guess.word), off


def _how_far_off(guess: Guess) -> str:
    """Return the words beside a mark: "spot on", or by how many points or which factor it is off.

    The word is that of the sentence below the picture.
    """
    if guess.word == SPOT_ON:
        return translated(guess.word)
    whole = whole_judged_by(guess.measured, guess.unit)
    if whole in SHARES:
        points = 100 / whole * (guess.said - guess.measured)
        sign = "+" if points > 0 else "−"
        return f"{sign}{three_digits(abs(points))}"
    if guess.off == math.inf:  # no factor makes a guess of 0 right
        return translated(guess.word)
    ratio = guess.said / guess.measured
    # A factor such as × 0.00781 would have to be turned round by the reader; the sentence below
    # says "a factor of 128 too small". Of a close guess, both say 0.9 times.
    is_turned = 0 < ratio < 1 and guess.word != CLOSE
    factor = 1 / ratio if is_turned else ratio
    sign = "÷" if is_turned else "×"
    # A whole number is said in full, which would be too wide beside a mark.
    return f"{sign} {factor:.2g}" if factor >= WIDE else f"{sign} {three_digits(factor)}"


def _field(asked: object, name: str) -> Drawn:
    """Return the lab's field of that name, from the metadata of the dataclass of the answers."""
    return asked.__dataclass_fields__[name].metadata["field"]


def _share(asked: object, name: str, level: int | None) -> float:
    """Return how far along its track a mark is, from 0 to 1: 0.5, the middle, if it is not set."""
    if level is None:
        return 0.5
    return level / _field(asked, name).top(vars(asked))
