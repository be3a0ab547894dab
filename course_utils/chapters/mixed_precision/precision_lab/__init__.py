"""A loss scale lives between two cliffs: below, gradients become zero; above, they become infinite.

After two minutes the reader has set both cliffs in the picture of real gradients, has seen the
share that is lost at each scale, as torch's cast counts it, and has moved the gradients through
a format's dynamic range.
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
    """Gradients, a format's dynamic range, and the scales that bring the gradients into it."""

    name = "Precision lab"
    asks = Scaling
    presets = PRESETS
    found = Found()
    rows = (("shown", "power"), ("fmt", "after", "mean_over"))

    def view(self, asked: Scaling, found: Found) -> View:
        """Draw the gradients, the marks, and after Show the share that is lost at each scale."""
        return picture.view(asked, found, self.guesses(asked, found))

    def known(self, asked: Scaling, found: Found) -> Found:
        """Return `found` with the gradients after the chosen number of training steps."""
        # Imported late, because it needs torch, which a page without a kernel does not have.
        from course_utils.chapters.mixed_precision.precision_lab import jobs

        return replace(found, gradients=jobs.gradients(asked.after))

    def guesses(self, asked: Scaling, found: Found) -> Sequence[Guess]:
        """Return each cliff that the reader has marked, beside the one that torch's cast shows."""
        cliffs = found.gradients.over(asked.mean_over).cliffs(asked.fmt)
        guesses = []
        for name, guessed_power, power in zip(CLIFFS, asked.guess, cliffs, strict=True):
            if guessed_power is not None:
                guesses.append(Guess(name, 2.0**guessed_power, 2.0**power))
        return guesses
