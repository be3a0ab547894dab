"""Curvature bounds the learning rate: beyond 2/λ, SGD's error grows with every step.

After two minutes the reader has seen the steepest direction set that bound and the flattest one the pace; momentum
move the bound by 1 + μ and quicken the pace; and those that divide the gradient by its size know no such bound, for to
them the learning rate is a length. Bound and pace are predicted, beside the race itself.
"""

from course_utils.labs.lab import Lab
from course_utils.labs.optimizer.anywhere import race
from course_utils.labs.optimizer.asked import PRESETS, Race
from course_utils.labs.optimizer.picture import view

LAB = Lab(
    "Optimizer lab",
    Race,
    view,
    presets=PRESETS,
    jobs={"Race": race, "Check against torch": "check"},
    rows=(
        ("surface", "racing"),
        ("lr", "momentum", "beta2", "weight_decay"),
        ("steepness", "noise", "seed", "steps", "step"),
    ),
)
