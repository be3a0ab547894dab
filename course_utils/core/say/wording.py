"""How a number is written: with its unit, in full or with three digits."""

import math
from collections.abc import Sequence
from decimal import Decimal

Number = int | float
# In full below this number; from here on, with an exponent.
_IN_FULL_BELOW = 10**15


def as_float(n: Number) -> float:
    """The number as a float; infinite if it is too large for one."""
    try:
        return float(n)
    except OverflowError:
        return math.inf if n > 0 else -math.inf


def count_text(n: int, of: str) -> str:
    """A count with its noun: in full below 10^15, else with three digits.

    >>> count_text(1, "step"), count_text(8192, "step"), count_text(2**80, "step")
    ('1 step', '8,192 steps', '1.21e+24 steps')
    """
    if n == 1:
        return f"{n:,} {of}"
    if n < _IN_FULL_BELOW:
        return f"{n:,} {of}s"
    return f"{n:.3g} {of}s"


def listed(names: Sequence[object]) -> str:
    """Names as a list in a sentence: a, b and c.

    >>> listed(["model", "step", "data"])
    'model, step and data'
    """
    words = [str(name) for name in names]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def times_text(ratio: Number) -> str:
    """How many times as much: with three digits, or in full if it is large.

    Near 1 it has enough digits to differ from 1.

    >>> times_text(15.77), times_text(13_400_000), times_text(1.0000312)
    ('15.8 times', '13,400,000 times', '1.00003 times')
    """
    apart = abs(ratio - 1)
    if 0 < apart < 0.005:  # three digits would be those of 1
        # As many digits as it takes to reach the first one in which the ratio differs from 1.
        digits = 1 - math.floor(math.log10(apart))
        return f"{ratio:.{digits}g} times"
    return f"{three_digits(ratio)} times"


def three_digits(n: Number) -> str:
    """The number with three digits; a whole number in full, up to a million billions.

    >>> three_digits(1.2345), three_digits(13_400_000.4), three_digits(2e300)
    ('1.23', '13,400,000', '2e+300')
    """
    if 99.95 <= abs(n) < _IN_FULL_BELOW:  # from 99.95 on, three digits have no decimals
        return f"{n:,.0f}"
    return f"{n:.3g}"


def number_text(n: Number, digits: int | None = None) -> str:
    """A whole number in full, with separators; any other number with six significant digits.

    With `digits`, any other number has that many significant digits, trailing zeros included.

    >>> number_text(2_415_919_104), number_text(0.9998, 2), number_text(1909.4, 4)
    ('2,415,919,104', '1.0', '1,909')
    """
    if isinstance(n, float) and n.is_integer() and abs(n) < _IN_FULL_BELOW:
        n = int(n)
    if isinstance(n, int):
        # Above, it has too many digits to be read. Python refuses to write out 4,300 of them.
        return f"{n:,}" if abs(n) < 10**100 else f"{Decimal(n):.6g}"
    if digits:
        return with_digits(n, digits)
    return f"{n:.6g}"


def with_digits(n: Number, digits: int) -> str:
    """The number with that many significant digits, trailing zeros included."""
    # The # keeps trailing zeros, and also a point behind a whole number.
    return f"{n:#,.{digits}g}".removesuffix(".")


def bytes_text(n: Number) -> str:
    """A number of bytes: in full, in binary units and in decimal units.

    >>> bytes_text(2304 * 2**20)
    '2,415,919,104 bytes = 2.25 GiB = 2.42 GB'
    """
    if abs(n) < 1000:
        return f"{three_digits(n)} bytes"
    binary = _scaled(n, 1024, _BINARY)
    decimal = _scaled(n, 1000, _DECIMAL)
    return f"{number_text(n)} bytes = {binary}B = {decimal}B"


def decimal_bytes_text(n: Number) -> str:
    """A number of bytes in decimal units alone, as in data sheets.

    >>> decimal_bytes_text(80_000_000_000), decimal_bytes_text(96)
    ('80 GB', '96 bytes')
    """
    return bytes_text(n).split(" = ")[-1]


def flops_text(n: Number) -> str:
    """A count of floating-point operations.

    >>> flops_text(33_554_432)
    '33.6 MFLOPs'
    """
    return f"{_scaled(n, 1000, _DECIMAL)}FLOPs"


def rate_text(per_sec: Number, of: str = "FLOP") -> str:
    """A rate in decimal units.

    >>> rate_text(989.5e12), rate_text(3.35e12, "B")
    ('990 TFLOP/s', '3.35 TB/s')
    """
    return f"{_scaled(per_sec, 1000, _DECIMAL)}{of}/s"


def seconds_text(seconds: Number) -> str:
    """A time, from nanoseconds to years, in the unit that a person would use.

    >>> seconds_text(0.00123), seconds_text(12_435_328)
    ('1.23 ms', '144 days')
    """
    for smallest, size, unit in _TIMES:
        if abs(seconds) >= 0.9995 * smallest:  # from here on, three digits round up to it
            return f"{three_digits(seconds / size)} {unit}"
    return f"{three_digits(seconds * 1e9)} ns"


def in_words(n: Number, unit: str = "", digits: int | None = None) -> str:
    """A number as a person would say it, with three digits and the unit that fits its size.

    A whole number below a billion is written in full if its unit has no larger ones. A number that
    is not whole has at most `digits` digits.

    >>> in_words(44_193_349_632, "bytes"), in_words(2.416, "GB"), in_words(1.358e12, "FLOP/s")
    ('44.2 GB', '2.42 GB', '1.36 TFLOP/s')
    >>> in_words(143.927, "days"), in_words(0.25, "share"), in_words(16.001, "bytes")
    ('144 days', '25 %', '16 bytes')
    """
    n = int(n) if isinstance(n, int) else as_float(n)
    is_scalable = abs(n) < 1e27  # above, there is no prefix
    if unit in _SCALED and is_scalable:
        size, in_unit = _SCALED[unit]
        return in_unit(n * size)
    if unit.startswith("share"):
        return f"{_for_people(100 * n, digits)} %"
    if unit.startswith(("percent", "%")):
        return f"{_for_people(n, digits)} %"
    if unit.startswith("billions of "):
        unit = unit.replace("billions of", "billion")
    one = n == 1 and " " not in unit
    return f"{_for_people(n, digits)} {unit.removesuffix('s') if one else unit}".strip()


def _for_people(n: Number, digits: int | None = None) -> str:
    """The number with three digits, or with fewer; as a multiple of a power of ten if it is far
    from 1."""
    if isinstance(n, float) and not math.isfinite(n):
        return "NaN" if n != n else "∞" if n > 0 else "-∞"
    if n == 0 or (abs(n) < 1e9 and n == int(n)):
        return f"{int(n):,}"
    if 1e-4 <= abs(n) < 1e9:
        return three_digits(float(f"{n:.{digits}g}") if digits and digits < 3 else n)
    mantissa, _, power = f"{Decimal(n):.{min(digits or 3, 3) - 1}e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    times = "" if mantissa == "1" else f"{mantissa} × "
    return f"{times}10^{int(power)}"


_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_TIMES = (  # the seconds from which on a unit is used, the seconds in one, and its name
    (2 * 365.25 * 86400, 365.25 * 86400, "years"),
    (2 * 86400, 86400, "days"),
    (2 * 3600, 3600, "hours"),
    (2 * 60, 60, "minutes"),
    (1, 1, "s"),
    (1e-3, 1e-3, "ms"),
    (1e-6, 1e-6, "µs"),
)


def _scaled(n: Number, base: int, prefixes: tuple[str, ...]) -> str:
    """The number divided by a power of the base, with three digits, and that power's prefix."""
    power = 0
    # From base - 0.5 on, the number would be written as the base itself.
    while abs(n / base**power) >= base - 0.5 and power < len(prefixes) - 1:
        power += 1
    return f"{three_digits(n / base**power)} {prefixes[power]}"


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
