"""When two values agree: to the last bit, or within a share; whatever type of number, list or tensor they come in."""

import math
from fractions import Fraction

import numpy as np
import torch

from course_utils.core.say import Number


def agree(a: object, b: object, tolerance: Number) -> bool:
    """Whether a is b, or lies within that share of it, part by part. Where b is a tensor, a has to be one too."""
    if type(a) is type(b) is float and a == b != 0:  # quickly, where there are 131,072 of them
        return True
    if isinstance(b, torch.Tensor) and b.ndim and not _stands_for(a, b):
        return False
    if isinstance(a, torch.Tensor) and not is_dense(a):
        return False
    if isinstance(b, list | tuple) and isinstance(a, torch.Tensor | np.ndarray) and a.ndim:
        a = list(a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(agree(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(agree(a[key], b[key], tolerance) for key in b)
    if isinstance(b, bool) and isinstance(plain(a), int):  # 1 says True, too
        return plain(a) == b
    return same(a, b) or near(a, b, tolerance)


def _stands_for(a: object, b: torch.Tensor) -> bool:
    """Whether a is a tensor. If b is in 16 bits, the exercise is about the format, and a needs b's dtype."""
    return isinstance(a, torch.Tensor) and (b.dtype.itemsize != 2 or a.dtype == b.dtype)


def is_dense(x: torch.Tensor) -> bool:
    """Whether all of its numbers are there."""
    return not x.is_meta and x.layout == torch.strided


def is_number(x: object) -> bool:
    """Whether x is an int or a float. True and False do not count."""
    return isinstance(x, int | float) and not isinstance(x, bool)


def same(a: object, b: object) -> bool:
    """Equal to the last bit: NaN equals NaN, and -0.0 is not 0.0. The type of number does not matter, nor list or tuple."""
    tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    if tensors and a.is_meta and b.is_meta:  # they have no numbers
        return (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)
    # Quickly, where there are many.
    if tensors and (a.dtype, a.device) == (b.dtype, b.device) and torch.equal(a, b):
        return True
    a, b = plain(a), plain(b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if {type(a), type(b)} == {int, float} and abs(a) < 2**53 > abs(
        b
    ):  # where a float holds every integer
        a, b = float(a), float(b)
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (
            a == b and math.copysign(1, a) == math.copysign(1, b)
        )
    if isinstance(a, bool) or isinstance(b, bool) or isinstance(a, str) != isinstance(b, str):
        return a is b
    try:
        return bool(a == b)
    except Exception:  # a tensor of several elements, say: not the one value that was asked for
        return False


def near(a: object, b: object, tolerance: Number) -> bool:
    """Whether a is within that share of b: number by number in sequences; in tensors, a share of the largest number."""
    try:
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and max(a.ndim, b.ndim) > 0:
            return a.shape == b.shape and bool(((a - b).abs() <= tolerance * b.abs().max()).all())
        a, b = plain(a), plain(b)
        if isinstance(a, list | tuple) and isinstance(b, list | tuple):
            return len(a) == len(b) and all(
                near(x, y, tolerance) for x, y in zip(a, b, strict=True)
            )
        return (
            is_number(a)
            and is_number(b)
            and tolerance > 0
            and math.isclose(a, b, rel_tol=tolerance)
        )
    except (RuntimeError, OverflowError):  # tensors of truth values; an integer beyond every float
        return False


def plain(x: object) -> object:
    """NumPy's scalars, fractions and tensors of one element as Python's own numbers."""
    if isinstance(x, torch.Tensor) and is_dense(x):
        return x.item() if x.numel() == 1 else x.tolist()
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, Fraction):
        return float(x)
    return x.item() if isinstance(x, np.generic) else x
