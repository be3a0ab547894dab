"""How often a run should save its state, so that saves and undone work cost the least together."""

import math

from course_utils.core import accountant
from course_utils.core.say import Number


def young_seconds(save_s: Number, failure_s: Number) -> Number:
    """Return √(2CM): Young's rule for the time between two saves, a first-order estimate.

    At this time, saving costs as much as lost work. C is the time of one save, and M the mean time
    between failures.

    >>> round(young_seconds(60, 3 * 3600) / 60, 1)
    19.0
    """
    _check_times(save_s=save_s, failure_s=failure_s)
    return accountant.interval(save_s, failure_s)


def daly_seconds(save_s: Number, failure_s: Number) -> Number:
    """Return √(2CM) (1 + ⅓ √(C / 2M) + ⅑ C / 2M) - C: Daly's estimate, of higher order.

    Where C is 2M or more, Daly's estimate is M. C is the time of one save, and M the mean time
    between failures.

    >>> round(daly_seconds(60, 3 * 3600) / 60, 1)
    18.3
    """
    _check_times(save_s=save_s, failure_s=failure_s)
    if save_s >= 2 * failure_s:
        return failure_s
    x = math.sqrt(save_s / (2 * failure_s))  # √(C / 2M)
    correction = 1 + x / 3 + x * x / 9
    return young_seconds(save_s, failure_s) * correction - save_s


def wasted_share(
    interval_s: Number, save_s: Number, failure_s: Number, restart_s: Number = 0
) -> Number:
    """Return 1 - τ / (M e^(R/M) (e^((τ + C)/M) - 1)): the share of its time that a run loses.

    The run loses the time of saves and restarts, and the work that failures undo. τ is the time of
    work between two saves, C the time of a save, R the time of a restart, and M the mean time
    between failures. The formula is exact if failures come at a constant rate, also during saves
    and restarts.

    >>> round(wasted_share(1200, 60, 3 * 3600), 3)
    0.102
    """
    _check_times(interval_s=interval_s, failure_s=failure_s)
    if not (0 <= save_s < math.inf and 0 <= restart_s < math.inf):
        raise ValueError(
            f"A time is 0 s or more; got save_s {save_s!r} and restart_s {restart_s!r}."
        )
    work_s = interval_s + save_s
    failures = work_s / failure_s  # expected while one interval is worked and saved
    restarts = restart_s / failure_s  # expected failures during one restart
    if restarts + failures > 700:  # e^700 is near the largest float: the run never ends
        return 1.0
    # The docstring's M (e^x - 1), with x = (τ + C) / M, is (τ + C) · (e^x - 1) / x. In this form it
    # holds for an x so tiny that it was rounded to 0, too: (e^x - 1) / x is then 1.
    slowdown = math.expm1(failures) / failures if failures else 1
    taken_s = math.exp(restarts) * work_s * slowdown
    return 1 - interval_s / taken_s


def _check_times(**seconds: Number) -> None:
    """Raise a ValueError on the first time that is not above 0 s, or is infinite."""
    for name, value in seconds.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} is a time above 0 s; got {value!r}.")
