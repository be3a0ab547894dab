"""The instructors' page names what there is: sections, buttons, and how long these can take."""

import re
from importlib import import_module

import pytest

from course_utils import floats, labs, measure
from tests import NOTEBOOKS, ROOT
from tests.notebooks import read
from tests.words import words_on

PAGE = (ROOT / "notebooks" / "INSTRUCTORS.md").read_text(encoding="utf-8")
PARTS = {int(part[0]): part for part in re.split(r"^## (?=\d · )", PAGE, flags=re.MULTILINE)[1:]}
PARTS[8] = PARTS[8].partition("\n## ")[0]
BOUNDS = {
    (lab, button): bound
    for lab, button, bound in re.findall(r"^\| (\w+) \| \*(.+?)\* \| (.+) \|$", PAGE, re.MULTILINE)
}
LABS = [name.removesuffix("_lab") for name in labs.__all__]
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def constant(name: str) -> float:
    """A number of a module of the labs."""
    module, _, name = name.rpartition(".")
    return getattr(import_module(f"course_utils.labs.{module}"), name)


def named(part: str, mark: str) -> list[str]:
    star = re.escape(mark)
    return re.findall(rf"(?<!\*){star}([^*\n]+){star}(?!\*)", part)


@every_notebook
def test_every_section_that_is_named_is_one_of_the_notebook(path):
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    headings = set(re.findall(r"^##+ (.+)$", text, re.MULTILINE))
    said = [words for words in named(PARTS[int(path.stem[:2])], "**") if not words.endswith(":")]
    assert len(said) >= 5
    assert [words for words in said if words not in headings] == []


@every_notebook
def test_every_button_that_is_named_is_on_a_lab_of_the_notebook(path):
    source = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "code")
    words = set().union(
        *(words_on(labs.lab_named(name)) for name in re.findall(r"labs\.(\w+)_lab\(\)", source))
    )
    said = named(PARTS[int(path.stem[:2])], "*")
    assert len(said) >= 5
    assert [name for name in said if name not in words] == []


@every_notebook
def test_each_part_says_what_to_show_and_what_goes_wrong(path):
    part = PARTS[int(path.stem[:2])]
    assert f"]({path.name})" in part
    for begin in ("**10 minutes:**", "**25 minutes:**", "**50 minutes:**", "**Moves", "**In the room:**"):
        assert f"- {begin}" in part


def test_every_button_that_works_for_a_while_has_its_bound():
    jobs = {(name, job) for name in LABS for job in labs.lab_named(name).jobs}
    assert set(BOUNDS) == jobs


def test_the_bounds_are_those_of_the_code():
    patterns = sum(2 ** floats.FORMATS[name].bits for name in measure.SMALL_FORMATS)
    most = constant("recompute.jobs.PATIENCE_S"), constant("recompute.jobs.LONGEST_S")
    said = {
        ("float", "Check every pattern against torch and ml_dtypes"): [patterns],
        ("einsum", "Check against the loops"): [constant("einsum.jobs.LOOPED_AT_MOST")],
        ("einsum", "Time it"): [constant("einsum.jobs.LONGEST_S")],
        ("matmul", "Time it"): [constant("matmul.jobs.LONGEST_S")],
        ("matmul", "Sweep"): [
            21,
            constant("matmul.jobs.APART_FROM_S"),
            constant("matmul.jobs.SWEEP_AT_MOST_S"),
        ],
        ("gradient", "Count the transformer"): [constant("gradient.jobs.LONGEST_S")],
        ("optimizer", "Race"): [constant("optimizer.jobs.FRAMES")],
        ("optimizer", "Check against torch"): [constant("optimizer.asked.MOST_STEPS")],
        ("memory", "Count it"): [constant("memory.jobs.LONGEST_S")],
        ("precision", "Train"): [constant("precision.asked.STEPS")],
        ("crash", "Train"): [constant("crash.jobs.LONGEST_S")],
        ("crash", "Resume"): [constant("crash.jobs.LONGEST_S")],
        ("recompute", "Measure"): most,
        ("recompute", "Measure all segments"): most,
    }
    for button, numbers in said.items():
        assert [float(n.replace(",", "")) for n in re.findall(r"\d[\d,.]*\d|\d", BOUNDS[button])] == list(
            numbers
        ), button


def test_the_panels_own_clock_is_said():
    assert f"the panel's own clock ends it after {constant('jobs.LONGEST_S'):.0f} s" in PAGE
