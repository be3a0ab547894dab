"""The heads lab against einops."""

import re

import pytest
import torch
from einops import rearrange

from course_utils.chapters.einsum.heads_lab import HeadsLab
from course_utils.chapters.einsum.heads_lab.asked import COLUMNS, HEADS, RIGHT, WRONG, Split
from course_utils.chapters.einsum.heads_lab.picture import view
from course_utils.engine.labs.session import Session
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
        "Your marks: 4 of 5 right."
    )
    guesses = HeadsLab().guesses(split, None)
    assert [guess.is_right for guess in guesses] == [True, True, True, True, False]


@pytest.mark.parametrize("heads", HEADS)
def test_a_mark_moves_from_the_first_heads_row_to_the_lasts_and_not_beyond(heads):
    picture = view(Split(heads=heads), None).picture
    rows = sorted((y for (_, y), _ in lines(picture, "grid")), reverse=True)
    assert len(rows) == heads
    tracks = lines(picture, "track")
    assert len(tracks) == COLUMNS
    for (_, start), (_, end) in tracks:
        assert (start, end) == (rows[0], rows[-1])
    assert set(re.findall(r'aria-valuemax="(\d+)"', picture)) == {str(heads - 1)}
    resting = [float(y) for y in re.findall(r'<circle[^>]* cy="([\d.]+)"', picture)]
    assert len(resting) == COLUMNS
    assert all(rows[-1] < y < rows[0] for y in resting)


def test_a_mark_on_a_head_that_there_is_not_is_not_set():
    session = Session(HeadsLab())
    session.set({"heads": 2, "guess": (1, 2, 3, 0, *(None,) * 8)})
    assert session.values["guess"] == (1, None, None, 0, *(None,) * 8)
    session.set({"shown": True})
    assert not session.shown["mistake"]
    assert "of 2 right" in session.shown["meaning"]
    session.set({"heads": 4, "shown": False, "guess": (3,) * COLUMNS})
    session.set({"heads": 2})
    session.set({"heads": 4})
    assert session.values["guess"] == (3,) * COLUMNS
