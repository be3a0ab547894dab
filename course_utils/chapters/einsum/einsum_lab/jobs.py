"""Time products: quick ones in this process, others in a process of their own."""

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
MOST_FLOPS = 2**35  # of one call
MOST_FLOPS_OF_A_GPU = 2**43
QUICK_FLOPS = 2**24  # up to these two, a product is timed in this process
QUICK_NUMBERS = 2**18
LONGEST_S = 30.0  # for each order
AT_MOST_S = 1.0  # of sampling, for each order


def time_it(asked: Asked) -> Iterator[Progress]:
    """Time the cheapest order and, if another is dearer, the dearest that can still run."""
    orders = _to_time(asked)
    seconds = {}
    results = []
    doubt = ""
    for number, order in enumerate(orders):
        timing = yield from as_progress(
            _steps(asked, order),
            at_most_s=LONGEST_S,
            begun=number / len(orders),
            share=1 / len(orders),
        )
        seconds[asked.key(order)] = timing.seconds
        results.append(f"{order.text} {seconds_text(timing.seconds)}")
        if timing.doubt and not doubt:
            doubt = f" Take it as an upper bound: {timing.doubt}."
        change = Change(found=lambda known: {**known, **seconds})
        yield Progress(0.99, f"{order.text} is done.", change)
    if len(orders) > 1:
        cheapest, dearest = orders
        longer = seconds[asked.key(dearest)] / seconds[asked.key(cheapest)]
        dearer = times_text(dearest.flops / cheapest.flops)
        results.append(f"{times_text(longer)} as long; by FLOPs it would be {dearer}")
    yield Progress(1, f"Measured: {', '.join(results)}.{doubt}")


def _to_time(asked: Asked) -> list[Order]:
    """The cheapest order that can run, and the dearest one if it takes more FLOPs."""
    able = [order for order in asked.orders if not _too_much(asked, order)]
    if not able:
        reason = _too_much(asked, asked.orders[0])
        raise ValueError(f"This is not timed: {reason}. Take smaller sizes.")
    cheapest = able[0]
    dearest = able[-1]
    if dearest.flops > cheapest.flops:
        return [cheapest, dearest]
    return [cheapest]


def _numbers(asked: Asked, order: Order) -> int:
    """How many numbers the operands and the largest intermediate have."""
    *operands, _ = asked.shapes
    return sum(math.prod(shape) for shape in operands) + order.largest


def _too_much(asked: Asked, order: Order) -> str:
    """Say why this order is not timed. If it can be, the sentence is empty."""
    device = machines.device()
    # A product may put its operands in another order first, and so hold each twice.
    held = 2 * _numbers(asked, order) * measure.DTYPES[asked.dtype].itemsize
    most = min(MOST_BYTES, measure.free_bytes(device) // 2)
    if held > most:
        return f"it may need {bytes_text(held)}, and this lab takes at most {bytes_text(most)}"
    limit = MOST_FLOPS if device == "cpu" else MOST_FLOPS_OF_A_GPU
    if order.flops > limit:
        return f"it takes {flops_text(order.flops)}, and this lab at most {flops_text(limit)} here"
    return ""


Steps = Generator[measure.MeasurementProgress, None, measure.Timing]


def _steps(asked: Asked, order: Order) -> Steps:
    """Time the order step by step: in this process if it is quick, else in one of its own."""
    options = {
        "pattern": asked.einsum.pattern,
        "sizes": asked.size,
        "tree": order.tree,
        "dtype": asked.dtype,
        "device": machines.device(),
        "at_most_s": AT_MOST_S,
    }
    is_quick = order.flops <= QUICK_FLOPS and _numbers(asked, order) <= QUICK_NUMBERS
    if is_quick:
        return products.einsum_timing_steps(**options)
    return process.steps_of(products.einsum_timing_steps, options)
