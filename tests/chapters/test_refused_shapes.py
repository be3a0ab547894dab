"""A shape that no model can have is refused in one line of a notebook."""

from dataclasses import replace

import pytest

from course_utils.chapters import by_torch
from course_utils.chapters.small_models import LLAMA


@pytest.mark.parametrize(
    "count",
    [
        lambda m: by_torch.step_bytes(m, 1, 16, "bf16", 0),
        lambda m: by_torch.step(m, 1, 16),
    ],
)
def test_an_impossible_shape_is_refused_in_one_line(count):
    with pytest.raises(ValueError, match="a multiple of those for keys and values") as refused:
        count(replace(LLAMA, kv_heads=4))
    (line,) = refused.value._render_traceback_()
    assert line == str(refused.value)
