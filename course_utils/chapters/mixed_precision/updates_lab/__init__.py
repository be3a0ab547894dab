"""An update below half a gap of its weight is lost; in bf16 that happens to more and more of them.

After two minutes the reader has drawn how many are lost over a training, has seen how many were,
and has stepped through the training to see the updates shrink below half a gap.
"""

from collections.abc import Sequence

from course_utils.chapters.mixed_precision.updates_lab import picture
from course_utils.chapters.mixed_precision.updates_lab.asked import (
    ASKED_AT,
    PRESETS,
    QUESTIONS,
    Asked,
    Found,
)
from course_utils.core.say import Guess
from course_utils.engine.labs.lab import Lab, View


class UpdatesLab(Lab):
    """Updates in halves of their weights' gaps, over a training in bf16 alone."""

    name = "Updates lab"
    asks = Asked
    presets = PRESETS
    found = Found()
    rows = (("shown", "step", "rate"),)

    def view(self, asked: Asked, found: Found) -> View:
        """Draw the share of lost updates over the training, and the updates of one step."""
        return picture.view(asked, found, self.guesses(asked, found))

    def known(self, asked: Asked, found: Found) -> Found:
        """Return the steps of the training with the chosen learning rate."""
        # Imported late, because it needs torch, which a page without a kernel does not have.
        from course_utils.chapters.mixed_precision.updates_lab import jobs

        return Found(jobs.steps(asked.rate))

    def guesses(self, asked: Asked, found: Found) -> Sequence[Guess]:
        """Return the share that the reader has marked at some steps, beside the measured one."""
        guesses = []
        for step, guessed_percent in zip(ASKED_AT, asked.guess, strict=True):
            if guessed_percent is not None:
                measured_percent = 100 * found.steps[step - 1].still
                guesses.append(
                    Guess(QUESTIONS[step], guessed_percent, measured_percent, unit="percent")
                )
        return guesses
