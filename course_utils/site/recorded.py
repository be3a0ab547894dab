"""What labs compute with torch at every movement, computed beforehand for pages without a kernel."""

from collections.abc import Collection
from itertools import product

from course_utils.labs.matmul.asked import A_GPU
from course_utils.labs.precision import PrecisionLab
from course_utils.labs.precision.asked import AFTER, BATCHES, LAYERS, MOST, Found, Scaling
from course_utils.site.host import Recorded

# What is asked at first in place of what needs a machine of one's own.
FIRST = {"matmul": A_GPU}


def _gradients(asked: tuple[int, ...]) -> object:
    return PrecisionLab().known(Scaling("fp16", *asked), Found())


# By lab: the fields that it depends on, all that they can say, and what is found then.
ASKED = {
    "precision": (
        ("power", "after", "layer", "mean_over"),
        tuple(product(range(MOST + 1), AFTER, LAYERS.values(), BATCHES)),
        _gradients,
    ),
}


def recorded(name: str, some: Collection[tuple[object, ...]] = ()) -> Recorded | None:
    """What that lab computed, for some answers or for all; None for the labs that need nothing."""
    if name not in ASKED:
        return None
    by, every, find = ASKED[name]
    return Recorded(by, {asked: find(asked) for asked in some or every})
