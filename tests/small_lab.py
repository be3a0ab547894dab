"""A lab of one slider, for tests of what hosts labs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from course_utils.labs.draw import svg
from course_utils.labs.fields import whole
from course_utils.labs.lab import Lab, View
from course_utils.labs.panel import Panel


@dataclass(frozen=True)
class Small:
    """A number."""

    n: int = whole("n", 3, 0, 20)


def draw(n: int) -> View:
    """The number; with 13 a mistake of the reader, with 14 one of the lab."""
    if n == 13:
        raise ValueError("13 is not allowed here; take 12.")
    if n == 14:
        raise RuntimeError("a fault of the lab")
    return View(svg.picture(10, 10, svg.text(0, 9, str(n))), f"n is {n}")


def made(asks: type, view: Callable[..., View], **more: object) -> Lab:
    """A lab of these questions."""
    return type("MadeLab", (Lab,), {"name": "Small lab", "asks": asks, "view": staticmethod(view), **more})()


def small(show: Callable[[int], View] = draw, **named: Mapping[str, object]) -> Lab:
    """Shown by `show(n)`; its jobs and actions take n alone, too; or it has presets."""
    for kind in named.keys() & {"jobs", "actions"}:
        named[kind] = {label: _of_n(work) for label, work in named[kind].items()}
    return made(Small, lambda asked, found: show(asked.n), **named)


def small_lab(*of: Callable[[int], View], **named: Mapping[str, object]) -> Panel:
    """The same in Jupyter."""
    return Panel(small(*of, **named))


def _of_n(work: Callable) -> Callable:
    return lambda lab, asked, found: work(asked.n)
