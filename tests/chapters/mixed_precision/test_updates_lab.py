"""The updates lab: how many updates move no weight, over a training in bf16 alone."""

import pytest
import torch

from course_utils.chapters.mixed_precision.updates_lab import jobs
from course_utils.chapters.mixed_precision.updates_lab import picture as drawing
from course_utils.chapters.mixed_precision.updates_lab.asked import ASKED_AT, RATES, STEPS
from course_utils.subjects.training.precision import LEARNING_RATE, Training
from tests.helpers.labs import fresh, lines

lab = fresh("updates")


def still_in(step, rate):
    """The share of weights that a step leaves where they were, in a training of its own.

    Weights that have had no gradient so far are left out.
    """
    training = Training("bf16 alone")
    had_gradient = False
    for n in range(step):
        left = 1 - n / STEPS if rate == "falling" else 1
        training.optimizer.param_groups[0]["lr"] = LEARNING_RATE * left
        before = flat(training.weights)
        training.step()
        had_gradient = had_gradient | (flat(p.grad for p in training.weights) != 0)
    stayed = flat(training.weights) == before
    return stayed[had_gradient].double().mean().item()


def flat(tensors):
    """A copy of all their numbers in one vector."""
    return torch.cat([tensor.detach().flatten() for tensor in tensors])


@pytest.mark.parametrize("rate", RATES)
def test_the_curve_is_the_share_of_weights_that_do_not_move(lab, rate):
    lab.set(shown=True, rate=rate)
    (curve,) = lines(lab.screen.svg, "line measured")
    _, top, _, height = drawing.SHARES
    for step in (1, 60, 150):
        _, y = curve[step - 1]
        share = (top + height - y) / height
        assert share == pytest.approx(still_in(step, rate), abs=0.002)


@pytest.mark.parametrize("rate", RATES)
def test_half_a_step_of_the_weight_says_which_updates_are_lost(rate):
    for step in jobs.steps(rate):
        assert step.below == pytest.approx(step.still, abs=0.01)
        below = sum(count for power, count in step.bins if power < 0)
        total = sum(count for _, count in step.bins)
        assert below / total == pytest.approx(step.below)


def test_hardly_any_is_lost_at_first_a_fifth_halfway_and_at_the_end_nearly_all():
    def still(rate, step):
        return jobs.steps(rate)[step - 1].still

    assert still("constant", 1) < 0.01
    assert still("constant", 25) < 0.05
    assert 0.15 < still("constant", 100) < 0.3
    assert 0.8 < still("constant", 200) < 0.92 < still("falling", 200)


def test_before_show_nothing_of_the_training_is_there_and_then_each_mark_beside_its_step(lab):
    empty = lab.screen.svg
    lab.set(step=150, rate="falling")
    assert lab.screen.svg == empty
    steps = jobs.steps("falling")
    percents = [round(100 * steps[step - 1].still) for step in ASKED_AT]
    lab.set(guess=tuple(percents), shown=True)
    offs = [guess.off for guess in lab.session.guesses()]
    assert len(offs) == len(ASKED_AT)
    assert max(offs) < 1.3
    svg = lab.screen.svg
    assert "updates of each size, in step 150" in svg
    # What is drawn later is above: no line strikes the words beside a mark through.
    assert svg.index("small strong halo") > svg.index("guess-line")
