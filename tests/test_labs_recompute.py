"""The recompute lab: its bars and points against the closed forms, its measurements against torch, its words' places."""

import re
import time
import xml.etree.ElementTree as ElementTree

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import labs, predict
from course_utils.labs import recompute_picture as drawing
from course_utils.labs import recompute_plan
from course_utils.labs.recompute_lab import PRESETS
from course_utils.labs.recompute_plan import KINDS, Plan, found, order_of, plan_of
from tests.test_labs import button, words
from tests.words import assert_all_can_be_read

FIRST = next(iter(PRESETS))
ANY_LAB = labs.recompute_lab()


@pytest.fixture
def lab():
    """The recompute lab as it opens."""
    return labs.recompute_lab()


def nodes(panel, tag, class_):
    tree = ElementTree.fromstring(panel.screen.svg)
    return [node for node in tree.iter() if node.tag.endswith(tag) and node.get("class") == class_]


def points(panel, class_):
    """The centres of the circles in the plot, back in FLOPs and bytes."""
    whole = plan_of(**panel.values).with_everything_kept.predicted["peak"]
    zero, one = drawing.place(1, 0, whole), drawing.place(2, whole, whole)
    return [
        (
            1 + (float(node.get("cx")) - zero[0]) / (one[0] - zero[0]),
            whole * (float(node.get("cy")) - zero[1]) / (one[1] - zero[1]),
        )
        for node in nodes(panel, "circle", class_)
        if float(node.get("cy")) < drawing.PLOT_TOP + drawing.PLOT_HEIGHT
    ]


def strip_bytes(panel, number):
    """The area of one of the three strips, in bytes of blocks that keep everything."""
    stack = plan_of(**panel.values).with_everything_kept.stack
    middle = 178 + 78 * number + 22 + drawing.TALL / 2
    parts = nodes(panel, "rect", "stored") + nodes(panel, "rect", "rebuilt")
    tall = [
        float(p.get("height"))
        for p in parts
        if abs(float(p.get("y")) + float(p.get("height")) / 2 - middle) < 24
    ]
    return sum(tall) / drawing.TALL * stack.block_bytes


# What it shows.


def test_it_opens_where_the_square_root_misleads(lab):
    meaning = lab.screen.meaning
    assert "With segments of 4 blocks autograd keeps at most 5.11 MB at one time" in meaning
    assert "for 1.292 times the FLOPs" in meaning
    assert "Segments of 1 block would keep least: 3.15 MB for 1.167 times the FLOPs." in meaning
    assert "(L / s - 1) × input + s × block = 3 × 131,072 + 4 × 1,179,648 = 5,111,808 bytes" in words(lab)
    assert "√(L × input / block) = √(16 / 9) = 1.33" in words(lab)
    assert lab.values == dict(PRESETS[FIRST])


@pytest.mark.parametrize(("kind", "make"), [("MLP", predict.mlp_stack), ("x W", predict.linear_stack)])
@pytest.mark.parametrize("early_stop", [True, False])
def test_every_point_lies_where_the_closed_forms_say(lab, kind, make, early_stop):
    lab.set(kind=kind, layers=12, batch=2, sequence=8, width=32, early_stop=early_stop, segment=5)
    stack = make(12, 16, 32)
    expected = [(stack.flops_ratio(s, early_stop=early_stop), stack.peak_bytes(s).total) for s in range(13)]
    drawn = points(lab, "predicted")
    assert len(drawn) == 13
    for (x, y), (ratio, peak) in zip(drawn, expected, strict=True):
        assert x == pytest.approx(ratio, abs=2e-4)
        assert y == pytest.approx(peak, abs=stack.peak_bytes(0).total / 3000)
    (chosen,) = points(lab, "start")
    assert chosen == pytest.approx(drawn[5])


def test_the_scores_have_a_point_of_their_own(lab):
    lab.preset("long sequences: the scores")
    shape = predict.Transformer(6, 128, 2, 1, 1024)
    usual, less = (predict.transformer_stack(shape, 1, 1024, scores_again=a) for a in (False, True))
    x, y = points(lab, "predicted")[-1]
    assert x == pytest.approx(less.step_flops(0).total / usual.step_flops(0).total, abs=2e-4)
    assert y == pytest.approx(less.peak_bytes(0).total, rel=1e-2)
    assert points(lab, "start") == [(x, y)]
    lab.set(kind="GPT, fused attention")
    assert len(points(lab, "predicted")) == 7  # nothing, and six lengths


@pytest.mark.parametrize(("layers", "segment"), [(16, 4), (16, 1), (7, 3), (9, 4), (5, 5)])
def test_the_strips_cover_as_much_as_is_kept(lab, layers, segment):
    lab.set(layers=layers)
    lab.set(segment=segment)
    stack = predict.mlp_stack(layers, 4 * 128, 64)
    kept = [stack.kept_bytes(0), stack.kept_bytes(segment), stack.peak_bytes(segment).total]
    for number, nbytes in enumerate(kept):
        assert strip_bytes(lab, number) == pytest.approx(nbytes, rel=1e-4)


def test_the_best_is_the_least_of_all_and_ties_go_to_the_cheapest(lab):
    for kind in KINDS:
        for layers in (1, 2, 5, 16):
            lab.set(kind=kind, layers=layers, scores_again=False)
            plan = plan_of(**lab.values)
            tried = [plan.choosing(again) for again in plan.choices]
            best = plan.choosing(drawing.best_choice(plan))
            least = min(each.predicted["peak"] for each in tried)
            assert best.predicted["peak"] == least
            alike = [each.predicted["flops"] for each in tried if each.predicted["peak"] == least]
            assert best.predicted["flops"] == min(alike)


def test_presets_say_what_they_promise(lab):
    said = {}
    for name in PRESETS:
        lab.preset(name)
        assert lab.screen.mistake == ""
        said[name] = f"{lab.screen.meaning} {words(lab)}"
    assert (
        "√16 = 4; of all lengths tried, least bytes: s = 3, 4, 5, 6" in said["x W keeps its input alone: √L"]
    )
    assert "Nothing else here keeps less." in said["x W keeps its input alone: √L"]
    assert "for 1.333 times the FLOPs" in said["without early stop: 8/6"]
    assert "12 last products" in said["GPT-2's layers"]
    assert "With only the scores computed again autograd keeps at most" in said["long sequences: the scores"]
    assert "computing it again saves nothing" in said["no help: one block"]
    assert "341 times what the blocks keep: here computing again does not help" in said["no help: few tokens"]


def test_nothing_computed_again_is_a_state_too(lab):
    lab.set(segment=0)
    assert lab.screen.meaning.startswith("Nothing is computed again, and 18.9 MB are kept.")
    assert "L × block = 16 × 1,179,648 = 18,874,368 bytes = 18.9 MB" in words(lab)
    assert points(lab, "start") == [pytest.approx((1, 18_874_368), rel=1e-3)]


def test_controls_that_mean_nothing_are_not_there(lab):
    assert lab.controls["scores_again"].layout.display == "none"
    lab.set(kind="GPT")
    assert lab.controls["scores_again"].layout.display == ""
    lab.set(scores_again=True)
    assert lab.controls["segment"].layout.display == "none"
    lab.set(kind="MLP")  # the tick waits
    assert lab.controls["segment"].layout.display == ""
    assert "scores" not in lab.screen.meaning


def test_a_segment_is_never_longer_than_the_stack(lab):
    lab.set(segment=16)
    lab.set(layers=3)
    assert lab.controls["segment"].max == 3
    assert lab.values["segment"] == 3
    lab.set(layers=40)
    assert lab.controls["segment"].max == 40


def test_heads_are_64_wide_where_the_width_allows():
    def heads(width):
        return plan_of("GPT", 1, 0, True, False, batch=1, sequence=1, width=width).heads

    assert [heads(w) for w in (64, 768, 96, 1, 97)] == [1, 12, 3, 1, 97]


# Measuring.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("early_stop", [True, False])
def test_real_steps_are_the_prediction_to_the_byte_and_the_flop(kind, early_stop):
    plan = Plan(kind, 3, 0, 2, 6, 64 if kind == "MLP" else 32, early_stop, scores_again=False)
    said = []
    results = found(said.append, **order_of(plan, plan.choices))
    assert list(results) == plan.choices
    for again, counted in results.items():
        assert counted == plan.choosing(again).predicted
    assert [step.fraction for step in said] == [n / len(results) for n in range(len(results))]
    assert said[1].report == "segments of 1 block: forward and backward."


def test_measuring_everything_puts_an_orange_point_on_each_blue_one(lab):
    lab.set(layers=3, batch=1, sequence=8)
    assert "not measured yet" in words(lab)
    lab.start("Measure all segments")
    lab.wait()
    assert lab.screen.report == "Measured 4 steps: bytes and FLOPs of 4 of 4 exactly as predicted."
    for orange, blue in zip(points(lab, "measured"), points(lab, "predicted"), strict=True):
        assert orange == pytest.approx(blue, rel=1e-3)
    assert "both exactly as predicted" in words(lab)
    head, *rows = lab.screen.table
    assert head[1:4] == ["predicted", "measured", "measured / predicted"]
    assert [row[3] for row in rows] == ["1 exactly"] * 3
    lab.set(segment=1)
    assert "measured: 4 of 4" in words(lab)
    lab.set(width=128)  # other blocks
    assert "not measured yet" in words(lab)
    assert points(lab, "measured") == []


def test_measure_runs_what_is_chosen_and_a_plain_step(lab):
    lab.set(layers=4, segment=3, batch=1, sequence=8)
    lab.start("Measure")
    lab.wait()
    assert lab.screen.report == "Measured 2 steps: bytes and FLOPs of 2 of 2 exactly as predicted."
    assert "measured: 2 of 5" in words(lab)
    lab.set(segment=2)
    assert "not yet: press Measure" in words(lab)


def test_what_is_not_as_predicted_is_said(lab):
    counted = {"kept": 524288, "peak": 10_223_616, "flops": 1}
    plan = plan_of(**lab.values)
    table = drawing.words.table(plan, counted)
    assert [row[3:] for row in table[1:3]] == [["1 exactly", "exactly that"], ["2", "5,111,808 bytes more"]]
    assert "see the table" in dict(drawing.words.formulas(plan, counted))["measured"]


def test_stop_kills_the_process_that_measures(lab):
    before = set(psutil.Process().children())
    lab.preset("GPT-2's layers")
    lab.start("Measure")
    children, end = set(), time.monotonic() + 20
    while not children and time.monotonic() < end:
        children = set(psutil.Process().children()) - before
    assert children, lab.screen.report
    assert button(lab, "Measure").disabled
    lab.stop()
    lab.wait()
    assert lab.screen.report.startswith("Stopped.")
    assert not any(child.is_running() for child in children)
    assert "not yet: press Measure" in words(lab)


def test_what_would_take_too_long_or_too_much_is_refused_before(lab, monkeypatch):
    monkeypatch.setattr("course_utils.apart.steps_apart", None)  # whoever calls it fails otherwise
    lab.set(kind="GPT", sequence=2**16, width=2**14)
    lab.start("Measure")
    with pytest.raises(
        ValueError, match=r"^Not measured: these 2 steps could take .* this lab waits for 90 s\. Take fewer"
    ):
        lab.wait()
    assert lab.screen.report.startswith("Not measured")
    lab.preset(FIRST)
    monkeypatch.setattr("course_utils.measure.free_bytes", lambda device: 5 * 10**8)
    lab.start("Measure")
    with pytest.raises(
        ValueError, match=r"^Not measured: it would hold up to .* and 500,000,000 bytes .* are free"
    ):
        lab.wait()


def test_what_is_asked_to_be_free_is_more_than_a_real_step_holds(monkeypatch):
    asked = []
    monkeypatch.setattr(recompute_plan.measure, "free_bytes", lambda device: asked.append(device) or 0)
    for kind in KINDS:
        plan = Plan(kind, 4, 1, 2, 64, 64, True, scores_again=False)
        with pytest.raises(ValueError, match="Not measured") as refusal:
            recompute_plan.check_that_it_can_run(plan, ["0"])
        need = int(re.search(r"up to ([\d,]+) bytes", str(refusal.value))[1].replace(",", ""))
        blocks = recompute_plan.blocks_of(plan)
        x = recompute_plan.torch.randn(2, 64, 64).requires_grad_()
        held = recompute_plan.measure.peak_bytes(
            lambda blocks=blocks, x=x: recompute_plan.models.recomputed(blocks, x, 0).sum().backward()
        )
        weights = sum(p.nbytes for p in blocks.parameters())
        assert weights + held < need - recompute_plan.A_PROCESS_BYTES
    assert set(asked) == {"cpu"}


# Nonsense, and the places of words.


@pytest.mark.parametrize(
    ("control", "name"), [("batch", "batch"), ("sequence", "sequence"), ("width", "width")]
)
@pytest.mark.parametrize("typed", ["", "0", "-1", "1.5", "many", "2^21", "<b>"])
def test_nonsense_gets_a_sentence_and_the_next_sensible_input_recovers(lab, control, name, typed):
    picture = lab.screen.svg
    lab.set(**{control: typed})
    assert lab.screen.mistake.startswith(f"{name} is a size: a whole number from 1 to 1,048,576")
    assert lab.screen.svg == picture
    lab.start("Measure")
    assert lab.screen.mistake
    lab.set(**{control: "2^5"})
    assert lab.screen.mistake == ""
    assert lab.screen.svg != picture


size = st.one_of(st.integers(1, 4096), st.sampled_from([1, 2**10, 2**20, 999_999]))


@settings(deadline=None, max_examples=50)
@given(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(KINDS),
            "layers": st.integers(1, 96),
            "segment": st.integers(0, 96),
            "batch": size,
            "sequence": size,
            "width": size,
            "early_stop": st.booleans(),
            "scores_again": st.booleans(),
        }
    )
)
def test_every_state_is_a_picture_in_which_no_words_overlap(values):
    ANY_LAB.set(**values)
    assert ANY_LAB.error is None
    assert ANY_LAB.screen.meaning.endswith(".")
    assert_all_can_be_read(ANY_LAB.screen.svg)
    for node in ElementTree.fromstring(ANY_LAB.screen.svg).iter():
        assert not any(value in ("nan", "inf") for value in node.attrib.values())
        if node.tag.endswith("rect"):
            x, width = float(node.get("x")), float(node.get("width"))
            assert -0.01 <= x <= x + width <= drawing.WIDTH
            assert width >= 0
        if node.tag.endswith("circle"):
            assert 0 < float(node.get("cx")) < drawing.WIDTH
            assert 0 < float(node.get("cy")) < drawing.HEIGHT


@pytest.mark.parametrize("name", list(PRESETS))
def test_in_no_preset_words_overlap(lab, name):
    lab.preset(name)
    assert_all_can_be_read(lab.screen.svg)
