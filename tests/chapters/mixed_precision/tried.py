"""Answers to the exercises of notebook 07."""

import inspect

import torch
from torch import nn
from torch.nn import functional

from course_utils.chapters.accountant import OPTIMIZER_NUMBERS
from course_utils.chapters.mixed_precision import check, repair
from tests.engine.tried import Check, Tried


def master_by_addcmul(master, update):
    """Another right way."""
    new = torch.addcmul(master, update, torch.ones_like(update))
    return [new, new.to(torch.bfloat16)]


def master_in_place(master, update):
    master += update
    return master, master.bfloat16()


def copy_cut_off(master, update):
    new = master + update
    upper_half = new.view(torch.int32) & ~0xFFFF
    return new, upper_half.view(torch.float32).bfloat16()


def master_twice_updated(master, update):
    return master + 2 * update, (master + update).bfloat16()


def update_alone(master, update):
    return update, update.bfloat16()


def copy_in_fp32(master, update):
    new = master + update
    return new, new.bfloat16().float()


def scaler(scale, good_steps, finite, interval):
    """Another right way."""
    if finite and good_steps + 1 == interval:
        return scale * 2, 0
    factor = 1 if finite else 0.5
    return scale * factor, (good_steps + 1) * finite


def loop(*changes, letter=""):
    """A loop of the repair shop with these changes of its text."""
    text = inspect.getsource(repair.loop(letter))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    names = {"torch": torch, "nn": nn, "F": functional, "repair": repair}
    exec(text, names)
    *_, defined_last = names.values()
    return defined_last


def recipe_of_two_formats(name):
    dtype = "bf16" if name.startswith("bf16") else "fp32"
    wide = "fp32" if "+master" in name else dtype
    numbers = OPTIMIZER_NUMBERS[name.partition(",")[0].split()[1]]
    return {
        "parameters": (dtype,),
        "gradients": ("fp32" if "fp32 gradients" in name else dtype,),
        "optimizer": (wide,) * numbers,
        "master": ("fp32",) if "+master" in name else (),
    }


CLIP = "        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.2)\n"
HEAD = "    for _ in range(200):\n"
NEW_SCALER = '        scaler = torch.amp.GradScaler("cpu")\n'
ADD_UP = "        repair.add_up(model, 16_384, dtype=torch.float32)\n"
UNSCALE = "        scaler.unscale_(optimizer)\n"
STEP = "        scaler.step(optimizer)\n"
# Changes of a loop's text: the old words, the new ones.
NO_SCALE = ('("cpu")', '("cpu", enabled=False)')
IN_BF16 = ("float16", "bfloat16")
SAME_NORM = (CLIP, CLIP.replace("0.2", "0.2, norm_type=2"))
IN_FP64 = ("dtype=torch.float32", "dtype=torch.float64")
IN_FP16 = ("dtype=torch.float32", "dtype=torch.float16")
NO_AUTOCAST = ('autocast("cpu", dtype', 'autocast("cpu", enabled=False, dtype')
NO_CACHE = ("dtype=torch.float16", "dtype=torch.float16, cache_enabled=False")
FEW_ADDED = (ADD_UP, ADD_UP.replace("16_384", "15"))
FEWER_STEPS = ("range(200)", "range(20)")
ONE_STEP = ("range(200)", "range(1)")
LARGE_FIRST_SCALE = ('("cpu")', '("cpu", init_scale=2.0**20)')
SMALL_FIRST_SCALE = ('("cpu")', '("cpu", init_scale=2.0**10)')

TRIED_LOOP = Tried(
    right=(loop(SAME_NORM), loop(IN_FP64), loop(LARGE_FIRST_SCALE)),
    wrong=(
        (loop(FEWER_STEPS), "20 losses, and 200 are wanted"),
        (loop(ONE_STEP), "1 losses, and 200 are wanted"),
        (loop(("scaler.scale(", "scaler.scal(")), "has no attribute 'scal'"),
        (loop(("loss.item()", "loss.items()")), "has no attribute 'items'"),
        (loop(SMALL_FIRST_SCALE), " % of the first gradients are 0."),
        (loop((HEAD, HEAD + NEW_SCALER), letter="E"), "Make one, before the loop."),
    ),
)
TRIED: dict[Check, Tried] = {
    check.master_step: Tried(
        right=(master_by_addcmul,),
        wrong=(
            (master_in_place, "make a new one"),
            (copy_cut_off, "Round it to the nearest"),
            (master_twice_updated, "and should be"),
            (update_alone, "gave as the first of 2"),
            (copy_in_fp32, "torch.float32; expected torch.bfloat16."),
        ),
    ),
    check.updated_scale: Tried(right=(scaler,)),
    check.recipe: Tried(wrong=((recipe_of_two_formats, "A name can have other formats"),)),
    check.mended_c: Tried(
        right=(loop(IN_BF16, NO_SCALE), loop(SAME_NORM)),
        wrong=(
            (loop(FEWER_STEPS), "20 losses, and 200 are wanted"),
            (loop((CLIP, "")), "no longer clips to 0.2"),
            (loop((UNSCALE, "")), "of norm 3.1e-06: they are clipped while the scale is still on."),
            (loop(NO_AUTOCAST), "products are in fp32"),
            (loop(("lr=0.5", "lr=1.0"), letter="B"), "of the last updates are lost"),
            (loop(NO_CACHE, letter="A"), "34 % of the first"),
            (loop(("lr=0.5", "lr=50.0"), letter="D"), "Which line makes it"),
            (loop(IN_FP16), "Which line makes it"),
            (loop((STEP, "")), "made no step"),
            (loop(("lr=0.5", "lr=0.0005")), "The loss ends at"),
            (loop((ADD_UP, "")), "of norm 5.2e-06: those of one micro-batch."),
            (loop(FEW_ADDED), "Which line makes it other than that?"),
        ),
    ),
    check.mended_a: TRIED_LOOP,
    check.mended_b: TRIED_LOOP,
    check.mended_d: TRIED_LOOP,
    check.mended_e: TRIED_LOOP,
}
