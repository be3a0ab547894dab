"""The heads lab against einops."""

import pytest
import torch
from einops import rearrange

from course_utils.chapters.einsum.heads_lab import HeadsLab
from course_utils.chapters.einsum.heads_lab.asked import COLUMNS, HEADS, RIGHT, WRONG, Split
from course_utils.chapters.einsum.heads_lab.picture import view
from tests.helpers.labs import lines


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("pattern", [RIGHT, WRONG])
def test_each_column_goes_where_einops_sends_it_and_each_head_gets_what_is_drawn(heads, pattern):
    split = Split(heads=heads, pattern=pattern, shown=True)
    by_einops = rearrange(torch.arange(COLUMNS), f"{pattern} -> head place", head=heads).tolist()
    assert [
        sorted(c for c in range(COLUMNS) if split.arrives[c] == head) for head in range(heads)
    ] == by_einops
    seen = view(split, None)
    (sawtooth,) = lines(seen.picture, "line measured")
    heights = sorted({y for _, y in sawtooth}, reverse=True)
    assert [heights.index(y) for _, y in sawtooth] == list(split.arrives)


def test_it_says_how_many_columns_are_right_and_how_many_marks():
    marks = (0, 1, 2, 3, 3, *[None] * 7)
    split = Split(guess=marks, shown=True)
    assert view(split, None).meaning == (
        "By (place head), 4 of 12 columns reach the head that they belong to. 4 of your 5 marks are right."
    )
    assert [guess.is_right for guess in HeadsLab().guesses(split, None)] == [True] * 4 + [False]
