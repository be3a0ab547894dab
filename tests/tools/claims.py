"""Every number in the prose, and what holds it: a cell beside it, an output, a citation, or a reason that is written down.

`make claims` looks for each and writes down in tests/claims where it was found; what nothing holds it names, and ends
with 1. The tests compare texts and cells with what was written: a number that changes in a text, or in the cell
that held it, does not go unnoticed.
"""

import math
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path

import nbformat

from course_utils.stage.notebook.prose import solution_in
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import read
from tests.tools.glossary import unlinked

FOLDER = ROOT / "tests" / "claims"
PAGES = (ROOT / "README.md", *sorted((ROOT / "notebooks").glob("*.md")))
TEXTS = (*NOTEBOOKS, *PAGES)

TIMES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "%": 1e-2}
TIMES |= {prefix: 1000.0 ** (n + 1) for n, prefix in enumerate("kMGTPEZY")}
TIMES |= {f"{prefix}i": 1024.0 ** (n + 1) for n, prefix in enumerate("KMGT")}
TIMES |= {prefix: 1e-3 ** (n + 1) for n, prefix in enumerate("mµn")}
# A number as people and as Python write it, and what stands behind it and makes it larger or smaller.
NUMBER = re.compile(
    r"(?<![\w.^/,])(?<![A-Za-z]-)"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:_\d+)*(?:\.\d+)?)(?P<e>e[-+]?\d+)?"
    r"(?:\s?(?:\^|\*\*)\s?\(?(?P<power>-?\d+)(?!\w|\.\d)\)?|\s?×\s?10\^(?P<ten>-?\d+))?"
    r"(?![\w^]|\.\d)(?:[\s-]{0,2}(?P<times>%|(?:thousand|million|billion|trillion)\b|(?:[KMGT]i|[kMGTPEZYmµn])(?=B\b|B/|FLOP|s\b)))?"
)
LINK = re.compile(r"\]\((https?://[^)\s]+)\)")
# What is no claim: solutions, code, formulas, headings, what a picture shows, where to read on, how long it takes, the
# minutes and sections that tests of their own hold, names and years.
NO_CLAIM = re.compile(
    r"<details>.*?</details>|```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$|<[^>]*>|^#.*?$|!\[[^\]]*\]\([^)]*\)|\]\([^)\s]*\)"
    r"|^\*The series: .*?$|[Nn]otebooks? (?:\[?\d\b(?:, | and | to )?)+|^\d\. |\*\*\d · "
    r"|^\*(?:(?:easy|medium|hard), )?\d+ minutes\.\*|[Tt]urns? \d|It takes about [^.]*\."
    r"|^\| (?:\d \| |\[`).*?$|^- \*\*\d+ minutes:\*\*|^- \*\*Minutes:\*\*.*?$|^\| [^|\n]+ \| `.*?$|in 10, 25 and 50 minutes|of 10 minutes, half a lecture, or a session of 50"
    r"|(?:Llama|GPT|Python|CUDA|PCIe|macOS|[Vv]ersion|section) ?-?\d[\d.]*(?: (?:to|or) [\d.]+)?(?: \d+B)?\b|CC BY 4\.0|\b(?:19|20)\d\d\b",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Number:
    """As it is written, what it can stand for, and how many of its digits are meant."""

    text: str
    values: tuple[float, ...]
    digits: int

    def is_said_by(self, other: "Number") -> bool:
        """Whether the other one, rounded to as many digits, is this one."""
        said = [_rounded(value, self.digits) for value in other.values]
        return any(
            math.isclose(ours, theirs, rel_tol=1e-9) for ours in self.values for theirs in said
        )

    @property
    def is_distinctive(self) -> bool:
        """Whether it is found again by what it is, and not by where it stands, as a 2 or a 16 would be."""
        return max(self.values) >= 1000 or self.values[0] % 1 > 0 or self.digits >= 3


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}") if math.isfinite(value) else value


def numbers(text: str) -> Iterator[tuple[int, Number]]:
    """Every number of a text, and where it begins."""
    for found in NUMBER.finditer(text):
        plain = re.sub("[,_]", "", found["digits"])
        value = float(plain + (found["e"] or "")) * 10.0 ** float(found["ten"] or 0)
        if found["power"]:
            value **= max(-300.0, min(300.0, float(found["power"]))) if value <= 10 else 1
        values = (value, value * TIMES[found["times"]]) if found["times"] else (value,)
        digits = max(1, len(plain.replace(".", "").lstrip("0")))
        if found["power"] or (value < 10 and value.is_integer() and not found["times"]):
            digits = 15  # it is meant exactly
        yield found.start(), Number(found[0].strip(), values, digits)


@dataclass(frozen=True)
class Claim:
    """A number of a text: the cell or heading in which it stands, and where, the sentence, and what holds it, if anything does."""

    place: str
    at: int
    number: str
    sentence: str
    held_by: str | None


@dataclass(frozen=True)
class Source:
    """A cell with code, or a folded solution: where it stands, and every number that it holds or shows."""

    name: str
    at: int
    section: int
    numbers: tuple[Number, ...]


def claims(path: Path, notebook: nbformat.NotebookNode | None = None) -> list[Claim]:
    """Every number in the prose of a notebook or a page."""
    passages = _of_notebook(notebook or read(path)) if path.suffix == ".ipynb" else _of_page(path)
    return [
        Claim(place, begin, number.text, sentence, _held(path, number, sentence, paragraph, beside))
        for place, text, beside in passages
        for begin, number, sentence, paragraph in _numbers_in(text)
    ]


# Sources, the nearest first, and whether each is near enough for a number like 2 or 16.
Beside = list[tuple[Source, bool]]


def _of_notebook(notebook: nbformat.NotebookNode) -> Iterator[tuple[str, str, Beside]]:
    sources, section, last = _sources(notebook), 0, len(notebook.cells) - 1
    for at, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            before, section = section, section + _begins_section(cell)
            everywhere = (
                at in (0, last) or "## Explore" in cell.source or "## Takeaways" in cell.source
            )
            nearest = sorted(sources, key=lambda source: abs(source.at - at))
            yield (
                cell.id,
                cell.source,
                [(s, everywhere or s.section in (before, section)) for s in nearest],
            )


def _of_page(path: Path) -> Iterator[tuple[str, str, Beside]]:
    for part in re.split(r"^(?=#+ )", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        heading = re.sub(r"<[^>]*>", "", part.partition("\n")[0]).strip("# ")
        about = re.match(r"(\d) · ", heading)  # a section of INSTRUCTORS.md is about a notebook
        yield (
            heading,
            part,
            [(s, True) for s in _sources_of(NOTEBOOKS[int(about[1]) - 1])] if about else [],
        )


def _begins_section(cell: nbformat.NotebookNode) -> bool:
    return cell.cell_type == "markdown" and bool(re.search("^## ", cell.source, re.MULTILINE))


def _sources(notebook: nbformat.NotebookNode) -> list[Source]:
    section, found = 0, []
    for at, cell in enumerate(notebook.cells):
        section += _begins_section(cell)
        if cell.cell_type == "code":
            differs_each_run = "nbval-ignore-output" in cell.metadata.get("tags", ())
            outputs = () if differs_each_run else cell.outputs
            shown = [
                out.get("text") or out.get("data", {}).get("text/plain", "") for out in outputs
            ]
            text = "\n".join([cell.source, *shown])
        else:
            text = solution_in(cell.source)
        text = re.sub(r"0b[01_]+", lambda bits: str(int(bits[0], 2)), text)
        found.append(
            Source(f"cell {cell.id}", at, section, tuple(number for _, number in numbers(text)))
        )
    return found


@cache
def _sources_of(path: Path) -> list[Source]:
    return _sources(read(path))


def _numbers_in(text: str) -> Iterator[tuple[int, Number, str, str]]:
    """Every number that claims something: where it begins, itself, its sentence, its paragraph."""
    plain = NO_CLAIM.sub(lambda apart: re.sub(r"[^\n]", " ", apart[0]), text).replace("[", " ")
    paragraphs = [
        0,
        *(found.end() for found in re.finditer(r"\n\s*\n|\n(?=- |\| |\d\. )", text)),
        len(text),
    ]
    for begin, end in pairwise(paragraphs):
        ends = (begin + found.end() for found in re.finditer(r"[.?!:;] ", text[begin:end]))
        sentences = [begin, *ends, end]
        for at, number in numbers(plain[begin:end]):
            left, right = next((a, b) for a, b in pairwise(sentences) if a <= begin + at < b)
            yield begin + at, number, unlinked(" ".join(text[left:right].split())), text[begin:end]


def _held(path: Path, number: Number, sentence: str, paragraph: str, beside: Beside) -> str | None:
    for source, is_near in beside:
        if (is_near or number.is_distinctive) and any(map(number.is_said_by, source.numbers)):
            return source.name
    for other in NOTEBOOKS:
        named = (
            rf"[Nn]otebooks? (?:\[?\d\]?(?:\([^)]*\))?(?:, | and | to ))*\[?{int(other.stem[:2])}\b"
        )
        if other != path and re.search(named, paragraph):
            for source in _sources_of(other):
                if any(map(number.is_said_by, source.numbers)):
                    return f"{other.stem}, {source.name}"
    if link := LINK.search(paragraph):
        return link[1]
    for name, reason in reasons().items():
        if any(words in sentence for words in reason.get(path.stem, ())):
            return f"reason: {name}"
    return None


@cache
def reasons() -> dict[str, dict]:
    """Each `why` some numbers need no cell and no citation; and of the texts in which they stand, words beside them."""
    return tomllib.loads((FOLDER / "reasons.toml").read_text(encoding="utf-8"))


def written(found: Sequence[Claim]) -> str:
    """The claims as they are written down: a line each, below the cell or the heading that they stand in."""
    lines = []
    for place, there in groupby(found, key=lambda claim: claim.place):
        lines += [
            place,
            *(f"    {one.number:<24}{one.held_by or 'NOTHING HOLDS THIS'}" for one in there),
        ]
    return "\n".join(lines) + "\n"


def file_of(path: Path) -> Path:
    """Where a text's claims are written down."""
    return FOLDER / f"{path.stem}.txt"


def main() -> int:
    loose = 0
    for path in TEXTS:
        found = claims(path)
        file_of(path).write_text(written(found), encoding="utf-8")
        for claim in found:
            if claim.held_by is None:
                loose += 1
                print(
                    f"{path.name}, {claim.place}: nothing holds {claim.number!r} in: {claim.sentence}"
                )
    print(
        f"{loose} numbers are held by nothing." if loose else "Every number is held by something."
    )
    return bool(loose)


if __name__ == "__main__":
    sys.exit(main())
