"""Draw the questions that return, and hold each answer against a route of its own."""

import functools
import math
from collections.abc import Callable

from torch.utils.flop_counter import FlopCounterMode

from course_utils.stage.recall.bank import QUESTIONS

DRAWS = 180  # of each question; over all questions that makes more than ten thousand


def disagreements(name: str, route: Callable[..., float], slack: float) -> list[str]:
    """The draws of a question whose answer the route does not find, up to a relative slack."""
    cached = functools.cache(route)
    found = []
    for seed in range(DRAWS):
        drawn = QUESTIONS[name].draw(seed)
        expected = cached(**drawn.sizes)
        if not math.isclose(drawn.asked.answer, expected, rel_tol=slack or 1e-12):
            found.append(f"{drawn.sizes}: {drawn.asked.answer}, and by the route {expected}")
    return found


def counted_flops(fn: Callable[[], object]) -> int:
    """The FLOPs that torch's own counter sees while fn runs."""
    with FlopCounterMode(display=False) as counter:
        fn()
    return counter.get_total_flops()
