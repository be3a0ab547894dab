"""Each fault of the repair shop has a symptom of its own, and the notebook shows these loops."""

import inspect
import math

import pytest
import torch

from course_utils.chapters.mixed_precision import check, repair, repair_check
from course_utils.core.say.language import speak
from course_utils.subjects.models import MLP
from course_utils.subjects.training import precision
from tests import ROOT
from tests.helpers.notebooks import code, read

SHOP = [cell.source for cell in read(ROOT / "notebooks" / "07_mixed_precision.ipynb").cells]


@pytest.fixture(scope="module")
def seen():
    """What is seen of each loop, by its letter; the right one's is empty."""
    return {letter: repair.seen(repair.loop(letter)) for letter in ("", *repair.FAULTS)}


def test_only_the_right_loop_shows_nothing(seen):
    right = seen[""]
    assert right.losses[-1] < 0.01
    assert right.products == {torch.float16}
    assert max(right.norms) < 1.001 * repair.MAX_NORM
    assert right.zeros[0] == 0
    assert max(right.lost) < 0.01


def test_each_fault_has_a_symptom_that_no_other_has_by_a_wide_margin(seen):
    def without(letter):
        return [run for other, run in seen.items() if other != letter]

    assert 0.25 < seen["A"].zeros[0] < 0.45
    assert max(run.zeros[0] for run in without("A")) < 0.01
    assert seen["B"].lost[-1] > 0.8
    assert max(run.lost[-1] for run in without("B")) < 0.1
    assert seen["C"].norms[0] == pytest.approx(repair.MAX_NORM / 2**16, rel=0.01)
    assert min(run.norms[0] for run in without("C")) > 1e-3
    assert 0.01 < seen["D"].norms[0] / seen[""].norms[0] < 0.04
    assert "step" in str(seen["E"].error)
    assert len(seen["E"].losses) == 1
    for run in without("E"):
        assert len(run.losses) == repair.STEPS


def test_each_broken_loop_ends_higher_than_the_right_one(seen):
    def times_as_high(letter):
        return seen[letter].losses[-1] / seen[""].losses[-1]

    assert 1.5 < times_as_high("B") < 10
    assert 10 < times_as_high("A") < 200
    assert times_as_high("D") > 200
    unmoved = seen["C"].losses
    assert unmoved[-1] == pytest.approx(unmoved[0], rel=0.01)


@pytest.mark.parametrize("letter", repair.FAULTS)
def test_the_notebook_shows_these_loops_and_their_mends(letter):
    broken = inspect.getsource(repair.loop(letter))
    mended = inspect.getsource(repair.loop()).replace("my_loop", f"my_loop_{letter.lower()}")
    assert broken.strip() in SHOP
    assert any(mended in text for text in SHOP)
    changed = set(broken.splitlines()) ^ set(mended.splitlines())
    assert len(changed) <= 2


@pytest.mark.parametrize("letter", repair.FAULTS)
def test_a_loop_as_it_came_in_is_not_attempted_yet(letter):
    names = {}
    exec(inspect.getsource(repair.loop(letter)), names)
    loop = names[f"my_loop_{letter.lower()}"]
    assert check.mended_c(loop).status == "not attempted yet"


def test_a_verdict_on_a_loop_is_in_the_readers_language(seen):
    sentence = (
        "{percent} of the first gradients are 0. "
        "What brings them into fp16's dynamic range before backward?"
    )
    speak({sentence: "Null sind {percent} der ersten Gradienten."})
    try:
        said = next(repair_check._objections(seen["A"], seen[""]))
    finally:
        speak({})
    zeros = repair.percent(seen["A"].zeros[0])
    assert said == f"Null sind {zeros} der ersten Gradienten."
    english = next(repair_check._objections(seen["A"], seen[""]))
    assert english == sentence.format(percent=zeros)


GRADIENTS = [1.0, 0.0, -3e-5, 0.7, 2.0, 1e-3, 6e-8, -500.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("parts", [3, 200, 5000])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_gradients_are_added_up_one_by_one_in_that_format(parts, dtype):
    model = MLP((len(GRADIENTS), 1))
    (weight,) = model.parameters()
    weight.grad = torch.tensor(GRADIENTS).to(dtype).float().view_as(weight)
    total = torch.zeros_like(weight.grad, dtype=dtype)
    for _ in range(parts):
        total += weight.grad.to(dtype)
    repair.add_up(model, parts, dtype=dtype)
    tolerance = 1e-4
    if dtype in (torch.float16, torch.bfloat16):
        tolerance = 0  # every sum is rounded there, so it has to be the same to the bit
    assert torch.allclose(weight.grad, total.float(), rtol=tolerance, atol=0, equal_nan=True)


def test_a_format_in_which_nothing_is_added_gets_a_sentence():
    model = MLP((3, 1))
    model(torch.ones(3)).sum().backward()
    refusal = r"in float64, float32, float16 or bfloat16, and not in torch\.int8\.$"
    with pytest.raises(ValueError, match=refusal):
        repair.add_up(model, 3, dtype=torch.int8)


def test_what_watches_a_loop_goes_with_it():
    found = repair.seen(repair.loop("E"))
    steps = len(found.norms)
    assert steps == 1
    next(repair.loop("E")(MLP(precision.WIDTHS), *precision.digit_pairs()))
    assert len(found.norms) == steps


def test_right_before_each_question_about_a_loop_stand_its_symptoms():
    cells = code(ROOT / "notebooks" / "07_mixed_precision.ipynb")
    asked = [at for at, cell in enumerate(cells) if '"fault of loop ' in cell.source]
    for at, name in zip(asked, "ABC", strict=True):
        assert f"fault of loop {name}" in cells[at].source
        (table,) = cells[at - 1].outputs
        head = table.data["text/plain"].splitlines()[0].split()
        assert {"right", name} <= set(head), (name, head)
