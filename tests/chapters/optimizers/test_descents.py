"""The four rules step as torch's optimizers do, and runs down the ravine end as predicted."""

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
    late_points,
    measured_largest_lr,
    steps_to_come_near,
)
from course_utils.chapters.optimizers.optimizer_lab.asked import DRAWN_RATES
from course_utils.core import predict
from tests import NOTEBOOKS
from tests.helpers.notebooks import code

STEPS = 300


# The rules, against torch.


def torchs_optimizer(name, parameters, lr, option):
    if name == "SGD":
        return torch.optim.SGD(parameters, lr)
    if name == "momentum":
        return torch.optim.SGD(parameters, lr, momentum=option)
    if name == "RMSProp":
        return torch.optim.RMSprop(parameters, lr, alpha=option)
    return torch.optim.AdamW(parameters, lr, weight_decay=option)


def torchs_path(name, lr, option, gradients):
    """The parameter after each step of torch's optimizer, from 1 on."""
    p = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    optimizer = torchs_optimizer(name, [p], lr, option)
    path = []
    for g in gradients:
        p.grad = torch.tensor([g], dtype=torch.float64)
        optimizer.step()
        path.append(p.item())
    return path


def our_path(rule, lr, gradients, p=1.0, zero=0.0):
    """The parameter after each step of our rule. Tensors can be given in place of floats."""
    kept = [zero] * rule.kept_count
    path = []
    for t, g in enumerate(gradients, 1):
        p, *kept = rule.after(t, p, g, kept, lr)
        path.append(float(p))
    return path


def drawn_gradients(seed, scale):
    """Gradients of all sizes, some of which are 0."""
    draw = np.random.default_rng(seed)
    sizes = scale * 10.0 ** draw.uniform(-3, 1, STEPS)
    sizes[draw.random(STEPS) <= 0.05] = 0
    return (draw.standard_normal(STEPS) * sizes).tolist()


def assert_near(ours, theirs):
    """The last bits may differ, because torch rounds a product and a sum once."""
    largest = max(1.0, *map(abs, theirs))
    differences = [abs(a - b) for a, b in zip(ours, theirs, strict=True)]
    assert max(differences) < 1e-12 * largest


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
    ours = our_path(replace(RULES[name], option=option), lr, gradients)
    assert_near(ours, torchs_path(name, lr, option, gradients))


def as_the_reader_writes_it(name):
    """A step as notebook 6 has it: RMSProp's stands in a cell, the others are exercises."""
    if name == "momentum":
        return check.momentum(...).ours()
    if name == "AdamW":
        return check.adamw_step(...).ours()
    cells = [cell.source for cell in code(NOTEBOOKS[5])]
    (rmsprop,) = [source for source in cells if source.startswith("def rmsprop(")]
    names: dict[str, object] = {}
    exec(rmsprop, names)
    return names["rmsprop"]


@pytest.mark.parametrize("name", ["momentum", "RMSProp", "AdamW"])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e3])
def test_what_the_reader_writes_is_torchs_over_hundreds_of_steps(name, scale):
    rule = replace(RULES[name], step=as_the_reader_writes_it(name))
    gradients = drawn_gradients(6, scale)
    one = torch.tensor(1.0, dtype=torch.float64)
    zero = torch.tensor(0.0, dtype=torch.float64)
    ours = our_path(rule, 0.01, [zero + g for g in gradients], p=one, zero=zero)
    assert_near(ours, torchs_path(name, 0.01, rule.option, gradients))


@pytest.mark.parametrize("name", ["momentum", "RMSProp", "AdamW"])
@pytest.mark.parametrize("degrees", [0, 30])
def test_the_readers_function_goes_the_way_of_the_figure_as_an_optimizer_of_torch(name, degrees):
    ground = Ravine(30, degrees)
    walked = by_hand.way(ground, name, as_the_reader_writes_it(name), 0.02, 100)
    drawn = descent(RULES[name], ground, 0.02, 100)
    assert np.array(walked) == pytest.approx(np.array(drawn), abs=1e-9)


@pytest.mark.parametrize(("name", "lr"), [("momentum", 0.1), ("AdamW", 0.005)])
def test_a_small_run_by_hand_has_the_losses_of_torchs_own_optimizer(name, lr):
    def make(parameters):
        return torchs_optimizer(name, parameters, lr, RULES[name].option)

    their_run = by_hand.small_run(make, seed=1, **by_hand.TINY)
    theirs = sum(their_run.losses(10)) / 10
    ours = by_hand.loss_after(10, name, as_the_reader_writes_it(name), lr)
    assert ours == pytest.approx(theirs, rel=1e-3)


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
    ground = Ravine(steepness, degrees)
    point = torch.tensor([x, y], dtype=torch.float64)

    def loss(p):
        return ground.loss(*p)

    gradient = torch.autograd.functional.jacobian(loss, point)
    assert ground.gradient(x, y) == pytest.approx(gradient.tolist(), rel=1e-9, abs=1e-9)
    hessian = torch.autograd.functional.hessian(loss, point)
    curvatures = torch.linalg.eigvalsh(hessian)
    assert curvatures.tolist() == pytest.approx([1, steepness], rel=1e-9)


@given(
    level=st.floats(1e-3, 100),
    steepness=st.sampled_from([1, 30, 1000]),
    degrees=st.integers(0, 45),
)
def test_a_line_of_equal_loss_is_one(level, steepness, degrees):
    ground = Ravine(steepness, degrees)
    for point in ground.contour(level):
        assert ground.loss(*point) == pytest.approx(level, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "is_same"),
    [("SGD", True), ("momentum", True), ("RMSProp", False), ("AdamW", False)],
)
def test_a_turn_moves_the_start_with_the_ravine_so_sgd_and_momentum_do_not_mind_it(name, is_same):
    straight = Ravine(100)
    turned = Ravine(100, 45)
    assert turned.along(*turned.start) == pytest.approx(straight.start)
    straight_loss = end_loss(RULES[name], straight, 0.018, 100)
    turned_loss = end_loss(RULES[name], turned, 0.018, 100)
    assert (straight_loss == pytest.approx(turned_loss, rel=1e-6)) == is_same


# What is predicted.


@pytest.mark.parametrize("steepness", [1, 10, 100, 1000])
@pytest.mark.parametrize("mu", [0.0, 0.5, 0.9])
def test_the_limit_that_is_found_by_walking_is_the_predicted_one(steepness, mu):
    rule = replace(RULES["momentum"], option=mu)
    ground = Ravine(steepness)
    found = measured_largest_lr(ground, lambda lr: end_loss(rule, ground, lr, 100))
    assert found == pytest.approx(predict.largest_lr(steepness, mu), rel=0.005)


def test_a_descent_that_is_lost_ends_there_and_its_loss_is_infinite():
    points = descent(RULES["SGD"], Ravine(100), 0.1, 100)
    assert len(points) < 10
    assert math.dist(points[-1], (0, 0)) < 1e4
    assert end_loss(RULES["SGD"], Ravine(100), 0.1, 100) == math.inf


# The long run.


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("degrees", [0, 30])
@pytest.mark.parametrize("falling", [False, True])
def test_a_long_way_is_the_rules_own_step_by_step(name, degrees, falling):
    ground = Ravine(30, degrees)
    rule = RULES[name]
    lr = 0.01
    steps = 400
    x, y = ground.start
    kept_x = [0.0] * rule.kept_count
    kept_y = [0.0] * rule.kept_count
    walked = []
    for t in range(1, steps + 1):
        rate = lr * (steps + 1 - t) / steps if falling else lr
        gradient_x, gradient_y = ground.gradient(x, y)
        x, *kept_x = rule.after(t, x, gradient_x, kept_x, rate)
        y, *kept_y = rule.after(t, y, gradient_y, kept_y, rate)
        walked.append((x, y))
    last_tenth = walked[-40:]
    late = late_points(rule, ground, lr, steps, falling=falling)
    assert np.array(late) == pytest.approx(np.array(last_tenth), abs=1e-9)
    largest = max(ground.loss(*point) for point in last_tenth)
    assert end_loss(rule, ground, lr, steps, falling=falling) == pytest.approx(largest, abs=1e-9)


def loss_of_torchs_rmsprop(lr, steps):
    """The largest loss of the last tenth of the steps, in double precision."""
    p = torch.tensor(Ravine(100).start, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.RMSprop([p], lr=lr)
    losses = []
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
    settled = predict.settled_loss(lr, 100)
    assert loss_of_torchs_rmsprop(lr, 5000) == pytest.approx(settled, rel=1e-4)


@pytest.mark.parametrize("steepness", [3, 100, 1000])
@pytest.mark.parametrize("degrees", [0, 20, 45])
def test_in_the_long_run_rmsprop_is_as_high_as_half_its_step_says(steepness, degrees):
    ground = Ravine(steepness, degrees)
    rule = RULES["RMSProp"]
    for lr in (0.001, 0.1, 10.0):
        predicted = predict.settled_loss(lr, steepness, degrees)
        assert end_loss(rule, ground, lr, 10_000) == pytest.approx(predicted, rel=1e-3)
        # A rate that falls to 0 on a straight line has a tenth left where the last tenth begins,
        # and the loss is proportional to the square of the rate.
        with_a_tenth = predicted / 100
        falling = end_loss(rule, ground, lr, 10_000, falling=True)
        assert 0.7 < falling / with_a_tenth < 1.1
    measured = measured_largest_lr(ground, lambda lr: end_loss(rule, ground, lr, 10_000))
    began_with = ground.loss(*ground.start)
    predicted_lr = predict.largest_settled_lr(began_with, steepness, degrees)
    assert measured == pytest.approx(predicted_lr, rel=1e-3)


def test_adamw_comes_back_too_in_the_long_run_unless_its_rate_is_small_or_falls():
    adamw = RULES["AdamW"]
    ground = Ravine(100)
    rates = (0.01, 0.1, 1.0, 10.0)
    constant = {lr: end_loss(adamw, ground, lr, 10_000) for lr in rates}
    falling = {lr: end_loss(adamw, ground, lr, 10_000, falling=True) for lr in rates}
    assert end_loss(adamw, ground, 1.0, 1000) < 1e-30
    assert constant[0.01] < 1e-30
    assert constant[0.1] > 1e-3
    assert constant[1.0] > 1e-3
    assert constant[10.0] > 51.125
    assert max(falling.values()) < 1e-30


@pytest.mark.parametrize("name", RULES)
def test_the_steps_to_come_near_are_those_after_which_no_loss_is_above_the_share(name):
    ground = Ravine(100, 45)
    rule = RULES[name]
    for lr in (0.005, 0.018, 0.1):
        losses = [ground.loss(*point) for point in descent(rule, ground, lr, 500)]
        steps = steps_to_come_near(rule, ground, lr, share=0.01, steps=500)
        share = 0.01 * losses[0]
        was_lost = len(losses) <= 500
        if was_lost or losses[-1] >= share:
            assert steps == math.inf
        else:
            assert max(losses[steps:]) < share <= losses[steps - 1]


def fewest_steps_of_adamw(degrees):
    rule = RULES["AdamW"]
    ground = Ravine(100, degrees)
    return min(
        steps_to_come_near(rule, ground, lr, share=0.001, steps=10_000) for lr in DRAWN_RATES
    )


def test_who_has_to_stay_near_for_ten_thousand_steps_pays_for_a_turn_with_adamw_too():
    assert fewest_steps_of_adamw(degrees=45) > 8 * fewest_steps_of_adamw(degrees=0)
