"""The steepest direction sets the learning rate of SGD and of momentum; to RMSProp, lr is a length.

After two minutes the reader has seen SGD diverge beyond 2/λ, as predicted; momentum move that limit and come lower; and
RMSProp come down at every rate in 100 steps, whatever the steepness, but stay in the long run as high as its last step
is long, unless lr falls. What it wins, it loses where the ravine is turned against the parameters.
"""

from collections.abc import Sequence

from course_utils.chapters.optimizers.optimizer_lab.asked import PRESETS, Race
from course_utils.chapters.optimizers.optimizer_lab.picture import view
from course_utils.core.say import Guess
from course_utils.engine.labs.lab import Lab


class OptimizerLab(Lab):
    """A race down a ravine, and how low each optimizer comes by its learning rate."""

    name = "Optimizer lab"
    asks, presets = Race, PRESETS
    rows = (("racing", "lr", "momentum"), ("steepness", "degrees", "step"), ("run",))
    view = staticmethod(view)

    def guesses(self, asked: Race, found: object) -> Sequence[Guess]:
        """The learning rate that is marked, beside the one that was found by walking."""
        return asked.guesses
