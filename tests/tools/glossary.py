"""The words of the glossary, and the link to each where a notebook first uses it.

`make glossary` sets the links anew, after prose or glossary have changed: in each notebook one for each word,
at its first use in running text.
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
ALSO = re.compile(r"\*Also: ([^.*]+)\.")
LINK = re.compile(r"\[([^\]]+)\]\(GLOSSARY\.md#([\w-]+)\)")
# What is no running text: solutions, code, formulas, headings, links, the way to the neighbours, and italics, which
# name buttons.
APART = re.compile(
    r"<details>.*?</details>|```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$|^#.*?$|!?\[[^\]]*\]\([^)]*\)"
    r"|^\*The series: .*?$|(?<!\*)\*(?![*\s])[^*\n]+\*(?!\*)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Entry:
    """One word of the glossary: its anchor, and all that it is called."""

    anchor: str
    names: tuple[str, ...]
    text: str

    @property
    def spellings(self) -> Iterator[str]:
        """Its names as patterns: with or without a plural's s, and if in small letters, at a sentence's beginning too."""
        for name in self.names:
            first, rest = name[0], re.escape(name[1:])
            yield (f"[{first}{first.upper()}]" if first.islower() else first) + rest + "(?:e?s)?"


def entries() -> list[Entry]:
    found = []
    for entry in ENTRY.finditer(GLOSSARY.read_text(encoding="utf-8")):
        also = ALSO.search(entry["text"])
        names = (entry["name"], *(also[1].split(", ") if also else ()))
        found.append(Entry(entry["id"] or entry["name"].replace(" ", "-"), names, entry["text"]))
    return found


def first_uses(cells: list[str]) -> Iterator[tuple[int, int, int, str]]:
    """Where each word is first used in these cells without links: cell, begin and end, and the word's anchor."""
    spellings = [(spelling, entry.anchor) for entry in entries() for spelling in entry.spellings]
    spellings.sort(key=lambda one: -len(one[0]))  # "activation checkpointing" before "activation"
    words = re.compile(
        rf"(?<![\w/.-])(?:{'|'.join(f'({spelling})' for spelling, _ in spellings)})(?![\w/-])"
    )
    done = set()
    for number, cell in enumerate(cells):
        running = APART.sub(lambda part: "\0" * len(part[0]), cell)
        for use in words.finditer(running):
            anchor = spellings[use.lastindex - 1][1]
            if anchor not in done:
                done.add(anchor)
                yield number, *use.span(), anchor


def hosted_anchor(heading: str) -> str:
    """The anchor that pages of code hosting make of a heading."""
    without_punctuation = re.sub(r"[^\w\- ]", "", heading.lower())
    return without_punctuation.replace(" ", "-")


def unlinked(text: str) -> str:
    """The same words without links to the glossary."""
    return LINK.sub(r"\1", text)


def linked(cells: list[str]) -> list[str]:
    """The prose of one notebook, cell by cell, with the links where they belong and nowhere else."""
    texts = [unlinked(cell) for cell in cells]
    for number, begin, end, anchor in reversed(list(first_uses(texts))):
        text = texts[number]
        texts[number] = f"{text[:begin]}[{text[begin:end]}](GLOSSARY.md#{anchor}){text[end:]}"
    return texts


def link(path: Path) -> bool:
    """Set one notebook's links; whether it changed."""
    notebook = nbformat.read(path, as_version=4)
    prose = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    for cell, text in zip(prose, linked([cell.source for cell in prose]), strict=True):
        cell.source = text
    return rewrite(path, notebook)


if __name__ == "__main__":
    for path in NOTEBOOKS:
        print(path.name, "linked anew" if link(path) else "unchanged")
