"""What labs compute with torch at every movement, computed beforehand for pages without a kernel."""

from collections.abc import Collection

from course_utils.chapters.flops.matmul_lab.asked import A_GPU
from course_utils.chapters.mixed_precision.precision_lab import PrecisionLab
from course_utils.chapters.mixed_precision.precision_lab.asked import AFTER, Found, Scaling
from course_utils.chapters.mixed_precision.updates_lab import UpdatesLab
from course_utils.chapters.mixed_precision.updates_lab import asked as updates
from course_utils.stage.pages.host import Precomputed

# What is asked at first in place of what needs a machine of one's own.
FIRST = {"matmul": A_GPU}


def _gradients(asked: tuple[object, ...]) -> object:
    return PrecisionLab().known(Scaling(after=asked[0]), Found())


def _updates(asked: tuple[object, ...]) -> object:
    return UpdatesLab().known(updates.Asked(rate=asked[0]), updates.Found())


# By lab: the fields that it depends on, all that they can say, and what is found then.
ASKED = {
    "precision": (
        ("after",),
        tuple((after,) for after in AFTER),
        _gradients,
    ),
    "updates": (("rate",), tuple((rate,) for rate in updates.RATES), _updates),
}


def precomputed(name: str, some: Collection[tuple[object, ...]] = ()) -> Precomputed | None:
    """What that lab computed, for some answers or for all; None for the labs that need nothing."""
    if name not in ASKED:
        return None
    by, every, find = ASKED[name]
    return Precomputed(by, {asked: find(asked) for asked in some or every})
