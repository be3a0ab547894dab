"""What is shown in rows, as HTML and as text, and tables of words and numbers."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field

from course_utils.core.say.language import translated
from course_utils.core.say.wording import Number, in_words, number_text

FOLD = "<details>"


class InRows:
    """A base class for what is shown as a table, as HTML and as text.

    A subclass defines `_rows`. It may define `_rows_in_short`, what of them stands open; `_below`,
    a line of sentences below the table; and `_picture`, a picture above the table.
    """

    has_head = True  # whether the first row has the heads of the columns
    fold = FOLD  # in which the table is where there is a picture

    def __repr__(self) -> str:
        table = _text_table(self._rows())
        below = self._below()
        return f"{table}\n{below}" if below else table

    def _repr_html_(self) -> str:
        """Return what Jupyter shows: table and line. With a picture, the table is folded."""
        table = _html_table(self._rows(), has_head=self.has_head)
        in_short = _html_table(self._rows_in_short(), has_head=self.has_head)
        picture = self._picture()
        if picture:
            below = _paragraph(self._below_picture())
            return f"{picture}{below}\n{self._folded(table if self.fold == FOLD else in_short)}"
        shown = in_short + _paragraph(self._below())
        return shown if in_short == table else f"{shown}\n{self._folded(table)}"

    def _folded(self, table: str) -> str:
        """Return the table in its fold, closed or open."""
        heading = html.escape(translated("The numbers"))
        return f"{self.fold}<summary>{heading}</summary>\n{table}\n</details>"

    def _picture(self) -> str:
        """Return a picture as HTML, below which the table is folded; empty if there is none."""
        return ""

    def _rows(self) -> list[list[str]]:
        """Return the rows of the table; the first one is the head if `has_head` is True."""
        raise NotImplementedError

    def _rows_in_short(self) -> list[list[str]]:
        """Return the rows as they stand open; if these are others, `_rows` are folded below."""
        return self._rows()

    def _below(self) -> str:
        """Return the line below the table; empty if there is none."""
        return ""

    def _below_picture(self) -> str:
        """Return the line between the picture and its table; empty if there is none."""
        return self._below()


@dataclass(frozen=True, repr=False)
class Table(InRows):
    """Rows of words; the first one has the heads of the columns, if there are any."""

    rows: list[list[str]]
    has_head: bool = field(default=True, kw_only=True)

    def _rows(self) -> list[list[str]]:
        return self.rows


def side_by_side(
    columns: Mapping[str, Mapping[str, Number | str]], *, digits: int | None = None
) -> Table:
    """Return a table with a row for each item of the first column.

    The keys of `columns` are the heads, and each column has all items. A number that is not whole
    is shown with that many significant `digits`; by default with six.

    >>> side_by_side({"one": {"bytes": 8192, "fits": "yes"}, "two": {"bytes": 16384, "fits": "no"}})
             one     two
    bytes  8,192  16,384
    fits     yes      no
    """
    first, *_ = columns.values()  # any column would do, because all have the same items
    rows = [["", *columns]]
    for item in first:
        row = [item]
        for column in columns.values():
            row.append(_cell(column[item], digits))
        rows.append(row)
    return Table(rows)


def _cell(value: Number | str, digits: int | None) -> str:
    """Return the text of a cell: words as they are, a number as `number_text` writes it."""
    return value if isinstance(value, str) else number_text(value, digits)


def table(values: Mapping[str, object], unit: str = "", *, exact: bool = False) -> Table:
    """Return a table with a row for each name, whose numbers are written as a person would.

    `unit` is the unit of all numbers. If the values are mappings themselves, their keys are the
    heads of the columns. With `exact`, numbers are written in full instead, or with six digits.
    True is written as yes, False as no, and a list without its brackets.

    >>> table({"embedding": 544_997_376, "a layer": 59_648}, "bytes")
    embedding   545 MB
    a layer    59.6 kB
    >>> table({"half": {"shape": (4, 3), "is a view": True}})
           shape  is a view
    half  (4, 3)        yes
    """
    columns = _names_of_columns(values)  # an empty list if each name has a single value
    rows = [["", *columns]] if columns else []
    for name, value in values.items():
        # A mapping has a value for each column, and a single value is the row's only cell.
        row_values = [value[column] for column in columns] if columns else [value]
        rows.append([str(name), *(_written(cell, unit, exact=exact) for cell in row_values)])
    return Table(rows, has_head=bool(columns))


def _names_of_columns(values: Mapping[str, object]) -> list[str]:
    """Return the keys of the first value if that is a mapping; else an empty list."""
    first = next(iter(values.values()), None)  # None if there are no values
    return list(first) if isinstance(first, Mapping) else []


def _written(value: object, unit: str, *, exact: bool) -> str:
    """Return the text of one value of `table`."""
    if isinstance(value, bool):  # before numbers, since Python counts True as 1
        return translated("yes") if value else translated("no")
    if isinstance(value, list):
        return ", ".join(_written(each, unit, exact=exact) for each in value)
    if not isinstance(value, int | float):
        return str(value).removeprefix("torch.")  # a dtype is written as float32
    if exact:
        return f"{number_text(value)} {unit}".strip()
    return in_words(value, unit)


def _paragraph(words: str) -> str:
    """Return the words as HTML on a line of its own; empty if there are none."""
    return f"\n<p>{html.escape(words)}</p>" if words else ""


def _text_table(rows: list[list[str]]) -> str:
    """Return the rows as text: the first column is aligned on the left, the others on the right."""
    columns = zip(*rows, strict=True)  # rows as columns
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        cells[0] = row[0].ljust(widths[0])
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _html_table(rows: list[list[str]], *, has_head: bool) -> str:
    """Return the rows as HTML; with `has_head`, the first one is the head."""
    lines = []
    for index, row in enumerate(rows):
        is_head = has_head and index == 0
        lines.append(_html_row(row, "th" if is_head else "td"))
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _html_row(row: list[str], tag: str) -> str:
    """Return a row as HTML, whose cells have the tag "th" or "td"."""
    cells = []
    for cell in row:
        cell_tag = tag if cell else "td"  # an empty cell is no heading
        cells.append(f"<{cell_tag}>{html.escape(cell)}</{cell_tag}>")
    return f"<tr>{''.join(cells)}</tr>"
