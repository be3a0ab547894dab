"""What a class gets has no solution in it and says what to do; the key has them all."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from course_utils.stage.notebook.outline import turns as turns_of
from course_utils.stage.workspace import assignment, commands
from tests import NOTEBOOKS
from tests.helpers.notebooks import exercises_of, read


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    """All that a class gets for notebook 4, once."""
    folder = tmp_path_factory.mktemp("class") / "assignment"
    assert NOTEBOOKS[3].name in assignment.assignment(NOTEBOOKS[3], folder)
    return folder


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_handed_out_has_no_line_of_a_solution_and_all_that_it_links_to(
    path, tmp_path, handed_out
):
    folder = tmp_path / "assignment"
    assignment.write_notebook(path, folder)
    for where in (folder, handed_out / "course" / "notebooks"):
        assert_unsolved(path, json.loads((where / path.name).read_text(encoding="utf-8"))["cells"])
    for text in folder.iterdir():
        links = re.findall(r"\]\(([^)#:]+\.\w+)[)#]", text.read_text(encoding="utf-8"))
        assert [link for link in links if not (folder / link).is_file()] == []


def test_a_zip_has_the_notebook_and_the_course_and_no_text_that_has_answers(handed_out):
    whole = {NOTEBOOKS[3].name, "README.md", "GLOSSARY.md", "AGENTS.md", "course"}
    assert {path.name for path in handed_out.iterdir()} == whole
    with zipfile.ZipFile(handed_out.with_suffix(".zip")) as archive:
        names = archive.namelist()
    assert {f"assignment/{name}" for name in whole - {"course"}} < {*names}
    assert not any("INSTRUCTORS" in name or "/tests/" in name or ".venv" in name for name in names)


def assert_unsolved(path: Path, cells: list[dict]) -> None:
    """The cells have each stub and check, but no result, and no line of a solution alone."""
    texts = ["".join(cell["source"]) for cell in cells]
    handed_out = "\n".join(texts)
    sources = [cell.source for cell in read(path).cells]
    others = "\n".join(text for text in sources if "<summary>Solution<" not in text)
    for exercise in exercises_of(path):
        lines = {line.strip() for line in exercise.solution.splitlines()}
        only_there = [line for line in lines if line and line not in others]
        assert exercise.solution not in handed_out
        assert [line for line in only_there if line in handed_out] == []
        assert {exercise.stub, exercise.check} <= {*texts}
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert {output["output_type"] for output in outputs} <= {"display_data"}


def test_the_folder_says_how_to_install_where_to_work_what_counts_and_what_to_hand_in(handed_out):
    path = NOTEBOOKS[3]
    said = (handed_out / "README.md").read_text(encoding="utf-8")
    assert re.findall("^## (.+)", said, re.MULTILINE) == [
        "Install",
        "Where to work",
        "What counts",
        "What to hand in",
    ]
    for turn in turns_of(read(path)):
        assert (f"| {turn.number} | {turn.title} |" in said) == (not turn.is_beyond)
    # What it says of the folder holds there: the course is whole enough to make a student's copies,
    # and none of them has a solution.
    course = handed_out / "course"
    assert f"course/my_notebooks/{path.name}" in said
    assert copies_made_in(course) == str(course)
    copy = json.loads((course / "my_notebooks" / path.name).read_text(encoding="utf-8"))
    assert_unsolved(path, copy["cells"])
    readme = (course / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((notebooks/[^)#:]+|[A-Z]+\.md)[)#]", readme)
    assert [link for link in links if not (course / link).is_file()] == []


MAKE_COPIES = """
from course_utils.stage.workspace import copies
print(copies.MINE.parent)
print(*copies.bring_up_to_date())
"""


def copies_made_in(course: Path) -> str:
    """Make a student's copies with that folder's package, and not this one's; returns where."""
    own = os.environ | {"PYTHONPATH": str(course), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", MAKE_COPIES]
    run = subprocess.run(command, cwd=course, capture_output=True, text=True, check=True, env=own)
    return run.stdout.splitlines()[0]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_key_has_each_turns_solution_its_worth_and_what_the_check_says_of_mistakes(
    path, tmp_path
):
    assert path.stem in assignment.key(path, tmp_path / "key")
    said = (tmp_path / "key" / f"{path.stem}.md").read_text(encoding="utf-8")
    turns = turns_of(read(path))
    solutions = [exercise.solution for exercise in exercises_of(path)]
    assert len(solutions) == len(turns)
    assert [solution for solution in solutions if solution.strip() not in said] == []
    assert said.count("(1 point)") == sum(not turn.is_beyond for turn in turns)
    advice = []
    for turn in turns:
        _, mistakes = assignment.listed(turn.check)
        advice += mistakes
    assert advice
    assert [words for words in advice if f"- {words}" not in said] == []


def test_a_name_that_is_none_gets_the_names_that_there_are(capsys):
    assert commands.main("assignment", "9") == 2
    said = capsys.readouterr().err
    assert "There is no notebook '9'. There are: 01_floats" in said
    assert said.rstrip().endswith("make assignment NB=04")
