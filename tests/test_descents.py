"""Six rules that are torch's, surfaces whose gradients are right, and what is predicted of a way down a parabola."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from course_utils import predict
from course_utils.checks import optimizers as check
from course_utils.predict import descents
from course_utils.predict.descents import RULES, SURFACES, Settings
from tests import NOTEBOOKS
from tests.notebooks import code

STEPS = 300


# The rules, against torch. Written out here once more, so that a slip in the lab's list of them shows.


def torchs(name, parameters, s):
    decay, betas = {"weight_decay": s.weight_decay}, (s.momentum, s.beta2)
    return {
        "SGD": lambda: torch.optim.SGD(parameters, s.lr, **decay),
        "momentum": lambda: torch.optim.SGD(parameters, s.lr, momentum=s.momentum, **decay),
        "AdaGrad": lambda: torch.optim.Adagrad(parameters, s.lr, **decay),
        "RMSProp": lambda: torch.optim.RMSprop(parameters, s.lr, alpha=s.beta2, **decay),
        "Adam": lambda: torch.optim.Adam(parameters, s.lr, betas=betas, **decay),
        "AdamW": lambda: torch.optim.AdamW(parameters, s.lr, betas=betas, **decay),
    }[name]()


def torchs_way(name, s, gradients):
    p = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    optimizer, way = torchs(name, [p], s), []
    for g in gradients:
        p.grad = torch.tensor([g], dtype=torch.float64)
        optimizer.step()
        way.append(p.item())
    return way


def our_way(name, s, gradients, resting=()):
    """With `resting`, each step is taken from there, and not from where the last one led."""
    p, state, way = 1.0, {}, []
    for n, g in enumerate(gradients):
        p = RULES[name](resting[n - 1] if n and resting else p, g, state, s)
        way.append(p)
    return way


def drawn_gradients(seed, scale):
    """Of all sizes, some of them 0."""
    draw = np.random.default_rng(seed)
    sizes = scale * 10.0 ** draw.uniform(-3, 1, STEPS) * (draw.random(STEPS) > 0.05)
    return (draw.standard_normal(STEPS) * sizes).tolist()


some_settings = st.builds(
    Settings,
    lr=st.floats(1e-4, 1.0),
    momentum=st.sampled_from([0.0, 0.3, 0.5, 0.9, 0.99]) | st.floats(0.0, 0.99),
    beta2=st.sampled_from([0.5, 0.9, 0.99, 0.999]) | st.floats(0.5, 0.999),
    weight_decay=st.just(0.0) | st.floats(1e-3, 0.9),
)


@pytest.mark.parametrize("name", RULES)
@given(s=some_settings, seed=st.integers(0, 999), scale=st.sampled_from([1e-8, 1e-3, 1.0, 1e3]))
@settings(max_examples=15)
def test_each_rule_is_torchs_over_hundreds_of_steps(name, s, seed, scale):
    gradients = drawn_gradients(seed, scale)
    theirs = torchs_way(name, s, gradients)
    # Not to the last bit: torch rounds a product and a sum once. With
    # weight decay the next gradient depends on that, and for tiny ones a rounding decides on the sign of a whole step.
    ours = our_way(name, s, gradients, resting=theirs if s.weight_decay else ())
    far = max(1.0, *map(abs, theirs))
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-12 * far


def as_the_reader_writes_it(name, s):
    """As notebook 6 has them, its exercises and its RMSProp: from (t, p, g, what was kept) to (p, what is kept)."""
    written: dict[str, object] = {}
    exec(next(cell.source for cell in code(NOTEBOOKS[5]) if cell.source.startswith("def rmsprop(")), written)
    rules = {
        "momentum": check.momentum(...).ours(),
        "RMSProp": written["rmsprop"],
        "AdamW": check.adamw_step(...).ours(),
    }
    ours = rules[name]
    return {
        "momentum": lambda t, p, g, b: ours(p, g, b, s.lr, s.momentum),
        "RMSProp": lambda t, p, g, v: ours(p, g, v, s.lr, s.beta2),
        "AdamW": lambda t, p, g, m, v: ours(p, g, m, v, t, s.lr, s.weight_decay),
    }[name]


@pytest.mark.parametrize(("name", "kept"), [("momentum", 1), ("RMSProp", 1), ("AdamW", 2)])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e3])
def test_what_the_reader_writes_is_torchs_over_hundreds_of_steps(name, kept, scale):
    s = Settings(0.01, beta2=0.99 if name == "RMSProp" else 0.999)
    rule, p, way = as_the_reader_writes_it(name, s), torch.ones(1, dtype=torch.float64), []
    state = [torch.zeros(1, dtype=torch.float64)] * kept
    gradients = drawn_gradients(6, scale)
    for t, g in enumerate(gradients, 1):
        p, *state = rule(t, p, torch.full_like(p, g), *state)
        way.append(p.item())
    theirs = torchs_way(name, s, gradients)
    far = max(1.0, *map(abs, theirs))
    assert max(abs(a - b) for a, b in zip(way, theirs, strict=True)) < 1e-12 * far


# The surfaces.

coordinates = st.floats(-2, 2)


@pytest.mark.parametrize("surface", SURFACES)
@given(x=coordinates, y=coordinates, steepness=st.sampled_from([0, 1, 30, 1000]))
def test_gradient_and_curvatures_are_those_of_the_loss(surface, x, y, steepness):
    made = SURFACES[surface](steepness)
    place = torch.tensor([x, y], dtype=torch.float64)

    def loss(p):
        return made.loss(p[0], p[1]) + 0 * p.sum()  # so that it depends on both

    gradient = torch.autograd.functional.jacobian(loss, place)
    assert made.gradient(x, y) == pytest.approx(gradient.tolist(), rel=1e-12, abs=1e-9)
    found = torch.linalg.eigvalsh(torch.autograd.functional.hessian(loss, place)).tolist()
    assert sorted(made.curvatures(x, y)) == pytest.approx(found, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("surface", SURFACES)
@given(level=st.floats(1e-3, 100), steepness=st.sampled_from([0, 1, 30, 1000]))
def test_a_line_of_equal_loss_is_one(surface, level, steepness):
    made = SURFACES[surface](steepness)
    drawn = [point for line in made.contour(level) for point in line]
    assert drawn
    for x, y in drawn:
        assert made.loss(x, y) == pytest.approx(level, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("surface", SURFACES)
def test_the_minima_are_where_loss_and_gradient_vanish(surface):
    made = SURFACES[surface](30)
    for minimum in made.minima:
        assert made.loss(*minimum) == 0
        assert made.gradient(*minimum) == (0, 0)
    assert made.loss(*made.start) > 0


def test_noise_is_the_same_for_the_same_seed_and_as_large_as_asked_for():
    assert descents.noise(0.3, 50, 4) == descents.noise(0.3, 50, 4) != descents.noise(0.3, 50, 5)
    pushes = np.array(descents.noise(0.3, 20_000, 0))
    assert pushes.std(axis=0) == pytest.approx([0.3, 0.3], rel=0.03)
    assert pushes.mean(axis=0) == pytest.approx([0, 0], abs=0.01)


# What is predicted.


@given(a=st.floats(-1, 5), mu=st.sampled_from([0.0, 0.5, 0.9, 0.99]))
def test_the_predicted_rate_is_the_largest_root_and_decides_who_diverges(a, mu):
    roots = np.roots([1, -(1 + mu - a), mu])
    rate = predict.convergence_rate(a, mu)
    assert rate == pytest.approx(np.abs(roots).max(), rel=1e-6)
    assume(abs(a) > 1e-6 and abs(a - 2 * (1 + mu)) > 1e-6)
    assert (rate > 1) == (a < 0 or a > 2 * (1 + mu))
    if a > 0:
        assert (predict.largest_lr(a / 0.1, mu) < 0.1) == (rate > 1)


def test_a_loss_beyond_all_floats_is_infinite():
    assert predict.parabola_loss(300, 1e4, [1], [1], momentum=0.9) == math.inf


@given(a=st.floats(-0.5, 0.1), mu=st.sampled_from([0.0, 0.5, 0.9]), times=st.floats(1.5, 1e4))
def test_the_first_step_beyond_is_the_one_that_powers_of_a_matrix_find(a, mu, times):
    matrix = np.array([[1 + mu - a, -mu], [1, 0]])
    factors = np.array([np.linalg.matrix_power(matrix, step)[0].sum() for step in range(500)])
    assume(a >= 0 or abs(factors / times - 1).min() > 1e-9)
    beyond = np.flatnonzero(factors > times)
    expected = beyond[0] if a < 0 and len(beyond) else None
    assert predict.steps_to_grow(times, a, mu, at_most=500) == expected
