"""Timing products here, or bringing those that were recorded."""

import csv
import io
from collections.abc import Generator, Iterator
from dataclasses import replace

from course_utils import machines, measure, products
from course_utils.datasheets import Machine
from course_utils.labs.jobs import as_progress
from course_utils.labs.lab import Change, Download, Progress
from course_utils.labs.matmul.asked import HERE, Found, Product, Run, place
from course_utils.labs.matmul.picture import sizes_text
from course_utils.quantities import Number, bytes_text, rate_text, seconds_text

LONGEST_S = 60.0  # what may take longer is predicted, not run
APART_FROM_S, APART_FROM_BYTES = 0.3, 2**28  # what may be more runs in a process that can be killed
AT_MOST_S, SWEEP_AT_MOST_S = 2.0, 0.4  # of sampling one product


def begin() -> Found:
    """This machine, and nothing timed."""
    return Found(machines.this_machine())


def time_it(product: Product, found: Found) -> Iterator[Progress]:
    """Time the product, or bring the nearest one that was recorded."""
    run = yield from _run(product, found, AT_MOST_S)
    run = replace(run, guess=product.guess_s if run.size == product.size else None)
    off = _judged(product, found, run) if product.guess_s else ""
    doubt = f" Take it as an upper bound: {run.doubt}." if run.doubt else ""
    said = f"{run.verb}{sizes_text(product, run)}: {seconds_text(run.seconds)}, {rate_text(run.rate)}.{off}{doubt}"
    yield Progress(1, said, _kept(run))


def sweep(product: Product, found: Found) -> Iterator[Progress]:
    """Time the product along one size, as far as each takes less than a moment."""
    name = product.sweep
    if product.recording:
        yield _recorded_along(product)
        return
    machine = found.machine(product.where)
    along = [product.with_size(name, 2**power) for power in range(21)]
    along = [one for one in along if _fits(one) and not runs_apart(one, machine)]
    if not along:
        raise ValueError(f"Already at {name} = 1 this takes too long to sweep. Make the other two smaller.")
    for number, one in enumerate(along):
        said, fraction = f"{name} = {one.size[place(name)]:,}", number / len(along)
        run = yield from _run(one, found, SWEEP_AT_MOST_S, begun=fraction, share=0, prefix=f"{said}: ")
        yield Progress(fraction, f"{said} is done.", _kept(run))
    yield Progress(1, f"{len(along)} products along {name}.")


def _recorded_along(product: Product) -> Progress:
    along, name = product.recorded_along(product.sweep), product.sweep
    others = " × ".join("·" if one == name else f"{along[0].size[place(one)]:,}" for one in "BDK")
    number = "1 product was" if len(along) == 1 else f"{len(along)} products were"
    return Progress(1, f"{number} recorded along {name}, at {others}.", _kept(*along))


def save(product: Product, found: Found) -> Change:
    """Every run so far, in full digits."""
    if not found.runs:
        raise ValueError("There is nothing to save yet. Press Time it first.")
    rows, text = [_saved(run) for run in found.runs], io.StringIO()
    table = csv.DictWriter(text, list(rows[0]))
    table.writeheader()
    table.writerows(rows)
    return Change(download=Download("matmul_runs.csv", text.getvalue()))


def _saved(run: Run) -> dict[str, object]:
    source = f"{run.source.by}: {run.source.where}" if run.source else ""
    return {**vars(run), "source": source, "quiet": run.quiet, "flops": run.flops, "rate": run.rate}


def clear(product: Product, found: Found) -> Change:
    """Forget every run."""
    return Change(found=lambda known: replace(known, runs=()))


def _kept(*runs: Run) -> Change:
    def with_them(known: Found) -> Found:
        for run in runs:
            known = known.with_run(run)
        return known

    return Change(found=with_them)


def _judged(product: Product, found: Found, run: Run) -> str:
    """How far off the guess was: from the product that was asked for, if its time is known, and else from the prediction."""
    guess = product.guess_s
    if run.size == product.size:
        return f" Your guess was {guess / run.seconds:.3g} times that."
    predicted_s = product.predicted_s(found.machine(product.where))
    return f" Your guess was for other sizes: {guess / predicted_s:.3g} times what is predicted for them."


# One product.


def _run(
    product: Product, found: Found, at_most_s: Number, **place: object
) -> Generator[Progress, None, Run]:
    """Recorded, or timed here; `place` says which part of something longer it is."""
    if product.recording:
        return product.nearest_recorded()
    if product.where != HERE:
        raise ValueError(
            f"There is no {product.where} here, and no recording of one: what you see is its data sheet's prediction."
        )
    machine, asked = found.machine(product.where), (*product.size, product.dtype)
    _check_that_it_can_run(product, machine)
    time_it = products.timing_steps_apart if runs_apart(product, machine) else products.timing_steps
    steps = time_it(*asked, device=machines.device(), at_most_s=at_most_s)
    timing = yield from as_progress(steps, at_most_s=LONGEST_S, **place)
    return Run(product.where, *asked, timing.seconds, timing.spread, timing.doubt)


def _at_worst_s(product: Product, machine: Machine) -> Number:
    """With a margin: CPUs multiply some shapes at a fraction of their peak, and without units for a dtype at a tenth."""
    peak, fp32 = machine.peak(product.dtype), machine.peak_flop_per_sec.get("fp32", 0)
    slow = machines.device() == "cpu" and peak < fp32 / 2
    return product.predicted_s(machine) * (10 if slow else 3)


def runs_apart(product: Product, machine: Machine) -> bool:
    """Whether it could take longer than a moment, in running or in filling its operands with numbers."""
    return _at_worst_s(product, machine) > APART_FROM_S or product.nbytes > APART_FROM_BYTES


def _fits(product: Product) -> bool:
    """Whether it fits in what is free now, with some room left."""
    return product.nbytes < 0.8 * measure.free_bytes(machines.device())


def _check_that_it_can_run(product: Product, machine: Machine) -> None:
    """A sentence on why it can't, if it can't."""
    if not _fits(product):
        needed, free = bytes_text(product.nbytes), bytes_text(measure.free_bytes(machines.device()))
        raise ValueError(f"Not run: it needs {needed}, and {free} are free. Make it smaller.")
    at_worst_s = _at_worst_s(product, machine)
    if at_worst_s > LONGEST_S:
        raise ValueError(
            f"Not run: one product is predicted to take {seconds_text(product.predicted_s(machine))} at the machine's "
            f"peak and could take {seconds_text(at_worst_s)}. This lab waits {LONGEST_S:.0f} s at most. Make it smaller."
        )
