"""What a machine holds of a training run is known beforehand, part by part: whether it fits, and what would make it.

After two minutes the reader has seen why 8 billion parameters do not fit on eight machines that each hold everything,
which part takes the room, what sharding does to each part and what it cannot help with, and that the prediction is
what a count finds, to the byte.
"""

from course_utils.labs.lab import Lab
from course_utils.labs.memory.anywhere import make_it_fit
from course_utils.labs.memory.asked import PRESETS, Run
from course_utils.labs.memory.picture import view

LAB = Lab(
    "Memory lab",
    Run,
    view,
    presets=PRESETS,
    jobs={"Count it": "count"},
    actions={"Make it fit": make_it_fit},
    rows=(
        ("kind", "recipe", "fused", "fused_norm", "recompute"),
        ("layers", "width", "heads", "kv_heads", "feed_forward", "positions", "vocabulary"),
        ("batch", "sequence", "machines"),
        ("machine", "stage", "accumulate"),
    ),
)
