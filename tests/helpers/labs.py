"""A lab in a test: opened, what its picture is made of, and its jobs, run to their end."""

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
    """The lab as it opens on that machine, which is not measured."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("course_utils.subjects.machines.this_machine", cache(lambda: machine))
        with closing(getattr(labs, f"{name}_lab")()) as panel:
            yield panel


def fresh(name: str) -> object:
    """A fixture: the lab as it opens."""

    def lab() -> Iterator[Panel]:
        with opened(name) as panel:
            yield panel

    return pytest.fixture(lab)


def text_of(view: View) -> str:
    """All that it says: the words of its picture, and what it means."""
    words = ["".join(node.itertext()) for node in ElementTree.fromstring(view.picture)]
    return " ".join([*words, view.meaning])


def nodes(svg: str, tag: str, class_: str) -> list[ElementTree.Element]:
    """The shapes of that kind and class."""
    found = ElementTree.fromstring(svg).iter()
    return [node for node in found if node.tag.endswith(tag) and node.get("class") == class_]


def centres(svg: str, class_: str, radius: str = "") -> list[tuple[float, float]]:
    """Of the circles of that class, or of those of that radius alone."""
    found = [node for node in nodes(svg, "circle", class_) if radius in ("", node.get("r"))]
    return [(float(node.get("cx")), float(node.get("cy"))) for node in found]


def lines(svg: str, class_: str) -> list[list[tuple[float, float]]]:
    """The points of each line of that class."""
    found = [node.get("points").split() for node in nodes(svg, "polyline", class_)]
    return [[tuple(map(float, point.split(","))) for point in line] for line in found]


def run(lab: Panel, job: str) -> str:
    """Its report, when it has ended; if it failed, with its exception."""
    with measure.cpu_threads(
        1
    ):  # its products are small, and a second one may be waiting for its core
        lab.start(job)
        lab.wait()
    return lab.screen.report


def steps_here(work: object, order: dict[str, object], **limits: object) -> Iterator[object]:
    """As `process.steps_of`, though in this process, which has imported torch already."""
    said = []
    result = process.done_here(work, order, said.append)
    yield from said
    return result


def answers(lab: Panel, preset: str = "", **moved: object) -> str:
    """All that it says after these presses and movements."""
    if preset:
        lab.preset(preset)
    lab.set(**moved)
    return f"{lab.screen.meaning} {words(lab)}"
