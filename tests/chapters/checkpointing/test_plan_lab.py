"""The plan lab: its costs against a step that is walked through pass by pass, and its best plan against all plans."""

import math
import re
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import course_utils.core.accountant as ours
from course_utils.chapters import accountant, by_torch, labs
from course_utils.chapters.checkpointing.plan_lab.asked import LEVELS
from course_utils.chapters.checkpointing.plan_lab.picture import LEFT, LENGTH, PASSES, full_scale
from course_utils.chapters.checkpointing.plans import (
    BATCHES,
    MINUTES,
    NVLINK_BYTES_PER_SEC,
    RECIPES,
    SHARE,
    Plan,
    Planner,
)
from course_utils.core import predict
from course_utils.core.accountant_file import TERMS
from course_utils.core.datasheets import MACHINES
from tests import NOTEBOOKS
from tests.engine.test_labs_contract import states
from tests.helpers.labs import answers, fresh, lines, nodes
from tests.helpers.notebooks import read

LAB = labs.lab_named("plan")
lab = fresh("plan")
BEST = {  # stage, over a node, micro-batch, layers recomputed, minutes between saves; days
    "8B · 32 A100s": (2, False, 2, 21, 480, 159.6),
    "13B · 16 H100s": (3, True, 8, 28, 720, 142.5),
    "13B · 64 A100s": (3, False, 8, 20, 360, 108.3),
    "70B · 512 H100s": (3, False, 2, 75, 120, 27.7),
}


def cost_or_none(planner, plan):
    try:
        cost = planner.cost(plan)
    except ValueError:
        return None
    return cost if cost.fits and not cost.loses_gradients else None


def walked(task, plan):
    """Days, by going through all passes of a step; FLOPs and bytes are those of `predict`."""
    shape, parts = predict.shape_of(task.model), predict.RECIPES[plan.recipe]
    peak = MACHINES[task.machine].peak("tf32" if parts.parameters == "fp32" else "bf16") * SHARE
    forward = shape.forward_flops(plan.batch, task.sequence).total
    parts_of_it = shape.forward_flops(plan.batch, task.sequence)
    layer = (parts_of_it["matrices"] + parts_of_it["attention"]) / shape.layers
    again = plan.recomputed * (layer - 2 * plan.batch * task.sequence * shape.inner * shape.width)
    network, nvlink = task.gbit_per_sec / 8 * 1e9, NVLINK_BYTES_PER_SEC[task.machine]
    sharers, speed = (8, nvlink) if plan.over_node else (task.gpus, min(network, nvlink))
    once = shape.parameters * (sharers - 1) / sharers / speed
    gather, reduce = (
        once * parts.bytes_by_part["parameters"],
        once * parts.bytes_by_part["gradients"],
    )
    nodes, total, most = task.gpus // 8, 0, 0
    several = task.sequences // plan.batch
    for number in range(several):
        first, last = number == 0, number == several - 1
        there = gather if plan.stage == 3 or (first and plan.stage) else 0
        back = gather if plan.stage == 3 else 0
        if plan.stage >= 2 or last:
            back += reduce * (1 if plan.stage else 2)
        if plan.over_node and last:
            back += (
                2
                * shape.parameters
                * parts.bytes_by_part["gradients"]
                * (nodes - 1)
                / nodes
                / network
            )
        for flops, sent in ((forward, there), (2 * forward + again, back)):
            total += max(flops / peak, sent)
            most += flops / peak + sent
    failure_s = 54 * 16_384 * 86_400 / 419 / task.gpus
    lost = 60 / (60 * plan.minutes) + 60 * plan.minutes / (2 * failure_s) + 300 / failure_s
    steps = task.tokens / (task.gpus * task.sequences * task.sequence)
    return [steps * seconds / 86_400 / (1 - lost) for seconds in (total, most)]


@given(st.sampled_from(list(LEVELS)), st.data())
def test_a_plans_days_are_those_of_a_step_that_is_walked_through(level, data):
    task, planner = LEVELS[level], Planner(LEVELS[level])
    plan = data.draw(st.sampled_from(list(planner.choices())))
    recomputed = data.draw(st.integers(0, task.model.layers))
    plan = replace(plan, recomputed=recomputed, minutes=data.draw(st.sampled_from(MINUTES)))
    cost = planner.cost(plan)
    assert [cost.days, cost.most_days] == pytest.approx(walked(task, plan), rel=1e-9)
    sharers = 8 if plan.over_node else task.gpus
    state = predict.training_bytes(
        ours.parameters(task.model), plan.recipe, machines=sharers, stage=plan.stage
    )
    made = {"gradients": cost.held["gradients"]}  # none at the loss of a first micro-batch
    assert {part: cost.held.get(part, 0) for part in state} == dict(state) | made
    assert made["gradients"] in (
        {state["gradients"]} if plan.batch < task.sequences else {0, state["gradients"]}
    )


@given(st.sampled_from(list(LEVELS)), st.data(), st.booleans())
def test_no_plan_fits_that_does_not_fit_by_the_timeline(level, data, again):
    """With all gradients in memory, or with one micro-batch and none before it."""
    task, planner = LEVELS[level], Planner(LEVELS[level])
    plan = data.draw(st.sampled_from(list(planner.choices())))
    cost = planner.cost(replace(plan, recomputed=task.model.layers * again))
    several = task.micro_batches(plan.batch) > 1
    step = predict.timeline(
        *(task.model, plan.batch, task.sequence),
        recipe=plan.recipe,
        recompute=again,
        accumulate=several,
        machines=8 if plan.over_node else task.gpus,
        stage=plan.stage,
        gathered=True,
    )
    held = sum(cost.held.values())
    assert step.peak <= held
    assert step.peak <= task.memory or not cost.fits
    if several:
        assert held == pytest.approx(step.peak, rel=1e-3)


@pytest.mark.parametrize("level", BEST)
def test_the_best_plan_of_each_level_is_what_is_said_and_in_no_corner(level):
    planner, (*expected, days) = Planner(LEVELS[level]), BEST[level]
    best = planner.best
    assert [best.stage, best.over_node, best.batch, best.recomputed, best.minutes] == expected
    assert planner.least.days == pytest.approx(days, abs=0.05)
    assert 1 < best.batch < LEVELS[level].sequences
    assert 0 < best.recomputed < LEVELS[level].model.layers
    assert MINUTES[0] < best.minutes < MINUTES[-1]


@pytest.mark.parametrize("level", BEST)
def test_the_quick_search_finds_what_trying_all_plans_finds(level):
    task = LEVELS[level]
    task = replace(task, model=replace(task.model, layers=5), gbit_per_sec=task.gbit_per_sec / 8)
    planner = Planner(task)
    all_plans = product(RECIPES, range(4), (False, True), BATCHES, range(6), MINUTES)
    costs = [cost_or_none(planner, Plan(*one)) for one in all_plans if one[1] or not one[2]]
    assert planner.least.days == min(cost.days for cost in costs if cost)
    asked = []
    counting = SimpleNamespace(
        **vars(ours) | {"moments": lambda *sizes: asked.append(1) or ours.moments(*sizes)}
    )
    assert Planner(LEVELS[level], counting).best == Planner(LEVELS[level]).best
    assert len(asked) < 1000


@pytest.mark.parametrize("level", ["8B · 32 A100s", "13B · 64 A100s"])
def test_where_a_level_is_decided_a_step_holds_what_torch_counts(level):
    task, best = LEVELS[level], Planner(LEVELS[level]).best
    small = replace(task.model, layers=3)
    sizes = best.batch, task.sequence, "bf16", 2
    assert ours.step_bytes(small, *sizes) == pytest.approx(
        by_torch.step_bytes(small, *sizes), rel=1e-3
    )


def test_the_answers_below_the_lab_in_notebook_8_are_the_planners():
    level = "13B · 64 A100s"
    planner, plan = Planner(LEVELS[level]), Plan(RECIPES[2], 3, False, 1, 0, 60)
    (linked,) = (cell.source for cell in read(NOTEBOOKS[-1]).cells if cell.id == "c8b0a1d082")
    said = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", linked)

    def cost(**changes):
        return planner.cost(replace(plan, **changes))

    (backward,) = (one for one in cost().passes if one.name == "backward")
    assert f"At *{level}*" in said
    assert f"each of {LEVELS[level].sequences} micro-batches" in said
    assert f"{backward.sent_s:.2f} s of sending stand against {backward.compute_s:.2f} s" in said
    days = [cost(batch=batch).days for batch in (1, 2, 4)]
    assert f"{days[0]:.0f}, {days[1]:.0f}, {days[2]:.0f} days" in said
    longer = [
        all(one.compute_s > one.sent_s for one in cost(batch=b, recomputed=40).passes)
        for b in BATCHES
    ]
    assert longer == [batch >= 8 for batch in BATCHES]
    assert "From 8 sequences on, which fit only if layers are recomputed," in said
    assert [cost(batch=batch).fits for batch in BATCHES] == [batch < 8 for batch in BATCHES]
    fewest = next(r for r in range(41) if cost(batch=8, recomputed=r).fits)
    times = [cost(batch=8, recomputed=r).days for r in (fewest, 40)]
    assert (
        f"{fewest} of the 40 layers are enough: {times[0]:.0f} days in place of {times[1]:.0f}"
        in said
    )
    node = cost(batch=2, recomputed=40, over_node=True)
    slow = [one.name for one in node.passes if one.sent_s > one.compute_s]
    assert slow == ["last backward"]


def test_as_the_network_gets_faster_smaller_micro_batches_and_fewer_recomputed_layers_are_best():
    task = LEVELS["13B · 64 A100s"]
    best = [Planner(replace(task, gbit_per_sec=gbit)).best for gbit in (50, 100, 200)]
    assert [(plan.batch, plan.recomputed) for plan in best] == [(16, 32), (8, 20), (4, 0)]


LOSSY = {"level": "8B · 32 A100s", "recipe": "bf16+master adamw", "batch": 4}
OWN = {
    "recipe": RECIPES[2],
    "stage": 3,
    "over_node": True,
    "batch": 2,
    "recomputed": 7,
    "minutes": 20,
}


def test_a_plan_that_loses_gradients_is_drawn_says_why_and_leaves_every_control_alive(lab):
    lab.set(**LOSSY)
    pictures = set()
    for moved in ({}, {"batch": 2}, {"stage": 2}, {"recomputed": 20}, {"minutes": 480}):
        lab.set(**moved)
        pictures.add(lab.screen.svg)
        assert lab.screen.mistake == ""
        assert "loses gradients" in lab.screen.meaning
        assert "it loses gradients" in lab.screen.svg
    assert len(pictures) == 5
    lab.act("Show the best plan")
    assert lab.screen.meaning.endswith("No plan takes fewer.")
    lab.set(**LOSSY | {"batch": 8})
    assert "loses gradients" not in lab.screen.meaning


def test_a_change_of_level_never_ends_in_an_error_and_takes_the_plan_with_it(lab):
    lab.set(level="13B · 64 A100s", batch=32, recomputed=40)
    for level, task in LEVELS.items():
        lab.set(level=level)
        assert lab.screen.mistake == ""
        capped = f"A step has {task.sequences} sequences for each GPU" in lab.screen.meaning
        assert capped == (task.sequences < 32)
        asked = LAB.read(lab.values)
        assert (asked.plan.batch, asked.plan.recomputed) == (task.sequences, task.model.layers)


def test_no_preset_changes_the_level_and_all_layers_are_all_of_that_level(lab):
    for level, task in LEVELS.items():
        for label in LAB.presets:
            lab.set(level=level)
            lab.preset(label)
            assert lab.values["level"] == level
            assert lab.screen.mistake == ""
        lab.preset("all layers again?")
        assert lab.values["recomputed"] == task.model.layers


def test_the_whole_step_as_one_micro_batch_may_have_gradients_in_bf16(lab):
    lab.set(level="13B · 16 H100s")
    assert "Fits" in answers(lab, "one micro-batch?")
    assert lab.values["recipe"] == "bf16+master adamw"


def test_after_the_best_plan_one_goes_back_to_ones_own_which_each_level_has(lab):
    lab.act("Back to mine")
    assert "the best one was not shown yet" in lab.screen.mistake
    for level in ("8B · 32 A100s", "70B · 512 H100s"):
        lab.set(level=level, **OWN)
        before = lab.screen.svg
        for _ in range(2):  # pressed twice, it is still one's own that comes back
            lab.act("Show the best plan")
            assert lab.screen.svg != before
        lab.act("Back to mine")
        assert lab.screen.svg == before
        assert {name: lab.values[name] for name in OWN} == OWN
    lab.set(level="13B · 16 H100s")
    lab.act("Back to mine")
    assert "the best one was not shown yet" in lab.screen.mistake


def test_a_level_that_the_reader_solves_leaves_a_sign_and_one_that_was_shown_does_not(lab):
    best = vars(Planner(LEVELS["8B · 32 A100s"]).best)
    lab.set(level="70B · 512 H100s")
    lab.act("Show the best plan")
    assert "levels solved" not in lab.screen.svg
    lab.set(level="8B · 32 A100s", **best)
    assert lab.screen.meaning.endswith("No plan takes fewer. You have solved this level.")
    lab.set(level="13B · 64 A100s", **OWN)
    assert "1 of 4 levels solved" in lab.screen.svg
    lab.set(level="8B · 32 A100s", **best)
    assert lab.screen.meaning.endswith("You have solved this level.")


def test_bars_of_two_plans_of_a_level_can_be_compared_as_the_scale_is_the_best_plans_step():
    for level in LEVELS:
        for batch, recomputed in ((1, 0), (2, 20), (4, 32)):
            first = {name: field.default for name, field in LAB.fields.items()}
            asked = LAB.read(first | {"level": level, "batch": batch, "recomputed": recomputed})
            outcome = Planner(LEVELS[level]).outcome(asked.plan)
            picture = LAB.view(asked, LAB.found).picture
            (together,) = (
                one
                for one in nodes(picture, "rect", "part passing")
                if float(one.get("y")) > PASSES
            )
            (line,) = (one for one in lines(picture, "line") if one[0][1] > PASSES)
            best = line[0][0] - LEFT
            said = float(together.get("width")) / best
            assert said == pytest.approx(outcome.cost.step_s / outcome.least.step_s, rel=5e-3)
            doublings = math.log2(LENGTH / best)
            assert doublings == pytest.approx(round(doublings), abs=1e-2)


def test_the_best_plan_is_shown_and_nothing_beats_it(lab):
    for level in LEVELS:
        lab.set(level=level, batch=1, recomputed=30, stage=3, over_node=False, recipe=RECIPES[2])
        assert "No plan takes fewer" not in lab.screen.meaning
        lab.act("Show the best plan")
        assert lab.screen.meaning.endswith("No plan takes fewer.")
        assert lab.values["level"] == level


def test_bars_are_as_long_as_their_seconds_and_only_a_plan_that_fits_has_a_score():
    for state in states("plan", 40):
        asked = LAB.read(state)
        view = LAB.view(asked, LAB.found)
        outcome = Planner(LEVELS[asked.level]).outcome(asked.plan)
        cost = outcome.cost
        passes = [one for one in cost.passes if one.count]
        for kind, seconds in (("predicted", "compute_s"), ("limit", "sent_s")):
            bars = [
                float(node.get("width"))
                for node in nodes(view.picture, "rect", kind)
                if float(node.get("y")) > PASSES
            ]
            in_a_step = [one.count * getattr(one, seconds) for one in passes]
            expected = [LENGTH * min(1, all_s / full_scale(outcome)) for all_s in in_a_step]
            assert bars == pytest.approx(expected, rel=1e-4, abs=0.01)
        assert ("none: it does not fit" in view.picture) == (not cost.fits)
        together = sum(int(row[1].replace(",", "")) for row in view.table[1:7])
        assert sum(cost.held.values()) == together


def test_with_a_kernel_the_readers_own_terms_decide(monkeypatch):
    names = (*TERMS, "moments", "gathered_bytes", "rest_bytes")
    own = {name: getattr(ours, name) for name in names} | {"lost_share": lambda *seconds: 0.5}
    monkeypatch.setattr(accountant, "offered", own.__getitem__)
    asked = LAB.read({name: field.default for name, field in LAB.fields.items()})
    lab = labs.lab_named("plan")
    found = lab.known(asked, lab.found)
    assert found.outcomes[asked].cost.lost == 0.5
    assert " = 50.00 % to saves and failures" in LAB.view(asked, found).picture
