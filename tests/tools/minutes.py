"""How long each notebook takes a careful reader, by count: called by `make minutes`, which prints it.

It also writes the minutes of each section into INSTRUCTORS.

120 words and 8 lines of code a minute, a minute and a half for a guess, five for a lab, two for a figure that moves,
a guess in it included, and for each of the reader's turns half as much again as it says of itself.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path

from nbformat import NotebookNode, from_dict

from course_utils.stage.present import cuts
from course_utils.stage.workspace.notebooks import write_whole
from course_utils.stage.workspace.stubs import asks_in_the_picture, is_guess
from tests import NOTEBOOKS
from tests.helpers.notebooks import SOLUTION, TITLE, read

BEYOND = "# Beyond"
PART = re.compile(r"^## (?P<title>.+)\n\n\*(?P<minutes>\d+) minutes?\.\*")
LAB = re.compile(r"labs\.\w+_lab\(\)")
FIGURE = re.compile(r"labs\.figure\(")
MARKUP = re.compile(r"\]\([^)]*\)|<[^>]*>|[|*#`]")


@dataclass(frozen=True)
class Count:
    """What a stretch of a notebook asks of its reader."""

    title: str
    words: int
    lines: int
    guesses: int
    turns: tuple[int, ...]  # minutes of each
    labs: int
    words_in_turns: int
    figures_min: float
    stated: int | None = None

    @property
    def minutes(self) -> int:
        """All of it together, in whole minutes."""
        return math.ceil(self.exact)

    @property
    def exact(self) -> float:
        """All of it together."""
        read_min = (self.words - self.words_in_turns) / 120 + self.lines / 8
        return read_min + 1.5 * (self.guesses + sum(self.turns)) + 5 * self.labs + self.figures_min


def main_path(path: Path) -> list[NotebookNode]:
    """The cells before what is for those who want more."""
    return list(takewhile(lambda cell: not cell.source.startswith(BEYOND), read(path).cells))


def count(title: str, cells: Sequence[NotebookNode], stated: int | None = None) -> Count:
    """What these cells ask of their reader."""
    turns, words_in_turns, words, lines, guesses, labs, figures_min = [], 0, 0, 0, 0, 0, 0
    at = 0
    while at < len(cells):
        cell = cells[at]
        if cell.cell_type == "markdown":
            words += _words(cell.source)
            if turn := TITLE.search(cell.source):
                turns.append(int(turn["minutes"]))
                words_in_turns += _words(cell.source[turn.start() :])
                at += 3  # the stub, the check and the folded solution are in the turn's minutes
        elif is_guess(cell, cells[at + 1 :]):
            guesses += 1
        elif FIGURE.search(cell.source):
            drawn = asks_in_the_picture(cell.source)
            guesses += drawn
            figures_min += 0.5 if drawn else 2
        else:
            lines += sum(bool(line.strip()) for line in cell.source.splitlines())
            labs += len(LAB.findall(cell.source))
        at += 1
    return Count(title, words, lines, guesses, tuple(turns), labs, words_in_turns, figures_min, stated)


def _words(text: str) -> int:
    return len(re.findall(r"\S*\w\S*", MARKUP.sub(" ", SOLUTION.sub("", text))))


def beyond(path: Path) -> Iterator[Count]:
    """The parts for those who want more, each with the minutes that it states."""
    rest = read(path).cells[len(main_path(path)) :]
    begins = [n for n, cell in enumerate(rest) if PART.match(cell.source)]
    for begin, end in pairwise([*begins, len(rest)]):
        part = PART.match(rest[begin].source)
        yield count(part["title"], rest[begin:end], int(part["minutes"]))


def code_cells(cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """Those of them that are run."""
    return [cell for cell in cells if cell.cell_type == "code"]


def sections(path: Path) -> list[Count]:
    """The sections of the main path, the opening first."""
    cells = list(map(from_dict, cuts.parted(main_path(path))))
    begins = [n for n, cell in enumerate(cells) if cell.source.startswith("## ")]
    parts = [(begin, end) for begin, end in pairwise([0, *begins, len(cells)])]
    return [
        count(cells[begin].source.partition("\n")[0].strip("# "), cells[begin:end]) for begin, end in parts
    ]


def count_of_cut(path: Path, lecture: str) -> Count:
    """What the lecture of so many minutes asks of its room; nobody reads what is folded."""
    cells = cuts.cut(read(path), cuts.plan(path, lecture))["cells"]
    return count(path.stem, [from_dict(cell) for cell in cells if not cuts.is_folded(cell)])


def line(path: Path) -> str:
    """What INSTRUCTORS says of the minutes of that notebook's sections, and of its cuts."""
    opening, *others = sections(path)
    said = [f"the opening {round(opening.exact)}"]
    said += [f"**{part.title}** {max(1, round(part.exact))}" for part in others]
    whole = count(path.stem, main_path(path)).minutes
    of_cuts = [
        f"`CUT={lecture}` takes {count_of_cut(path, lecture).minutes}." for lecture in cuts.plans(path)
    ]
    return " ".join([f"**Minutes:** {', '.join(said)}; all of it {whole}.", *of_cuts])


def write_into(page: Path) -> None:
    """Bring the line of each notebook's minutes up to date."""
    text = page.read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        begin = text.index(f"\n## {path.stem[1]} · ")
        at = text.index("- **Minutes:**", begin)
        text = f"{text[:at]}- {line(path)}{text[text.index(chr(10), at) :]}"
    write_whole(page, text.encode())


def main() -> None:
    write_into(NOTEBOOKS[0].with_name("INSTRUCTORS.md"))
    print(f"{'':34}{'words':>6}{'lines':>6}{'guesses':>8}{'turns':>16}{'labs':>5}{'minutes':>8}  stated")
    for path in NOTEBOOKS:
        for part in (count(path.stem, main_path(path)), *beyond(path)):
            name = part.title if part.stated is None else f"  {part.title}"
            turns = " + ".join(map(str, part.turns))
            print(
                f"{name[:34]:34}{part.words:6,}{part.lines:6}{part.guesses:8}{turns:>16}{part.labs:5}"
                f"{part.minutes:8}  {'' if part.stated is None else part.stated}"
            )


if __name__ == "__main__":
    main()
