"""The steepest direction limits the lr of SGD and of momentum; RMSProp's lr is a length.

After two minutes the reader has seen SGD diverge beyond 2/λ, as predicted, and momentum move that
limit and come lower. In 100 steps, RMSProp comes down at every lr, whatever the steepness. But in
the long run its loss stays the higher, the longer its last steps are, unless lr falls. RMSProp
loses its advantage where the ravine is turned against the parameters.
"""

from collections.abc import Sequence

from course_utils.chapters.optimizers.optimizer_lab.asked import PRESETS, Race
from course_utils.chapters.optimizers.optimizer_lab.picture import view
from course_utils.core.say import Guess
from course_utils.engine.labs.lab import Lab


class OptimizerLab(Lab):
    """A race down a ravine, and the loss that each optimizer comes down to by learning rate."""

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
        """Return the learning rate that the reader has marked, beside the one found by walking."""
        return asked.guesses
