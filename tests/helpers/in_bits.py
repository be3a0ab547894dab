"""A run's state as a value that == compares to the last bit and type.

It is made in another way than the course compares states, so that one can check the other.
"""

import struct

import torch

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes of a number


def in_bits(value):
    """Return the value with each tensor and float as bytes, and with the types of all its parts.

    So a NaN equals itself, and -0.0 differs from 0.0.
    """
    if isinstance(value, torch.Tensor):
        # torch may note a conjugate or a minus sign without having written it into the numbers.
        plain = value.detach().resolve_conj().resolve_neg()
        bits = plain.view(INTEGERS.get(plain.element_size(), plain.dtype))
        in_order = bits.numpy().tobytes()  # row by row, whatever the strides
        return "tensor", value.dtype, tuple(value.shape), in_order
    if isinstance(value, dict):
        return "dict", [(type(key), key, in_bits(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [in_bits(item) for item in value]
    if isinstance(value, float):
        return type(value), struct.pack("<d", value)
    return type(value), value
