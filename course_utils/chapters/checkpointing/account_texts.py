"""The accountant's lines as a person says them."""

from collections.abc import Mapping

from course_utils.core.say import Number, in_words

# The units, by the first word of a line's name.
_UNITS = {"bytes": "bytes", "days": "days", "seconds": "seconds", "share": "share"}


def account_texts(lines: Mapping[str, Number | str]) -> dict[str, str]:
    """Return the lines of an account with three digits and a unit; words stay as they are.

    >>> account_texts({"bytes together": 28_921_142_880, "fits": "yes", "FLOPs": 9.033e24})
    {'bytes together': '28.9 GB', 'fits': 'yes', 'FLOPs': '9.03 × 10^24'}
    """
    return {name: _text(name, value) for name, value in lines.items()}


def _text(name: str, value: Number | str) -> str:
    """Return the text of the line with that name."""
    if isinstance(value, str):
        return value
    if name == "parameters":
        return in_words(value / 10**9, "billions of parameters")
    first_word = name.split()[0]
    return in_words(value, _UNITS.get(first_word, ""))
