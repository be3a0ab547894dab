"""An update below half a step of its weight is lost: in bf16 more and more of them are, as training goes on.

After two minutes the reader has drawn how many are lost over a training, has seen how many were, and has moved the step
of the training to see the updates shrink below half a step.
"""

from collections.abc import Sequence

from course_utils.chapters.mixed_precision.updates_lab import picture
from course_utils.chapters.mixed_precision.updates_lab.asked import ASKED_AT, PRESETS, Asked, Found
from course_utils.core.say import Guess
from course_utils.engine.labs.lab import Lab, View


class UpdatesLab(Lab):
    """Updates in half steps of their weights, over a training in bf16 alone."""

    name = "Updates lab"
    asks, presets, found = Asked, PRESETS, Found()
    rows = (("shown", "step", "rate"),)

    def view(self, asked: Asked, found: Found) -> View:
        """The share that is lost over the training, and the updates of one step."""
        return picture.view(asked, found, self.guesses(asked, found))

    def known(self, asked: Asked, found: Found) -> Found:
        """The training with that learning rate."""
        from course_utils.chapters.mixed_precision.updates_lab import jobs

        return Found(jobs.steps(asked.rate))

    def guesses(self, asked: Asked, found: Found) -> Sequence[Guess]:
        """The share that the reader has drawn at each of some steps, beside the share of weights that did not move."""
        return [
            Guess(
                f"the share in % that is lost in step {step}",
                said,
                100 * found.steps[step - 1].still,
            )
            for step, said in zip(ASKED_AT, asked.guess, strict=True)
            if said is not None
        ]
