"""Answers to the exercises of notebook 01."""

import math
import struct
from fractions import Fraction

import numpy as np
import torch

from course_utils.chapters.floats import check
from tests.engine.tried import Check, Tried


def scale_to(limit):
    def scale(x):
        if not x.any():
            return 1.0
        return limit / x.abs().max().item()

    return scale


def power_of_two_scale(x):
    return 2.0 ** math.floor(math.log2(448 / x.abs().max())) if x.any() else 1.0


def scale_by_numpy(x):
    largest = np.abs(x.numpy()).max()
    return np.float32(448) / largest if largest else np.float32(1)


def scale_by_largest(x):
    """As if no number were below zero."""
    return 448 / max(x.max().item(), 1e-9)


def scale_by_smallest(x):
    """As if no number were above zero."""
    return 448 / max(-x.min().item(), 1e-9)


def by_digits(bits, exponent_bits, fraction_bits):
    digits = f"{bits:0{1 + exponent_bits + fraction_bits}b}"
    sign = int(digits[0])
    exponent = int(digits[1 : 1 + exponent_bits], base=2)
    bias = 2 ** (exponent_bits - 1) - 1
    significand = 1
    worth = 1
    for digit in digits[1 + exponent_bits :]:
        worth /= 2
        significand += int(digit) * worth
    return (-1) ** sign * significand * 2.0 ** (exponent - bias)


def ends_as_tuple(exponent_bits, fraction_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    step = 1 / 2**fraction_bits
    smallest = 2.0 ** (1 - bias) * step
    largest = (2 - step) * 2.0**bias
    return smallest, largest


def decode_by_cases(bits, exponent_bits, fraction_bits):
    digits = f"{bits:0{1 + exponent_bits + fraction_bits}b}"
    minus = "-" if digits[0] == "1" else ""
    exponent = int(digits[1 : 1 + exponent_bits], base=2)
    fraction = Fraction(int(digits[1 + exponent_bits :], base=2), 2**fraction_bits)
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 2 * bias + 1:
        return float("nan") if fraction else float(f"{minus}inf")
    if exponent == 0:
        return float(f"{minus}{float(fraction * Fraction(2) ** (1 - bias))!r}")
    return float(f"{minus}{float((1 + fraction) * Fraction(2) ** (exponent - bias))!r}")


def decode_by_torch(bits, exponent_bits, fraction_bits):
    if fraction_bits == 2:
        return torch.tensor(bits, dtype=torch.uint8).view(torch.float8_e5m2).double()
    dtype = torch.float16 if exponent_bits == 5 else torch.bfloat16
    return torch.tensor(bits).to(torch.int16).view(dtype).double()


def decode_without_minus_zero(bits, exponent_bits, fraction_bits):
    return decode_by_cases(bits, exponent_bits, fraction_bits) or 0


def decode_with_an_integer_fraction(bits, exponent_bits, fraction_bits):
    """-1 times the integer 0 is 0, so the sign of zero is lost."""
    sign = bits >> (exponent_bits + fraction_bits)
    fraction = bits & (2**fraction_bits - 1)
    if bits >> fraction_bits & (2**exponent_bits - 1) == 0:
        bias = 2 ** (exponent_bits - 1) - 1
        return (-1) ** sign * fraction / 2**fraction_bits * 2.0 ** (1 - bias)
    return decode_by_cases(bits, exponent_bits, fraction_bits)


def decode_with_bias_15(bits, exponent_bits, fraction_bits):
    """As if every format had fp16's bias."""
    came = decode_by_cases(bits, exponent_bits, fraction_bits)
    return came * 2.0 ** (2 ** (exponent_bits - 1) - 1 - 15)


def decode_without_minus_infinity(bits, exponent_bits, fraction_bits):
    came = decode_by_cases(bits, exponent_bits, fraction_bits)
    return math.inf if came == -math.inf else came


def stop_by_doubling(fraction_bits, number):
    stop = 2.0 ** (fraction_bits + 1)
    while stop / 2 ** (fraction_bits + 1) < number:
        stop *= 2
    while stop / 2 ** (fraction_bits + 2) >= number:
        stop /= 2
    return stop


def stop_as_fraction(fraction_bits, number):
    return Fraction(2) ** (fraction_bits + 1 + math.ceil(math.log2(number)))


def stop_by_torch(fraction_bits, number):
    return 2.0 ** torch.tensor(number).log2().ceil() * 2 ** (fraction_bits + 1)


def stop_by_frexp(fraction_bits, number):
    """frexp's significand is at least a half and below 1, so only a power of two is one too far."""
    significand, exponent = math.frexp(number)
    if significand == 0.5:
        exponent -= 1
    return np.float64(2) ** (fraction_bits + 1 + exponent)


def is_nan(bits):
    return bits & 0x7FFFFFFF > 0x7F800000


def bf16_by_remainder(bits):
    kept, lost = divmod(bits, 2**16)
    if is_nan(bits):
        return kept | 0x40
    if lost > 0x8000 or (lost == 0x8000 and kept % 2 == 1):
        kept += 1
    return kept


def bf16_by_torch(bits):
    (x,) = struct.unpack("<f", struct.pack("<I", bits))
    return torch.tensor(x).bfloat16().view(torch.int16).int() & 0xFFFF


def bf16_as_float(bits):
    return float(bf16_by_remainder(bits))


def bf16_with_one_nan(bits):
    return np.uint16(0x7FFF if is_nan(bits) else bf16_by_remainder(bits))


def bf16_by_last_bit(bits):
    """It looks at the last of 32 bits, where it should look at the last one that is kept."""
    return bits >> 16 | 0x40 if is_nan(bits) else (bits + 0x7FFF + (bits & 1)) >> 16


def bf16_without_nan(bits):
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def bf16_with_infinity_as_nan(bits):
    return 0x7FC0 if bits >> 23 & 0xFF == 0xFF else bf16_by_remainder(bits)


def bf16_with_each_negative_as_nan(bits):
    return bits >> 16 | 0x40 if bits > 0x7F800000 else bf16_by_remainder(bits)


def bf16_with_each_negative_as_one_nan(bits):
    return 0x7FC0 if bits > 0x7F800000 else bf16_by_remainder(bits)


def bf16_up(bits):
    return (bits >> 16) + 1


def scale_of_block_by_loop(block):
    largest = max(abs(x) for x in block)
    scale = 2.0**-140
    while scale * 512 <= largest:
        scale *= 2
    return scale


def scale_of_block_by_torch(block):
    return 2.0 ** (torch.tensor(block).abs().max().log2().floor() - 8)


def scale_of_block_by_numpy(block):
    return np.exp2(np.floor(np.log2(np.abs(block).max())) - 8)


def scale_of_block_without_saturation(block):
    """Mishra et al.'s rule."""
    return 2.0 ** math.ceil(math.log2(max(map(abs, block)) / 448))


def scale_of_block_rounded(block):
    """It takes the nearest power of two, and not the one below."""
    return 2.0 ** (round(math.log2(max(map(abs, block)))) - 8)


TRIED: dict[Check, Tried] = {
    check.by_formula: Tried(
        right=(by_digits,),
        wrong=(
            (lambda bits, e, m: "1.0", "One plain number is wanted"),
            (
                lambda bits, e, m: 1.0,
                "For the bits 0 01101 0100000000 (sign, exponent, fraction), your function gave 1;",
            ),
        ),
    ),
    check.ends: Tried(
        right=(ends_as_tuple, lambda e, m: list(ends_as_tuple(e, m))),
        wrong=(
            (
                lambda e, m: ends_as_tuple(e, m)[1],
                "gave largest alone. Return both: smallest and largest.",
            ),
            (
                lambda e, m: ends_as_tuple(5, 10),
                "For 5 exponent bits and 2 fraction bits, your function gave",
            ),
        ),
    ),
    check.scale_for_e4m3: Tried(
        right=(
            scale_to(448),
            scale_by_numpy,
            lambda x: 448 / x.abs().max().clamp(min=1e-30),
        ),
        wrong=(
            (lambda x: x.abs().max() / 448, "the number to divide by"),
            (lambda x: -448 / x.abs().max(), "changes every sign"),
            (lambda x: 448 / x.abs().max(), "of zeros needs a scale too"),
            (lambda x: 448 / x.abs().max().item(), "of zeros needs a scale too"),
            (scale_by_largest, "the largest magnitude"),
            (scale_by_smallest, "may be above it"),
            (lambda x: 448 / -x.min() if x.any() else 1.0, "may be above it"),
            (lambda x: 448 / x.std() if x.any() else 1.0, "; expected "),
            (scale_to(464), "for only 3 % more room below"),
            (scale_to(65_504), "fp16's limit"),
            (scale_to(57_344), "E5M2's limit"),
            (scale_to(240), "other kinds of E4M3"),
            (scale_to(256), "its largest number is 448"),
            (power_of_two_scale, "A power of two rounds nothing"),
            (lambda x: 448 / x.abs().max() if x.any() else 0, "of zeros needs a scale too"),
            (lambda x: 1.0, "depends on the tensor"),
            (lambda x: 448 / x.abs_().max(), "Change nothing in place"),
            (lambda x: 448 / x.abs(), "One plain number"),
        ),
    ),
    check.spelled: Tried(
        right=(
            "0b1100011010000000",
            "1_10001_1010000000",
            "1100 0110 1000 0000",
            "  1 10001 1010000000\n",
            f"{0xC680:b}",
        ),
        wrong=(
            ("0 10001 1010000000", "The first bit is the sign"),
            ("1 10001 101", "16 bits are wanted, 1 + 5 + 10; yours are 9."),
            ("", "yours are 0."),
            ("1 00010 1010000000", "The exponent field holds the exponent plus the bias"),
            ("1 01111 1010000000", "Add the exponent, 2."),
            (-6.5, "as a string, in quotes"),
            (0b1100011010000000, "as a string, in quotes"),
            ("1 00110 1000000000", "is not it. Wanted: 16 bits"),
        ),
    ),
    check.decoded: Tried(
        right=(decode_by_cases, decode_by_torch, lambda *case: np.float32(decode_by_cases(*case))),
        wrong=(
            (decode_without_minus_zero, "Zero has a sign, too"),
            (decode_with_an_integer_fraction, "divide before you multiply by the sign"),
            (decode_with_bias_15, "15 is the bias of 5 exponent bits"),
            (decode_without_minus_infinity, "Infinity has a sign, too"),
            (by_digits, "drops the leading 1, and one of all ones is no number"),
        ),
    ),
    check.stall: Tried(
        right=(
            stop_by_doubling,
            stop_as_fraction,
            stop_by_torch,
            stop_by_frexp,
            lambda *case: int(stop_by_doubling(*case)) or stop_by_doubling(*case),
        ),
        wrong=(
            (lambda fraction_bits, number: 256, "expected 2,048."),
            (lambda fraction_bits, number: 2 ** (fraction_bits + 1), "is right for ones"),
            (lambda fraction_bits, number: 2**fraction_bits, "gave 128; expected 256."),
            (lambda f, x: 2.0 ** (f + 1 + math.log2(x)), "gave 768; expected 1,024."),
            (lambda f, x: 2.0 ** (f + 1 + int(math.log2(x))), "Round the exponent up"),
            (lambda f, x: 2.0 ** (f + 1 + round(math.log2(x))), "Round the exponent up"),
            (lambda f, x: stop_by_doubling(f, x) / x, "expected 128"),
        ),
    ),
    check.bf16_by_integers: Tried(
        right=(bf16_by_remainder, bf16_by_torch, bf16_as_float, bf16_with_one_nan),
        wrong=(
            (bf16_by_last_bit, "gave 0x3f81; expected 0x3f82."),
            (bf16_without_nan, "0x7F800001, for example, becomes infinity"),
            (bf16_with_infinity_as_nan, "gave 0x7fc0; expected 0x7f80."),
            (bf16_with_each_negative_as_nan, "Take the sign away first"),
            (bf16_with_each_negative_as_one_nan, "Take the sign away first"),
            (bf16_up, "expected 0x3f80."),
            (lambda bits: bits / 65_536, "One integer is wanted"),
            (lambda bits: hex(bf16_by_remainder(bits)), "One plain number is wanted"),
        ),
    ),
    check.shared_scale: Tried(
        right=(
            scale_of_block_by_loop,
            scale_of_block_by_torch,
            scale_of_block_by_numpy,
            lambda block: 2.0 ** (math.frexp(max(map(abs, block)))[1] - 9),
            lambda block: 2.0 ** math.floor(math.log2(max(map(abs, block)) / 256)),
        ),
        wrong=(
            (lambda block: 1.0, "expected 0.00781"),
            (lambda block: block, "One plain number is wanted"),
            (lambda block: 2.0 ** (math.frexp(max(block))[1] - 9), "may be below it"),
            (lambda block: 2.0 ** (math.frexp(max(map(abs, block)))[1] - 8), "it is 9 for 256"),
            (scale_of_block_rounded, "expected 0.0078125."),
            (scale_of_block_without_saturation, "That is Mishra et al.'s rule"),
        ),
    ),
}
