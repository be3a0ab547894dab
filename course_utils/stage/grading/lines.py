"""The lines of the tables: one for each exercise of each notebook, and for each file that is not judged."""

from collections.abc import Iterator, Mapping, Sequence

from course_utils.engine.judging.verdict import NOT_ATTEMPTED
from course_utils.stage.grading import asking
from course_utils.stage.grading.counting import Counting
from course_utils.stage.grading.judging import Told
from course_utils.stage.grading.pages import Row
from course_utils.stage.grading.reading import HandedIn
from course_utils.stage.grading.whole_class import Course, Place
from course_utils.stage.notebook.outline import Turn, turns

NOT_HANDED_IN = "not handed in"
AS_IT_SAYS = "as its own process says"


def rows(
    files: Sequence[HandedIn],
    course: Course,
    told: Mapping[Place, Told],
    count: Counting,
    *,
    shows_cases: bool,
) -> Iterator[Row]:
    """A row for each exercise of each notebook, and for each file that is not judged."""
    blank = Told(NOT_ATTEMPTED.status, "", NOT_ATTEMPTED.words, NOT_ATTEMPTED.words)
    for at, one in enumerate(files):
        if one.problem:
            yield Row(
                one.student,
                one.number,
                "",
                "",
                "",
                "not judged",
                one.problem,
                one.problem,
                one.file,
            )
            continue
        for exercise in turns(course[one.notebook]):
            said = told.get((at, exercise.number), blank)
            worth = _worth(count, one.notebook, exercise)
            yield Row(
                student=one.student,
                id=one.number,
                notebook=one.notebook,
                exercise=f"{exercise.number} · {exercise.title}",
                part="beyond" if exercise.is_beyond else "main",
                verdict=said.verdict,
                looks_like=said.looks_like,
                words=said.words if shows_cases else said.without_case,
                file=one.file,
                points=worth if said.verdict == "right" else 0.0,
                of=worth,
                observed=AS_IT_SAYS if _is_observed(exercise) else "",
                guesses_made=one.guesses,
            )


def _worth(count: Counting, notebook: str, exercise: Turn) -> float:
    if not count.counts(notebook, exercise.number, is_beyond=exercise.is_beyond):
        return 0.0
    return count.worth(notebook, exercise.number)


def _is_observed(exercise: Turn) -> bool:
    return exercise.check.partition(".")[2].startswith(asking.AS_ITS_PROCESS_SAYS)


def _counted(files: Sequence[HandedIn], course: Course, count: Counting) -> list[str]:
    """The notebooks that count: those that were named, or else those that somebody handed in."""
    return [*count.notebooks] or [
        name for name in course if any(one.notebook == name for one in files)
    ]


def most(files: Sequence[HandedIn], course: Course, count: Counting) -> float:
    """The points of somebody who has all right."""
    names = _counted(files, course, count)
    return sum(_worth(count, name, each) for name in names for each in turns(course[name]))


def missing(files: Sequence[HandedIn], course: Course, count: Counting) -> Iterator[Row]:
    """A row for each turn that counts of a notebook that is not there."""
    there = {one.notebook for one in files if not one.problem}
    for name in count.notebooks:
        for exercise in turns(course[name]) if name not in there else ():
            worth = _worth(count, name, exercise)
            if worth:
                title = f"{exercise.number} · {exercise.title}"
                part = "beyond" if exercise.is_beyond else "main"
                words = f"There is no notebook {name} among the files."
                yield Row("", "", name, title, part, NOT_HANDED_IN, "", words, "", 0.0, worth)
