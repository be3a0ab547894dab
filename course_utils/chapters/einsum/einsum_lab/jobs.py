"""Time products: quick ones in this process, others in a process of their own."""

import math
from collections.abc import Generator, Iterator

from course_utils.chapters.einsum.einsum_lab.asked import Asked
from course_utils.core import measure
from course_utils.core.einsums import Order
from course_utils.core.say import bytes_text, flops_text, seconds_text, times_text
from course_utils.core.say.language import in_a_row, translated
from course_utils.engine.labs.jobs import as_progress
from course_utils.engine.labs.lab import Change, Progress
from course_utils.subjects import machines
from course_utils.subjects.child_processes import process, products

MOST_BYTES = 2**30  # the most memory that a timed product may need
MOST_FLOPS = 2**35  # the most FLOPs that one call may take
MOST_FLOPS_OF_A_GPU = 2**43  # the same, if the product runs on a GPU
# A product with at most these FLOPs and numbers takes milliseconds, so it is timed in this process.
# A longer one gets a process of its own, which can be ended when the reader presses Stop.
QUICK_FLOPS = 2**24
QUICK_NUMBERS = 2**18
LONGEST_S = 30.0  # the longest that timing an order may take, with the start of its process
MOST_AS_CHEAP = 2  # orders that are timed of those that are the cheapest
AT_MOST_S = 1.0  # the longest that an order is sampled


def time_it(asked: Asked) -> Iterator[Progress]:
    """Time the cheapest order, another that is as cheap, and the dearest that can still run."""
    orders = _orders_to_time(asked)
    seconds = {}
    results = []
    doubt = ""
    for number, order in enumerate(orders):
        # Yields the progress of this measurement, as a share of the job, and returns its Timing.
        timing = yield from as_progress(
            _steps(asked, order),
            at_most_s=LONGEST_S,
            begun=number / len(orders),
            share=1 / len(orders),
        )
        seconds[asked.key(order)] = timing.seconds
        results.append(f"{order.text} {seconds_text(timing.seconds)}")
        if timing.doubt and not doubt:
            doubt = translated("Take it as an upper bound: {reason}.", reason=timing.doubt)
        change = Change(found=lambda known: {**known, **seconds})  # adds the times to what is known
        # The picture shows this order's time at once. A progress of 1 would mean the job's end,
        # which comes below; between two orders the bar is nearly full for a moment.
        yield Progress(0.99, translated("{product} is done.", product=order.text), change)
    cheapest = orders[0]
    dearest = orders[-1]
    if dearest.flops > cheapest.flops:
        by_time = times_text(seconds[asked.key(dearest)] / seconds[asked.key(cheapest)])
        by_flops = times_text(dearest.flops / cheapest.flops)
        compared = translated(
            "{by_time} as long; by FLOPs it would be {by_flops}",
            by_time=by_time,
            by_flops=by_flops,
        )
        results.append(compared)
    measured = translated("Measured: {time}.", time=", ".join(results))
    yield Progress(1, in_a_row(measured, doubt))


def _orders_to_time(asked: Asked) -> list[Order]:
    """Return the cheapest order that can run, and the dearest one if it takes more FLOPs.

    Between them comes a second order if it is as cheap as the first, so that the two can be
    compared. If no order can run, raise a ValueError with the reason.
    """
    # As in `asked.orders`, the cheapest is the first.
    possible = [order for order in asked.orders if not _reason_against(asked, order)]
    if not possible:
        reason = _reason_against(asked, asked.orders[0])
        refused = translated("This is not timed: {reason}. Take smaller sizes.", reason=reason)
        raise ValueError(refused)
    cheapest = [order for order in possible if order.flops == possible[0].flops]
    dearest = [order for order in possible[-1:] if order not in cheapest]
    return [*cheapest[:MOST_AS_CHEAP], *dearest]


def _count_of_numbers(asked: Asked, order: Order) -> int:
    """Count the numbers of the operands and of the order's largest intermediate result."""
    *operands, _ = asked.shapes  # the last shape is the result's
    return sum(math.prod(shape) for shape in operands) + order.largest


def _reason_against(asked: Asked, order: Order) -> str:
    """Return why this order needs too much to be timed; "" if it can be timed."""
    device = machines.device()
    # A product may first copy its operands into another layout, and so hold each number twice.
    held = 2 * _count_of_numbers(asked, order) * measure.DTYPES[asked.dtype].itemsize
    most = min(MOST_BYTES, measure.free_bytes(device) // 2)  # half is left for other programs
    if held > most:
        return translated(
            "it may need {needed}, and this lab takes at most {most}",
            needed=bytes_text(held),
            most=bytes_text(most),
        )
    limit = MOST_FLOPS if device == "cpu" else MOST_FLOPS_OF_A_GPU
    if order.flops > limit:
        return translated(
            "it takes {needed}, and this lab at most {most} here",
            needed=flops_text(order.flops),
            most=flops_text(limit),
        )
    return ""


# Yields the progress of a measurement, and returns its result.
Steps = Generator[measure.MeasurementProgress, None, measure.Timing]


def _steps(asked: Asked, order: Order) -> Steps:
    """Return the steps of timing the order: in this process if it is quick, else in a new one."""
    options = {
        "pattern": asked.einsum.pattern,
        "sizes": asked.size,
        "tree": order.tree,
        "dtype": asked.dtype,
        "device": machines.device(),
        "at_most_s": AT_MOST_S,
    }
    has_few_numbers = _count_of_numbers(asked, order) <= QUICK_NUMBERS
    is_quick = order.flops <= QUICK_FLOPS and has_few_numbers
    if is_quick:
        return products.einsum_timing_steps(**options)
    return process.steps_of(products.einsum_timing_steps, options)
