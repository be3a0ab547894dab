"""Timing products here."""

from collections.abc import Generator

from course_utils.chapters.flops.matmul_lab.asked import Product, TimedProduct
from course_utils.core import measure
from course_utils.core.datasheets import Machine
from course_utils.core.say import Number, bytes_text, seconds_text
from course_utils.engine.labs.jobs import as_progress
from course_utils.engine.labs.lab import Progress
from course_utils.subjects import machines
from course_utils.subjects.child_processes import process, products

LONGEST_S = 60.0  # what may take longer is predicted, not run
IN_PROCESS_FROM_S, IN_PROCESS_FROM_BYTES = (
    0.3,
    2**28,
)  # what may be more runs in a process that can be killed
AT_MOST_S, SWEEP_AT_MOST_S = 2.0, 0.4  # of sampling one product
AT_WORST = (
    5  # times what is predicted: CPUs multiply some shapes and dtypes at a fraction of their peak
)


def timed(
    product: Product, machine: Machine, at_most_s: Number | None = None, **place: object
) -> Generator[Progress, None, TimedProduct]:
    """Timed here; `place` says which part of something longer it is."""
    _check_that_it_can_run(product, machine)
    order = {name: getattr(product, name) for name in ("b", "d", "k", "dtype")}
    order |= {"device": machines.device(), "at_most_s": at_most_s or AT_MOST_S}
    work, long = products.timing_steps, runs_in_process(product, machine)
    steps = process.steps_of(work, order) if long else work(**order)
    timing = yield from as_progress(steps, at_most_s=LONGEST_S, **place)
    return TimedProduct(product, timing.seconds, timing.doubt)


def quick_ones_along(product: Product, machine: Machine) -> list[Product]:
    """Along the size that is swept, those that take less than a moment."""
    name = product.sweep
    along = [one for one in product.along(name) if _fits(one) and not runs_in_process(one, machine)]
    if not along:
        raise ValueError(
            f"Already at {name} = 1 this takes too long to sweep. Make the other two smaller."
        )
    return along


def runs_in_process(product: Product, machine: Machine) -> bool:
    """Whether the product could take longer than a moment, to run or to fill its operands with numbers."""
    at_worst_s = AT_WORST * product.predicted_s(machine)
    return at_worst_s > IN_PROCESS_FROM_S or product.nbytes > IN_PROCESS_FROM_BYTES


def _fits(product: Product) -> bool:
    """Whether it fits in what is free now, with some space left."""
    return product.nbytes < 0.8 * measure.free_bytes(machines.device())


def _check_that_it_can_run(product: Product, machine: Machine) -> None:
    """Raise a sentence on why the product cannot run here."""
    if not _fits(product):
        needed, free = bytes_text(product.nbytes), bytes_text(measure.free_bytes(machines.device()))
        raise ValueError(f"Not run: it needs {needed}, and {free} are free. Make it smaller.")
    predicted_s = product.predicted_s(machine)
    if AT_WORST * predicted_s > LONGEST_S:
        raise ValueError(
            f"Not run: one product is predicted to take {seconds_text(predicted_s)} at the machine's peak and could "
            f"take {AT_WORST} times that. This lab waits {LONGEST_S:.0f} s at most. Make it smaller."
        )
