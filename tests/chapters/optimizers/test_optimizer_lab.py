"""The optimizer lab says what is so, draws what was walked, and answers a guess."""

import math
import re
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.chapters.optimizers.descents import RULES
from course_utils.chapters.optimizers.optimizer_lab.asked import (
    FALLING,
    LINEAR,
    LONG,
    PRESETS,
    RATES,
    SHORT,
    STEPS,
    Race,
)
from course_utils.chapters.optimizers.optimizer_lab.picture import BY_RATE
from course_utils.chapters.optimizers.optimizer_lab.words import why_it_diverges
from course_utils.core import predict
from course_utils.core.colours import COLOURS
from course_utils.core.say.wording import factor_text
from course_utils.engine.labs.draw import lines as shapes
from course_utils.engine.labs.draw import still
from course_utils.engine.labs.draw.lettering import width_of
from tests.helpers.labs import answers, centres, fresh, lines, nodes

lab = fresh("optimizer")


# What is said.

SAYS = [
    ("who diverges?", "SGD diverges: lr × 100 = 2.05 > 2, so its error grows."),
    ("who overshoots?", "At lr = 0.03, momentum ends lowest: "),
    (
        "who comes back?",
        "At lr = 1, AdamW ends lowest: its largest loss of the last 1,000 steps is 2.9.",
    ),
    ("who minds a turn?", "Momentum diverges: lr × 100 = 10 > 3.8, so"),
    (
        "what does less momentum buy?",
        "momentum ends lowest: its largest loss of the last 10 steps is < 1e-09.",
    ),
    ({"lr": 0.018, "step": 90}, "At lr = 0.018, after 90 steps, RMSProp has the lowest loss: "),
    (
        {"lr": 0.018, "racing": ("SGD",)},
        "At lr = 0.018, SGD's largest loss of the last 10 steps is 0.041.",
    ),
    (
        {"lr": 0.018},
        "At lr = 0.018, RMSProp ends lowest: its largest loss of the last 10 steps is 2.2e-05.",
    ),
]


@pytest.mark.parametrize(("asked", "sentence"), SAYS, ids=str)
def test_every_preset_answers_its_question(lab, asked, sentence):
    if isinstance(asked, str):
        meaning = answers(lab, preset=asked)
    else:
        meaning = answers(lab, **asked)
    assert sentence in meaning


def times_as_many_steps(name, degrees):
    """What a turn of the ravine costs: the steps to come near, over those in a straight one."""
    turned_steps, _ = Race(degrees=degrees).steps_to_come_near(name)
    straight_steps, _ = Race().steps_to_come_near(name)
    return turned_steps / straight_steps


def test_what_the_presets_show_is_in_the_numbers():
    assert {asked for asked, _ in SAYS if isinstance(asked, str)} == set(PRESETS)
    overshoot = Race(**PRESETS["who overshoots?"])
    assert max(x for x, _ in overshoot.descent("momentum")) > 0.5
    assert max(x for x, _ in overshoot.descent("SGD")) < 0
    assert times_as_many_steps("SGD", degrees=45) == 1
    assert times_as_many_steps("momentum", degrees=45) == 1
    assert times_as_many_steps("RMSProp", degrees=45) > 10
    assert 1 < times_as_many_steps("AdamW", degrees=45) < 1.5
    back = Race(**PRESETS["who comes back?"])
    assert Race(lr=back.lr).end_loss("RMSProp", back.lr) < 1e-30
    assert Race(lr=back.lr).end_loss("AdamW", back.lr) < 0.01
    assert back.end_loss("RMSProp", back.lr) > back.end_loss("AdamW", back.lr) > 0.1
    less = Race(**PRESETS["what does less momentum buy?"])
    assert less.end_loss("momentum", less.lr) < 1e-10 < Race().lowest("momentum")[0]


@pytest.mark.parametrize("mu", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("name", LINEAR)
def test_divergence_is_named_just_past_the_limit_and_not_before_it(name, mu):
    for steepness, lr in product((1, 3, 10, 30, 100, 300, 1000), RATES):
        race = Race(racing=(name,), steepness=steepness, momentum=mu, lr=lr)
        reason = why_it_diverges(race, name)
        diverges = lr > race.limit(name) * (1 + 1e-9)
        assert bool(reason) == diverges
        if diverges:
            numbers = re.search(r"([\d.e+]+) > ([\d.]+),", reason)
            assert float(numbers[1]) > float(numbers[2]), reason


@pytest.mark.parametrize("name", ["RMSProp", "AdamW"])
def test_in_a_short_run_divergence_is_named_of_no_optimizer_that_divides(name):
    for lr in RATES:
        assert why_it_diverges(Race(lr=lr), name) == ""


def test_a_race_without_optimizers_gets_a_sentence():
    with pytest.raises(ValueError, match=r"^Nobody races\. Tick at least one optimizer\.$"):
        Race(racing=())


def test_the_rates_offered_are_even_on_a_logarithmic_scale_and_have_the_limits_among_them():
    ratios = [b / a for a, b in pairwise(RATES)]
    assert 1.02 < min(ratios) < max(ratios) < 1.2
    limits = {predict.largest_lr(100), predict.largest_lr(10), predict.largest_lr(100, 0.9)}
    assert limits <= set(RATES)
    assert {preset["lr"] for preset in PRESETS.values()} <= set(RATES)


# A guess.

COMES_DOWN = "After 100 steps, {} has come down at every lr, up to 10, where this axis ends."


@pytest.mark.parametrize(
    ("name", "right", "said"),
    [
        ("SGD", 0.02, "SGD comes down up to lr = 2/100 = 0.02; measured: 0.02."),
        (
            "momentum",
            0.038,
            "Momentum comes down up to lr = 2(1 + 0.9)/100 = 0.038; measured: 0.038.",
        ),
        ("RMSProp", 10.0, COMES_DOWN.format("RMSProp")),
        ("AdamW", 10.0, COMES_DOWN.format("AdamW")),
    ],
)
def test_a_guessed_limit_is_judged_by_walking_and_hidden_until_then(lab, name, right, said):
    lab.set(guessed=name, guess=(RATES.index(right),))
    assert len(lines(lab.screen.svg, f"line {name.lower()}")) <= 1  # its path alone
    assert said not in answers(lab)
    assert answers(lab, shown=True).startswith(f"{said} Your guess is spot on: ")
    assert len(lines(lab.screen.svg, f"line {name.lower()}")) > 1
    times = factor_text(right / RATES[0])
    far = f"{said} Your guess is far: a factor of {times} too small."
    assert answers(lab, guess=(0,)).startswith(far)


def test_a_limit_is_written_in_one_form_in_the_sentence_and_in_the_table(lab):
    lab.set(racing=("SGD", "momentum"), guessed="SGD", guess=(0,), steepness=300)
    said = answers(lab, shown=True, steepness=300)
    assert said.startswith("SGD comes down up to lr = 2/300 = 0.00667; measured: 0.00667.")
    assert ">0.00667<" in lab.screen.svg


def test_while_a_mark_is_dragged_its_learning_rate_is_written_beside_it_inside_the_plot(lab):
    lab.set(guessed="SGD")
    assert "lr = 0.033<" not in lab.screen.svg
    for level, rate in enumerate(RATES):
        lab.set(guessed="SGD", guess=(level,))
        beside = re.search(rf'<text[^>]* x="([\d.]+)"[^>]*>lr = {rate:g}</text>', lab.screen.svg)
        assert beside, rate
        length = width_of(f"lr = {rate:g}", "small strong")
        left = float(beside[1]) - (length if 'class="end' in beside[0] else 0)
        assert BY_RATE.left < left < left + length < BY_RATE.right


def test_the_limits_are_not_drawn_in_the_blue_of_adamws_dashed_curve(lab):
    assert len(lines(lab.screen.svg, "line dashed")) == 2
    assert not lines(lab.screen.svg, "line predicted dashed")


def test_with_the_best_pair_momentum_comes_below_a_billionth_in_100_steps():
    assert Race(momentum=0.67, lr=0.033).end_loss("momentum", 0.033) < 1e-9


def test_in_the_long_run_the_mark_on_rmsprop_belongs_where_its_loss_is_that_of_the_start(lab):
    lab.set(racing=("SGD", "RMSProp"), guessed="RMSProp", run=LONG, guess=(RATES.index(2.0),))
    begins = r"In the long run RMSProp's loss is \d+ × lr²/8\. It equals the [\d.]+ at the start"
    said = answers(lab, shown=True, steepness=100)
    assert re.match(begins, said)
    assert "when lr = 2.01; measured: 2.01. Your guess is spot on: 2" in said
    said = answers(lab, shown=True, steepness=1000, guess=(RATES.index(2.0),))
    assert re.match(begins, said)
    assert "when lr = 2; measured: 2. Your guess is spot on: 2" in said
    assert "After 10,000 steps, lr falling to 0, RMSProp has come down" in answers(lab, run=FALLING)
    assert "RMSProp has come down at every lr" in answers(lab, run=SHORT)


def test_of_a_long_run_the_last_steps_are_drawn_and_rmsprop_goes_to_and_fro_by_half_its_step():
    race = Race(racing=("RMSProp",), run=LONG, lr=1.0)
    points = race.descent("RMSProp")
    assert len(points) == STEPS + 1
    assert np.abs(points) == pytest.approx(0.5, abs=1e-3)
    assert np.array(points[-1]) == pytest.approx(-np.array(points[-2]), abs=1e-3)


def test_the_predicted_line_lies_on_rmsprops_curve_in_the_long_run_alone(lab):
    lab.set(racing=("RMSProp",))
    for run, drawn_lines in ((SHORT, 0), (LONG, 1), (FALLING, 0)):
        lab.set(run=run)
        predicted = lines(lab.screen.svg, "line predicted dashed")
        assert len(predicted) == drawn_lines
    lab.set(run=LONG)
    (left, low), *_ = lines(lab.screen.svg, "line predicted dashed")[0]
    assert (left, low) == pytest.approx(by_rate(lab, "rmsprop")[0], abs=0.5)


@pytest.mark.parametrize("run", [SHORT, LONG, FALLING])
def test_every_number_of_the_table_is_what_was_walked(run):
    for name in RULES:
        race = Race(run=run)
        loss, lr = race.lowest(name)
        assert loss == race.end_loss(name, lr)
        looked_at = [*race.drawn_rates, race.lr] if run == SHORT else race.drawn_rates
        assert loss == min(race.end_loss(name, looked_lr) for looked_lr in looked_at)


def test_the_present_dot_is_never_below_the_lowest_loss_of_the_table():
    best_pair = Race(racing=LINEAR, momentum=0.67, lr=0.033)  # a rate that no curve is drawn at
    assert best_pair.lr not in best_pair.drawn_rates
    assert best_pair.lowest("momentum") == (best_pair.end_loss("momentum", 0.033), 0.033)
    assert best_pair.lowest("SGD") == Race().lowest("SGD")


def test_an_optimizer_that_was_lost_has_no_last_steps_and_no_word_is_said_for_it(lab):
    said = answers(lab, racing=("SGD",), lr=0.1, run=LONG)
    assert said.startswith("SGD diverges: lr × 100 = 10 > 2, so its error grows. Nobody is left.")


def test_before_a_guess_is_shown_nothing_can_be_tried(lab):
    lab.set(guessed="SGD", lr=0.1, steepness=300)
    assert lab.session.lab.read(lab.values).lr == 0.018
    lab.set(shown=True)
    assert lab.session.lab.read(lab.values).lr == 0.1


# What is drawn.


def by_rate(lab, name):
    """The points of an optimizer's loss by learning rate; paths are drawn to the left of it."""
    for line in lines(lab.screen.svg, f"line {name}"):
        first_x, _ = line[0]
        if first_x >= BY_RATE.left - 1:
            return line
    raise AssertionError(f"{name} has no loss by learning rate.")


def test_a_dot_lies_where_the_curve_is_at_the_learning_rate_and_the_limit_is_where_the_formula_says(
    lab,
):
    lab.set(racing=("SGD",), lr=0.01, steepness=10)
    race = Race(racing=("SGD",), lr=0.01, steepness=10)
    # Across the ravine nothing is left by then. Along it, the loss falls, so that the first of the
    # last ten losses is the largest.
    along = 1.5 * 0.99 ** (STEPS - 9)
    loss = 0.5 * along**2
    assert race.end_loss("SGD", 0.01) == pytest.approx(loss, rel=1e-3)
    dots = [pytest.approx(centre, abs=0.1) for centre in centres(lab.screen.svg, "sgd", "5")]
    assert BY_RATE.at(0.01, loss) in dots
    (limit,) = lines(lab.screen.svg, "line dashed")
    x, _ = limit[0]
    assert x == pytest.approx(BY_RATE.x(0.2), abs=0.1)


def test_looking_at_another_step_moves_the_ways_and_not_the_curves(lab):
    lab.set(racing=("SGD", "AdamW"))
    picture = lab.screen.svg
    sgd = by_rate(lab, "sgd")
    adamw = by_rate(lab, "adamw")
    assert "after 20 steps" in answers(lab, step=20)
    assert by_rate(lab, "sgd") == sgd
    assert by_rate(lab, "adamw") == adamw
    assert lab.screen.svg != picture


def test_one_that_leaves_ends_at_the_frame_with_a_cross(lab):
    said = answers(lab, racing=("SGD", "AdamW"), lr=0.1)
    assert "SGD diverges" in said
    assert lab.screen.svg.count('class="pointed"') == 2  # one cross, of two strokes


def test_every_optimizer_has_a_colour_of_its_own_and_no_words_carry_it(lab):
    classes = [name.lower() for name in RULES]
    assert len({COLOURS[class_] for class_ in classes}) == len(RULES)
    for class_ in classes:
        assert f".line.{class_} {{ stroke: {COLOURS[class_]};" in still.PICTURE_CSS
        assert not nodes(lab.screen.svg, "text", class_)


# Lines fit for a picture.

corners = st.lists(st.tuples(st.floats(-50, 150), st.floats(-50, 150)), min_size=2, max_size=12)


@given(corners)
def test_what_is_drawn_of_a_line_is_what_lies_in_the_frame(line):
    pieces = shapes.pieces_inside(line, 0, 0, 100)
    length = 0.0
    for piece in pieces:
        assert np.min(piece) >= -1e-9
        assert np.max(piece) <= 100 + 1e-9
        length += sum(math.dist(a, b) for a, b in pairwise(piece))
    # An independent measure: how much of each stretch of the line is inside, by walking it.
    shares = np.linspace(0, 1, 2001)[:, None]
    walked = 0.0
    for a, b in pairwise(line):
        points = np.array(a) + shares * (np.array(b) - np.array(a))
        is_inside = ((points >= 0) & (points <= 100)).all(axis=1)
        walked += math.dist(a, b) * is_inside.mean()
    assert length == pytest.approx(walked, abs=0.3 * len(line))
