"""Every number in the prose, and what holds it.

A number is held by a cell beside it or its output, by a citation, or by a reason in reasons.toml.
`make claims` looks for each number and writes down in tests/claims what holds it. It names the
numbers that nothing holds, and then ends with status 1. The tests compare texts and cells with what
was written, so they notice a number that changes in a text, or in the cell that holds it.
"""

import math
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise, product
from pathlib import Path

import nbformat

from course_utils.stage.notebook.prose import solution_in
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import read
from tests.tools.glossary import unlinked

FOLDER = ROOT / "tests" / "claims"
# Not the pages in other languages, such as GLOSSARY.zh.md: a translation has the numbers of its
# English, which tests/stage/test_translations.py compares.
PAGES = (
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "notebooks").glob("*.md") if page.stem.isalpha()),
)
TEXTS = (*NOTEBOOKS, *PAGES)

TIMES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "%": 1e-2}
for power, prefix in enumerate("kMGTPEZY", 1):
    TIMES[prefix] = 1000.0**power
for power, prefix in enumerate("KMGT", 1):
    TIMES[f"{prefix}i"] = 1024.0**power
for power, prefix in enumerate("mµn", 1):
    TIMES[prefix] = 1e-3**power
# A number as people and as Python write it, and what stands behind it and makes it larger or
# smaller: a power, a percent sign, a word like "million", or the prefix of a unit.
NUMBER = re.compile(
    r"(?<![\w.^/,])(?<![A-Za-z]-)"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:_\d+)*(?:\.\d+)?)(?P<e>e[-+]?\d+)?"
    r"(?:\s?(?:\^|\*\*)\s?\(?(?P<power>-?\d+)(?!\w|\.\d)\)?|\s?×\s?10\^(?P<ten>-?\d+))?"
    r"(?![\w^]|\.\d)"
    r"(?:[\s-]{0,2}(?P<times>%|(?:thousand|million|billion|trillion)\b"
    r"|(?:[KMGT]i|[kMGTPEZYmµn])(?=B\b|B/|FLOP|s\b)))?"
)
LINK = re.compile(r"\]\((https?://[^)\s]+)\)")
# Numbers in these texts are no claims.
NO_CLAIM = re.compile(
    "|".join(
        [
            r"<details>.*?</details>",  # solutions
            r"```.*?```",  # code
            r"`[^`\n]*`",
            r"\$\$.*?\$\$",  # formulas
            r"\$[^$\n]+\$",
            r"<[^>]*>",
            r"^#.*?$",  # headings
            r"!\[[^\]]*\]\([^)]*\)",  # pictures
            r"\]\([^)\s]*\)",  # where links lead
            r"^\*The series: .*?$",  # the links to the notebooks before and after
            r"[Nn]otebooks? (?:\[?\d\b(?:, | and | to )?)+",
            r"^\d\. ",  # lists
            r"\*\*\d · ",
            # How long something takes, and tables: other tests check these.
            r"^\*(?:(?:easy|medium|hard), )?\d+ minutes\.\*",
            r"[Tt]urns? \d",
            r"This notebook takes about [^.]*\.",
            r"^\| (?:\d \| |\[`).*?$",
            r"^- \*\*\d+ minutes:\*\*",
            r"^- \*\*Minutes:\*\*.*?$",
            r"^\| [^|\n]+ \| `.*?$",
            r"in 10, 25 and 50 minutes",
            r"of 10 minutes, half a lecture, or a session of 50",
            # names, versions, licences and years
            r"(?:Llama|GPT|Python|CUDA|PCIe|macOS|[Vv]ersion|section)"
            r" ?-?\d[\d.]*(?: (?:to|or) [\d.]+)?(?: \d+B)?\b",
            r"CC BY 4\.0",
            r"\b(?:19|20)\d\d\b",
        ]
    ),
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Number:
    """A number as it is written, the values that it can stand for, and its significant digits."""

    text: str
    values: tuple[float, ...]
    digits: int

    def is_said_by(self, other: "Number") -> bool:
        """Whether this number is the other one, rounded to as many digits."""
        rounded = [_rounded(value, self.digits) for value in other.values]
        for ours, theirs in product(self.values, rounded):
            if math.isclose(ours, theirs, rel_tol=1e-9):
                return True
        return False

    @property
    def is_distinctive(self) -> bool:
        """Whether the same number elsewhere is no coincidence, as it would be for a 2 or a 16."""
        return max(self.values) >= 1000 or self.values[0] % 1 > 0 or self.digits >= 3


def _rounded(value: float, digits: int) -> float:
    """Return the value, rounded to so many significant digits."""
    return float(f"{value:.{digits - 1}e}") if math.isfinite(value) else value


def numbers(text: str) -> Iterator[tuple[int, Number]]:
    """Yield every number of a text, and where it begins."""
    for found in NUMBER.finditer(text):
        yield found.start(), _number(found)


def _number(found: re.Match) -> Number:
    """Return the Number of a match of NUMBER.

    With a word or prefix behind it, it may mean two values: "3 million" is 3 and 3,000,000.
    """
    written_digits = re.sub("[,_]", "", found["digits"])
    value = float(written_digits + (found["e"] or "")) * 10.0 ** float(found["ten"] or 0)
    if found["power"] and value <= 10:
        value **= max(-300.0, min(300.0, float(found["power"])))  # more would overflow
    values = [value]
    if found["times"]:
        values.append(value * TIMES[found["times"]])

    digits = max(1, len(written_digits.replace(".", "").lstrip("0")))
    is_small_count = value < 10 and value.is_integer() and not found["times"]
    if found["power"] or is_small_count:
        digits = 15  # such a number is not rounded
    return Number(found[0].strip(), tuple(values), digits)


@dataclass(frozen=True)
class Claim:
    """A number of a text, where it stands, and what holds it."""

    place: str  # the cell's id, or the heading
    at: int  # where in that text it begins
    number: str
    sentence: str
    held_by: str | None  # nothing holds it if it is None


@dataclass(frozen=True)
class Source:
    """A cell with code, or a folded solution, with every number that it has or shows."""

    name: str
    at: int  # the cell's index in the notebook
    section: int
    numbers: tuple[Number, ...]

    def says(self, number: Number) -> bool:
        """Whether the source has or shows the number, perhaps in more digits."""
        return any(number.is_said_by(other) for other in self.numbers)


def claims(path: Path, notebook: nbformat.NotebookNode | None = None) -> list[Claim]:
    """Return every number in the prose of a notebook or a page."""
    if path.suffix == ".ipynb":
        passages = _passages_of_notebook(notebook or read(path))
    else:
        passages = _passages_of_page(path)
    found = []
    for passage in passages:
        for at, number, sentence, paragraph in _numbers_in(passage.text):
            held_by = _held(path, number, sentence, paragraph, passage.beside)
            found.append(Claim(passage.place, at, number.text, sentence, held_by))
    return found


# Sources, the nearest first, and whether each is near enough for a number like 2 or 16.
Beside = list[tuple[Source, bool]]


@dataclass(frozen=True)
class Passage:
    """The prose of a cell, or below a heading of a page, with the sources that can hold it."""

    place: str
    text: str
    beside: Beside


def _passages_of_notebook(notebook: nbformat.NotebookNode) -> Iterator[Passage]:
    """Yield each cell of text as a passage, beside the sources of the whole notebook.

    Sources of the same section are near. To the first and the last cell, and to those that sum up,
    all are near.
    """
    sources = _sources(notebook)
    section = 0
    last = len(notebook.cells) - 1
    for at, cell in enumerate(notebook.cells):
        if cell.cell_type != "markdown":
            continue
        # A cell may end one section and begin the next, so it belongs to both.
        before = section
        section += _begins_section(cell)
        sums_up = "## Explore" in cell.source or "## Takeaways" in cell.source
        is_about_all = sums_up or at in (0, last)
        nearest = sorted(sources, key=lambda source: abs(source.at - at))
        beside = [(s, is_about_all or s.section in (before, section)) for s in nearest]
        yield Passage(cell.id, cell.source, beside)


def _passages_of_page(path: Path) -> Iterator[Passage]:
    """Yield each part of a page, from one heading to the next, as a passage."""
    text = path.read_text(encoding="utf-8")
    for part in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        first_line, _, _ = part.partition("\n")
        heading = re.sub(r"<[^>]*>", "", first_line).strip("# ")
        beside = []
        about = re.match(r"(\d) · ", heading)  # a section of INSTRUCTORS.md is about a notebook
        if about:
            notebook = NOTEBOOKS[int(about[1]) - 1]
            beside = [(source, True) for source in _sources_of(notebook)]
        yield Passage(heading, part, beside)


def _begins_section(cell: nbformat.NotebookNode) -> bool:
    """Whether the cell has a heading of the second level in it."""
    return cell.cell_type == "markdown" and bool(re.search("^## ", cell.source, re.MULTILINE))


def _sources(notebook: nbformat.NotebookNode) -> list[Source]:
    """Return a source for each cell; cells of text have only the numbers of their solution."""
    section = 0
    found = []
    for at, cell in enumerate(notebook.cells):
        section += _begins_section(cell)
        text = _code_and_outputs(cell) if cell.cell_type == "code" else solution_in(cell.source)
        # NUMBER does not match binary numbers, such as 0b0110.
        in_decimals = re.sub(r"0b[01_]+", lambda bits: str(int(bits[0], 2)), text)
        its_numbers = tuple(number for _, number in numbers(in_decimals))
        found.append(Source(f"cell {cell.id}", at, section, its_numbers))
    return found


def _code_and_outputs(cell: nbformat.NotebookNode) -> str:
    """Return the cell's code and, unless they differ from run to run, its outputs' texts."""
    texts = [cell.source]
    if "nbval-ignore-output" not in cell.metadata.get("tags", ()):
        for output in cell.outputs:
            texts.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
    return "\n".join(texts)


@cache
def _sources_of(path: Path) -> list[Source]:
    return _sources(read(path))


def _numbers_in(text: str) -> Iterator[tuple[int, Number, str, str]]:
    """Yield every number that claims something: its place, itself, its sentence, its paragraph."""
    # Blanks stand in place of what claims nothing, so that all places stay the same.
    plain = NO_CLAIM.sub(lambda apart: re.sub(r"[^\n]", " ", apart[0]), text).replace("[", " ")
    for begin, end in _stretches(text, 0, len(text), after=r"\n\s*\n|\n(?=- |\| |\d\. )"):
        paragraph = text[begin:end]
        sentences = _stretches(text, begin, end, after=r"[.?!:;] ")
        for at_in_paragraph, number in numbers(plain[begin:end]):
            at = begin + at_in_paragraph
            (left, right) = next((a, b) for a, b in sentences if a <= at < b)
            sentence = " ".join(text[left:right].split())
            yield at, number, unlinked(sentence), paragraph


def _stretches(text: str, begin: int, end: int, after: str) -> list[tuple[int, int]]:
    """Divide text[begin:end] after each match of the pattern; return each part's begin and end."""
    ends = [begin + found.end() for found in re.finditer(after, text[begin:end])]
    return list(pairwise([begin, *ends, end]))


def _held(path: Path, number: Number, sentence: str, paragraph: str, beside: Beside) -> str | None:
    """Return what holds the number: the nearest cell, another notebook, a link, or a reason.

    The first of these that there is counts; None if there is none.
    """
    return (
        _held_beside(number, beside)
        or _held_elsewhere(path, number, paragraph)
        or _held_by_link(paragraph)
        or _held_by_reason(path, sentence)
    )


def _held_beside(number: Number, beside: Beside) -> str | None:
    """Return the nearest source that has the number; None if there is none."""
    for source, is_near in beside:
        if (is_near or number.is_distinctive) and source.says(number):
            return source.name
    return None


def _held_elsewhere(path: Path, number: Number, paragraph: str) -> str | None:
    """Return the cell of another notebook that has the number, if the paragraph names the notebook.

    The paragraph may name several, as in "notebooks 2, 3 and 5".
    """
    before = r"[Nn]otebooks? (?:\[?\d\]?(?:\([^)]*\))?(?:, | and | to ))*"
    for other in NOTEBOOKS:
        number_of_other = int(other.stem[:2])
        if other == path or not re.search(rf"{before}\[?{number_of_other}\b", paragraph):
            continue
        for source in _sources_of(other):
            if source.says(number):
                return f"{other.stem}, {source.name}"
    return None


def _held_by_link(paragraph: str) -> str | None:
    """Return the paragraph's first link to the web, as a citation; None if it has none."""
    link = LINK.search(paragraph)
    return link[1] if link else None


def _held_by_reason(path: Path, sentence: str) -> str | None:
    """Return the name of the reason whose words the sentence has; None if there is none."""
    for name, reason in reasons().items():
        if any(words in sentence for words in reason.get(path.stem, ())):
            return f"reason: {name}"
    return None


@cache
def reasons() -> dict[str, dict]:
    """By name, `why` some numbers need neither cell nor citation, and the words beside them."""
    return tomllib.loads((FOLDER / "reasons.toml").read_text(encoding="utf-8"))


def written(found: Sequence[Claim]) -> str:
    """Return the claims as they are written down: a line each, below their cell or heading."""
    lines = []
    for place, there in groupby(found, key=lambda claim: claim.place):
        lines.append(place)
        for claim in there:
            lines.append(f"    {claim.number:<24}{claim.held_by or 'NOTHING HOLDS THIS'}")
    return "\n".join(lines) + "\n"


def file_of(path: Path) -> Path:
    """Return the file in which a text's claims are written down."""
    return FOLDER / f"{path.stem}.txt"


def main() -> int:
    """Write what holds each number, and print the numbers that nothing holds.

    The status is 1 if there is one.
    """
    loose = 0
    for path in TEXTS:
        found = claims(path)
        file_of(path).write_text(written(found), encoding="utf-8")
        for claim in found:
            if claim.held_by is None:
                loose += 1
                print(f"{path.name}, {claim.place}:", end=" ")
                print(f"nothing holds {claim.number!r} in: {claim.sentence}")
    if loose:
        print(f"{loose} numbers are held by nothing.")
    else:
        print("Every number is held by something.")
    return bool(loose)


if __name__ == "__main__":
    sys.exit(main())
