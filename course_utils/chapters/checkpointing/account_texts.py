"""The accountant's lines as a person says them."""

from collections.abc import Mapping

from course_utils.core.say import Number, in_words

# The units, by the first word of a line's name.
_UNITS = {"bytes": "bytes", "days": "days", "seconds": "seconds", "share": "share"}
# What these units measure.
_QUANTITIES = {"bytes": "memory", "days": "time", "seconds": "time"}


def account_texts(lines: Mapping[str, Number | str]) -> dict[str, str]:
    """Return the lines of an account with three digits and a unit; words stay as they are.

    The unit stands in the text, so a name does not begin with it, as it does in the account.

    >>> account_texts({"bytes together": 28_921_142_880, "fits": "yes", "FLOPs": 9.033e24})
    {'memory together': '28.9 GB', 'fits': 'yes', 'FLOPs': '9.03 × 10^24'}
    """
    return {_without_unit(name): _text(name, value) for name, value in lines.items()}


def _without_unit(name: str) -> str:
    """Return the name of a line with the quantity, such as memory, in place of its unit."""
    first_word, space, rest = name.partition(" ")
    return _QUANTITIES.get(first_word, first_word) + space + rest


def _text(name: str, value: Number | str) -> str:
    """Return the text of the line with that name."""
    if isinstance(value, str):
        return value
    if name == "parameters":
        return in_words(value / 10**9, "billions of parameters")
    first_word = name.split()[0]
    return in_words(value, _UNITS.get(first_word, ""))
