"""A product is a box: its faces are the numbers, and its cubes are the work, two FLOPs in each.

After two minutes the reader has seen that one more data point is one more layer of cubes but no
more weights, and that a count of every cube comes to 2BDK.
"""

from course_utils.chapters.flops.box_lab.asked import PRESETS, Sizes
from course_utils.chapters.flops.box_lab.picture import view
from course_utils.engine.labs.lab import Lab, View


class BoxLab(Lab):
    """The product of x, (B, D), and w, (D, K), as a box of B × D × K cubes."""

    name = "Box lab"
    asks = Sizes
    presets = PRESETS
    rows = (("b", "d", "k"),)

    def view(self, asked: Sizes, found: object) -> View:
        """Draw the box, and beside it what its faces and its cubes stand for."""
        return view(asked)  # the function of the module `picture`, and not this method
