"""What is handed in, for the tests: notebooks of the course with answers in them.

Some are written as honest students write them, some as attackers do.
"""

import base64
import json
import pickle
import re
import textwrap
import tomllib
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from course_utils.engine.judging.exercises import Check
from tests import NOTEBOOKS
from tests.helpers.notebooks import Exercise, exercises_of

FOLDER = Path(__file__).parent
HOSTILE = tomllib.loads((FOLDER / "hostile.toml").read_text(encoding="utf-8"))
HONEST = tomllib.loads((FOLDER / "honest.toml").read_text(encoding="utf-8"))
FLOPS = NOTEBOOKS[3]
FIRST = exercises_of(FLOPS)[0]
LONG = {
    "{a20000}": ".a" * 20_000,
    "{open5000}": "[" * 5_000,
    "{close5000}": "]" * 5_000,
    "{minus50000}": "-" * 50_000,
}
MOST_CASES = 40  # of a check; each listed mistake shows in one of them
AS_FUNCTION = """
import base64, pickle
told = iter(pickle.loads(base64.b64decode("{data}")))
def {name}(*case):
    came = next(told)
    if isinstance(came, BaseException):
        raise came
    return came
"""
AS_VALUE = """
import base64, pickle
{name} = pickle.loads(base64.b64decode("{data}"))
"""
# Each would be right everywhere if the judge were in the answer's process and believed all it sees.
ANYWHERE = {
    "equal": """
class E:
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = None
def {name}(*case):
    return E()
""",
    "frames": """
def {name}(*case):
    try:
        raise KeyError
    except KeyError as error:
        frame = getattr(getattr(error, "__trace" + "back__"), "tb_" + "frame")
    found = [getattr(frame, "f_" + "locals")]
    while frame:
        found.append(getattr(frame, "f_" + "locals"))
        frame = getattr(frame, "f_" + "back")
    for names in found:
        for wanted in ("expected", "right", "whole"):
            if wanted in names:
                return names[wanted]
""",
    "three": """
import os
def {name}(*case):
    said = b'{{"kind": "dict", "pairs": [["came", 1], ["verdict", "right"], ["status", "right"]]}}'
    said = len(said).to_bytes(8, "big") + said
    os.write(3, b'["right","",""]')
    os.write(3, len(said).to_bytes(8, "big") + said)
    getattr(os, "_ex" + "it")(0)
""",
    "patch": """
import math, torch, json
math.isclose = torch.equal = torch.allclose = lambda *_, **__: True
from course_utils.engine.judging import verdict, agreement
verdict.Verdict.status = "right"
agreement.agree = agreement.same = agreement.near = lambda *_: True
def {name}(*case):
    return 0
""",
    "trace": """
import sys
def {name}(*case):
    def tracer(frame, event, argument):
        frame.f_locals.update(result=frame.f_locals.get("expected"))
        return tracer
    sys.settrace(tracer)
    return 0
""",
    "import": """
from course_utils.chapters.{module} import check as theirs
def {name}(*case):
    return next(theirs.{check}.__wrapped__(*case))[0]
""",
}


def hand_in(path: Path, course: Path, answers: Mapping[str, str]) -> None:
    """Write the course's notebook there, with the answers in the place of these cells' text."""
    notebook = json.loads(course.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = answers.get("".join(cell["source"]), cell["source"])
        cell["outputs"] = []
    write(path, notebook)


def write(path: Path, notebook: Mapping[str, object], form: str = "") -> None:
    """Write the notebook; `form` may ask for other ends of lines, or for a mark of the encoding."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook, ensure_ascii="bom" not in form, indent=1)
    if "crlf" in form:
        text = text.replace("\\n", "\\r\\n").replace("\n", "\r\n")
    encoding = "utf-8-sig" if "bom" in form else "utf-8"
    path.write_bytes(text.encode(encoding))


def solved(course: Path) -> dict[str, str]:
    return {exercise.stub: exercise.solution for exercise in exercises_of(course)}


def cell_of(described: Mapping[str, str], fills: Mapping[str, str]) -> str:
    """The cell of the answer that one entry of the data files describes."""
    text = described.get("cell")
    if not text:
        head = FIRST.stub.splitlines()[0]
        body = textwrap.indent(described["body"].strip(), "    ")
        text = f"{head}\n{body}"
    for place, filled in {**fills, **LONG}.items():
        text = text.replace(place, filled)
    return text.strip("\n")


def hand_in_honestly(path: Path, described: Mapping[str, str]) -> None:
    """Write an honest student's notebook 4."""
    notebook = json.loads(FLOPS.read_text(encoding="utf-8"))
    form = described.get("form", "")
    cells = []
    for cell in notebook["cells"]:
        cells += as_handed_in(cell, described)
        if form == "extra":
            cells.append(own_text("raw", "x", f"raw-{len(cells)}"))
            cells.append(own_text("markdown", [], f"md-{len(cells)}"))
    for cell in cells:
        if form == "colab":
            cell["metadata"] = {"id": cell.pop("id"), "colab": {"base_uri": "x"}}
        if form == "without ids":
            cell.pop("id")
    write(path, notebook | {"cells": cells}, form)


def as_handed_in(cell: dict[str, object], described: Mapping[str, str]) -> list[dict[str, object]]:
    """The cell as the student hands it in, with the cells that the student put around it."""
    text = "".join(cell["source"])
    cell["outputs"] = []
    above = []
    below = []
    if text == FIRST.stub:
        cell["source"] = cell_of(described, {})
        if "above" in described:
            above = [own_cell(described["above"], "own-above")]
    if text == FIRST.check:
        cell["source"] = described.get("check", text)
        if "below" in described:
            below = [own_cell(described["below"], "own-below")]
    return [*above, cell, *below]


def own_text(kind: str, source: object, name: str) -> dict[str, object]:
    return {"cell_type": kind, "metadata": {}, "source": source, "id": name}


def own_cell(text: str, name: str) -> dict[str, object]:
    empty = {"execution_count": None, "metadata": {}, "outputs": []}
    return {"cell_type": "code", "id": name, "source": text.strip("\n"), **empty}


def name_in(exercise: Exercise) -> str:
    """The name that the reader gives to the answer."""
    return re.findall(r"\((\w+)\)", exercise.call)[-1]


def mistaken(exercise: Exercise, check: Check) -> list[str]:
    """For each listed mistake the cell of an answer that makes it in the cases of that check."""
    name = name_in(exercise)
    if not exercise.wants_function:
        _, *listed = check.__wrapped__()
        return [AS_VALUE.format(name=name, data=_packed(came)) for came, _ in listed]
    cases = check.asked["cases"]
    if callable(cases):
        cases = cases()
    outcomes: list[list[object]] = []  # of each mistake, what came in each case
    for case in islice(cases, MOST_CASES):
        _, *listed = check.__wrapped__(*case)
        if not outcomes:
            outcomes = [[] for _ in listed]
        for of_mistake, (came, _) in zip(outcomes, listed, strict=True):
            # A check's own kind of int, such as a pattern of bits, is an int to a student.
            is_int = isinstance(came, int) and not isinstance(came, bool)
            of_mistake.append(int(came) if is_int else came)
    return [AS_FUNCTION.format(name=name, data=_packed(came)) for came in outcomes]


def _packed(value: object) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()
