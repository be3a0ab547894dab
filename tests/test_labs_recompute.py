"""The recompute lab: its bars and points against the closed forms, its measurements against torch."""

import re
from dataclasses import asdict

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import labs, measure, models, predict
from course_utils.labs.recompute import jobs, picture
from course_utils.labs.recompute.asked import KINDS, PRESETS, Cost, Plan
from tests.labs import centres, fresh, nodes, run, steps_here
from tests.words import words

LAB = labs.lab_named("recompute")
lab = fresh("recompute")


# What it shows.


def points(plan, svg, class_):
    """The centres of the circles in the plot, back in FLOPs and bytes."""
    plot = picture.frontier_plot(plan)
    (x0, x1), (y0, y1) = ((axis.low, axis.high) for axis in (plot.x_axis, plot.y_axis))
    return [
        (x0 + (x1 - x0) * (x - plot.left) / plot.width, y0 + (y1 - y0) * (plot.bottom - y) / plot.height)
        for x, y in centres(svg, class_)
        if y > plot.top and x < picture.NAMES_AT
    ]


def strip_bytes(plan, svg, number):
    """The area of one of the three strips, in bytes of blocks that keep everything."""
    top = picture.STRIPS_TOP + picture.STEP * number
    parts = nodes(svg, "rect", "stored") + nodes(svg, "rect", "rebuilt")
    heights = [float(one.get("height")) for one in parts if top < float(one.get("y")) < top + picture.STEP]
    return sum(heights) / picture.TALL * plan.all_kept.stack.block_bytes


def stack_of(kind, layers, **again):
    if kind in ("x W", "MLP"):
        return {"x W": predict.linear_stack, "MLP": predict.mlp_stack}[kind](layers, 16, 64)
    shape = predict.Transformer(layers, 64, 1, 1, 8)
    return predict.transformer_stack(shape, 2, 8, fused=kind != "GPT", **again)


@settings(max_examples=50)
@given(st.sampled_from(KINDS), st.integers(1, 16), st.integers(0, 16), st.booleans(), st.booleans())
def test_points_and_strips_lie_where_the_closed_forms_say(kind, layers, segment, early_stop, scores):
    segment, scores = min(segment, layers) if not scores else 0, scores and kind == "GPT"
    plan = Plan(kind, layers, scores, segment, early_stop, batch=2, sequence=8, width=64)
    svg, stack = LAB.view(plan, {}).picture, stack_of(kind, layers)
    chosen = stack_of(kind, layers, scores_again=True) if scores else stack
    costs = [(stack.flops_ratio(s, early_stop=early_stop), stack.peak_bytes(s)) for s in range(layers + 1)]
    if kind == "GPT":
        again = stack_of(kind, layers, scores_again=True)
        flops = again.step_flops(0, early_stop=early_stop).total / stack.step_flops(0).total
        costs.append((flops, again.peak_bytes(0)))
    drawn, whole = points(plan, svg, "predicted"), stack.peak_bytes(0).total
    for (x, y), (ratio, peak) in zip(drawn, costs, strict=True):
        assert x == pytest.approx(ratio, abs=2e-4)
        assert y == pytest.approx(peak.total, abs=whole / 3000)
    assert points(plan, svg, "start") == [pytest.approx(drawn[-1 if scores else segment])]
    assert points(plan, svg, "ring")[0][1] == pytest.approx(min(y for _, y in drawn))
    kept = [whole, chosen.kept_bytes(segment), chosen.peak_bytes(segment).total]
    assert [strip_bytes(plan, svg, n) for n in range(3)] == pytest.approx(kept, rel=2e-2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2, 5, 16])
def test_the_best_is_the_least_of_all_and_ties_go_to_the_cheapest(kind, layers):
    plan = Plan(kind, layers, segment=0)
    costs, best = [one.predicted for one in plan.frontier], plan.least.predicted
    assert best.peak == min(cost.peak for cost in costs)
    assert best.flops == min(cost.flops for cost in costs if cost.peak == best.peak)


FIRST, *_ = PRESETS
SAYS = [
    (FIRST, "With segments of 4 blocks: at most 5.11 MB kept at one time, 27.1 % of 18.9 MB, for"),
    (FIRST, "27.1 % of 18.9 MB, for 1.292 times the FLOPs."),
    (FIRST, "Segments of 1 block would keep least: 3.15 MB for 1.167 times the FLOPs."),
    (FIRST, "keeps 1,179,648 B, 9 × its input, B·S·H·4 = 131,072 B"),
    (FIRST, "(L / s - 1) × input + s × block = 3 × 131,072 B + 4 × 1,179,648 B = 5,111,808 bytes"),
    (FIRST, "√(L × input / block) = √(16 / 9) = 1.33"),
    ("when is √L best?", "√(16 / 1) = 4; of all lengths tried, least bytes: s = 3, 4, 5 and 6"),
    ("when is √L best?", "s = 4, least"),
    ("when is √L best?", "Nothing else here keeps less."),
    ("when is it 8/6?", "= 8/6 × a step with all kept"),
    ("what of GPT-2?", "12 last products"),
    ("only the scores?", "With only the scores computed again: at most"),
    ("only the scores?", "without scores, B·A·S²·4 = 8,388,608 B"),
    ("with one block?", "100 % of 1.18 MB"),
    ("with one block?", "none helps"),
    ("with few tokens?", "906 MB, 341 times all kept"),
    ({"segment": 0}, "With nothing computed again: at most 18.9 MB kept"),
    ({"segment": 0}, "L × block = 16 × 1,179,648 B = 18,874,368 bytes"),
    ({"segment": 3}, "inputs + one segment = 4 × 131,072 B + 3 × 1,179,648 B"),
    ({"kind": "GPT"}, "of them scores, B·A·S²·4 = 262,144 B"),
    ({"kind": "GPT", "width": 768}, "of them scores, B·A·S²·4 = 3,145,728 B"),  # heads are 64 wide
    ({"kind": "GPT", "width": 97}, "of them scores, B·A·S²·4 = 25,427,968 B"),  # or what divides 64
]


@pytest.mark.parametrize(("asked", "sentence"), SAYS, ids=str)
def test_every_preset_answers_its_question_and_special_states_say_what_they_are(asked, sentence):
    view = LAB.view(LAB.read(dict(PRESETS[FIRST]) | dict(PRESETS.get(str(asked), asked))), {})
    assert sentence in f"{view.meaning} {view.picture}"


def test_it_opens_with_the_first_of_its_questions_and_all_are_answered(lab):
    assert lab.values == dict(PRESETS[FIRST])
    assert {asked for asked, _ in SAYS if isinstance(asked, str)} == set(PRESETS)
    plan = Plan(**PRESETS["with few tokens?"])
    parameters = sum(p.numel() for p in jobs.blocks_of(plan).parameters())
    assert f"16 × {parameters:,} = 906 MB" in LAB.view(plan, {}).picture


def test_controls_that_mean_nothing_are_not_there_and_a_segment_is_no_longer_than_the_stack(lab):
    def hidden(**moved):
        lab.set(**moved)
        return {name for name, one in lab.controls.items() if one.layout.display == "none"}

    assert hidden(segment=16) == {"scores_again"}
    assert hidden(kind="GPT") == set()
    assert hidden(scores_again=True) == {"segment"}
    assert hidden(kind="MLP") == {"scores_again"}  # the tick waits
    assert "scores" not in lab.screen.meaning
    lab.set(layers=3)
    assert (lab.controls["segment"].max, lab.values["segment"]) == (3, 3)


# Measuring.


@pytest.mark.parametrize(
    ("kind", "early_stop"), [*zip(KINDS, (True, False) * 2, strict=True), ("GPT", False)]
)
def test_real_steps_are_the_prediction_to_the_byte_and_the_flop(kind, early_stop):
    plan, told = Plan(kind, 3, segment=0, early_stop=early_stop, batch=2, sequence=6, width=32), []
    plans = [plan, *plan.frontier[2:]]
    with measure.cpu_threads(1):
        results = jobs.counted(told.append, plans=[asdict(one) for one in plans])["counts"]
    assert [Cost(**counts) for counts in results] == [one.predicted for one in plans]
    assert [step.fraction for step in told] == [n / len(plans) for n in range(len(plans))]
    assert told[1].report == "Segments of 2 blocks: forward and backward."


def test_measure_runs_what_is_chosen_and_a_plain_step_and_all_a_point_for_each(lab, monkeypatch):
    monkeypatch.setattr("course_utils.workers.process.steps_of", steps_here)
    lab.set(layers=3, segment=3, batch=1, sequence=8)
    assert run(lab, "Measure") == "Measured bytes and FLOPs of steps: 2 of 2 exactly as predicted."
    assert [plan.segment for plan in lab.session.found] == [0, 3]
    assert "FLOPs: all exactly as predicted" in words(lab)
    lab.set(segment=2)
    assert "not yet" in words(lab)
    assert "of steps: 4 of 4 exactly as predicted." in run(lab, "Measure all segments")
    plan = LAB.read(lab.values)
    blue, orange = (points(plan, lab.screen.svg, class_) for class_ in ("predicted", "measured"))
    assert orange == [pytest.approx(point, rel=1e-3) for point in blue]
    lab.set(width=128)  # other blocks
    assert "not yet" in words(lab)
    assert points(plan, lab.screen.svg, "measured") == []


def test_a_count_that_differs_from_its_prediction_is_said():
    beside = "10,223,616, and 1 FLOPs: predicted 524,288 bytes after the forward, at most 5,111,808, and"
    assert beside in LAB.view(Plan(), {Plan(): Cost(524_288, 10_223_616, 1)}).picture


def test_what_would_take_too_long_or_too_much_is_refused_before(monkeypatch):
    monkeypatch.setattr("course_utils.workers.process.steps_of", None)  # whoever calls it fails otherwise
    monkeypatch.setattr("course_utils.measure.free_bytes", {"cpu": 5 * 10**8}.get)
    for plan, why in (
        (Plan("GPT", sequence=2**16, width=2**14), "it could take .* waits for 90 s"),
        (Plan(), "it would hold up to .* and 500,000,000 bytes .* are free"),
    ):
        with pytest.raises(ValueError, match=rf"^Not measured: {why}\. Take fewer blocks, or a smaller"):
            next(LAB.measure_chosen(plan, {}))


@pytest.mark.parametrize("kind", KINDS)
def test_the_memory_that_has_to_be_free_is_more_than_a_real_step_holds(kind, monkeypatch):
    monkeypatch.setattr("course_utils.measure.free_bytes", {"cpu": 0}.get)
    plan = Plan(kind, 4, segment=0, batch=2, sequence=64, width=64)
    with pytest.raises(ValueError, match="Not measured") as refusal:
        jobs.check_that_it_can_run([plan])
    need = int(re.search(r"up to ([\d,]+) bytes", str(refusal.value))[1].replace(",", ""))
    blocks, x = jobs.blocks_of(plan), torch.randn(2, 64, 64).requires_grad_()
    held = measure.peak_bytes(lambda: models.recomputed(blocks, x, 0).sum().backward())
    weights = sum(p.nbytes for p in blocks.parameters())
    assert weights + held < need - jobs.A_PROCESS_BYTES
