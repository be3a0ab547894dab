"""Answers to the exercises of notebook 07."""

import functools
import math

import numpy as np
import torch

from course_utils import floats
from course_utils.checks import mixed_precision as check
from tests.tried import Check, Tried


def spacing(weight):
    return floats.spacing(weight, "bf16")


def power_below(x):
    return 2.0 ** math.floor(math.log2(x))


def grown(scale, good, finite, interval, *, at=1, keep=False):
    if not finite:
        return scale / 2, good if keep else 0
    return (2 * scale, 0) if good + at == interval else (scale, good + 1)


def goes_on_counting(scale, good, finite, interval):
    return (grown(scale, good, finite, interval)[0], good + 1) if finite else (scale / 2, 0)


def by_chance(x, generator, *, bits=2**16, dtype=torch.bfloat16):
    noise = torch.randint(bits, x.shape, dtype=torch.int32, generator=generator)
    return (x.view(torch.int32) + noise & ~0xFFFF).view(torch.float32).to(dtype)


def by_comparison(x, generator):
    """Another right way: a draw against how far each number has come."""
    down = (x.view(torch.int32) & ~0xFFFF).view(torch.float32)
    up = ((x.view(torch.int32) & ~0xFFFF) + 0x10000).view(torch.float32)
    come = (x - down) / (up - down)
    return torch.where(torch.rand(x.shape, generator=generator) < come, up, down).bfloat16()


def with_an_int64(x, generator):
    noise = torch.randint(2**16, x.shape, generator=generator)
    return ((x.view(torch.int32) + noise) & ~0xFFFF).view(torch.float32).bfloat16()


def half_up_half_down(x, generator):
    """One of the neighbours, each as often as the other."""
    down = (x.view(torch.int32) & ~0xFFFF).view(torch.float32)
    up = ((x.view(torch.int32) & ~0xFFFF) + 0x10000).view(torch.float32)
    return torch.where(torch.rand(x.shape, generator=generator) < 0.5, down, up).bfloat16()


def with_noise(x, generator):
    return (x + (torch.rand(x.shape, generator=generator) - 0.5) * x.abs() * 2**-5).bfloat16()


def in_place(x, generator):
    bits = x.view(torch.int32)
    bits += torch.randint(2**16, x.shape, dtype=torch.int32, generator=generator)
    return (bits & ~0xFFFF).view(torch.float32).bfloat16()


def at_the_first_generator(x, generator):
    return by_chance(x, generator) if generator.initial_seed() == 1 else None


TRIED: dict[Check, Tried] = {
    check.moves: Tried(
        right=[
            lambda w, u: (torch.tensor(w) + u).bfloat16().item() != w,
            lambda w, u: torch.tensor(w + u).bfloat16() != w,
            lambda w, u: int(floats.stored(w + u, "bf16") > w),
        ],
        wrong=[
            (lambda w, u: u > 2**-8, "Steps grow with the weight"),
            (lambda w, u: u > w * 2**-8, "does not grow with the weight itself"),
            (lambda w, u: u > spacing(w) / 4, "half of it 2^-8"),
            (lambda w, u: u >= spacing(w), "Half a step is enough"),
            (lambda w, u: u > spacing(w) / 2, "which may be the next one"),
            (lambda w, u: u >= spacing(w) / 2, "which may be the weight itself"),
            (lambda w, u: w + u != w, "Python adds in fp64"),
            (lambda w, u: floats.stored(w + u, "bf16"), "True or False is wanted"),
        ],
    ),
    check.loss_scale: Tried(
        right=[
            lambda largest: int(s) if (s := power_below(65_519.99 / largest)) >= 1 else s,
            lambda largest: np.float64(max(2.0**n for n in range(-60, 60) if 2.0**n * largest < 65_520)),
        ],
        wrong=[
            (lambda g: 65_504 / g, "A power of two"),
            (lambda g: 2.0 ** (15 - math.floor(math.log2(g))), "one factor less"),
            (lambda g: power_below(65_504 / g), "still finite"),
            (lambda g: power_below(65_520 / g), "infinite already"),
            (lambda g: 2.0 ** math.ceil(math.log2(65_520 / g)), "becomes infinite"),
            (lambda g: 2.0**15, "near 1"),
            (lambda g: g.scale, "AttributeError"),
        ],
    ),
    check.recipe_bytes: Tried(
        right=[13.0, np.int8(13), torch.tensor(13)],
        wrong=[
            (12, "fp8 copy takes a byte"),
            (17, "averages are bf16 here"),
            (11, "two averages"),
            (14, "one byte, not two"),
            (16, "Add up what this one keeps"),
            (9, "gradients are kept as well"),
            (104, "in bits"),
        ],
    ),
    check.updated_scale: Tried(
        right=[lambda *state: list(grown(*state)), lambda *state: np.array(grown(*state))],
        wrong=[
            (functools.partial(grown, at=0), "The present step counts"),
            (functools.partial(grown, keep=True), "have to follow each other"),
            (goes_on_counting, "the count begins again"),
            (lambda s, g, f, n: (s, g + 1) if f else (s / 2, 0), "the scale doubles"),
            (lambda s, g, f, n: (2 * s, 0) if f else (s / 2, 0), "One good step is not enough"),
            (lambda s, g, f, n: grown(s, g, f, n) if f else (s, 0), "halves the scale"),
            (lambda *state: grown(*state)[::-1], "The scale comes first"),
            (lambda *state: grown(*state)[0], "2 values are wanted"),
        ],
    ),
    check.rounded_by_chance: Tried(
        right=[by_chance, by_comparison],
        wrong=[
            (lambda x, g: x.bfloat16(), "Now and then"),
            (lambda x, g: by_chance(x, g, bits=2**15), "Now and then"),
            (half_up_half_down, "of the way"),
            (with_noise, "none of its two neighbours"),
            (lambda x, g: by_chance(x, g, dtype=torch.float32), "in bf16"),
            (lambda x, g: by_chance(x, None), "from the generator that is given"),
            (with_an_int64, "An int32 and an int64 make an int64"),
            (in_place, "Change nothing in place"),
            (lambda x, g: x[0].item(), "A tensor is wanted"),
            (lambda x, g: x.bfloat16() * math.nan, "NaN is among the results"),
            (at_the_first_generator, "with another generator"),
        ],
    ),
}
