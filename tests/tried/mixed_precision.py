"""Answers to the exercises of notebook 07."""

import math

import torch

from course_utils import floats
from course_utils.checks import mixed_precision as check
from tests.tried import Check, Tried


def master_by_addcmul(master, update):
    """Another right way."""
    new = torch.addcmul(master, update, torch.ones_like(update))
    return [new, new.to(torch.bfloat16)]


def master_in_place(master, update):
    master += update
    return master, master.bfloat16()


def scaler(scale, good_steps, finite, interval):
    doubles = finite and good_steps + 1 == interval
    return scale * (2 if doubles else 1 if finite else 0.5), (good_steps + 1) * (finite and not doubles)


def by_chance(x, generator, *, bits=2**16, dtype=torch.bfloat16):
    noise = torch.randint(bits, x.shape, dtype=torch.int32, generator=generator)
    return (x.view(torch.int32) + noise & ~0xFFFF).view(torch.float32).to(dtype)


def by_comparison(x, generator, *, share=None):
    """Another right way: a draw against how far each number has come."""
    down = (x.view(torch.int32) & ~0xFFFF).view(torch.float32)
    up = ((x.view(torch.int32) & ~0xFFFF) + 0x10000).view(torch.float32)
    come = (x - down) / (up - down) if share is None else share
    return torch.where(torch.rand(x.shape, generator=generator) < come, up, down).bfloat16()


def with_an_int64(x, generator):
    noise = torch.randint(2**16, x.shape, generator=generator)
    return ((x.view(torch.int32) + noise) & ~0xFFFF).view(torch.float32).bfloat16()


def with_noise(x, generator):
    return (x + (torch.rand(x.shape, generator=generator) - 0.5) * x.abs() * 2**-5).bfloat16()


def in_place(x, generator):
    bits = x.view(torch.int32)
    bits += torch.randint(2**16, x.shape, dtype=torch.int32, generator=generator)
    return (bits & ~0xFFFF).view(torch.float32).bfloat16()


TRIED: dict[Check, Tried] = {
    check.master_step: Tried(
        right=(master_by_addcmul,),
        wrong=(
            (master_in_place, "make a new one"),
            (lambda master, update: (master + 2 * update, (master + update).bfloat16()), "and should be"),
            (lambda master, update: (update, update.bfloat16()), "gave as the first of 2"),
            (
                lambda master, update: (master + update, (master + update).bfloat16().float()),
                "torch.float32; expected torch.bfloat16.",
            ),
        ),
    ),
    check.moves: Tried(
        right=(lambda w, u: (torch.tensor(w) + u).bfloat16().item() != w,),
        wrong=((lambda w, u: floats.stored(w + u, "bf16"), "True or False is wanted"),),
    ),
    check.loss_scale: Tried(
        right=(lambda largest: max(2.0**n for n in range(-60, 60) if 2.0**n * largest < 65_520),),
        wrong=((lambda largest: largest.scale, "AttributeError"),),
    ),
    check.updated_scale: Tried(right=(scaler,)),
    check.rounded_by_chance: Tried(
        right=(by_chance, by_comparison),
        wrong=(
            (lambda x, g: x.bfloat16(), "now and then"),
            (lambda x, g: by_chance(x, g, bits=2**15), "now and then"),
            (lambda x, g: by_comparison(x, g, share=0.5), "of the way"),
            (with_noise, "neither of its two neighbours"),
            (lambda x, g: by_chance(x, g, dtype=torch.float32), "in bf16"),
            (lambda x, g: by_chance(x, None), "from the generator that is given"),
            (with_an_int64, "An int32 and an int64 make an int64"),
            (in_place, "Change nothing in place"),
            (lambda x, g: x[0].item(), "A tensor is wanted"),
            (lambda x, g: x.bfloat16() * math.nan, "NaN is among the results"),
        ),
    ),
}
