"""The steepest direction limits the lr of SGD and of momentum; RMSProp's lr is a length.

After two minutes the reader has seen SGD diverge beyond 2/λ, as predicted, and momentum move that
limit and come lower. RMSProp comes down at every rate in 100 steps, whatever the steepness. But in
the long run its loss stays as high as its last steps are long, unless lr falls. What it wins, it
loses where the ravine is turned against the parameters.
"""

from collections.abc import Sequence

from course_utils.chapters.optimizers.optimizer_lab.asked import PRESETS, Race
from course_utils.chapters.optimizers.optimizer_lab.picture import view
from course_utils.core.say import Guess
from course_utils.engine.labs.lab import Lab


class OptimizerLab(Lab):
    """A race down a ravine, and how low each optimizer comes by its learning rate."""

    name = "Optimizer lab"
    asks = Race
    presets = PRESETS
    rows = (
        ("racing", "lr", "momentum"),
        ("steepness", "degrees", "step"),
        ("run",),
    )
    view = staticmethod(view)

    def guesses(self, asked: Race, found: object) -> Sequence[Guess]:
        """The learning rate that is marked, beside the one that was found by walking."""
        return asked.guesses
