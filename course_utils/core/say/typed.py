"""Reads a number as somebody types it into a field, in the notebook or on a phone.

The pages without a kernel read it in JavaScript, with the tables of this module.
"""

import re

LONGEST = 60  # characters
LARGEST_WHOLE = 1e15  # from here on a number stays a float, and is shown with an exponent
HOW = "Write it as 1500, 1.5, 3e9, 2.4 * 10^9, 1/3 or 12 million."
OPERATIONS = {  # and what they mean as an operation
    "thousand": "*1e3",
    "million": "*1e6",
    "billion": "*1e9",
    "trillion": "*1e12",
    "**": "^",
}
# Typographic signs, and the ASCII ones for them.
SIGNS = str.maketrans("−–×x·⋅∙÷٫’\u00a0\u2009\u202f⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "--*****/.'   0123456789-")
# Patterns of a number, each with a pattern of what separates its thousands. A dot is a decimal
# point unless there are several. A comma before just three digits separates thousands, as in this
# course. The field shows how the number was read.
_NOTHING = "(?!)"  # which matches nowhere
FORMS = (
    # 12,000.5 and 12 000; 12.000,5; 1.500.000; and without thousands 1500, 1.5 and ,5
    (r"[1-9]\d{0,2}([ ',_])\d{3}(?:\1\d{3})*(?:\.\d*)?", "[ ',_]"),
    (r"[1-9]\d{0,2}([ '.])\d{3}(?:\1\d{3})*,\d*", "[ '.]"),
    (r"[1-9]\d{0,2}(?:\.\d{3}){2,}", r"\."),
    (r"\d+[.,]?\d*|[.,]\d+", _NOTHING),
)
# Units that people type in place of the one asked for, and how many of the one asked for each is.
_SIZES = {
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "tb": 1e12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_FLOPS = {"flop": 1, "kflop": 1e3, "mflop": 1e6, "gflop": 1e9, "tflop": 1e12, "pflop": 1e15}
OTHER_UNITS = {
    "days": {"d": 1, "h": 1 / 24, "hour": 1 / 24, "week": 7, "month": 365.25 / 12, "year": 365.25},
    "minutes": {"min": 1, "second": 1 / 60, "h": 60, "hour": 60},
    "bytes": {"b": 1, **_SIZES},
    "gb": {"byte": 1e-9, **{name: size / 1e9 for name, size in _SIZES.items()}},
    "billions": {"b": 1, "million": 1e-3, "trillion": 1e3},
    "flops": _FLOPS,
}
ENDINGS = {"percent": ("%",), "times": ("x", "×")}
_IN_OTHER_BASES = re.compile(r"\s*(0x[\da-f]+|0b[01]+)\s*", re.IGNORECASE)
_IN_NO_BASE = re.compile(r"\s*[-+−]?0[xb]", re.IGNORECASE)  # -0x1 is not 0 times 1
# A sign, digits, an exponent and a power, of which only the digits have to be there: -1.5e3, 10^9.
TERM = re.compile(
    r"\A\s*([-+]?)([\d ',._]*\d[.,]?)(?:e([-+]?\d{1,3}))?(?:\s*\^\s*([-+]?\d{1,3}))?\s*\Z"
)


def read(text: str, unit: str = "") -> int | float:
    """The number that the text means; its unit may follow it.

    ValueError, with a sentence for the reader, if the text means no number.

    >>> read("1,5"), read("12 000"), read("2.4 * 10^9"), read("10⁻³"), read("1/4")
    (1.5, 12000, 2400000000, 0.001, 0.25)
    >>> read("12 GB", "GB"), read("1 year", "days"), read("0x10"), read("3x", "times as many")
    (12, 365.25, 16, 3)
    >>> read("2,400 MB", "GB"), read("2^31", "bytes"), read("12 %", "share")
    (2.4, 2147483648, 0.12)
    """
    in_other_base = _IN_OTHER_BASES.fullmatch(text[:LONGEST])
    if in_other_base:
        return int(in_other_base[1], base=0)
    text, size = _in_its_unit(text, unit)
    try:
        value = _product(_in_ascii(text, unit))
        if size != 1:
            value = float(f"{value * size:.15g}")  # 57 % is 0.57, and 57 * 0.01 is a little more
        whole = int(value)  # which raises an error for infinity and NaN
    except (ValueError, ArithmeticError):
        shown = f"{text.strip()[:20]!r} is not a number here." if text.strip() else "Type a number."
        raise ValueError(f"{shown} {HOW}") from None
    is_whole = whole == value and abs(value) < LARGEST_WHOLE
    return whole if is_whole else value


def _in_its_unit(text: str, unit: str) -> tuple[str, float]:
    """The number without a unit other than the one asked for, and the factor between the two.

    Asked for days, somebody types 10 years: the result is "10" and 365.25. If no other unit was
    typed, the result is the whole text and 1.
    """
    asked = unit.lower().partition(" ")[0]
    if asked == "share" and text.strip().endswith("%"):
        return text.strip().removesuffix("%"), 1 / 100
    # As in "10 years": 10 and year, without the s of the plural.
    match = re.fullmatch(r"\s*(.*\d)\s*([a-z]+?)s?\s*", text.lower()[:LONGEST])
    if match:
        number, typed_unit = match.groups()
        size = OTHER_UNITS.get(asked, {}).get(typed_unit)
        if size:
            return number, size
    return text, 1


def _in_ascii(text: str, unit: str) -> str:
    """The text in lower case, without its unit, with ASCII digits, and with one sign per operation.

    ValueError if it is too long, or begins like a number in another base.
    """
    if len(text) > LONGEST or _IN_NO_BASE.match(text):
        raise ValueError
    # A raised number is a power: 10⁻³ becomes 10^⁻³.
    text = re.sub("(?=[⁰¹²³⁴⁵⁶⁷⁸⁹⁻])(?<![⁰¹²³⁴⁵⁶⁷⁸⁹⁻])", "^", text.lower().strip())
    # Whoever is asked for "days of one GPU" may type all of that behind the number, days, or day.
    first = unit.lower().partition(" ")[0]
    endings = [unit.lower(), first, first.removesuffix("s")]
    endings.extend(ENDINGS.get(first, ()))
    for ending in endings:
        text = text.removesuffix(ending)
    text = "".join(_ascii_digit(character) for character in text).translate(SIGNS)
    for words, sign in OPERATIONS.items():
        text = text.replace(words, sign)
    return text


def _ascii_digit(character: str) -> str:
    """A digit of any script as one from 0 to 9; any other character as it is."""
    return str(int(character)) if character.isdecimal() else character


def _product(text: str) -> float:
    """The value of a number, or of several with * and / between them; ValueError if one is none."""
    # "2*3/4" becomes 2, and behind it each sign with its number: *, 3, /, 4.
    first, *more = re.split("([*/])", text)
    value = _term(first)
    for sign, term in zip(more[::2], more[1::2], strict=True):
        if sign == "*":
            value = value * _term(term)
        else:
            value = value / _term(term)
    return value


def _term(text: str) -> float:
    """The value of one number, which may have an exponent as in 3e9 and a power as in 10^9."""
    match = TERM.match(text)
    if not match:
        raise ValueError
    sign, digits, exponent, power = match.groups(default="")
    base = float(f"{_decimal(digits)}e{exponent or 0}")
    size = base ** int(power) if power else base
    return -size if sign == "-" else size


def _decimal(digits: str) -> str:
    """The number as Python writes it: without what separates thousands, with a decimal point."""
    for form, separator in FORMS:
        if re.fullmatch(form, digits):
            return re.sub(separator, "", digits).replace(",", ".")
    raise ValueError
