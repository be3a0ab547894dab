"""The gradient lab: its products against autograd, its totals against torch's counter, its transformer against a count."""

import re

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from course_utils import labs, predict
from course_utils.labs.gradient.asked import PRESETS, Asked
from course_utils.labs.gradient.picture import LAYERS, LENGTHS, view
from tests.labs import centres, fresh, lines, nodes, run, steps_here, text_of
from tests.words import words

LAB = labs.lab_named("gradient")
lab = fresh("gradient")


def shown(**asked):
    """All that the view says, with the layers counted."""
    asked = Asked(**asked)
    return text_of(view(asked, LAB.known(asked, {})))


FIRST = "what do two layers cost?"
SHOWN = [
    (FIRST, "369,098,752 FLOPs, 0.7333 of 6BP. One product is not needed"),
    (FIRST, "forward167,772,160167,772,160exactlybackward201,326,592201,326,592exactly"),
    (FIRST, "369,098,752 / (6 · 1,024 · 81,920) = 0.7333"),
    ("what do plain data save?", "0.9167 of 6BP. One product is not needed"),
    ("when exactly 6?", "exactly 6BP: the data need a gradient too"),
    ("train only the last?", "Frozen: 5 of 6 layers. 11 of 18 products fall away"),
    ("only the first?", "Frozen: 5 of 6 layers. 6 of 18 products fall away"),
    ("long sequences?", "At 131,072 tokens GPT-3 needs 2.771 × 6PN: attention costs 1.78 times what"),
]


@pytest.mark.parametrize(("question", "sentence"), SHOWN)
def test_every_question_is_answered(question, sentence):
    assert sentence in shown(**PRESETS[question])


def test_without_a_kernel_the_layers_are_predicted_and_not_counted():
    said = text_of(view(Asked(), {}))
    assert said.count("needs a kernel") == 2
    assert "201,326,592" in said
    assert "exactly" not in said


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 40), st.booleans(), st.sets(st.integers(0, 7)))
@example(2, 4, 4, False, {0, 1})  # nothing goes back at all
def test_the_products_drawn_are_those_that_autograd_needs_and_the_count_agrees(
    depth, d, k, input_grad, frozen
):
    typed = ", ".join(map(str, frozen))  # those beyond the last wait for more layers
    asked = Asked(depth=depth, d=d, k=k, b=8, input_grad=input_grad, frozen=typed)
    shown = view(asked, LAB.known(asked, {}))
    assert shown.picture.count(">exactly<") == 2
    x = torch.ones(8, d, requires_grad=input_grad)
    weights = [torch.ones(d, d if n < depth - 1 else k, requires_grad=n not in frozen) for n in range(depth)]
    needed, trained = 0, sum(weight.requires_grad for weight in weights)
    for weight in weights:
        needed += x.requires_grad
        x = x @ weight
    expected = {"forward": depth, "weight-gradient": trained, "input-gradient": needed}
    expected["missing"] = 3 * depth - sum(expected.values())
    drawn = {kind: len(nodes(shown.picture, "rect", kind)) - 1 for kind in expected}  # without the key
    assert drawn == expected


def test_the_curve_is_one_less_a_third_of_a_layer_and_the_layers_at_hand_lie_on_it():
    drawn = view(Asked(**PRESETS["what do plain data save?"]), {}).picture
    (curve,) = lines(drawn, "line predicted")
    ys = [LAYERS.bottom - LAYERS.height * (1 - 1 / (3 * n)) / 1.1 for n in range(1, 17)]
    assert [y for _, y in curve] == pytest.approx(ys, abs=0.1)
    assert centres(drawn, "ring") == [pytest.approx((LAYERS.x(4), ys[3]), abs=0.1)]


@pytest.mark.parametrize("model", predict.MODELS)
def test_attention_is_said_to_cost_what_it_costs_and_the_line_stands_where_it_is_even(model):
    shape = predict.MODELS[model]
    asked = Asked(what="transformer", model=model, sequence=4096)
    said, forward = text_of(view(asked, {})), shape.forward_flops(1, 4096)
    looked_up = shape.context * shape.width * shape.learned_positions
    looked_up += shape.vocabulary * shape.width * (not shape.tied_output)
    assert f"{100 * looked_up / shape.parameters:.3g} %" in said
    share = forward["attention"] / forward["matrices"]
    assert f"attention costs {share:.3g} times what the matrices cost" in said
    even = int(re.search(r"S = (?:6H = )?([\d,]+)", said)[1].replace(",", ""))
    at_even = shape.forward_flops(1, even)
    assert at_even["attention"] == at_even["matrices"]
    ((top, _),) = lines(view(asked, {}).picture, "line dashed")
    assert top[0] == pytest.approx(LENGTHS.x(even), abs=0.1)


def test_the_transformer_is_counted_and_equals_the_prediction(lab, monkeypatch):
    monkeypatch.setattr("course_utils.workers.process.steps_of", steps_here)
    lab.set(what="transformer", model="GPT-2 small", sequence=256)
    assert words(lab).count("not yet") == 2
    flops = predict.MODELS["GPT-2 small"].training_flops(1, 256).total
    assert run(lab, "Count the transformer") == f"Counted: {flops:,} FLOPs."
    assert words(lab).count("exactly") == 2
    lab.set(sequence=512)
    assert "not yet" in words(lab)
    lab.set(what="layers")
    with pytest.raises(ValueError, match="Choose the transformer for this button"):
        run(lab, "Count the transformer")


def test_a_click_on_a_layer_freezes_it_and_another_one_thaws_it(lab):
    lab.preset("what do plain data save?")
    for layer, frozen in (("2", "2"), ("0", "0 2"), ("2", "0")):
        lab.pick(layer)
        assert lab.values["frozen"] == frozen
        on = [(one.get("data-key"), one.get("aria-checked")) for one in nodes(lab.screen.svg, "g", "one")]
        assert on == [(key, "true") for key in frozen.split()]


def test_only_the_controls_of_what_is_counted_are_shown(lab):
    for what, hidden, there in (("transformer", "depth", "sequence"), ("layers", "sequence", "depth")):
        lab.set(what=what)
        assert [lab.controls[name].layout.display for name in (hidden, there)] == ["none", ""]


@pytest.mark.parametrize("typed", ["first", "0; 1", "-1", "１", "0" * 60, "__import__('os')", "1e3", "<b>"])
def test_frozen_layers_that_are_none_get_a_sentence(typed):
    with pytest.raises(ValueError, match=r"are no layers\. Type their numbers, like 0 1, or click on them\."):
        Asked(frozen=typed).frozen_layers  # noqa: B018
