"""How often to save, against runs that live through drawn failures."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.core import predict


def wasted(interval_s, save_s, failure_s, restart_s, *, segments, seed=0):
    """The share of its time that a run loses, with failures that are drawn.

    A failure undoes the work since the last save.
    """
    draw = random.Random(seed)
    total_s = 0.0
    for _ in range(segments):
        needed_s = interval_s + save_s
        until_failure_s = draw.expovariate(1 / failure_s)
        while until_failure_s < needed_s:
            total_s += until_failure_s
            needed_s = restart_s + interval_s + save_s
            until_failure_s = draw.expovariate(1 / failure_s)
        total_s += needed_s
    worked_s = segments * interval_s
    return 1 - worked_s / total_s


@pytest.mark.parametrize(
    ("interval_s", "save_s", "failure_s", "restart_s"),
    [
        (600, 60, 10_800, 0),
        (600, 60, 10_800, 300),
        (7200, 60, 10_800, 300),
        (30, 60, 10_800, 0),
    ],
)
def test_the_share_that_is_lost_is_that_of_a_run_with_drawn_failures(
    interval_s, save_s, failure_s, restart_s
):
    lived = wasted(interval_s, save_s, failure_s, restart_s, segments=40_000)
    predicted = predict.wasted_share(interval_s, save_s, failure_s, restart_s)
    assert predicted == pytest.approx(lived, abs=0.01)
    without_restart = predict.wasted_share(interval_s, save_s, failure_s)
    assert (predicted > without_restart) == (restart_s > 0)


@given(save_s=st.floats(1, 100), ratio=st.floats(200, 1e5))
def test_youngs_interval_is_nearly_the_best_and_dalys_is_nearer(save_s, ratio):
    failure_s = save_s * ratio
    young = predict.young_seconds(save_s, failure_s)
    daly = predict.daly_seconds(save_s, failure_s)

    def lost(interval_s):
        return predict.wasted_share(interval_s, save_s, failure_s)

    tried = [young * 1.002**k for k in range(-100, 101)]
    best = min(tried, key=lost)
    dalys_error = abs(math.log(daly / best))
    youngs_error = abs(math.log(young / best))
    assert dalys_error <= youngs_error + 0.004
    assert daly == pytest.approx(best, rel=0.01)
    assert lost(young) <= 1.02 * lost(best) + 1e-6


def test_at_the_ends_daly_waits_for_one_failure_and_a_run_that_never_gets_through_loses_all():
    assert predict.daly_seconds(100, 50) == 50
    assert predict.daly_seconds(101, 50) == 50
    assert predict.wasted_share(1e9, 60, 1.0) == 1.0
    assert predict.wasted_share(1e-9, 60, 1e9) == pytest.approx(1.0)
    assert predict.wasted_share(1e-300, 1e-300, 1e300) == 0.5
