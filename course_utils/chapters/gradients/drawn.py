"""Random tensors for the cases of notebook 05's exercises."""

from collections.abc import Sequence

import torch
from torch import Tensor


def drawn(
    shapes_by_case: Sequence[Sequence[tuple[int, int]]], seed: int
) -> list[tuple[Tensor, ...]]:
    """Draw random tensors of these shapes: a tuple of tensors for each case."""
    draw = torch.Generator().manual_seed(seed)
    cases = []
    for shapes in shapes_by_case:
        tensors = [torch.randn(shape, generator=draw) for shape in shapes]
        cases.append(tuple(tensors))
    return cases
