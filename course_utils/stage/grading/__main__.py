"""`make grade FOLDER=handed_in`: the checks judge what a class handed in. SEED=7 draws other cases than the open ones."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from course_utils.stage.grading import bounds, lines, pages, sandbox, whole_class
from course_utils.stage.grading.counting import Counting, counting
from course_utils.stage.grading.reading import handed_in
from course_utils.stage.notebook.files import read
from course_utils.stage.workspace import copies

SETTINGS = ("FOLDER", "SEED", "FORMAT", "OUT", "NB", "TURNS", "POINTS", "DETAILS")
WRONG = """{}
make grade FOLDER=handed_in judges a folder of notebooks. SEED=7 draws other cases. NB=04 says which notebook counts,
TURNS=all or TURNS="1-3 5" which of its turns, and POINTS=2 what each is worth. DETAILS=1 tells students the cases of a
SEED, too. FORMAT=gradescope writes results.json, and OUT=graded is where all is written."""


def main(settings: Mapping[str, str]) -> int:
    begun, target = time.monotonic(), Path(settings["OUT"] or "graded")
    bounds.keep_memory_to_itself()  # and the environment, which has the seed
    folder, seed, form = settings["FOLDER"], settings["SEED"], settings["FORMAT"]
    course = {path.stem: read(path) for path in copies.notebooks()}
    try:
        if not (
            folder
            and Path(folder).is_dir()
            and (seed or "0").isdecimal()
            and form in ("", "gradescope")
        ):
            raise ValueError(f"FOLDER={folder} SEED={seed} FORMAT={form} cannot be graded.")
        count = counting(settings["NB"], settings["TURNS"], settings["POINTS"], [*course])
    except ValueError as error:
        print(WRONG.format(error))
        return 2
    files = handed_in(Path(folder), course, by_one=bool(form), only=count.notebooks)
    told = whole_class.judged(files, course, seed)
    shows_cases = not seed or bool(settings["DETAILS"])
    rows = [*lines.rows(files, course, told, count, shows_cases=shows_cases)]
    most = lines.most(files, course, count)
    promise = sandbox.sentence()
    try:
        target.mkdir(parents=True, exist_ok=True)
        if form:
            rows += lines.missing(files, course, count)
            pages.write_gradescope(target / "results.json", rows, promise)
        else:
            pages.write_table(target / "grades.csv", rows)
            pages.write_students(target / "students.csv", rows, most)
            pages.write_feedback(target / "feedback", rows)
            (target / "how_it_was_judged.txt").write_text(
                f"{_how(seed, count)}\n{promise}\n", encoding="utf-8"
            )
    except OSError as error:
        print(f"{target} cannot be written: {error.strerror}. OUT=another_folder names another.")
        return 1
    print(f"{target}: {len(rows)} lines, in {time.monotonic() - begun:.0f} s.")
    print(promise)
    if not seed:
        print("The open cases were used, which an answer may know. SEED=7 draws others.")
    return 0


def _how(seed: str, count: Counting) -> str:
    """What was asked for, without the seed: this file may be handed on."""
    cases = "Cases drawn from a seed." if seed else "The open cases, which an answer may know."
    which = ", ".join(count.notebooks) or "each notebook that was handed in"
    turns = (
        " ".join(f"{name or 'any'}.{number}" for name, number in sorted(count.chosen))
        or count.turns
    )
    return f"{cases} Counted: {which}; turns: {turns}."


if __name__ == "__main__":
    sys.exit(main({name: os.environ.get(name, "") for name in SETTINGS}))
