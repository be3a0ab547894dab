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
def test_each_column_goes_where_einops_sends_it_and_that_is_drawn(heads, pattern):
    split = Split(heads=heads, pattern=pattern, shown=True)
    columns = torch.arange(COLUMNS)
    by_einops = rearrange(columns, f"{pattern} -> head place", head=heads).tolist()
    for head, its_columns in enumerate(by_einops):
        for column in its_columns:
            assert split.arrives[column] == head
    picture = view(split, None).picture
    (sawtooth,) = lines(picture, "line measured")
    heights = [y for _, y in sawtooth]
    levels = sorted(set(heights), reverse=True)  # head 0 is lowest, where y is largest
    assert [levels.index(y) for y in heights] == list(split.arrives)


def test_it_says_how_many_columns_are_right_and_how_many_marks():
    marks = (0, 1, 2, 3, 3)
    not_set = (None,) * (COLUMNS - len(marks))
    split = Split(guess=marks + not_set, shown=True)
    assert view(split, None).meaning == (
        "By (place head), 4 of 12 columns reach the head that they belong to. "
        "4 of your 5 marks are right."
    )
    guesses = HeadsLab().guesses(split, None)
    assert [guess.is_right for guess in guesses] == [True, True, True, True, False]
