"""How a number is read that somebody typed on a phone."""

import re

LONGEST = 60  # letters
HOW = "Write it as 1500, 1.5, 3e9, 2.4 * 10^9, 1/3 or 12 million."
_WORDS = {"thousand": "*1e3", "million": "*1e6", "billion": "*1e9", "trillion": "*1e12", "**": "^"}
_SIGNS = str.maketrans("−–×x·⋅∙÷٫’\u00a0\u2009\u202f⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "--*****/.'   0123456789-")
# What a number may look like, and what separates its thousands. A dot is a decimal point unless there are several.
# A comma before just three digits separates thousands, as in this course. The phone shows what was read.
_FORMS = (
    (r"[1-9]\d{0,2}([ ',])\d{3}(?:\1\d{3})*(?:\.\d*)?", "[ ',]"),
    (r"[1-9]\d{0,2}([ '.])\d{3}(?:\1\d{3})*,\d*", "[ '.]"),
    (r"[1-9]\d{0,2}(?:\.\d{3}){2,}", r"\."),
    (r"\d+[.,]?\d*|[.,]\d+", "(?!)"),
)
_TERM = re.compile(r"\A\s*([-+]?)([\d ',.]*\d[.,]?)(?:e([-+]?\d{1,3}))?(?:\s*\^\s*([-+]?\d{1,3}))?\s*\Z")


def read(text: str, unit: str = "") -> int | float:
    """The number that was meant; its unit may follow it. What is none gets a sentence.

    >>> read("1,5"), read("12 000"), read("2.4 * 10^9"), read("10⁻³"), read("12 GB", "GB"), read("1/4")
    (1.5, 12000, 2400000000, 0.001, 12, 0.25)
    """
    try:
        first, *more = re.split("([*/])", _in_ascii(text, unit))
        value = _term(first)
        for sign, term in zip(more[::2], more[1::2], strict=True):
            value = value * _term(term) if sign == "*" else value / _term(term)
        whole = int(value)  # which refuses what is infinite
        return whole if whole == value and abs(value) < 1e15 else value
    except (ValueError, ArithmeticError):
        shown = f"{text.strip()[:20]!r} is not a number here." if text.strip() else "Type a number."
        raise ValueError(f"{shown} {HOW}") from None


def _in_ascii(text: str, unit: str) -> str:
    """In lower case, without its unit, and each way to write a sign as one."""
    if len(text) > LONGEST:
        raise ValueError
    text = re.sub("(?=[⁰¹²³⁴⁵⁶⁷⁸⁹⁻])(?<![⁰¹²³⁴⁵⁶⁷⁸⁹⁻])", "^", text.lower().strip())
    first = unit.lower().partition(" ")[0]
    for ending in (unit.lower(), first, first.removesuffix("s"), "%" if "percent" in unit else ""):
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
