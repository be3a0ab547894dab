"""A layer takes one product on the way there and two on the way back, each made of two matrices.

After two minutes the reader has seen each gradient made of the gradient behind it and of a matrix
that the forward pass had already, and has seen which product is left out on plain data.
"""

from course_utils.chapters.gradients.chain_lab.asked import PRESETS, Chain
from course_utils.chapters.gradients.chain_lab.picture import view
from course_utils.engine.labs.lab import Lab


class ChainLab(Lab):
    """A chain of layers, whose forward and backward pass run product by product."""

    name = "Chain lab"
    asks = Chain
    presets = PRESETS
    rows = (("layers", "wanted", "product"),)
    view = staticmethod(view)
