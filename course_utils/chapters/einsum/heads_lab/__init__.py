"""Two names in the wrong order give a width's columns to the wrong heads, and no shape shows it.

After two minutes the reader has drawn to which head a pattern sends each column, has seen a
sawtooth where a staircase belongs, and has moved the number of heads.
"""

from course_utils.chapters.einsum.heads_lab.asked import PRESETS, Split, guesses
from course_utils.chapters.einsum.heads_lab.picture import view
from course_utils.engine.labs.lab import Lab


class HeadsLab(Lab):
    """Columns that a pattern distributes to heads."""

    name = "Heads lab"
    asks = Split
    presets = PRESETS
    view = staticmethod(view)
    guesses = staticmethod(guesses)
