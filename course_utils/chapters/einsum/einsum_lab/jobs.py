"""Timing: quick products in this process, others in one of their own."""

import math
from collections.abc import Generator, Iterator

from course_utils.chapters.einsum.einsum_lab.asked import Asked
from course_utils.core import measure
from course_utils.core.einsums import Order
from course_utils.core.say import bytes_text, flops_text, seconds_text, times_text
from course_utils.engine.labs.jobs import as_progress
from course_utils.engine.labs.lab import Change, Progress
from course_utils.subjects import machines
from course_utils.subjects.child_processes import process, products

MOST_BYTES = 2**30  # that a timed product may need
MOST_FLOPS, MOST_FLOPS_OF_A_GPU = 2**35, 2**43  # of one call
QUICK_FLOPS, QUICK_NUMBERS = 2**24, 2**18  # up to which a product is timed in this very process
LONGEST_S = 30.0  # for each order
AT_MOST_S = 1.0  # of sampling, for each order


def time_it(asked: Asked) -> Iterator[Progress]:
    """Time the cheapest order and, where there are several, the most expensive that still can run."""
    able = [order for order in asked.orders if not _too_much(asked, order)]
    if not able:
        raise ValueError(
            f"This is not timed: {_too_much(asked, asked.orders[0])}. Take smaller sizes."
        )
    first, last = able[0], able[-1]
    orders = [first, last] if last.flops > first.flops else [first]
    seconds, said, doubts = {}, [], []
    for number, order in enumerate(orders):
        place = {"begun": number / len(orders), "share": 1 / len(orders)}
        timing = yield from as_progress(_steps(asked, order), at_most_s=LONGEST_S, **place)
        seconds[asked.key(order)] = timing.seconds
        said.append(f"{order.text} {seconds_text(timing.seconds)}")
        doubts += [f" Take it as an upper bound: {timing.doubt}."] if timing.doubt else []
        yield Progress(
            0.99, f"{order.text} is done.", Change(found=lambda known: {**known, **seconds})
        )
    if len(orders) > 1:
        longer = seconds[asked.key(last)] / seconds[asked.key(first)]
        dearer = times_text(last.flops / first.flops)
        said.append(f"{times_text(longer)} as long; by FLOPs it would be {dearer}")
    yield Progress(1, f"Measured: {', '.join(said)}.{''.join(doubts[:1])}")


def _numbers(asked: Asked, order: Order) -> int:
    """How many numbers the operands and the largest intermediate have."""
    return sum(map(math.prod, asked.shapes[:-1])) + order.largest


def _too_much(asked: Asked, order: Order) -> str:
    """Why this order is not timed; nothing if it can be."""
    # A product may put its operands in another order first, and so hold each twice.
    held = 2 * _numbers(asked, order) * measure.DTYPES[asked.dtype].itemsize
    most = min(MOST_BYTES, measure.free_bytes(machines.device()) // 2)
    if held > most:
        return f"it may need {bytes_text(held)}, and this lab takes at most {bytes_text(most)}"
    limit = MOST_FLOPS if machines.device() == "cpu" else MOST_FLOPS_OF_A_GPU
    if order.flops > limit:
        return f"it takes {flops_text(order.flops)}, and this lab at most {flops_text(limit)} here"
    return ""


def _steps(
    asked: Asked, order: Order
) -> Generator[measure.MeasurementProgress, None, measure.Timing]:
    """The order's timing: in this process if it is quick, else in a process of its own."""
    quick = order.flops <= QUICK_FLOPS and _numbers(asked, order) <= QUICK_NUMBERS
    work = products.einsum_timing_steps
    given = {
        "pattern": asked.einsum.pattern,
        "sizes": asked.size,
        "tree": order.tree,
        "dtype": asked.dtype,
    }
    given |= {"device": machines.device(), "at_most_s": AT_MOST_S}
    return work(**given) if quick else process.steps_of(work, given)
