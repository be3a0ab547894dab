"""A loss scale lives between two cliffs: below it gradients become zero, and above it they become infinite.

After two minutes the reader has set both cliffs in the picture of real gradients, has seen the share that is lost at
each scale, as torch's cast counts it, and has moved the gradients through a format's reach.
"""

from collections.abc import Sequence
from dataclasses import replace

from course_utils.chapters.mixed_precision.precision_lab import picture
from course_utils.chapters.mixed_precision.precision_lab.asked import (
    CLIFFS,
    PRESETS,
    Found,
    Scaling,
)
from course_utils.core.say import Guess
from course_utils.engine.labs.lab import Lab, View


class PrecisionLab(Lab):
    """Gradients under a format's reach, and the scales that bring them into it."""

    name = "Precision lab"
    asks, presets, found = Scaling, PRESETS, Found()
    rows = (("shown", "power"), ("fmt", "after", "mean_over"))

    def view(self, asked: Scaling, found: Found) -> View:
        """The gradients, the marks, and when it is asked for, the share that is lost at each scale."""
        return picture.view(asked, found, self.guesses(asked, found))

    def known(self, asked: Scaling, found: Found) -> Found:
        """`found` with the gradients that are asked for."""
        from course_utils.chapters.mixed_precision.precision_lab import jobs

        return replace(found, gradients=jobs.gradients(asked.after))

    def guesses(self, asked: Scaling, found: Found) -> Sequence[Guess]:
        """Each cliff that the reader has set, beside the one that torch's cast was found to have."""
        cliffs = found.gradients.over(asked.mean_over).cliffs(asked.fmt)
        pairs = zip(CLIFFS, asked.guess, cliffs, strict=True)
        return [
            Guess(name, 2.0**said, 2.0**cliff) for name, said, cliff in pairs if said is not None
        ]
