"""How a number is written: with its unit, in full or with three digits."""

import math
from collections.abc import Sequence
from decimal import Decimal

from course_utils.core.say.language import template, translated

Number = int | float
# A whole number is written in full below this one, and from here on with an exponent.
_IN_FULL_BELOW = 10**15


def as_float(n: Number) -> float:
    """Return the number as a float; infinity if the number is too large for one."""
    try:
        return float(n)
    except OverflowError:
        return math.inf if n > 0 else -math.inf


def count_text(n: int, of: str) -> str:
    """Return a count with its noun `of`: in full below 10^15, else with three digits.

    >>> count_text(1, "step"), count_text(8192, "step"), count_text(2**80, "step")
    ('1 step', '8,192 steps', '1.21e+24 steps')
    """
    return f"{whole_text(n)} {of}" if n == 1 else f"{whole_text(n)} {of}s"


def whole_text(n: int) -> str:
    """Return a count without its noun: in full below 10^15, else with three digits."""
    return f"{n:,}" if n < _IN_FULL_BELOW else f"{n:.3g}"


def listed(names: Sequence[object]) -> str:
    """Return names as a list in a sentence: a, b and c.

    >>> listed(["model", "step", "data"])
    'model, step and data'
    """
    words = [str(name) for name in names]
    if len(words) < 2:
        return "".join(words)
    *before, last = words
    text, *following = before
    for name in following:
        text = translated("{names}, {next}", names=text, next=name)
    return translated("{names} and {last}", names=text, last=last)


def letters_wide(words: str) -> int:
    """Return how many letters wide the words are; those of Chinese and Japanese count twice.

    >>> letters_wide("measured"), letters_wide("实测")
    (8, 4)
    """
    return sum(2 if letter > _LAST_NARROW else 1 for letter in words)


def times_text(ratio: Number) -> str:
    """Return a ratio as "… times", with three digits, or in full if it is large.

    A ratio near 1 has enough digits to differ from 1.

    >>> times_text(15.77), times_text(13_400_000), times_text(1.0000312)
    ('15.8 times', '13,400,000 times', '1.00003 times')
    """
    return translated("{ratio} times", ratio=_ratio_text(ratio))


def _ratio_text(ratio: Number) -> str:
    """Return the number of `times_text`, without the word behind it."""
    apart = abs(ratio - 1)
    if 0 < apart < 0.005:  # three digits would be those of 1
        # As many digits as it takes to reach the first one in which the ratio differs from 1.
        digits = 1 - math.floor(math.log10(apart))
        return f"{ratio:.{digits}g}"
    return three_digits(ratio)


def factor_text(factor: Number) -> str:
    """Return a factor as a person would say it: with three digits, or a small whole one in full.

    >>> factor_text(12.79), factor_text(2048), factor_text(2_762_430_939), factor_text(3e20)
    ('12.8', '2,048', '2.76 billion', '3 × 10^20')
    """
    if factor < 10_000 and factor == int(factor):
        return _for_people(factor)
    rounded = float(f"{factor:.3g}")  # first, so that 999,900 is 1 million
    for size, name in _LARGE.items():
        if size <= rounded < 1000 * size:
            return translated(name, number=three_digits(rounded / size))
    return _for_people(rounded)


def three_digits(n: Number) -> str:
    """Return the number with three digits; from 100 to a million billions, as a whole number.

    >>> three_digits(1.2345), three_digits(13_400_000.4), three_digits(2e300)
    ('1.23', '13,400,000', '2e+300')
    """
    if 99.95 <= abs(n) < _IN_FULL_BELOW:  # from 99.95 on, three digits have no decimals
        return f"{n:,.0f}"
    return f"{n:.3g}"


def number_text(n: Number, digits: int | None = None) -> str:
    """Return a whole number in full, with separators; any other with six significant digits.

    With `digits`, any other number has that many significant digits, trailing zeros included.

    >>> number_text(2_415_919_104), number_text(0.9998, 2), number_text(1909.4, 4)
    ('2,415,919,104', '1.0', '1,909')
    """
    if isinstance(n, float) and n.is_integer() and abs(n) < _IN_FULL_BELOW:
        n = int(n)
    if isinstance(n, int):
        # From 10^100 on, nobody reads all digits, and Python refuses to write more than 4,300.
        return f"{n:,}" if abs(n) < 10**100 else f"{Decimal(n):.6g}"
    if digits:
        return with_digits(n, digits)
    return f"{n:.6g}"


def with_digits(n: Number, digits: int) -> str:
    """Return the number with that many significant digits, trailing zeros included."""
    # The # in the format keeps trailing zeros, and also a point behind a whole number.
    return f"{n:#,.{digits}g}".removesuffix(".")


def bytes_text(n: Number) -> str:
    """Return a number of bytes: in full, in binary units and in decimal units.

    >>> bytes_text(2304 * 2**20)
    '2,415,919,104 bytes = 2.25 GiB = 2.42 GB'
    """
    if abs(n) < 1000:
        return f"{three_digits(n)} {'byte' if n == 1 else 'bytes'}"
    binary = _scaled(n, 1024, _BINARY)
    decimal = _scaled(n, 1000, _DECIMAL)
    return f"{number_text(n)} bytes = {binary}B = {decimal}B"


def decimal_bytes_text(n: Number) -> str:
    """Return a number of bytes in decimal units alone, as in data sheets.

    >>> decimal_bytes_text(80_000_000_000), decimal_bytes_text(96)
    ('80 GB', '96 bytes')
    """
    return bytes_text(n).split(" = ")[-1]  # the last of "… bytes = … GiB = … GB"


def flops_text(n: Number) -> str:
    """Return a count of floating-point operations, in the unit that fits.

    >>> flops_text(33_554_432)
    '33.6 MFLOPs'
    """
    return f"{_scaled(n, 1000, _DECIMAL)}FLOPs"


def rate_text(per_sec: Number, of: str = "FLOP") -> str:
    """Return a rate in decimal units; `of` is what is counted, "FLOP" or "B" for bytes.

    >>> rate_text(989.5e12), rate_text(3.35e12, "B")
    ('990 TFLOP/s', '3.35 TB/s')
    """
    return f"{_scaled(per_sec, 1000, _DECIMAL)}{of}/s"


def seconds_text(seconds: Number) -> str:
    """Return a time, from nanoseconds to years, in the unit that a person would use.

    >>> seconds_text(0.00123), seconds_text(12_435_328)
    ('1.23 ms', '144 days')
    """
    # From the longest unit on. An entry is such as (7200, 3600, "{number} hours"): from two hours
    # on, times are said in hours of 3,600 seconds.
    for smallest, size, words in _TIMES:
        rounds_up_to_smallest = 0.9995 * smallest  # which three digits show as `smallest` itself
        if abs(seconds) >= rounds_up_to_smallest:
            return translated(words, number=three_digits(seconds / size))
    return f"{three_digits(seconds * 1e9)} ns"


def in_words(n: Number, unit: str = "", digits: int | None = None) -> str:
    """Return a number as a person would say it, with three digits and the unit that fits its size.

    A whole number below a billion is written in full if its unit has no larger ones. A number that
    is not whole has at most `digits` digits. A unit with a space behind it is kept as it is.

    >>> in_words(44_193_349_632, "bytes"), in_words(2.416, "GB"), in_words(1.358e12, "FLOP/s")
    ('44.2 GB', '2.42 GB', '1.36 TFLOP/s')
    >>> in_words(143.927, "days"), in_words(0.25, "share"), in_words(16.001, "bytes")
    ('144 days', '25 %', '16 bytes')
    >>> in_words(0.6, "GB"), in_words(0.6, "GB ")
    ('600 MB', '0.6 GB')
    """
    n = int(n) if isinstance(n, int) else as_float(n)  # a number of NumPy's, too, becomes Python's
    is_scalable = abs(n) < 1e27  # from here on, no prefix of _DECIMAL is large enough
    if unit in _SCALED and is_scalable:
        # Such as 10^9 and the function decimal_bytes_text for "GB".
        size, as_text = _SCALED[unit]
        return as_text(n * size)
    if unit.startswith("share"):
        return f"{_for_people(100 * n, digits)} %"
    if unit.startswith(("percent", "%")):
        return f"{_for_people(n, digits)} %"
    if unit.startswith(("millions of ", "billions of ")):
        unit = unit.replace("ions of", "ion", 1)  # as in "175 billion parameters"
    if n == 1 and " " not in unit:
        unit = unit.removesuffix("s")  # the plural's
    return f"{_for_people(n, digits)} {unit}".strip()


def _for_people(n: Number, digits: int | None = None) -> str:
    """Return a whole number below 10^9 in full, and any other with three digits.

    If `digits` is less than three, the other numbers have only that many digits. Below 10^-4 and
    from 10^9 on, a number is written as a multiple of a power of ten, such as 1.5 × 10^12.
    """
    if isinstance(n, float) and not math.isfinite(n):
        return _NOT_FINITE[str(n)]
    if n == 0 or (abs(n) < 1e9 and n == int(n)):
        return f"{int(n):,}"
    at_most = min(digits or 3, 3)  # without `digits`, three
    if 1e-4 <= abs(n) < 1e9:
        if at_most < 3:
            n = float(f"{n:.{at_most}g}")
        return three_digits(n)
    # By way of Decimal, because a whole number can be too large for a float.
    mantissa, _, power = f"{Decimal(n):.{at_most - 1}e}".partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    times = "" if mantissa == "1" else f"{mantissa} × "
    return f"{times}10^{int(power)}"


_LARGE = {
    10**6: template("{number} million"),
    10**9: template("{number} billion"),
    10**12: template("{number} trillion"),
}
_LAST_NARROW = "\u2e7f"  # behind it come the letters that are as wide as they are high
_NOT_FINITE = {"nan": "NaN", "inf": "∞", "-inf": "-∞"}  # by Python's str()
# The prefixes of a unit, one for each power of 1,024 and of 1,000, from power 0 on.
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_TIMES = (  # the seconds from which on a unit is used, the seconds in one, and how it is said
    (2 * 365.25 * 86400, 365.25 * 86400, template("{number} years")),
    (2 * 86400, 86400, template("{number} days")),
    (2 * 3600, 3600, template("{number} hours")),
    (2 * 60, 60, template("{number} minutes")),
    (1, 1, "{number} s"),
    (1e-3, 1e-3, "{number} ms"),
    (1e-6, 1e-6, "{number} µs"),
)


def _scaled(n: Number, base: int, prefixes: tuple[str, ...]) -> str:
    """Return the number in a power of the base, with three digits, and that power's prefix."""
    power = 0
    # From base - 0.5 on, the number would be written as the base itself.
    while abs(n / base**power) >= base - 0.5 and power < len(prefixes) - 1:
        power += 1
    return f"{three_digits(n / base**power)} {prefixes[power]}"  # such as "2.25 Gi"


# What one of a unit is in the unit that is scaled, and the function that scales it.
_SCALED = {
    "bytes": (1, decimal_bytes_text),
    "GB": (10**9, decimal_bytes_text),
    "FLOPs": (1, flops_text),
    "FLOP/s": (1, rate_text),
    "TFLOP/s": (10**12, rate_text),
    "seconds": (1, seconds_text),
    "s": (1, seconds_text),
}
