"""Which guesses of a room count as right, and in which words the wall says so.

A factor of two is a fair band for a size that could be anything from thousands to billions. It is
none for "2 times the forward pass", where 1 is the mistake that the question is about. So the
band follows from the unit, from the value, and from whether the notebook calls that value exact.
"""

import re

Band = tuple[float, float, str]
SMALL = 100  # a whole number up to here is counted, not estimated
EXACT = 1_000_000  # as for the reader's own guess: below it, a whole number has to be hit
# Sizes that come out whole only by accident.
CONTINUOUS = re.compile("billion|day|GB|second")
OF_HOW_MANY = re.compile(r"of (\d[\d,]*)\Z")


def bands(measured: float, unit: str, item: str = "", predicted: float | None = None) -> list[Band]:
    """Return from which guess to which, and the words for it; of two, the stricter comes first.

    `predicted` is the formula's value where the measured one is shown in a few digits; without it,
    the number is exact.

    >>> bands(2, "times the forward pass")
    [(2, 2, 'Exactly 2')]
    >>> [words for _, _, words in bands(668, "tokens")]
    ['Exactly 668', 'Within a factor of two']
    >>> bands(27.6, "percent", predicted=50)
    [(22.6, 32.6, 'Within 5 points')]
    """
    is_exact = predicted is None
    if among := OF_HOW_MANY.match(unit):
        return [_of(measured, int(among[1].replace(",", "")))]
    if unit.startswith("percent") and 10 <= measured <= 100:
        return [_within(measured, 5, "5 points")]
    if item.startswith("share") and not is_exact and 0 < measured < 1:
        return [_within(measured, 0.05, "0.05")]
    whole = _whole(measured, predicted)
    if whole is not None and abs(whole) <= SMALL and not CONTINUOUS.search(unit):
        return [_exactly(whole)]
    is_ratio = unit.startswith("times") or not unit
    is_narrow = measured <= 0 or (is_ratio and 0.1 <= measured < 10)
    wide = [] if is_narrow else [_factor_of_two(measured)]
    if is_exact and whole is not None and whole < EXACT:
        return [_exactly(whole), *wide]
    if is_exact:
        return [_within(measured, 0.01 * abs(measured), "1 %"), *wide]
    return wide or [_within(measured, 0.1 * abs(measured), "10 %")]


def _whole(measured: float, predicted: float | None) -> int | None:
    """The whole number that it is. If 16 were predicted, 16.0003 measured bytes are 16, too."""
    if predicted is None:
        return int(measured) if measured == int(measured) else None
    nearest = round(predicted)
    as_predicted = abs(predicted - nearest) < 1e-9 * abs(predicted)
    return nearest if as_predicted and abs(measured - nearest) < 0.005 * nearest else None


def _of(measured: float, among: int) -> Band:
    """Of a few, each counts; of 200, ten more or less are the same answer."""
    apart = among // 20
    return (
        _within(measured, apart, f"{apart} of {among:,}")
        if apart > 1
        else _exactly(round(measured))
    )


def _exactly(whole: int) -> Band:
    return whole, whole, f"Exactly {whole:,}"


def _factor_of_two(measured: float) -> Band:
    return measured / 2, measured * 2, "Within a factor of two"


def _within(measured: float, apart: float, words: str) -> Band:
    # Rounded, so that 22.6 is not below 27.6 - 5, which a float makes 22.600000000000001.
    return round(measured - apart, 12), round(measured + apart, 12), f"Within {words}"
