"""The recompute lab: its bars and points against the closed forms, its measurements against torch."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict

import psutil
import pytest
import torch

from course_utils import labs, measure, models, predict
from course_utils.labs.recompute import jobs, picture
from course_utils.labs.recompute.asked import KINDS, PRESETS, Cost, Plan
from course_utils.labs.recompute.words import meaning as meaning_of
from tests.hostile import button
from tests.waiting import wait_until
from tests.words import words

FIRST = next(iter(PRESETS))


@pytest.fixture
def lab():
    """The recompute lab as it opens."""
    panel = labs.recompute_lab()
    yield panel
    panel.close()


def plan_of(panel):
    return panel.lab.read(panel.values)


def nodes(panel, tag, class_):
    tree = ElementTree.fromstring(panel.screen.svg)
    return [node for node in tree.iter() if node.tag.endswith(tag) and node.get("class") == class_]


def points(panel, class_):
    """The centres of the circles in the plot, back in FLOPs and bytes."""
    plot = picture.frontier_plot(plan_of(panel))
    (x0, x1), (y0, y1) = ((axis.low, axis.high) for axis in (plot.x_axis, plot.y_axis))
    return [
        (x0 + (x1 - x0) * (x - plot.left) / plot.width, y0 + (y1 - y0) * (plot.bottom - y) / plot.height)
        for x, y in (
            (float(node.get("cx")), float(node.get("cy"))) for node in nodes(panel, "circle", class_)
        )
        if y > plot.top and x < picture.NAMES_AT
    ]


def strip_bytes(panel, number):
    """The area of one of the three strips, in bytes of blocks that keep everything."""
    top = picture.STRIPS_TOP + picture.STEP * number
    tall = [
        float(part.get("height"))
        for part in nodes(panel, "rect", "stored") + nodes(panel, "rect", "rebuilt")
        if top < float(part.get("y")) < top + picture.STEP
    ]
    return sum(tall) / picture.TALL * plan_of(panel).all_kept.stack.block_bytes


# What it shows.


def test_it_opens_where_the_square_root_misleads(lab):
    meaning = lab.screen.meaning
    kept = "With segments of 4 blocks: at most 5.11 MB kept at one time, 27.1 % of 18.9 MB"
    assert meaning.startswith(f"{kept}, for 1.292 times the FLOPs. ")
    assert "Segments of 1 block would keep least: 3.15 MB for 1.167 times the FLOPs." in meaning
    assert "(L / s - 1) × input + s × block = 3 × 131,072 B + 4 × 1,179,648 B = 5,111,808 bytes" in words(lab)
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
    lab.preset("only the scores?")
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
    lab.set(layers=layers, segment=segment)
    stack = predict.mlp_stack(layers, 4 * 128, 64)
    kept = [stack.kept_bytes(0), stack.kept_bytes(segment), stack.peak_bytes(segment).total]
    for number, nbytes in enumerate(kept):
        assert strip_bytes(lab, number) == pytest.approx(nbytes, rel=1e-4)


def test_the_strips_cover_as_much_as_is_kept_without_the_scores(lab):
    lab.preset("only the scores?")
    stack = predict.transformer_stack(predict.Transformer(6, 128, 2, 1, 1024), 1, 1024, scores_again=True)
    assert strip_bytes(lab, 1) == pytest.approx(stack.kept_bytes(0), rel=2e-2)
    assert strip_bytes(lab, 2) == pytest.approx(stack.peak_bytes(0).total, rel=2e-2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2, 5, 16])
def test_the_best_is_the_least_of_all_and_ties_go_to_the_cheapest(kind, layers):
    plan = Plan(kind, layers, segment=0)
    costs, best = [one.predicted for one in plan.frontier], plan.least.predicted
    assert best.peak == min(cost.peak for cost in costs)
    assert best.flops == min(cost.flops for cost in costs if cost.peak == best.peak)


def test_presets_say_what_they_promise(lab):
    said = {}
    for name in PRESETS:
        lab.preset(name)
        said[name] = f"{lab.screen.meaning} {words(lab)}"
    assert "√(16 / 1) = 4; of all lengths tried, least bytes: s = 3, 4, 5 and 6" in said["when is √L best?"]
    assert "Nothing else here keeps less." in said["when is √L best?"]
    assert "= 8/6 × a step with all kept" in said["when is it 8/6?"]
    assert "12 last products" in said["what of GPT-2?"]
    assert "With only the scores computed again: at most" in said["only the scores?"]
    assert "100 % of 1.18 MB" in said["with one block?"]
    assert "none helps" in said["with one block?"]
    assert "906 MB, 341 times all kept" in said["with few tokens?"]


@pytest.mark.parametrize("kind", KINDS)
def test_its_meaning_fits_in_two_lines(kind):
    for early_stop in (True, False):
        for segment in (0, 1, 3, 8):
            assert len(meaning_of(Plan(kind, 8, segment=segment, early_stop=early_stop))) <= 230


def test_nothing_computed_again_is_a_state_too(lab):
    lab.set(segment=0)
    assert lab.screen.meaning.startswith("With nothing computed again: at most 18.9 MB kept")
    assert "L × block = 16 × 1,179,648 B = 18,874,368 bytes" in words(lab)
    assert points(lab, "start") == [pytest.approx((1, 18_874_368), rel=1e-3)]


def test_parameters_and_their_state_are_16_bytes_each(lab):
    lab.preset("with few tokens?")
    parameters = sum(p.numel() for p in jobs.blocks_of(plan_of(lab)).parameters())
    assert f"16 × {parameters:,} = 906 MB" in words(lab)


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
    assert (lab.controls["segment"].max, lab.values["segment"]) == (3, 3)
    lab.set(layers=40)
    assert lab.controls["segment"].max == 40
    with pytest.raises(ValueError, match=r"at most all 3 blocks; got 4\. Make segment s smaller\.$"):
        lab._show(**lab.values | {"layers": 3, "segment": 4})


def test_heads_are_64_wide_where_the_width_allows():
    assert [Plan("GPT", width=width).heads for width in (64, 768, 96, 1, 97)] == [1, 12, 3, 1, 97]


# Measuring.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("early_stop", [True, False])
def test_real_steps_are_the_prediction_to_the_byte_and_the_flop(kind, early_stop):
    sizes = {"batch": 2, "sequence": 6, "width": 64 if kind == "MLP" else 32}
    plan, said = Plan(kind, 3, segment=0, early_stop=early_stop, **sizes), []
    results = jobs.counted(said.append, plans=[asdict(one) for one in plan.frontier])["counts"]
    assert [Cost(**counts) for counts in results] == [one.predicted for one in plan.frontier]
    assert [step.fraction for step in said] == [n / len(results) for n in range(len(results))]
    assert said[1].report == "Segments of 1 block: forward and backward."


def test_measuring_everything_puts_an_orange_point_on_each_blue_one(lab):
    lab.set(layers=3, batch=1, sequence=8)
    lab.start("Measure all segments")
    lab.wait()
    assert lab.screen.report == "Measured bytes and FLOPs of steps: 4 of 4 exactly as predicted."
    for orange, blue in zip(points(lab, "measured"), points(lab, "predicted"), strict=True):
        assert orange == pytest.approx(blue, rel=1e-3)
    assert "FLOPs: all exactly as predicted" in words(lab)
    lab.set(segment=1)
    assert len(points(lab, "measured")) == 4
    lab.set(width=128)  # other blocks
    assert "not yet: press Measure" in words(lab)
    assert points(lab, "measured") == []


def test_measure_runs_what_is_chosen_and_a_plain_step(lab):
    lab.set(layers=4, segment=3, batch=1, sequence=8)
    lab.start("Measure")
    lab.wait()
    assert lab.screen.report == "Measured bytes and FLOPs of steps: 2 of 2 exactly as predicted."
    assert {plan.segment for plan in lab.found} == {0, 3}
    lab.set(segment=2)
    assert "not yet: press Measure" in words(lab)


def test_what_is_not_as_predicted_is_said(lab):
    plan, counted = plan_of(lab), Cost(524_288, 10_223_616, 1)
    beside = "10,223,616, and 1 FLOPs: predicted 524,288 bytes after the forward, at most 5,111,808, and"
    assert beside in lab.lab.view(plan, {plan: counted}).picture


def test_stop_kills_the_process_that_measures(lab):
    before = set(psutil.Process().children())
    lab.preset("what of GPT-2?")
    lab.start("Measure")
    wait_until(lambda: set(psutil.Process().children()) - before, "the process is there")
    children = set(psutil.Process().children()) - before
    assert button(lab, "Measure").disabled
    lab.stop()
    lab.wait()
    assert lab.screen.report.startswith("Stopped.")
    assert not any(child.is_running() for child in children)
    assert "not yet: press Measure" in words(lab)


def test_what_would_take_too_long_or_too_much_is_refused_before(lab, monkeypatch):
    monkeypatch.setattr("course_utils.workers.process.steps_of", None)  # whoever calls it fails otherwise
    lab.set(kind="GPT", sequence=2**16, width=2**14)
    lab.start("Measure")
    with pytest.raises(
        ValueError, match=r"^Not measured: 2 steps could take .* this lab waits for 90 s\. Take fewer"
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


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_asked_to_be_free_is_more_than_a_real_step_holds(kind, monkeypatch):
    asked = []
    monkeypatch.setattr("course_utils.measure.free_bytes", lambda device: asked.append(device) or 0)
    plan = Plan(kind, 4, segment=1, batch=2, sequence=64, width=64)
    with pytest.raises(ValueError, match="Not measured") as refusal:
        jobs.check_that_it_can_run([plan.all_kept])
    need = int(re.search(r"up to ([\d,]+) bytes", str(refusal.value))[1].replace(",", ""))
    blocks, x = jobs.blocks_of(plan), torch.randn(2, 64, 64).requires_grad_()
    held = measure.peak_bytes(lambda: models.recomputed(blocks, x, 0).sum().backward())
    weights = sum(p.nbytes for p in blocks.parameters())
    assert weights + held < need - jobs.A_PROCESS_BYTES
    assert asked == ["cpu"]
