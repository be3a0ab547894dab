"""The instructors' page says how long each button can take, and where the lecture's topics are.

tests/project/test_notebooks.py checks the page's other parts.
"""

import re
from importlib import import_module

from course_utils.chapters import labs
from course_utils.engine.labs import session
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import prose

PAGE = (ROOT / "notebooks" / "INSTRUCTORS.md").read_text(encoding="utf-8")
# The numbers in what the page says of a button, or names of constants in course_utils.chapters.
BOUNDS = {
    ("einsum", "Time it"): ["einsum.einsum_lab.jobs.LONGEST_S"],
    ("matmul", "Time it"): ["flops.matmul_lab.jobs.LONGEST_S"],
    ("matmul", "Sweep"): [
        21,
        "flops.matmul_lab.jobs.IN_PROCESS_FROM_S",
        "flops.matmul_lab.jobs.SWEEP_AT_MOST_S",
    ],
    ("timeline", "Measure a real step"): ["gradients.timeline_lab.LONGEST_S"],
}


def number(said: float | str) -> float:
    """The number itself, or the value of the constant of that name."""
    if not isinstance(said, str):
        return said
    module, _, name = said.rpartition(".")
    return getattr(import_module(f"course_utils.chapters.{module}"), name)


def numbers_in(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(r"\d[\d,.]*\d|\d", text)]


def test_every_button_that_works_for_a_while_has_its_bound_which_is_that_of_the_code():
    rows = re.findall(r"^\| (\w+) \| \*(.+?)\* \| (.+) \|$", PAGE, re.MULTILINE)
    bounds = {(lab, job): numbers_in(bound) for lab, job, bound in rows}

    buttons = set()
    for lab in labs.__all__:
        name = lab.removesuffix("_lab")
        buttons.update((name, job) for job in labs.lab_named(name).jobs)
    assert set(bounds) == buttons

    for button, constants in BOUNDS.items():
        assert bounds[button] == [number(constant) for constant in constants], button
    assert f"the panel's own clock ends it after {session.LONGEST_S:.0f} s" in PAGE


def test_each_topic_of_the_lecture_leads_to_sections_that_are_there():
    (table,) = re.findall(
        r"^## Where the lecture's topics are$.*?(?=^## )", PAGE, re.MULTILINE | re.DOTALL
    )
    rows = re.findall(r"^\| .+ \| `.+ \| (?:2025|2026)(?:, 2026)? \| (.+) \|$", table, re.MULTILINE)
    assert len(rows) == 20
    for row in rows:
        for title, number in re.findall(r"\*(.+?)\*|\b(\d)(?=,|$)", row):
            if number:
                (path,) = (path for path in NOTEBOOKS if path.stem[1] == number)
            else:
                assert f"## {title}\n" in "\n".join(prose(path)) + "\n", (path.stem, title)
