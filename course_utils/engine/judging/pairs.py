"""A wrong result and the expected one, so that a reader sees how they differ.

Long numbers are also said as a person would, and a dict is named by its keys.
"""

from decimal import Decimal

from course_utils.core.say import Number, in_words, listed
from course_utils.core.say.language import translated
from course_utils.core.say.wording import factor_text
from course_utils.engine.judging.agreement import is_number, plain
from course_utils.engine.judging.sentences import number_in_full, shown

LONG = 10**8  # from nine digits on, two numbers are hard to tell apart by their digits
LEAST_IN_WORDS = 10**6  # below a million, the digits are the words
MOST_IN_WORDS = 10**15  # from here on, a number would be a power of ten in words, too
MOST_OF_EXACT = 5  # digits of a number that is written in full because they are all it has
LARGEST = 10**27  # no count of the course comes near this, whose digits fill a line


def beside(result: object, expected: object, unit: str = "") -> tuple[str, str]:
    """Return a wrong result in words, and the expected one with its unit.

    Where one of them is a dict and the other is none, the dict is named by its keys.
    """
    number = plain(result)  # Python's own, if it is one of NumPy's
    right = plain(expected)
    if type(number) in (int, float) and type(right) in (int, float) and abs(number) < LARGEST:
        return told_apart(number, right, unit)
    given = shown(result)
    if given == shown(expected):  # they differ beyond six digits
        return f"{result!r}", f"{expected!r}"
    wanted = f"{shown(expected)} {unit}".strip()
    if isinstance(expected, dict):
        is_one_number = is_number(plain(result))
        return _one_number(given) if is_one_number else given, _by_its_keys(expected)
    if isinstance(result, dict) and is_number(plain(expected)):
        return _by_its_keys(result), _one_number(wanted)
    return given, wanted


def _one_number(number: str) -> str:
    return translated("one number, {number}", number=number)


def _by_its_keys(x: dict) -> str:
    """Return a dict in words: what it is, and its keys."""
    if not x:
        return translated("an empty dict")
    if not all(map(_is_short, x)):
        return translated("a dict whose keys are long numbers")
    if len(x) == 1:
        return translated("a dict with the key {key}", key=listed(list(x)))
    return translated("a dict with the keys {keys}", keys=listed(list(x)))


def _is_short(key: object) -> bool:
    """Whether a key tells a reader something, which the address of a storage does not."""
    return isinstance(key, str) or (isinstance(key, int) and key < LEAST_IN_WORDS)


def told_apart(given: Number, expected: Number, unit: str = "") -> tuple[str, str]:
    """Return a wrong number, and the expected one with its unit.

    If one of them is long, both are said as a person would, with all digits behind, unless they
    differ in later digits only.

    >>> told_apart(44_193_349_632, 22_096_674_816, "bytes")
    ('44.2 GB (44,193,349,632 bytes)', '22.1 GB (22,096,674,816 bytes)')
    >>> told_apart(3_625_150_464, 494_032_768, "parameters")
    ('3.63 billion (3,625,150,464)', '494 million (494,032,768) parameters')
    >>> told_apart(14_909_440, 494_032_768, "parameters")
    ('14.9 million (14,909,440)', '494 million (494,032,768) parameters')
    >>> told_apart(494_031_872, 494_032_768, "parameters")
    ('494,031,872', '494,032,768 parameters')
    >>> told_apart(335_544_320.0, 0.3125)
    ('336 million', '0.3125')
    """
    given_words = _said(given, unit)
    expected_words = _said(expected, unit)
    is_any_long = max(abs(given), abs(expected)) >= LONG
    if not is_any_long or given_words == expected_words:
        given_words, expected_words = in_digits(given, expected)
        return given_words, f"{expected_words} {unit}".strip()
    # Both in the same form: all digits behind the words, or, if one is no integer, behind neither.
    if _is_whole(given) and _is_whole(expected):
        behind = unit if unit == "bytes" else ""  # which the words replace by GB
        given_words = _with_digits(given_words, int(given), behind)
        expected_words = _with_digits(expected_words, int(expected), behind)
    if unit == "bytes":
        return given_words, expected_words
    return given_words, f"{expected_words} {unit}".strip()


def in_digits(given: Number, expected: Number) -> tuple[str, str]:
    """Return both numbers with three digits, or as many as tell them apart; integers in full.

    A number that is exact with up to five digits, as many bit patterns are, has all of them.

    >>> in_digits(0.75, 0.3125), in_digits(0.1 + 0.2, 204.8)
    (('0.75', '0.3125'), ('0.3', '205'))
    """
    # With 17 digits, any two floats that differ are written differently.
    for digits in range(3, 18):
        words = _exactly(given, digits), _exactly(expected, digits)
        if words[0] != words[1]:
            break
    return words


def _exactly(x: Number, digits: int) -> str:
    """Return the number with that many digits, or with a few more if it is exact then."""
    if isinstance(x, float):
        for more in range(digits, MOST_OF_EXACT + 1):
            if Decimal(f"{x:.{more}g}") == Decimal(x):  # which has all digits of the float
                return number_in_full(x, more)
    return number_in_full(x, digits)


def _is_whole(x: Number) -> bool:
    return isinstance(x, int) or (x.is_integer() and x < MOST_IN_WORDS)


def _said(x: Number, unit: str) -> str:
    """Return the number as a person would say it, such as "44.2 GB", "494 million" or "512"."""
    if not _has_words(x):
        digits = _exactly(x, 3)
        return f"{digits} {unit}" if unit == "bytes" else digits
    return in_words(x, unit) if unit == "bytes" else factor_text(x)


def _with_digits(words: str, x: Number, unit: str = "") -> str:
    """Return the words, and behind those of a large number all its digits."""
    digits = number_in_full(x)
    if not _has_words(x) or "^" in digits:  # a power of ten tells no more than the words
        return words
    in_brackets = f"{digits} {unit}".strip()
    return f"{words} ({in_brackets})"


def _has_words(x: Number) -> bool:
    """Whether a person would say the number in words, such as million, or GB."""
    return LEAST_IN_WORDS <= x < MOST_IN_WORDS
