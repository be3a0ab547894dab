"""Answers to the exercises of notebook 06."""

import math

import torch

from course_utils.chapters.accountant import BYTES, SHARDED_FROM
from course_utils.chapters.optimizers import check
from tests.engine.tried import Check, Tried


def with_lerp(p, g, m, v, t, lr, decay):
    m, v = m.lerp(g, 0.1), v.lerp(g.square(), 0.001)
    size = lr * (1 - 0.999**t) ** 0.5 / (1 - 0.9**t)
    return [p - lr * decay * p - size * m / (v**0.5 + 1e-8 * (1 - 0.999**t) ** 0.5), m, v]


def momentum_from_lists(p, g, buffer, lr, mu):
    b = torch.stack([mu * old + new for old, new in zip(buffer, g, strict=True)])
    return [p.sub(b, alpha=lr), b]


def state_of_four_parts(numbers, recipe, gpus, stage):
    """It crashes in the next cell, whose recipe has no master."""
    parts = ("parameters", "gradients", "optimizer", "master")
    share = -(-numbers // gpus)
    held = {part: share if stage >= SHARDED_FROM[part] else numbers for part in parts}
    return {part: held[part] * sum(BYTES[dtype] for dtype in recipe[part]) for part in parts}


def state_in_a_loop(numbers, recipe, gpus, stage):
    held = {}
    for part, dtypes in recipe.items():
        each = math.ceil(numbers / gpus) if stage >= SHARDED_FROM[part] else numbers
        held[part] = sum(each * BYTES[dtype] for dtype in dtypes)
    return held


TRIED: dict[Check, Tried] = {
    check.state_bytes: Tried(
        right=(state_in_a_loop,), wrong=((state_of_four_parts, "A recipe may lack a part"),)
    ),
    check.initial_std: Tried(right=(lambda inputs, kept_share: (inputs * kept_share) ** -0.5,)),
    check.momentum: Tried(
        right=(momentum_from_lists,),
        wrong=((lambda p, g, b, lr, mu: (p - lr * g + mu * b, b), "and should be"),),
    ),
    check.adamw_step: Tried(right=(with_lerp,)),
}
