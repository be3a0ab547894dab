"""Shows a wall below each guess and each reveal of a notebook that is presented to a room.

A wall is a frame with a page of `course_utils.stage.poll`. Below a guess, the page shows what
phones have guessed; below the reveal, it shows the guesses beside the answer. This module is an
extension of IPython, which `course_utils.stage.kernel` loads if COURSE_ROOM has the address of
these pages. The kernel sends nothing to the pages: the address of each frame contains the questions
for its page.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import HTML, display

from course_utils.core.say import Choice, Comparison, number_text
from course_utils.engine import guessing
from course_utils.stage.notebook.code import checked_in, checks_of, reveals_in
from course_utils.stage.notebook.files import Notebook, read
from course_utils.stage.notebook.outline import Asked, Part, outline
from course_utils.stage.notebook.prose import Question
from course_utils.stage.present.bands import bands
from course_utils.stage.recall.in_class import Recalled
from course_utils.stage.translations.edition import in_english

Json = dict[str, object]
Listed = list[tuple[object, str]]  # answers that a check knows, each with the advice on it
# The frame's page comes from another address, so it cannot change JupyterLab's page:
# page/static/room.js does that for it.
FRAME = (
    '<div style="min-height: {height}"><iframe class="course-wall" title="The room" '
    'style="display: block; width: 100%; height: 450px; border: 0" '
    'src="{wall}wall.html#{asks}"></iframe></div>'
)


class AskedOfRoom(NamedTuple):
    """The questions to the room on the value that a cell of the notebook gives to a name."""

    cell: str  # its id
    name: str
    questions: list[Json]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Show a wall after each cell that asks or reveals. IPython calls this when the kernel starts.

    At that time, the notebook's file is as it was handed out: with dots in place of guesses.
    """
    # Jupyter's server puts the path of the kernel's notebook into this variable.
    path = Path.cwd() / Path(os.environ.get("JPY_SESSION_NAME", "")).name
    try:
        parts = parts_of(read(path))
    except (OSError, ValueError):  # without the notebook, nothing is known to ask
        return

    guessing.shows_fields = False  # the room guesses by phone, and not in JupyterLab
    number = path.name[:2]  # "04" of "04_flops.ipynb"
    keys_asked: set[str] = set()  # a reveal shows a wall only if its question has been asked

    def show_wall(result: object) -> None:
        """Called by IPython after each cell, when its output is shown."""
        # The list is made anew each time, since `check` is there only after the first cell has run.
        everything = list(asked(parts, number, shell.user_ns.get("check")))
        here = [entry for entry in everything if entry.cell == result.info.cell_id]
        if here:  # this cell asks
            questions = here[0].questions
            keys_asked.update(question["key"] for question in questions)
        else:  # this cell may reveal an answer
            text = result.info.raw_cell or ""
            answers = answered(everything, text, result.result, shell.user_ns)
            questions = [answer for answer in answers if answer["key"] in keys_asked]
        if questions:
            # Below a guess there is space for the whole window, so what follows is out of view.
            height = "100vh" if here else 0
            display(HTML(_frame(questions, result.execution_count, height)))

    shell.events.register("post_run_cell", show_wall)


def parts_of(notebook: Notebook) -> list[Part]:
    """Return the notebook's parts. If it is translated, their questions are in its language.

    Units and choices are found in the English.
    """
    found = []
    in_both = zip(outline(in_english(notebook)).parts, outline(notebook).parts, strict=True)
    for part, shown in in_both:
        asked = []
        for value, shown_value in zip(part.asked, shown.asked, strict=True):
            pairs = zip(value.questions, shown_value.questions, strict=True)
            questions = tuple(replace(one, words=other.words) for one, other in pairs)
            asked.append(replace(value, questions=questions))
        found.append(replace(part, asked=tuple(asked)))
    return found


def _frame(questions: Sequence[Json], run: int, height: str | int) -> str:
    """Return the frame's HTML, whose address contains the questions.

    `run` is the execution count of the cell. If the page is loaded again, the count is the same, so
    that the page does not ask a second time.
    """
    asks = json.dumps([{**question, "run": run} for question in questions])
    return FRAME.format(height=height, wall=os.environ["COURSE_ROOM"], asks=quote(asks))


def asked(parts: Iterable[Part], number: str, check: object) -> Iterator[AskedOfRoom]:
    """Yield the questions to the room of each cell of the notebook with this number, such as "04".

    They ask for a guess, or for a value that the next cell's check compares with a list of answers.
    `check` is the module of checks that the notebook imports, or None before it has done so.
    """
    for part in parts:
        for value in part.asked:
            listed = _listed(check, value.check)
            # A value that is neither a guess nor compared with a list has no answer for the wall.
            if listed or part.is_guess:
                # Sorted, because a check lists the right answer first.
                options = sorted(answer for answer, _ in listed if isinstance(answer, str))
                key = f"{number}.{value.name}"
                yield AskedOfRoom(part.id, value.name, _questions(value, key, options))


def _questions(value: Asked, key: str, options: Sequence[str]) -> list[Json]:
    """Return the value's questions. Several have keys of their own: `key` with a number."""
    if len(value.questions) == 1:
        return [_as_shown(key, value.questions[0], options)]
    shown = []
    for number, question in enumerate(value.questions, 1):
        shown.append(_as_shown(f"{key}.{number}", question, options))
    return shown


def _as_shown(key: str, question: Question, options: Sequence[str]) -> Json:
    """Return the question as the wall and the phones show it.

    Its choices are the words that the check lists, or else those that its own text lists.
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
    """Return the questions that a cell answers, each with its answer.

    `everything` has the questions of the whole notebook. `text` is the cell's code, `shown` the
    value that it displays, and `names` has the kernel's variables, the module `check` among them.
    The answer comes from the check that the cell calls, or else from the Choice, the Comparison or
    the recalled question that it shows.
    """
    questions_by_name = {name: questions for _, name, questions in everything}
    answers = []
    for name in revealed(text):
        questions = questions_by_name.get(name)
        if not questions:
            continue
        answers_of_check = _answers_of_check(name, text, names)
        if answers_of_check:  # a check is of one value, so there is one question
            answers.append(_by_check(questions[0], answers_of_check))
        elif isinstance(shown, Choice):
            answers.append({**questions[0], **_answer(shown.measured)})
        elif isinstance(shown, Recalled):
            answers.append({**questions[0], **_answer(shown.answer, shown.unit, "calculated")})
        elif isinstance(shown, Comparison):
            answers.extend(_by_comparison(questions, shown))
    return answers


def revealed(text: str) -> list[str]:
    """Return the names in a cell whose values are checked, or compared with a measurement."""
    guesses = [reveal.name for reveal in reveals_in(text)]
    return checked_in(text) + guesses


def _answers_of_check(name: str, text: str, names: Mapping[str, object]) -> Listed:
    """Return the answers that the cell's check of `name` lists, the right one first.

    A guess has no check, so the list is empty.
    """
    exercises = checks_of(text, name)
    return _listed(names.get("check"), exercises[0] if exercises else "")


def _by_check(question: Json, listed: Listed) -> Json:
    """Return the question with the check's right answer and its tempting wrong ones.

    `listed` has pairs of an answer and the advice on it, the right answer first.
    """
    (right, _advice), *tempting = listed
    # The wall calls it "answer", and not "measured": a check knows it without a measurement.
    answer = _answer(right, question["unit"], how="answer")
    return {**question, **answer, "tempting": tempting}


def _by_comparison(questions: Sequence[Json], shown: Comparison) -> Iterator[Json]:
    """Yield each question with the answer in its row of the table.

    A single question whose name is no row of the table is about the first row.
    """
    first, *_ = shown.measured  # the name of the table's first row
    for question in questions:
        item = question["item"]
        if item in shown.measured:
            yield {**question, **_compared(shown, item, question["unit"])}
        elif len(questions) == 1:
            yield {**question, **_compared(shown, first, question["unit"])}


def _compared(shown: Comparison, item: str, unit: str) -> Json:
    """Return the measured value in the table's row `item`, in the fields that `_answer` makes.

    The wall shows the value in as many digits as the table.
    """
    # Without digits, the table's values are exact. `bands` takes a value that comes without a
    # prediction for exact, so the prediction is passed on only if the table rounds.
    is_exact = not shown.digits
    predicted = None if is_exact else shown.predicted[item]
    measured = shown.measured[item]
    _, how = shown.heads  # the head of the second column, such as "measured" or "reported"
    answer = _answer(measured, unit, how, item, predicted)
    answer["shown"] = f"{number_text(measured, shown.digits)} {unit}".strip()
    return answer


def _answer(
    measured: object,
    unit: str = "",
    how: str = "measured",  # what the wall calls it: measured, reported, calculated, or answer
    item: str = "",  # the row's name in its table, such as "share of the scores"
    predicted: object = None,  # the calculated value, if the measured one may differ from it
) -> Json:
    """Return an answer as the wall shows it, with the bands of guesses that count as right.

    `measured` is a number or, where the room chooses one of several words, a word.
    """
    if isinstance(measured, str):
        return {"measured": measured, "shown": measured, "how": how, "bands": []}
    return {
        "measured": float(measured),
        "shown": f"{number_text(measured)} {unit}".strip(),
        "how": how,
        "bands": bands(measured, unit, item, predicted),
    }


def _listed(check: object, exercise: str) -> Listed:
    """Return the answers that the check of an exercise lists, the right one first.

    `check` is the notebook's module of checks, and `exercise` the name of one, such as "days". The
    list is empty if the exercise asks for a function, or for anything but a number or a word.
    """
    if not exercise:
        return []
    check_of_exercise = getattr(check, exercise, None)
    if not hasattr(check_of_exercise, "listed"):  # only checks made by `value` have it
        return []
    listed = check_of_exercise.listed()
    if not listed:
        return []
    right, _ = listed[0]
    return listed if isinstance(right, int | float | str) else []
