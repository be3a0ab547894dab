"""The words of the glossary, and the link to each where a notebook first uses it.

`make glossary` sets the links anew after prose or glossary have changed. Each notebook has one link
for each word, at its first use in running text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat

from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import rewrite

GLOSSARY = ROOT / "notebooks" / "GLOSSARY.md"
ENTRY = re.compile(
    r'^## (?:<a id="(?P<id>[\w-]+)"></a>)?(?P<name>.+)\n\n(?P<text>.+)$', re.MULTILINE
)
# "*Also: accumulated, micro-batch." at an entry's end: other names of the same thing.
ALSO = re.compile(r"\*Also: ([^.*]+)\.")
LINK = re.compile(r"\[([^\]]+)\]\(GLOSSARY\.md#([\w-]+)\)")
# What is no running text.
APART = re.compile(
    "|".join(
        [
            r"<details>.*?</details>",  # solutions
            r"```.*?```",  # code
            r"`[^`\n]*`",
            r"\$\$.*?\$\$",  # formulas
            r"\$[^$\n]+\$",
            r"^#.*?$",  # headings
            r"!?\[[^\]]*\]\([^)]*\)",  # links and pictures
            r"^\*The series: .*?$",  # the links to the notebooks before and after
            r"(?<!\*)\*(?![*\s])[^*\n]+\*(?!\*)",  # italics, which name buttons
        ]
    ),
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Entry:
    """An entry of the glossary: its anchor, and all names of what it explains."""

    anchor: str
    names: tuple[str, ...]
    text: str

    @property
    def spellings(self) -> Iterator[str]:
        """Its names as patterns, which also match plurals and a capital at the beginning."""
        for name in self.names:
            first = name[0]
            if first.islower():
                first = f"[{first}{first.upper()}]"
            yield first + re.escape(name[1:]) + "(?:e?s)?"


def entries() -> list[Entry]:
    """Return the glossary's entries, in its order."""
    found = []
    for entry in ENTRY.finditer(GLOSSARY.read_text(encoding="utf-8")):
        names = [entry["name"]]
        also = ALSO.search(entry["text"])
        if also:
            names += also[1].split(", ")
        anchor = entry["id"] or entry["name"].replace(" ", "-")
        found.append(Entry(anchor, tuple(names), entry["text"]))
    return found


def first_uses(cells: list[str]) -> Iterator[tuple[int, int, int, str]]:
    """Yield the first use of each word: the cell's number, its begin and end, and its anchor.

    The cells have no links to the glossary.
    """
    spellings = [(spelling, entry.anchor) for entry in entries() for spelling in entry.spellings]
    # "activation checkpointing" has to be tried before "activation".
    spellings.sort(key=lambda spelling_and_anchor: -len(spelling_and_anchor[0]))
    either = "|".join(f"({spelling})" for spelling, _ in spellings)
    words = re.compile(rf"(?<![\w/.-])(?:{either})(?![\w/-])")
    done = set()
    for number, cell in enumerate(cells):
        # What is no running text becomes as many characters of no word, so that places stay.
        running = APART.sub(lambda part: "\0" * len(part[0]), cell)
        for use in words.finditer(running):
            # Each spelling is a group of the pattern, and groups count from 1.
            _, anchor = spellings[use.lastindex - 1]
            if anchor not in done:
                done.add(anchor)
                yield number, *use.span(), anchor


def hosted_anchor(heading: str) -> str:
    """Return the anchor that pages of code hosting make of a heading."""
    without_punctuation = re.sub(r"[^\w\- ]", "", heading.lower())
    return without_punctuation.replace(" ", "-")


def unlinked(text: str) -> str:
    """Return the same words without links to the glossary."""
    return LINK.sub(r"\1", text)


def linked(cells: list[str]) -> list[str]:
    """Return the prose of one notebook, cell by cell, with exactly the links that belong there."""
    texts = [unlinked(cell) for cell in cells]
    # Backwards, because a link moves all that follows it.
    for number, begin, end, anchor in reversed(list(first_uses(texts))):
        text = texts[number]
        word_with_link = f"[{text[begin:end]}](GLOSSARY.md#{anchor})"
        texts[number] = text[:begin] + word_with_link + text[end:]
    return texts


def link(path: Path) -> bool:
    """Set one notebook's links, and say whether that changed the file."""
    notebook = nbformat.read(path, as_version=4)
    prose = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    for cell, text in zip(prose, linked([cell.source for cell in prose]), strict=True):
        cell.source = text
    return rewrite(path, notebook)


if __name__ == "__main__":
    for path in NOTEBOOKS:
        print(path.name, "linked anew" if link(path) else "unchanged")
