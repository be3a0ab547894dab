"""The optimizer lab: its predictions come true, what it says of a race is so, and torch goes the same way."""

import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from course_utils import labs, predict
from course_utils.figures import COLOURS
from course_utils.labs.draw import lines, still
from course_utils.labs.optimizer import jobs
from course_utils.labs.optimizer.asked import LEAST, LINEAR, PRESETS, RATES, Race
from course_utils.labs.optimizer.jobs import torchs_points
from course_utils.labs.optimizer.picture import PLOT_LEFT
from course_utils.labs.optimizer.words import meaning, why_it_diverges
from course_utils.predict import descents
from course_utils.predict.descents import RULES, SURFACES, descent
from tests.waiting import wait_until

STEPS = 300
PLAIN = {"surface": "ravine", "steepness": 100, "racing": ("SGD",), "lr": 0.01, "steps": 100, "step": STEPS}


def asked(**changes):
    """A race like the plain one, but for some changes."""
    return Race(**PLAIN | changes)


@pytest.fixture
def lab():
    panel = labs.optimizer_lab()
    yield panel
    panel.close()


def words(lab):
    """All that the picture says."""
    return " ".join("".join(node.itertext()) for node in ElementTree.fromstring(lab.screen.svg))


def curve(lab, name):
    """The points of somebody's loss, which is drawn to the right of the paths."""
    lines = re.findall(rf'points="([^"]*)" class="line {name}"', lab.screen.svg)
    places = [[tuple(map(float, point.split(","))) for point in line.split()] for line in lines]
    return next(line for line in places if line[0][0] >= PLOT_LEFT)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", RULES)
def test_the_whole_way_down_is_torchs_with_gradients_by_autograd(name, surface):
    race = asked(surface=surface, racing=(name,), steepness=30, lr=0.02, noise=0.1, steps=STEPS)
    ours, theirs = race.descents[name].points[1:], list(torchs_points(race, name))
    assert len(ours) == STEPS
    assert np.abs(np.array(ours) - np.array(theirs)).max() < 1e-9  # roundings grow on the way off the ridge


# What is predicted, against the simulation.


@given(
    name=st.sampled_from(LINEAR),
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
    errors = [e * e for e in race.ground.along(*race.ground.start)]
    rounding = 1e-22 * max(run.losses[: step + 1]) + 1e-24 * sum(errors)
    assert race.predicted_loss(name, step) == pytest.approx(run.losses[step], rel=1e-7, abs=rounding)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize(("lr", "decay"), [(0.2, 0.0), (0.5, 0.0), (0.3, 1.0)])
def test_noise_holds_a_descent_at_the_predicted_loss(name, lr, decay):
    race = asked(racing=(name,), steepness=3, lr=lr, noise=0.3, weight_decay=decay, steps=STEPS)
    long = descent(name, race.ground, race.settings, descents.noise(0.3, 12_000, 1)).losses[500:]
    assert sum(long) / len(long) == pytest.approx(race.predicted_floor(name), rel=0.1)
    assert race.measured_floor(name) == pytest.approx(race.predicted_floor(name), rel=0.3)


def test_noise_is_not_said_to_hold_anybody_where_sgd_is_held_nowhere():
    race = asked(racing=("SGD", "AdaGrad"), lr=0.0205, noise=0.3)
    assert race.predicted_floor("SGD") == math.inf
    assert "in the long run" not in meaning(race).lower()


@pytest.mark.parametrize("name", LINEAR)
def test_who_starts_near_a_ridge_leaves_it_when_predicted(name):
    race = asked(surface="saddle", steepness=1, racing=(name,), lr=0.03, steps=STEPS)
    assert race.leaves_the_saddle(name) == pytest.approx(race.predicted_to_leave(name), abs=6)
    held = asked(surface="saddle", steepness=1, racing=(name,), lr=0.03, weight_decay=1.0, steps=STEPS)
    assert held.predicted_to_leave(name) is None
    assert held.leaves_the_saddle(name) is None


# Divergence.


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("steepness", [10, 100, 1000])  # less, and a saddle's minima would be what limits
@pytest.mark.parametrize(("name", "mu"), [("SGD", 0.9), ("momentum", 0.5), ("momentum", 0.9)])
def test_divergence_is_named_just_past_the_limit_and_not_before_it(surface, steepness, name, mu):
    limit = predict.largest_lr(steepness, mu if name == "momentum" else 0.0)

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
    said = why_it_diverges(asked(lr=0.0199, steepness=100, weight_decay=1.0), "SGD")
    assert said.startswith("SGD diverges: lr × 101 = 2.0099 > 2")


def test_who_divides_by_the_gradients_size_does_not_diverge_at_a_rate_at_which_sgd_does(lab):
    race = asked(racing=tuple(RULES), lr=0.5, steepness=1000)
    assert [name for name in RULES if why_it_diverges(race, name)] == ["SGD", "momentum"]
    lab.set(racing=tuple(RULES), lr=0.3, steepness=1000)
    assert " Momentum diverges: lr × 1000 = 300 > 2(1 + 0.9) = 3.8, so" in lab.screen.meaning
    assert "Adam and AdamW divide the gradient by its size: there lr = 0.3 is a length" in words(lab)


@pytest.mark.parametrize("surface", ["ravine", "saddle"])
def test_whom_noise_or_a_curvature_elsewhere_has_carried_off_is_said_to_have_left(surface):
    chosen = {"steepness": 0, "momentum": 0.99, "lr": 3.9, "noise": 3.0, "steps": 300}
    race = asked(racing=("momentum",), surface=surface, **chosen)
    assert re.fullmatch(r"momentum left for good after \d+ steps?\.", why_it_diverges(race, "momentum"))


@pytest.mark.parametrize(("decay", "mu"), [(0.0, 0.5), (0.01, 0.9)])
def test_what_is_beyond_the_bound_is_shown_in_digits_that_say_so(decay, mu):
    for lr, steepness in product(RATES, (0, 1, 3, 10, 30, 100, 300, 1000)):
        chosen = {"lr": lr, "steepness": steepness, "weight_decay": decay, "momentum": mu}
        for name in LINEAR:
            said = why_it_diverges(asked(racing=(name,), steps=10, **chosen), name)
            numbers = re.search(r"([\d.e+]+) > (?:.* = )?([\d.]+), .* grows ([\d.e+]+)-fold", said)
            assert not numbers or float(numbers[1]) > float(numbers[2]), said
            assert not numbers or float(numbers[3]) > 1, said


def test_who_leaves_is_marked_at_the_edge_and_its_curve_ends_with_a_cross(lab):
    lab.set(racing=("SGD", "Adam"), lr=0.1, steepness=100)
    assert re.search(r"SGD at \d+", words(lab))
    assert not re.search(r"Adam at \d+", words(lab))
    assert lab.screen.svg.count('class="pointed"') == 2 * 3  # a cross of two strokes in each of the three
    assert lab.screen.meaning.endswith("SGD diverges: lr × 100 = 10 > 2, so its error grows 9-fold a step.")


# What is said and drawn.

SAYS = {
    "who wins?": "After 200 steps RMSProp has the least loss",
    "who diverges?": "SGD diverges: lr × 100 = 2.05 > 2, so its error grows 1.05-fold a step.",
    "who overshoots?": "Momentum has run 0.57 past the minimum.",
    "who tires?": "AdaGrad tires: step 300 is 0.034 of its first, and the minimum 0.69 away.",
    "who minds a turn?": "The turn multiplies the loss: SGD's by 1, momentum's by 1, AdaGrad's by 0.6, Adam's by 9.16e+05.",
    "who leaves?": "Off the saddle: RMSProp at step 1, Adam at step 11,",
    "who settles?": "noise holds the loss of SGD at 0.01 and momentum at 0.095, which sums gradients",
    "who decays?": "AdamW keeps (1 - lr·wd)^200 = 0.5483, measured 0.5483; Adam keeps 2e-05: it divides",
}


def test_every_preset_answers_its_question(lab):
    assert set(SAYS) == set(PRESETS)
    for label, said in SAYS.items():
        lab.preset(label)
        assert said in lab.screen.meaning, label


def test_what_the_presets_say_can_be_seen_in_the_numbers(lab):
    def runs(label, **changes):
        return Race(**PRESETS[label] | changes).descents

    overshoot = [x for x, _ in runs("who overshoots?")["momentum"].points]
    assert max(overshoot) == pytest.approx(0.57, abs=0.005)
    assert max(x for x, _ in runs("who overshoots?")["SGD"].points) < 0
    tired = runs("who tires?")["AdaGrad"]
    assert tired.lengths[-1] / tired.lengths[0] == pytest.approx(0.034, abs=0.0005)
    assert math.hypot(*tired.points[-1]) == pytest.approx(0.69, abs=0.005)
    turned, straight = runs("who minds a turn?"), runs("who minds a turn?", surface="ravine")
    for name in LINEAR:
        assert turned[name].losses == pytest.approx(straight[name].losses, rel=1e-6)
    for name, times in (("AdaGrad", 0.6), ("Adam", 9.16e5)):
        assert turned[name].losses[-1] / straight[name].losses[-1] == pytest.approx(times, rel=0.01)
    decayed = runs("who decays?")
    lab.preset("who decays?")
    lab.set(step=70)
    said = f"(1 - lr·wd)^70 = {0.997**70:.4g}, measured {decayed['AdamW'].points[70][1]:.4g}"
    assert said in lab.screen.meaning
    assert decayed["AdamW"].points[-1][1] == pytest.approx((1 - 0.003) ** 200)
    on_the_ridge = runs("who leaves?")["SGD"].points
    assert abs(on_the_ridge[130][1]) <= 0.5 < abs(on_the_ridge[131][1])
    adagrad = runs("who settles?")["AdaGrad"].losses[150:]
    assert sum(adagrad) / len(adagrad) < Race(**PRESETS["who settles?"]).measured_floor("SGD")


def test_prediction_stands_beside_measurement_with_the_formula_filled_in(lab):
    lab.set(racing=("SGD", "momentum", "RMSProp"), lr=0.018, steepness=100, steps=100, step=40)
    said = words(lab)
    for part in ("1 - 0.018 = 0.982", "1 - 1.8 = -0.8", "lr < 2/100 = 0.02", "lr < 2(1 + 0.9)/100 = 0.038"):
        assert part in said
    loss = 0.5 * (1.5 * 0.982**40) ** 2 + 50 * 0.8**80
    assert said.count(f"{loss:.4g}") == 2  # predicted and measured
    assert "Paths to step 40" in said
    assert lab.screen.svg.count('class="ring"') > 8


def test_the_rings_lie_on_the_curve_from_its_beginning_to_its_end(lab):
    lab.set(racing=("SGD",), lr=0.011, steepness=100, steps=80, step=80)
    drawn = dict(curve(lab, "sgd"))
    tree = ElementTree.fromstring(lab.screen.svg)
    rings = [(float(n.get("cx")), float(n.get("cy"))) for n in tree.iter() if n.get("class") == "ring"]
    assert len(drawn) == 81
    assert len(rings) == 8
    assert all(y == drawn[x] for x, y in rings)
    assert max(rings)[0] == max(drawn)


def test_looking_at_another_step_moves_the_points_and_not_the_curves(lab):
    lab.set(racing=("SGD", "Adam"), steps=100)
    whole = curve(lab, "sgd"), curve(lab, "adam")
    lab.set(step=20)
    assert (curve(lab, "sgd"), curve(lab, "adam")) == whole
    tree = ElementTree.fromstring(lab.screen.svg)
    dots = [n for n in tree.iter() if (n.get("class"), n.get("r")) == ("adam", "4")]
    assert len(dots) == 2
    assert (float(dots[0].get("cx")), float(dots[0].get("cy"))) == curve(lab, "adam")[20]
    assert "After 20 steps" in lab.screen.meaning


def test_nobody_and_nonsense_get_a_sentence_and_the_next_choice_recovers(lab):
    for nonsense, sentence in (
        ({"racing": ()}, "Nobody races. Tick at least one optimizer."),
        ({"racing": ("Lion",)}, "There is no Lion here. There are: SGD, momentum"),
        ({"lr": math.nan}, "lr cannot be nan."),
        ({"surface": "sea"}, "surface cannot be 'sea'."),
    ):
        lab.set(**nonsense)
        assert lab.screen.mistake.startswith(sentence)
        lab.set(racing=("SGD",), lr=0.01)
        assert lab.screen.mistake == ""


def test_the_learning_rates_offered_are_even_on_a_logarithmic_scale_and_have_the_limits_among_them():
    apart = [b / a for a, b in pairwise(RATES)]
    assert 1.02 < min(apart) < max(apart) < 1.2
    assert {predict.largest_lr(100), predict.largest_lr(10), predict.largest_lr(100, 0.9)} <= set(RATES)
    assert {preset["lr"] for preset in PRESETS.values()} <= set(RATES)


@pytest.mark.parametrize("lr", [1.0, 1.5, 1.6])
@pytest.mark.parametrize("step", [10, 33, 300])
def test_who_has_arrived_is_not_called_tired(lr, step):
    assert "tires" not in meaning(asked(steepness=0, racing=("AdaGrad",), lr=lr, steps=300, step=step))


def test_the_flat_direction_is_no_way_to_go():
    place = asked(steepness=0, racing=("SGD",), lr=1.0, steps=10).descents["SGD"].points[-1]
    assert place == (0, 1)
    assert SURFACES["ravine"](0).distance(*place) == 0
    assert SURFACES["ravine"](3).distance(*place) == 1
    assert SURFACES["turned ravine"](0).distance(-1, 1) == pytest.approx(0)
    assert SURFACES["saddle"](0).distance(5, 0.75) == 0.25


def test_the_bound_on_a_saddle_is_said_to_be_of_x_alone(lab):
    lab.set(surface="saddle", racing=("SGD",))
    assert "x converges while" in words(lab)
    lab.set(surface="ravine")
    assert "x converges while" not in words(lab)


def test_a_curve_ends_where_it_leaves_the_plot(lab):
    lab.preset("who tires?")
    assert max(curve(lab, "adagrad"))[0] > max(curve(lab, "rmsprop"))[0]
    assert Race(**PRESETS["who tires?"]).descents["RMSProp"].losses[-1] < LEAST


@given(
    surface=st.sampled_from(list(SURFACES)),
    steepness=st.sampled_from([0, 1, 100]),
    lr=st.sampled_from(RATES),
    noise=st.sampled_from([0.0, 0.3, 3.0]),
    weight_decay=st.sampled_from([0.0, 0.1, 1.0]),
    step=st.integers(0, 100),
)
@settings(max_examples=40, deadline=None)
def test_what_is_said_takes_two_lines_at_most(step, **changes):
    assert len(meaning(asked(**changes | {"racing": tuple(RULES), "step": step}))) <= 242


def test_half_a_step_is_not_tired_and_a_hundredth_is():
    race = {"racing": ("AdaGrad",), "lr": 0.018, "steps": 300}
    assert "tires" not in meaning(asked(**race, step=4))
    assert "tires" in meaning(asked(**race, step=300))


def test_every_optimizer_has_a_colour_of_its_own_and_no_words_carry_it(lab):
    colours = [COLOURS[name.lower()] for name in RULES]
    assert len(set(COLOURS.values()) & set(colours)) == len(RULES)
    for name in RULES:
        assert f".line.{name.lower()} {{ stroke: {COLOURS[name.lower()]};" in still.PICTURE_CSS
    texts = re.findall(r'<text[^>]*class="([^"]*)"', lab.screen.svg)
    assert not {name.lower() for name in RULES} & {word for t in texts for word in t.split()}


# The step that is looked at, and what is done on request.


def test_the_step_that_is_looked_at_is_one_of_those_there_are(lab):
    step = lab.controls["step"]
    for label, values in PRESETS.items():
        lab.preset(label)
        assert step.value == step.max == values["steps"]  # the end, which it goes on to show
    for said, shown in (
        ({"steps": 200, "step": 50}, (50, 200)),
        ({"steps": 100}, (50, 100)),
        ({"steps": 40}, (40, 40)),
        ({"steps": 300}, (300, 300)),
    ):
        lab.set(**said)
        assert (step.value, step.max) == shown
    assert asked(steps=100, step=300).step == 100


def test_torchs_own_optimizers_agree_when_asked(lab, monkeypatch):
    def difference():
        lab.start("Check against torch")
        lab.wait()
        return float(re.search(r"is ([\d.e-]+), \w+'s\.", lab.screen.report)[1])

    assert difference() < 1e-12
    names = "SGD, momentum, AdaGrad, RMSProp, Adam, AdamW"
    assert lab.screen.report.startswith(f"torch.optim took the same 1,200 steps ({names})")
    monkeypatch.setitem(descents.RULES, "Adam", descents.rmsprop)
    lab.set(lr=0.016)
    assert difference() > 0.01
    assert "Adam's." in lab.screen.report


def test_a_race_moves_the_slider_from_the_first_step_to_the_last(lab, monkeypatch):
    monkeypatch.setattr(jobs, "FRAME_S", 0)
    before, seen = lab.screen.svg, []
    lab.controls["step"].observe(lambda change: seen.append(change.new), "value")
    lab.start("Race")
    lab.wait()
    assert seen == [frame * 200 // jobs.FRAMES for frame in range(jobs.FRAMES + 1)]
    assert lab.screen.svg == before


def test_a_race_that_is_stopped_stays_where_it_is(lab):
    lab.start("Race")
    wait_until(lambda: 0 < lab.values["step"] < 200, "the race has begun")
    lab.stop()
    lab.wait()
    reached = lab.values["step"]
    assert 0 < reached < 200
    assert f"Paths to step {reached}" in words(lab)
    assert lab.screen.report == f"Stopped. Step {reached} of 200."


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
