"""`make grade FOLDER=handed_in` judges what a class handed in; SEED=7 draws other cases for it."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_utils.stage.grading import bounds, lines, pages, sandbox, whole_class
from course_utils.stage.grading.counting import Counting, counting
from course_utils.stage.grading.pages import Row
from course_utils.stage.grading.reading import handed_in
from course_utils.stage.notebook.files import read
from course_utils.stage.workspace import copies

# Environment variables; `main` gets an empty text for one that is not set.
SETTINGS = ("FOLDER", "SEED", "FORMAT", "OUT", "NB", "TURNS", "POINTS", "DETAILS")
WRONG = """{}
make grade FOLDER=handed_in judges a folder of notebooks. SEED=7 draws other cases. NB=04 says \
which notebook counts,
TURNS=all or TURNS="1-3 5" which of its turns, and POINTS=2 what each is worth. DETAILS=1 tells \
students the cases of a
SEED, too. FORMAT=gradescope writes results.json, and OUT=graded is where all is written."""


def main(settings: Mapping[str, str]) -> int:
    """Grade; return the exit status: 0, or 1 if nothing can be written, 2 for a wrong setting."""
    begun_s = time.monotonic()
    bounds.keep_memory_to_itself()  # the seed is in the environment, which is part of the memory
    # By name, such as "04_flops".
    course = {path.stem: read(path) for path in copies.notebooks()}
    try:
        _refuse_unusable(settings["FOLDER"], settings["SEED"], settings["FORMAT"])
        rules = counting(settings["NB"], settings["TURNS"], settings["POINTS"], list(course))
    except ValueError as error:
        print(WRONG.format(error))
        return 2

    seed = settings["SEED"]
    is_for_gradescope = settings["FORMAT"] != ""  # which grades one student's files at a time
    folder = Path(settings["FOLDER"])
    files = handed_in(folder, course, by_one=is_for_gradescope, only=rules.notebooks)
    results = whole_class.judged(files, course, seed)
    # The course's own cases are no secret. Those of a seed are, so only DETAILS shows them.
    shows_cases = not seed or settings["DETAILS"] != ""
    rows = list(lines.rows(files, course, results, rules, shows_cases=shows_cases))
    if is_for_gradescope:
        rows += lines.missing(files, course, rules)  # the one student reads what is not there
    isolation = sandbox.sentence()  # on what keeps answers from the machine's files and network
    target = Path(settings["OUT"] or "graded")
    try:
        target.mkdir(parents=True, exist_ok=True)
        if is_for_gradescope:
            pages.write_gradescope(target / "results.json", rows, isolation)
        else:
            most_points = lines.most(files, course, rules)
            _write(target, rows, most_points, f"{_how(seed, rules)}\n{isolation}\n")
    except OSError as error:
        print(f"{target} cannot be written: {error.strerror}. OUT=another_folder names another.")
        return 1
    print(f"{target}: {len(rows)} lines, in {time.monotonic() - begun_s:.0f} s.")
    print(isolation)
    if not seed:
        print("The open cases were used, which an answer may know. SEED=7 draws others.")
    return 0


def _refuse_unusable(folder: str, seed: str, form: str) -> None:
    """Raise ValueError unless the folder exists, the seed is a number, and the format is known."""
    is_folder = folder != "" and Path(folder).is_dir()
    is_seed = seed == "" or seed.isdecimal()
    is_format = form in ("", "gradescope")
    if not (is_folder and is_seed and is_format):
        raise ValueError(f"FOLDER={folder} SEED={seed} FORMAT={form} cannot be graded.")


def _write(target: Path, rows: Sequence[Row], most: float, how: str) -> None:
    """Write the two tables, the pages of feedback, and the note on how all was judged.

    `most` is the most points that a student can get.
    """
    pages.write_table(target / "grades.csv", rows)
    pages.write_students(target / "students.csv", rows, most)
    pages.write_feedback(target / "feedback", rows)
    (target / "how_it_was_judged.txt").write_text(how, encoding="utf-8")


def _how(seed: str, rules: Counting) -> str:
    """Return sentences on the settings, without the seed, because students may get to see them."""
    cases = "Cases drawn from a seed." if seed else "The open cases, which an answer may know."
    which = ", ".join(rules.notebooks) or "each notebook that was handed in"
    # Such as "04_flops.2", or "any.2" for the second turn of any notebook.
    chosen = [f"{notebook or 'any'}.{number}" for notebook, number in sorted(rules.chosen)]
    # Where no single turns are chosen, `rules.turns` is "main" or "all".
    turns = " ".join(chosen) or rules.turns
    return f"{cases} Counted: {which}; turns: {turns}."


if __name__ == "__main__":
    sys.exit(main({name: os.environ.get(name, "") for name in SETTINGS}))
