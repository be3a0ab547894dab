"""The loops beside torch.einsum, and timing: in this process what is quick, and apart what is not."""

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from operator import methodcaller

import opt_einsum
import torch

from course_utils import einsums, machines, measure, products
from course_utils.einsums import Order, Tree
from course_utils.labs.einsum.asked import Asked, Found
from course_utils.labs.jobs import as_progress
from course_utils.labs.lab import Change, Progress
from course_utils.quantities import bytes_text, flops_text, seconds_text, times_text

LOOPED_AT_ONCE = 2_000  # steps
LOOPED_AT_MOST = 2**20
MOST_BYTES = 2**30  # that a timed product may need
# Of one call. Without units for bf16, a CPU is slow in it.
MOST_FLOPS = {"fp32": 2**35, "fp64": 2**34, "bf16": 2**32}
MOST_FLOPS_OF_A_GPU = 2**43
QUICK_FLOPS, QUICK_NUMBERS = 2**24, 2**18  # up to which a product is timed in this very process
LONGEST_S = 30.0  # for each order
AT_MOST_S = 1.0  # of sampling, for each order


def at_once(asked: Asked, found: Found) -> Found:
    """Whether torch agrees with the loops, where those are quickly done, and the order that it would take."""
    agreement = ""
    if asked.steps <= LOOPED_AT_ONCE:
        *_, (*_, differ) = _compared(asked)
        agreement = _agreement(asked, differ)
    return replace(found, agreement=agreement, torchs=torchs_order(asked))


def torchs_order(asked: Asked) -> Tree:
    """The order in which torch.einsum would multiply, for which it asks opt_einsum."""
    *shapes, _ = asked.shapes
    strategy = torch.backends.opt_einsum.strategy
    path, _ = opt_einsum.contract_path(asked.einsum.equation, *shapes, shapes=True, optimize=strategy)
    trees: list[Tree] = list(range(len(shapes)))
    for places in path:
        pair = [trees.pop(place) for place in sorted(places, reverse=True)]
        trees.append(tuple(sorted(pair, key=_first)) if len(pair) > 1 else pair[0])
    return trees[0]


def _first(tree: Tree) -> int:
    return tree if isinstance(tree, int) else min(map(_first, tree))


# Is it right?


def check(asked: Asked, found: Found) -> Iterator[Progress]:
    """Run the loops in plain Python beside torch.einsum, and compare every number."""
    if asked.steps > LOOPED_AT_MOST:
        raise ValueError(
            f"{asked.steps:,} steps are too many for loops in plain Python. Take sizes with up to {LOOPED_AT_MOST:,}."
        )
    numbers = math.prod(asked.shapes[-1])
    for done, steps, differ in _compared(asked):
        share = max(done / numbers, steps / asked.steps)
        yield Progress(min(0.99, share), f"{done:,} of {numbers:,} numbers; {differ} differ.")
    yield Progress(1, f"{asked.steps:,} steps of the loops done: {_agreement(asked, differ)}")


def _compared(asked: Asked) -> Iterator[tuple[int, int, int]]:
    """How many numbers and steps are done, and how many differ; of small integers, where no order of sums matters."""
    draw = torch.Generator().manual_seed(0)
    operands = [torch.randint(-4, 5, shape, generator=draw).to(torch.float64) for shape in asked.shapes[:-1]]
    theirs = torch.einsum(asked.einsum.equation, *operands).numpy()
    done = steps = differ = 0
    for found in einsums.looped(asked.einsum, asked.size, [one.numpy().__getitem__ for one in operands]):
        if found:
            place, ours = found
            done, differ = done + 1, differ + bool(ours != theirs[place])
        steps += 0 if found else einsums.PAUSE_STEPS
        yield done, steps, differ


def _agreement(asked: Asked, differ: int) -> str:
    numbers = math.prod(asked.shapes[-1])
    if differ:
        return f"torch and the loops differ in {differ:,} of {numbers:,} numbers."
    return "torch agrees with the loops" + (f" on all {numbers:,} numbers." if numbers > 1 else ".")


# How long does it take?


def time_it(asked: Asked, found: Found) -> Iterator[Progress]:
    """Time the cheapest order and, where there are several, the most expensive that still can run."""
    able = [order for order in asked.orders if not _too_much(asked, order)]
    if not able:
        raise ValueError(f"This is not timed: {_too_much(asked, asked.orders[0])}. Take smaller sizes.")
    orders = [able[0], *([able[-1]] if able[-1].flops > able[0].flops else [])]
    share, timings = 1 / len(orders), []
    for number, order in enumerate(orders):
        steps, begun = _steps(asked, order), number * share
        timing = yield from as_progress(steps, at_most_s=LONGEST_S, begun=begun, share=share)
        timings.append(timing)
        with_it = methodcaller("timed", asked, order, timing.seconds)
        yield Progress(begun + 0.99 * share, f"{order.text} is done.", Change(found=with_it))
    yield Progress(1, _findings(orders, timings))


def _findings(orders: Sequence[Order], timings: Sequence[measure.Timing]) -> str:
    pairs = zip(orders, timings, strict=True)
    said = [f"{order.text} {seconds_text(timing.seconds)}" for order, timing in pairs]
    if len(orders) > 1:
        longer, dearer = timings[1].seconds / timings[0].seconds, orders[1].flops / orders[0].flops
        said.append(f"{times_text(longer)} as long; by FLOPs it would be {times_text(dearer)}")
    doubts = [timing.doubt for timing in timings if timing.doubt]
    doubt = f" Take it as an upper bound: {doubts[0]}." if doubts else ""
    return f"Measured: {', '.join(said)}.{doubt}"


def _too_much(asked: Asked, order: Order) -> str:
    """Why this order is not timed; nothing if it can be."""
    *operands, result = map(math.prod, asked.shapes)
    between = order.largest if len(operands) > 2 else 0
    # A product may put its operands in another order first, and so hold each twice.
    held = (2 * sum(operands) + result + 2 * between) * measure.DTYPES[asked.dtype].itemsize
    most = min(MOST_BYTES, measure.free_bytes(machines.device()) // 2)
    if held > most:
        return f"it may need {bytes_text(held)}, and this lab takes at most {bytes_text(most)}"
    limit = MOST_FLOPS[asked.dtype] if machines.device() == "cpu" else MOST_FLOPS_OF_A_GPU
    if order.flops > limit:
        return f"it takes {flops_text(order.flops)}, and this lab at most {flops_text(limit)} in {asked.dtype} here"
    return ""


def _steps(asked: Asked, order: Order) -> Generator[measure.Step, None, measure.Timing]:
    """The order's timing, in a process of its own unless it is done in no time."""
    quick = order.flops <= QUICK_FLOPS and sum(map(math.prod, asked.shapes)) + order.largest <= QUICK_NUMBERS
    steps = products.einsum_timing_steps if quick else products.einsum_timing_steps_apart
    return steps(
        pattern=asked.einsum.pattern,
        sizes=asked.size,
        tree=order.tree,
        dtype=asked.dtype,
        device=machines.device(),
        at_most_s=AT_MOST_S,
    )
