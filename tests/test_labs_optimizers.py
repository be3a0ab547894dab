"""The optimizer lab: its rules are torch's, its predictions come true, and what it says of a race is so."""

import math
import re
import sys
import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from course_utils import labs
from course_utils.figures import COLOURS
from course_utils.labs import lines, optimizer_picture, surfaces, svg, update_rules
from course_utils.labs.optimizer_lab import PRESETS, QUIET, RATES, torchs_points
from course_utils.labs.optimizer_race import PREDICTED, asked_for
from course_utils.labs.optimizer_words import meaning, why_it_diverges
from course_utils.labs.surfaces import SURFACES, Ravine, Saddle, TurnedRavine
from course_utils.labs.update_rules import RULES, Settings, descent

STEPS = 300
PLAIN = {
    "surface": "ravine",
    "steepness": 100,
    "racing": ("SGD",),
    "lr": 0.01,
    "seed": 0,
    "steps": 100,
} | QUIET


def asked(**changes):
    """A race like the plain one, but for some changes."""
    return asked_for(**PLAIN | changes)


def words(lab):
    """All that the picture says."""
    return " ".join("".join(node.itertext()) for node in ElementTree.fromstring(lab.screen.svg))


# The rules, against torch. Written out here once more, so that a slip in the lab's own list of them shows.


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


def torchs_way(name, s, gradients, start=1.0):
    p = torch.tensor([start], dtype=torch.float64, requires_grad=True)
    optimizer, way = torchs(name, [p], s), []
    for g in gradients:
        p.grad = torch.tensor([g], dtype=torch.float64)
        optimizer.step()
        way.append(p.item())
    return way


def our_way(name, s, gradients, start=1.0, resting=()):
    """With `resting`, each step is taken from there, and not from where the last one led."""
    p, state, way = start, {}, []
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
@settings(max_examples=15, deadline=None)
def test_each_rule_is_torchs_over_hundreds_of_steps(name, s, seed, scale):
    gradients = drawn_gradients(seed, scale)
    theirs = torchs_way(name, s, gradients)
    # Not to the last bit: torch rounds a product and a sum once, and its root can be off in the last place. With
    # weight decay the next gradient depends on that, and for tiny ones a rounding decides on the sign of a whole step.
    ours = our_way(name, s, gradients, resting=theirs if s.weight_decay else ())
    far = max(1.0, *map(abs, theirs))
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-12 * far


def torch_rounds_once():
    """Whether torch's add with a factor is a fused one on this machine."""
    a, c = 1 + 2.0**-30, -1.0
    found = torch.tensor([c], dtype=torch.float64).add(torch.tensor([a], dtype=torch.float64), alpha=a).item()
    return found == float(Fraction(a) * Fraction(a) + Fraction(c))


@pytest.mark.parametrize("name", RULES)
@given(s=some_settings, seed=st.integers(0, 999))
@settings(max_examples=5, deadline=None)
def test_with_torchs_two_roundings_each_rule_is_torchs_to_the_last_bit(name, s, seed):
    if not torch_rounds_once():
        pytest.skip("torch rounds products and sums apart on this machine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            update_rules, "multiply_add", lambda a, b, c: float(Fraction(a) * Fraction(b) + Fraction(c))
        )
        patch.setattr(update_rules, "sqrt", lambda x: torch.tensor([x], dtype=torch.float64).sqrt().item())
        gradients = drawn_gradients(seed, 1.0)
        assert our_way(name, s, gradients) == torchs_way(name, s, gradients)


def test_sum_or_average_and_the_place_of_epsilon_as_the_course_states_them():
    s = Settings(1.0, momentum=0.9, beta2=0.99)
    assert our_way("momentum", s, [1.0] * 4, start=0.0) == pytest.approx([-1, -2.9, -5.61, -9.049])
    steady = our_way("AdaGrad", s, [1.0] * 100)
    assert steady[-2] - steady[-1] == pytest.approx(1 / math.sqrt(100))
    assert 1 - our_way("RMSProp", s, [1.0])[0] == pytest.approx(10)
    assert 1 - our_way("RMSProp", s, [1e-8])[0] == pytest.approx(10 / 11)  # inside the root it would be 1e-4
    for g in (1e-3, 1.0, 1e3):
        assert 1 - our_way("Adam", s, [g])[0] == pytest.approx(1, abs=2e-5)
    decaying = Settings(0.1, weight_decay=0.1)
    assert our_way("AdamW", decaying, [0.0]) == [0.99]
    assert our_way("Adam", decaying, [0.0]) == pytest.approx([0.9], abs=1e-6)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", RULES)
def test_the_whole_way_down_is_torchs_with_gradients_by_autograd(name, surface):
    race = asked(surface=surface, racing=(name,), steepness=30, lr=0.02, noise=0.1, steps=STEPS)
    ours, theirs = race.descents[name].points[1:], list(torchs_points(race, name))
    assert len(ours) == STEPS
    assert np.abs(np.array(ours) - np.array(theirs)).max() < 1e-9  # roundings grow on the way off the ridge


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
        assert made.distance(*minimum) == 0
    assert made.loss(*made.start) > 0


def test_noise_is_the_same_for_the_same_seed_and_as_large_as_asked_for():
    assert surfaces.noise(0.3, 50, 4) == surfaces.noise(0.3, 50, 4) != surfaces.noise(0.3, 50, 5)
    pushes = np.array(surfaces.noise(0.3, 20_000, 0))
    assert pushes.std(axis=0) == pytest.approx([0.3, 0.3], rel=0.03)
    assert pushes.mean(axis=0) == pytest.approx([0, 0], abs=0.01)


# What is predicted, against the simulation.


@given(
    name=st.sampled_from(PREDICTED),
    surface=st.sampled_from(["ravine", "turned ravine"]),
    lr=st.floats(1e-4, 0.05),
    momentum=st.sampled_from([0.0, 0.5, 0.8, 0.9, 0.95, 0.99]),
    weight_decay=st.sampled_from([0.0, 0.1, 1.0]),
    steepness=st.sampled_from([0, 1, 3, 100]),
    step=st.integers(0, 100),
)
@settings(max_examples=200)
def test_the_predicted_loss_is_the_simulated_one(name, surface, step, **changes):
    race = asked(surface=surface, racing=(name,), **changes)
    run = race.descents[name]
    assume(step < len(run.losses))
    errors = [e * e for e in race.surface.along(*race.surface.start)]
    rounding = 1e-22 * max(run.losses[: step + 1]) + 1e-24 * sum(errors)
    assert race.predicted_loss(name, step) == pytest.approx(run.losses[step], rel=1e-7, abs=rounding)


@given(a=st.floats(-1, 5), mu=st.sampled_from([0.0, 0.5, 0.9, 0.99]))
def test_the_predicted_rate_is_the_largest_root_and_decides_who_diverges(a, mu):
    roots = np.roots([1, -(1 + mu - a), mu])
    rate = surfaces.rate(a, mu)
    assert rate == pytest.approx(np.abs(roots).max(), rel=1e-6)
    assume(abs(a) > 1e-6 and abs(a - 2 * (1 + mu)) > 1e-6)
    assert (rate > 1) == (a < 0 or a > 2 * (1 + mu))
    if a > 0:
        assert (surfaces.largest_lr(a / 0.1, mu) < 0.1) == (rate > 1)


def test_a_factor_beyond_all_floats_is_infinite():
    assert surfaces.error_factor(300, 1e4, 0.9) == math.inf
    assert surfaces.error_factor(300, 1e4) in (math.inf, -math.inf)


@pytest.mark.parametrize("name", PREDICTED)
@pytest.mark.parametrize(("lr", "decay"), [(0.2, 0.0), (0.5, 0.0), (0.3, 1.0)])
def test_noise_holds_a_descent_at_the_predicted_loss(name, lr, decay):
    race = asked(racing=(name,), steepness=3, lr=lr, noise=0.3, weight_decay=decay, steps=STEPS)
    long = descent(name, race.surface, race.settings, surfaces.noise(0.3, 12_000, 1)).losses[500:]
    assert sum(long) / len(long) == pytest.approx(race.predicted_floor(name), rel=0.1)
    assert race.measured_floor(name) == pytest.approx(race.predicted_floor(name), rel=0.3)


@pytest.mark.parametrize("name", PREDICTED)
def test_who_starts_near_a_ridge_leaves_it_when_predicted(name):
    race = asked(surface="saddle", steepness=1, racing=(name,), lr=0.03, steps=STEPS)
    assert race.leaves_the_ridge(name) == pytest.approx(race.predicted_to_leave(name), abs=6)
    y = 0.001
    steps = race.predicted_to_leave(name)
    assert y * surfaces.error_factor(steps - 1, -0.03 * 0.999997, race.momentum_of(name)) <= 0.5
    held = asked(surface="saddle", steepness=1, racing=(name,), lr=0.03, weight_decay=1.0, steps=STEPS)
    assert held.predicted_to_leave(name) is None
    assert held.leaves_the_ridge(name) is None


@pytest.mark.parametrize("name", RULES)
@given(
    lr=st.floats(1e-4, 1.0),
    weight_decay=st.sampled_from([0.0, 0.3]),
    noise=st.sampled_from([0.0, 1.0]),
    surface=st.sampled_from(list(SURFACES)),
)
@settings(max_examples=20)
def test_the_first_step_is_as_long_as_predicted(name, **changes):
    race = asked(racing=(name,), **changes)
    assert race.descents[name].lengths[0] == pytest.approx(race.first_length(name), rel=1e-4)


# Divergence.


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("steepness", [10, 100, 1000])  # less, and a saddle's minima would be what limits
@pytest.mark.parametrize(("name", "mu"), [("SGD", 0.9), ("momentum", 0.5), ("momentum", 0.9)])
def test_divergence_is_named_just_past_the_limit_and_not_before_it(surface, steepness, name, mu):
    limit = surfaces.largest_lr(steepness, mu if name == "momentum" else 0.0)

    def loss_and_reason(lr):
        race = asked(surface=surface, racing=(name,), steepness=steepness, lr=lr, momentum=mu, steps=STEPS)
        return race.descents[name].losses, why_it_diverges(race, name)

    before, said_before = loss_and_reason(limit * 0.99)
    beyond, said_beyond = loss_and_reason(limit * 1.01)
    assert said_before == ""
    assert re.match(rf"{name} diverges: lr × {steepness} = [\d.]+ > 2", said_beyond)
    assert max(before[-20:]) < before[0]
    assert beyond[-1] > before[-1]
    assert beyond[-1] > beyond[0] or surface == "saddle"


def test_at_the_limit_itself_nothing_grows_and_nothing_is_said_to():
    race = asked(lr=0.02, steepness=100)
    assert why_it_diverges(race, "SGD") == ""
    assert abs(race.descents["SGD"].points[-1][1]) == pytest.approx(1.0)


def test_weight_decay_is_a_curvature_more():
    assert why_it_diverges(asked(lr=0.0199, steepness=100, weight_decay=1.0), "SGD").startswith(
        "SGD diverges: lr × 101 = 2.01 > 2"
    )


def test_who_divides_by_the_gradients_size_does_not_diverge_at_a_rate_at_which_sgd_does():
    race = asked(racing=tuple(RULES), lr=0.5, steepness=1000)
    gone = [name for name in RULES if why_it_diverges(race, name)]
    assert gone == ["SGD", "momentum"]
    lab = labs.optimizer_lab()
    lab.set(racing=tuple(RULES), lr=0.3, steepness=1000)
    assert " Momentum diverges: lr × 1000 = 300 > 2(1 + 0.9) = 3.8, so" in lab.screen.meaning


def test_adamw_diverges_by_its_weight_decay_and_says_so():
    race = asked(racing=("AdamW",), lr=10.0, weight_decay=1.0, steps=200)
    assert why_it_diverges(race, "AdamW").startswith("AdamW diverges: lr × weight decay = 10 > 2")
    assert why_it_diverges(asked(racing=("AdamW",), lr=1.0, weight_decay=1.0), "AdamW") == ""


def test_off_the_quadratic_the_curvature_that_threw_it_out_is_named():
    race = asked(surface="saddle", steepness=0, lr=5.0)
    said = why_it_diverges(race, "SGD")
    numbers = re.search(r"the curvature is ([\d.]+), and lr × that is ([\d.]+) > 2\.$", said)
    assert float(numbers[2]) == pytest.approx(5 * float(numbers[1]), rel=1e-3)
    assert float(numbers[2]) > 2


def test_who_leaves_is_marked_at_the_edge_and_its_curve_ends_with_a_cross():
    lab = labs.optimizer_lab()
    lab.set(racing=("SGD", "Adam"), lr=0.1, steepness=100)
    assert "SGD diverges" in words(lab)
    assert re.search(r"SGD at \d+", words(lab))
    assert "Adam diverges" not in words(lab)
    assert lab.screen.svg.count('class="pointed"') == 2 * 3  # a cross of two strokes in each of the three
    assert lab.screen.table[1][0].startswith("SGD, gone after ")
    assert lab.screen.meaning.startswith("SGD diverges: lr × 100 = 10 > 2, so its error grows 9-fold a step.")


# The lab.

SAYS = {
    "all six in the ravine": "After 200 steps RMSProp leads",
    "past the edge": "SGD diverges: lr × 100 = 2.05 > 2, so its error grows 1.05-fold a step.",
    "momentum overshoots": "Momentum runs 0.57 past the minimum before it turns.",
    "AdaGrad grows tired": "AdaGrad has grown tired: step 300 is 1/29 of its first, with 0.69 still to go.",
    "the ravine, turned": "SGD and momentum do the same as in the straight ravine",
    "saddle: who leaves first": "RMSProp leaves the ridge first, after 1 step; SGD last, after 131.",
    "noise: who averages": "it sums gradients, it does not average them; AdaGrad, whose steps get shorter, averages",
    "weight decay: AdamW and Adam": "AdamW keeps (1 - lr·wd)^200 = 0.5483 of it, measured 0.5483; Adam has 2e-05 left",
}


def test_every_preset_says_what_its_name_promises():
    lab = labs.optimizer_lab()
    assert set(SAYS) == set(PRESETS)
    for label, said in SAYS.items():
        lab.preset(label)
        assert lab.error is None
        assert said in lab.screen.meaning, label


def test_what_the_presets_say_can_be_seen_in_the_numbers():
    def runs(label):
        return asked(**PRESETS[label]).descents

    overshoot = [x for x, _ in runs("momentum overshoots")["momentum"].points]
    assert max(overshoot) == pytest.approx(0.57, abs=0.005)
    assert max(x for x, _ in runs("momentum overshoots")["SGD"].points) < 0
    tired = runs("AdaGrad grows tired")["AdaGrad"]
    assert tired.lengths[0] / tired.lengths[-1] == pytest.approx(29, abs=0.5)
    assert math.hypot(*tired.points[-1]) == pytest.approx(0.69, abs=0.005)
    turned, straight = (
        asked(**PRESETS["the ravine, turned"] | {"surface": s}).descents for s in list(SURFACES)[1::-1]
    )
    for name in PREDICTED:
        assert turned[name].losses == pytest.approx(straight[name].losses, rel=1e-6)
    assert turned["Adam"].losses[-1] > 1000 * straight["Adam"].losses[-1]
    decayed = runs("weight decay: AdamW and Adam")
    lab = labs.optimizer_lab()
    lab.preset("weight decay: AdamW and Adam")
    lab.set(step=70)
    assert (
        f"(1 - lr·wd)^70 = {0.997**70:.4g} of it, measured {decayed['AdamW'].points[70][1]:.4g}"
        in lab.screen.meaning
    )
    assert decayed["AdamW"].points[-1][1] == pytest.approx((1 - 0.003) ** 200)
    on_the_ridge = runs("saddle: who leaves first")["SGD"].points
    assert abs(on_the_ridge[130][1]) <= 0.5 < abs(on_the_ridge[131][1])


def test_prediction_stands_beside_measurement_with_the_formula_filled_in():
    lab = labs.optimizer_lab()
    lab.set(racing=("SGD", "momentum", "RMSProp"), lr=0.018, steepness=100, steps=100, step=40)
    said = words(lab)
    for part in ("1 - 0.018 = 0.982", "1 - 1.8 = -0.8", "lr < 2/100 = 0.02", "lr < 2(1 + 0.9)/100 = 0.038"):
        assert part in said
    loss = 0.5 * (1.5 * 0.982**40) ** 2 + 50 * 0.8**80
    assert said.count(f"{loss:.4g}") == 2  # predicted and measured
    assert said.count(f"{0.018 * 10 * math.sqrt(2):.4g}") == 2  # RMSProp's first step
    assert "Paths to step 40" in said
    assert lab.screen.svg.count('class="ring"') > 8


def test_the_rings_lie_on_the_curve_from_its_beginning_to_its_end():
    lab = labs.optimizer_lab()
    lab.set(racing=("SGD",), lr=0.011, steepness=100, steps=80, step=80)
    tree = ElementTree.fromstring(lab.screen.svg)
    curve = next(node for node in tree.iter() if node.get("class") == "line sgd").get("points")
    drawn = dict(tuple(map(float, point.split(","))) for point in curve.split())
    rings = [(float(n.get("cx")), float(n.get("cy"))) for n in tree.iter() if n.get("class") == "ring"]
    assert len(drawn) == 81
    assert len(rings) == 8
    assert all(y == drawn[x] for x, y in rings)
    assert max(rings)[0] == max(drawn)


def test_the_table_says_where_everyone_is_at_the_step_that_is_looked_at():
    lab = labs.optimizer_lab()
    lab.set(racing=("Adam", "SGD"), lr=0.018, steepness=100, steps=100, step=3)
    _, *rows = lab.screen.table
    assert [row[0] for row in rows] == ["SGD", "Adam"]
    x, y = -1.5 * 0.982**3, -(0.8**3)
    expected = (0.5 * (x * x + 100 * y * y), math.hypot(x, y), math.hypot(x / 0.982 * 0.018, 1.8 * 0.64))
    assert rows[0][1:4] == [f"{n:.4g}" for n in expected]
    lab.set(step=300)
    assert "Paths to step 100" in words(lab)


def test_looking_at_another_step_moves_the_points_and_not_the_curves():
    lab = labs.optimizer_lab()
    lab.set(racing=("SGD", "Adam"), steps=100)

    def curves():
        return re.findall(r'<polyline[^>]*class="line (?:sgd|adam)"[^>]*>', lab.screen.svg)

    whole = curves()
    before = lab.screen.svg
    lab.set(step=20)
    assert curves() == whole
    tree = ElementTree.fromstring(lab.screen.svg)
    points = {node.get("points"): node.get("class") for node in tree.iter() if node.get("points")}
    on_curves = {p for line, class_ in points.items() if class_ == "line adam" for p in line.split()}
    dots = [
        f"{n.get('cx')},{n.get('cy')}" for n in tree.iter() if (n.get("class"), n.get("r")) == ("adam", "4")
    ]
    assert len(dots) == 2
    assert set(dots) <= on_curves
    assert lab.screen.svg != before
    assert "After 20 steps" in lab.screen.meaning


def test_nobody_and_nonsense_get_a_sentence_and_the_next_choice_recovers():
    lab = labs.optimizer_lab()
    for nonsense, sentence in (
        ({"racing": ()}, "Nobody races. Tick at least one optimizer."),
        ({"racing": ("Lion",)}, "There is no optimizer Lion here. There are: SGD, momentum"),
        ({"lr": math.nan}, "lr cannot be nan."),
        ({"surface": "sea"}, "surface cannot be 'sea'."),
    ):
        lab.set(**nonsense)
        assert lab.screen.mistake.startswith(sentence)
        lab.set(racing=("SGD",), lr=0.01)
        assert lab.screen.mistake == ""


@pytest.mark.parametrize("lr", [math.nan, math.inf, 0.0, -1.0])
def test_a_learning_rate_that_is_none_gets_a_sentence(lr):
    with pytest.raises(ValueError, match="A learning rate is a number above 0; got"):
        asked(lr=lr)


def test_the_learning_rates_offered_are_even_on_a_logarithmic_scale_and_have_the_limits_among_them():
    apart = [b / a for a, b in pairwise(RATES)]
    assert 1.02 < min(apart) < max(apart) < 1.2
    assert {surfaces.largest_lr(100), surfaces.largest_lr(10), surfaces.largest_lr(100, 0.9)} <= set(RATES)
    assert {preset["lr"] for preset in PRESETS.values()} <= set(RATES)


def test_a_tick_is_a_racer():
    lab = labs.optimizer_lab()
    boxes = {box.description: box for box in lab.controls["racing"].children}
    assert list(boxes) == list(RULES)
    boxes["SGD"].value = False
    assert lab.values["racing"] == tuple(RULES)[1:]
    assert 'class="line sgd"' not in lab.screen.svg
    lab.set(racing=("AdamW", "SGD"))
    assert [name for name, box in boxes.items() if box.value] == ["SGD", "AdamW"]


ANY_LAB = labs.optimizer_lab()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_every_state_is_a_picture(data):
    moves = {"racing": data.draw(st.lists(st.sampled_from(list(RULES)), min_size=1, unique=True))}
    for name in ("surface", "steepness", "lr", "momentum", "beta2", "weight_decay", "noise"):
        moves[name] = data.draw(st.sampled_from(values_of(ANY_LAB.controls[name])))
    moves |= {
        "seed": data.draw(st.integers(0, 9)),
        "steps": data.draw(st.integers(1, 30)) * 10,
        "step": data.draw(st.integers(0, 300)),
    }
    ANY_LAB.set(**moves)
    assert ANY_LAB.error is None
    assert ANY_LAB.screen.meaning.endswith(".")
    assert "nan" not in ANY_LAB.screen.svg + ANY_LAB.screen.meaning
    tree = ElementTree.fromstring(ANY_LAB.screen.svg)
    for node in tree.iter():
        for x, y in re.findall(r"([-\d.e+]+),([-\d.e+]+)", node.get("points", "")):
            assert -5 <= float(x) <= optimizer_picture.WIDTH
            assert 0 <= float(y) <= optimizer_picture.HEIGHT


def values_of(control):
    return [option[1] if isinstance(option, tuple) else option for option in control.options]


def test_torchs_own_optimizers_agree_when_asked(monkeypatch):
    lab = labs.optimizer_lab()
    lab.start("Check against torch")
    lab.wait()
    assert lab.screen.report.startswith(
        "torch.optim took the same 1,200 steps (SGD, momentum, AdaGrad, RMSProp, Adam, AdamW)"
    )
    assert float(re.search(r"is ([\d.e-]+), \w+'s\.", lab.screen.report)[1]) < 1e-12
    monkeypatch.setitem(update_rules.RULES, "Adam", update_rules.rmsprop)
    lab.set(lr=0.016)
    lab.start("Check against torch")
    lab.wait()
    assert float(re.search(r"is ([\d.e-]+), Adam's\.", lab.screen.report)[1]) > 0.01


def test_a_race_shows_step_after_step_and_ends_where_the_slider_is(monkeypatch):
    monkeypatch.setattr(sys.modules["course_utils.labs.optimizer_lab"], "FRAME_S", 0)
    lab, seen = labs.optimizer_lab(), []
    lab.screen.observe(
        lambda change: seen.append(int(re.search(r"Paths to step (\d+)", change.new)[1])), "svg"
    )
    before = lab.screen.svg
    lab.start("Race")
    lab.wait()
    assert seen == sorted(seen)
    assert len(seen) > 50
    assert lab.screen.svg == before


# Lines fit for a picture.

places = st.lists(st.tuples(st.floats(-50, 150), st.floats(-50, 150)), min_size=2, max_size=12)


@given(places)
def test_what_is_drawn_of_a_line_is_what_lies_in_the_frame(line):
    pieces = lines.pieces_inside(line, 0, 0, 100)
    for piece in pieces:
        assert all(-1e-9 <= x <= 100 + 1e-9 and -1e-9 <= y <= 100 + 1e-9 for x, y in piece)
    long = sum(math.dist(a, b) for piece in pieces for a, b in pairwise(piece))
    # An independent measure: how much of each stretch of the line is inside, by walking it.
    shares = np.linspace(0, 1, 2001)[:, None]
    walked = 0.0
    for a, b in pairwise(line):
        way = np.array(a) + shares * (np.array(b) - np.array(a))
        walked += math.dist(a, b) * ((way >= 0) & (way <= 100)).all(axis=1).mean()
    assert long == pytest.approx(walked, abs=0.3 * len(line))


@given(st.lists(st.floats(0, 200), min_size=1, max_size=6))
def test_names_are_spread_in_the_order_of_their_curves(heights):
    found = lines.spread(heights, 0, 200, gap=17)
    for a, b in pairwise(sorted(found)):
        assert b - a >= 17 - 1e-9
    assert min(found) >= -1e-9
    assert max(found) <= 200
    order = sorted(range(len(heights)), key=heights.__getitem__)
    assert [found[n] for n in order] == sorted(found)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=20) | st.lists(st.floats(0, 1), min_size=130, max_size=300)
)
def test_thinning_keeps_ends_and_extremes(values):
    kept = lines.thinned(values)
    seen = [values[n] for n in kept]
    assert (min(seen), max(seen), kept[0], kept[-1]) == (min(values), max(values), 0, len(values) - 1)
    assert kept == sorted(set(kept))


def test_every_optimizer_has_a_colour_of_its_own_and_no_words_carry_it():
    colours = [COLOURS[name.lower()] for name in RULES]
    assert len(set(COLOURS.values()) & set(colours)) == len(RULES)
    for name in RULES:
        assert f".line.{name.lower()} {{ stroke: {COLOURS[name.lower()]};" in svg.PICTURE_CSS
    texts = re.findall(r'<text[^>]*class="([^"]*)"', ANY_LAB.screen.svg)
    assert not {name.lower() for name in RULES if name != "momentum"} & {
        word for t in texts for word in t.split()
    }


def test_the_still_picture_is_drawn(tmp_path):
    assert svg.still_png(labs.optimizer_lab().screen.svg).startswith(b"\x89PNG")


def test_surfaces_of_one_kind_and_steepness_are_one():
    assert Ravine(3) == Ravine(3) != Ravine(4)
    assert Ravine(3) != TurnedRavine(3)
    assert hash(Saddle(1)) == hash(Saddle(1))


@pytest.mark.parametrize("lr", [1.0, 1.5, 1.6])
@pytest.mark.parametrize("step", [10, 33, 300])
def test_who_has_arrived_is_not_called_tired(lr, step):
    values = {"surface": "ravine", "steepness": 0, "racing": ("AdaGrad",), "lr": lr, "momentum": 0.9}
    values |= {"beta2": 0.99, "weight_decay": 0, "noise": 0, "seed": 0, "steps": 300, "step": step}
    assert "tired" not in meaning(asked_for(**values))


def test_half_a_step_is_not_tired_and_a_hundredth_is():
    values = {"surface": "ravine", "steepness": 100, "racing": ("AdaGrad",), "lr": 0.018, "momentum": 0.9}
    values |= {"beta2": 0.99, "weight_decay": 0, "noise": 0, "seed": 0, "steps": 300}
    assert "tired" not in meaning(asked_for(**values, step=4))
    assert "tired" in meaning(asked_for(**values, step=300))


def test_the_step_that_is_looked_at_is_one_of_those_there_are():
    lab = labs.optimizer_lab()
    step = lab.controls["step"]
    for label, values in lab._presets.items():
        lab.preset(label)
        assert (step.value, step.max) == (
            values["steps"],
            values["steps"],
        )  # the end, which it goes on to show
    lab.set(steps=200, step=50)
    lab.set(steps=100)
    assert (step.value, step.max) == (50, 100)
    lab.set(steps=40)
    assert (step.value, step.max) == (40, 40)
    lab.set(steps=300)
    assert (step.value, step.max) == (300, 300)
