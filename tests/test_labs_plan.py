"""The plan lab: its costs against a step that is walked through pass by pass, and its best plan against all plans."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import course_utils.accountant.accountant as ours
from course_utils import labs, predict
from course_utils.accountant import by_torch, keeping
from course_utils.accountant.file import TERMS
from course_utils.accountant.plans import (
    BATCHES,
    MINUTES,
    NVLINK_BYTES_PER_SEC,
    RECIPES,
    SHARE,
    Plan,
    Planner,
)
from course_utils.accountant.shapes import transformer
from course_utils.datasheets import MACHINES
from course_utils.labs.plan.asked import LEVELS
from course_utils.labs.plan.picture import LENGTH, PASSES
from tests.labs import answers, fresh, nodes
from tests.test_labs_contract import states

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
    return cost if cost.fits else None


def walked(task, plan):
    """Days, by going through all passes of a step; FLOPs and bytes are those of `predict`."""
    shape, parts = transformer(task.model), predict.RECIPES[plan.recipe]
    peak = MACHINES[task.machine].peak("tf32" if parts.parameters == "fp32" else "bf16") * SHARE
    forward = shape.forward_flops(plan.batch, task.sequence).total
    parts_of_it = shape.forward_flops(plan.batch, task.sequence)
    layer = (parts_of_it["matrices"] + parts_of_it["attention"]) / shape.layers
    again = plan.recomputed * (layer - 2 * plan.batch * task.sequence * shape.inner_width * shape.width)
    network, nvlink = task.gbit_per_sec / 8 * 1e9, NVLINK_BYTES_PER_SEC[task.machine]
    sharers, speed = (8, nvlink) if plan.over_node else (task.gpus, min(network, nvlink))
    once = shape.parameters * (sharers - 1) / sharers / speed
    gather, reduce = once * parts.bytes_by_part["parameters"], once * parts.bytes_by_part["gradients"]
    nodes, total, most = task.gpus // 8, 0, 0
    several = task.sequences // plan.batch
    for number in range(several):
        first, last = number == 0, number == several - 1
        there = gather if plan.stage == 3 or (first and plan.stage) else 0
        back = gather if plan.stage == 3 else 0
        if plan.stage >= 2 or last:
            back += reduce * (1 if plan.stage else 2)
        if plan.over_node and last:
            back += 2 * shape.parameters * parts.bytes_by_part["gradients"] * (nodes - 1) / nodes / network
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
        **vars(ours) | {"step_bytes": lambda *sizes: asked.append(1) or ours.step_bytes(*sizes)}
    )
    assert Planner(LEVELS[level], counting).best == Planner(LEVELS[level]).best
    assert len(asked) < 1000


@pytest.mark.parametrize("level", ["8B · 32 A100s", "13B · 64 A100s"])
def test_where_a_level_is_decided_a_step_holds_what_torch_counts(level):
    task, best = LEVELS[level], Planner(LEVELS[level]).best
    small = replace(task.model, layers=3)
    sizes = best.batch, task.sequence, "bf16", 2
    assert ours.step_bytes(small, *sizes) == pytest.approx(by_torch.step_bytes(small, *sizes), rel=1e-3)


def test_as_the_network_gets_faster_smaller_micro_batches_and_fewer_recomputed_layers_are_best():
    task = LEVELS["13B · 64 A100s"]
    best = [Planner(replace(task, gbit_per_sec=gbit)).best for gbit in (50, 100, 200)]
    assert [(plan.batch, plan.recomputed) for plan in best] == [(16, 32), (8, 20), (4, 0)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"recipe": "bf16+master adamw"},
            "adds up the gradients of 32 micro-batches, and a sum in bf16 stops",
        ),
        ({"batch": 32, "level": "8B · 32 A100s", "recomputed": 0}, "has 8 sequences for each GPU"),
        ({"recomputed": 40, "level": "8B · 32 A100s"}, "Llama 3 8B has 32 layers"),
    ],
)
def test_a_plan_that_is_none_gets_a_sentence(changes, said):
    first = {name: field.default for name, field in LAB.fields.items()}
    with pytest.raises(ValueError, match=said):
        LAB.read(first | changes)


def test_the_whole_step_as_one_micro_batch_may_have_gradients_in_bf16(lab):
    assert "Fits" in answers(lab, "one micro-batch?")
    assert lab.values["recipe"] == "bf16+master adamw"


def test_the_best_plan_is_shown_and_nothing_beats_it(lab):
    for level in LEVELS:
        lab.set(level=level, batch=1, recomputed=30, stage=3, over_node=False, recipe=RECIPES[2])
        assert "No plan takes fewer" not in lab.screen.meaning
        lab.act("Show the best plan")
        assert lab.screen.meaning.endswith("No plan takes fewer.")
        assert lab.values["level"] == level


def test_bars_are_as_long_as_their_seconds_and_only_a_plan_that_fits_has_a_score():
    for state in states("plan", 40):
        try:
            asked = LAB.read(state)
        except ValueError:
            continue
        view, cost = LAB.view(asked, {}), Planner(LEVELS[asked.level]).cost(asked.plan)
        passes = [one for one in cost.passes if one.count]
        longest = max(max(one.compute_s, one.sent_s) for one in passes)
        for kind, seconds in (("predicted", "compute_s"), ("limit", "sent_s")):
            bars = [
                float(node.get("width"))
                for node in nodes(view.picture, "rect", kind)
                if float(node.get("y")) > PASSES
            ]
            assert bars == pytest.approx(
                [LENGTH * getattr(one, seconds) / longest for one in passes], rel=1e-4
            )
        assert ("none: it does not fit" in view.picture) == (not cost.fits)
        assert (
            f"{sum(cost.held.values()):,}"
            == f"{sum(int(row[1].replace(',', '')) for row in view.table[1:6]):,}"
        )


def test_with_a_kernel_the_readers_own_terms_decide(monkeypatch):
    own = {name: getattr(ours, name) for name in TERMS} | {"lost_share": lambda *seconds: 0.5}
    monkeypatch.setattr(keeping, "offered", own.__getitem__)
    asked = LAB.read({name: field.default for name, field in LAB.fields.items()})
    found = labs.lab_named("plan").known(asked, {})
    assert found[asked].cost.lost == 0.5
    assert " = 50.00 % to saves and failures" in LAB.view(asked, found).picture
