"""Values as a slide shows them, made from the text of their `repr`."""

import ast
import re
from collections.abc import Iterable, Sequence
from html import escape

LONGEST = 10  # significant digits; a number with more came out of a calculation, and is rounded
SHOWN = 4  # digits of a rounded number
LARGE = 10_000  # whole numbers from here on get commas
# A number by itself, such as "-71.96" or "3e-05", but not the digits of "fp32" or "3.11.7".
NUMBER = re.compile(r"(?<![\w.'])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.'])")
IN_QUOTES = re.compile(r"""('[^'\n]*'|"[^"\n]*")""")


def in_plain_numbers(text: str) -> str:
    """Return the text with long numbers rounded, and commas in large whole ones.

    A text that is nothing but a string loses its quotes; numbers in a string stay as they are.

    >>> in_plain_numbers("(71.96329690921341, 887)")
    '(71.96, 887)'
    >>> in_plain_numbers("7087872"), in_plain_numbers("'3.35 TB/s'")
    ('7,087,872', '3.35 TB/s')
    """
    if IN_QUOTES.fullmatch(text):
        return text[1:-1]
    texts = []
    # The pattern has a group, so `split` returns the quoted strings, too, and what is between them.
    for part in IN_QUOTES.split(text):
        is_string = IN_QUOTES.fullmatch(part)
        texts.append(part if is_string else NUMBER.sub(_plain_number, part))
    return "".join(texts)


def _plain_number(found: re.Match) -> str:
    """Return the number that was found, with commas if it is large, or rounded if it is long."""
    number = found[0]
    if number.lstrip("-").isdigit():  # a whole number
        return f"{int(number):,}" if abs(int(number)) >= LARGE else number
    # Its digits, without the exponent, the sign, the point and zeros in front.
    significant = re.sub(r"e.*|[-.]", "", number).lstrip("0")
    if len(significant) <= LONGEST:
        return number
    return f"{float(number):,.{SHOWN}g}"


def as_table(text: str) -> str:
    """Return a dict, or a dict of dicts with the same keys, as an HTML table; otherwise "".

    `text` is the value's repr.

    >>> as_table("{'fp32': 4, 'fp16': 2}")
    '<table><tr><td>fp32</td><td>4</td></tr><tr><td>fp16</td><td>2</td></tr></table>'
    """
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return ""
    if not isinstance(value, dict) or len(value) < 2:  # one item alone stays a line of text
        return ""
    are_dicts = [isinstance(inner, dict) for inner in value.values()]
    if not any(are_dicts):
        return _table(_row([name, inner]) for name, inner in value.items())
    if not all(are_dicts):
        return ""
    first, *_ = value.values()
    columns = list(first)  # its keys, which all inner dicts have to have
    if any(list(inner) != columns for inner in value.values()):
        return ""
    rows = [_row(["", *columns], "th")]
    for name, inner in value.items():
        rows.append(_row([name, *inner.values()]))
    return _table(rows)


def _table(rows: Iterable[str]) -> str:
    return f"<table>{''.join(rows)}</table>"


def _row(values: Sequence[object], tag: str = "td") -> str:
    """Return a row of an HTML table. `tag` is that of its cells; heads have "th".

    An empty cell is no heading: a screen reader would announce a column without a name.
    """
    cells = []
    for value in values:
        text = value if isinstance(value, str) else in_plain_numbers(repr(value))
        cell_tag = tag if text else "td"
        cells.append(f"<{cell_tag}>{escape(text)}</{cell_tag}>")
    return f"<tr>{''.join(cells)}</tr>"
