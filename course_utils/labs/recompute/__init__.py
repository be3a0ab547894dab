"""Computing segments of blocks again trades FLOPs for bytes: where least is kept can be predicted, and is seldom √L.

After two minutes the reader has seen the frontier of bytes and FLOPs, where on it the least is and why, that a real
step lies on it exactly, and when nothing is gained.
"""

from course_utils.labs.lab import Lab
from course_utils.labs.recompute.asked import PRESETS, Plan
from course_utils.labs.recompute.picture import view

LAB = Lab(
    "Recompute lab",
    Plan,
    view,
    presets=PRESETS,
    jobs={"Measure": "measure_chosen", "Measure all segments": "measure_all"},
    rows=(("kind", "layers"), ("segment", "early_stop", "scores_again"), ("batch", "sequence", "width")),
)
