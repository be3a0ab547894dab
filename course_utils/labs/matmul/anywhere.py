"""What needs no kernel: bringing products that were recorded, and forgetting them. `jobs` times the others."""

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

from course_utils.labs.lab import Change, Progress
from course_utils.labs.matmul.asked import HERE, Found, Product, Run
from course_utils.labs.matmul.picture import sizes_text
from course_utils.quantities import count_text, rate_text, seconds_text


def time_it(product: Product, found: Found) -> Iterator[Progress]:
    """Time the product, or bring the nearest one that was recorded."""
    if product.recording:
        yield timed(product, product.nearest_recorded())
        return
    yield from _jobs_here(product).time_it(product, found)


def sweep(product: Product, found: Found) -> Iterator[Progress]:
    """Time the product along one size, or bring all that were recorded along it."""
    if product.recording:
        others = product.nearest_recorded().product.others(product.sweep)
        along = [run for run in product.recorded.values() if run.product.others(product.sweep) == others]
        said = f"{count_text(len(along), 'product')} recorded along {product.sweep}, at {others}."
        yield Progress(1, said, kept(*along))
        return
    yield from _jobs_here(product).sweep(product, found)


def clear(product: Product, found: Found) -> Change:
    """Forget every run."""
    return Change(found=lambda known: replace(known, runs=()))


def timed(product: Product, run: Run) -> Progress:
    """The end of a timing: what it says, and that it is kept."""
    doubt = f" Take it as an upper bound: {run.doubt}." if run.doubt else ""
    said = f"{run.verb}{sizes_text(product, run)}: {seconds_text(run.seconds)}, {rate_text(run.rate)}.{doubt}"
    return Progress(1, said, kept(run))


def kept(*runs: Run) -> Change:
    """Some runs more; what was recorded is the same each time."""
    return Change(found=lambda known: replace(known, runs=tuple(dict.fromkeys([*known.runs, *runs]))))


def _jobs_here(product: Product) -> ModuleType:
    """What times products here, or a sentence on why nothing can."""
    if product.where != HERE:
        raise ValueError(
            f"There is no {product.where} here, and no recording of one: what you see is its data sheet's prediction."
        )
    from course_utils.labs.matmul import jobs  # torch, which a page without a kernel does not have

    return jobs
