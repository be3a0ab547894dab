"""Time products on this machine."""

from collections.abc import Generator

from course_utils.chapters.flops.matmul_lab.asked import Product, TimedProduct
from course_utils.core import measure
from course_utils.core.datasheets import Machine
from course_utils.core.say import Number, bytes_text, seconds_text
from course_utils.core.say.language import translated
from course_utils.engine.labs.jobs import as_progress
from course_utils.engine.labs.lab import Progress
from course_utils.subjects import machines
from course_utils.subjects.child_processes import process, products

LONGEST_S = 60.0  # a product that may take longer is not run
# Up to so many seconds and bytes, a product runs in this process. From there on, it runs in a
# process of its own, which can be killed.
IN_PROCESS_FROM_S = 0.3
IN_PROCESS_FROM_BYTES = 2**28
# The longest time for which one product is sampled, alone and in a sweep.
AT_MOST_S = 2.0
SWEEP_AT_MOST_S = 0.4
# A product may take so many times as long as predicted, because CPUs multiply some shapes and
# dtypes at a fraction of their peak.
AT_WORST = 5


def timed(
    product: Product, machine: Machine, at_most_s: Number | None = None, **place: object
) -> Generator[Progress, None, TimedProduct]:
    """Time the product on this machine: yield the job's progress, and return the timed product.

    The product is sampled for `at_most_s`, or AT_MOST_S. If it is only a part of a job, `place` has
    `begun` and `share`, as `as_progress` explains them.
    """
    _refuse_what_cannot_run(product, machine)
    if at_most_s is None:
        at_most_s = AT_MOST_S
    arguments = {
        "b": product.b,
        "d": product.d,
        "k": product.k,
        "dtype": product.dtype,
        "device": machines.device(),
        "at_most_s": at_most_s,
    }
    if needs_own_process(product, machine):
        steps = process.steps_of(products.timing_steps, arguments)
    else:
        steps = products.timing_steps(**arguments)
    timing = yield from as_progress(steps, at_most_s=LONGEST_S, **place)
    return TimedProduct(product, timing.seconds, timing.doubt)


def quick_ones_along(product: Product, machine: Machine) -> list[Product]:
    """Return the products along the swept size that are so quick that they run in this process.

    If there is none, raise a ValueError.
    """
    name = product.sweep
    along = []
    for swept in product.along(name):
        if _fits(swept) and not needs_own_process(swept, machine):
            along.append(swept)
    if not along:
        refused = translated(
            "Already at {size} = 1 this takes too long to sweep. Make the other two smaller.",
            size=name,
        )
        raise ValueError(refused)
    return along


def needs_own_process(product: Product, machine: Machine) -> bool:
    """Whether the product runs in a process of its own, because it could take too long to wait for.

    It may be slow to run, or so large that filling its operands with numbers takes long. In this
    process neither could be interrupted.
    """
    at_worst_s = AT_WORST * product.predicted_s(machine)
    return at_worst_s > IN_PROCESS_FROM_S or product.nbytes > IN_PROCESS_FROM_BYTES


def _fits(product: Product) -> bool:
    """Whether the product fits in the memory that is free now, with some space left."""
    return product.nbytes < 0.8 * measure.free_bytes(machines.device())


def _refuse_what_cannot_run(product: Product, machine: Machine) -> None:
    """Raise a ValueError, with the reason, if the product needs too much memory or time."""
    if not _fits(product):
        needed = bytes_text(product.nbytes)
        free = bytes_text(measure.free_bytes(machines.device()))
        refused = translated(
            "Not run: it needs {needed}, and {free} are free. Make it smaller.",
            needed=needed,
            free=free,
        )
        raise ValueError(refused)
    predicted_s = product.predicted_s(machine)
    if AT_WORST * predicted_s > LONGEST_S:
        refused = translated(
            "Not run: one product is predicted to take {time} at the machine's peak and could "
            "take {factor} times that. This lab waits {seconds} s at most. Make it smaller.",
            time=seconds_text(predicted_s),
            factor=AT_WORST,
            seconds=f"{LONGEST_S:.0f}",
        )
        raise ValueError(refused)
