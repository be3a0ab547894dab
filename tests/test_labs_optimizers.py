"""The optimizer lab: its predictions come true, what it says of a race is so, and torch goes the same way."""

import math
import re
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from course_utils import predict
from course_utils.figures import COLOURS
from course_utils.labs import optimizer
from course_utils.labs.draw import lines as shapes
from course_utils.labs.draw import still
from course_utils.labs.optimizer.asked import LINEAR, PRESETS, RATES, Race
from course_utils.labs.optimizer.jobs import torchs_points
from course_utils.labs.optimizer.picture import PLOT_LEFT
from course_utils.labs.optimizer.words import meaning, why_it_diverges
from course_utils.predict import descents
from course_utils.predict.descents import RULES, SURFACES, descent
from tests.labs import answers, centres, fresh, lines, nodes, run

STEPS = 300
PLAIN = {"surface": "ravine", "steepness": 100, "racing": ("SGD",), "lr": 0.01, "steps": 100, "step": STEPS}
ALL = tuple(RULES)
lab = fresh("optimizer")


def race_of(**changes):
    """A race like the plain one, but for some changes."""
    return Race(**PLAIN | changes)


# What is predicted and simulated, against torch and against each other.


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", RULES)
def test_the_whole_way_down_is_torchs_with_gradients_by_autograd(name, surface):
    race = race_of(surface=surface, racing=(name,), steepness=30, lr=0.02, noise=0.1, weight_decay=0.01)
    ours, theirs = race.descents[name].points[1:], list(torchs_points(race, name))
    assert len(ours) == race.steps
    assert np.abs(np.array(ours) - np.array(theirs)).max() < 1e-9  # roundings grow on the way off the ridge


@given(
    name=st.sampled_from(LINEAR),
    surface=st.sampled_from(["ravine", "turned ravine"]),
    lr=st.floats(1e-4, 0.05),
    momentum=st.sampled_from([0.0, 0.5, 0.8, 0.9, 0.95, 0.99]),
    weight_decay=st.sampled_from([0.0, 0.1, 1.0]),
    steepness=st.sampled_from([0, 1, 3, 100]),
    step=st.integers(0, 100),
)
def test_the_predicted_loss_is_the_simulated_one(name, surface, step, **changes):
    race = race_of(surface=surface, racing=(name,), **changes)
    losses = race.descents[name].losses
    assume(step < len(losses))
    errors = [e * e for e in race.ground.along(*race.ground.start)]
    rounding = 1e-22 * max(losses[: step + 1]) + 1e-24 * sum(errors)
    assert race.predicted_loss(name, step) == pytest.approx(losses[step], rel=1e-7, abs=rounding)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize(("lr", "decay"), [(0.2, 0.0), (0.5, 0.0), (0.3, 1.0)])
def test_noise_holds_a_descent_at_the_predicted_loss(name, lr, decay):
    race = race_of(racing=(name,), steepness=3, lr=lr, noise=0.3, weight_decay=decay, steps=STEPS)
    long = descent(name, race.ground, race.settings, descents.noise(0.3, 12_000, 1)).losses[500:]
    assert sum(long) / len(long) == pytest.approx(race.predicted_floor(name), rel=0.1)
    assert race.measured_floor(name) == pytest.approx(race.predicted_floor(name), rel=0.3)


@pytest.mark.parametrize("name", LINEAR)
def test_a_descent_from_near_a_ridge_leaves_it_when_predicted(name):
    race = race_of(surface="saddle", steepness=1, racing=(name,), lr=0.03, steps=STEPS)
    assert race.leaves_the_saddle(name) == pytest.approx(race.predicted_to_leave(name), abs=6)
    held = race_of(surface="saddle", steepness=1, racing=(name,), lr=0.03, weight_decay=1.0, steps=STEPS)
    assert held.predicted_to_leave(name) is None
    assert held.leaves_the_saddle(name) is None


# Divergence.


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("steepness", [10, 100, 1000])  # less, and a saddle's minima would be what limits
@pytest.mark.parametrize(("name", "mu"), [("SGD", 0.9), ("momentum", 0.5), ("momentum", 0.9)])
def test_divergence_is_named_just_past_the_limit_and_not_before_it(surface, steepness, name, mu):
    limit = predict.largest_lr(steepness, mu if name == "momentum" else 0.0)

    def loss_and_reason(lr):
        race = race_of(surface=surface, racing=(name,), steepness=steepness, lr=lr, momentum=mu, steps=STEPS)
        return race.descents[name].losses, why_it_diverges(race, name)

    before, said_before = loss_and_reason(limit * 0.99)
    beyond, said_beyond = loss_and_reason(limit * 1.01)
    assert said_before == loss_and_reason(limit)[1] == ""
    assert re.match(rf"{name} diverges: lr × {steepness} = [\d.]+ > 2", said_beyond)
    assert max(before[-20:]) < before[0]
    assert beyond[-1] > before[-1]
    assert beyond[-1] > beyond[0] or surface == "saddle"


def test_a_descent_that_noise_or_another_curvature_drove_away_is_said_to_have_left():
    for surface in ("ravine", "saddle"):
        chosen = {"steepness": 0, "momentum": 0.99, "lr": 3.9, "noise": 3.0, "steps": 300}
        race = race_of(racing=("momentum",), surface=surface, **chosen)
        assert re.fullmatch(r"momentum left for good after \d+ steps?\.", why_it_diverges(race, "momentum"))


@pytest.mark.parametrize(("decay", "mu"), [(0.0, 0.5), (0.01, 0.9)])
def test_a_rate_just_beyond_the_bound_is_shown_with_digits_that_tell_it_apart(decay, mu):
    for lr, steepness, name in product(RATES, (0, 1, 3, 10, 30, 100, 300, 1000), LINEAR):
        chosen = {"lr": lr, "steepness": steepness, "weight_decay": decay, "momentum": mu}
        said = why_it_diverges(race_of(racing=(name,), steps=10, **chosen), name)
        numbers = re.search(r"([\d.e+]+) > (?:.* = )?([\d.]+), .* grows ([\d.e+]+)-fold", said)
        assert not numbers or float(numbers[1]) > float(numbers[2]), said
        assert not numbers or float(numbers[3]) > 1, said


# What is said.

TOO_FAST = {"racing": ALL, "lr": 0.3}
SAYS = [
    ("who wins?", "After 200 steps RMSProp has the least loss"),
    ("who diverges?", "SGD diverges: lr × 100 = 2.05 > 2, so its error grows 1.05-fold a step."),
    ("who overshoots?", "Momentum has run 0.57 past the minimum."),
    ("who tires?", "AdaGrad tires: step 300 is 0.034 of its first, and the minimum 0.69 away."),
    ("who minds a turn?", "SGD's by 1, momentum's by 1, AdaGrad's by 0.6, Adam's by 9.16e+05."),
    ("who leaves?", "Off the saddle: RMSProp at step 1, Adam at step 11,"),
    (
        {"steepness": 100, "lr": 0.02, "noise": 0.3, "racing": ("SGD",)},
        "In the long run nothing holds the loss of SGD.",
    ),
    ("who settles?", "noise holds the loss of SGD at 0.01 and momentum at 0.095, which sums gradients"),
    ("who decays?", "AdamW keeps (1 - lr·wd)^200 = 0.5483, measured 0.5483; Adam keeps 2e-05: it divides"),
    ({"racing": ("SGD",), "lr": 0.02, "weight_decay": 1.0}, "SGD diverges: lr × 101 = 2.02 > 2"),
    (TOO_FAST | {"steepness": 1000}, "Momentum diverges: lr × 1000 = 300 > 2(1 + 0.9) = 3.8, so"),
    (TOO_FAST, "Adam and AdamW divide the gradient by its size: there lr = 0.3 is a length"),
    ({"surface": "saddle"}, "x converges while"),
]
FACTORS = ["1 - 0.018 = 0.982", "1 - 1.8 = -0.8", "lr < 2/100 = 0.02", "lr < 2(1 + 0.9)/100 = 0.038"]
SAYS += [({"racing": ("SGD", "momentum"), "lr": 0.018}, part) for part in FACTORS]


@pytest.mark.parametrize(("asked", "sentence"), SAYS, ids=str)
def test_every_preset_answers_its_question_and_every_race_has_its_numbers(lab, asked, sentence):
    assert sentence in answers(lab, **{"preset": asked} if isinstance(asked, str) else asked)


def test_what_the_presets_say_can_be_seen_in_the_numbers():
    assert {asked for asked, _ in SAYS if isinstance(asked, str)} == set(PRESETS)

    def runs(label, **changes):
        return Race(**PRESETS[label] | changes).descents

    overshoot = runs("who overshoots?")
    assert max(x for x, _ in overshoot["momentum"].points) == pytest.approx(0.57, abs=0.005)
    assert max(x for x, _ in overshoot["SGD"].points) < 0
    tired = runs("who tires?")["AdaGrad"]
    assert tired.lengths[-1] / tired.lengths[0] == pytest.approx(0.034, abs=0.0005)
    assert math.hypot(*tired.points[-1]) == pytest.approx(0.69, abs=0.005)
    turned, straight = runs("who minds a turn?"), runs("who minds a turn?", surface="ravine")
    for name, times in (("SGD", 1), ("momentum", 1), ("AdaGrad", 0.6), ("Adam", 9.16e5)):
        assert turned[name].losses[-1] / straight[name].losses[-1] == pytest.approx(times, rel=0.01)
    decayed = runs("who decays?")["AdamW"].points[70][1]
    at_70 = f"(1 - lr·wd)^70 = {0.997**70:.4g}, measured {decayed:.4g}"
    assert decayed == pytest.approx(0.997**70)
    assert at_70 in meaning(Race(**PRESETS["who decays?"] | {"step": 70}))
    ridge = [abs(y) > 0.5 for _, y in runs("who leaves?")["SGD"].points]
    assert ridge.index(True) == Race(**PRESETS["who leaves?"]).leaves_the_saddle("SGD") == 131
    adagrad = runs("who settles?")["AdaGrad"].losses[150:]
    assert sum(adagrad) / len(adagrad) < Race(**PRESETS["who settles?"]).measured_floor("SGD")


NOT_SO = [
    ({"racing": ("AdaGrad",), "lr": 0.018, "steps": 300, "step": 4}, "tires"),  # half a step
    (TOO_FAST | {"steepness": 1000}, "adam diverges"),
    ({"racing": ("Adam",), "noise": 0.3}, "in the long run"),
    ({"racing": ("Adam", "AdamW"), "steepness": 0, "noise": 0.3, "weight_decay": 0.1}, "only decay"),
    ({"racing": ("Adam", "AdamW"), "steepness": 3, "weight_decay": 0.1}, "only decay"),
]
for rate, at in product((1.0, 1.5, 1.6), (10, 33, 300)):  # who has arrived
    NOT_SO.append(({"racing": ("AdaGrad",), "steepness": 0, "lr": rate, "steps": 300, "step": at}, "tires"))


@pytest.mark.parametrize(("asked", "not_said"), NOT_SO, ids=str)
def test_a_remark_is_not_made_where_it_is_not_true(asked, not_said):
    assert not_said not in meaning(race_of(**asked)).lower()


def test_a_race_without_optimizers_gets_a_sentence():
    with pytest.raises(ValueError, match=r"^Nobody races\. Tick at least one optimizer\.$"):
        race_of(racing=())


def test_the_learning_rates_offered_are_even_on_a_logarithmic_scale_and_have_the_limits_among_them():
    apart = [b / a for a, b in pairwise(RATES)]
    assert 1.02 < min(apart) < max(apart) < 1.2
    assert {predict.largest_lr(100), predict.largest_lr(10), predict.largest_lr(100, 0.9)} <= set(RATES)
    assert {preset["lr"] for preset in PRESETS.values()} <= set(RATES)


def test_distance_to_the_minimum_does_not_count_a_flat_direction():
    place = race_of(steepness=0, racing=("SGD",), lr=1.0, steps=10).descents["SGD"].points[-1]
    assert place == (0, 1)
    assert [SURFACES["ravine"](steepness).distance(*place) for steepness in (0, 3)] == [0, 1]
    assert SURFACES["turned ravine"](0).distance(-1, 1) == pytest.approx(0)


# What is drawn.


def curve(lab, name):
    """The points of somebody's loss, which is drawn to the right of the paths."""
    return next(line for line in lines(lab.screen.svg, f"line {name}") if line[0][0] >= PLOT_LEFT)


def test_the_rings_lie_on_the_curve_from_its_beginning_to_its_end(lab):
    lab.set(racing=("SGD",), lr=0.011, steepness=100, steps=80, step=80)
    drawn, rings = dict(curve(lab, "sgd")), centres(lab.screen.svg, "ring", "5")
    assert (len(drawn), len(rings)) == (81, 8)
    assert all(y == drawn[x] for x, y in rings)
    assert max(rings)[0] == max(drawn)


def test_looking_at_another_step_moves_the_points_and_not_the_curves(lab):
    lab.set(racing=("SGD", "Adam"), steps=100)
    whole = curve(lab, "sgd"), curve(lab, "adam")
    said = answers(lab, step=20)
    assert (curve(lab, "sgd"), curve(lab, "adam")) == whole
    in_the_loss, in_the_lengths = centres(lab.screen.svg, "adam", "4")
    assert in_the_loss == whole[1][20]
    assert in_the_lengths[0] == in_the_loss[0]
    assert "After 20 steps" in said
    assert "Paths to step 20" in said
    loss = 0.5 * (1.5 * 0.982**20) ** 2 + 50 * 0.8**40
    assert said.count(f"{loss:.4g}") == 2  # predicted and measured


def test_a_curve_ends_where_it_leaves_the_plot(lab):
    lab.preset("who tires?")
    assert max(curve(lab, "adagrad"))[0] > max(curve(lab, "rmsprop"))[0]


def test_a_descent_that_leaves_is_marked_at_the_edge_and_its_curve_ends_with_a_cross(lab):
    said = answers(lab, racing=("SGD", "Adam"), lr=0.1, steepness=100)
    assert re.search(r"SGD at \d+", said)
    assert not re.search(r"Adam at \d+", said)
    assert lab.screen.svg.count('class="pointed"') == 2 * 3  # a cross of two strokes in each of the three


def test_every_optimizer_has_a_colour_of_its_own_and_no_words_carry_it(lab):
    classes = [name.lower() for name in RULES]
    assert len({COLOURS[class_] for class_ in classes}) == len(RULES)
    for class_ in classes:
        assert f".line.{class_} {{ stroke: {COLOURS[class_]};" in still.PICTURE_CSS
        assert not nodes(lab.screen.svg, "text", class_)


# The step that is looked at, and what is done on request.


def test_the_step_that_is_looked_at_is_one_of_those_there_are(lab):
    step = lab.controls["step"]
    for label, values in PRESETS.items():
        lab.preset(label)
        assert step.value == step.max == values["steps"]  # the end, which it goes on to show
    lab.set(steps=200, step=50)
    for steps, shown in ((100, 50), (40, 40), (300, 300)):
        lab.set(steps=steps)
        assert (step.value, step.max) == (shown, steps)
    assert race_of(steps=100, step=300).step == 100


def test_torchs_own_optimizers_agree_when_asked(lab, monkeypatch):
    report = run(lab, "Check against torch")
    assert report.startswith(f"torch.optim took the same 1,200 steps ({', '.join(ALL)})")
    assert float(re.search(r"is ([\d.e-]+), \w+'s\.", report)[1]) < 1e-12
    monkeypatch.setitem(descents.RULES, "Adam", descents.rmsprop)
    lab.set(lr=0.016)
    assert float(re.search(r"is ([\d.e-]+), Adam's\.", run(lab, "Check against torch"))[1]) > 0.01


def test_a_race_moves_the_slider_from_the_first_step_to_the_last(lab, monkeypatch):
    monkeypatch.setattr(optimizer, "FRAME_S", 0)
    lab.set(racing=("SGD",))
    before, seen = lab.screen.svg, []
    lab.controls["step"].observe(lambda change: seen.append(change.new), "value")
    run(lab, "Race")
    assert seen == [frame * 200 // optimizer.FRAMES for frame in range(optimizer.FRAMES + 1)]
    assert lab.screen.svg == before


# Lines fit for a picture.

corners = st.lists(st.tuples(st.floats(-50, 150), st.floats(-50, 150)), min_size=2, max_size=12)


@given(corners)
def test_what_is_drawn_of_a_line_is_what_lies_in_the_frame(line):
    pieces = shapes.pieces_inside(line, 0, 0, 100)
    assert all(-1e-9 <= part <= 100 + 1e-9 for piece in pieces for place in piece for part in place)
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
    found = shapes.spread(heights, 0, 200, gap=17)
    assert all(b - a >= 17 - 1e-9 for a, b in pairwise(sorted(found)))
    assert -1e-9 <= min(found) <= max(found) <= 200
    order = sorted(range(len(heights)), key=heights.__getitem__)
    assert [found[n] for n in order] == sorted(found)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300))
def test_thinning_keeps_ends_and_extremes(values):
    kept = shapes.thinned(values)
    seen = [values[n] for n in kept]
    assert (min(seen), max(seen), kept[0], kept[-1]) == (min(values), max(values), 0, len(values) - 1)
    assert kept == sorted(set(kept))
