"""A view has one stride for each dimension, so along each the walk has to go in equal steps.

After two minutes the reader has said where a walk through a slice lands in its second row, has seen
a transpose fall back at the end of each row, and has moved strides until two dimensions merge.
"""

from collections.abc import Sequence

from course_utils.chapters.tensors.walk_lab import picture
from course_utils.chapters.tensors.walk_lab.asked import PRESETS, Walked
from course_utils.core.say import Guess
from course_utils.engine.labs.lab import Lab, View


class WalkLab(Lab):
    """A strip of numbers, a walk through it, and the steps that a view of it would take."""

    name = "Walk lab"
    asks = Walked
    presets = PRESETS
    rows = (
        ("shape", "stride_0", "stride_1", "stride_2", "offset"),
        ("shown", "steps", "new"),
    )

    def view(self, asked: Walked, found: object) -> View:
        """Draw the strip, the walk and its steps."""
        return picture.view(asked, self.guesses(asked, found))

    def guesses(self, asked: Walked, found: object) -> Sequence[Guess]:
        """Return the reader's mark of where the second row begins, with where it really does.

        While the mark is not set, the list is empty.
        """
        (guessed_place,) = asked.landing
        if guessed_place is None:
            return []
        question = (
            f"position at which the second row of {asked.sizes} begins, "
            f"strides {asked.strides}, offset {asked.offset}"
        )
        return [Guess(question, guessed_place, asked.lands_at, kind="calculated")]
