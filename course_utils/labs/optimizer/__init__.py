"""The steepest direction sets the learning rate, and each optimizer has its own best one.

After two minutes the reader has seen SGD diverge beyond 2/λ, as predicted; momentum move that limit and come lower;
and those that divide the gradient by its size know no limit, until the ravine is turned against the parameters.
"""

from collections.abc import Sequence

from course_utils.labs.lab import Lab
from course_utils.labs.optimizer.asked import PRESETS, Race
from course_utils.labs.optimizer.picture import view
from course_utils.quantities import Guess


class OptimizerLab(Lab):
    """A race down a ravine, and how low each optimizer comes by its learning rate."""

    name = "Optimizer lab"
    asks, presets = Race, PRESETS
    rows = (("racing", "lr", "momentum"), ("steepness", "degrees", "step"))
    view = staticmethod(view)

    def guesses(self, asked: Race, found: object) -> Sequence[Guess]:
        """The learning rate that is marked, beside the one that was found by walking."""
        return asked.guesses
