"""The exercises of notebook 01 on scales: one for a tensor, one for a block."""

import math
import random
from collections.abc import Callable, Iterator

import torch

from course_utils.checks.judging import Answers, NotYetError, call, function, objection
from course_utils.checks.judging.agreement import is_number, plain
from course_utils.checks.judging.sentences import NO_NUMBER, advice_on_kind, name_of, shown, stopped


@objection("The largest magnitude lands on 448, so nothing overflows and no exponent is wasted.")
def scale_for_e4m3(answer: Callable[[torch.Tensor], object]) -> None:
    """A reader's scale for a tensor, judged by what E4M3 stores of the scaled tensor."""
    for name, x in _tensors():
        scale, error = call(answer, x)
        said = f"{name_of(answer)} {stopped(answer, error)}" if error else _beside_the_limit(x, scale)
        if said:
            advice = f" {ZEROS}" if error and not x.any() else ""
            raise NotYetError(f"On {name}, {said}{advice}")


def _tensors() -> Iterator[tuple[str, torch.Tensor]]:
    normal = torch.randn(4096, generator=torch.Generator().manual_seed(0))
    yield "small gradients (normal, 1e-3)", normal * 1e-3
    yield "large activations (normal, 1e4)", normal * 1e4
    yield "one huge negative outlier", torch.cat([normal, torch.tensor([-5000.0])])
    yield "a tensor of zeros", torch.zeros(8)


ZEROS = "A tensor of zeros needs a scale too: any number that can be divided by again."
OTHER_LIMITS = {
    240: "That is the limit of another E4M3, which has infinities.",
    256: "That is a power of two, and not the largest number.",
    57_344: "That is E5M2's limit.",
    65_504: "That is fp16's limit.",
}


def _beside_the_limit(x: torch.Tensor, came: object) -> str:
    """Why it is no scale, or where the largest magnitude lands if not on 448; else an empty string."""
    largest, scale = x.double().abs().max().item(), plain(came)
    if not is_number(scale):
        return f"it gave {shown(came)}. {advice_on_kind(came, 1.0)}"
    if scale == 0 or not abs(scale) < 1e300:
        no_number = NO_NUMBER if scale != scale else "A scale is a finite number above 0."
        return f"the scale is {shown(scale)}. {no_number if largest else ZEROS}"
    if scale < 0:
        return f"the scale is {scale:.4g}, and changes every sign. Take the largest magnitude."
    if math.isclose(scale, largest / 448, rel_tol=1e-6):
        return "that is the inverse: the number to divide by. What is wanted is the number to multiply by."
    scaled = largest * scale
    for limit, words in OTHER_LIMITS.items():
        if math.isclose(scaled, limit, rel_tol=1e-6):
            return f"the largest scaled magnitude is {limit:,}. {words} E4M3 goes to 448."
    if scaled == 0 or 447 <= scaled <= 448 * (1 + 1e-6):
        return ""
    advice = ", beyond E4M3's 448. Did you take the largest magnitude?"
    if scaled <= 464 * (1 + 1e-6):
        advice = ". Up to 464 it is rounded to 448, and nothing is gained. Let it land on 448 itself."
    if scaled < 447:
        advice = ": there is room up to 448, and the small values need it."
    return f"the largest scaled magnitude is {scaled:.4g}{advice}"


def _blocks() -> Iterator[tuple[list[float]]]:
    """Blocks with a power of two, with another number, with one below zero, with small ones, and with 32 drawn numbers."""
    draw = random.Random(0)
    yield from (([256.0, 1.0],), ([1.0, 3.0, 0.1],), ([-500.0, 7.0],), ([3e-8, 1e-9],))
    yield ([draw.gauss(0, 1e-3) for _ in range(32)],)


@function(_blocks)
def shared_scale(block: list[float]) -> Answers:
    """A reader's scale(block): the power of two that OCP's rule gives a block of E4M3."""
    largest = max(map(abs, block))
    power = -127
    while 2.0 ** (power + 1) <= largest:
        power += 1
    right = 2.0 ** (power - 8)
    yield right, "The largest magnitude's power of two, divided by 2^8, where E4M3's largest numbers begin."
    yield largest / 448, "E8M0 has no fraction: the scale is a power of two."
    by_448 = 448 / largest
    yield by_448, "You multiply by that before storing. The scale multiplies what is stored."
    yield largest / 256, "Divide the largest's power of two, not the largest itself."
    yield power - 8.0, "That is the exponent: 2 to that power."
    too_high = 2.0**power
    yield too_high, "With that scale the largest becomes 1 to 2. E4M3's powers of two go up to 2^8."
    up = largest > 2.0**power
    yield 2.0 ** (power + up - 8), "OCP's rule rounds the exponent down. Yours loses small numbers sooner."
    yield 2.0 ** (8 - power), "That is the inverse, for storing. The scale multiplies what is stored."
    of_highest = 2.0 ** (math.floor(math.log2(max(block))) - 8)
    yield of_highest, "Take the largest magnitude: a block's largest number may be below zero."
