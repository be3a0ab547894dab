"""A format loses the gradients beyond its reach, and a loss scale moves them back into it.

After two minutes the reader has seen fp16 lose half of real gradients, as predicted from its edges and as counted by
torch's cast, has found the scales at which it loses none, and has seen in the losses beside them what that is worth.
"""

from course_utils.labs.lab import Lab
from course_utils.labs.precision.asked import PRESETS, Found, Scaling
from course_utils.labs.precision.picture import view

LAB = Lab(
    "Precision lab",
    Scaling,
    view,
    presets=PRESETS,
    jobs={"Train": "train"},
    found=Found(),
    rows=(("fmt", "power"), ("after", "layer", "mean_over"), ("mixes",)),
)
