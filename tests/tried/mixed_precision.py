"""Answers to the exercises of notebook 07."""

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
}
