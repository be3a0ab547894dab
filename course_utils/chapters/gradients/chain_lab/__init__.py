"""A layer takes one matrix product forward and two backward, each made of two matrices.

After two minutes the reader has seen that each gradient is made of the gradient after it and of a
matrix that the forward pass had already, and which product is left out on plain data.
"""

from course_utils.chapters.gradients.chain_lab.asked import PRESETS, Chain
from course_utils.chapters.gradients.chain_lab.picture import view
from course_utils.engine.labs.lab import Lab


class ChainLab(Lab):
    """A chain of layers, whose forward and backward pass run product by product."""

    name = "Chain lab"
    asks = Chain
    presets = PRESETS
    rows = (("layers", "wanted", "equal", "product"),)
    view = staticmethod(view)
