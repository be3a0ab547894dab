"""The walk lab against torch.

It is tested on which views it calls possible, where a row lands, and what it keeps back until Show.
"""

import math
from itertools import product

import pytest
import torch

from course_utils.chapters import labs
from course_utils.chapters.tensors.walk_lab.asked import AS_IT_IS, SHAPES, VIEWS, Walked
from course_utils.engine.labs.session import Session
from tests.helpers.labs import nodes

LAB = labs.lab_named("walk")


def walked(shape, strides, **others):
    """The lab's answers for those strides; the offset is 0 unless another is given."""
    for dimension, stride in enumerate(strides):
        others[f"stride_{dimension}"] = stride
    return Walked(**{"shape": shape, "offset": 0, **others})


def view_of(shape, strides, **others):
    return LAB.view(walked(shape, strides, **others), None)


def strides_by_torch(shape, strides, rest):
    """The strides of the view that torch makes, or None if it refuses."""
    try:
        return torch.empty_strided(shape, strides).view(-1, *rest).stride()
    except RuntimeError:
        return None


@pytest.mark.parametrize("shape", SHAPES)
def test_a_view_is_possible_where_torch_takes_it_and_the_strides_are_torchs(shape):
    sizes = SHAPES[shape]
    elements = math.prod(sizes)
    largest_stride = 6 if len(sizes) == 3 else 12
    views = {
        view: rest
        for view, rest in VIEWS.items()
        if view != AS_IT_IS and elements % math.prod(rest) == 0
    }
    taken = set()
    refused = set()
    for strides in product(range(largest_stride + 1), repeat=len(sizes)):
        for view, rest in views.items():
            dimensions = walked(shape, strides, new=view, shown=True).dimensions
            is_possible = all(steps.even for steps in dimensions)
            by_torch = strides_by_torch(sizes, strides, rest)
            assert is_possible == (by_torch is not None), (strides, view)
            if is_possible:
                assert by_torch == tuple(steps.usual for steps in dimensions)
                taken.add(view)
            else:
                refused.add(view)
    assert "view(-1)" in taken & refused
    assert len(taken) + len(refused) > 6


def test_a_possible_view_is_said_with_its_strides_and_no_step_is_red():
    every_second_column = view_of("(4, 3)", (6, 2), new="view(-1)", shown=True, steps=11)
    assert every_second_column.meaning.endswith("all steps are equally long. Strides (2,).")
    assert "3 × 2 = 6: equal, so they merge" in every_second_column.picture
    assert nodes(every_second_column.picture, "polyline", "line uneven") == []


def test_a_refused_view_is_said_with_its_steps_which_are_red_where_they_differ():
    transpose = view_of("(6, 4)", (1, 6), new="view(-1)", shown=True, steps=23)
    refusal = "Refused: view(-1). Along dimension 0 of (24,), steps are 6 and −17 long."
    assert refusal in transpose.meaning
    assert "4 × 6 = 24: they do not merge" in transpose.picture
    assert len(nodes(transpose.picture, "polyline", "line uneven")) == 5


def test_a_step_that_stays_in_place_has_no_sign():
    repeated = view_of("(3, 4)", (0, 1), new="view(-1, 2)", offset=0, shown=True, steps=11)
    assert "0 and 1 long" in view_of("(3, 4)", (1, 0), new="view(-1)", shown=True).meaning
    assert "+0" not in repeated.picture + repeated.meaning


def test_each_dimension_is_said_to_be_the_views_or_the_tensors():
    answers = {"offset": 0, "shown": True, "steps": 23}
    tried = view_of("(3, 2, 4)", (4, 12, 1), new="view(-1, 4)", **answers)
    assert "view (6, 4):" in tried.picture
    assert "(3, 2, 4), dimensions 1 and 2: a step along 1 is 12" in tried.picture
    as_it_is = view_of("(3, 2, 4)", (4, 12, 1), **answers)
    assert "view (" not in as_it_is.picture, "there is one shape, and its dimensions need no name"


def test_a_tensor_that_leaves_the_strip_is_said_to_be_refused():
    beyond = view_of("(6, 4)", (7, 1), shown=True)
    assert beyond.meaning.startswith("Position 38 is beyond the strip, which ends at 23,")


def test_where_the_offset_alone_leads_beyond_the_strip_the_strides_are_not_blamed():
    strip = torch.arange(24)
    assert strip.as_strided((3, 4), (6, 1), 0).shape == (3, 4)
    with pytest.raises(RuntimeError, match="out of bounds"):
        strip.as_strided((3, 4), (6, 1), 23)
    beyond = view_of("(3, 4)", (6, 1), offset=23, shown=True)
    said = "Position 38 is beyond the strip, which ends at 23, so torch refuses such a walk."
    assert beyond.meaning == said


def test_the_stored_answer_is_the_picture_after_show_with_the_whole_walk():
    session = Session(LAB)
    session.set({"shape": "(3, 4)", "steps": 3, "landing": (14,)})
    stored = session.as_revealed()
    session.set({"shown": True})
    assert stored.shown == session.shown
    assert (stored.values["steps"], session.values["steps"]) == (11, 11)


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ("(3, 4)", (6, 1)),
        ("(6, 4)", (1, 6)),
        ("(3, 2, 4)", (4, 12, 1)),
    ],
)
def test_before_show_the_view_says_nothing_of_what_comes_after_the_first_row(shape, strides):
    before = view_of(shape, strides, steps=3)
    *outer, inner = strides
    other_rows = [5] * len(outer)
    assert view_of(shape, (*other_rows, inner), steps=3) == before
    assert view_of(shape, strides, steps=9) == before
    after = view_of(shape, strides, steps=3, shown=True)
    assert after.meaning != before.meaning


def test_the_place_where_the_next_row_begins_is_where_torchs_own_pointer_stands():
    piece = torch.arange(24).view(4, 6)[1:, 2:]
    bytes_from_start = piece[1, 0].data_ptr() - piece.untyped_storage().data_ptr()
    place = bytes_from_start // 8
    assert place == 14
    asked = Walked(landing=(12,), shown=True)
    (guess,) = LAB.guesses(asked, None)
    assert guess.said == 12
    assert guess.measured == place
    said = LAB.view(asked, None).meaning
    assert said.startswith("The next row begins at position 14; your mark is at 12.")
    assert said.endswith("Strides (6, 1).")


def test_without_a_mark_there_is_no_guess():
    assert LAB.guesses(Walked(), None) == []


def test_show_lets_a_walk_go_on_that_stands_at_the_end_of_its_row():
    session = Session(LAB)
    session.set({"steps": 20})
    assert session.values["steps"] == 3
    session.set({"shown": True})
    assert session.values["steps"] == 11


def test_a_view_can_be_chosen_once_its_steps_are_shown_and_not_before():
    session = Session(LAB)
    at_first = {"shape": "(3, 2, 4)", "stride_0": 4, "stride_1": 12, "offset": 0}
    session.set(at_first | {"new": "view(-1, 8)"})
    (buttons,) = session.parts["new"]
    assert buttons.hidden
    assert "view(-1, 8)" not in session.shown["meaning"]
    session.set({"shown": True})
    (buttons,) = session.parts["new"]
    assert not buttons.hidden
    assert session.shown["meaning"].startswith("Refused: view(-1, 8).")


def test_a_view_that_is_tried_after_show_leaves_the_mark_where_it_is():
    session = Session(labs.lab_named("walk"))
    session.set({"landing": [14]})
    session.set({"shown": True})
    session.set({"new": "view(-1)"})
    assert session.values["landing"] == (14,)
