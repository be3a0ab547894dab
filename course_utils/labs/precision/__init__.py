"""A format loses the gradients beyond its reach, and a loss scale moves them back into it.

After two minutes the reader has seen fp16 lose half of real gradients, as predicted from its edges and as counted by
torch's cast, has found the scales at which it loses none, and has seen in the losses beside them what that is worth.
"""

from collections.abc import Iterator
from dataclasses import replace

from course_utils.labs.lab import Lab, Progress
from course_utils.labs.precision.asked import PRESETS, Found, Scaling
from course_utils.labs.precision.picture import view


class PrecisionLab(Lab):
    """Gradients in a format, and what they train."""

    name = "Precision lab"
    asks, presets, found = Scaling, PRESETS, Found()
    rows = (("fmt", "power"), ("after", "layer", "mean_over"), ("mixes",))
    view = staticmethod(view)

    def known(self, asked: Scaling, found: Found) -> Found:
        """`found` with the gradients that are asked for, and with example losses if nothing was trained yet."""
        from course_utils.labs.precision import jobs

        return replace(found, gradients=jobs.gradients(asked), losses=found.losses or jobs.first_losses())

    def train(self, asked: Scaling, found: Found) -> Iterator[Progress]:
        """Train all ticked mixes side by side, step by step."""
        from course_utils.labs.precision import jobs

        return jobs.train(asked)

    jobs = {"Train": train}
    needs_kernel = {*jobs}
