"""A product's time has a bound: the slower of its arithmetic and its memory.

After two minutes the reader has seen a thin product hit the memory's limit and a square one the arithmetic's, and
where measurements stand below the roof.
"""

from collections.abc import Iterator
from dataclasses import replace

from course_utils.chapters.flops.matmul_lab.asked import HERE, PRESETS, Found, Product, TimedProduct
from course_utils.chapters.flops.matmul_lab.picture import sizes_text, view
from course_utils.core.say import count_text, rate_text, seconds_text
from course_utils.engine.labs.lab import Change, Lab, Progress
from course_utils.subjects import machines


class MatmulLab(Lab):
    """A product's time: predicted, recorded, measured."""

    name = "Matmul lab"
    asks, presets, found = Product, PRESETS, Found()
    rows = (("b", "d", "k"), ("dtype", "sweep"), ("where",))
    view = staticmethod(view)

    def known(self, product: Product, found: Found) -> Found:
        """What is known, with this machine in it, which is measured once."""
        return found if found.here else replace(found, here=machines.this_machine())

    def time_it(self, product: Product, found: Found) -> Iterator[Progress]:
        """Time the product, or bring the nearest one that was recorded."""
        if product.recording:
            run = product.nearest_recorded()
        else:
            machine = found.machine(_here(product))
            from course_utils.chapters.flops.matmul_lab import jobs

            run = yield from jobs.timed(product, machine)
        doubt = f" Take it as an upper bound: {run.doubt}." if run.doubt else ""
        said = f"{run.verb}{sizes_text(product, run)}: {seconds_text(run.seconds)}, {rate_text(run.rate)}."
        yield Progress(1, said + doubt, _kept(run))

    def sweep(self, product: Product, found: Found) -> Iterator[Progress]:
        """Time the product along one size, or bring all that were recorded along it."""
        name = product.sweep
        if product.recording:
            others = product.nearest_recorded().product.others(name)
            runs = [run for run in product.recorded.values() if run.product.others(name) == others]
            said = f"{count_text(len(runs), 'product')} recorded along {name}, at {others}."
            yield Progress(1, said, _kept(*runs))
            return
        machine = found.machine(_here(product))
        from course_utils.chapters.flops.matmul_lab import jobs

        along = jobs.quick_ones_along(product, machine)
        for number, one in enumerate(along):
            begun = number / len(along)
            run = yield from jobs.timed(one, machine, jobs.SWEEP_AT_MOST_S, begun=begun, share=0)
            yield Progress(begun, f"{' × '.join(map(str, one.size))} is done.", _kept(run))
        yield Progress(1, f"{len(along)} products along {name}.")

    def clear(self, product: Product, found: Found) -> Change:
        """Forget every run."""
        return Change(found=lambda known: replace(known, runs=()))

    jobs = {"Time it": time_it, "Sweep": sweep}
    actions = {"Clear history": clear}


def _here(product: Product) -> str:
    """This machine, which alone can time a product."""
    if product.where != HERE:
        raise ValueError(
            f"What you see is the prediction from the data sheet of one {product.where}. For times, choose "
            f"{HERE}, or one that was recorded."
        )
    return HERE


def _kept(*runs: TimedProduct) -> Change:
    """Some runs more; what was recorded is the same each time."""
    return Change(
        found=lambda known: replace(known, runs=tuple(dict.fromkeys([*known.runs, *runs])))
    )
