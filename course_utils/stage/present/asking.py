"""What the kernel of a presentation shows for the room: the wall below a guess, and the answer below its reveal.

An extension of IPython that `course_utils.stage.kernel` loads if COURSE_ROOM says where the wall's pages are. The kernel talks
to nobody: the address of each frame says what its page asks.
"""

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import HTML, display

from course_utils.core.say import Choice, Comparison, number_text
from course_utils.stage.present.bands import bands
from course_utils.stage.workspace import stubs
from course_utils.stage.workspace.notebooks import Cell, read, source

Json = dict[str, object]
MOST = 600  # letters of a question
ENOUGH = 160  # a shorter paragraph is read with the one before
CHECKED = re.compile(r"\bcheck\.(\w+)\((\w+)\)")
QUOTED = re.compile(r'"([^"]+)"')
# What can stand behind a number: not "the value", nor "a step without recomputing is 1".
UNITS = r"(?:GB|bytes|FLOPs|times|percent|days|tokens|billions|parameters|of \S*\d|a second)\b"
COMMENT = re.compile(rf"(?:in )?({UNITS}[^,]*(?:, in billions)?)")
ASKED = re.compile(rf"(?:How many (?:new )?|^)({UNITS})")
PLAIN = (
    (r"\[([^]]+)\]\([^)]*\)", r"\1"),
    (r" \(A string,[^)]*\)", ""),  # phones list the choices
    (r"^\*[^*]*minutes?\.\* ", ""),
    (r"(\*\*?|`)(\S(?:.*?\S)??)\1", r"\2"),
)
# The frame is from another address. What JupyterLab's page does for it stands in page/static/room.js.
FRAME = (
    '<div style="min-height: {height}"><iframe class="course-wall" title="The room" '
    'style="display: block; width: 100%; height: 450px; border: 0" src="{wall}wall.html#{asks}"></iframe></div>'
)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """IPython calls this when the kernel starts; the notebook is still as it was handed out, with its dots."""
    path = Path.cwd() / Path(os.environ.get("JPY_SESSION_NAME", "")).name
    try:
        cells = read(path)["cells"]
    except (OSError, ValueError):
        return

    were_asked: set[str] = set()

    def note(result: object) -> None:
        """Called by IPython after each cell, when its output is shown."""
        questions = list(asked(cells, path.name[:2], shell.user_ns.get("check")))
        here = [asks for cell, _, asks in questions if cell["id"] == result.info.cell_id]
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


Questions = list[tuple[Cell, str, list[Json]]]


def asked(cells: list[Cell], number: str, check: object) -> Iterator[tuple[Cell, str, list[Json]]]:
    """Each cell that asks for a value, with the name that it sets and its question; of a dict, one for each item.

    The value is a guess, or what the next cell checks against the answers that it lists.
    """
    words, texts = "", [source(cell) for cell in cells]
    for at, cell in enumerate(cells):
        if cell["cell_type"] == "markdown":
            words = texts[at]
            continue
        below = next((source(one) for one in cells[at + 1 :] if one["cell_type"] == "code"), "")
        for name, value in _open(texts[at]):
            listed = _listed(check, below, name)
            if listed or stubs.is_guess(cell, cells[at + 1 :]):
                comment = texts[at].rpartition("  # ")[2] if "  # " in texts[at].splitlines()[-1] else ""
                options = sorted(one for one, _ in listed if isinstance(one, str))
                options = options or _choices(comment, name, texts, words)
                items = [item.value for item in value.keys] if isinstance(value, ast.Dict) else [""]
                key = f"{number}.{name}"
                keys = [f"{key}.{n}" for n, _ in enumerate(items, 1)] if len(items) > 1 else [key]
                asks = zip(keys, items, strict=True)
                yield cell, name, [_question(*ask, words, comment, options) for ask in asks]


def answered(questions: Questions, text: str, shown: object, names: Mapping[str, object]) -> list[Json]:
    """The questions that a cell of this text answers, by the comparison or choice that it shows or by its check."""
    asks = {name: asks for _, name, asks in questions}
    answers = []
    for name in filter(asks.get, revealed(text)):
        if listed := _listed(names.get("check"), text, name):
            (right, _), *tempting = listed
            unit = asks[name][0]["unit"]
            answers.append({**asks[name][0], **_answer(right, unit, "answer"), "tempting": tempting})
        elif isinstance(shown, Choice):
            answers.append({**asks[name][0], **_answer(shown.measured)})
        elif isinstance(shown, Comparison):
            items = shown.guess if isinstance(shown.guess, Mapping) else [*shown.measured][:1]
            for one, item in zip(asks[name], items, strict=False):
                answers.append({**one, **_compared(shown, item, one["unit"])})
    return answers


def revealed(text: str) -> list[str]:
    """The names whose guess is held against a measurement, or whose value is checked."""
    found = [name for _, name in CHECKED.findall(text)]
    with suppress(SyntaxError):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.keyword) and node.arg == "guess":
                values = node.value.values if isinstance(node.value, ast.Dict) else [node.value]
                found += [value.id for value in values if isinstance(value, ast.Name)]
    return found


def _compared(shown: Comparison, item: str, unit: str) -> Json:
    """The number that a guess is held against, called as its column is: measured, reported, calculated."""
    predicted = shown.predicted[item] if shown.digits else None
    said = {"shown": f"{number_text(shown.measured[item], shown.digits)} {unit}".strip()}
    return _answer(shown.measured[item], unit, shown.heads[1], item, predicted) | said


def _answer(
    measured: object, unit: str = "", how: str = "measured", item: str = "", predicted: object = None
) -> Json:
    if isinstance(measured, str):
        return {"measured": measured, "shown": measured, "how": how, "bands": []}
    right = bands(measured, unit, item, predicted)
    said = f"{number_text(measured)} {unit}".strip()
    return {"measured": float(measured), "shown": said, "how": how, "bands": right}


def _open(text: str) -> list[tuple[str, ast.expr]]:
    """The names that a cell leaves to fill in, with the dots or the dict of them."""
    with suppress(SyntaxError):
        stands = [
            node for node in ast.parse(text).body if isinstance(node, ast.Assign) and stubs.is_stub(node)
        ]
        return [(node.targets[0].id, node.value) for node in stands]
    return []


def _listed(check: object, text: str, name: str) -> list[tuple[object, str]]:
    """What the check of that name's value lists, the right answer first; nothing if it judges a function."""
    found = [exercise for exercise, given in CHECKED.findall(text) if given == name]
    listed = getattr(getattr(check, found[0], None), "listed", list)() if found else []
    return listed if listed and isinstance(listed[0][0], int | float | str) else []


def _choices(comment: str, name: str, texts: list[str], words: str) -> list[str]:
    """What can be chosen: quoted in the comment, else in the choice that this guess is held against, else above."""
    among = [re.search(r"among=\(([^)]*)\)", text) for text in texts if f"guess={name})" in text]
    lists = [comment, *(found[1] for found in among if found)]
    lists += words.split("\n\n")[-1:] if "in quotes" in comment else []
    return next(filter(None, map(QUOTED.findall, lists)), [])


def _question(key: str, item: str, words: str, comment: str, choices: list[str]) -> Json:
    """As the wall and the phones show it. What a comment says and is no unit is said below the words."""
    paragraphs = [one for one in re.split(r"\n\n+", words) if not one.startswith("#")]
    *before, last = paragraphs or [words.lstrip("# ")]  # a heading alone has to do
    for pattern, plain in PLAIN:
        before, last = [re.sub(pattern, plain, one) for one in before], re.sub(pattern, plain, last)
    said = last
    while before and len(said) + len(before[-1]) < MOST and (len(said) < ENOUGH or said.startswith("- ")):
        said = f"{before.pop()}\n\n{said}"
    unit = COMMENT.match(comment) or ASKED.search(item) or ASKED.search(last)
    is_clear = re.match(f"the |{COMMENT.pattern}", comment)
    hint = "" if is_clear else re.split(r',? ?in quotes|"', comment)[0].strip()
    # What is too long begins with a later sentence.
    said = said if len(said) < MOST - 80 else re.sub(r"^.*?[.?:] ", "", said[80 - MOST :], flags=re.DOTALL)
    said = "\n\n".join(filter(None, (said, item, hint)))
    unit = unit[1] if unit and not choices else ""
    return {"key": key, "words": said, "unit": unit, "choices": choices, "item": item}
