"""The lines of the tables: one for each exercise of each notebook, one for each file not judged."""

from collections.abc import Iterator, Mapping, Sequence

from course_utils.engine.judging.verdict import NOT_ATTEMPTED
from course_utils.stage.grading import asking
from course_utils.stage.grading.counting import Counting
from course_utils.stage.grading.judging import Result
from course_utils.stage.grading.pages import Row
from course_utils.stage.grading.reading import HandedIn
from course_utils.stage.grading.whole_class import Course, Place
from course_utils.stage.notebook.outline import Turn, turns

NOT_HANDED_IN = "not handed in"
# The table's remark on a verdict that rests on a report: see `_is_only_reported`.
ONLY_REPORTED = "as its own process says"
# The result on an exercise whose stub the student has not changed.
BLANK = Result(NOT_ATTEMPTED.status, words=NOT_ATTEMPTED.words, without_case=NOT_ATTEMPTED.words)


def rows(
    files: Sequence[HandedIn],
    course: Course,
    results: Mapping[Place, Result],
    rules: Counting,
    *,
    shows_cases: bool,
) -> Iterator[Row]:
    """Yield a row for each exercise of each notebook, and for each file that is not judged.

    `results` are by the place of a file in `files` and the number of an exercise.
    `shows_cases` says whether students may read the cases that their answers were tried on.
    """
    for at, file in enumerate(files):
        if file.problem:
            yield _not_judged(file)
            continue
        for exercise in turns(course[file.notebook]):
            # Only attempted exercises were judged.
            result = results.get((at, exercise.number), BLANK)
            worth = _worth(rules, file.notebook, exercise)
            yield Row(
                student=file.student,
                id=file.number,
                notebook=file.notebook,
                exercise=_title(exercise),
                part=_part(exercise),
                verdict=result.verdict,
                looks_like=result.looks_like,
                words=result.words if shows_cases else result.without_case,
                file=file.file,
                points=worth if result.verdict == "right" else 0.0,
                of=worth,
                observed=ONLY_REPORTED if _is_only_reported(exercise) else "",
                guesses_made=file.guesses,
            )


def _not_judged(file: HandedIn) -> Row:
    """Return the row for a file that is not judged, with the reason."""
    return Row(
        student=file.student,
        id=file.number,
        notebook="",
        exercise="",
        part="",
        verdict="not judged",
        looks_like=file.problem,
        words=file.problem,
        file=file.file,
    )


def _title(exercise: Turn) -> str:
    return f"{exercise.number} · {exercise.title}"


def _part(exercise: Turn) -> str:
    return "beyond" if exercise.is_beyond else "main"


def _worth(rules: Counting, notebook: str, exercise: Turn) -> float:
    """Return the points that the exercise can bring; 0 if it does not count."""
    if not rules.counts(notebook, exercise.number, is_beyond=exercise.is_beyond):
        return 0.0
    return rules.worth(notebook, exercise.number)


def _is_only_reported(exercise: Turn) -> bool:
    """Whether the verdict rests on what the answer's own process reports.

    Such an answer is judged by what happened while it ran, such as the memory that it took, and not
    by a value that the judge could compare. A student's code could forge the report, so the table
    tells the teacher of it.
    """
    # The prefixes in this tuple fit the exercise's name, such as "accumulated".
    return exercise.exercise.startswith(asking.REPORTED_BY_ITS_PROCESS)


def _counted(files: Sequence[HandedIn], course: Course, rules: Counting) -> list[str]:
    """Return the notebooks that count: the named ones, or else all that somebody handed in."""
    if rules.notebooks:
        return list(rules.notebooks)
    handed_in = {file.notebook for file in files}
    return [name for name in course if name in handed_in]


def most(files: Sequence[HandedIn], course: Course, rules: Counting) -> float:
    """Return the most points that a student can get: all counted exercises' points, added up.

    The notebooks are those that `rules` names, or else all that are among `files`.
    """
    points = 0.0
    for name in _counted(files, course, rules):
        for exercise in turns(course[name]):
            points += _worth(rules, name, exercise)
    return points


def missing(files: Sequence[HandedIn], course: Course, rules: Counting) -> Iterator[Row]:
    """Yield a row for each turn that counts in a notebook that was not handed in.

    All files are one student's, as Gradescope hands them over, so the rows name no student. If
    `rules` names no notebooks, none is missing.
    """
    judged = {file.notebook for file in files if not file.problem}
    for name in rules.notebooks:
        if name in judged:
            continue
        for exercise in turns(course[name]):
            worth = _worth(rules, name, exercise)
            if worth:  # 0 for a turn that does not count
                yield Row(
                    student="",
                    id="",
                    notebook=name,
                    exercise=_title(exercise),
                    part=_part(exercise),
                    verdict=NOT_HANDED_IN,
                    looks_like="",
                    words=f"There is no notebook {name} among the files.",
                    file="",
                    points=0.0,
                    of=worth,
                )
