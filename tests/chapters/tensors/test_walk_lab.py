"""The walk lab against torch: which views it says are possible, where a row lands, and what is kept back until Show."""

import math
from itertools import product

import pytest
import torch

from course_utils.chapters import labs
from course_utils.chapters.tensors.walk_lab.asked import AS_IT_IS, SHAPES, VIEWS, Walked
from course_utils.engine.labs.session import Session
from tests.helpers.labs import nodes

LAB = labs.lab_named("walk")


def moved(shape, strides, **more):
    return Walked(
        shape=shape, **{f"stride_{i}": stride for i, stride in enumerate(strides)}, **more
    )


def torch_takes(shape, strides, rest):
    try:
        return torch.empty_strided(shape, strides).view(-1, *rest).stride()
    except RuntimeError:
        return None


@pytest.mark.parametrize("shape", SHAPES)
def test_a_view_is_possible_where_torch_takes_it_and_the_strides_are_torchs(shape):
    seen, sizes = set(), SHAPES[shape]
    for strides in product(range(7 if len(sizes) == 3 else 13), repeat=len(sizes)):
        for view, rest in VIEWS.items():
            if view != AS_IT_IS and math.prod(sizes) % math.prod(rest) == 0:
                dimensions = moved(shape, strides, new=view, offset=0, shown=True).dimensions
                theirs = torch_takes(sizes, strides, rest)
                assert all(one.even for one in dimensions) == (theirs is not None), (strides, view)
                assert theirs in (None, tuple(one.usual for one in dimensions))
                seen.add((view, theirs is None))
    assert {("view(-1)", True), ("view(-1)", False)} <= seen
    assert len(seen) > 6


def test_what_is_possible_or_refused_is_said_with_the_steps_and_red_where_they_differ():
    half = LAB.view(moved("(4, 3)", (6, 2), new="view(-1)", offset=0, shown=True, steps=11), None)
    assert half.meaning.endswith("all steps are equally long. Strides (2,).")
    assert "3 × 2 = 6: equal, so they merge" in half.picture
    assert nodes(half.picture, "polyline", "line uneven") == []
    across = LAB.view(moved("(6, 4)", (1, 6), new="view(-1)", offset=0, shown=True, steps=23), None)
    assert (
        "Refused: view(-1). Along dimension 0 of (24,), steps are +6 and −17 long."
        in across.meaning
    )
    assert "4 × 6 = 24: they do not merge" in across.picture
    assert len(nodes(across.picture, "polyline", "line uneven")) == 5
    beyond = LAB.view(moved("(6, 4)", (7, 1), offset=0, shown=True), None)
    assert beyond.meaning.startswith("Place 38 is beyond the strip, which ends at 23.")


@pytest.mark.parametrize(
    ("shape", "strides"), [("(3, 4)", (6, 1)), ("(6, 4)", (1, 6)), ("(3, 2, 4)", (4, 12, 1))]
)
def test_before_show_the_view_says_nothing_of_what_comes_after_the_first_row(shape, strides):
    *others, last = strides
    one, other = (
        LAB.view(moved(shape, (*some, last), offset=0, steps=3), None)
        for some in (others, [5] * len(others))
    )
    assert one == other == LAB.view(moved(shape, strides, offset=0, steps=9), None)
    after = LAB.view(moved(shape, strides, offset=0, steps=3, shown=True), None)
    assert after.meaning != one.meaning


def test_the_place_where_the_next_row_begins_is_where_torchs_own_pointer_stands():
    asked = Walked(landing=(12,), shown=True)
    piece = torch.arange(24).view(4, 6)[1:, 2:]
    place = (piece[1, 0].data_ptr() - piece.untyped_storage().data_ptr()) // 8
    (guess,) = LAB.guesses(asked, None)
    assert (guess.said, guess.measured) == (12, place) == (12, 14)
    said = LAB.view(asked, None).meaning
    assert said.startswith("The next row begins at place 14; your mark is at 12.")
    assert said.endswith("Strides (6, 1).")
    assert LAB.guesses(Walked(), None) == []


def test_show_lets_a_walk_go_on_that_stands_at_the_end_of_its_row():
    session = Session(LAB)
    session.set({"steps": 20})
    assert session.values["steps"] == 3
    session.set({"shown": True})
    assert session.values["steps"] == 11
