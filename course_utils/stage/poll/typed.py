"""How a number is read that somebody typed on a phone."""

import re

LONGEST = 60  # letters
HOW = "Write it as 1500, 1.5, 3e9, 2.4 * 10^9, 1/3 or 12 million."
_WORDS = {"thousand": "*1e3", "million": "*1e6", "billion": "*1e9", "trillion": "*1e12", "**": "^"}
_SIGNS = str.maketrans("−–×x·⋅∙÷٫’\u00a0\u2009\u202f⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "--*****/.'   0123456789-")
# What a number may look like, and what separates its thousands. A dot is a decimal point unless there are several.
# A comma before just three digits separates thousands, as in this course. The phone shows what was read.
_FORMS = (
    (r"[1-9]\d{0,2}([ ',_])\d{3}(?:\1\d{3})*(?:\.\d*)?", "[ ',_]"),
    (r"[1-9]\d{0,2}([ '.])\d{3}(?:\1\d{3})*,\d*", "[ '.]"),
    (r"[1-9]\d{0,2}(?:\.\d{3}){2,}", r"\."),
    (r"\d+[.,]?\d*|[.,]\d+", "(?!)"),
)
# What people say in place of the unit that was asked for, and how many of that unit it is.
_DECIMAL = {
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "tb": 1e12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_OTHER_UNITS = {
    "days": {"d": 1, "h": 1 / 24, "hour": 1 / 24, "week": 7, "month": 365.25 / 12, "year": 365.25},
    "bytes": _DECIMAL,
    "gb": {name: size / 1e9 for name, size in _DECIMAL.items()},
    "billions": {"million": 1e-3, "trillion": 1e3},
}
_IN_OTHER_BASES = re.compile(r"\s*(0x[\da-f]+|0b[01]+)\s*", re.IGNORECASE)
_IN_NO_BASE = re.compile(r"\s*[-+−]?0[xb]", re.IGNORECASE)  # -0x1 is not 0 times 1
_TERM = re.compile(
    r"\A\s*([-+]?)([\d ',._]*\d[.,]?)(?:e([-+]?\d{1,3}))?(?:\s*\^\s*([-+]?\d{1,3}))?\s*\Z"
)


def read(text: str, unit: str = "") -> int | float:
    """The number that was meant; its unit may follow it. What is none gets a sentence.

    >>> read("1,5"), read("12 000"), read("2.4 * 10^9"), read("10⁻³"), read("12 GB", "GB"), read("1/4")
    (1.5, 12000, 2400000000, 0.001, 12, 0.25)
    >>> read("1 year", "days"), read("0x10"), read("3x", "times as many")
    (365.25, 16, 3)
    """
    if bits := _IN_OTHER_BASES.fullmatch(text[:LONGEST]):
        return int(bits[1], base=0)
    text, of_unit = _in_its_unit(text, unit)
    try:
        first, *more = re.split("([*/])", _in_ascii(text, unit))
        value = _term(first)
        for sign, term in zip(more[::2], more[1::2], strict=True):
            value = value * _term(term) if sign == "*" else value / _term(term)
        value *= of_unit
        whole = int(value)  # which refuses what is infinite
        return whole if whole == value and abs(value) < 1e15 else value
    except (ValueError, ArithmeticError):
        shown = f"{text.strip()[:20]!r} is not a number here." if text.strip() else "Type a number."
        raise ValueError(f"{shown} {HOW}") from None


def _in_its_unit(text: str, unit: str) -> tuple[str, float]:
    """The text without another unit that people use for this one, and how many of this one that is.

    Asked for days, somebody says 10 years. What was read stands on the phone, in the unit that was asked for.
    """
    asked = unit.lower().partition(" ")[0]
    said = re.fullmatch(r"\s*(.*\d)\s*([a-z]+?)s?\s*", text.lower()[:LONGEST])
    size = _OTHER_UNITS.get(asked, {}).get(said[2]) if said else None
    return (said[1], size) if size else (text, 1)


def _in_ascii(text: str, unit: str) -> str:
    """In lower case, without its unit, and each way to write a sign as one."""
    if len(text) > LONGEST or _IN_NO_BASE.match(text):
        raise ValueError
    text = re.sub("(?=[⁰¹²³⁴⁵⁶⁷⁸⁹⁻])(?<![⁰¹²³⁴⁵⁶⁷⁸⁹⁻])", "^", text.lower().strip())
    first = unit.lower().partition(" ")[0]
    endings = [unit.lower(), first, first.removesuffix("s")]
    endings += {"percent": ["%"], "times": ["x", "×"]}.get(first, [])
    for ending in endings:
        text = text.removesuffix(ending)
    text = "".join(str(int(one)) if one.isdecimal() else one for one in text).translate(_SIGNS)
    for words, sign in _WORDS.items():
        text = text.replace(words, sign)
    return text


def _term(text: str) -> float:
    ((sign, digits, exponent, power),) = _TERM.findall(text)  # just one, or a ValueError
    return float(f"{sign}1") * float(f"{_decimal(digits)}e{exponent or 0}") ** int(power or 1)


def _decimal(digits: str) -> str:
    for form, between in _FORMS:
        if re.fullmatch(form, digits):
            return re.sub(between, "", digits).replace(",", ".")
    raise ValueError
