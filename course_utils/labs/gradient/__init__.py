"""Where the 6 comes from: three equal products for each layer, of which those that nobody needs fall away.

After two minutes the reader has seen that the backward pass costs two products for the forward pass's one, that it is
one less where the data need no gradient, that freezing saves most in front of all that is trained, and how long a
sequence has to be until attention, which the 6 leaves out, matters.
"""

from course_utils.labs.gradient.asked import PRESETS, Asked, frozen_or_not
from course_utils.labs.gradient.picture import view
from course_utils.labs.lab import Lab

LAB = Lab(
    "Gradient lab",
    Asked,
    view,
    presets=PRESETS,
    jobs={"Count the transformer": "count"},
    pick=frozen_or_not,
    rows=(("what", "sequence", "depth", "frozen", "input_grad"), ("model",), ("b", "d", "k")),
)
