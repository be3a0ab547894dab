"""How long each notebook takes a careful reader, by count: `make minutes` prints it.

It also writes the minutes of each section into INSTRUCTORS, and each notebook's into its metadata.

A minute is 120 words or 8 lines of code. A guess takes a minute and a half, a lab five minutes, and
a figure that moves two, a guess in it included. Each of the reader's turns takes the minutes that
it states.
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

# What is not read as words: links' addresses, HTML's tags, and Markdown's signs.
MARKUP = re.compile(r"\]\([^)]*\)|<[^>]*>|[|*#`]")


@dataclass(frozen=True)
class Count:
    """What a stretch of a notebook asks of its reader, to be turned into minutes."""

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
        """The whole minutes that the stretch takes, rounded up."""
        return math.ceil(self.exact)

    @property
    def exact(self) -> float:
        """The minutes that the stretch takes; the words of turns are in the turns' minutes."""
        read_min = (self.words - self.words_in_turns) / 120 + self.lines / 8
        done_min = 1.5 * self.guesses + sum(self.turns) + 5 * self.labs + self.figures_min
        return read_min + done_min


def main_path(path: Path) -> list[NotebookNode]:
    """Return the cells before *Beyond*."""
    notebook = read(path)
    parts = outline(notebook).parts
    return [cell for cell, part in zip(notebook.cells, parts, strict=True) if not part.is_beyond]


def count(title: str, cells: Sequence[NotebookNode], stated: int | None = None) -> Count:
    """Return what these cells ask of their reader."""
    known = outline({"cells": cells})
    turns = {turn.cells[0]: turn for turn in known.turns}
    words = 0
    words_in_turns = 0
    lines = 0
    guesses = 0
    labs = 0
    figures_min = 0.0
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
            # Two minutes either way: a guess in the figure counts one and a half by itself.
            figures_min += 0.5 if part.figure.asks else 2
        else:
            lines += sum(bool(line.strip()) for line in part.text.splitlines())
            labs += part.figure is not None
    return Count(
        title=title,
        words=words,
        lines=lines,
        guesses=guesses,
        turns=tuple(turn.minutes for turn in known.turns),
        labs=labs,
        words_in_turns=words_in_turns,
        figures_min=figures_min,
        stated=stated,
    )


def _words(text: str) -> int:
    """Count the words of a text in Markdown; one without a letter or digit is none."""
    return len(re.findall(r"\S*\w\S*", MARKUP.sub(" ", text)))


def beyond(path: Path) -> Iterator[Count]:
    """Yield the parts of *Beyond*, each with the minutes that it states."""
    notebook = read(path)
    sections_ = outline(notebook).sections
    parts = [section for section in sections_ if section.is_beyond and section.title != BEYOND]
    ids = [cell.id for cell in notebook.cells]
    begins = [ids.index(part.cell) for part in parts]
    for part, (begin, end) in zip(parts, pairwise([*begins, len(ids)]), strict=True):
        yield count(part.title, notebook.cells[begin:end], part.minutes)


def code_cells(cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """Return the cells that a kernel runs."""
    return [cell for cell in cells if cell.cell_type == "code"]


def sections(path: Path) -> list[Count]:
    """Return the sections of the main path, the opening first."""
    cells = [from_dict(cell) for cell in parted(main_path(path))]
    begins = [index for index, cell in enumerate(cells) if cell.source.startswith("## ")]
    found = []
    for begin, end in pairwise([0, *begins, len(cells)]):
        heading, _, _ = cells[begin].source.partition("\n")
        found.append(count(heading.strip("# "), cells[begin:end]))
    return found


def count_of_cut(path: Path, lecture: str) -> Count:
    """Return what a lecture asks of its audience, who do not read folded cells.

    `lecture` has the minutes of the lecture, as in cuts.toml.
    """
    cells = cuts.cut(read(path), cuts.plan(path, lecture))["cells"]
    return count(path.stem, [from_dict(cell) for cell in cells if not cuts.is_folded(cell)])


def line(path: Path) -> str:
    """Return the line in INSTRUCTORS on the minutes of the notebook's sections and cuts."""
    opening, *others = sections(path)
    of_sections = [f"the opening {round(opening.exact)}"]
    for section in others:
        of_sections.append(f"**{section.title}** {max(1, round(section.exact))}")
    whole = count(path.stem, main_path(path)).minutes
    sentences = [f"**Minutes:** {', '.join(of_sections)}; all of it {whole}."]
    for lecture in cuts.plans(path):
        sentences.append(f"`CUT={lecture}` takes {count_of_cut(path, lecture).minutes}.")
    return " ".join(sentences)


def write_into(page: Path) -> None:
    """Bring the line of each notebook's minutes up to date."""
    text = page.read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        section = text.index(f"\n## {path.stem[1]} · ")
        begin = text.index("- **Minutes:**", section)
        end = text.index("\n", begin)
        text = f"{text[:begin]}- {line(path)}{text[end:]}"
    write_whole(page, text.encode())


def say_in_its_metadata(path: Path) -> bool:
    """Bring the minutes in the metadata up to date, and say whether that changes the file."""
    notebook = deepcopy(read(path))
    said = notebook.metadata[KEY]
    said.minutes = count(path.stem, main_path(path)).minutes
    said.minutes_beyond = sum(part.minutes for part in beyond(path))
    return rewrite(path, notebook)


def main() -> None:
    """Bring INSTRUCTORS and the notebooks' metadata up to date, and print the table."""
    write_into(NOTEBOOKS[0].with_name("INSTRUCTORS.md"))
    for path in NOTEBOOKS:
        say_in_its_metadata(path)
    numbers = f"{'words':>6}{'lines':>6}{'guesses':>8}{'turns':>16}{'labs':>5}{'minutes':>8}"
    print(f"{'':34}{numbers}  stated")
    for path in NOTEBOOKS:
        print(row(count(path.stem, main_path(path)), name=path.stem))
        for part in beyond(path):
            print(row(part, name=f"  {part.title}"))


def row(part: Count, name: str) -> str:
    """Return the line of the table on a notebook or on a part of *Beyond*."""
    turns = " + ".join(str(turn_min) for turn_min in part.turns)
    read = f"{part.words:6,}{part.lines:6}{part.guesses:8}{turns:>16}{part.labs:5}"
    stated = "" if part.stated is None else part.stated
    return f"{name[:34]:34}{read}{part.minutes:8}  {stated}"


if __name__ == "__main__":
    main()
