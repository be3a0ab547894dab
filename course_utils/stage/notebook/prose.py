"""What the text of one cell contains: headings, turns, folded answers, and a guess's question.

A notebook's sentences are meant for readers. This is the only module that recognises anything by
their wording, so a sentence that is reworded matters here alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

HEADING = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)  # a block of code
TURN = re.compile(r"^### Your turn (\d+) · (.+)$", re.MULTILINE)
DIFFICULTY = re.compile(r"\*(\w[^*]*?), (\d+) minutes?\.\*")  # "*easy, 3 minutes.*"
MINUTES = re.compile(r"\s*\*(\d+) minutes?\.\*")  # "*9 minutes.*" below a section's heading
TITLE = re.compile(r"^# (?:\d+ · )?([^:\n]+)", re.MULTILINE)  # "# 4 · FLOPs: what a …"
FOLDED = re.compile(r"<details><summary>(.*?)</summary>(.*?)</details>", re.DOTALL)
SOLUTION = "<details><summary>Solution</summary>"
PYTHON = re.compile(r"```python\n(.*?)\n```", re.DOTALL)


@dataclass(frozen=True)
class Heading:
    """A heading. `level` is how many # it has; `begin` and `end` are its places in the text."""

    level: int
    title: str
    begin: int
    end: int


def headings(text: str) -> list[Heading]:
    """Return the headings of a text.

    A line that begins with # inside a block of code is no heading.
    """
    blocks = [block.span() for block in FENCE.finditer(text)]
    found = []
    for match in HEADING.finditer(text):
        is_in_code = any(begin < match.start() < end for begin, end in blocks)
        if not is_in_code:
            found.append(Heading(len(match[1]), match[2], match.start(), match.end()))
    return found


def divided(text: str) -> list[str]:
    """Cut the text at its headings, so that all parts but perhaps the first begin with one."""
    inner = [heading.begin for heading in headings(text) if heading.begin > 0]
    if not inner:
        return [text]
    edges = [0, *inner, len(text)]
    return [text[begin:end].strip() for begin, end in pairwise(edges)]


def title_in(text: str) -> str:
    """Return the title in a notebook's heading: "FLOPs" in "# 4 · FLOPs: what a product costs"."""
    match = TITLE.search(text)
    return match[1].strip() if match else ""


def minutes_below(text: str, heading: Heading) -> int:
    """Return the minutes that a section states right below its heading, or 0."""
    match = MINUTES.match(text, heading.end)
    return int(match[1]) if match else 0


def difficulty_and_minutes(text: str) -> tuple[str, int]:
    """Return the difficulty and minutes that a turn's text states, or else "" and 0.

    They are stated as in "*easy, 3 minutes.*".
    """
    match = DIFFICULTY.search(text)
    if not match:
        return "", 0
    return match[1], int(match[2])


def folds(text: str) -> list[tuple[str, str]]:
    """Return the folded answers of a text, as pairs of title and answer."""
    return [(title, answer.strip()) for title, answer in FOLDED.findall(text)]


def without_folds(text: str) -> str:
    """Return the text without its folded answers, titles included."""
    return FOLDED.sub("", text).strip()


def solution_in(text: str) -> str:
    """Return the code of a folded solution; empty if the text is no solution, or has no code."""
    if not text.startswith(SOLUTION):
        return ""
    match = PYTHON.search(text)
    return match[1] if match else ""


class TurnHeading(NamedTuple):
    """The heading of a turn, and where it begins in the text."""

    number: int
    title: str
    begin: int


def turns_in(text: str) -> Iterator[TurnHeading]:
    """Yield the headings of turns in the text."""
    for match in TURN.finditer(text):
        yield TurnHeading(int(match[1]), match[2].strip(), match.start())


# The question of a guess, as the wall and phones show it.

MOST = 600  # characters of a question
ENOUGH = 160  # a paragraph that is shorter is shown together with the one before
# Longer paragraphs are cut to so many characters, so that an item and a hint fit into MOST, too.
SHORTENED = MOST - 80
QUOTED = re.compile(r'"([^"]+)"')
IN_QUOTES = "in quotes"
# Beginnings of units. Other comments, such as "the value", are no units.
UNITS = r"(?:GB|bytes|FLOPs|times|percent|days|tokens|billions|parameters|of \S*\d|a second)\b"
# A comment that is a unit: "in GB", "times the forward pass", "parameters, in billions".
UNIT = re.compile(rf"(?:in )?({UNITS}[^,]*(?:, in billions)?)")
# The unit in a question, "How many new tokens …", or at the beginning of an item, "GB in all".
ASKED = re.compile(rf"(?:How many (?:new )?|^)({UNITS})")
# Patterns, and what a question in plain words has in their place.
PLAIN = (
    (r"\[([^]]+)\]\([^)]*\)", r"\1"),  # of a link its text
    (r" \(A string,[^)]*\)", ""),  # phones list the choices
    (r"^\*[^*]*(?:minutes?\.|分钟。)\* ", ""),  # "*easy, 3 minutes.* ", in Chinese as well
    (r"(\*\*?|`)(\S(?:.*?\S)??)\1", r"\2"),  # *words*, **words** and `code`
)


@dataclass(frozen=True)
class Question:
    """A question in words, the unit of its answer, and the choices, if there are any.

    `item` is the name of what is asked for: that of a guess, or the key of a dict.
    """

    words: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    item: str = ""


def question_words(item: str, above: str) -> str:
    """Return a guess's question: the end of the text above its cell, and below it `item`.

    `item` names one of several numbers that the cell asks for. It is "" if the cell asks for one
    number only, because then the text above says what is asked for.
    """
    before, last = _plain_paragraphs(above)
    parts = (_few_words(before, last), item)
    return "\n\n".join(part for part in parts if part)


def question(item: str, above: str, comment: str) -> Question:
    """Return the question of a cell with `...` for an answer, as the text above asks it.

    `item` is the key if the cell has a dict of answers, or else "". The choices are the words in
    quotes in the cell's comment. If there are none, and the comment wants an answer in quotes, they
    are the words in quotes in the last paragraph above. A comment that is no unit is added to the
    question.
    """
    before, last = _plain_paragraphs(above)
    parts = (_few_words(before, last), item, _hint(comment))
    words = "\n\n".join(part for part in parts if part)
    choices = QUOTED.findall(comment)
    if not choices and IN_QUOTES in comment:
        choices = _quoted_in_last_paragraph(above)
    unit = "" if choices else _unit(item, last, comment)
    return Question(words, unit, tuple(choices), item)


def _unit(item: str, last: str, comment: str) -> str:
    """Return the unit in the comment, else in the item, else in the paragraph `last`; or ""."""
    match = UNIT.match(comment)
    if not match:
        match = ASKED.search(item)
    if not match:
        match = ASKED.search(last)
    return match[1] if match else ""


def _quoted_in_last_paragraph(above: str) -> list[str]:
    *_, last = above.split("\n\n")
    return QUOTED.findall(last)


def _plain_paragraphs(above: str) -> tuple[list[str], str]:
    """Return the paragraphs without the last, and the last one. Markdown's marks are removed.

    Headings are left out, unless there is nothing else.
    """
    paragraphs = re.split(r"\n\n+", above)
    texts = [_plain(paragraph) for paragraph in paragraphs if not paragraph.startswith("#")]
    if not texts:
        texts = [_plain(above.lstrip("# "))]  # there is only a heading, so the heading has to do
    *before, last = texts
    return before, last


def _plain(paragraph: str) -> str:
    """Return the paragraph without Markdown's marks: each pattern of PLAIN is replaced."""
    for pattern, plain in PLAIN:
        paragraph = re.sub(pattern, plain, paragraph)
    return paragraph


def _few_words(before: list[str], last: str) -> str:
    """Return the last paragraph, with as many before it as it needs and the wall has space for."""
    shown = last
    for paragraph in reversed(before):
        # A text that begins with an item of a list needs the sentence before the list.
        is_enough = len(shown) >= ENOUGH and not shown.startswith("- ")
        if is_enough or len(shown) + len(paragraph) >= MOST:
            break
        shown = f"{paragraph}\n\n{shown}"
    if len(shown) < SHORTENED:
        return shown
    # Of a text that is too long the end is kept, from the first sentence that begins in it.
    return re.sub(r"^.*?[.?:] ", "", shown[-SHORTENED:], flags=re.DOTALL)


def _hint(comment: str) -> str:
    """Return what a comment adds to the question, without the choices in quotes.

    It is "" if the comment is a unit, or repeats the question, as "the value" does.
    """
    if comment.startswith("the ") or UNIT.match(comment):
        return ""
    # What stands before the choices, or before the words "in quotes": "a format" is the hint in
    # the comment "a format, in quotes".
    hint, *_ = re.split(r',? ?in quotes|"', comment)
    return hint.strip()


# The patterns below find what a text asks the reader to do in a live picture, since a still picture
# cannot be moved: whole sentences, remarks in parentheses, and items of a list.

MOVES = (
    r"(?:Click|Drag|Draw (?:it|your guess)|Fit|Look for|Move|Play|Press|Pull|Raise"
    r"|Set (?:a|the) marks?|Tick|Try|Type|Untick)\b"
)
# The beginning of a sentence: of a line, or behind the end of another sentence.
BEGINS = r"(?:(?<=^)|(?<=[.?!)] ))(?:(?:Then|Now|And) )?"
ENDS = r"[.?!](?=\s|$)[ ]?"  # the end of a sentence, with the space behind it
FOR_A_LIVE_PICTURE = [
    # "(Type 0.1: none holds it exactly.)"
    re.compile(rf"\((?:{MOVES}|With the keyboard)[^()]*\)\s*"),
    # "Then press *Show*, and play."
    re.compile(rf"{BEGINS}(?i:{MOVES}).*?{ENDS}", re.MULTILINE),
    # "Choose *lr* = 1 and look at the last steps." Not "Choose the smaller one.": a control's name
    # is in italics.
    re.compile(rf"{BEGINS}(?i:choose)\b[^.?!]*\*.*?{ENDS}", re.MULTILINE),
    # "Then *Time it*: does the time follow the FLOPs?"
    re.compile(rf"(?<=[.?!)] )Then \*.*?{ENDS}", re.MULTILINE),
    # "Before you press a button, say what will happen."
    re.compile(rf"{BEGINS}Before (?:each move|you press).*?{ENDS}", re.MULTILINE),
    # "- *who diverges?* Lower *lr* until all come back."
    re.compile(rf"^- (?:\*[^*\n]+\?\*|{MOVES}).*\n?", re.MULTILINE),
]


# A link to the contents page: an item in the line of links to the notebooks, as in
# "[contents](../README.md#the-notebooks) · [3 Einsum](03_einsum.ipynb)", or a sentence that ends in
# one, as in "On to *Beyond*, or back to [the contents](../README.md#the-notebooks)."
TO_THE_CONTENTS = re.compile(
    r"\[contents\]\(\.\./README\.md[^)]*\) · "
    r"| ?[A-Z][^.\n]* \[[^\]]*\]\(\.\./README\.md[^)]*\)\."
)


def without_contents(text: str) -> str:
    """Return the text without links to the contents page, for slides, which have no such page."""
    return TO_THE_CONTENTS.sub("", text)


def for_a_still(text: str) -> str:
    """Return the text without the sentences on what to do in a live picture."""
    for pattern in FOR_A_LIVE_PICTURE:
        text = pattern.sub("", text)
    return text.strip()
