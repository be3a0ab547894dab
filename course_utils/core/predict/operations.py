"""The bytes of a tensor, and the FLOPs, bytes and least time of matrix products.

A product may have two operands, or as many as an einsum has.
"""

import math
from collections.abc import Mapping, Sequence

from course_utils.core import accountant, einsums
from course_utils.core.datasheets import Machine
from course_utils.core.say import Number

# Formats that the accountant has no name for, and the one of its formats that is as large.
STORED_AS = {"tf32": "fp32", "xf32": "fp32", "e4m3": "fp8", "e5m2": "fp8"}
DTYPE_BYTES: Mapping[str, Number] = accountant.BYTES | {
    name: accountant.BYTES[other] for name, other in STORED_AS.items()
}


def dtype_bytes(dtype: str) -> Number:
    """Return the bytes of one number. ValueError, with all dtypes, if `dtype` is unknown."""
    if dtype not in DTYPE_BYTES:
        raise ValueError(f"There is no dtype {dtype!r} here. There are: {', '.join(DTYPE_BYTES)}.")
    return DTYPE_BYTES[dtype]


def check_sizes(**sizes: object) -> None:
    """Raise a ValueError on the first size that is not a whole number from 0 up.

    The message names the size by its keyword, such as b in `check_sizes(b=-1)`.
    """
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ValueError(f"{name} is a size, a whole number from 0 up; got {size!r}.")


def tensor_bytes(shape: Sequence[int], dtype: str) -> int:
    """Return the product of the sizes times the bytes of one number.

    >>> tensor_bytes((4, 8), "bf16")
    64
    """
    # `check_sizes` names the wrong size in its message by the key, such as "size 0".
    sizes = {f"size {place}": size for place, size in enumerate(shape)}
    check_sizes(**sizes)
    dtype_bytes(dtype)  # raises a ValueError if there is no such dtype
    stored_as = STORED_AS.get(dtype, dtype)
    return accountant.tensor_bytes(shape, stored_as)


# One matrix product: (B, D) @ (D, K).


def matmul_flops(b: int, d: int, k: int) -> int:
    """Return 2BDK: each of the BDK multiplications is followed by an addition.

    >>> matmul_flops(1024, 256, 64)
    33554432
    """
    check_sizes(b=b, d=d, k=k)
    return 2 * b * d * k


def matmul_bytes(b: int, d: int, k: int, dtype: str) -> int:
    """Return (BD + DK + BK) × bytes of a number: operands are read, and the result is written.

    The result of a product in fp8 is written in bf16, as torch and XLA do.

    >>> matmul_bytes(1024, 256, 64, "bf16")
    688128
    """
    first = tensor_bytes((b, d), dtype)
    second = tensor_bytes((d, k), dtype)
    result_dtype = "bf16" if dtype == "fp8" else dtype
    result = tensor_bytes((b, k), result_dtype)
    return first + second + result


def intensity(flops: Number, nbytes: Number) -> Number:
    """Return FLOPs per byte moved; NaN if no byte is moved.

    Below a machine's `ridge` memory is the machine's limit, and from there on arithmetic is.
    """
    if nbytes == 0:
        return math.nan
    return flops / nbytes


def ridge(machine: Machine, dtype: str) -> Number:
    """Return the machine's peak FLOP/s divided by its bytes/s.

    From this intensity on, arithmetic is the limit and not memory.
    """
    return machine.peak(dtype) / machine.bytes_per_sec


def matmul_seconds(b: int, d: int, k: int, machine: Machine, dtype: str) -> Number:
    """Return the roofline's time, max(FLOPs / peak, bytes / bandwidth): no product takes less."""
    compute_s = matmul_flops(b, d, k) / machine.peak(dtype)
    memory_s = matmul_bytes(b, d, k, dtype) / machine.bytes_per_sec
    return max(compute_s, memory_s)


# Products of several tensors.


def einsum_flops(pattern: str, /, **sizes: int) -> int:
    """Return the FLOPs of an einsum, whose pattern is written as in einops.

    A multiply-add of a product of two operands counts 2; where nothing is summed, a multiplication
    counts 1. Three operands or more are multiplied in the cheapest order, two at a time. A
    dimension that only one operand has, and the result lacks, is summed before that operand is
    multiplied, as torch does it, and that sum counts 0.

    >>> einsum_flops("b h i d, b h j d -> b h i j", b=2, h=4, i=8, j=8, d=16)
    16384
    >>> einsum_flops("a b c, c d -> a d", a=3, b=5, c=7, d=2)  # 2·3·7·2: b is gone by then
    84
    """
    # The `/` above lets a dimension be called "pattern", too.
    einsum = einsums.parsed(pattern)
    if set(einsum.names) != set(sizes):
        needed = ", ".join(sorted(einsum.names))
        given = ", ".join(sorted(sizes)) if sizes else "none"
        raise ValueError(f"{pattern!r} needs the sizes of {needed}; got {given}.")
    check_sizes(**sizes)
    (cheapest,) = einsums.orders(einsum, sizes, only_cheapest=True)
    return cheapest.flops
