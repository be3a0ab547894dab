"""For tests of a lab: open it, read its picture, and run its jobs to their end."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from xml.etree import ElementTree

import pytest

from course_utils.chapters import labs
from course_utils.core import measure
from course_utils.core.datasheets import MACHINES, Machine
from course_utils.engine.labs.lab import View
from course_utils.engine.labs.panel import Panel
from course_utils.subjects.child_processes import process
from tests.helpers.words import words


@contextmanager
def opened(name: str, machine: Machine = MACHINES["H100 SXM"]) -> Iterator[Panel]:
    """Open the lab as it opens on that machine, so that the machine here is not measured."""
    open_lab = getattr(labs, f"{name}_lab")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("course_utils.subjects.machines.this_machine", cache(lambda: machine))
        with closing(open_lab()) as panel:
            yield panel


def fresh(name: str) -> object:
    """Make a fixture that opens the lab anew for each test."""

    def lab() -> Iterator[Panel]:
        with opened(name) as panel:
            yield panel

    return pytest.fixture(lab)


def text_of(view: View) -> str:
    """Return all that the view says: the texts of its picture, and the line on what it means."""
    texts = ["".join(node.itertext()) for node in ElementTree.fromstring(view.picture)]
    return " ".join([*texts, view.meaning])


def nodes(svg: str, tag: str, class_: str) -> list[ElementTree.Element]:
    """Return the elements of that tag and exactly that class."""
    found = []
    for node in ElementTree.fromstring(svg).iter():
        if node.tag.endswith(tag) and node.get("class") == class_:
            found.append(node)
    return found


def centres(svg: str, class_: str, radius: str = "") -> list[tuple[float, float]]:
    """Return the centres of the circles of that class and, if one is given, of that radius."""
    found = []
    for node in nodes(svg, "circle", class_):
        if not radius or node.get("r") == radius:
            x = float(node.get("cx"))
            y = float(node.get("cy"))
            found.append((x, y))
    return found


def lines(svg: str, class_: str) -> list[list[tuple[float, float]]]:
    """Return the points of each polyline of that class."""
    return [_points(node) for node in nodes(svg, "polyline", class_)]


def _points(polyline: ElementTree.Element) -> list[tuple[float, float]]:
    points = []
    for point in polyline.get("points").split():
        x, y = point.split(",")
        points.append((float(x), float(y)))
    return points


def run(lab: Panel, job: str) -> str:
    """Run the job to its end, and return its report; if it failed, with its exception.

    It has one thread, because its matrix products are small and another test may wait for the
    second core.
    """
    with measure.cpu_threads(1):
        lab.start(job)
        lab.wait()
    return lab.screen.report


def steps_here(work: object, order: dict[str, object], **limits: object) -> Iterator[object]:
    """Do what `process.steps_of` does, but in this process, which has already imported torch."""
    said = []
    result = process.done_here(work, order, said.append)
    yield from said
    return result


def answers(lab: Panel, preset: str = "", **moved: object) -> str:
    """Press the preset, move the controls, and return all that the lab then says."""
    if preset:
        lab.preset(preset)
    lab.set(**moved)
    return f"{lab.screen.meaning} {words(lab)}"
