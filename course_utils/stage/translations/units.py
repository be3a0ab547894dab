"""Cuts a text in Markdown into units, each of which is translated as a whole.

A unit is a paragraph, the words of a heading, an item of a list, a row of a table, or the title of
a folded answer. Code, formulas and all marks around a unit are kept as they are, so no translation
can lose them.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ENGLISH = "en"  # the language of the course itself
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
# The marks that begin a line and belong to no unit: of a heading, an item or a quotation.
MARKS = re.compile(r'\s*(?:#{1,6} (?:<a id="[^"]*"></a>)?|[-*] |\d+\. |> )')
SUMMARY = re.compile(r"(<details><summary>)(.*?)(</summary>)", re.DOTALL)
TABLE_LINE = re.compile(r"\|[-:| ]+\|\s*")
HTML_LINE = re.compile(r"\s*(?:<[^>]*>\s*)+$")  # such as </details>, or a comment
INDENTED_CODE = "    "
# What is left out of a text to see whether it has any words.
NO_WORDS = re.compile(r"`+[^`]*`+|\$[^$]*\$|<[^>]*>|\]\([^)]*\)")
WORD = re.compile(r"[A-Za-z]{2}|[^\W\d_]\s")
# A line that leads to the page in another language, such as [中文](README.zh.md).
TO_A_LANGUAGE = re.compile(r"\[[^\]]+\]\(\w+\.\w+\.md\)\n?")


@dataclass(frozen=True)
class Piece:
    """A part of a text. All pieces, joined, are the text again."""

    text: str
    is_unit: bool = False


def units(text: str) -> list[str]:
    """Return the units of a text, in order.

    >>> units("## A sum\\n\\nIt stops at `256`.\\n\\n- one item\\n- another")
    ['A sum', 'It stops at `256`.', 'one item', 'another']
    """
    return [piece.text for piece in pieces(text) if piece.is_unit]


def pieces(text: str) -> Iterator[Piece]:
    """Yield the pieces of the text: the units, and what stands around them."""
    for block in _blocks(text):
        if block.is_unit:
            yield from _trimmed(block.text)
        else:
            yield block


def _trimmed(text: str) -> Iterator[Piece]:
    """Yield the unit without the blank space around it, and the space as pieces of its own."""
    inner = text.strip()
    begin = text.index(inner) if inner else 0
    around = (text[:begin], text[begin + len(inner) :])
    if around[0]:
        yield Piece(around[0])
    if inner:
        yield Piece(inner, is_unit=_has_words(inner))
    if around[1]:
        yield Piece(around[1])


def _has_words(text: str) -> bool:
    """Whether a text has words outside its code and its formulas."""
    return bool(WORD.search(NO_WORDS.sub("", text) + " "))


def _blocks(text: str) -> Iterator[Piece]:
    """Yield blocks of lines: those that are a unit, with space around it, and those that stay."""
    paragraph = ""  # the lines of the unit so far
    lines = iter(text.splitlines(keepends=True))
    for line in lines:
        block = list(_block(line, lines, is_inside=bool(paragraph.strip())))
        if not block:  # the line goes on with the paragraph, or begins one
            paragraph += line
            continue
        if paragraph:
            yield Piece(paragraph, is_unit=True)
        *before, last = block
        yield from before
        # An item may go on with the next line.
        goes_on = last.is_unit and not _ends_with_its_line(line)
        paragraph = last.text if goes_on else ""
        if not goes_on:
            yield last
    if paragraph:
        yield Piece(paragraph, is_unit=True)


def _ends_with_its_line(line: str) -> bool:
    """Whether a unit ends with this line: a heading, or a row of a table."""
    return line.lstrip().startswith(("#", "|"))


def _block(line: str, following: Iterator[str], *, is_inside: bool) -> Iterator[Piece]:
    """Yield the pieces of a line that begins anew; none of a plain line of a paragraph."""
    kept = _kept_as_it_is(line, following, is_inside=is_inside)
    mark = MARKS.match(line)
    if kept:
        yield Piece(kept)
    elif "<summary>" in line:
        yield from _folded(line)
    elif mark:
        yield Piece(mark[0])
        yield Piece(line[mark.end() :], is_unit=True)
    elif line.startswith("|"):
        yield Piece(line, is_unit=True)


def _kept_as_it_is(line: str, following: Iterator[str], *, is_inside: bool) -> str:
    """Return the lines from here on that are no unit: blank, code, a formula, HTML; or "".

    `is_inside` says that the line follows one of a paragraph, where an indent means nothing.
    """
    if not line.strip() or TABLE_LINE.fullmatch(line) or HTML_LINE.match(line):
        return line
    if TO_A_LANGUAGE.fullmatch(line):
        return line
    if line.startswith(INDENTED_CODE) and not is_inside:
        return line
    fence = FENCE.match(line)
    if fence:
        return line + _until(following, lambda one: one.strip().startswith(fence[1]))
    stripped = line.strip()
    if stripped.startswith("$$"):
        is_one_line = stripped.endswith("$$") and len(stripped) > len("$$")
        return line if is_one_line else line + _until(following, lambda one: "$$" in one)
    if stripped.startswith("<!--"):
        return line if "-->" in line else line + _until(following, lambda one: "-->" in one)
    return ""


def _until(lines: Iterator[str], ends: Callable[[str], bool]) -> str:
    """Return the lines up to the one that ends the block, which is included."""
    taken = ""
    for line in lines:
        taken += line
        if ends(line):
            break
    return taken


def _folded(line: str) -> Iterator[Piece]:
    """Yield the pieces of a line with the title of a folded answer."""
    found = SUMMARY.search(line)
    if not found:
        yield Piece(line)
        return
    yield Piece(line[: found.start()] + found[1])
    yield Piece(found[2], is_unit=True)
    yield Piece(found[3])
    yield Piece(line[found.end() :], is_unit=True)
