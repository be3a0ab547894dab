"""A sum stops where half a gap of its format is as large as what is added.

After two minutes the reader has drawn where sums of ones stop in three formats, has seen each one
flatten, and has found the reason beside it: the numbers of the format, which lie farther apart with
each power of two.
"""

from course_utils.chapters.floats.sum_lab.asked import PRESETS, Ones, guesses
from course_utils.chapters.floats.sum_lab.picture import view
from course_utils.engine.labs.lab import Lab


class SumLab(Lab):
    """Ones that are added one by one, in a format of few bits."""

    name = "Sum lab"
    asks = Ones
    presets = PRESETS
    view = staticmethod(view)
    guesses = staticmethod(guesses)
