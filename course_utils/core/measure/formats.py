"""Number formats as torch and ml_dtypes store them: every value."""

import ml_dtypes
import numpy as np
import torch

DTYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
}
SMALL_FORMATS = ("tf32", "fp16", "bf16", "e4m3", "e5m2", "e2m1")  # up to 19 bits
# By the bytes of a number: integers in which every bit pattern can be made.
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def every_value(fmt: str) -> list[float]:
    """Return the value of every bit pattern as torch reads it, from the pattern 0 on.

    E2M1 is read by ml_dtypes, because torch only stores it.
    """
    if fmt not in SMALL_FORMATS:
        raise ValueError(
            f"{fmt!r} is not among the formats of up to 19 bits: {', '.join(SMALL_FORMATS)}."
        )
    if fmt == "e2m1":
        patterns = np.arange(2**4, dtype=np.uint8)
        return patterns.view(ml_dtypes.float4_e2m1fn).astype(float).tolist()
    if fmt == "tf32":  # 19 bits, read as fp32 with 13 more bits at the end, all zero
        patterns = torch.arange(2**19) << 13
        return patterns.to(torch.int32).view(torch.float32).double().tolist()
    dtype = DTYPES[fmt]
    bits = 8 * dtype.itemsize
    # A number that is too large for the integer keeps its bits, and becomes negative.
    patterns = torch.arange(2**bits).to(_INTEGERS[dtype.itemsize])
    return patterns.view(dtype).double().tolist()
