"""Reads a number as somebody types it into a field, in the notebook or on a phone.

The pages without a kernel read it in JavaScript, with the tables of this module.
"""

import re

from course_utils.core.say import refusals
from course_utils.core.say.answer_units import (
    A_SECOND,
    EACH_SECOND,
    ENDINGS,
    IN_PERCENT,
    OTHER_UNITS,
    PERCENT,
    first_word,
)
from course_utils.core.say.refusals import LONGEST

LARGEST_WHOLE = 1e15  # from here on a number stays a float, and is shown with an exponent
# What may be typed, and the operation that it stands for. A space ends each factor, so that 6万5 is
# refused: its factor would be 1e45.
OPERATIONS = {
    "thousand": "*1e3 ",
    "million": "*1e6 ",
    "billion": "*1e9 ",
    "trillion": "*1e12 ",
    "百": "*1e2 ",  # what a Chinese reader counts in; a trillion is 万亿
    "千": "*1e3 ",
    "万": "*1e4 ",
    "亿": "*1e8 ",
    "**": "^",
}
MEASURE_WORD = "个"  # stands between a number and what is counted, as in 3 个月
# Typographic signs, and the ASCII ones for them.
SIGNS = str.maketrans("−–×x·⋅∙÷٫’\u00a0\u2009\u202f⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "--*****/.'   0123456789-")
# Patterns of a number, each with a pattern of what separates its thousands. A dot is a decimal
# point unless there are several. A comma before just three digits separates thousands, as in this
# course. The field shows how the number was understood.
_NOTHING = "(?!)"  # matches nowhere
FORMS = (
    # 12,000.5 and 12 000
    (r"[1-9]\d{0,2}([ ',_])\d{3}(?:\1\d{3})*(?:\.\d*)?", "[ ',_]"),
    # 12.000,5
    (r"[1-9]\d{0,2}([ '.])\d{3}(?:\1\d{3})*,\d*", "[ '.]"),
    # 1.500.000
    (r"[1-9]\d{0,2}(?:\.\d{3}){2,}", r"\."),
    # without thousands: 1500, 1.5 and ,5
    (r"\d+[.,]?\d*|[.,]\d+", _NOTHING),
)
# Each begins with a space, so that 1½ is refused, and is not 11/2.
FRACTIONS = {"½": " 1/2", "⅓": " 1/3", "⅔": " 2/3", "¼": " 1/4", "¾": " 3/4"}
ABOUT = " ~≈"  # what may stand before a number
# Matches 0x1F and 0b101, whose bases are 16 and 2.
_IN_OTHER_BASES = re.compile(r"\s*(0x[\da-f]+|0b[01]+)\s*", re.IGNORECASE)
# Matches the beginning of -0x1 and 0x1.5, which are refused: the x would be read as "times", but
# nobody means 0 times 1.
_IN_NO_BASE = re.compile(r"\s*[-+−]?0[xb]", re.IGNORECASE)
THOUSAND = r"(?<=[\d.,])\s*k\s*$"  # 65k, at the end of the text
TIMES = "times "  # how a unit begins behind which there are factors, as in "times S · H"
BETWEEN = r"[\s·*×]*"  # what somebody types between such factors
PLUS = r"(?<=[\d.,])\s*\+"  # between two numbers
TIMES_PLUS = r"[*/]\s*\+"
# A sign, digits, an exponent and a power, of which only the digits have to be there: -1.5e3, 10^9.
TERM = re.compile(
    r"\A\s*([-+]?)([\d ',._]*\d[.,]?)(?:e([-+]?\d{1,3}))?(?:\s*\^\s*([-+]?\d{1,3}))?\s*\Z"
)


def read(text: str, unit: str = "") -> int | float:
    """Return the number that the text means; the unit that was asked for may follow it.

    ValueError, with sentences for the reader, if the text means no number, or one that no answer
    in that unit can be, such as a share of 1.2.

    >>> read("1,5"), read("12 000"), read("2.4 * 10^9"), read("10⁻³"), read("1/4"), read("½")
    (1.5, 12000, 2400000000, 0.001, 0.25, 0.5)
    >>> read("12 GB", "GB"), read("1 year", "days"), read("0x10"), read("3x", "times as many")
    (12, 365.25, 16, 3)
    >>> read("700 亿"), read("15 万亿"), read("400亿", "billions"), read("3 个月", "days")
    (70000000000, 15000000000000, 40, 91.3125)
    >>> read("2,400 MB", "GB"), read("2^31", "bytes"), read("12 pct", "share"), read("~5")
    (2.4, 2147483648, 0.12, 5)
    >>> read("7+2+4+3"), read("1.5 + 3 GB", "GB"), read("65k", "tokens"), read("2SH", "times S · H")
    (16, 4.5, 65000, 2)
    """
    typed = text.strip()
    try:
        number = _number(typed, unit)
    except (ValueError, ArithmeticError) as error:
        fault = refusals.no_number(
            typed,
            unit,
            is_number=lambda part: _is_number(part, unit),
            is_too_large=isinstance(error, ArithmeticError),
        )
        raise ValueError(fault) from None
    fault = refusals.out_of_bounds(number, unit)
    if fault:
        raise ValueError(fault)
    return number


def _is_number(text: str, unit: str) -> bool:
    """Whether the text is a number, also if no answer in that unit can be such a number."""
    try:
        _number(text, unit)
    except (ValueError, ArithmeticError):
        return False
    return True


def _number(text: str, unit: str) -> int | float:
    """Return the number in the text, in that unit.

    ValueError if the text is no number; an ArithmeticError if it is too large, or has a 0 below a
    fraction. Here and below, an error has no words, because `read` replaces it.
    """
    # Cut, because `_in_ascii` refuses a text longer than LONGEST only below. So a number in another
    # base that is even longer is read as its first LONGEST characters.
    in_other_base = _IN_OTHER_BASES.fullmatch(text[:LONGEST])
    if in_other_base:
        return int(in_other_base[1], base=0)  # base 0: by the prefix, 0x or 0b
    text = text.replace(MEASURE_WORD, " ").lstrip(ABOUT)
    for fraction, words in FRACTIONS.items():
        text = text.replace(fraction, words)
    if unit.endswith(A_SECOND):
        # Of "300 tok/s", as an answer in tokens a second, 300 tok is left, as one in tokens.
        text = re.sub(EACH_SECOND, "", text, flags=re.IGNORECASE)
        unit = unit.removesuffix(A_SECOND)
    text, size = _in_its_unit(text, unit)
    value = _sum(_in_ascii(text, unit))
    if size != 1:
        # With 15 digits, 57 % is 0.57; 57 * 0.01 alone is a little more.
        value = float(f"{value * size:.15g}")
    whole = int(value)  # raises an error for infinity and NaN
    is_whole = whole == value and abs(value) < LARGEST_WHOLE
    return whole if is_whole else value


def _in_its_unit(text: str, unit: str) -> tuple[str, float]:
    """Return the number without its unit, and the size of that unit in the one asked for.

    Asked for days, somebody types 10 years: the result is "10" and 365.25. If no unit of
    OTHER_UNITS was typed, the result is the whole text and 1.
    """
    asked = first_word(unit)  # "days" of "days of one GPU"
    lower = text.lower().strip()
    for percent in PERCENT:
        if asked in IN_PERCENT and lower.endswith(percent):
            return lower.removesuffix(percent), 1 / 100
    # As in "10 years": 10 and year, without the s of the plural. As in 10 年: 10 and 年.
    match = re.fullmatch(r"\s*(.*\d)\s*([a-z\u4e00-\u9fff]+?)s?\s*", text.lower()[:LONGEST])
    if match:
        number, typed_unit = match.groups()
        sizes = OTHER_UNITS.get(asked, {})  # for "days", {"year": 365.25, "week": 7, …}
        if typed_unit in sizes:
            return number, sizes[typed_unit]
    return text, 1


def _in_ascii(text: str, unit: str) -> str:
    """Return the text in lower case, without its unit, in ASCII, with one sign for each operation.

    ValueError if the text is too long, or begins like a number in another base.
    """
    if len(text) > LONGEST or _IN_NO_BASE.match(text):
        raise ValueError
    # A raised number is a power, so a ^ is put before its first sign: 10⁻³ becomes 10^⁻³.
    text = re.sub("(?=[⁰¹²³⁴⁵⁶⁷⁸⁹⁻])(?<![⁰¹²³⁴⁵⁶⁷⁸⁹⁻])", "^", text.lower().strip())
    # Whoever is asked for "days of one GPU" may type all of that behind the number, days, or day.
    first = first_word(unit)
    endings = [unit.lower(), first, first.removesuffix("s")]
    endings.extend(ENDINGS.get(first, ()))  # such as % for "percent"
    for ending in endings:
        text = text.removesuffix(ending)
    text = _without_factors(text, unit.lower())
    if "kb" not in OTHER_UNITS.get(first, {}):  # of bytes, k is a kB cut short
        text = re.sub(THOUSAND, "*1e3", text)
    # SIGNS makes × a *, for example, and OPERATIONS makes "million" a *1e6.
    text = "".join(_ascii_digit(character) for character in text).translate(SIGNS)
    for words, sign in OPERATIONS.items():
        text = text.replace(words, sign)
    return text


def _without_factors(text: str, unit: str) -> str:
    """Return the text without the factors of its unit: in "times s · h", "16 sh" is 16."""
    if not unit.startswith(TIMES):
        return text
    factors = re.findall(r"\w+", unit.removeprefix(TIMES))
    return re.sub(rf"{BETWEEN}{BETWEEN.join(factors)}\s*$", "", text)


def _ascii_digit(character: str) -> str:
    """Return a digit of any script as one from 0 to 9; any other character as it is."""
    return str(int(character)) if character.isdecimal() else character


def _sum(text: str) -> float:
    """Return the value of one product, or of several with + between them.

    ValueError if one of them is none, or for 3x + 4x, which without its last x is 3 * + 4.
    """
    if re.search(TIMES_PLUS, text):
        raise ValueError
    # Not at the sign of 1e+3 or of +3, because no digit is before it.
    return sum(_product(part) for part in re.split(PLUS, text))


def _product(text: str) -> float:
    """Return the value of one number, or of several with * and / between them.

    ValueError if one of them is no number.
    """
    # "2*3/4" becomes 2, and after it the signs and the numbers by turns: *, 3, /, 4.
    first, *more = re.split("([*/])", text)
    signs = more[::2]
    terms = more[1::2]
    value = _term(first)
    for sign, term in zip(signs, terms, strict=True):
        if sign == "*":
            value = value * _term(term)
        else:
            value = value / _term(term)
    return value


def _term(text: str) -> float:
    """Return the value of one number, which may have an exponent as in 3e9, a power as in 10^9."""
    match = TERM.match(text)
    if not match:
        raise ValueError
    sign, digits, exponent, power = match.groups(default="")
    base = float(f"{_decimal(digits)}e{exponent or 0}")
    size = base ** int(power) if power else base  # the sign is not raised: -2^2 is -4
    return -size if sign == "-" else size


def _decimal(digits: str) -> str:
    """Return the number as Python writes it: no separated thousands, and a dot as the point.

    ValueError if the number has none of the FORMS.
    """
    # Patterns of a number, and of what separates its thousands, such as the dots of 12.000,5.
    for form, separator in FORMS:
        if re.fullmatch(form, digits):
            without_separators = re.sub(separator, "", digits)
            return without_separators.replace(",", ".")  # a comma that is left is the point
    raise ValueError
