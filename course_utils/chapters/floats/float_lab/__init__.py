"""A format is a grid of numbers with gaps and ends.

Between two of its numbers a number is rounded, and beyond the ends it is lost. After two minutes
the reader has seen one number keep its value in some formats, lose digits in others and fall off
the end of a few, and has flipped the bits that decide it.
"""

from course_utils.chapters.floats.float_lab.asked import PRESETS, Cast, flipped
from course_utils.chapters.floats.float_lab.picture import view
from course_utils.engine.labs.lab import Lab


class FloatLab(Lab):
    """A number in eight formats, and every bit to flip."""

    name = "Float lab"
    asks = Cast
    presets = PRESETS
    # Without `formats`: only a notebook's figure chooses fewer than all.
    rows = (("number", "times_two_to_the", "saturate"),)
    view = staticmethod(view)
    pick = staticmethod(flipped)
