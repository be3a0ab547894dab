"""What the kernel of a presentation shows for the room: the wall below a guess, and the answer below its reveal.

An extension of IPython that `course_utils.stage.kernel` loads if COURSE_ROOM says where the wall's pages are. The kernel talks
to nobody: the address of each frame says what its page asks.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import HTML, display

from course_utils.core.say import Choice, Comparison, number_text
from course_utils.stage.notebook.code import checked_in, checks_of, reveals_in
from course_utils.stage.notebook.files import read
from course_utils.stage.notebook.outline import Part, outline
from course_utils.stage.notebook.prose import Question
from course_utils.stage.present.bands import bands

Json = dict[str, object]
Asked = tuple[str, str, list[Json]]  # a cell, the name that it sets, and its questions
# The frame is from another address. What JupyterLab's page does for it stands in page/static/room.js.
FRAME = (
    '<div style="min-height: {height}"><iframe class="course-wall" title="The room" '
    'style="display: block; width: 100%; height: 450px; border: 0" src="{wall}wall.html#{asks}"></iframe></div>'
)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """IPython calls this when the kernel starts; the notebook is still as it was handed out, with its dots."""
    path = Path.cwd() / Path(os.environ.get("JPY_SESSION_NAME", "")).name
    try:
        parts = outline(read(path)).parts
    except (OSError, ValueError):
        return

    were_asked: set[str] = set()

    def note(result: object) -> None:
        """Called by IPython after each cell, when its output is shown."""
        questions = list(asked(parts, path.name[:2], shell.user_ns.get("check")))
        here = [asks for cell, _, asks in questions if cell == result.info.cell_id]
        text = result.info.raw_cell or ""
        asks = here[0] if here else answered(questions, text, result.result, shell.user_ns)
        were_asked.update(one["key"] for one in asks if here)
        asks = [one for one in asks if one["key"] in were_asked]
        # What follows a guess stays out of view. A page that is only loaded again knows this run, and does not ask anew.
        once = quote(json.dumps([{**one, "run": result.execution_count} for one in asks]))
        if asks:
            height = "100vh" if here else 0
            display(HTML(FRAME.format(height=height, wall=os.environ["COURSE_ROOM"], asks=once)))

    shell.events.register("post_run_cell", note)


def asked(parts: Iterable[Part], number: str, check: object) -> Iterator[Asked]:
    """Each cell that asks for a value, with the name that it sets and its question; of a dict, one for each item.

    The value is a guess, or what the next cell checks against the answers that it lists.
    """
    for part in parts:
        for one in part.asked:
            listed = _listed(check, one.check)
            if listed or part.is_guess:
                options = sorted(answer for answer, _ in listed if isinstance(answer, str))
                key = f"{number}.{one.name}"
                several = len(one.questions) > 1
                keys = [f"{key}.{n}" if several else key for n, _ in enumerate(one.questions, 1)]
                asks = zip(keys, one.questions, strict=True)
                yield part.id, one.name, [_as_shown(*ask, options) for ask in asks]


def _as_shown(key: str, question: Question, options: list[str]) -> Json:
    """The question as the wall and the phones show it; the words of a check are the choices."""
    choices = options or [*question.choices]
    unit = "" if choices else question.unit
    shown = {"key": key, "words": question.words, "unit": unit}
    return shown | {"choices": choices, "item": question.item}


def answered(
    questions: list[Asked], text: str, shown: object, names: Mapping[str, object]
) -> list[Json]:
    """The questions that a cell of this text answers, by the comparison or choice that it shows or by its check."""
    asks = {name: asks for _, name, asks in questions}
    answers = []
    for name in filter(asks.get, revealed(text)):
        exercise = next(iter(checks_of(text, name)), "")
        if listed := _listed(names.get("check"), exercise):
            (right, _), *tempting = listed
            unit = asks[name][0]["unit"]
            answers.append(
                {**asks[name][0], **_answer(right, unit, "answer"), "tempting": tempting}
            )
        elif isinstance(shown, Choice):
            answers.append({**asks[name][0], **_answer(shown.measured)})
        elif isinstance(shown, Comparison):
            items = shown.guess if isinstance(shown.guess, Mapping) else [*shown.measured][:1]
            for one, item in zip(asks[name], items, strict=False):
                answers.append({**one, **_compared(shown, item, one["unit"])})
    return answers


def revealed(text: str) -> list[str]:
    """The names whose guess is held against a measurement, or whose value is checked."""
    return [*checked_in(text), *(reveal.name for reveal in reveals_in(text))]


def _compared(shown: Comparison, item: str, unit: str) -> Json:
    """The number that a guess is held against, called as its column is: measured, reported, calculated."""
    predicted = shown.predicted[item] if shown.digits else None
    said = {"shown": f"{number_text(shown.measured[item], shown.digits)} {unit}".strip()}
    return _answer(shown.measured[item], unit, shown.heads[1], item, predicted) | said


def _answer(
    measured: object,
    unit: str = "",
    how: str = "measured",
    item: str = "",
    predicted: object = None,
) -> Json:
    if isinstance(measured, str):
        return {"measured": measured, "shown": measured, "how": how, "bands": []}
    right = bands(measured, unit, item, predicted)
    said = f"{number_text(measured)} {unit}".strip()
    return {"measured": float(measured), "shown": said, "how": how, "bands": right}


def _listed(check: object, exercise: str) -> list[tuple[object, str]]:
    """What the check of that exercise lists, the right answer first; of a function nothing."""
    listed = getattr(getattr(check, exercise, None), "listed", list)() if exercise else []
    return listed if listed and isinstance(listed[0][0], int | float | str) else []
