"""Computes beforehand what labs compute with torch at every move, for pages without a kernel."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from course_utils.chapters.flops.matmul_lab.asked import A_GPU
from course_utils.chapters.mixed_precision.precision_lab import PrecisionLab
from course_utils.chapters.mixed_precision.precision_lab.asked import AFTER, Found, Scaling
from course_utils.chapters.mixed_precision.updates_lab import UpdatesLab
from course_utils.chapters.mixed_precision.updates_lab import asked as updates
from course_utils.stage.pages.host import Precomputed

# By the lab's name, the answers that it has at first on a page, where its own need the reader's
# machine.
FIRST = {"matmul": A_GPU}
Values = tuple[object, ...]


class Dependence(NamedTuple):
    """What a lab's result depends on: the names `by` of fields, and `every` combination of values.

    `find` computes the result for such a combination.
    """

    by: tuple[str, ...]
    every: list[Values]
    find: Callable[[Values], object]


def _gradients(values: Values) -> object:
    """Return the precision lab's gradients after the number of training steps in `values`."""
    (after,) = values
    return PrecisionLab().known(Scaling(after=after), Found())


def _updates(values: Values) -> object:
    """Return what the updates lab computes with torch at the learning rate in `values`."""
    (rate,) = values
    return UpdatesLab().known(updates.Asked(rate=rate), updates.Found())


ASKED = {  # by the lab's name
    "precision": Dependence(("after",), [(after,) for after in AFTER], _gradients),
    "updates": Dependence(("rate",), [(rate,) for rate in updates.RATES], _updates),
}


def precomputed(name: str, some: Collection[Values] = ()) -> Precomputed | None:
    """Return the lab's results for `some` combinations of values, or by default for every one.

    Tests pass a few, such as [(0,), (100,)], since all of them take long. The result is None if the
    lab computes nothing with torch.
    """
    if name not in ASKED:
        return None
    by, every, find = ASKED[name]
    wanted = some if some else every
    return Precomputed(by, {values: find(values) for values in wanted})
