"""Answers to the exercises of notebook 06."""

import math

import torch

from course_utils.chapters.accountant import BYTES, SHARDED_FROM
from course_utils.chapters.optimizers import check
from tests.engine.tried import Check, Tried


def with_lerp(p, g, m, v, t, lr, decay):
    """Another right way, as torch writes it: epsilon is scaled in place of the averages."""
    m = m.lerp(g, 0.1)
    v = v.lerp(g.square(), 0.001)
    root_of_correction = (1 - 0.999**t) ** 0.5
    size = lr * root_of_correction / (1 - 0.9**t)
    step = size * m / (v**0.5 + 1e-8 * root_of_correction)
    return [p - lr * decay * p - step, m, v]


def momentum_from_lists(p, g, buffer, lr, mu):
    """Another right way, number by number."""
    b = torch.stack([mu * old + new for old, new in zip(buffer, g, strict=True)])
    return [p.sub(b, alpha=lr), b]


def momentum_outside_lr(p, g, buffer, lr, mu):
    b = mu * buffer + g
    return p - lr * g + mu * buffer, b


def state_of_four_parts(numbers, recipe, gpus, stage):
    """It stops with a KeyError where a recipe has no master."""
    share = -(-numbers // gpus)
    held = {}
    for part in ("parameters", "gradients", "optimizer", "master"):
        numbers_here = share if stage >= SHARDED_FROM[part] else numbers
        held[part] = numbers_here * sum(BYTES[dtype] for dtype in recipe[part])
    return held


def state_in_a_loop(numbers, recipe, gpus, stage):
    """A right answer."""
    held = {}
    for part, dtypes in recipe.items():
        numbers_here = math.ceil(numbers / gpus) if stage >= SHARDED_FROM[part] else numbers
        held[part] = sum(numbers_here * BYTES[dtype] for dtype in dtypes)
    return held


def std_by_a_power(inputs, kept_share):
    return (inputs * kept_share) ** -0.5


TRIED: dict[Check, Tried] = {
    check.state_bytes: Tried(
        right=(state_in_a_loop,),
        wrong=((state_of_four_parts, "A recipe may lack a part"),),
    ),
    check.initial_std: Tried(right=(std_by_a_power,)),
    check.momentum: Tried(
        right=(momentum_from_lists,),
        wrong=((momentum_outside_lr, "and should be"),),
    ),
    check.adamw_step: Tried(right=(with_lerp,)),
}
