"""What to hand out: to a class the course without solutions, and to its assistants a key.

`make assignment NB=04` writes `assignment/` and `assignment.zip`: a README, the notebook, and the
course to install. `make key NB=04` writes `key/`, with a page of solutions and listed mistakes.
"""

import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path

from course_utils.core.record import write_whole
from course_utils.stage.notebook.files import Notebook, contents_of, read, write
from course_utils.stage.notebook.outline import Turn, outline, turns
from course_utils.stage.translations import language
from course_utils.stage.translations.edition import Edition
from course_utils.stage.workspace import copies

# Links to the README or to another notebook, such as "[notebook 2](02_tensors.ipynb)".
LEADS_AWAY = re.compile(r"\[([^][]*)\]\((?:\.\./README\.md|\d\d_\w+\.ipynb)[^)]*\)")
LATER = "*The solution comes after the deadline.*"
PLAIN_FILES = (
    "pyproject.toml",
    "constraints.txt",
    "Makefile",
    "LICENSE",
    "environment.yml",
    ".gitignore",
)
FOR_INSTRUCTORS = "INSTRUCTORS*"  # the page and its translations
# Links of the README to pages that a class does not get.
TO_WHAT_IS_GONE = re.compile(r"\[([^][]*)\]\((?:notebooks/INSTRUCTORS|CONTRIBUTING)\.md[^)]*\)")
WITHOUT = "> This is the course without its solutions, its tests and its page for instructors.\n\n"
# Some checks have thousands of cases. After so many, no further mistakes come up.
CASES = 40

README = """# Notebook {number}: what to do, and what to hand in

## Install

You need Python 3.11 to 3.14 and `make`, on Linux, on a Mac with Apple silicon, or on Windows
inside WSL2; 3 GB of disk; and a network, once. In a terminal:

```
cd course
make lab
```

The first time takes a few minutes. Then JupyterLab opens at the contents page.
`course/notebooks/ELSEWHERE.md` says what else there is: conda, machines with a GPU, a smaller
build of torch.

**If you have the course already,** as on a hub of your university, install nothing. There, put
`{name}` of this folder into `my_notebooks`, in place of the one that is there.

## Where to work

On the contents page open notebook {number}. It is your own copy, `course/my_notebooks/{name}`;
leave it at that place, and keep its name. Run it from top to bottom. A turn is a cell with `...`
in it: write your answer there, and run it and the cell below, which checks it. The check says
*Right*, or *Not yet* and what to think about.

## What counts

| turn | | stated |
|---|---|---|
{counted}

A turn counts if its check says *Right*, when it is judged on other cases than those that you see.
A turn that is left open costs its own point and stops nothing, because what follows uses the
course's answer. Guesses never cost anything.
{beyond}
Do not change the cells that call a check.

## What to hand in

One file, `course/my_notebooks/{name}`, saved (Ctrl+S), under its own name. Nothing else: no
folder, no ZIP.

If an AI assistant helps you, give it `AGENTS.md` first. It asks the assistant to explain and to
ask, and not to solve.
"""


def assignment(path: Path, folder: Path) -> str:
    """Write the folder to hand out, and a ZIP of the folder; returns a sentence on what they hold.

    `path` is the notebook's. The folder has no solution, and no notebook in it links to a page with
    a solution.
    """
    shutil.rmtree(folder, ignore_errors=True)
    write_notebook(path, folder)
    # A course that was installed as a package has no files to install it from.
    has_course = (copies.ROOT / "pyproject.toml").is_file()
    if has_course:
        write_course(folder / "course")
    archive = shutil.make_archive(str(folder), "zip", folder.parent, folder.name)
    written = (
        f"Hand out {Path(archive).name}, or all of {folder.name}/: "
        f"{path.name} without its solutions, a README"
    )
    if has_course:
        return f"{written}, and the course to install, its solutions gone."
    return f"{written}."


def write_notebook(path: Path, folder: Path) -> None:
    """Write the notebook, the texts that it links to, and a README on what to do with it."""
    folder.mkdir(parents=True)
    spoken = language.chosen()
    # Solutions are found in the English.
    handed_out = without_solutions(copies.as_handed_out(read(path)))
    shown = contents_of(Edition(spoken, path.stem).notebook(handed_out))
    _write_without_links(folder / path.name, shown)
    for beside in (path.with_name(copies.GLOSSARY), copies.AGENTS):
        words = Edition(spoken, beside.stem).contents(beside.read_bytes(), is_notebook=False)
        _write_without_links(folder / beside.name, words)
    page = readme(read(path), path.name)
    write_whole(folder / "README.md", page.encode())


def _write_without_links(path: Path, contents: bytes) -> None:
    """Write the file. Of a link to a page that the class does not get, only the words stay."""
    write_whole(path, LEADS_AWAY.sub(r"\1", contents.decode()).encode())


def without_solutions(notebook: Notebook) -> Notebook:
    """Return the notebook with a sentence in place of each solution, which comes later.

    The cell keeps its id, so that an update of the course can bring the solution.
    """
    solutions = {part.id for part in outline(notebook).parts if part.is_solution}
    cells = []
    for cell in notebook["cells"]:
        cells.append({**cell, "source": LATER} if cell["id"] in solutions else cell)
    return {**notebook, "cells": cells}


def write_course(folder: Path) -> None:
    """Write all that `make lab` needs, with the notebooks' solutions removed.

    The tests are left out, because they try right answers and mistakes.
    """
    ignored = shutil.ignore_patterns("__pycache__", ".*", FOR_INSTRUCTORS)  # ".*": hidden files
    shutil.copytree(copies.ROOT / "course_utils", folder / "course_utils", ignore=ignored)
    shutil.copytree(copies.ROOT / "notebooks", folder / "notebooks", ignore=ignored)
    for path in copies.notebooks(folder / "notebooks"):
        handed_out = copies.as_handed_out(read(path))
        write(path, without_solutions(handed_out))
    for name in PLAIN_FILES:
        shutil.copy(copies.ROOT / name, folder / name)
    text = (copies.ROOT / "README.md").read_text(encoding="utf-8")
    title, _, rest = text.partition("\n\n")  # WITHOUT comes between the title and the rest
    rest = TO_WHAT_IS_GONE.sub(r"\1", rest)
    write_whole(folder / "README.md", f"{title}\n\n{WITHOUT}{rest}".encode())


def readme(notebook: Notebook, name: str) -> str:
    """Return the page for students: how to install, where to work, what counts, what to hand in."""
    counted = []  # rows of the table
    voluntary = []  # numbers of turns
    for turn in turns(notebook):
        if turn.is_beyond:
            voluntary.append(f"{turn.number}")
        else:
            counted.append(_row(turn))
    beyond = f"Turns {', '.join(voluntary)}, in *Beyond*, are voluntary.\n" if voluntary else ""
    number = name[:2].lstrip("0")  # "4" of "04_flops.ipynb"
    return README.format(number=number, name=name, counted="\n".join(counted), beyond=beyond)


def _row(turn: Turn) -> str:
    """Return a turn's row of the table: its number, its title, and what it states of itself."""
    stated = f"{turn.difficulty}, {turn.minutes} minutes" if turn.minutes else ""
    return f"| {turn.number} | {turn.title} | {stated} |"


# For assistants.

KEY = """# Notebook {number}: key

For whoever helps and grades; not for students. It is made from the notebook's folded solutions
and from what the checks list, so it says what `make grade` says.

**Points.** `make grade` gives one point for each turn that is right, and none otherwise; the main
path has {points}. Suggested where you grade by hand: the whole point if it is right; half of it
if it is one of the listed mistakes and the student can say what is wrong with it; none for an
answer that nobody can explain. Guesses have no points.

**Minutes** are those that the notebook states: {minutes} on the main path. Twice that is no sign
of weakness.
"""


def key(path: Path, folder: Path) -> str:
    """Write the key of the notebook at `path`; returns a sentence on what is in it.

    The key has each turn's solution, minutes and points, and the mistakes that its check knows.
    """
    all_turns = turns(read(path))
    on_the_path = [turn for turn in all_turns if not turn.is_beyond]
    introduction = KEY.format(
        number=path.stem[:2].lstrip("0"),
        points=len(on_the_path),
        minutes=sum(turn.minutes for turn in on_the_path),
    )
    page = "\n".join([introduction, *map(_section_of_key, all_turns)])
    folder.mkdir(exist_ok=True)
    target = folder / f"{path.stem}.md"
    write_whole(target, page.encode())
    return (
        f"{folder.name}/{target.name} has the solutions, points and listed mistakes "
        f"of {len(all_turns)} turns."
    )


def _section_of_key(turn: Turn) -> str:
    """Return the turn's section of the key: question, solution, reason, and listed mistakes."""
    _, _, asked = turn.text.partition("\n\n")  # without the heading
    worth = "voluntary" if turn.is_beyond else "1 point"
    solution = f"```python\n{turn.solution}\n```" if turn.solution else ""
    paragraphs = [
        f"## Turn {turn.number} · {turn.title} ({worth})",
        asked,
        "**Solution**",
        solution,
    ]
    because, mistakes = listed(turn.check)
    if because:
        paragraphs.append(f"**Why:** {because}")
    if mistakes:
        paragraphs.append("**Mistakes that the check knows, and what it says of each:**")
        paragraphs.append("\n".join(f"- {advice}" for advice in mistakes))
    else:
        paragraphs.append(
            "The check lists no mistakes: it tries the answer, "
            "and says in its own words what is wrong."
        )
    return "\n\n".join(paragraphs) + "\n"


def listed(name: str) -> tuple[str, list[str]]:
    """Return why the right answer is right, and the advice on each mistake that the check lists.

    `name` is the check's, such as "flops.days".
    """
    chapter, _, exercise = name.partition(".")
    check = getattr(import_module(f"course_utils.chapters.{chapter}.check"), exercise)
    reason = ""
    advice = []
    for answers in _listings(check):
        (_, because), *mistakes = answers  # pairs: the right answer is in the first
        if not reason:  # the reason of the first case stands for all
            reason = because
        # The cases share most of their mistakes, so advice that is there already is left out.
        advice += [words for _, words in mistakes if words not in advice]
    return reason, advice


def _listings(check: object) -> Iterator[list[tuple[object, str]]]:
    """Yield the lists of answers in a check: one for a value, and one for each case of a function.

    There is none in a check of another kind. A list has pairs of an answer and a sentence: the
    first has the right answer and why it is right, and each other one a mistake and the advice.
    """
    if hasattr(check, "listed"):  # the exercise's answer is a value
        yield check.listed()
    elif hasattr(check, "asked"):  # it is a function, and `asked` has the exercise's options
        cases = check.asked["cases"]
        if callable(cases):
            cases = cases()
        for case in islice(cases, CASES):
            yield list(check.__wrapped__(*case))  # the exercise, a generator of answers
