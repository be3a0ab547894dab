"""The box lab: its faces have the numbers, and its cubes the FLOPs that torch counts."""

import pytest
import torch

from course_utils.chapters import labs
from course_utils.chapters.flops.box_lab.asked import Sizes
from course_utils.core import measure
from tests.helpers.labs import nodes, text_of

LAB = labs.lab_named("box")


@pytest.mark.parametrize(("b", "d", "k"), [(4, 8, 5), (1, 10, 3), (2, 1, 10)])
def test_each_number_is_a_square_and_the_flops_are_those_that_torch_counts(b, d, k):
    x = torch.ones(b, d)
    w = torch.ones(d, k)
    y = x @ w
    view = LAB.view(Sizes(b, d, k), None)
    assert len(nodes(view.picture, "polygon", "part activations")) == x.numel()
    assert len(nodes(view.picture, "polygon", "part parameters")) == w.numel()
    assert len(nodes(view.picture, "polygon", "axis")) == y.numel()
    flops = measure.flops(lambda: x @ w).total
    said = text_of(view)
    assert f"2BDK = 2 · {b} · {d} · {k} = {flops}" in said
    assert f"{flops}, cube by cube" in said
    assert f"layer of {w.numel()} cubes" in said
