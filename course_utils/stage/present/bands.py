"""The bands of guesses that count as right, and the words for them on the wall.

A factor of two is a fair band for a size that could be anything from thousands to billions. It is
no band for "2 times the forward pass", where 1 is the mistake that the question is about. So the
band follows from the unit, from the value, and from whether the notebook calls that value exact.
"""

from course_utils.core.say.closeness import CONTINUOUS, OF_HOW_MANY

Band = tuple[float, float, str]  # its lowest guess, its highest, and the words for it
SMALL = 100  # a whole number up to here is counted, not estimated
EXACT = 1_000_000  # below it, a whole number has to be hit, as in the notebook's own verdict


def bands(measured: float, unit: str, item: str = "", predicted: float | None = None) -> list[Band]:
    """Return the bands in which a guess counts as right; of two, the stricter comes first.

    `unit` is the question's, and `item` its row of the notebook's table. `predicted` is what the
    formula gives, where the measured value is shown in a few digits. Without it, the measured value
    is exact.

    >>> bands(2, "times the forward pass")
    [(2, 2, 'Exactly 2')]
    >>> [words for _, _, words in bands(668, "tokens")]
    ['Exactly 668', 'Within a factor of two']
    >>> bands(27.6, "percent", predicted=50)
    [(22.6, 32.6, 'Within 5 points')]
    """
    of_how_many = OF_HOW_MANY.match(unit)  # such as "of 1,000"
    if of_how_many:
        several = int(of_how_many[1].replace(",", ""))
        return [_among(several, measured)]
    # Of a few percent, a guess is judged by a factor, because 5 points would reach down to 0.
    if unit.startswith("percent") and 10 <= measured <= 100:
        return [_within(measured, 5, "5 points")]
    is_share = item.startswith("share") and 0 < measured < 1
    if is_share and predicted is not None:
        return [_within(measured, 0.05, "0.05")]
    # A small whole number is counted, so only that number is right.
    whole = _whole(measured, predicted)
    is_counted = whole is not None and abs(whole) <= SMALL
    if is_counted and not CONTINUOUS.search(unit):
        return [_exactly(whole)]
    # The wide band is a list of none or one, since it is added to other bands.
    wide = [] if _needs_a_narrow_band(measured, unit) else [_factor_of_two(measured)]
    # Where a formula gives the value, the measured one need not be hit.
    if predicted is not None:
        return wide if wide else [_within(measured, 0.1 * abs(measured), "10 %")]
    # An exact value may be hit; the wide band counts beside it, for those who came near.
    if whole is not None and whole < EXACT:
        return [_exactly(whole), *wide]
    return [_within(measured, 0.01 * abs(measured), "1 %"), *wide]


def _needs_a_narrow_band(measured: float, unit: str) -> bool:
    """Whether the band from half the measured value to twice it does not suit the question.

    It is too wide for a ratio of 0.1 to 10, and it has no width for a measured 0.
    """
    if measured <= 0:
        return True
    is_ratio = unit in ("", "share") or unit.startswith("times")
    return is_ratio and 0.1 <= measured < 10


def _whole(measured: float, predicted: float | None) -> int | None:
    """Return the measured value as a whole number; None if it is not one.

    If 16 bytes were predicted, 16.0003 measured ones count as 16: a measurement may be half a
    percent off a whole prediction.
    """
    if predicted is None:
        return int(measured) if measured == int(measured) else None
    nearest = round(predicted)
    is_predicted = abs(predicted - nearest) < 1e-9 * abs(predicted)  # but for rounding errors
    is_measured = abs(measured - nearest) < 0.005 * nearest
    return nearest if is_predicted and is_measured else None


def _among(several: int, measured: float) -> Band:
    """Return the band of a count out of `several`: the exact number out of a few.

    Out of many, a guess may be 5 % of them off, such as 10 out of 200.
    """
    apart = several // 20  # 5 %, rounded down
    if apart > 1:
        return _within(measured, apart, f"{apart} of {several:,}")
    return _exactly(round(measured))


def _exactly(whole: int) -> Band:
    return whole, whole, f"Exactly {whole:,}"


def _factor_of_two(measured: float) -> Band:
    return measured / 2, measured * 2, "Within a factor of two"


def _within(measured: float, apart: float, words: str) -> Band:
    # Rounded, so that 22.6 is not below 27.6 - 5, which a float makes 22.600000000000001.
    lowest = round(measured - apart, 12)
    highest = round(measured + apart, 12)
    return lowest, highest, f"Within {words}"
