"""What the kernel of a presentation shows the room: a wall below each guess and each reveal.

A wall is a frame with a page of `course_utils.stage.poll`. Below a guess it collects the guesses
from phones, and below the reveal it holds them against the answer. This module is an extension of
IPython, which `course_utils.stage.kernel` loads if COURSE_ROOM has the address of these pages. The
kernel sends nothing to them: the address of each frame contains what its page asks.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import HTML, display

from course_utils.core.say import Choice, Comparison, number_text
from course_utils.stage.notebook.code import checked_in, checks_of, reveals_in
from course_utils.stage.notebook.files import read
from course_utils.stage.notebook.outline import Asked, Part, outline
from course_utils.stage.notebook.prose import Question
from course_utils.stage.present.bands import bands

Json = dict[str, object]
Listed = list[tuple[object, str]]  # a check's answers, each with what is said of it
# The frame comes from another address. What JupyterLab's page does for it is in
# page/static/room.js.
FRAME = (
    '<div style="min-height: {height}"><iframe class="course-wall" title="The room" '
    'style="display: block; width: 100%; height: 450px; border: 0" '
    'src="{wall}wall.html#{asks}"></iframe></div>'
)


class AskedOfRoom(NamedTuple):
    """The questions that a cell asks the room, for the value of the name that it sets."""

    cell: str
    name: str
    questions: list[Json]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """IPython calls this when the kernel starts.

    The notebook's file still has its dots then, as it was handed out.
    """
    path = Path.cwd() / Path(os.environ.get("JPY_SESSION_NAME", "")).name
    try:
        parts = outline(read(path)).parts
    except (OSError, ValueError):
        return

    number = path.name[:2]
    keys_asked: set[str] = set()

    def show_wall(result: object) -> None:
        """Called by IPython after each cell, when its output is shown."""
        everything = list(asked(parts, number, shell.user_ns.get("check")))
        here = [entry for entry in everything if entry.cell == result.info.cell_id]
        if here:
            questions = here[0].questions
            keys_asked.update(question["key"] for question in questions)
        else:
            text = result.info.raw_cell or ""
            answers = answered(everything, text, result.result, shell.user_ns)
            questions = [answer for answer in answers if answer["key"] in keys_asked]
        if questions:
            # Below a guess there is space for the whole window, so what follows is out of view.
            height = "100vh" if here else 0
            display(HTML(_frame(questions, result.execution_count, height)))

    shell.events.register("post_run_cell", show_wall)


def _frame(questions: Sequence[Json], run: int, height: str | int) -> str:
    """The frame's HTML. A page that is only loaded again knows `run`, and does not ask anew."""
    asks = json.dumps([{**question, "run": run} for question in questions])
    return FRAME.format(height=height, wall=os.environ["COURSE_ROOM"], asks=quote(asks))


def asked(parts: Iterable[Part], number: str, check: object) -> Iterator[AskedOfRoom]:
    """What each cell of the notebook with this number asks the room.

    That is a guess, or a value that the next cell's check compares with a list of answers.
    """
    for part in parts:
        for value in part.asked:
            listed = _listed(check, value.check)
            if listed or part.is_guess:
                options = sorted(answer for answer, _ in listed if isinstance(answer, str))
                key = f"{number}.{value.name}"
                yield AskedOfRoom(part.id, value.name, _questions(value, key, options))


def _questions(value: Asked, key: str, options: Sequence[str]) -> list[Json]:
    if len(value.questions) == 1:
        return [_as_shown(key, value.questions[0], options)]
    shown = []
    for number, question in enumerate(value.questions, 1):
        shown.append(_as_shown(f"{key}.{number}", question, options))
    return shown


def _as_shown(key: str, question: Question, options: Sequence[str]) -> Json:
    """The question as the wall and the phones show it.

    If the check lists words, these are the choices.
    """
    choices = list(options if options else question.choices)
    return {
        "key": key,
        "words": question.words,
        "unit": "" if choices else question.unit,
        "choices": choices,
        "item": question.item,
    }


def answered(
    everything: Iterable[AskedOfRoom], text: str, shown: object, names: Mapping[str, object]
) -> list[Json]:
    """The questions that a cell answers, each with its answer.

    The cell has this text and shows that value. It answers by the comparison or choice that it
    shows, or by the check that it calls, which `names` has.
    """
    questions_by_name = {name: questions for _, name, questions in everything}
    answers = []
    for name in revealed(text):
        questions = questions_by_name.get(name)
        if not questions:
            continue
        listed = _listed_for(name, text, names)
        if listed:
            answers.append(_by_check(questions[0], listed))
        elif isinstance(shown, Choice):
            answers.append({**questions[0], **_answer(shown.measured)})
        elif isinstance(shown, Comparison):
            answers.extend(_by_comparison(questions, shown))
    return answers


def revealed(text: str) -> list[str]:
    """The names whose guess is compared with a measurement, or whose value is checked."""
    guesses = [reveal.name for reveal in reveals_in(text)]
    return checked_in(text) + guesses


def _listed_for(name: str, text: str, names: Mapping[str, object]) -> Listed:
    exercises = checks_of(text, name)
    return _listed(names.get("check"), exercises[0] if exercises else "")


def _by_check(question: Json, listed: Listed) -> Json:
    (right, _), *tempting = listed
    answer = _answer(right, question["unit"], how="answer")
    return {**question, **answer, "tempting": tempting}


def _by_comparison(questions: Sequence[Json], shown: Comparison) -> Iterator[Json]:
    """Each question with the answer in its row. A guess that is no dict is about the first row."""
    if isinstance(shown.guess, Mapping):
        items = list(shown.guess)
    else:
        items = list(shown.measured)[:1]
    for question, item in zip(questions, items, strict=False):
        yield {**question, **_compared(shown, item, question["unit"])}


def _compared(shown: Comparison, item: str, unit: str) -> Json:
    """The measured value of a row, called as its column is: measured, reported or calculated."""
    predicted = shown.predicted[item] if shown.digits else None
    measured = shown.measured[item]
    answer = _answer(measured, unit, shown.heads[1], item, predicted)
    answer["shown"] = f"{number_text(measured, shown.digits)} {unit}".strip()
    return answer


def _answer(
    measured: object,
    unit: str = "",
    how: str = "measured",
    item: str = "",
    predicted: object = None,
) -> Json:
    if isinstance(measured, str):
        return {"measured": measured, "shown": measured, "how": how, "bands": []}
    return {
        "measured": float(measured),
        "shown": f"{number_text(measured)} {unit}".strip(),
        "how": how,
        "bands": bands(measured, unit, item, predicted),
    }


def _listed(check: object, exercise: str) -> Listed:
    """What the check of that exercise lists, the right answer first; nothing for a function."""
    if not exercise:
        return []
    of_exercise = getattr(check, exercise, None)
    if not hasattr(of_exercise, "listed"):
        return []
    listed = of_exercise.listed()
    if not listed:
        return []
    right, _ = listed[0]
    return listed if isinstance(right, int | float | str) else []
