"""When two values agree: to the last bit, or within a relative tolerance.

The values may be any type of number, a list, a tuple, a dict, an array or a tensor. `same` compares
to the last bit, and `near` within a tolerance. The checks call `agree`, which takes either for a
right answer.
"""

import math
from fractions import Fraction

import numpy as np
import torch

from course_utils.core.say import Number

EXACT_IN_FLOAT = 2**53  # below it, a float holds every integer


def agree(result: object, expected: object, tolerance: Number) -> bool:
    """Whether a reader's result is the expected one, or differs from it by at most the tolerance.

    The tolerance is relative. Lists, tuples and dicts are compared part by part. Where a tensor
    with dimensions is expected, only a tensor agrees with it.
    """
    # A case may have 131,072 floats, so equal ones are answered here, which is quicker. Zeros are
    # not, because `same` below tells 0.0 from -0.0.
    are_floats = type(result) is float and type(expected) is float
    if are_floats and result == expected and expected != 0:
        return True
    if not _can_be_compared(result, expected):
        return False
    if isinstance(expected, list | tuple):
        result = _as_sequence(result)  # an array or a tensor may stand for a list
        if isinstance(result, list | tuple):
            return _parts_agree(result, expected, tolerance)
    if isinstance(result, dict) and isinstance(expected, dict):
        if result.keys() != expected.keys():
            return False
        return all(agree(result[key], expected[key], tolerance) for key in expected)
    if isinstance(expected, bool) and isinstance(plain(result), int):
        return plain(result) == expected  # 1 counts as True, and 0 as False
    return same(result, expected) or near(result, expected, tolerance)


def _can_be_compared(result: object, expected: object) -> bool:
    """Whether `result` is a tensor if one is expected, and stores all its numbers if it is one.

    If the expected tensor has a 16-bit format, the exercise is about that format, so the dtype of
    `result` has to be the same.
    """
    is_tensor = isinstance(result, torch.Tensor)
    # In place of a tensor without dimensions, a plain number is right, too.
    if isinstance(expected, torch.Tensor) and expected.ndim:
        if not is_tensor:
            return False
        is_16_bit = expected.dtype.itemsize == 2  # bytes
        if is_16_bit and result.dtype != expected.dtype:
            return False
    return is_dense(result) if is_tensor else True


def _as_sequence(result: object) -> object:
    """Return an array or a tensor with dimensions as a list, and anything else as it is."""
    if isinstance(result, torch.Tensor | np.ndarray) and result.ndim:
        return list(result)
    return result


def _parts_agree(result: list | tuple, expected: list | tuple, tolerance: Number) -> bool:
    if len(result) != len(expected):
        return False
    pairs = zip(result, expected, strict=True)
    return all(agree(a, b, tolerance) for a, b in pairs)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the tensor stores every one of its numbers, as sparse and meta tensors do not."""
    return not tensor.is_meta and tensor.layout == torch.strided


def is_number(x: object) -> bool:
    """Whether x is an int or a float. True and False do not count."""
    return isinstance(x, int | float) and not isinstance(x, bool)


def same(a: object, b: object) -> bool:
    """Whether a and b are equal to the last bit: NaN equals NaN, and -0.0 is not 0.0.

    An int may equal a float, an array a list, and a list a tuple. Only in two tensors of the same
    dtype, -0.0 counts as 0.0: no exercise with tensors asks for the sign of a zero.
    """
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.is_meta and b.is_meta:  # tensors without numbers
            return a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype
        # The quick way, for tensors of many numbers. For torch.equal, -0.0 is 0.0.
        if a.dtype == b.dtype and a.device == b.device and torch.equal(a, b):
            return True
    a = plain(a)
    b = plain(b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return _same_value(a, b)


def _same_value(a: object, b: object) -> bool:
    """Whether two values that are not both sequences are equal, as `same` understands it.

    True is not 1 here, and no string is a number. An int and a float are compared as floats where
    no digit of the int is lost.
    """
    is_mixed = {type(a), type(b)} == {int, float}
    if is_mixed and abs(a) < EXACT_IN_FLOAT and abs(b) < EXACT_IN_FLOAT:
        a = float(a)
        b = float(b)
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) and math.isnan(b):
            return True
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    is_bool = isinstance(a, bool) or isinstance(b, bool)
    is_one_a_string = isinstance(a, str) != isinstance(b, str)
    if is_bool or is_one_a_string:
        # For ==, True equals 1. There is only one True and one False, so `is` compares two bools,
        # and it is False for a bool or a string beside anything else.
        return a is b
    try:
        return bool(a == b)
    except Exception:  # of a tensor, say, whose == is no single truth value
        return False


def near(result: object, expected: object, tolerance: Number) -> bool:
    """Whether two numbers differ by at most the tolerance, relative to the larger one.

    Sequences are compared number by number. In tensors, the tolerance is relative to the largest
    number that is expected.
    """
    try:
        are_tensors = isinstance(result, torch.Tensor) and isinstance(expected, torch.Tensor)
        if are_tensors and (result.ndim or expected.ndim):
            return _tensors_near(result, expected, tolerance)
        result = plain(result)
        expected = plain(expected)
        if isinstance(result, list | tuple) and isinstance(expected, list | tuple):
            if len(result) != len(expected):
                return False
            pairs = zip(result, expected, strict=True)
            return all(near(a, b, tolerance) for a, b in pairs)
        # Without a tolerance no two numbers are near: `agree` has tried whether they are the same.
        if not is_number(result) or not is_number(expected) or tolerance <= 0:
            return False
        return math.isclose(result, expected, rel_tol=tolerance)
    # Two tensors of bools cannot be subtracted, and some integers are too large for a float.
    except (RuntimeError, OverflowError):
        return False


def _tensors_near(result: torch.Tensor, expected: torch.Tensor, tolerance: Number) -> bool:
    """Whether no number is off by more than the tolerance times the largest expected number.

    A number near 0 among large ones may be off by much of its own size, because of rounding.
    """
    if result.shape != expected.shape:
        return False
    allowed = tolerance * expected.abs().max()
    is_near = (result - expected).abs() <= allowed
    return bool(is_near.all())


def plain(x: object) -> object:
    """Return x in Python's own numbers, if x is a tensor, a value of NumPy's or a Fraction.

    A tensor of one element becomes a number, and any other tensor or array a list. Anything else is
    returned as it is, also a tensor that does not store all its numbers.
    """
    if isinstance(x, torch.Tensor) and is_dense(x):
        return x.item() if x.numel() == 1 else x.tolist()
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, Fraction):
        return float(x)
    return x
