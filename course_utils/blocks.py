"""Blocks of small floats that share a scale: MXFP8, MXFP4 and NVFP4.

The scale of a block is chosen from its largest magnitude and stored once. Each number is then kept as an element: a
float of 8 or 4 bits, times the scale.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from course_utils import floats

SCALE_BITS = 8
E8M0_EXPONENTS = (-127, 127)  # eight exponent bits, neither sign nor fraction; one pattern is NaN


@dataclass(frozen=True)
class BlockFormat:
    """`numbers` elements of one format, and one scale for all of them: a power of two (E8M0), or an E4M3."""

    label: str
    element: str
    numbers: int
    scale: str

    @property
    def bits_per_number(self) -> float:
        """The element's bits, and the block's share of the scale's eight."""
        return floats.FORMATS[self.element].bits + SCALE_BITS / self.numbers

    @property
    def reach(self) -> float:
        """The largest element ÷ the smallest above zero: the range of numbers within one block."""
        f = floats.FORMATS[self.element]
        return f.max / f.smallest_subnormal


# The first two are OCP's (arXiv 2310.10537), the third is NVIDIA's, with one more scale, in fp32, for the whole tensor.
BLOCK_FORMATS = {
    "mxfp8": BlockFormat("MXFP8", "e4m3", 32, scale="e8m0"),
    "mxfp4": BlockFormat("MXFP4", "e2m1", 32, scale="e8m0"),
    "nvfp4": BlockFormat("NVFP4", "e2m1", 16, scale="e4m3"),
}


def block_format_named(fmt: str) -> BlockFormat:
    """The block format of that name, or a sentence that lists the names there are."""
    if fmt not in BLOCK_FORMATS:
        raise ValueError(f"There is no block format {fmt!r} here. There are: {', '.join(BLOCK_FORMATS)}.")
    return BLOCK_FORMATS[fmt]


def tensor_scale(numbers: Sequence[float], fmt: str) -> float:
    """NVFP4: largest ÷ (448 × 6), in fp32, so that no block's scale lies beyond E4M3's 448; in the others 1.

    >>> tensor_scale([2688.0, -5376.0], "nvfp4"), tensor_scale([2688.0], "mxfp4")
    (2.0, 1.0)
    """
    f, largest = block_format_named(fmt), _largest(numbers)
    if f.scale == "e8m0" or not largest:
        return 1.0
    wanted = Fraction(largest) / Fraction(_most(f.scale) * _most(f.element))
    return max(floats.stored(wanted, "fp32", saturate=True), floats.FORMATS["fp32"].smallest_subnormal)


def block_scale(block: Sequence[float], fmt: str, whole: float = 1.0) -> float:
    """2^(⌊log2 largest⌋ - ⌊log2 of the largest element⌋) in E8M0; largest ÷ 6 ÷ the tensor's scale in E4M3.

    >>> block_scale([0.3, -3.0], "mxfp8"), block_scale([0.3, -3.0], "nvfp4")
    (0.0078125, 0.5)
    """
    f, largest = block_format_named(fmt), _largest(block)
    if f.scale == "e4m3":
        wanted = Fraction(largest) / Fraction(_most(f.element)) / Fraction(whole)
        return floats.stored(wanted, "e4m3", saturate=True)
    lowest, highest = E8M0_EXPONENTS
    exponent = _floor_log2(largest) - _floor_log2(_most(f.element)) if largest else lowest
    return 2.0 ** min(max(exponent, lowest), highest)


def stored(numbers: Sequence[float], fmt: str) -> list[float]:
    """The numbers that the blocks store: element × scale × the tensor's scale.

    >>> stored([6.0, 1.0, 0.2], "mxfp4")
    [6.0, 1.0, 0.0]
    """
    f, whole = block_format_named(fmt), tensor_scale(numbers, fmt)
    kept = []
    for begin in range(0, len(numbers), f.numbers):
        block = numbers[begin : begin + f.numbers]
        scale = block_scale(block, fmt, whole) * whole  # exact: 4 + 24 bits, or a power of two
        kept += [_element(x, scale, f.element) * scale for x in block]
    return kept


def _element(x: float, scale: float, fmt: str) -> float:
    """The element stored for number ÷ scale. What exceeds the largest element becomes the largest."""
    return floats.stored(Fraction(x) / Fraction(scale), fmt, saturate=True) if scale else 0.0


def _largest(numbers: Sequence[float]) -> float:
    largest = max(map(abs, numbers), default=0.0)
    if not all(map(math.isfinite, numbers)):
        raise ValueError("A scale is chosen from finite numbers; infinity or NaN is among these.")
    return largest


def _most(fmt: str) -> float:
    return floats.FORMATS[fmt].max


def _floor_log2(x: float) -> int:
    return math.frexp(x)[1] - 1
