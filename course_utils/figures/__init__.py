"""Data in, a closed matplotlib Figure out. Nothing here computes what it draws."""

from course_utils.figures.cost import activations_by_length, attention_shares, recompute_frontier
from course_utils.figures.learning import (
    loss_curve,
    losses_by_mix,
    scale_by_depth,
    steps_under_constant_gradient,
    wasted_shares,
)
from course_utils.figures.numbers import reach_and_step, running_sums
from course_utils.figures.speed import roofline, strided_reads, timing_samples
from course_utils.figures.style import COLOURS

__all__ = [
    "COLOURS",
    "activations_by_length",
    "attention_shares",
    "loss_curve",
    "losses_by_mix",
    "reach_and_step",
    "recompute_frontier",
    "roofline",
    "running_sums",
    "scale_by_depth",
    "steps_under_constant_gradient",
    "strided_reads",
    "timing_samples",
    "wasted_shares",
]
