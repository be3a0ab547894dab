"""What Python repeats of a value, as a slide says it."""

import ast
import re
from html import escape

LONGEST = 10  # significant digits that somebody meant; a value with more of them came out of a calculation
SHOWN = 4
LARGE = 10_000  # from which on thousands are set apart
NUMBER = re.compile(r"(?<![\w.'])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.'])")
IN_QUOTES = re.compile(r"""('[^'\n]*'|"[^"\n]*")""")


def in_plain_numbers(said: str) -> str:
    """The text with its numbers rounded where they are long, and thousands set apart; a text alone has no quotes.

    >>> in_plain_numbers("(71.96329690921341, 887)"), in_plain_numbers("7087872"), in_plain_numbers("'3.35 TB/s'")
    ('(71.96, 887)', '7,087,872', '3.35 TB/s')
    """
    if IN_QUOTES.fullmatch(said):
        return said[1:-1]
    parts = IN_QUOTES.split(said)
    return "".join(part if at % 2 else NUMBER.sub(_number, part) for at, part in enumerate(parts))


def _number(found: re.Match) -> str:
    said = found[0]
    digits = re.sub(r"e.*|[-.]", "", said).lstrip("0")
    is_whole = said.lstrip("-").isdigit()
    if is_whole:
        return f"{int(said):,}" if abs(int(said)) >= LARGE else said
    return f"{float(said):,.{SHOWN}g}" if len(digits) > LONGEST else said


def as_table(said: str) -> str:
    """A dictionary by names, or one of such dictionaries, as a table; nothing for any other value.

    >>> as_table("{'fp32': 4, 'fp16': 2}")
    '<table><tr><td>fp32</td><td>4</td></tr><tr><td>fp16</td><td>2</td></tr></table>'
    """
    try:
        value = ast.literal_eval(said)
    except (ValueError, SyntaxError):
        return ""
    if not (isinstance(value, dict) and len(value) > 1):
        return ""
    rows = [*value.values()]
    if all(isinstance(row, dict) and [*row] == [*rows[0]] for row in rows):
        head = _row(["", *rows[0]], "th")
        return f"<table>{head}{''.join(_row([name, *row.values()]) for name, row in value.items())}</table>"
    if any(isinstance(row, dict) for row in rows):
        return ""
    return f"<table>{''.join(_row(pair) for pair in value.items())}</table>"


def _row(values: object, tag: str = "td") -> str:
    texts = [one if isinstance(one, str) else in_plain_numbers(repr(one)) for one in values]
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"
