"""How often to save, against runs that live through drawn failures; and the account of a whole run, line by line."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils import predict
from course_utils.datasheets import MACHINES


def wasted(interval_s, save_s, failure_s, restart_s, *, segments, seed=0):
    """The share of its time that a run loses: failures are drawn, and each undoes the segment it falls in."""
    draw, total_s = random.Random(seed), 0.0
    for _ in range(segments):
        needed_s = interval_s + save_s
        while (until_failure_s := draw.expovariate(1 / failure_s)) < needed_s:
            total_s += until_failure_s
            needed_s = restart_s + interval_s + save_s
        total_s += needed_s
    return 1 - segments * interval_s / total_s


@pytest.mark.parametrize(
    ("interval_s", "save_s", "failure_s", "restart_s"),
    [(600, 60, 10_800, 0), (600, 60, 10_800, 300), (7200, 60, 10_800, 300), (30, 60, 10_800, 0)],
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
    young, daly = predict.young_seconds(save_s, failure_s), predict.daly_seconds(save_s, failure_s)
    tried = [young * 1.002**k for k in range(-100, 101)]
    best = min(tried, key=lambda tau: predict.wasted_share(tau, save_s, failure_s))
    least = predict.wasted_share(best, save_s, failure_s)
    assert abs(math.log(daly / best)) <= abs(math.log(young / best)) + 0.004
    assert daly == pytest.approx(best, rel=0.01)
    assert predict.wasted_share(young, save_s, failure_s) <= 1.02 * least + 1e-6


def test_at_the_ends_daly_waits_for_one_failure_and_a_run_that_never_gets_through_loses_all():
    assert predict.daly_seconds(100, 50) == predict.daly_seconds(101, 50) == 50
    assert predict.wasted_share(1e9, 60, 1.0) == 1.0
    assert predict.wasted_share(1e-9, 60, 1e9) == pytest.approx(1.0)
    assert predict.wasted_share(1e-300, 1e-300, 1e300) == 0.5
    assert account(machines=10**12)["time, with that"] == "never done"


# The account of a whole run.


def the_account(model="Llama 3 70B", **changes):
    order = {"recipe": "bf16+master adamw", "tokens": 15e12, "machines": 1024, "hfu": 0.5, **changes}
    return predict.training_account(predict.MODELS[model], MACHINES["H100 SXM"], **order)


def account(**changes):
    return {row[0]: row[-1] for row in the_account(**changes).rows if row[0]}


def test_the_account_of_llama_3_70b_by_hand():
    lines = account()
    p, layers, width, inner, kv, vocabulary, s = 70_553_706_496, 80, 8192, 28_672, 1024, 128_256, 8192
    weights = layers * (2 * width**2 + 2 * width * kv + 3 * width * inner)
    per_token = 3 * (2 * weights + 4 * s * width * layers + 2 * vocabulary * width)
    days = per_token * 15e12 / (1024 * 989.5e12 * 0.5) / 86_400
    again = (
        2 * weights + 4 * s * width * layers - 2 * layers * inner * width
    )  # a layer's last product is left out
    longer = 1 + again / per_token
    failures = 419 / (54 * 16_384) * 1024 * days * longer
    failure_s = days * longer * 86_400 / failures
    tau = math.sqrt(2 * 60 * failure_s)
    assert lines["parameters P"] == f"{p:,}"
    assert lines["FLOPs of a token"] == f"{per_token:.3g}"
    assert lines["time"] == f"{days:.0f} days"
    assert lines["by 6PN alone"] == f"{6 * p * 15e12 / (1024 * 989.5e12 * 0.5) / 86_400:.0f} days"
    assert lines["state on each machine"] == f"{16 * p / 1024 / 1e9:.3g} GB"
    assert lines["a checkpoint"] == f"{12 * p / 1e9:.0f} GB"
    assert lines["interruptions"] == f"{failures:.3g}"
    assert lines["time between two saves"] == f"{tau / 60:.1f} minutes"
    lost = predict.wasted_share(tau, 60, failure_s)
    assert lines["lost to saving and crashing"] == f"{100 * lost:.1f} %"
    assert lines["time, with that"] == f"{days * longer / (1 - lost):.0f} days"
    times = [row for row in the_account().rows if "each layer recomputed" in row[1] and "days" in row[2]]
    assert times[0][1:] == [f"each layer recomputed: × {longer:.2f}", f"{days * longer:.0f} days"]
    assert [f"so its MFU is 0.5 / {longer:.2f}", f"{0.5 / longer:.2f}"] in [
        row[1:] for row in the_account().rows
    ]
    pairs = s * (s + 1) / 2  # that a token and itself or an earlier one make
    causal = 3 * (2 * weights + 4 * pairs / s * width * layers + 2 * vocabulary * width)
    assert lines["by half the scores"] == f"{days * causal / per_token:.0f} days"


@pytest.mark.parametrize(
    ("recipe", "nbytes"), [("fp32 sgd", 4), ("bf16+master adamw, gradients twice", 12), ("bf16 adamw", 6)]
)
def test_a_checkpoint_holds_what_the_recipe_would_not_make_anew(recipe, nbytes):
    assert account(recipe=recipe)["a checkpoint"] == f"{nbytes * 70_553_706_496 / 1e9:,.0f} GB"


def test_the_account_says_what_a_step_adds_what_fits_and_what_does_not():
    rows = the_account(machines=8).rows
    begin = [row[0] for row in rows].index("added by a step")
    state = 14 * 70_553_706_496 / 8  # at the loss there are no gradients
    for row, added in enumerate((230_479_101_960, 23_616_028_680)):  # tests/test_step.py holds the second
        assert rows[begin + row][-1] == f"{added / 1e9:.3g} GB"
        held = state + added
        said = f"{held / 1e9:.0f} GB: {(held - 80e9) / 1e9:.3g} GB too much"
        assert rows[begin + 2 + row][-1] == said
    small = the_account("GPT-2 small", machines=1, recipe="fp32 adamw", tokens=1e10)
    assert all(row[-1].endswith(" left") for row in small.rows if "GB: " in row[-1])
