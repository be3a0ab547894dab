"""What the text of one cell has: headings, turns and folded answers; and how a guess would be
asked for aloud.

This is the only place that guesses at sentences.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

HEADING = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TURN = re.compile(r"^### Your turn (\d+) · (.+)$", re.MULTILINE)
DIFFICULTY = re.compile(r"\*(\w[^*]*?), (\d+) minutes?\.\*")
MINUTES = re.compile(r"\s*\*(\d+) minutes?\.\*")  # right below a section's heading
TITLE = re.compile(r"^# (?:\d+ · )?([^:\n]+)", re.MULTILINE)
FOLDED = re.compile(r"<details><summary>(.*?)</summary>(.*?)</details>", re.DOTALL)
SOLUTION = "<details><summary>Solution</summary>"
PYTHON = re.compile(r"```python\n(.*?)\n```", re.DOTALL)


@dataclass(frozen=True)
class Heading:
    """A heading, where it begins and ends in its text, and how many # it has."""

    level: int
    title: str
    begin: int
    end: int


def headings(text: str) -> list[Heading]:
    """The headings of a text, but for what looks like one in a block of code."""
    in_code = [found.span() for found in FENCE.finditer(text)]
    return [
        Heading(len(found[1]), found[2], found.start(), found.end())
        for found in HEADING.finditer(text)
        if not any(begin < found.start() < end for begin, end in in_code)
    ]


def divided(text: str) -> list[str]:
    """The text's parts, each but the first with a heading at its beginning."""
    edges = [0, *(one.begin for one in headings(text) if one.begin), len(text)]
    if len(edges) == 2:
        return [text]
    return [text[begin:end].strip() for begin, end in pairwise(edges)]


def title_in(text: str) -> str:
    """The title of the notebook that begins so: FLOPs, of "# 4 · FLOPs: what a product costs"."""
    found = TITLE.search(text)
    return found[1].strip() if found else ""


def minutes_below(text: str, heading: Heading) -> int:
    """The minutes that a section states below its heading, or 0."""
    found = MINUTES.match(text, heading.end)
    return int(found[1]) if found else 0


def difficulty_and_minutes(text: str) -> tuple[str, int]:
    """What a turn states of itself, as in "*easy, 3 minutes.*"; empty and 0, if it does not."""
    found = DIFFICULTY.search(text)
    return (found[1], int(found[2])) if found else ("", 0)


def folds(text: str) -> list[tuple[str, str]]:
    """The folded answers of a text, by their titles."""
    return [(title, answer.strip()) for title, answer in FOLDED.findall(text)]


def without_folds(text: str) -> str:
    return FOLDED.sub("", text).strip()


def solution_in(text: str) -> str:
    """The code of a folded solution."""
    found = PYTHON.search(text) if text.startswith(SOLUTION) else None
    return found[1] if found else ""


def turns_in(text: str) -> Iterator[tuple[int, str, int]]:
    """The number and the title of each turn whose heading is in the text, and where it begins."""
    for found in TURN.finditer(text):
        yield int(found[1]), found[2].strip(), found.start()


# How a guess is asked for.

MOST = 600  # letters of a question
ENOUGH = 160  # a shorter paragraph is read with the one before
QUOTED = re.compile(r'"([^"]+)"')
IN_QUOTES = "in quotes"
# What can stand behind a number: not "the value", nor "a step without recomputing is 1".
UNITS = r"(?:GB|bytes|FLOPs|times|percent|days|tokens|billions|parameters|of \S*\d|a second)\b"
COMMENT = re.compile(rf"(?:in )?({UNITS}[^,]*(?:, in billions)?)")
ASKED = re.compile(rf"(?:How many (?:new )?|^)({UNITS})")
PLAIN = (
    (r"\[([^]]+)\]\([^)]*\)", r"\1"),
    (r" \(A string,[^)]*\)", ""),  # phones list the choices
    (r"^\*[^*]*minutes?\.\* ", ""),
    (r"(\*\*?|`)(\S(?:.*?\S)??)\1", r"\2"),
)


@dataclass(frozen=True)
class Question:
    """What is asked in words, in which unit, among which choices; of a dict, for which item."""

    words: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    item: str = ""


def question(item: str, above: str, comment: str, among: Sequence[str] = ()) -> Question:
    """The question below that text. What a comment says and is no unit is said below the words.

    What can be chosen stands in quotes in the comment, else it is what the guess is held against,
    else above.
    """
    before, last = _plain_paragraphs(above)
    unit = COMMENT.match(comment) or ASKED.search(item) or ASKED.search(last)
    choices = QUOTED.findall(comment) or [*among] or _choices_above(above, comment)
    words = "\n\n".join(filter(None, (_few_words(before, last), item, _hint(comment))))
    return Question(words, unit[1] if unit and not choices else "", tuple(choices), item)


def _choices_above(above: str, comment: str) -> list[str]:
    return QUOTED.findall(above.split("\n\n")[-1]) if IN_QUOTES in comment else []


def _plain_paragraphs(above: str) -> tuple[list[str], str]:
    """The paragraphs without marks and links, and the last of them."""
    paragraphs = [one for one in re.split(r"\n\n+", above) if not one.startswith("#")]
    *before, last = map(_plain, paragraphs or [above.lstrip("# ")])  # a heading alone has to do
    return before, last


def _plain(paragraph: str) -> str:
    for pattern, plain in PLAIN:
        paragraph = re.sub(pattern, plain, paragraph)
    return paragraph


def _few_words(before: list[str], last: str) -> str:
    """As much of the end of the text as fits on a wall."""
    said = last
    for paragraph in reversed(before):
        is_enough = len(said) >= ENOUGH and not said.startswith("- ")
        if is_enough or len(said) + len(paragraph) >= MOST:
            break
        said = f"{paragraph}\n\n{said}"
    if len(said) < MOST - 80:
        return said
    # What is too long begins with a later sentence.
    return re.sub(r"^.*?[.?:] ", "", said[80 - MOST :], flags=re.DOTALL)


def _hint(comment: str) -> str:
    if re.match(f"the |{COMMENT.pattern}", comment):
        return ""
    return re.split(r',? ?in quotes|"', comment)[0].strip()


# How to move a picture, which a still one cannot.

# What a reader is told to do in a picture that moves: whole sentences, remarks in parentheses,
# items of a list.
MOVES = (
    r"(?:Click|Drag|Draw it|Fit|Look for|Move|Play|Press|Pull|Raise|Set (?:a|the) marks?"
    r"|Tick|Try|Type|Untick)\b"
)
BEGINS = r"(?:(?<=^)|(?<=[.?!)] ))(?:(?:Then|Now|And) )?"
ENDS = r"[.?!](?=\s|$)[ ]?"
FOR_A_LIVE_PICTURE = [
    re.compile(rf"\((?:{MOVES}|With the keyboard)[^()]*\)\s*"),
    re.compile(rf"{BEGINS}(?i:{MOVES}).*?{ENDS}", re.MULTILINE),
    re.compile(rf"{BEGINS}(?i:choose)\b[^.?!]*\*.*?{ENDS}", re.MULTILINE),
    re.compile(rf"(?<=[.?!)] )Then \*.*?{ENDS}", re.MULTILINE),
    re.compile(rf"{BEGINS}Before (?:each move|you press).*?{ENDS}", re.MULTILINE),
    re.compile(rf"^- (?:\*[^*\n]+\?\*|{MOVES}).*\n?", re.MULTILINE),
]


def for_a_still(text: str) -> str:
    """The text without what a still picture cannot do."""
    for pattern in FOR_A_LIVE_PICTURE:
        text = pattern.sub("", text)
    return text.strip()
