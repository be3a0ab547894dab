"""What a notebook contains, cell by cell: sections, guesses, turns, figures and reveals."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from course_utils.stage.notebook import code, prose
from course_utils.stage.notebook.about import course_entry
from course_utils.stage.notebook.code import Figure, Reveal
from course_utils.stage.notebook.files import Cell, Notebook, source
from course_utils.stage.notebook.prose import Question

BEYOND = "Beyond"  # the section that begins what is for those who want more
TURN_CELLS = 4  # of a turn: its text, the stub, the check and the folded solution
# As in "from course_utils.chapters.flops import check", and in "from course_utils.checks import
# flops as check", which copies have from before the course had chapters.
CHECKS = re.compile(
    r"from course_utils\.(?:chapters\.(\w+) import (?:\w+, )*check|checks import (\w+) as check)\b"
)


@dataclass(frozen=True)
class Section:
    """A section of the notebook: its title, and the id of the cell with its heading.

    `minutes` are those that are stated below the heading, or 0. *Beyond* is a section, and so is
    each section below it.
    """

    title: str
    cell: str
    minutes: int = 0
    is_beyond: bool = False


@dataclass(frozen=True)
class Asked:
    """A value that a cell asks for, with one question or several.

    It is a guess, or a value that stands as `...` in the cell, with a `comment` behind it. `check`
    is the exercise whose check the next cell calls with the value; it is empty for a guess.
    `between` has the ends of the sum if a guess asks for its parts.
    """

    name: str
    questions: tuple[Question, ...]
    comment: str = ""
    check: str = ""
    between: tuple[tuple[str, float], ...] = ()  # (("at the peak", 82.5), ("reported", 260))

    @property
    def has_several(self) -> bool:
        return len(self.questions) > 1


@dataclass(frozen=True)
class Turn:
    """A turn of the reader, which is an exercise.

    `check` is its check's name, as in "flops.days". `cells` are the ids of its cells: the heading,
    the stub, the check and the folded solution. `text` is that of the first cell, from the heading
    on, and `solution` the code of the solution.
    """

    number: int
    title: str
    check: str
    cells: tuple[str, ...]
    is_beyond: bool = False
    difficulty: str = ""
    minutes: int = 0
    text: str = ""
    solution: str = ""

    @property
    def exercise(self) -> str:
        """The check's name within its chapter, such as "days" of "flops.days"."""
        _, _, name = self.check.partition(".")
        return name


@dataclass(frozen=True)
class Part:
    """What one cell contains, and the section and the turn that it belongs to."""

    id: str
    text: str
    is_code: bool
    section: str = ""  # its title
    is_beyond: bool = False
    turn: int | None = None  # its number; None outside of any turn
    asked: tuple[Asked, ...] = ()
    is_guess: bool = False  # whether the cell asks for a guess, and does nothing else
    is_answer: bool = False  # whether the next cell checks what the reader writes here
    figure: Figure | None = None
    reveals: tuple[Reveal, ...] = ()

    @property
    def is_drawn_guess(self) -> bool:
        return self.figure is not None and self.figure.asks

    @property
    def waits_for_a_guess(self) -> bool:
        """Whether the reader makes a guess in this cell, typed or drawn."""
        return self.is_guess or self.is_drawn_guess

    @property
    def is_solution(self) -> bool:
        return not self.is_code and self.text.startswith(prose.SOLUTION)


@dataclass(frozen=True)
class Outline:
    """A notebook's heading, its cells in order, its sections and its turns."""

    heading: str
    parts: tuple[Part, ...]
    sections: tuple[Section, ...]
    turns: tuple[Turn, ...]

    @property
    def guesses(self) -> list[Part]:
        """The cells in which a guess is typed."""
        return [part for part in self.parts if part.is_guess]

    @property
    def figures(self) -> list[Figure]:
        """The labs, and the figures with controls."""
        return [part.figure for part in self.parts if part.figure]

    def revealed(self, name: str) -> Reveal | None:
        """Return the Reveal of the guess of that name.

        The result is None if no cell compares the guess with a measurement.
        """
        for part in self.parts:
            for reveal in part.reveals:
                if reveal.name == name:
                    return reveal
        return None


def outline(notebook: Notebook) -> Outline:
    """Return the notebook's heading, cells, sections and turns.

    The notebook may be a dict without metadata, as long as it has "cells".
    """
    cells = notebook["cells"]
    placements = list(_placements(cells))  # a list, since the parts and the turns both need it
    return Outline(
        heading=_heading(cells),
        parts=tuple(_parts(cells, placements)),
        sections=tuple(_sections(cells)),
        turns=tuple(_turns(notebook, placements)),
    )


def turns(notebook: Notebook) -> tuple[Turn, ...]:
    """Return the notebook's exercises, "Your turn 1" and so on, without the rest of the outline."""
    placements = list(_placements(notebook["cells"]))
    return tuple(_turns(notebook, placements))


def parted(cells: Sequence[Cell]) -> Iterator[Cell]:
    """Yield the cells, each cell of text divided at the headings inside it.

    So a lecture may show one section of a cell of text, and leave out the next.
    """
    for cell in cells:
        if is_code(cell):
            yield cell
            continue
        texts = prose.divided(source(cell))
        if len(texts) == 1:
            yield cell
            continue
        for number, text in enumerate(texts):
            # The first part keeps the cell's id, and the others have a number behind it.
            name = f"{cell['id']}-{number}" if number else cell["id"]
            yield {**cell, "id": name, "source": text}


def is_code(cell: Cell) -> bool:
    return cell["cell_type"] == "code"


def _is_text(cell: Cell) -> bool:
    return cell["cell_type"] == "markdown"


def _heading(cells: Sequence[Cell]) -> str:
    """Return the words of the first heading."""
    for cell in cells:
        if _is_text(cell):
            for heading in prose.headings(source(cell)):
                return heading.title
    return ""


def _sections(cells: Sequence[Cell]) -> Iterator[Section]:
    """Yield the sections, from the headings in the cells of text."""
    is_beyond = False
    for cell in cells:
        if not _is_text(cell):
            continue
        text = source(cell)
        for heading in prose.headings(text):
            if _begins_beyond(heading):
                is_beyond = True
            if _begins_a_section(heading):
                minutes = prose.minutes_below(text, heading)
                yield Section(heading.title, cell["id"], minutes, is_beyond)


def _begins_beyond(heading: prose.Heading) -> bool:
    return heading.level == 1 and heading.title.startswith(BEYOND)  # such as "# Beyond"


def _begins_a_section(heading: prose.Heading) -> bool:
    return heading.level == 2 or _begins_beyond(heading)


class _Placement(NamedTuple):
    """The section in which a cell begins, and the number of the turn that it belongs to."""

    section: str
    is_beyond: bool
    turn: int | None


def _placements(cells: Sequence[Cell]) -> Iterator[_Placement]:
    """Yield, for each cell in order, the section and the turn in which the cell stands.

    A heading at the beginning of a cell counts for that cell, too; a heading inside it counts from
    the next cell on.
    """
    section = ""
    is_beyond = False
    turn = None
    cells_left = 0  # how many cells of the present turn are still to come
    for cell in cells:
        text = source(cell) if _is_text(cell) else ""
        # A heading of the third level does not begin a section.
        headings = [heading for heading in prose.headings(text) if heading.level < 3]
        for heading in headings:
            if heading.begin == 0:
                section = _section_of(heading)
                is_beyond = is_beyond or _begins_beyond(heading)
        for turn_heading in prose.turns_in(text):
            turn = turn_heading.number
            cells_left = TURN_CELLS
        yield _Placement(section, is_beyond, turn if cells_left else None)
        cells_left = max(0, cells_left - 1)
        # For the next cell all headings of this one count, and the last one begins its section.
        for heading in headings:
            section = _section_of(heading)
            is_beyond = is_beyond or _begins_beyond(heading)


def _section_of(heading: prose.Heading) -> str:
    """Return the section that a heading begins; the notebook's own heading begins none."""
    return heading.title if _begins_a_section(heading) else ""


def _parts(cells: Sequence[Cell], placements: Sequence[_Placement]) -> Iterator[Part]:
    """Yield the part for each cell."""
    above = ""  # the last text above the cell
    for at, cell in enumerate(cells):
        if is_code(cell):
            below = _next_code(cells, at)
            asked = tuple(_asked(source(cell), above, below))
            is_checked = "check." in below
            yield _code_part(cell, placements[at], asked, is_checked)
        else:
            if _is_text(cell):
                above = source(cell)
            # `_asdict` gives the section, is_beyond and the turn, which are fields of Part, too.
            yield Part(cell["id"], source(cell), is_code=False, **placements[at]._asdict())


def _next_code(cells: Sequence[Cell], at: int) -> str:
    """Return the text of the next code cell, or an empty one."""
    for cell in cells[at + 1 :]:
        if is_code(cell):
            return source(cell)
    return ""


def _code_part(
    cell: Cell,
    placement: _Placement,
    asked: tuple[Asked, ...],
    is_checked: bool,
) -> Part:
    """Return the part for a cell of code.

    `is_checked` is whether the next cell of code calls a check.
    """
    text = source(cell)
    return Part(
        cell["id"],
        text,
        is_code=True,
        **placement._asdict(),
        asked=asked,
        is_guess=code.is_guess(text),
        is_answer=code.has_a_stub(text) and is_checked,
        figure=code.figure_in(text),
        reveals=tuple(code.reveals_in(text)),
    )


def _asked(text: str, above: str, below: str) -> Iterator[Asked]:
    """Yield the values that a cell of code asks for.

    `text` is its code, `above` the text above it, and `below` the code of the next such cell.
    """
    for ask in code.asks_in(text):
        has_several = len(ask.questions) > 1
        questions = []
        for name in ask.questions:
            item = name if has_several else ""  # the text above asks a single question by itself
            words = prose.question_words(item, above)
            questions.append(Question(words, ask.unit, ask.among, name))
        yield Asked(ask.name, tuple(questions), between=ask.between)
    for blank in code.blanks_in(text):
        items = blank.items if blank.items else ("",)  # one question, without an item
        questions = [prose.question(item, above, blank.comment) for item in items]
        checks = code.checks_of(below, blank.name)
        check = checks[0] if checks else ""
        yield Asked(blank.name, tuple(questions), blank.comment, check)


def _turns(notebook: Notebook, placements: Sequence[_Placement]) -> Iterator[Turn]:
    """Yield the turns. Each begins with its heading, and ends with its folded solution."""
    cells = notebook["cells"]
    chapter = _chapter(notebook)
    for at, cell in enumerate(cells):
        text_of_cell = source(cell) if _is_text(cell) else ""
        headings = list(prose.turns_in(text_of_cell))
        if not headings:
            continue
        heading = headings[0]  # a cell has one turn at most
        own_cells = cells[at : at + TURN_CELLS]
        text = text_of_cell[heading.begin :]
        difficulty, minutes = prose.difficulty_and_minutes(text)
        yield Turn(
            number=heading.number,
            title=heading.title,
            check=f"{chapter}.{_first_check(own_cells)}",
            cells=tuple(own["id"] for own in own_cells),
            is_beyond=placements[at].is_beyond,
            difficulty=difficulty,
            minutes=minutes,
            text=text,
            solution=_first_solution(own_cells),
        )


def _first_check(cells: Sequence[Cell]) -> str:
    """Return the exercise whose check is called first in the cells; "" if none is called."""
    for cell in cells:
        for exercise in code.CHECK.findall(source(cell)):
            return exercise
    return ""


def _first_solution(cells: Sequence[Cell]) -> str:
    """Return the code of the first folded solution in the cells; "" if there is none."""
    for cell in cells:
        solution = prose.solution_in(source(cell))
        if solution:
            return solution
    return ""


def _chapter(notebook: Notebook) -> str:
    """Return the chapter whose checks the notebook calls, from its metadata or else its imports.

    Copies from before the metadata had the chapter only import it.
    """
    chapter = course_entry(notebook).get("chapter")
    if isinstance(chapter, str) and chapter:
        return chapter
    for cell in notebook["cells"]:
        # CHECKS has a group for each of two forms of the import; that of the other form is "".
        for new, old in CHECKS.findall(source(cell)):
            return new if new else old
    return ""
