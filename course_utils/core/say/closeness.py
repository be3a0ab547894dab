"""How close a guess is to what was measured, in one word of WORDS.

The bounds of a word fit the question. A share is judged by points, a small count by the number
itself, and a size by how many times too large or too small the guess is.
"""

import math
import re

from course_utils.core.say.language import template

# In the record and in the code a word is English. It is translated where a reader sees it.
SPOT_ON = template("spot on")
CLOSE = template("close")
POWER = template("right power of ten")
FAR = template("far")
MISSED = template("missed")  # of a wrong option, which is neither near nor far
WORDS = (SPOT_ON, CLOSE, POWER, FAR, MISSED)  # from the best to the worst

Bounds = tuple[float, float, str]  # the lowest guess, the highest, and the word for it

COUNTED = 100  # a whole number below this one is judged as a count, and not as a size
# Below this number, a half of a power of ten to either side would take in most guesses that anybody
# makes, so that "right power of ten" would say nothing.
FEW = 10
# By points, a guess of 0 would be spot on where less than 2 % was measured. So a share that is less
# than this part of the whole is judged as a size.
SMALL_SHARE = 0.02
# Units in which a whole number is no count: it is whole only by accident.
CONTINUOUS = re.compile("billion|day|GB|GiB|second")
# Units of which there are few or many.
COUNTS = ("bytes", "elements", "FLOPs", "layers", "sequences", "steps", "tokens")
OF_HOW_MANY = re.compile(r"of (\d[\d,]*)\Z")  # matches "of 200" and "of 1,024"


def bounds(measured: float, unit: str = "", digits: int | None = None) -> list[Bounds]:
    """Return the lowest and the highest guess for each word, from the strictest word on.

    The word for a guess is that of the first bounds which the guess is within, both ends included.
    A guess outside all of them is far. `digits` is how many significant digits the measured value
    is shown with; None means in full.

    >>> bounds(30, "percent")
    [(28.0, 32.0, 'spot on'), (20.0, 40.0, 'close')]
    >>> [word for _, _, word in bounds(2.416, "GB")]
    ['spot on', 'close', 'right power of ten']
    >>> bounds(5, "layers")
    [(5, 5, 'spot on'), (4, 6, 'close')]
    """
    if not math.isfinite(measured):
        return [(measured, measured, SPOT_ON)]  # nothing else is near infinity
    if whole_judged_by(measured, unit):
        return [_within(measured, apart, word) for apart, word in _points_apart(measured, unit)]
    count = _count(measured, unit, digits)
    if count is not None:
        return _of_count(count)
    # Within 5 %; sorted, because a measured value may be negative.
    lowest, highest = sorted((0.95 * measured, 1.05 * measured))
    spot_on = (lowest, highest, SPOT_ON)
    if unit.startswith("times") and abs(measured) < FEW:
        # Of 1.08 times, a guess of 1.5 would have missed all that there is to see.
        return [spot_on, _within_factor(measured, 1.25, CLOSE)]
    return [
        spot_on,
        _within_factor(measured, 1.5, CLOSE),
        _within_factor(measured, math.sqrt(10), POWER),  # half a power of ten to either side
    ]


def bounds_between(one: float, other: float, unit: str = "") -> list[Bounds]:
    """Return the bounds of each word for two estimates of what is asked.

    A guess between both is spot on, and any other is judged by the nearer one.

    >>> bounds_between(20, 40, "days")[0]
    (19.0, 42.0, 'spot on')
    """
    lowest, highest = sorted((one, other))
    below = {word: low for low, _, word in bounds(lowest, unit)}
    above = {word: high for _, high, word in bounds(highest, unit)}
    found = []
    for word in WORDS:
        if word in below or word in above:
            lowest = min(lowest, below.get(word, lowest))
            highest = max(highest, above.get(word, highest))
            found.append((lowest, highest, word))
    return found


def closeness(said: float, measured: float, unit: str = "", digits: int | None = None) -> str:
    """Return the word for a guess, one of WORDS; `said` is the guess.

    >>> closeness(2.4, 2.416, "GB"), closeness(30, 22, "percent"), closeness(2, 1, "times")
    ('spot on', 'close', 'far')
    >>> closeness(3, 2.01, digits=2), closeness(3, 2, digits=2)
    ('close', 'far')
    """
    for lowest, highest, word in bounds(measured, unit, digits):
        if lowest <= said <= highest:
            return word
    return FAR


def _whole_of(unit: str) -> float:
    """Return what the whole is in that unit, such as 100 in percent; 0 if there is no whole.

    >>> _whole_of("percent"), _whole_of("share"), _whole_of("of 200"), _whole_of("GB")
    (100, 1, 200, 0)
    """
    if unit.startswith(("percent", "%")):
        return 100
    if unit.startswith("share"):
        return 1
    return how_many_in(unit)


def how_many_in(unit: str) -> int:
    """Return how many there are in all, such as 1,024 for "of 1,024"; 0 for any other unit."""
    among = OF_HOW_MANY.match(unit)
    return int(among[1].replace(",", "")) if among else 0


def whole_judged_by(measured: float, unit: str) -> float:
    """Return the whole if a guess is judged by its distance in points; 0 if by its factor.

    A share that is small, or larger than the whole, is a size like others.

    >>> whole_judged_by(30, "percent"), whole_judged_by(0.3, "percent"), whole_judged_by(5, "GB")
    (100, 0, 0)
    """
    whole = _whole_of(unit)
    if not 0 <= measured <= whole:
        return 0
    is_small = 0 < measured < SMALL_SHARE * whole
    is_share = not OF_HOW_MANY.match(unit)
    return 0 if is_small and is_share else whole


def _points_apart(measured: float, unit: str) -> list[tuple[float, str]]:
    """Return for each word how far a guess may be from the measured value, such as 2 of 100.

    A count out of several has narrower bounds than a share; but one too many or too few is close,
    unless there are so few in all that one is a large part.
    """
    whole = _whole_of(unit)
    if OF_HOW_MANY.match(unit):  # such as "of 200"
        one = 1 if whole >= FEW else 0
        return [(0.01 * whole, SPOT_ON), (max(one, 0.05 * whole), CLOSE)]
    # 2 points are much of a few percent: 5 % for 3 % is close, and not spot on.
    return [(min(0.02 * whole, measured / 4), SPOT_ON), (0.1 * whole, CLOSE)]


def _count(measured: float, unit: str, digits: int | None) -> int | None:
    """Return the measured value, as it is shown, if that is a small whole number; else None.

    `digits` is how many significant digits are shown; None means all.
    """
    # In GB or days, for example, a number is whole only by accident.
    if CONTINUOUS.search(unit) or abs(measured) >= COUNTED:
        return None
    shown = float(f"{measured:.{digits}g}") if digits else measured
    # A size such as 2.01 is none, even if it is shown as 2.0.
    is_near = abs(measured - shown) <= 0.002 * abs(measured)
    return int(shown) if is_near and shown == int(shown) else None


def is_counted(measured: float, unit: str, digits: int | None = None) -> bool:
    """Whether a guess that is not far off is so many too few, or too many, of that unit.

    >>> is_counted(16, "bytes"), is_counted(16, "days"), is_counted(1024, "bytes")
    (True, False, False)
    """
    return unit in COUNTS and _count(measured, unit, digits) is not None


def _of_count(count: int) -> list[Bounds]:
    """Return the bounds of a count: the lowest guess, the highest, and the word for each.

    One too many or too few is close only from 4 on, because of 3 it is a third. Of more than ten,
    a tenth too many is close.
    """
    bounds_of_words = [(count, count, SPOT_ON)]
    if abs(count) >= 4:
        apart = max(1, 0.1 * abs(count))
        bounds_of_words.append((count - apart, count + apart, CLOSE))
    if abs(count) >= FEW:
        bounds_of_words.append(_within_factor(count, math.sqrt(10), POWER))
    return bounds_of_words


def _within(measured: float, apart: float, word: str) -> Bounds:
    """Return the bounds from `apart` below the measured value to `apart` above it."""
    # Rounded, so that 25.6 is not below 27.6 - 2, which a float makes 25.600000000000001.
    return round(measured - apart, 12), round(measured + apart, 12), word


def _within_factor(measured: float, factor: float, word: str) -> Bounds:
    """Return the bounds from the measured value / factor to the measured value × factor."""
    # Sorted, because a measured value may be negative.
    lowest, highest = sorted((measured / factor, measured * factor))
    return lowest, highest, word
