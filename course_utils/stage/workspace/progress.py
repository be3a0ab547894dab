"""How far a reader is with each notebook: which turns are right, and which guesses were made."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from course_utils.core import record
from course_utils.core.say import Guess
from course_utils.core.say.language import translated
from course_utils.stage.notebook.about import About, about, unknown
from course_utils.stage.notebook.files import read
from course_utils.stage.notebook.outline import Outline, Turn, outline
from course_utils.stage.translations.edition import in_english

# Matches the beginning of a line of the record, up to the notebook's name. Questions that come back
# are not asked in their notebook, so the reader was not there.
NOTEBOOK = re.compile(r"^\d{4}-\d\d-\d\d (\w+)(?:\.\w+)? (?!recalled )\w", re.ASCII | re.MULTILINE)
# The radii of a ring's two circles, in its drawing's units.
OUTER = 17
INNER = 11


@dataclass(frozen=True)
class Known:
    """What a notebook of the course has: what it is about, its turns, and its guesses.

    `asked` and `asked_beyond` have the names of the questions that are typed into a field, on the
    main path and in Beyond. `drawn` and `drawn_beyond` have the ids of the cells in whose picture a
    guess is drawn. `headings` has, by the cell's id, the title of the turn or the section that a
    cell belongs to. `account_lab` is the id of the cell with the lab that says what any model
    takes; it is empty in all notebooks but one.
    """

    name: str  # of its file
    about: About
    turns: tuple[Turn, ...] = ()
    asked: frozenset[str] = frozenset()
    asked_beyond: frozenset[str] = frozenset()
    drawn: frozenset[str] = frozenset()
    drawn_beyond: frozenset[str] = frozenset()
    headings: Mapping[str, str] = field(default_factory=dict)
    account_lab: str = ""


@dataclass(frozen=True)
class Arc:
    """A circle of a ring, of which a share is done."""

    kind: str  # "path" or "beyond"
    radius: int
    share: float


@dataclass(frozen=True)
class Count:
    """How many turns or guesses are done, and of how many: on the main path, and beyond it."""

    path: tuple[int, int]
    beyond: tuple[int, int]

    @property
    def arcs(self) -> list[Arc]:
        """The circles of the ring; without anything beyond, there is one."""
        arcs = []
        for kind, radius, (done, of) in (
            ("path", OUTER, self.path),
            ("beyond", INNER, self.beyond),
        ):
            if of:
                arcs.append(Arc(kind, radius, done / of))
        return arcs


def known(path: Path) -> Known:
    """Return what is known of the notebook: of one that cannot be read, what its name says."""
    try:
        state = path.stat()
        return _known(path, state.st_mtime_ns, state.st_size)
    except (OSError, ValueError):
        # The course's own file is broken, as the server says when it starts. The page still shows
        # the other notebooks.
        return Known(path.name, unknown(path.name))


@lru_cache(64)
def _known(path: Path, changed_ns: int, nbytes: int) -> Known:
    """Return what is known of the notebook as it was at that time, in a file of that many bytes.

    It is cached, because to read all eight takes several times as long as a page may.
    """
    notebook = in_english(read(path))  # a copy may be in another language
    has = outline(notebook)
    return Known(
        name=path.name,
        about=about(notebook, path.name),
        turns=has.turns,
        asked=_asked(has, is_beyond=False),
        asked_beyond=_asked(has, is_beyond=True),
        drawn=_drawn(has, is_beyond=False),
        drawn_beyond=_drawn(has, is_beyond=True),
        headings=_headings(has),
        account_lab=_account_lab(has),
    )


def _account_lab(has: Outline) -> str:
    """Return the id of the cell that shows the account lab; empty if there is none."""
    for part in has.parts:
        if part.figure is not None and part.figure.lab == "account":
            return part.id
    return ""


def _headings(has: Outline) -> dict[str, str]:
    """Return the title of each cell's turn, or else of its section, by the cell's id."""
    title_of_turn = {turn.number: turn.title for turn in has.turns}
    return {part.id: title_of_turn.get(part.turn, part.section) for part in has.parts}


def _asked(has: Outline, *, is_beyond: bool) -> frozenset[str]:
    """Return the names of the questions to which a guess is typed."""
    names = set()
    for part in has.guesses:
        if part.is_beyond == is_beyond:
            names.update(question.item for asked in part.asked for question in asked.questions)
    return frozenset(names)


def _drawn(has: Outline, *, is_beyond: bool) -> frozenset[str]:
    """Return the ids of the cells in whose picture a guess is drawn."""
    drawn = [part for part in has.parts if part.is_drawn_guess and part.is_beyond == is_beyond]
    return frozenset(part.id for part in drawn)


def turns_done(all_turns: Sequence[Turn], done: Mapping[str, record.Done]) -> Count:
    """Return how many turns are right.

    >>> on_the_path = Turn(1, "Edge", "floats.edge", cells=())
    >>> beyond = Turn(2, "Ends", "floats.ends", cells=(), is_beyond=True)
    >>> turns_done([on_the_path, beyond], {"floats.ends": record.Done(1, "2026-01-31")})
    Count(path=(0, 1), beyond=(1, 1))
    """
    counts = []
    for is_beyond in (False, True):
        here = [turn for turn in all_turns if turn.is_beyond == is_beyond]
        right = [turn for turn in here if entry_on(turn, done).status == "right"]
        counts.append((len(right), len(here)))
    return Count(*counts)


def guesses_made(notebook: Known, guesses: Sequence[Guess]) -> Count:
    """Return how many of the notebook's guesses the record has.

    A drawn guess counts for the picture of its cell. Records of older versions do not name the
    cell: there, a guess whose name no field has was drawn, or is to a question that the course no
    longer asks. So no more of these are counted than there are pictures left.
    """
    names = {guess.asked for guess in guesses if not guess.cell}
    cells = {guess.cell for guess in guesses}
    unknown = len(names - notebook.asked - notebook.asked_beyond)
    open_pictures = len(notebook.drawn - cells)
    drawn = len(notebook.drawn & cells) + min(unknown, open_pictures)
    unknown -= min(unknown, open_pictures)
    open_beyond = len(notebook.drawn_beyond - cells)
    drawn_beyond = len(notebook.drawn_beyond & cells) + min(unknown, open_beyond)
    return Count(
        path=(
            len(names & notebook.asked) + drawn,
            len(notebook.asked) + len(notebook.drawn),
        ),
        beyond=(
            len(names & notebook.asked_beyond) + drawn_beyond,
            len(notebook.asked_beyond) + len(notebook.drawn_beyond),
        ),
    )


def is_finished(
    notebook: Known,
    done: Mapping[str, record.Done],
    guesses: Sequence[Guess],
    said: Mapping[str, record.Said],
) -> bool:
    """Whether all turns of the main path are right, and all its guesses made.

    Where the reader has seen an answer without a guess, which `said` has, nothing is left to guess.
    """
    right, turns = turns_done(notebook.turns, done).path
    made, asked = guesses_made(notebook, guesses).path
    named = {guess.cell if guess.cell else guess.asked for guess in guesses}
    closed = {name for name, one in said.items() if one.is_closed}
    seen_only = (notebook.asked | notebook.drawn) & (closed - named)
    return turns + asked > 0 and right == turns and made + len(seen_only) >= asked


def entry_on(turn: Turn, done: Mapping[str, record.Done]) -> record.Done:
    """Return the record's entry on the turn; an empty entry if the record has none."""
    return done.get(turn.check, record.Done())


def in_words(count: Count) -> str:
    """Return how many turns are right, on the main path and, if there are any, beyond it.

    >>> in_words(Count((0, 1), (0, 1))), in_words(Count((1, 3), (0, 0)))
    ('0 of 1 right on the main path, 0 of 1 beyond', '1 of 3 right on the main path')
    """
    right, of = count.path
    path = translated("{right} of {of} right on the main path", right=right, of=of) if of else ""
    right, of = count.beyond
    beyond = translated("{right} of {of} beyond", right=right, of=of) if of else ""
    if path and beyond:
        return translated("{items}, {next}", items=path, next=beyond)
    return path + beyond


def latest(folder: Path) -> tuple[str, str]:
    """Return the notebook in which the reader was last, and the id of the cell that ran last there.

    The id is empty if only the record's last line names the notebook: older versions of the course
    remembered no cells. Both are empty if the reader has done nothing yet.
    """
    ran: dict[int, str] = {}  # by the time at which a cell ran, the notebook
    with suppress(OSError):
        for path in sorted((folder / record.PLACES).iterdir()):
            ran[path.stat().st_mtime_ns] = path.name
    for _, notebook in sorted(ran.items(), reverse=True):
        cell = record.place(folder, notebook)
        if cell:
            return notebook, cell
    notebooks = []
    with suppress(OSError):
        text = (folder / record.RECORD).read_text(encoding="utf-8-sig", errors="replace")
        notebooks = NOTEBOOK.findall(text)
    return (notebooks[-1], "") if notebooks else ("", "")


def heading_of(cell: str, notebook: Known, copy: Path) -> str:
    """Return the title of the turn or the section that has the cell; empty if it is not known.

    A cell that the reader has added is in their copy alone.
    """
    if cell in notebook.headings:
        return notebook.headings[cell]
    return known(copy).headings.get(cell, "")
