"""The plan lab against a step that is walked pass by pass, and its best plan against all plans."""

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
from course_utils.core.say import listed
from course_utils.subjects import reported
from tests import NOTEBOOKS
from tests.engine.test_labs_contract import states
from tests.helpers.labs import answers, fresh, lines, nodes
from tests.helpers.notebooks import read

LAB = labs.lab_named("plan")
lab = fresh("plan")
SOLVED = "No plan takes noticeably fewer. You have solved this level."
BEST = {  # stage, over a node, micro-batch, layers recomputed, minutes between saves; days
    "8B · 32 A100s": (2, False, 2, 21, 480, 159.6),
    "13B · 16 H100s": (3, True, 8, 28, 720, 142.5),
    "13B · 64 A100s": (3, False, 8, 20, 360, 108.3),
    "70B · 512 H100s": (3, False, 2, 75, 120, 27.7),
    "Mixtral · 64 H100s": (3, False, 4, 28, 360, 42.4),
}

DENSE = [level for level in BEST if LEVELS[level].model.mixture is None]


def days_if_it_counts(planner, plan):
    """The days of a plan; infinite if it does not exist, does not fit or sums gradients in bf16."""
    try:
        cost = planner.cost(plan)
    except ValueError:
        return math.inf
    if not cost.fits or cost.sums_in_bf16:
        return math.inf
    return cost.days


def sharers_of(task, plan):
    return 8 if plan.over_node else task.gpus


def sent_seconds(task, plan):
    """Seconds to gather all parameters, to reduce all gradients, and to add them up over nodes."""
    numbers = predict.shape_of(task.model).parameters
    bytes_each = predict.RECIPES[plan.recipe].bytes_by_part
    network = task.gbit_per_sec / 8 * 1e9
    speed = NVLINK_BYTES_PER_SEC[task.machine]
    if not plan.over_node:
        speed = min(network, speed)
    sharers = sharers_of(task, plan)
    ring_s = numbers * (sharers - 1) / sharers / speed  # for one byte of each parameter
    nodes = task.gpus // 8
    between_nodes_s = 2 * numbers * bytes_each["gradients"] * (nodes - 1) / nodes / network
    return ring_s * bytes_each["parameters"], ring_s * bytes_each["gradients"], between_nodes_s


def flops_of_passes(task, plan):
    """FLOPs of a forward and of a backward pass, by `predict`."""
    shape = predict.shape_of(task.model)
    forward = shape.forward_flops(plan.batch, task.sequence)
    layer = (forward["matrices"] + forward["attention"]) / shape.layers
    last_product = 2 * plan.batch * task.sequence * shape.inner * shape.width
    if task.model.mixture:  # without a shared expert, every product is needed again
        last_product = 0
    again = plan.recomputed * (layer - last_product)
    return forward.total, 2 * forward.total + again


def walked(task, plan):
    """The fewest and the most days, by going through all passes of a step."""
    dtype = predict.RECIPES[plan.recipe].parameters
    peak = MACHINES[task.machine].peak("tf32" if dtype == "fp32" else "bf16") * SHARE
    forward, backward = flops_of_passes(task, plan)
    gather_s, reduce_s, between_nodes_s = sent_seconds(task, plan)
    longer_s = 0
    both_s = 0
    micro_batches = task.sequences // plan.batch
    for number in range(micro_batches):
        is_first = number == 0
        is_last = number == micro_batches - 1
        forward_sent_s = 0
        backward_sent_s = 0
        if plan.stage == 3 or (is_first and plan.stage > 0):
            forward_sent_s += gather_s
        if plan.stage == 3:
            backward_sent_s += gather_s
        if plan.stage >= 2 or is_last:
            backward_sent_s += reduce_s
        if plan.stage == 0 and is_last:
            backward_sent_s += reduce_s  # gathered after it was reduced
        if plan.over_node and is_last:
            backward_sent_s += between_nodes_s
        for flops, sent_s in ((forward, forward_sent_s), (backward, backward_sent_s)):
            longer_s += max(flops / peak, sent_s)
            both_s += flops / peak + sent_s
    failure_s = 54 * 16_384 * 86_400 / 419 / task.gpus
    save_every_s = 60 * plan.minutes
    lost = 60 / save_every_s + save_every_s / (2 * failure_s) + 300 / failure_s
    steps = task.tokens / (task.gpus * task.sequences * task.sequence)
    return [steps * step_s / 86_400 / (1 - lost) for step_s in (longer_s, both_s)]


@given(st.sampled_from(list(LEVELS)), st.data())
def test_a_plans_days_are_those_of_a_step_that_is_walked_through(level, data):
    task = LEVELS[level]
    planner = Planner(task)
    choice = data.draw(st.sampled_from(list(planner.choices())))
    recomputed = data.draw(st.integers(0, task.model.layers))
    minutes = data.draw(st.sampled_from(MINUTES))
    plan = replace(choice, recomputed=recomputed, minutes=minutes)
    cost = planner.cost(plan)
    assert [cost.days, cost.most_days] == pytest.approx(walked(task, plan), rel=1e-9)
    state = predict.training_bytes(
        ours.stored_parameters(task.model),
        plan.recipe,
        machines=sharers_of(task, plan),
        stage=plan.stage,
    )
    gradients = cost.held["gradients"]
    if gradients == 0:
        # At the loss of a step's only micro-batch there are none yet.
        assert plan.batch == task.sequences
    else:
        assert gradients == state["gradients"]
    for part, nbytes in state.items():
        if part != "gradients":
            assert cost.held.get(part, 0) == nbytes


@given(st.sampled_from(list(LEVELS)), st.data(), st.booleans())
def test_no_plan_fits_that_does_not_fit_by_the_timeline(level, data, again):
    """With all gradients in memory, or with one micro-batch and no gradients before it."""
    task = LEVELS[level]
    planner = Planner(task)
    plan = data.draw(st.sampled_from(list(planner.choices())))
    recomputed = task.model.layers if again else 0
    cost = planner.cost(replace(plan, recomputed=recomputed))
    accumulates = task.micro_batches(plan.batch) > 1
    step = predict.timeline(
        task.model,
        plan.batch,
        task.sequence,
        recipe=plan.recipe,
        recompute=again,
        accumulate=accumulates,
        machines=sharers_of(task, plan),
        stage=plan.stage,
        gathered=True,
    )
    held = sum(cost.held.values())
    assert step.peak <= held
    if cost.fits:
        assert step.peak <= task.memory
    if accumulates:
        # Of a mixture the plan holds at most so much, as if one expert got all tokens.
        assert held == pytest.approx(step.peak, rel=0.03 if task.model.mixture else 1e-3)


@pytest.mark.parametrize("level", BEST)
def test_the_best_plan_of_each_level_is_what_is_said_and_in_no_corner(level):
    planner = Planner(LEVELS[level])
    best = planner.best
    *expected, days = BEST[level]
    assert [best.stage, best.over_node, best.batch, best.recomputed, best.minutes] == expected
    assert planner.best_cost.days == pytest.approx(days, abs=0.05)
    assert 1 < best.batch < LEVELS[level].sequences
    assert 0 < best.recomputed < LEVELS[level].model.layers
    assert MINUTES[0] < best.minutes < MINUTES[-1]


@pytest.mark.parametrize("level", DENSE)
def test_the_quick_search_finds_what_trying_all_plans_finds(level):
    task = LEVELS[level]
    small = replace(task.model, layers=5)
    planner = Planner(replace(task, model=small, gbit_per_sec=task.gbit_per_sec / 8))
    fewest = math.inf
    for values in product(RECIPES, range(4), (False, True), BATCHES, range(6), MINUTES):
        plan = Plan(*values)
        if plan.stage > 0 or not plan.over_node:
            fewest = min(fewest, days_if_it_counts(planner, plan))
    assert planner.best_cost.days == fewest


@pytest.mark.parametrize("level", DENSE)
def test_the_search_asks_for_few_plans(level):
    asked = []

    def counted_moments(*sizes):
        asked.append(sizes)
        return ours.moments(*sizes)

    terms = SimpleNamespace(**vars(ours) | {"moments": counted_moments})
    assert Planner(LEVELS[level], terms).best == Planner(LEVELS[level]).best
    assert len(asked) < 1000


@pytest.mark.parametrize("level", ["8B · 32 A100s", "13B · 64 A100s"])
def test_where_a_level_is_decided_a_step_holds_what_torch_counts(level):
    task = LEVELS[level]
    batch = Planner(task).best.batch
    small = replace(task.model, layers=3)
    predicted = ours.step_bytes(small, batch, task.sequence, "bf16", 2)
    counted = by_torch.step_bytes(small, batch, task.sequence, "bf16", 2)
    assert predicted == pytest.approx(counted, rel=1e-3)


def test_the_answers_below_the_lab_in_notebook_8_are_the_planners():
    level = "13B · 64 A100s"
    planner = Planner(LEVELS[level])
    said = answers_of_notebook_8()

    def cost(batch=1, recomputed=0, over_node=False):
        plan = Plan(
            recipe="bf16+master adamw, fp32 gradients",
            stage=3,
            over_node=over_node,
            batch=batch,
            recomputed=recomputed,
            minutes=60,
        )
        return planner.cost(plan)

    (backward,) = (kind for kind in cost().passes if kind.name == "backward")
    assert f"at {level}</summary>" in said
    assert f"there are {LEVELS[level].sequences} micro-batches" in said
    seconds = f"sending takes {backward.sent_s:.2f} s and computing {backward.compute_s:.2f} s"
    assert seconds in said
    days = [f"{cost(batch).days:.0f}" for batch in (1, 2, 4)]
    assert f"{listed(days)} days" in said

    assert "Eight sequences or more fit only if layers are recomputed." in said
    for batch in BATCHES:
        passes = cost(batch, recomputed=40).passes
        products_are_longer = all(kind.compute_s > kind.sent_s for kind in passes)
        assert products_are_longer == (batch >= 8)
        assert cost(batch).fits == (batch < 8)
    fewest = next(layers for layers in range(41) if cost(8, layers).fits)
    quickest = f"{cost(8, fewest).days:.0f}"
    all_again = f"{cost(8, 40).days:.0f}"
    enough = f"it is enough to recompute {fewest} of the 40 layers"
    assert f"{enough}: {quickest} days instead of {all_again}" in said

    passes = cost(2, recomputed=40, over_node=True).passes
    slowed_by_sending = [kind.name for kind in passes if kind.sent_s > kind.compute_s]
    assert slowed_by_sending == ["last backward"]


def answers_of_notebook_8():
    """The answers below the lab, without their links."""
    (linked,) = (cell.source for cell in read(NOTEBOOKS[-1]).cells if cell.id == "c8b0a1d082")
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", linked)


@pytest.mark.parametrize(
    ("gbit_per_sec", "batch", "recomputed"), [(50, 16, 32), (100, 8, 20), (200, 4, 0)]
)
def test_with_a_faster_network_smaller_micro_batches_and_less_recomputing_are_best(
    gbit_per_sec, batch, recomputed
):
    task = replace(LEVELS["13B · 64 A100s"], gbit_per_sec=gbit_per_sec)
    best = Planner(task).best
    assert best.batch == batch
    assert best.recomputed == recomputed


LOSSY = {"level": "8B · 32 A100s", "recipe": "bf16+master adamw", "batch": 4}
OWN = {
    "recipe": RECIPES[2],
    "stage": 3,
    "over_node": True,
    "batch": 2,
    "recomputed": 7,
    "minutes": 20,
}


def test_a_plan_that_sums_in_bf16_is_drawn_says_why_and_leaves_every_control_alive(lab):
    lab.set(**LOSSY)
    pictures = set()
    for moved in ({}, {"batch": 2}, {"stage": 2}, {"recomputed": 20}, {"minutes": 480}):
        lab.set(**moved)
        pictures.add(lab.screen.svg)
        assert lab.screen.mistake == ""
        assert "The lab does not allow that." in lab.screen.meaning
        assert "it adds up gradients in bf16" in lab.screen.svg
        assert f"the gradients of {8 // lab.values['batch']} micro-batches" in lab.screen.meaning
    assert len(pictures) == 5
    lab.act("Show the best plan")
    assert lab.screen.meaning.endswith("No plan takes noticeably fewer.")
    lab.set(**LOSSY | {"batch": 8})
    assert "in bf16" not in lab.screen.meaning


def test_a_change_of_level_never_ends_in_an_error_and_takes_the_plan_with_it(lab):
    lab.set(level="13B · 64 A100s", batch=32, recomputed=40)
    for level, task in LEVELS.items():
        lab.set(level=level)
        assert lab.screen.mistake == ""
        capped = f"A step has {task.sequences} sequences for each GPU" in lab.screen.meaning
        assert capped == (task.sequences < 32)
        plan = LAB.read(lab.values).plan
        assert plan.batch == task.sequences
        assert plan.recomputed == task.model.layers


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
        for name, value in OWN.items():
            assert lab.values[name] == value
    lab.set(level="13B · 16 H100s")
    lab.act("Back to mine")
    assert "the best one was not shown yet" in lab.screen.mistake


def test_a_level_that_the_reader_solves_leaves_a_sign_and_one_that_was_shown_does_not(lab):
    best = vars(Planner(LEVELS["8B · 32 A100s"]).best)
    lab.set(level="70B · 512 H100s")
    lab.act("Show the best plan")
    assert "levels solved" not in lab.screen.svg
    lab.set(level="8B · 32 A100s", **best)
    assert lab.screen.meaning.endswith(SOLVED)
    lab.set(level="13B · 64 A100s", **OWN)
    assert "1 of 5 levels solved" in lab.screen.svg
    lab.set(level="8B · 32 A100s", **best)
    assert lab.screen.meaning.endswith("You have solved this level.")


@pytest.mark.parametrize(("level", "minutes"), [("8B · 32 A100s", 360), ("13B · 16 H100s", 480)])
def test_a_plan_that_is_hardly_beaten_solves_its_level_and_is_not_called_the_best(
    lab, level, minutes
):
    planner = Planner(LEVELS[level])
    near = replace(planner.best, minutes=minutes)
    assert 1 < planner.cost(near).days / planner.best_cost.days < 1.0001
    lab.set(level=level, **vars(near))
    assert lab.screen.meaning.endswith(SOLVED)
    lab.act("Show the best plan")
    assert lab.values["minutes"] == planner.best.minutes != minutes
    lab.act("Back to mine")
    assert lab.screen.mistake == ""
    assert lab.values["minutes"] == minutes


def test_the_picture_says_that_its_days_are_no_bound_as_a_published_run_was_faster(lab):
    lab.set(level="13B · 64 A100s")
    task = LEVELS["13B · 64 A100s"]
    run = reported.run_named("torchtitan 64 × A100, Llama 2 13B none")
    tokens_per_sec = task.gpus * run.reported["tokens_per_sec"]
    days = task.tokens / tokens_per_sec / 86_400
    assert days < Planner(task).best_cost.days
    assert "No forecast, and no bound" in lab.screen.svg


def first_state():
    """What the controls say as the lab opens."""
    return {name: field.default for name, field in LAB.fields.items()}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("batch", "recomputed"), [(1, 0), (2, 20), (4, 32)])
def test_bars_of_two_plans_of_a_level_can_be_compared_as_the_scale_is_the_best_plans_step(
    level, batch, recomputed
):
    moved = {"level": level, "batch": batch, "recomputed": recomputed}
    asked = LAB.read(first_state() | moved)
    outcome = Planner(LEVELS[level]).outcome(asked.plan)
    picture = LAB.view(asked, LAB.found).picture
    (this_step,) = widths_of_passes(picture, "part passing")
    (line_x,) = (x for (x, y), _ in lines(picture, "line") if y > PASSES)
    best_step = line_x - LEFT
    expected = outcome.cost.step_s / outcome.best_cost.step_s
    assert this_step / best_step == pytest.approx(expected, rel=5e-3)
    doublings = math.log2(LENGTH / best_step)
    assert doublings == pytest.approx(round(doublings), abs=1e-2)


def widths_of_passes(picture, class_):
    """The widths of the bars of that class, of those that stand for passes."""
    bars = nodes(picture, "rect", class_)
    return [float(bar.get("width")) for bar in bars if float(bar.get("y")) > PASSES]


def test_the_best_plan_is_shown_and_nothing_beats_it(lab):
    for level in LEVELS:
        lab.set(level=level, batch=1, recomputed=30, stage=3, over_node=False, recipe=RECIPES[2])
        assert "No plan takes noticeably fewer" not in lab.screen.meaning
        lab.act("Show the best plan")
        assert lab.screen.meaning.endswith("No plan takes noticeably fewer.")
        assert lab.values["level"] == level


def test_bars_are_as_long_as_their_seconds_and_only_a_plan_that_fits_has_a_score():
    for state in states("plan", 40):
        asked = LAB.read(state)
        view = LAB.view(asked, LAB.found)
        outcome = Planner(LEVELS[asked.level]).outcome(asked.plan)
        cost = outcome.cost
        full_s = full_scale(outcome)
        passes = [kind for kind in cost.passes if kind.count]
        products = [LENGTH * min(1, kind.count * kind.compute_s / full_s) for kind in passes]
        sending = [LENGTH * min(1, kind.count * kind.sent_s / full_s) for kind in passes]
        near = {"rel": 1e-4, "abs": 0.01}
        assert widths_of_passes(view.picture, "predicted") == pytest.approx(products, **near)
        assert widths_of_passes(view.picture, "limit") == pytest.approx(sending, **near)
        assert ("none: it does not fit" in view.picture) == (not cost.fits)
        rows_of_bytes = view.table[1:7]
        together = sum(int(nbytes.replace(",", "")) for _, nbytes, _ in rows_of_bytes)
        assert together == sum(cost.held.values())


def test_with_a_kernel_the_readers_own_terms_decide(monkeypatch):
    names = (*TERMS, "moments", "gathered_bytes", "rest_bytes")
    own = {name: getattr(ours, name) for name in names}
    own["lost_share"] = lambda *seconds: 0.5
    monkeypatch.setattr(accountant, "offered", own.__getitem__)
    asked = LAB.read(first_state())
    lab = labs.lab_named("plan")
    found = lab.known(asked, lab.found)
    assert found.outcomes[asked].cost.lost == 0.5
    assert " = 50.00 % to saves and failures" in LAB.view(asked, found).picture
