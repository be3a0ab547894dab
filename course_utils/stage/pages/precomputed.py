"""What labs compute with torch at every move, computed beforehand for pages without a kernel."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from course_utils.chapters.flops.matmul_lab.asked import A_GPU
from course_utils.chapters.mixed_precision.precision_lab import PrecisionLab
from course_utils.chapters.mixed_precision.precision_lab.asked import AFTER, Found, Scaling
from course_utils.chapters.mixed_precision.updates_lab import UpdatesLab
from course_utils.chapters.mixed_precision.updates_lab import asked as updates
from course_utils.stage.pages.host import Precomputed

# Answers that a page begins with, where a lab would begin with what needs the reader's machine.
FIRST = {"matmul": A_GPU}
Values = tuple[object, ...]


class Dependence(NamedTuple):
    """The fields that a lab's computation depends on, all their values, and the computation."""

    by: tuple[str, ...]
    every: list[Values]
    find: Callable[[Values], object]


def _gradients(values: Values) -> object:
    (after,) = values
    return PrecisionLab().known(Scaling(after=after), Found())


def _updates(values: Values) -> object:
    (rate,) = values
    return UpdatesLab().known(updates.Asked(rate=rate), updates.Found())


ASKED = {  # by the lab's name
    "precision": Dependence(("after",), [(after,) for after in AFTER], _gradients),
    "updates": Dependence(("rate",), [(rate,) for rate in updates.RATES], _updates),
}


def precomputed(name: str, some: Collection[Values] = ()) -> Precomputed | None:
    """What that lab computed for some values, or for all; None for a lab that needs nothing."""
    if name not in ASKED:
        return None
    by, every, find = ASKED[name]
    wanted = some if some else every
    return Precomputed(by, {values: find(values) for values in wanted})
