"""The parts of the front pages say what the course computes, and how far a reader is."""

import itertools
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from course_utils.chapters.accountant.account_of_llama import said_until
from course_utils.chapters.gradients.step_over_time import COLUMNS, seconds_of
from course_utils.core import record
from course_utils.core.accountant_file import TERMS
from course_utils.core.datasheets import machine_named
from course_utils.core.predict import MODELS, timeline
from course_utils.core.say import Guess, in_words
from course_utils.stage.front import bricks
from course_utils.stage.front import motion as motions
from course_utils.stage.notebook.about import unknown
from course_utils.stage.notebook.outline import Turn
from course_utils.stage.workspace import contents, going_on, progress
from course_utils.stage.workspace.place import place
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import read

FLOPS = "04_flops.ipynb"
EDGE = 1e-9  # of a column: an operation that only touches it does not run in it


# The memory of a step.


def step() -> object:
    return timeline(MODELS[motions.MODEL], motions.BATCH, motions.SEQUENCE, recipe=motions.RECIPE)


def test_what_plays_is_the_memory_of_every_operation_of_the_step():
    """Held against the operations one by one, each in all columns in which it runs."""
    operations = step().operations
    seconds = seconds_of(operations, machine_named(motions.MACHINE), "fp32")
    most = [0] * COLUMNS
    begin_s = 0.0
    for operation, its_s in zip(operations, seconds, strict=True):
        first = COLUMNS * begin_s / sum(seconds)
        end = COLUMNS * (begin_s + its_s) / sum(seconds)
        begin_s += its_s
        for column in range(int(first), min(COLUMNS, math.ceil(end))):
            if end - column > EDGE and column + 1 - first > EDGE:  # and not by rounding alone
                most[column] = max(most[column], operation.during.total)
    shown = json.loads(motions.motion().moments)["gb"]
    assert shown == [f"{nbytes / 1e9:.1f}" for nbytes in most]
    assert max(most) == step().peak
    assert motions.motion().peak == in_words(step().peak, "bytes")


def test_the_areas_lie_on_each_other_and_their_heights_are_the_bytes():
    areas = motions.motion().areas
    assert [area.part for area in areas][::-1] == list(motions.NAMES)
    tops = []
    for area in areas:
        points = [tuple(map(float, point.split(","))) for point in area.points.split()]
        tops.append([y for _, y in points[2:-2]])  # without the corners and the ends of the edge
    for above, below in itertools.pairwise(tops):
        assert all(upper <= lower for upper, lower in zip(above, below, strict=True))
    most = step().peak
    highest_point = motions.HEIGHT - min(tops[0])
    lowest = motions.HEIGHT - min(tops[-1])  # the parameters alone, which stay as they are
    parameter_bytes = 4 * MODELS[motions.MODEL].parameters
    assert lowest / highest_point == pytest.approx(parameter_bytes / most, abs=2e-3)


def test_the_words_of_the_step_follow_its_phases():
    runs = json.loads(motions.motion().moments)["runs"]
    phases = [words.split(",")[0] for _, words in runs]
    assert list(dict.fromkeys(phases)) == ["forward", "loss", "backward", "optimizer"]
    layers = [words for _, words in runs if words.startswith("backward, layer")]
    assert layers[0] == "backward, layer 12"
    assert layers[-1] == "backward, layer 1"
    assert runs[0][0] == 0


# The accountant.


def test_the_bricks_say_what_the_accountant_counts_of_the_model():
    _, *rows = said_until(len(NOTEBOOKS)).rows
    by_table = {term: (words, number) for words, number, term, _ in rows}
    assert by_table == bricks.SAYS
    assert list(bricks.SAYS.keys() ^ set(TERMS)) == []


def test_a_brick_is_laid_when_its_term_is_the_readers_and_leads_to_the_turn_that_asks_for_it():
    places = {"days": bricks.Place(4, "04#cell-id=a", "04"), "interval": bricks.Place(8, "", "08")}
    wall = bricks.wall(places, laid={"days"})
    assert [brick.name for brick in wall] == list(TERMS)
    assert [brick.name for brick in wall if brick.is_laid] == ["days"]
    drawn = contents.PAGE.render(bricks=wall, laid=1, model="M", place=place())
    shown = BeautifulSoup(drawn, "html.parser").select(".brick")
    days, interval = (next(one for one in shown if name in one.text) for name in places)
    assert days.a["href"] == "04#cell-id=a"
    assert "19.8 days" in days.text
    assert interval.a is None
    assert "77.1 minutes" not in interval.text
    assert "notebook 8" in interval.text


def test_every_term_is_a_turn_of_the_course():
    exercises = [turn.exercise for path in NOTEBOOKS for turn in progress.known(path).turns]
    assert set(TERMS) <= set(exercises)


# Turns and guesses.


def test_the_rings_count_the_guesses_that_a_reader_can_make():
    for path in NOTEBOOKS:
        known = progress.known(path)
        made = progress.guesses_made(known, [])
        text = "".join(cell.source for cell in read(path).cells if cell.cell_type == "code")
        assert made.path[1] + made.beyond[1] >= text.count("= ask("), path.stem
        everything = [Guess(name, 1, 1) for name in known.asked | known.asked_beyond]
        pictures = known.drawn | known.drawn_beyond
        drawn = [Guess("of one column", 1, 1, cell=cell) for cell in pictures]
        gone = [Guess(f"no longer asked {n}", 1, 1) for n in range(30)]
        for guesses in (everything + drawn, everything + drawn + gone, (everything + drawn) * 2):
            full = progress.guesses_made(known, guesses)
            assert full.path == (made.path[1], made.path[1]), path.stem
            assert full.beyond == (made.beyond[1], made.beyond[1]), path.stem


@pytest.mark.parametrize(
    ("guesses", "path", "beyond"),
    [
        ([("typed", ""), ("x", "c1")], 2, 0),
        ([("x", "c1"), ("x", "c2")], 2, 0),
        ([("x", "c1"), ("y", "c1"), ("z", "c1")], 1, 0),  # three columns of one picture
        ([("typed", "c3")], 0, 1),  # a column that is called as a question is
        ([("x", "a cell that is gone")], 0, 0),
        # Of an older version, without cells: each for a picture that has no guess yet.
        ([("x", ""), ("y", "c1")], 2, 0),
        ([("x", ""), ("y", ""), ("z", ""), ("gone", "")], 2, 1),
    ],
)
def test_a_drawn_guess_counts_for_the_picture_of_its_cell(guesses, path, beyond):
    known = progress.Known(
        "n.ipynb",
        unknown("n.ipynb"),
        asked=frozenset({"typed"}),
        drawn=frozenset({"c1", "c2"}),
        drawn_beyond=frozenset({"c3"}),
    )
    made = progress.guesses_made(known, [Guess(name, 1, 1, cell=cell) for name, cell in guesses])
    assert (made.path, made.beyond) == ((path, 3), (beyond, 1))


def test_main_path_and_beyond_are_counted_apart():
    turns = [Turn(n, "", f"a.t{n}", cells=(), is_beyond=n > 2) for n in range(1, 6)]
    done = {
        "a.t1": record.Done(3, "2026-01-31"),
        "a.t2": record.Done(2),
        "a.t5": record.Done(1, "x"),
    }
    count = progress.turns_done(turns, done)
    assert (count.path, count.beyond) == ((1, 2), (1, 3))
    assert [(arc.kind, arc.share) for arc in count.arcs] == [("path", 1 / 2), ("beyond", 1 / 3)]
    assert progress.in_words(count) == "1 of 2 right on the main path, 1 of 3 beyond"


# Where to go on.


def went_to(mine: Path, chapter: str, cell: str, when_s: float) -> None:
    record.note_place(mine, chapter, cell)
    os.utime(mine / record.PLACES / chapter, (when_s, when_s))


def test_the_reader_goes_on_in_the_notebook_whose_cell_ran_last(tmp_path):
    assert progress.latest(tmp_path) == ("", "")
    long_ago = time.time() - 400 * 86_400
    went_to(tmp_path, "optimizers", "c2", long_ago + 60)
    went_to(tmp_path, "flops", "c1", long_ago)
    assert progress.latest(tmp_path) == ("optimizers", "c2")
    went_to(tmp_path, "flops", "c3", long_ago + 120)
    assert progress.latest(tmp_path) == ("flops", "c3")
    (tmp_path / record.PLACES / "flops").write_bytes(b"\xff no id")
    os.utime(tmp_path / record.PLACES / "flops", (long_ago + 180, long_ago + 180))
    assert progress.latest(tmp_path) == ("optimizers", "c2"), "a damaged file is passed over"


@pytest.mark.parametrize(
    ("last_line", "notebook"),
    [
        ("2025-11-01 gradients.layer_bytes tried", "gradients"),
        ('2025-11-01 floats guessed {"asked": "a", "said": 1, "measured": 2}', "floats"),
        ("2025-11-01 tensors asked anew {}", "tensors"),
        ("2025-11-01 einsum.heads right\n\x00nonsense 3", "einsum"),
        ("2025-11-01 einsum.heads right\n2025-11-02 floats recalled {}", "einsum"),
        ("nonsense", ""),
        ("", ""),
    ],
)
def test_a_record_from_before_cells_were_remembered_names_the_notebook(
    tmp_path, last_line, notebook
):
    (tmp_path / record.RECORD).write_text(last_line, encoding="utf-8")
    (tmp_path / record.HIDDEN).mkdir()
    (tmp_path / record.PLACES).write_text("in the way")
    assert progress.latest(tmp_path) == (notebook, "")


def test_a_cell_has_the_title_of_its_turn_or_section_in_the_course_or_else_in_the_copy(tmp_path):
    course = progress.known(ROOT / "notebooks" / FLOPS)
    copy = tmp_path / FLOPS

    def title_at(words: str) -> str:
        """The title of the one cell with these words."""
        (cell,) = (cell for cell in read(ROOT / "notebooks" / FLOPS).cells if words in cell.source)
        return progress.heading_of(cell.id, course, copy)

    assert title_at("### Your turn 4 · Half of the peak") == "Half of the peak"
    assert title_at("check.half_of_the_peak(") == "Half of the peak"
    assert title_at("## Arithmetic or memory") == "Arithmetic or memory"
    assert progress.heading_of("mine", course, copy) == ""
    own = [
        {"cell_type": "markdown", "id": "head", "metadata": {}, "source": "## Of my own"},
        {"cell_type": "code", "id": "mine", "metadata": {}, "source": "1", "outputs": []},
    ]
    copy.write_text(json.dumps({"cells": own, "metadata": {}}), encoding="utf-8")
    assert progress.heading_of("mine", course, copy) == "Of my own"


def test_a_notebook_that_changes_is_read_again(tmp_path):
    path = tmp_path / FLOPS
    path.write_text(json.dumps({"cells": [], "metadata": {"course": {"title": "A"}}}))
    assert progress.known(path).about.title == "A"
    path.write_text(json.dumps({"cells": [], "metadata": {"course": {"title": "Another"}}}))
    assert progress.known(path).about.title == "Another"


def finished(mine: Path, known: progress.Known, *, without: str = "") -> None:
    """Note all turns and guesses of the notebook's main path, but for one guess."""
    chapter = known.about.chapter
    for turn in known.turns:
        if not turn.is_beyond:
            record.note(mine, turn.check, "right")
    for asked in known.asked - {without}:
        record.note_guess(mine, chapter, Guess(asked, 1, 1))
    for cell in known.drawn - {without}:
        record.note_guess(mine, chapter, Guess("of one column", 1, 1, cell=cell))


COURSE = [progress.known(path) for path in NOTEBOOKS]


def goes_on(mine: Path) -> going_on.GoOn:
    return going_on.go_on(mine, COURSE, lambda name: f"lab/{name}", "to the napkin")


def test_whoever_has_finished_a_notebook_goes_on_with_the_next_one_and_is_told_so(tmp_path):
    assert goes_on(tmp_path).is_start
    third = COURSE[2]
    fourth = COURSE[3]
    finished(tmp_path, third)
    last = third.turns[-1].cells[0]  # in Beyond
    went_to(tmp_path, "einsum", last, 1e9)
    button = goes_on(tmp_path)
    assert button.words == f"Continue: 4, {fourth.about.title}"
    assert button.link == f"lab/{fourth.name}"
    assert button.finished.startswith("You have finished notebook 3: on its main path, all turns")
    # Where the reader was in the fourth before, they go on there.
    turn = fourth.turns[0]
    went_to(tmp_path, "flops", turn.cells[0], 1e9 - 60)
    button = goes_on(tmp_path)
    assert button.words == f"Continue: 4, {turn.title}"
    assert button.link == f"lab/{fourth.name}#cell-id={turn.cells[0]}"
    # The fourth is finished, too, although it was not the last one.
    finished(tmp_path, fourth)
    assert goes_on(tmp_path).words.startswith("Continue: 5, ")


@pytest.mark.parametrize("kind", ["asked", "drawn"])
def test_a_notebook_with_an_open_guess_is_not_finished_unless_its_answer_was_seen(tmp_path, kind):
    third = COURSE[2]
    open_guess = min(getattr(third, kind))
    finished(tmp_path, third, without=open_guess)
    went_to(tmp_path, "einsum", third.turns[0].cells[0], 1e9)
    button = goes_on(tmp_path)
    assert button.words == f"Continue: 3, {third.turns[0].title}"
    assert button.finished == ""
    record.note_seen(tmp_path, "einsum", open_guess)
    button = goes_on(tmp_path)
    assert button.words.startswith("Continue: 4, ")
    assert "guess" not in button.finished, "one is missing, and the row of the notebook says so"


def test_after_the_eighth_the_first_that_is_open_comes_and_after_all_the_napkin(tmp_path):
    *others, last = COURSE
    finished(tmp_path, last)
    finished(tmp_path, COURSE[0])
    went_to(tmp_path, "checkpointing", last.turns[0].cells[0], 1e9)
    button = goes_on(tmp_path)
    assert button.words.startswith("Continue: 2, ")
    assert button.finished.startswith("You have finished notebook 8")
    for known in others[1:]:
        finished(tmp_path, known)
    button = goes_on(tmp_path)
    assert button.link == "to the napkin"
    assert button.finished.startswith("You have finished all eight notebooks")


def test_a_notebook_of_which_nothing_is_known_is_never_finished(tmp_path):
    broken = progress.Known("01_floats.ipynb", COURSE[0].about)
    went_to(tmp_path, "floats", "c1", 1e9)
    button = going_on.go_on(tmp_path, [broken, *COURSE[1:]], str, "")
    assert button.words.startswith("Continue: 1, ")
    assert going_on.go_on(tmp_path, [], str, "") is None


# The page.

WITHOUT_TORCH = """
import sys
from pathlib import Path
from course_utils.stage.workspace import contents, own_terms
mine = Path(sys.argv[1])
contents.get_ready(mine, own_terms.Judge(mine))
print([name for name in ("torch", "matplotlib", "numpy") if name in sys.modules])
"""


def test_the_page_is_made_without_torch(tmp_path):
    command = [sys.executable, "-c", WITHOUT_TORCH, tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "[]"
