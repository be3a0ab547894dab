"""Answers to the exercises of notebook 07."""

import inspect
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from course_utils.chapters.accountant import OPTIMIZER_NUMBERS
from course_utils.chapters.mixed_precision import check, repair
from course_utils.core import accountant, floats
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


def copy_with_update_added(master, update):
    return master + update, master.bfloat16() + update


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


def moves_by_spacing(weight, update):
    """Another right way: the course's own gaps, and the tie by the last bit of the pattern."""
    half = floats.spacing(weight, "bf16") / 2
    return update > half or (update == half and floats.encode(weight, "bf16") % 2 == 1)


def moves_by_doubling(weight, update):
    """Another right way: a loop that looks for the gap."""
    gap = 2.0**-7
    while weight >= gap * 256:
        gap *= 2
    while weight < gap * 128:
        gap /= 2
    return round(weight / gap + update / gap) * gap != weight


def moves_by_frexp(weight, update):
    """Another right way, with a tensor's answer: the sum, rounded to 8 significant bits."""
    total = torch.tensor(weight + update, dtype=torch.float64)
    significand, exponent = torch.frexp(total)
    return torch.ldexp((significand * 256).round(), exponent - 8) != weight


def moves_by_cast(weight, update):
    return (torch.tensor(weight + update).bfloat16() != weight).item()


def moves_at_an_odd_tie_only(weight, update):
    gap = 2.0 ** (math.floor(math.log2(weight)) - 7)
    return update > gap / 2 or weight / gap % 2 == 1


def scale_by_halving(largest):
    """Another right way: a loop from above, with integers where it can."""
    n = 60
    while 2**n * largest >= 65_520:
        n -= 1
    return 2**n


def scale_by_casting(largest):
    """Another right way: what the cast itself says."""
    scales = 2.0 ** torch.arange(-30, 60, dtype=torch.float64)
    finite = (scales * largest).half().isfinite()
    return scales[finite].max()


def scale_by_frexp(largest):
    """Another right way, with NumPy."""
    _, exponent = np.frexp(np.float64(largest))
    scale = np.ldexp(1.0, 17 - exponent)
    with np.errstate(over="ignore"):
        while np.isinf(np.float16(scale * largest)):
            scale /= 2
    return scale


def scale_by_loop(history, length):
    """Another right way."""
    largest = 0
    for step, magnitude in enumerate(history):
        if step >= len(history) - length:
            largest = max(largest, magnitude)
    return (1 / largest) * 448


def scale_by_torch(history, length):
    """Another right way, in fp32."""
    limit = torch.finfo(torch.float8_e4m3fn).max
    return limit / torch.tensor(history)[-length:].amax()


def scale_by_sorting(history, length):
    """Another right way, which copies before it changes anything."""
    newest_first = list(history)[::-1]
    return torch.tensor(448.0) / sorted(newest_first[:length])[-1]


def chance_in_python(x, draws):
    """Another right way: one number after the other, by its share of the gap."""
    rounded = []
    for number, draw in zip(x.flatten().tolist(), draws.flatten().tolist(), strict=True):
        gap = 2.0 ** (math.floor(math.log2(abs(number))) - 7)
        whole, share = divmod(abs(number) / gap, 1)
        rounded.append(math.copysign((whole + (share + draw / 65_536 >= 1)) * gap, number))
    return torch.tensor(rounded, dtype=torch.bfloat16).reshape(x.shape)


def chance_by_comparison(x, draws):
    """Another right way: the two neighbours, and a choice between them."""
    bits = x.view(torch.int32)
    near = bits & -65_536
    far = near + 65_536
    chosen = torch.where(bits - near + draws > 65_535, far, near)
    return chosen.view(torch.float32).to(torch.bfloat16)


def chance_by_shifting(x, draws):
    """Another right way: int64, and the 16 bits alone."""
    bits = (x.view(torch.int32).long() + draws) >> 16
    return bits.to(torch.int16).view(torch.bfloat16)


def chance_in_place(x, draws):
    bits = x.view(torch.int32)
    bits += draws
    return (bits & ~0xFFFF).view(torch.float32).bfloat16()


def chance_in_fp32(x, draws):
    """Right, too: all its numbers are those of bf16."""
    return ((x.view(torch.int32) + draws) & ~0xFFFF).view(torch.float32)


def noise_in_fp32(x, draws):
    return (x.view(torch.int32) + draws).view(torch.float32)


def chance_as_integers(x, draws):
    return ((x.view(torch.int32) + draws) & ~0xFFFF).bfloat16()


def chance_flattened(x, draws):
    return chance_by_comparison(x, draws).flatten()


def chance_with_own_draws(x, draws):
    own = torch.randint(2**16, x.shape, generator=torch.Generator().manual_seed(1))
    return chance_by_comparison(x, own.int())


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
FIXED_FACTOR = ("max_norm=0.2", "max_norm=0.2 * 65_536")
FEWER_STEPS = ("range(200)", "range(20)")
ONE_STEP = ("range(200)", "range(1)")
LARGE_FIRST_SCALE = ('("cpu")', '("cpu", init_scale=2.0**20)')
SMALL_FIRST_SCALE = ('("cpu")', '("cpu", init_scale=2.0**10)')


def blocks_by_torch(shape, block, number_bits, scale_bits):
    """Count the scales as those of a pooled matrix."""
    x = torch.zeros(1, 1, *shape)
    scales = functional.max_pool2d(x, block, ceil_mode=True).numel()
    return (x.numel() * number_bits + scales * scale_bits) / 8


def blocks_in_a_loop(shape, block, number_bits, scale_bits):
    bits = 0
    for top in range(0, shape[0], block[0]):
        for left in range(0, shape[1], block[1]):
            height = min(block[0], shape[0] - top)
            width = min(block[1], shape[1] - left)
            bits += height * width * number_bits + scale_bits
    return bits / 8


def blocks_that_are_full(shape, block, number_bits, scale_bits):
    scales = (shape[0] // block[0]) * (shape[1] // block[1])
    return (math.prod(shape) * number_bits + scales * scale_bits) / 8


def blocks_across_rows(shape, block, number_bits, scale_bits):
    """As if a block went on in the next row."""
    numbers = math.prod(shape)
    return (numbers * number_bits + math.ceil(numbers / math.prod(block)) * scale_bits) / 8


def blocks_in_bits(shape, block, number_bits, scale_bits):
    return 8 * blocks_in_a_loop(shape, block, number_bits, scale_bits)


def blocks_without_scales(shape, block, number_bits, scale_bits):
    return math.prod(shape) * number_bits / 8


def blocks_with_many_scales(shape, block, number_bits, scale_bits):
    return math.prod(shape) * (number_bits + scale_bits) / 8


def blocks_on_average(shape, block, number_bits, scale_bits):
    return math.prod(shape) * (number_bits + scale_bits / math.prod(block)) / 8


TRIED_LOOP = Tried(
    right=(loop(SAME_NORM), loop(IN_FP64), loop(LARGE_FIRST_SCALE)),
    wrong=(
        (loop(FEWER_STEPS), "20 losses, and 200 are wanted"),
        (loop(ONE_STEP), "1 losses, and 200 are wanted"),
        (loop(("scaler.scale(", "scaler.scal(")), "has no attribute 'scal'"),
        (loop(("loss.item()", "loss.items()")), "has no attribute 'items'"),
        (loop(SMALL_FIRST_SCALE), " % of the first gradients are 0."),
        (loop((HEAD, HEAD + NEW_SCALER), letter="E"), "Make a single one, before the loop."),
    ),
)
TRIED_LOOP_A = Tried(
    right=TRIED_LOOP.right,
    wrong=(*TRIED_LOOP.wrong, (loop(IN_BF16, letter="A"), "leave autocast in fp16")),
)


def recipe_without_a_comma(name):
    return accountant.recipe(name) | {"parameters": accountant.recipe(name)["parameters"][0]}


def recipe_of_words(name):
    right = accountant.recipe(name)
    _, _, gradients = name.partition(", ")
    return right | {"gradients": (gradients,) if gradients else right["gradients"]}


TRIED: dict[Check, Tried] = {
    check.master_step: Tried(
        right=(master_by_addcmul,),
        wrong=(
            (master_in_place, "make a new one"),
            (copy_cut_off, "Round it to the nearest"),
            (master_twice_updated, "instead of 1.01; copy ✓."),
            (update_alone, "gave master[0]: 0.002 instead of 1; copy[0]: "),
            (copy_in_fp32, "master ✓; copy: torch.float32 instead of torch.bfloat16."),
            (copy_with_update_added, "Add the update to the master"),
        ),
    ),
    check.updated_scale: Tried(right=(scaler,)),
    check.moves: Tried(
        right=(moves_by_spacing, moves_by_doubling, moves_by_frexp),
        wrong=(
            (moves_by_cast, "A cast measures it"),
            (lambda weight, update: floats.stored(weight + update, "bf16") != weight, "A cast"),
            (lambda weight, update: weight + update, "expected False"),
            (lambda weight, update: True, "the sum may be the weight again"),
            (moves_at_an_odd_tie_only, "decides only where"),
            (lambda weight, update: update > 2**-8 * weight, "from one power of two to the next"),
        ),
    ),
    check.loss_scale: Tried(
        right=(scale_by_halving, scale_by_casting, scale_by_frexp),
        wrong=(
            (lambda largest: 2.0 ** round(math.log2(65_504 / largest)), "expected 32,768."),
            (lambda largest: 65_536, "expected 32,768."),
            (lambda largest: 65_519 / largest, "gave 65,519; expected 32,768."),
            (lambda largest: f"2**{15}", "expected 32,768"),
            (lambda largest: largest.scale, "AttributeError"),
        ),
    ),
    check.delayed_scale: Tried(
        right=(scale_by_loop, scale_by_torch, scale_by_sorting),
        wrong=(
            (lambda history, length: max(history[-length:]), "expected 56"),
            (lambda history, length: 448 / max(history[:-1][-length:]), "one too old"),
            (lambda history, length: 448 / sorted(history)[-length], "Do not sort all of them"),
            (lambda history, length: 240 / max(history[-length:]), "expected 56"),
            (lambda history, length: [448 / m for m in history[-length:]], "expected 56"),
            (lambda history, length: 448 / max(history.pop() for _ in range(length)), "in place"),
        ),
    ),
    check.rounded_by_chance: Tried(
        right=(chance_in_python, chance_by_comparison, chance_by_shifting, chance_in_fp32),
        wrong=(
            (chance_in_place, "Change nothing in place"),
            (noise_in_fp32, "[4] is -255.3, and should be -255."),
            (chance_as_integers, "and should be"),
            (chance_flattened, "shape"),
            (chance_with_own_draws, "and should be"),
            (lambda x, draws: x[0].item(), "tensor"),
        ),
    ),
    check.bytes_in_blocks: Tried(
        right=(blocks_by_torch, blocks_in_a_loop),
        wrong=(
            (blocks_that_are_full, "A block at an edge has a scale, too"),
            (blocks_across_rows, "A block ends at the edge of the matrix"),
            (blocks_in_bits, "Those are bits"),
            (blocks_without_scales, "Each block has a scale, too"),
            (blocks_with_many_scales, "and not for each number"),
            (blocks_on_average, "expected"),
        ),
    ),
    check.recipe: Tried(
        wrong=(
            (recipe_of_two_formats, "A name can have other formats"),
            (recipe_without_a_comma, "A tuple of one dtype has a comma"),
            (recipe_of_words, "That is a word of the name"),
        ),
    ),
    check.mended_c: Tried(
        right=(loop(IN_BF16, NO_SCALE), loop(SAME_NORM)),
        wrong=(
            (loop(FEWER_STEPS), "20 losses, and 200 are wanted"),
            (loop((CLIP, "")), "no longer clips to 0.2"),
            (loop((UNSCALE, "")), "of norm 3.1e-06: they are clipped while the scale is still on."),
            (loop(NO_AUTOCAST), "products are in fp32"),
            (loop(("lr=0.5", "lr=1.0"), letter="B"), "of the last updates are lost"),
            (loop(NO_CACHE, letter="A"), "34 % of the first"),
            (loop(("lr=0.5", "lr=50.0"), letter="D"), "Which line changes it?"),
            (loop(IN_FP16), "Which line changes it?"),
            (loop((STEP, "")), "made no step"),
            (loop(("lr=0.5", "lr=0.0005")), "The loss ends at"),
            (loop((ADD_UP, "")), "of norm 5.2e-06: those of one micro-batch."),
            (loop(FEW_ADDED), "Which line changes it?"),
            (loop(FIXED_FACTOR, letter="C"), "The scale changes during a run: unscale first"),
            (loop(("yield loss.item()", "pass")), "the last line, yield, is missing."),
        ),
    ),
    check.mended_a: TRIED_LOOP_A,
    check.mended_b: Tried(
        right=TRIED_LOOP.right,
        wrong=(
            *TRIED_LOOP.wrong,
            (loop(("bfloat16()", "half()"), letter="B"), "Which line casts the weights?"),
        ),
    ),
    check.mended_d: TRIED_LOOP,
    check.mended_e: TRIED_LOOP,
}
