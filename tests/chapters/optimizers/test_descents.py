"""Four rules that are torch's, a ravine whose gradients are right, and what is predicted of a way down a parabola."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.chapters.optimizers import by_hand, check
from course_utils.chapters.optimizers.descents import (
    RULES,
    Ravine,
    descent,
    end_loss,
    late_places,
    measured_largest_lr,
    steps_to_come_near,
)
from course_utils.chapters.optimizers.optimizer_lab.asked import DRAWN_RATES
from course_utils.core import predict
from tests import NOTEBOOKS
from tests.helpers.notebooks import code

STEPS = 300


# The rules, against torch.


def torchs(name, parameters, lr, option):
    return {
        "SGD": lambda: torch.optim.SGD(parameters, lr),
        "momentum": lambda: torch.optim.SGD(parameters, lr, momentum=option),
        "RMSProp": lambda: torch.optim.RMSprop(parameters, lr, alpha=option),
        "AdamW": lambda: torch.optim.AdamW(parameters, lr, weight_decay=option),
    }[name]()


def torchs_way(name, lr, option, gradients):
    p = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    optimizer, way = torchs(name, [p], lr, option), []
    for g in gradients:
        p.grad = torch.tensor([g], dtype=torch.float64)
        optimizer.step()
        way.append(p.item())
    return way


def our_way(rule, lr, gradients, p=1.0, zero=0.0):
    kept, way = [zero] * rule.kept, []
    for t, g in enumerate(gradients, 1):
        p, *kept = rule.after(t, p, g, kept, lr)
        way.append(float(p))
    return way


def drawn_gradients(seed, scale):
    """Of all sizes, some of them 0."""
    draw = np.random.default_rng(seed)
    sizes = scale * 10.0 ** draw.uniform(-3, 1, STEPS) * (draw.random(STEPS) > 0.05)
    return (draw.standard_normal(STEPS) * sizes).tolist()


def assert_near(ours, theirs):
    """Not to the last bit: torch rounds a product and a sum once."""
    far = max(1.0, *map(abs, theirs))
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-12 * far


@pytest.mark.parametrize("name", RULES)
@given(
    lr=st.floats(1e-4, 1.0),
    option=st.floats(0.0, 0.99),
    seed=st.integers(0, 999),
    scale=st.sampled_from([1e-8, 1e-3, 1.0, 1e3]),
)
@settings(max_examples=15)
def test_each_rule_is_torchs_over_hundreds_of_steps(name, lr, option, seed, scale):
    gradients = drawn_gradients(seed, scale)
    ours = our_way(replace(RULES[name], option=option), lr, gradients)
    assert_near(ours, torchs_way(name, lr, option, gradients))


def as_the_reader_writes_it(name):
    """As notebook 6 has them, its exercises and its RMSProp."""
    if name == "RMSProp":
        written: dict[str, object] = {}
        exec(
            next(
                cell.source for cell in code(NOTEBOOKS[5]) if cell.source.startswith("def rmsprop(")
            ),
            written,
        )
        return written["rmsprop"]
    return {"momentum": check.momentum, "AdamW": check.adamw_step}[name](...).ours()


@pytest.mark.parametrize("name", ["momentum", "RMSProp", "AdamW"])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e3])
def test_what_the_reader_writes_is_torchs_over_hundreds_of_steps(name, scale):
    rule, gradients = (
        replace(RULES[name], step=as_the_reader_writes_it(name)),
        drawn_gradients(6, scale),
    )
    one, zero = torch.tensor(1.0, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    ours = our_way(rule, 0.01, [zero + g for g in gradients], one, zero)
    assert_near(ours, torchs_way(name, 0.01, rule.option, gradients))


@pytest.mark.parametrize("name", ["momentum", "RMSProp", "AdamW"])
@pytest.mark.parametrize("degrees", [0, 30])
def test_the_readers_function_goes_the_way_of_the_figure_as_an_optimizer_of_torch(name, degrees):
    ground = Ravine(30, degrees)
    walked = by_hand.way(ground, name, as_the_reader_writes_it(name), 0.02, 100)
    drawn = descent(RULES[name], ground, 0.02, 100)
    assert np.array(walked) == pytest.approx(np.array(drawn), abs=1e-9)


@pytest.mark.parametrize(("name", "lr"), [("momentum", 0.1), ("AdamW", 0.005)])
def test_a_small_run_by_hand_has_the_losses_of_torchs_own_optimizer(name, lr):
    option = RULES[name].option
    theirs = by_hand.small_run(
        lambda parameters: torchs(name, parameters, lr, option), seed=1, **by_hand.TINY
    )
    ours = by_hand.loss_after(10, name, as_the_reader_writes_it(name), lr)
    assert ours == pytest.approx(sum(theirs.losses(10)) / 10, rel=1e-3)


# The ravine.


@given(
    x=st.floats(-2, 2),
    y=st.floats(-2, 2),
    steepness=st.sampled_from([1, 30, 1000]),
    degrees=st.integers(0, 45),
)
def test_the_gradient_is_that_of_the_loss_whose_curvatures_are_one_and_the_steepness(
    x, y, steepness, degrees
):
    ground, place = Ravine(steepness, degrees), torch.tensor([x, y], dtype=torch.float64)
    gradient = torch.autograd.functional.jacobian(lambda p: ground.loss(*p), place)
    assert ground.gradient(x, y) == pytest.approx(gradient.tolist(), rel=1e-9, abs=1e-9)
    curvatures = torch.linalg.eigvalsh(
        torch.autograd.functional.hessian(lambda p: ground.loss(*p), place)
    )
    assert curvatures.tolist() == pytest.approx([1, steepness], rel=1e-9)


@given(
    level=st.floats(1e-3, 100), steepness=st.sampled_from([1, 30, 1000]), degrees=st.integers(0, 45)
)
def test_a_line_of_equal_loss_is_one(level, steepness, degrees):
    ground = Ravine(steepness, degrees)
    assert all(
        ground.loss(*place) == pytest.approx(level, rel=1e-6) for place in ground.contour(level)
    )


def test_a_turn_moves_the_start_with_the_ravine_so_sgd_and_momentum_do_not_mind_it():
    straight, turned = Ravine(100), Ravine(100, 45)
    assert turned.along(*turned.start) == pytest.approx(straight.start)
    for name, same in (("SGD", True), ("momentum", True), ("RMSProp", False), ("AdamW", False)):
        losses = [end_loss(RULES[name], ground, 0.018, 100) for ground in (straight, turned)]
        assert (losses[0] == pytest.approx(losses[1], rel=1e-6)) == same, name


# What is predicted.


@pytest.mark.parametrize("steepness", [1, 10, 100, 1000])
@pytest.mark.parametrize("mu", [0.0, 0.5, 0.9])
def test_the_limit_that_is_found_by_walking_is_the_predicted_one(steepness, mu):
    rule = replace(RULES["momentum"], option=mu)
    ground = Ravine(steepness)
    found = measured_largest_lr(ground, lambda lr: end_loss(rule, ground, lr, 100))
    assert found == pytest.approx(predict.largest_lr(steepness, mu), rel=0.005)


def test_a_descent_that_is_lost_ends_there_and_its_loss_is_infinite():
    places = descent(RULES["SGD"], Ravine(100), 0.1, 100)
    assert len(places) < 10
    assert math.dist(places[-1], (0, 0)) < 1e4
    assert end_loss(RULES["SGD"], Ravine(100), 0.1, 100) == math.inf


# The long run.


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("degrees", [0, 30])
@pytest.mark.parametrize("falling", [False, True])
def test_a_long_way_is_the_rules_own_step_by_step(name, degrees, falling):
    ground, rule, lr, steps = Ravine(30, degrees), RULES[name], 0.01, 400
    x, y = ground.start
    along_x = along_y = [0.0] * rule.kept
    slowly = []
    for t in range(1, steps + 1):
        rate = lr * (steps + 1 - t) / steps if falling else lr
        g, h = ground.gradient(x, y)
        x, *along_x = rule.after(t, x, g, along_x, rate)
        y, *along_y = rule.after(t, y, h, along_y, rate)
        slowly.append((x, y))
    late = late_places(rule, ground, lr, steps, falling=falling)
    assert np.array(late) == pytest.approx(np.array(slowly[-40:]), abs=1e-9)
    worst = max(ground.loss(*place) for place in slowly[-40:])
    assert end_loss(rule, ground, lr, steps, falling=falling) == pytest.approx(worst, abs=1e-9)


def loss_of_torchs_rmsprop(lr, steps):
    """The largest of the last tenth, in double precision."""
    p = torch.tensor(Ravine(100).start, dtype=torch.float64, requires_grad=True)
    optimizer, losses = torch.optim.RMSprop([p], lr=lr), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = 0.5 * (p[0] ** 2 + 100 * p[1] ** 2)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return max(losses[-steps // 10 :])


@pytest.mark.parametrize("lr", [0.1, 2.5])
def test_torchs_own_rmsprop_comes_back_to_the_predicted_loss_after_it_was_as_good_as_nothing(lr):
    assert loss_of_torchs_rmsprop(lr, 100) < 1e-30
    assert loss_of_torchs_rmsprop(lr, 5000) == pytest.approx(
        predict.settled_loss(lr, 100), rel=1e-4
    )


@pytest.mark.parametrize("steepness", [3, 100, 1000])
@pytest.mark.parametrize("degrees", [0, 20, 45])
def test_in_the_long_run_rmsprop_is_as_high_as_half_its_step_says(steepness, degrees):
    ground, rule = Ravine(steepness, degrees), RULES["RMSProp"]
    for lr in (0.001, 0.1, 10.0):
        predicted = predict.settled_loss(lr, steepness, degrees)
        assert end_loss(rule, ground, lr, 10_000) == pytest.approx(predicted, rel=1e-3)
        # A rate that falls to 0 on a straight line has a tenth left where the last tenth begins.
        assert 0.7 < end_loss(rule, ground, lr, 10_000, falling=True) / (predicted / 100) < 1.1
    found = measured_largest_lr(ground, lambda lr: end_loss(rule, ground, lr, 10_000))
    began_with = ground.loss(*ground.start)
    assert found == pytest.approx(
        predict.largest_settled_lr(began_with, steepness, degrees), rel=1e-3
    )


def test_adamw_comes_back_too_in_the_long_run_unless_its_rate_is_small_or_falls():
    ends = {
        (lr, falling): end_loss(RULES["AdamW"], Ravine(100), lr, 10_000, falling=falling)
        for lr in (0.01, 0.1, 1.0, 10.0)
        for falling in (False, True)
    }
    assert end_loss(RULES["AdamW"], Ravine(100), 1.0, 1000) < 1e-30
    assert ends[0.01, False] < 1e-30
    assert min(ends[lr, False] for lr in (0.1, 1.0)) > 1e-3
    assert ends[10.0, False] > 51.125
    assert max(ends[lr, True] for lr in (0.01, 0.1, 1.0, 10.0)) < 1e-30


@pytest.mark.parametrize("name", RULES)
def test_the_steps_to_come_near_are_those_after_which_no_loss_is_above_the_share(name):
    ground, rule = Ravine(100, 45), RULES[name]
    for lr in (0.005, 0.018, 0.1):
        losses = [ground.loss(*place) for place in descent(rule, ground, lr, 500)]
        near = steps_to_come_near(rule, ground, lr, share=0.01, steps=500)
        if len(losses) <= 500 or losses[-1] >= 0.01 * losses[0]:
            assert near == math.inf
        else:
            assert max(losses[near:]) < 0.01 * losses[0] <= losses[near - 1]


def test_who_has_to_stay_near_for_ten_thousand_steps_pays_for_a_turn_with_adamw_too():
    straight, turned = (
        min(
            steps_to_come_near(RULES["AdamW"], Ravine(100, degrees), lr, share=0.001, steps=10_000)
            for lr in DRAWN_RATES
        )
        for degrees in (0, 45)
    )
    assert turned > 8 * straight
