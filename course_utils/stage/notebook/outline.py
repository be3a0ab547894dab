"""What a notebook has, cell by cell: sections, guesses, turns, figures and reveals, as data."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from course_utils.stage.notebook import code, prose
from course_utils.stage.notebook.about import said_in
from course_utils.stage.notebook.code import Figure, Reveal
from course_utils.stage.notebook.files import Cell, Notebook, source
from course_utils.stage.notebook.prose import Question

BEYOND = "Beyond"  # the section that begins what is for those who want more
TURN_CELLS = 4  # its text, the stub, the check and the folded solution
# The second way is that of copies from before the chapters.
CHECKS = re.compile(
    r"from course_utils\.(?:chapters\.(\w+) import (?:\w+, )*check|checks import (\w+) as check)\b"
)


@dataclass(frozen=True)
class Section:
    """A part of the notebook under a heading: its cell, and the minutes that it states, or 0.

    *Beyond* is one, and so are those below it.
    """

    title: str
    cell: str
    minutes: int = 0
    is_beyond: bool = False


@dataclass(frozen=True)
class Asked:
    """A value that a cell asks for: its name, and a question, or of a dict one for each item.

    `comment` is what the cell says of it. `check` is the exercise that the next cell gives it to;
    a guess has none.
    """

    name: str
    questions: tuple[Question, ...]
    comment: str = ""
    check: str = ""

    @property
    def is_a_dict(self) -> bool:
        return any(one.item for one in self.questions)


@dataclass(frozen=True)
class Turn:
    """A turn of the reader: its check ("flops.days"), its cells, its text, its solution's code.

    The cells are, by their ids, the heading, the stub, the check and the folded solution.
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
        """Its check's name within the chapter."""
        return self.check.partition(".")[2]


@dataclass(frozen=True)
class Part:
    """What one cell has, and where it stands: in which section it begins, and in which turn."""

    id: str
    text: str
    is_code: bool
    section: str = ""
    is_beyond: bool = False
    turn: int | None = None
    asked: tuple[Asked, ...] = ()
    is_guess: bool = False  # to be typed: the cell does nothing else
    is_answer: bool = False  # that the next cell checks
    figure: Figure | None = None
    reveals: tuple[Reveal, ...] = ()

    @property
    def is_drawn_guess(self) -> bool:
        return self.figure is not None and self.figure.asks

    @property
    def waits_for_a_guess(self) -> bool:
        """Whether it is a place for a guess, typed or drawn."""
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
        """The labs and the figures that move."""
        return [part.figure for part in self.parts if part.figure]

    def revealed(self, name: str) -> Reveal | None:
        """Where the guess of that name is held against a measurement."""
        reveals = (reveal for part in self.parts for reveal in part.reveals)
        return next((reveal for reveal in reveals if reveal.name == name), None)


def outline(notebook: Notebook) -> Outline:
    """What that notebook has; or a part of one, as a dict with its cells."""
    cells = notebook["cells"]
    parts = tuple(_parts(cells, list(_placed(cells))))
    return Outline(_heading(cells), parts, tuple(_sections(cells)), turns(notebook))


def turns(notebook: Notebook) -> tuple[Turn, ...]:
    """The notebook's turns in their order."""
    return tuple(_turns(notebook, list(_placed(notebook["cells"]))))


def parted(cells: Sequence[Cell]) -> Iterator[Cell]:
    """The cells, with one of text divided where a heading stands inside it."""
    for cell in cells:
        texts = [] if is_code(cell) else prose.divided(source(cell))
        if len(texts) < 2:
            yield cell
            continue
        for number, text in enumerate(texts):
            name = f"{cell['id']}-{number}" if number else cell["id"]
            yield {**cell, "id": name, "source": text}


def is_code(cell: Cell) -> bool:
    return cell["cell_type"] == "code"


def _is_text(cell: Cell) -> bool:
    return cell["cell_type"] == "markdown"


def _heading(cells: Sequence[Cell]) -> str:
    """The words of the first heading."""
    texts = map(source, filter(_is_text, cells))
    titles = (heading.title for text in texts for heading in prose.headings(text))
    return next(titles, "")


def _sections(cells: Sequence[Cell]) -> Iterator[Section]:
    is_beyond = False
    for cell in filter(_is_text, cells):
        text = source(cell)
        for heading in prose.headings(text):
            is_beyond = is_beyond or _begins_beyond(heading)
            if heading.level == 2 or _begins_beyond(heading):
                minutes = prose.minutes_below(text, heading)
                yield Section(heading.title, cell["id"], minutes, is_beyond)


def _begins_beyond(heading: prose.Heading) -> bool:
    return heading.level == 1 and heading.title.startswith(BEYOND)


class _Place(NamedTuple):
    """Where a cell stands: the section in which it begins, and its turn's number."""

    section: str
    is_beyond: bool
    turn: int | None


def _placed(cells: Sequence[Cell]) -> Iterator[_Place]:
    section, is_beyond, turn, left = "", False, None, 0
    for cell in cells:
        text = source(cell) if _is_text(cell) else ""
        inside = [one for one in prose.headings(text) if one.level < 3]
        first = next((one for one in inside if one.begin == 0), None)
        if first:
            is_beyond = is_beyond or _begins_beyond(first)
            section = _section_of(first)
        for number, _, _ in prose.turns_in(text):
            turn, left = number, TURN_CELLS
        yield _Place(section, is_beyond, turn if left else None)
        left = max(0, left - 1)
        if inside:
            section = _section_of(inside[-1])
            is_beyond = is_beyond or any(map(_begins_beyond, inside))


def _section_of(heading: prose.Heading) -> str:
    """The section that a heading begins; none, if it is the notebook's own."""
    return heading.title if heading.level == 2 or _begins_beyond(heading) else ""


def _parts(cells: Sequence[Cell], places: Sequence[_Place]) -> Iterator[Part]:
    reveals = [code.reveals_in(source(cell)) if is_code(cell) else [] for cell in cells]
    among = {reveal.name: reveal.among for some in reveals for reveal in some if reveal.among}
    above = ""
    for at, cell in enumerate(cells):
        text = source(cell)
        if not is_code(cell):
            above = text if _is_text(cell) else above
            yield Part(cell["id"], text, False, *places[at])
            continue
        below = next((source(one) for one in cells[at + 1 :] if is_code(one)), "")
        is_checked = "check." in below
        asked = tuple(_asked(text, above, below, among))
        yield Part(
            cell["id"],
            text,
            True,
            *places[at],
            asked=asked,
            is_guess=bool(asked) and code.is_open(text) and not is_checked,
            is_answer=code.has_a_stub(text) and is_checked,
            figure=code.figure_in(text),
            reveals=tuple(reveals[at]),
        )


def _asked(text: str, above: str, below: str, among: dict[str, tuple[str, ...]]) -> Iterator[Asked]:
    for blank in code.blanks_in(text):
        items = blank.items or ("",)
        choices = among.get(blank.name, ())
        questions = [prose.question(item, above, blank.comment, choices) for item in items]
        check = next(iter(code.checks_of(below, blank.name)), "")
        yield Asked(blank.name, tuple(questions), blank.comment, check)


def _turns(notebook: Notebook, places: Sequence[_Place]) -> Iterator[Turn]:
    """Each is a heading, and what follows it up to its folded solution."""
    cells = notebook["cells"]
    chapter = _chapter(notebook)
    for at, cell in enumerate(cells):
        found = next(prose.turns_in(source(cell)), None) if _is_text(cell) else None
        if not found:
            continue
        number, title, begin = found
        own = cells[at : at + TURN_CELLS]
        text = source(cell)[begin:]
        difficulty, minutes = prose.difficulty_and_minutes(text)
        check = next((name for one in own for name in code.CHECK.findall(source(one))), "")
        yield Turn(
            number,
            title,
            f"{chapter}.{check}",
            cells=tuple(one["id"] for one in own),
            is_beyond=places[at].is_beyond,
            difficulty=difficulty,
            minutes=minutes,
            text=text,
            solution=next(filter(None, (prose.solution_in(source(one)) for one in own)), ""),
        )


def _chapter(notebook: Notebook) -> str:
    """The chapter whose checks the notebook calls; an old copy says it in its imports alone."""
    said = said_in(notebook).get("chapter")
    if isinstance(said, str) and said:
        return said
    texts = map(source, notebook["cells"])
    chapters = (new or old for text in texts for new, old in CHECKS.findall(text))
    return next(chapters, "")
