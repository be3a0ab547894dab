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
    """The share of the weights that a training on its own leaves where they were, of those with a gradient so far."""
    training, some = Training("bf16 alone"), False
    for n in range(step):
        training.optimizer.param_groups[0]["lr"] = LEARNING_RATE * (
            1 - n / STEPS if rate == "falling" else 1
        )
        before = torch.cat([p.detach().clone().flatten() for p in training.weights])
        training.step()
        some = some | (torch.cat([p.grad.flatten() for p in training.weights]) != 0)
    after = torch.cat([p.detach().flatten() for p in training.weights])
    return (before == after)[some].double().mean().item()


@pytest.mark.parametrize("rate", RATES)
def test_the_curve_is_the_share_of_weights_that_do_not_move(lab, rate):
    lab.set(shown=True, rate=rate)
    (curve,) = lines(lab.screen.svg, "line measured")
    _, top, _, height = drawing.SHARES
    for step in (1, 60, 150):
        share = (top + height - curve[step - 1][1]) / height
        assert share == pytest.approx(still_in(step, rate), abs=0.002)


@pytest.mark.parametrize("rate", RATES)
def test_half_a_step_of_the_weight_says_which_updates_are_lost(rate):
    for step in jobs.steps(rate):
        assert step.below == pytest.approx(step.still, abs=0.01)
        below = sum(count for power, count in step.bins if power < 0)
        assert below / sum(count for _, count in step.bins) == pytest.approx(step.below)


def test_hardly_any_is_lost_at_first_a_fifth_halfway_and_at_the_end_nearly_all():
    constant, falling = (
        [jobs.steps(rate)[n - 1].still for n in (1, 25, 100, 200)] for rate in RATES
    )
    assert constant[0] < 0.01
    assert constant[1] < 0.05
    assert 0.15 < constant[2] < 0.3
    assert 0.8 < constant[3] < 0.92 < falling[3]


def test_before_show_nothing_of_the_training_is_there_and_then_each_mark_beside_its_step(lab):
    empty = lab.screen.svg
    lab.set(step=150, rate="falling")
    assert lab.screen.svg == empty
    lab.set(
        guess=tuple(round(100 * jobs.steps("falling")[n - 1].still) for n in ASKED_AT), shown=True
    )
    offs = [guess.off for guess in lab.session.guesses()]
    assert len(offs) == len(ASKED_AT)
    assert max(offs) < 1.3
    assert "updates of step 150" in lab.screen.svg
