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


def small_lab(show: Callable[[int], View] = draw, **named: Mapping[str, object]) -> Panel:
    """Shown by `show(n)`; its jobs and actions take n alone, too; or it has presets."""
    for kind in named.keys() - {"presets"}:
        named[kind] = {label: _of_n(work) for label, work in named[kind].items()}
    return Panel(Lab("Small lab", Small, lambda asked, found: show(asked.n), **named))


def _of_n(work: Callable) -> Callable:
    return lambda asked, found: work(asked.n)
