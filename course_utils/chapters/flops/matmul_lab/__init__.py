"""A product's time has a bound: the slower of its arithmetic and its memory.

After two minutes the reader has seen a thin product hit the memory's limit and a square one the
arithmetic's, and where measurements stand below the roof.
"""

from collections.abc import Iterator
from dataclasses import replace

from course_utils.chapters.flops.matmul_lab.asked import HERE, PRESETS, Found, Product, TimedProduct
from course_utils.chapters.flops.matmul_lab.picture import told, view
from course_utils.core.datasheets import Machine
from course_utils.core.say import rate_text, seconds_text
from course_utils.core.say.language import in_a_row, translated
from course_utils.engine.labs.lab import Change, Lab, Progress
from course_utils.subjects import machines


class MatmulLab(Lab):
    """A product's time: predicted, recorded, measured."""

    name = "Matmul lab"
    asks = Product
    presets = PRESETS
    found = Found()
    rows = (("b", "d", "k"), ("dtype", "sweep"), ("where",))
    view = staticmethod(view)

    def known(self, product: Product, found: Found) -> Found:
        """Return `found` with this machine, which is measured at the first call."""
        if found.here:
            return found
        return replace(found, here=machines.this_machine())

    def time_it(self, product: Product, found: Found) -> Iterator[Progress]:
        """Time the product; on a recorded machine, give the nearest one that was recorded."""
        if product.recording:
            run = product.nearest_recorded()
        else:
            machine = _this_machine(product, found)
            # Imported late, because it needs torch, which a page without a kernel does not have.
            from course_utils.chapters.flops.matmul_lab import jobs

            run = yield from jobs.timed(product, machine)
        time = f"{seconds_text(run.seconds)}, {rate_text(run.rate)}"
        doubt = ""
        if run.doubt:
            doubt = translated("Take it as an upper bound: {reason}.", reason=run.doubt)
        yield Progress(1, in_a_row(told(product, run, time), doubt), _with_runs(run))

    def sweep(self, product: Product, found: Found) -> Iterator[Progress]:
        """Time the product along one size; on a recorded machine, give those recorded along it."""
        if product.recording:
            yield _recorded_along(product)
            return
        machine = _this_machine(product, found)
        # Imported late, as above.
        from course_utils.chapters.flops.matmul_lab import jobs

        along = jobs.quick_ones_along(product, machine)
        for number, swept in enumerate(along):
            begun = number / len(along)
            # With a share of 0, the progress stays where it is while this product is timed.
            run = yield from jobs.timed(swept, machine, jobs.SWEEP_AT_MOST_S, begun=begun, share=0)
            sizes = f"{swept.b} × {swept.d} × {swept.k}"
            report = translated("{product} is done.", product=sizes)
            yield Progress(begun, report, _with_runs(run))
        report = translated("{count} products along {size}.", count=len(along), size=product.sweep)
        yield Progress(1, report)

    def clear(self, product: Product, found: Found) -> Change:
        """Forget every run."""
        return Change(found=lambda known: replace(known, runs=()))

    jobs = {"Time it": time_it, "Sweep": sweep}
    actions = {"Clear history": clear}


def _recorded_along(product: Product) -> Progress:
    """Return the recorded products that differ from the nearest one in the swept size alone."""
    name = product.sweep
    nearest = product.nearest_recorded().product
    others = nearest.others(name)  # such as "64 × · × 8" if D is swept
    runs = [run for run in product.recorded.values() if run.product.others(name) == others]
    if len(runs) == 1:
        report = translated(
            "1 product recorded along {size}, at {others}.", size=name, others=others
        )
    else:
        report = translated(
            "{count} products recorded along {size}, at {others}.",
            count=len(runs),
            size=name,
            others=others,
        )
    return Progress(1, report, _with_runs(*runs))


def _this_machine(product: Product, found: Found) -> Machine:
    """Return this machine; a ValueError if the product is for another, which is not here."""
    if product.where != HERE:
        refused = translated(
            "What you see is the prediction from the data sheet of one {machine}. "
            "For times, choose {here}, or one that was recorded.",
            machine=product.where,
            here=HERE,
        )
        raise ValueError(refused)
    return found.machine(HERE)


def _with_runs(*runs: TimedProduct) -> Change:
    """Return the change that adds these runs to the known ones; a known one is not added twice."""

    def added(known: Found) -> Found:
        without_repeats = dict.fromkeys([*known.runs, *runs])  # in this order, each once
        return replace(known, runs=tuple(without_repeats))

    return Change(found=added)
