"""What a class hands in, graded in one run.

It is right, or blank, or has a listed mistake; it attacks; or it is written as honest students do.
"""

import csv
import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import psutil
import pytest

from course_utils.stage.grading import pages, sandbox
from course_utils.stage.grading.__main__ import SETTINGS, main
from course_utils.stage.grading.counting import counting
from course_utils.stage.grading.pages import Row
from course_utils.stage.grading.reading import handed_in
from course_utils.stage.notebook.files import Notebook, read, write
from course_utils.stage.notebook.outline import outline
from tests import NOTEBOOKS, ROOT
from tests.engine.test_checks import LISTING, first_case
from tests.helpers.notebooks import Exercise, exercises_of
from tests.helpers.thorough import SOME_NOTEBOOKS, thorough
from tests.stage.handed_in import (
    ANYWHERE,
    FIRST,
    FLOPS,
    HONEST,
    HOSTILE,
    cell_of,
    hand_in,
    hand_in_honestly,
    mistaken,
    name_in,
    solved,
)

NO_POINTS = ("not yet", "stopped", "flagged", "not judged")
NEEDS_SANDBOX = pytest.mark.skipif(
    bool(sandbox.why_no_bubblewrap()), reason=f"bubblewrap: {sandbox.why_no_bubblewrap()}"
)
EACH_NTH = 9  # attack is tried, where not all are


@dataclass(frozen=True)
class Class:
    """Who hands in these notebooks: the right, the blank, the mistaken and the cheating.

    For notebook 4 there are the hostile and the honest ones, by their names in the data files.
    """

    notebooks: list[Path]
    hostile: list[str]
    honest: list[str]


SOME = Class(
    notebooks=[FLOPS, SOME_NOTEBOOKS[0]],
    hostile=list(HOSTILE)[4::EACH_NTH],
    honest=list(HONEST)[::4],
)
ALL = Class(notebooks=list(NOTEBOOKS), hostile=list(HOSTILE), honest=list(HONEST))


@dataclass(frozen=True)
class Graded:
    """What the command wrote of a folder, and what else happened meanwhile."""

    rows: list[dict[str, str]]
    students: dict[str, dict[str, str]]
    out: Path
    victim: Path
    said: str
    was_called: bool  # somebody connected to the port
    left: list[str]  # processes that are still there

    def of(self, student: str, number: int = 1) -> dict[str, str]:
        """The row of that student's exercise of that number."""
        found = []
        for row in self.of_student(student):
            if row["exercise"].startswith(f"{number} "):
                found.append(row)
        assert len(found) == 1, (student, number, found)
        return found[0]

    def of_student(self, student: str) -> list[dict[str, str]]:
        name = student.replace("_", " ")
        return [row for row in self.rows if row["student"] == name]


def graded(folder: Path, fill: object, *, path: str | None = None, **settings: str) -> Graded:
    """Fill the folder, and run the command on it."""
    victim = folder / "mine" / "book.txt"
    victim.parent.mkdir(parents=True)
    victim.write_text("kept")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        _, port = server.getsockname()
        fill(folder / "in", victim, port)
        settings = {**settings, "FOLDER": str(folder / "in"), "OUT": str(folder / "out")}
        if path is not None:
            settings["PATH"] = path
        said = run_grading(settings)
        was_called = is_called(server)
    commands = [_words(process) for process in psutil.process_iter()]
    left = [words for words in commands if str(folder) in words]
    students = table(folder / "out" / "students.csv")
    return Graded(
        rows=table(folder / "out" / "grades.csv"),
        students={student["student"]: student for student in students},
        out=folder / "out",
        victim=victim,
        said=said,
        was_called=was_called,
        left=left,
    )


def run_grading(settings: dict[str, str]) -> str:
    """Run the command with these settings, and return what it prints."""
    command = [sys.executable, "-m", "course_utils.stage.grading"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    print(run.stdout, run.stderr)
    assert run.returncode == 0
    return run.stdout


def is_called(server: socket.socket) -> bool:
    """Whether somebody has connected to it."""
    try:
        server.accept()
    except TimeoutError:
        return False
    return True


def _words(process: psutil.Process) -> str:
    """How that process was started, and which folder it was told to grade."""
    try:
        return " ".join([*process.cmdline(), process.environ().get("FOLDER", "")])
    except (psutil.Error, OSError):  # gone, or another user's
        return ""


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill_all(of: Class, folder: Path, victim: Path, port: int) -> None:
    for course in of.notebooks:
        hand_in(folder / "blank" / course.name, course, {})
        hand_in(folder / "right" / course.name, course, solved(course))
        hand_in_mistakes(folder, course)
        for kind, text in ANYWHERE.items():
            answers = {e.stub: anywhere(e, text) for e in exercises_of(course)}
            hand_in(folder / f"anywhere_{kind}" / course.name, course, answers)
    fill_hostile(folder, victim, port, of.hostile)
    for student in of.honest:
        hand_in_honestly(folder / f"honest_{student}" / FLOPS.name, HONEST[student])
    (folder / "deep").mkdir()
    guess = "my_days_guess = x" + ".a" * 20_000
    hand_in(folder / "deep" / FLOPS.name, FLOPS, solved(FLOPS) | guesses_of(FLOPS, guess))


def hand_in_mistakes(folder: Path, course: Path) -> None:
    """One student hands in the first listed mistake of each exercise, one the second, and so on."""
    cells = {}
    for exercise in exercises_of(course):
        if exercise in LISTING:
            cells[exercise.stub] = mistaken(exercise, exercise.judge)
    most = max(len(mistakes) for mistakes in cells.values())
    for number in range(most):
        answers = {}
        for stub, mistakes in cells.items():
            if number < len(mistakes):
                answers[stub] = mistakes[number]
        hand_in(folder / f"mistake_{number + 1}" / course.name, course, answers)


def fill_hostile(folder: Path, victim: Path, port: int, attacks: list[str]) -> None:
    fills = {"{victim}": str(victim), "{folder}": str(victim.parent), "{port}": str(port)}
    for student in attacks:
        answer = cell_of(HOSTILE[student], fills)
        hand_in(folder / student / FLOPS.name, FLOPS, {FIRST.stub: answer})


def anywhere(exercise: Exercise, text: str) -> str:
    """That attack as the answer to this exercise."""
    _, _, module = exercise.notebook.stem.partition("_")
    check = exercise.judge.__name__
    return text.format(name=name_in(exercise), module=module, check=check)


def guesses_of(course: Path, text: str) -> dict[str, str]:
    """This text in the place of each guess of that notebook."""
    return {guess.text: text for guess in outline(read(course)).guesses}


def advice_on(exercise: Exercise) -> list[str]:
    """The advice on each listed mistake, in their order."""
    _, *listed = exercise.judge.__wrapped__(*first_case(exercise.judge))
    return [advice for _, advice in listed]


@pytest.fixture(
    scope="module", params=[SOME, pytest.param(ALL, marks=thorough)], ids=["some", "all"]
)
def of(request) -> Class:
    return request.param


@pytest.fixture(scope="module")
def came(of, tmp_path_factory) -> Graded:
    """What the command made of the class."""
    return graded(tmp_path_factory.mktemp("class"), partial(fill_all, of))


def test_folded_solutions_are_right_and_stubs_not_attempted(of, came):
    for course in of.notebooks:
        many = len(exercises_of(course))
        assert verdicts(came, "right", course) == ["right"] * many
        assert verdicts(came, "blank", course) == ["not attempted yet"] * many
    right = came.students["right"]
    blank = came.students["blank"]
    assert right["points"] == right["of"]
    assert right["right"] == right["of"]
    assert int(right["beyond_right"]) >= len(of.notebooks)
    assert blank["of"] == right["of"]
    assert blank["points"] == "0"
    assert blank["not_attempted"] == right["of"]


def verdicts(came: Graded, student: str, course: Path) -> list[str]:
    """Those on a student's answers in that notebook."""
    return [row["verdict"] for row in came.of_student(student) if row["notebook"] == course.stem]


def test_each_listed_mistake_gets_its_advice(of, came):
    rows = {}
    for row in came.rows:
        number = row["exercise"].partition(" ")[0]
        rows[row["student"], row["notebook"], number] = row
    looked_at = 0
    for exercise in LISTING:
        if exercise.notebook not in of.notebooks:
            continue
        for number, advice in enumerate(advice_on(exercise), 1):
            row = rows[f"mistake {number}", exercise.notebook.stem, exercise.number]
            assert row["verdict"] == "not yet", row
            assert row["points"] == "0", row
            assert row["looks_like"] == advice, row
            looked_at += 1
    assert looked_at > 18 * len(of.notebooks)


@pytest.mark.parametrize("kind", ANYWHERE)
def test_what_would_fool_a_judge_in_its_own_process_earns_nothing_in_any_turn(of, came, kind):
    rows = came.of_student(f"anywhere_{kind}")
    assert len(rows) == sum(len(exercises_of(course)) for course in of.notebooks)
    for row in rows:
        assert row["verdict"] in NO_POINTS, row
        assert row["points"] == "0"
        assert row["looks_like"]
    assert came.students[f"anywhere {kind}"]["points"] == "0"


@NEEDS_SANDBOX
def test_an_attack_costs_its_line_and_nothing_else(of, came):
    for attack in of.hostile:
        row = came.of(attack)
        wanted = HOSTILE[attack]
        assert row["verdict"] == wanted["verdict"], row
        assert wanted["words"] in row["looks_like"], row
        assert row["looks_like"]
        assert came.students[row["student"]]["points"] == "0"
        others = [came.of(attack, number)["verdict"] for number in range(2, 7)]
        assert others == ["not attempted yet"] * 5, attack


def test_what_is_outside_is_as_it_was(came):
    assert [path.name for path in came.victim.parent.iterdir()] == ["book.txt"]
    assert came.victim.read_text() == "kept"
    assert not came.was_called
    assert came.left == []


def test_an_honest_student_gets_what_the_answer_deserves(of, came):
    for student in of.honest:
        row = came.of(f"honest_{student}")
        wanted = HONEST[student]
        assert row["verdict"] == wanted["verdict"], row
        assert wanted.get("words", "") in row["looks_like"], row


def test_a_guess_that_no_parser_can_read_costs_nothing(came):
    assert [came.of("deep", number)["verdict"] for number in range(1, 7)] == ["right"] * 6


def test_guesses_are_counted_that_stand_beside_their_answers(tmp_path):
    notebook = read(FLOPS)
    beside = "GB    your guess  predicted\nits size     2.4        2.42"
    outputs = {"text/plain": [line + "\n" for line in beside.split("\n")]}
    results = [{"output_type": "execute_result", "data": outputs, "metadata": {}}]
    asked = {part.id for part in outline(notebook).parts if part.reveals}
    shown = 0
    for cell in notebook["cells"]:
        if cell["id"] in asked and shown < 3:
            cell["outputs"] = results
            shown += 1
    (tmp_path / "ada").mkdir()
    write(tmp_path / "ada" / FLOPS.name, notebook)
    (file,) = handed_in(tmp_path, read_course())
    assert file.guesses == 3


def test_no_output_has_a_character_that_commands(of, came):
    feedback = list(came.out.rglob("*.html"))
    tables = list(came.out.glob("*.csv"))
    assert len(feedback) > len(of.hostile) + len(of.honest)
    for path in [*feedback, *tables]:
        text = path.read_text(encoding="utf-8-sig")
        assert not set(text) & {"\x00", "\x1b", "\x07", "\u202e"}, path
    for path in tables:
        assert path.read_bytes().startswith(b"\xef\xbb\xbf")
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.reader(file):
                assert not [cell for cell in row if cell.startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize(
    "attacks",
    [SOME.hostile[::4], pytest.param(list(HOSTILE)[::EACH_NTH], marks=thorough)],
    ids=["some", "more"],
)
def test_without_bubblewrap_a_sentence_says_so_and_no_feedback_has_a_drawn_case(tmp_path, attacks):
    """Some attacks, and a right answer, with a search path on which there is no bubblewrap."""

    def fill(folder: Path, victim: Path, port: int) -> None:
        hand_in(folder / "right" / FLOPS.name, FLOPS, solved(FLOPS))
        fill_hostile(folder, victim, port, attacks)

    came = graded(tmp_path, fill, path=str(tmp_path), SEED="8")
    assert "bubblewrap was not used: it is " in came.said
    how = (came.out / "how_it_was_judged.txt").read_text(encoding="utf-8")
    assert "bubblewrap was not used" in how
    assert came.students["right"]["points"] == came.students["right"]["of"]
    for attack in attacks:
        assert came.of(attack)["verdict"] in NO_POINTS, came.of(attack)
    assert came.victim.read_text() == "kept"
    assert not came.was_called
    for path in came.out.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert "; expected " not in page
        assert "my_days(" not in page
    assert "; expected " in (came.out / "grades.csv").read_text(encoding="utf-8-sig")


@NEEDS_SANDBOX
def test_with_bubblewrap_a_sentence_says_what_is_promised(came):
    assert sandbox.PROMISED in came.said
    assert sandbox.PROMISED in (came.out / "how_it_was_judged.txt").read_text(encoding="utf-8")


# Files: whose they are, which notebook, and why one is not judged.


def read_course() -> dict[str, Notebook]:
    return {path.stem: read(path) for path in NOTEBOOKS}


def test_a_file_is_known_by_its_cells_and_belongs_to_whom_its_course_system_says(tmp_path):
    places = {
        "Ada Love_123_assignsubmission_file_/final (3).ipynb": ("Ada Love 123", "123"),
        "lovelaceada_LATE_1234_5678_04_flops-1.ipynb": ("lovelaceada 1234", "1234"),
        "lovelaceada_12345_67890_file.ipynb": ("lovelaceada 12345", "12345"),
        "submission_4711/04_flops.ipynb": ("submission 4711", "4711"),
        "submitted-by-ada/ps1/04_flops.ipynb": ("submitted-by-ada", ""),
        "ada_04_flops.ipynb": ("ada", ""),
        "Zoë Ångström_7_assignsubmission_file_/04_flops.ipynb": ("Zoë Ångström 7", "7"),
    }
    for place in places:
        hand_in(tmp_path / place, FLOPS, {})
    files = handed_in(tmp_path, read_course())
    assert {file.file: (file.student, file.number) for file in files} == places
    assert {file.notebook for file in files} == {"04_flops"}
    assert {file.problem for file in files} == {""}


def test_a_file_that_is_not_judged_has_a_line_that_says_why(tmp_path):
    hand_in(tmp_path / "ada" / "old.ipynb", FLOPS, {})
    hand_in(tmp_path / "ada" / "new.ipynb", FLOPS, {})
    os.utime(tmp_path / "ada" / "old.ipynb", (1, 1))
    hand_in(tmp_path / ".ipynb_checkpoints" / "04.ipynb", FLOPS, {})
    (tmp_path / "answers.zip").write_bytes(b"PK")
    (tmp_path / "broken.ipynb").write_text('{"cells": [')
    (tmp_path / "nested.ipynb").write_text("[" * 100_000)
    nested = '{"a":' * 50_000 + "1" + "}" * 50_000
    (tmp_path / "nested_inside.ipynb").write_text(f'{{"cells": {nested}}}')
    (tmp_path / "bytes.ipynb").write_bytes(b"\xff\xfe\x00{\x80\x81")
    (tmp_path / "nul.ipynb").write_bytes(b'{"cells": [\x00]}')
    (tmp_path / "digits.ipynb").write_text('{"cells": ' + "9" * 1_000_000 + "}")
    odd = {"cell_type": "code", "id": [1], "source": {"a": 1}}
    (tmp_path / "odd.ipynb").write_text(json.dumps({"cells": [odd, 3]}))
    (tmp_path / "list.ipynb").write_text("[1, 2]")
    (tmp_path / "other.ipynb").write_text('{"cells": []}')
    (tmp_path / "many.ipynb").write_text('{"cells": [' + "[]," * 6_000_000 + "[]]}")
    os.mkfifo(tmp_path / "fifo.ipynb")
    (tmp_path / "link.ipynb").symlink_to("/etc/passwd")
    with (tmp_path / "huge.ipynb").open("wb") as file:
        file.truncate(30_000_000)
    unreadable = "It cannot be read as a notebook"
    none = "It is none of the course's notebooks: their cells are not in it"
    files = handed_in(tmp_path, read_course())
    problems = {file.file: file.problem.partition(".")[0] for file in files}
    assert problems == {
        "ada/new.ipynb": "",
        "ada/old.ipynb": "ada/new",
        "answers.zip": "It is no notebook",
        "broken.ipynb": unreadable,
        "nested.ipynb": unreadable,
        "nested_inside.ipynb": unreadable,
        "bytes.ipynb": unreadable,
        "nul.ipynb": unreadable,
        "digits.ipynb": unreadable,
        "odd.ipynb": unreadable,
        "list.ipynb": unreadable,
        "many.ipynb": unreadable,
        "other.ipynb": none,
        "link.ipynb": "It is no notebook",
        "huge.ipynb": "It is larger than 20 MB",
    }


# What counts.


def test_what_counts_is_said_by_notebook_turn_and_points():
    names = [path.stem for path in NOTEBOOKS]
    plain = counting("", "", "", names)
    assert plain.counts("04_flops", 1, is_beyond=False)
    assert not plain.counts("04_flops", 5, is_beyond=True)
    assert counting("", "all", "", names).counts("04_flops", 5, is_beyond=True)
    of_two = counting("4 05", "1-2 05.4", "2 04.2:3", names)
    assert of_two.notebooks == ("04_flops", "05_gradients")
    counted = []
    for name in names:
        for number in range(1, 9):
            if of_two.counts(name, number, is_beyond=number > 4):
                counted.append((name, number))
    assert counted == [
        ("04_flops", 1),
        ("04_flops", 2),
        ("05_gradients", 1),
        ("05_gradients", 2),
        ("05_gradients", 4),
    ]
    assert of_two.worth("04_flops", 1) == 2
    assert of_two.worth("04_flops", 2) == 3
    assert of_two.worth("05_gradients", 2) == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("9", "", ""), "There is no notebook '9'. There are: 01_floats"),
        (("", "some", ""), "TURNS=some is not understood"),
        (("", "09.1", ""), "There is no notebook '09'"),
        (("", "", "many"), "POINTS=many is not understood"),
    ],
)
def test_what_cannot_be_counted_is_told_what_can(wrong, words):
    with pytest.raises(ValueError, match=words):
        counting(*wrong, [path.stem for path in NOTEBOOKS])


def half_solved(course: Path) -> dict[str, str]:
    """The solutions of the first two exercises."""
    return dict(islice(solved(course).items(), 2))


def test_points_and_turns_and_the_place_of_feedback(tmp_path):
    def fill(folder: Path, *_: object) -> None:
        floats = NOTEBOOKS[0]
        zoes = folder / "Zoë Ö_7_assignsubmission_file_" / "a.ipynb"
        hand_in(zoes, FLOPS, half_solved(FLOPS))
        hand_in(folder / "lovelaceada_1234_5678_04_flops.ipynb", FLOPS, {})
        hand_in(folder / "lovelaceada_1234_5679_01_floats.ipynb", floats, solved(floats))

    came = graded(tmp_path, fill, NB="04", TURNS="1-3 6", POINTS="2 1:5")
    zoe = came.students["Zoë Ö 7"]
    assert zoe["id"] == "7"
    assert zoe["points"] == "7"
    assert zoe["of"] == "11"
    assert zoe["right"] == "2"
    assert zoe["not_attempted"] == "2"
    ada = came.students["lovelaceada 1234"]
    assert ada["id"] == "1234"
    assert ada["points"] == "0"
    assert ada["of"] == "11"
    assert ada["to_look_at"] == "1"
    assert "It is 01_floats, which does not count." in [row["looks_like"] for row in came.rows]
    feedback = came.out / "feedback"
    assert {path.relative_to(feedback).as_posix() for path in came.out.rglob("*.html")} == {
        "Zoë Ö_7_assignsubmission_file_/feedback.html",
        "lovelaceada_1234_5678_04_flops.html",
        "lovelaceada_1234_5679_01_floats.html",
    }


@pytest.fixture
def submission(tmp_path):
    """The folder into which Gradescope puts one student's files."""
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def graded_for_gradescope(submission: Path) -> dict[str, object]:
    """What Gradescope gets of these files, where notebook 4 counts."""
    settings = dict.fromkeys(SETTINGS, "")
    settings["FOLDER"] = str(submission)
    settings["OUT"] = str(submission.parent)
    settings["NB"] = "04"
    settings["FORMAT"] = "gradescope"
    run_grading(settings)
    return json.loads((submission.parent / "results.json").read_text(encoding="utf-8"))


def test_gradescope_counts_each_notebook_once_and_beyond_not_at_all(submission):
    for name in ("a", "b", "c"):
        hand_in(submission / f"{name}.ipynb", FLOPS, half_solved(FLOPS))
    another = NOTEBOOKS[0]
    hand_in(submission / "z.ipynb", another, solved(another))
    (submission / "essay.docx").write_bytes(b"PK")
    results = graded_for_gradescope(submission)
    of_main = list(exercises_of(FLOPS))[:4]
    assert results["score"] == 2
    assert sum(test["max_score"] for test in results["tests"]) == len(of_main)
    outputs = "\n".join(test["output"] for test in results["tests"])
    assert outputs.count("c.ipynb is later, and is judged in its place.") == 2
    assert "which does not count" in outputs
    passed = {test["name"] for test in results["tests"] if test["status"] == "passed"}
    assert passed == {f"04_flops · {e.number} · {e.title}" for e in of_main[:2]}
    assert {test["visibility"] for test in results["tests"]} == {"visible"}


def test_gradescope_has_the_whole_maximum_where_the_notebook_is_missing(submission):
    (submission / "essay.docx").write_bytes(b"PK")
    results = graded_for_gradescope(submission)
    assert results["score"] == 0
    assert sum(test["max_score"] for test in results["tests"]) == 4
    assert "There is no notebook 04_flops among the files." in results["tests"][-1]["output"]


def test_what_a_student_wrote_is_no_formula_and_no_markup(tmp_path):
    row = Row(
        student="=1+1",
        id="",
        notebook="04_flops",
        exercise="1 · Days",
        part="main",
        verdict="not yet",
        looks_like="-1 is <b>not</b> it.",
        words="<script>",
        file="a/b.ipynb",
    )
    pages.write_table(tmp_path / "grades.csv", [row])
    grades = (tmp_path / "grades.csv").read_text("utf-8-sig")
    assert "'=1+1,,04_flops,1 · Days,main,not yet,0,0,'-1 is" in grades
    pages.write_feedback(tmp_path / "feedback", [row])
    (page,) = (tmp_path / "feedback").rglob("*.html")
    assert "&lt;script&gt;" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "wrong",
    [{"FOLDER": "nowhere"}, {"SEED": "x"}, {"FORMAT": "xml"}, {"NB": "99"}, {"POINTS": "-1"}],
)
def test_what_cannot_be_graded_is_told_how_it_is_done(capsys, wrong):
    assert main(dict.fromkeys(SETTINGS, "") | {"FOLDER": "tests"} | wrong) == 2
    assert "make grade FOLDER=handed_in" in capsys.readouterr().out
