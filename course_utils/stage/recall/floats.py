"""Questions of notebook 1: what a number costs, and what it keeps."""

import math

from course_utils.core import accountant, floats
from course_utils.core.predict import rounding_edges
from course_utils.core.say import in_words, number_text
from course_utils.stage.recall.question import Asked, Mistake, Question

ADDED_BITS = 8  # of a block's scale


def _stops(fraction_bits: int) -> Asked:
    stop = 2 ** (fraction_bits + 1)
    return Asked(
        f"A number format has {fraction_bits} fraction bits. A running sum is kept in it, and ones "
        "are added, one after the other. At which number does the sum stop growing?",
        answer=stop,
        derivation=f"From 2^{fraction_bits + 1} = {stop:,} on, neighbours are 2 apart. A one is "
        "half of that gap, and the tie goes to the even neighbour, which is the sum as it was.",
        mistakes=(
            Mistake(
                stop // 2,
                "From there on the gap is 1, so a one still arrives. It is lost where the gap is "
                "2, one power of two later.",
            ),
        ),
    )


def _matrices(rows: int, columns: int, count: int, dtype: str) -> Asked:
    each = accountant.BYTES[dtype]
    gigabytes = count * accountant.tensor_bytes((rows, columns), dtype) / 1e9
    return Asked(
        f"How many GB do {count} matrices of {rows:,} × {columns:,} numbers take in {dtype}?",
        answer=gigabytes,
        unit="GB",
        derivation=f"{count} × {rows:,} × {columns:,} numbers, each of {each} "
        f"{'byte' if each == 1 else 'bytes'}, are {in_words(gigabytes, 'GB')}.",
        mistakes=(
            Mistake(gigabytes / each, f"A number in {dtype} takes {each} bytes, not 1."),
            Mistake(
                8 * gigabytes, f"{8 * each} is the number of bits in {dtype}. A byte has 8 of them."
            ),
        ),
    )


def _largest(exponent_bits: int, fraction_bits: int) -> Asked | None:
    if fraction_bits > 2 * exponent_bits - 2:
        return None  # the largest number would look like a power of two
    bias = 2 ** (exponent_bits - 1) - 1
    significand = 2 - 2.0**-fraction_bits
    largest = significand * 2**bias
    return Asked(
        f"A format has {exponent_bits} exponent bits and {fraction_bits} fraction "
        f"{'bit' if fraction_bits == 1 else 'bits'}. As in fp16, the "
        "largest exponent field is kept for infinity and NaN. What is its largest number?",
        answer=largest,
        derivation=f"The bias is 2^{exponent_bits - 1} - 1 = {bias}, and the largest exponent is "
        f"{bias}, too. With all fraction bits set, (2 - 2^-{fraction_bits}) × 2^{bias} = "
        f"{number_text(largest)}.",
        mistakes=(
            Mistake(
                2 * largest,
                "The largest exponent field stands for infinity and NaN, so the largest number has "
                "the field before it.",
            ),
            Mistake(
                2**bias,
                "The largest number has all its fraction bits set, which makes its significand "
                "nearly 2.",
            ),
        ),
    )


def _gap(fmt: str, x: int) -> Asked | None:
    form = floats.FORMATS[fmt]
    if x >= form.max or floats.stored(x, fmt) != x:
        return None
    power = math.floor(math.log2(x))
    gap = floats.spacing(x, fmt)
    return Asked(
        f"How large is the gap between {x:,} and the next larger number in {form.label}?",
        answer=gap,
        derivation=f"{form.label} has {form.fraction_bits} fraction bits, and {x:,} lies between "
        f"2^{power} and 2^{power + 1}. So the gap is 2^({power} - {form.fraction_bits}) = "
        f"{number_text(gap)}.",
        mistakes=(
            Mistake(form.epsilon, "That is the gap at 1. It doubles with each power of two."),
            Mistake(gap / 2, "That is half of the gap: the largest error of rounding."),
        ),
    )


def _pattern(sign: int, exponent: int, eighths: int) -> Asked:
    fraction = 16 * eighths  # of bf16's 7 fraction bits, only the first three are set
    value = floats.decode(sign << 15 | exponent << 7 | fraction, "bf16")
    significand = 1 + eighths / 8
    without_one = (-1) ** sign * (significand - 1) * 2.0 ** (exponent - 127)
    return Asked(
        f"A number in bf16 has the sign bit {sign}, the exponent field {exponent} and the fraction "
        f"bits {fraction:07b}. What is its value?",
        answer=value,
        derivation=f"(-1)^{sign} × (1 + {fraction}/128) × 2^({exponent} - 127) = "
        f"(-1)^{sign} × {significand:g} × 2^{exponent - 127} = {number_text(value)}.",
        mistakes=(
            Mistake(without_one, "A normal number has a leading one, which is not stored."),
            Mistake(-value, "The sign bit is 1 for a number below 0, and 0 for one above."),
            Mistake(value / 2, "The bias of 8 exponent bits is 2^7 - 1 = 127, not 128."),
        ),
    )


def _vanishes(vocabulary: int) -> Asked:
    zero_to = rounding_edges("fp16").zero_to  # half of fp16's smallest number, 2^-25
    tokens = math.ceil(1 / (vocabulary * zero_to))
    return Asked(
        f"A vocabulary has {vocabulary:,} entries, which a model thinks equally probable before it "
        "is trained. From how many tokens in a batch on does fp16 round the gradient of a wrong "
        "word's logit to 0?",
        answer=tokens,
        unit="tokens",
        derivation="The gradient is p / B, with p = 1 / V. fp16 rounds to 0 what is at most "
        f"2^-25, half of its smallest number. So B is 2^25 / {vocabulary:,}, rounded up: "
        f"{in_words(tokens, 'tokens')}.",
        mistakes=(
            Mistake(
                tokens / 2,
                "A gradient between 2^-25 and 2^-24 is rounded up to 2^-24, the smallest number.",
            ),
            Mistake(
                2**14 / vocabulary,
                "2^-14 is fp16's smallest normal number. The subnormal ones go down to 2^-24.",
            ),
        ),
    )


def _blocks(billions: int, block: int) -> Asked:
    bits = 4 + ADDED_BITS / block
    gigabytes = billions * bits / 8
    return Asked(
        f"The weights of a model of {billions} billion parameters are stored in 4 bits each. Each "
        f"block of {block} weights shares a scale of {ADDED_BITS} bits. How many GB is that?",
        answer=gigabytes,
        unit="GB",
        derivation=f"With its share of the scale, a weight takes 4 + {ADDED_BITS}/{block} = "
        f"{bits:g} bits. {billions} billion × {bits:g} / 8 bytes = {in_words(gigabytes, 'GB')}.",
        mistakes=(
            Mistake(billions / 2, "That is without the scales."),
            Mistake(
                billions * (4 + ADDED_BITS) / 8,
                "The scale is there once for each block, not for each weight.",
            ),
        ),
    )


QUESTIONS = (
    Question("floats.stops", "cb9d47676", _stops, {"fraction_bits": range(2, 13)}),
    Question(
        "floats.matrices",
        "cd00deb1f",
        _matrices,
        {
            "rows": (4096, 8192, 12_288, 16_384),
            "columns": (4096, 11_008, 16_384, 28_672, 49_152),
            "count": (8, 24, 32, 40, 96),
            "dtype": ("fp64", "fp32", "bf16", "fp16"),
        },
    ),
    Question(
        "floats.largest",
        "c006d76d2",
        _largest,
        {"exponent_bits": (3, 4, 5), "fraction_bits": range(1, 4)},
    ),
    Question(
        "floats.gap",
        "c006d76d2",
        _gap,
        {
            "fmt": ("bf16", "fp16", "e4m3", "e5m2"),
            "x": (3, 5, 6, 10, 12, 20, 24, 40, 48, 96, 160, 192, 320, 768, 1536),
        },
    ),
    Question(
        "floats.pattern",
        "cca378136",
        _pattern,
        {"sign": (0, 1), "exponent": range(123, 136), "eighths": range(1, 8)},
    ),
    Question(
        "floats.vanishes",
        "c5a1e7d20",
        _vanishes,
        {"vocabulary": (8192, 16_384, 32_000, 50_257, 65_536, 100_352, 128_256, 151_936, 256_000)},
    ),
    Question(
        "floats.blocks",
        "c2c2d3d9d",
        _blocks,
        {"billions": (7, 8, 13, 32, 70, 123, 405, 671), "block": (8, 16, 32)},
    ),
)
