"""The forward pass in boxes: what is filled says its FLOPs, and nothing else does."""

import re

import pytest

from course_utils.chapters.flops.forward import forward_boxes


def test_the_filled_box_alone_has_a_number_and_a_colour():
    boxes = forward_boxes(output=69_700_943_872)
    html = boxes._repr_html_()
    assert re.findall(r"<b>([^<]*)</b>", html) == [
        "m.layers times",
        "query, key, value",
        "queries × keys",
        "softmax",
        "scores × values",
        "out, gate, up, down",
        "embedding",
        "output: 69.7 billion",
    ]
    assert html.count("background:") == 1
    assert "scores × values (of each head: (S,\xa0S) times (S,\xa0head_width)) → out" in repr(boxes)
    assert "output: 69.7 billion" in repr(boxes)
    assert "background:" not in forward_boxes()._repr_html_()


def test_another_name_is_refused_with_those_that_there_are():
    with pytest.raises(
        ValueError, match=r"There is no box 'softmax'\. There are: query_key_value,"
    ):
        forward_boxes(softmax=0)
