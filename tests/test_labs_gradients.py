"""The gradient lab: its products against autograd, its totals against torch's counter, its transformer against a count."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import labs, predict
from course_utils.labs.gradient.asked import PRESETS, Asked
from course_utils.labs.gradient.jobs import counted_layers
from course_utils.labs.gradient.picture import LAYERS

LAB = labs.gradient_lab()
untimed = settings(deadline=None)


def drawn(lab):
    return ElementTree.fromstring(lab.screen.svg)


def words(lab):
    return " ".join("".join(node.itertext()) for node in drawn(lab).iter() if node.tag.endswith("text"))


def products(lab):
    """How many bars of each kind stand in the picture, the key left out."""
    kinds = [node.get("class") for node in drawn(lab).iter() if node.tag.endswith("}rect")]
    named = ("forward", "weight-gradient", "input-gradient", "missing")
    return {kind: kinds.count(kind) - 1 for kind in named}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_shows_what_its_name_says(preset):
    LAB.preset(preset)
    assert LAB.error is None
    promises = {
        "what do two layers cost?": "369,098,752 FLOPs, 0.7333 of 6BP. One product is not needed",
        "what do plain data save?": "0.9167 of 6BP. One product is not needed",
        "when exactly 6?": "exactly 6BP: the data need a gradient too",
        "train only the last?": "11 of 18 products fall away",
        "only the first?": "6 of 18 products fall away",
        "long sequences?": "At 131,072 tokens GPT-3 needs 2.771 × 6PN: attention costs 1.78 times what",
    }
    assert promises[preset] in LAB.screen.meaning


def test_the_opening_questions_numbers_stand_beside_each_other():
    LAB.preset("what do two layers cost?")
    assert "forward 167,772,160 167,772,160 exactly backward 201,326,592 201,326,592 exactly" in words(LAB)
    assert "369,098,752 / (6 · 1,024 · 81,920) = 0.7333" in words(LAB)


@settings(untimed, max_examples=40)
@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 40), st.booleans(), st.sets(st.integers(0, 5)))
def test_the_products_drawn_are_those_that_autograd_needs_and_the_count_agrees(
    depth, d, k, input_grad, frozen
):
    frozen = {layer for layer in frozen if layer < depth}
    LAB.set(
        what="layers", depth=depth, d=d, k=k, b=8, input_grad=input_grad, frozen=" ".join(map(str, frozen))
    )
    assert LAB.error is None
    assert words(LAB).count("exactly") == 2
    x = torch.ones(8, d, requires_grad=input_grad)
    weights = [torch.ones(d, d if n < depth - 1 else k, requires_grad=n not in frozen) for n in range(depth)]
    needed = 0
    for weight in weights:
        needed += x.requires_grad
        x = x @ weight
    trained = depth - len(frozen)
    # Nothing goes back at all where nothing wants a gradient.
    assert products(LAB) == {
        "forward": depth,
        "weight-gradient": trained,
        "input-gradient": needed,
        "missing": 2 * depth - trained - needed,
    }


def test_a_click_on_a_layer_freezes_it_and_another_one_thaws_it():
    LAB.preset("what do plain data save?")
    LAB.pick("2")
    assert LAB.values["frozen"] == "2"
    LAB.pick("0")
    assert LAB.values["frozen"] == "0 2"
    LAB.pick("2")
    assert LAB.values["frozen"] == "0"


def test_only_the_controls_of_the_view_are_shown():
    LAB.set(what="transformer")
    assert LAB.controls["depth"].layout.display == "none"
    assert LAB.controls["sequence"].layout.display == ""
    LAB.set(what="layers")
    assert LAB.controls["sequence"].layout.display == "none"


@pytest.mark.parametrize("typed", ["first", "0; 1", "-1", "１", "0" * 61, "__import__('os')", "1e3", "<b>"])
def test_frozen_layers_that_are_none_get_a_sentence(typed):
    LAB.set(what="layers", frozen=typed)
    assert "are no layers. Type their numbers, like 0 1, or click on them." in LAB.screen.mistake
    LAB.set(frozen="")
    assert LAB.screen.mistake == ""


@settings(untimed, max_examples=60)
@given(st.text(max_size=20), st.text(max_size=10) | st.integers(-2, 2**21), st.integers(1, 12))
def test_whatever_is_typed_is_a_picture_or_a_sentence(frozen, size, depth):
    LAB.set(what="layers", depth=depth, d=size, frozen=frozen)
    assert LAB.error is None or (isinstance(LAB.error, ValueError) and LAB.screen.mistake.endswith("."))
    drawn(LAB)
    LAB.set(d=8, frozen="")
    assert LAB.error is None


def test_frozen_layers_beyond_the_last_wait_for_more_layers():
    assert Asked(depth=3, frozen="0 7").frozen_layers == (0,)
    assert Asked(depth=8, frozen="0 7").frozen_layers == (0, 7)


def test_nothing_trained_counts_no_backward_pass():
    assert counted_layers(8, (4, 4, 4), False, (0, 1))["backward"] == 0


def test_the_transformer_is_counted_and_equals_the_prediction():
    lab = labs.gradient_lab()
    lab.set(what="transformer", model="GPT-2 small", sequence=256)
    assert "not yet" in words(lab)
    lab.start("Count the transformer")
    lab.wait(120)
    gpt2 = predict.MODELS["GPT-2 small"]
    assert lab.screen.report == f"Counted: {gpt2.training_flops(1, 256).total:,} FLOPs."
    assert words(lab).count("exactly") == 2
    lab.set(sequence=512)
    assert "not yet" in words(lab)


def test_counting_in_the_other_view_says_which_button_is_for_which():
    lab = labs.gradient_lab()
    lab.start("Count the transformer")
    with pytest.raises(ValueError, match="Choose the transformer for this button"):
        lab.wait()


@pytest.mark.parametrize("model", predict.MODELS)
def test_attention_is_said_to_cost_what_it_costs_and_the_line_stands_where_it_is_even(model):
    shape = predict.MODELS[model]
    LAB.set(what="transformer", model=model, sequence=4096)
    forward = shape.forward_flops(1, 4096)
    looked_up = shape.context * shape.width * shape.learned_positions
    looked_up += shape.vocabulary * shape.width * (not shape.tied_output)
    assert f"{100 * looked_up / shape.parameters:.3g} %" in LAB.screen.meaning
    share = forward["attention"] / forward["matrices"]
    assert f"attention costs {share:.3g} times what the matrices cost" in LAB.screen.meaning
    even = int(re.search(r"S = (?:6H = )?([\d,]+)", words(LAB))[1].replace(",", ""))
    at_even = shape.forward_flops(1, even)
    assert at_even["attention"] == at_even["matrices"]


def test_the_curve_is_one_less_a_third_of_a_layer():
    LAB.preset("when exactly 6?")
    curve = next(n for n in drawn(LAB).iter() if n.get("class") == "line predicted")
    heights = [float(point.split(",")[1]) for point in curve.get("points").split()]
    shares = [1.1 * (LAYERS.bottom - y) / LAYERS.height for y in heights]  # the plot ends at 1.1
    assert shares == pytest.approx([1 - 1 / (3 * n) for n in range(1, 17)], abs=1e-3)


def test_without_a_kernel_the_layers_are_predicted_and_not_counted():
    view = LAB.lab.view(Asked(), LAB.lab.found)
    assert view.picture.count("needs a kernel") == 2
    assert "201,326,592" in view.picture
    assert "exactly" not in view.picture
