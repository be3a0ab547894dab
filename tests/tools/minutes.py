"""How long each notebook takes a careful reader, by count: called by `make minutes`, which prints it.

It also writes the minutes of each section into INSTRUCTORS, and each notebook's into its metadata.

120 words and 8 lines of code a minute, a minute and a half for a guess, five for a lab, two for a figure that moves,
a guess in it included, and for each of the reader's turns half as much again as it says of itself.
"""

import math
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from nbformat import NotebookNode, from_dict

from course_utils.core.record import write_whole
from course_utils.stage.notebook.about import KEY
from course_utils.stage.notebook.outline import BEYOND, outline, parted
from course_utils.stage.present import cuts
from tests import NOTEBOOKS
from tests.helpers.notebooks import read, rewrite

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
    notebook = read(path)
    parts = outline(notebook).parts
    return [cell for cell, part in zip(notebook.cells, parts, strict=True) if not part.is_beyond]


def count(title: str, cells: Sequence[NotebookNode], stated: int | None = None) -> Count:
    """What these cells ask of their reader."""
    known = outline({"cells": cells})
    turns = {turn.cells[0]: turn for turn in known.turns}
    words_in_turns, words, lines, guesses, labs, figures_min = 0, 0, 0, 0, 0, 0
    for part in known.parts:
        if part.id in turns:
            words += _words(part.text)
            words_in_turns += _words(turns[part.id].text)
        elif part.turn is not None:
            pass  # the stub, the check and the folded solution are in the turn's minutes
        elif not part.is_code:
            words += _words(part.text)
        elif part.is_guess:
            guesses += 1
        elif part.figure and not part.figure.is_whole:
            guesses += part.figure.asks
            figures_min += 0.5 if part.figure.asks else 2
        else:
            lines += sum(bool(line.strip()) for line in part.text.splitlines())
            labs += part.figure is not None
    minutes = tuple(turn.minutes for turn in known.turns)
    return Count(title, words, lines, guesses, minutes, labs, words_in_turns, figures_min, stated)


def _words(text: str) -> int:
    return len(re.findall(r"\S*\w\S*", MARKUP.sub(" ", text)))


def beyond(path: Path) -> Iterator[Count]:
    """The parts for those who want more, each with the minutes that it states."""
    notebook = read(path)
    parts = [one for one in outline(notebook).sections if one.is_beyond and one.title != BEYOND]
    ids = [cell.id for cell in notebook.cells]
    begins = [ids.index(part.cell) for part in parts]
    for part, (begin, end) in zip(parts, pairwise([*begins, len(ids)]), strict=True):
        yield count(part.title, notebook.cells[begin:end], part.minutes)


def code_cells(cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """Those of them that are run."""
    return [cell for cell in cells if cell.cell_type == "code"]


def sections(path: Path) -> list[Count]:
    """The sections of the main path, the opening first."""
    cells = list(map(from_dict, parted(main_path(path))))
    begins = [n for n, cell in enumerate(cells) if cell.source.startswith("## ")]
    parts = [(begin, end) for begin, end in pairwise([0, *begins, len(cells)])]
    return [
        count(cells[begin].source.partition("\n")[0].strip("# "), cells[begin:end])
        for begin, end in parts
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
        f"`CUT={lecture}` takes {count_of_cut(path, lecture).minutes}."
        for lecture in cuts.plans(path)
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


def say_in_its_metadata(path: Path) -> bool:
    """Bring the minutes in a notebook's metadata up to date; whether that changes the file."""
    notebook = deepcopy(read(path))
    said = notebook.metadata[KEY]
    said.minutes = count(path.stem, main_path(path)).minutes
    said.minutes_beyond = sum(part.minutes for part in beyond(path))
    return rewrite(path, notebook)


def main() -> None:
    write_into(NOTEBOOKS[0].with_name("INSTRUCTORS.md"))
    for path in NOTEBOOKS:
        say_in_its_metadata(path)
    print(
        f"{'':34}{'words':>6}{'lines':>6}{'guesses':>8}{'turns':>16}{'labs':>5}{'minutes':>8}  stated"
    )
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
