"""Random tensors for the cases of notebook 05's exercises."""

from collections.abc import Sequence

import torch
from torch import Tensor


def drawn(
    shapes_by_case: Sequence[Sequence[tuple[int, int]]], seed: int
) -> list[tuple[Tensor, ...]]:
    """Draw random tensors: for each case a tuple, with a tensor of each shape that the case has.

    The same seed draws the same tensors, so a verdict does not change from call to call.
    """
    draw = torch.Generator().manual_seed(seed)
    cases = []
    for shapes in shapes_by_case:
        tensors = [torch.randn(shape, generator=draw) for shape in shapes]
        cases.append(tuple(tensors))
    return cases
