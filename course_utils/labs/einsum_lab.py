"""An einsum, typed: the roles of its names, its loops and its cost, checked against the loops and timed on request."""

import math
from collections.abc import Generator, Iterator, Mapping

import ipywidgets as widgets
import torch

from course_utils import einsums, machines, measure, products
from course_utils.einsums import Order
from course_utils.labs.einsum_picture import Asked, asked_for, view
from course_utils.labs.panel import Panel, Progress, View, as_progress
from course_utils.labs.size_control import SizesControl
from course_utils.quantities import Number, bytes_text, flops_text, rate_text, seconds_text, times_text

DTYPES = ("fp32", "fp64", "bf16")
LOOPED_AT_ONCE = 2_000  # steps
LOOPED_AT_MOST = 2**20
MOST_BYTES = 2**30  # that a timed product may need
# Of one call. Without units for bf16, a CPU is slow in it.
MOST_FLOPS = {"fp32": 2**35, "fp64": 2**34, "bf16": 2**32}
MOST_FLOPS_OF_A_GPU = 2**43
QUICK_FLOPS, QUICK_NUMBERS = 2**24, 2**18  # up to which a product is timed in this very process
LONGEST_S = 30.0  # for each order
AT_MOST_S = 1.0  # of sampling, for each order

PRESETS = {
    "matrix product": ("b d, d k -> b k", {"b": 16, "d": 8, "k": 4}),
    "attention's scores": ("b h i d, b h j d -> b h i j", {"b": 2, "h": 4, "i": 8, "j": 8, "d": 16}),
    "dot product": ("i, i ->", {"i": 64}),
    "outer product": ("i, j -> i j", {"i": 16, "j": 16}),
    "sum": ("b s h -> b", {"b": 2, "s": 3, "h": 4}),
    "three matrices": ("a b, b c, c d -> a d", {"a": 512, "b": 8, "c": 512, "d": 8}),
    "linear attention": ("i d, j d, j v -> i v", {"i": 1024, "j": 1024, "d": 32, "v": 32}),
    "four": ("a b, b c, c d, d e -> a e", {"a": 64, "b": 8, "c": 64, "d": 8, "e": 64}),
}


def einsum_lab() -> Panel:
    """The einsum lab."""
    return _EinsumLab().panel()


class _EinsumLab:
    def __init__(self) -> None:
        self.seconds: dict[tuple, dict[str, Number]] = {}  # by pattern, sizes and dtype, and then by order

    def panel(self) -> Panel:
        style = {"button_width": "auto", "description_width": "initial"}
        row = widgets.Layout(width="auto", flex_flow="row nowrap")
        pattern, sizes = PRESETS["attention's scores"]
        controls = {
            "pattern": widgets.Text(
                pattern, description="einsum", continuous_update=True, layout=widgets.Layout(width="520px")
            ),
            "notation": widgets.ToggleButtons(
                options=("names", "letters"),
                tooltips=("as einops reads it", "as torch.einsum reads it"),
                layout=row,
                style=style,
            ),
            "dtype": widgets.ToggleButtons(options=DTYPES, description="dtype", layout=row, style=style),
            "sizes": SizesControl(dict(sizes)),
        }

        def follow(_: object) -> None:
            try:
                read = einsums.parsed(
                    controls["pattern"].value, letters=controls["notation"].value == "letters"
                )
            except ValueError:
                return  # the panel says so; the sliders stay
            controls["sizes"].show_names(read.names)

        for name in ("pattern", "notation"):  # before the panel observes them, and draws
            controls[name].observe(follow, names="value")
        follow(None)
        return Panel(
            "Einsum lab",
            self.show,
            controls,
            presets={
                name: {"pattern": pattern, "notation": "names", "sizes": dict(sizes)}
                for name, (pattern, sizes) in PRESETS.items()
            },
            jobs={"Check against the loops": check, "Time it": self.time_it},
        )

    def show(self, pattern: str, notation: str, dtype: str, sizes: Mapping[str, object]) -> View:
        """What there is to see for one state of the controls."""
        asked = asked_for(pattern, notation, sizes, dtype)
        return view(asked, agreement(asked), self.seconds.get(_key(asked), {}))

    def time_it(
        self, pattern: str, notation: str, dtype: str, sizes: Mapping[str, object]
    ) -> Iterator[Progress]:
        """Time the cheapest order and, where there are several, the most expensive that still can run."""
        asked = asked_for(pattern, notation, sizes, dtype)
        cheapest, *others = asked.orders
        reason = _too_much(asked, cheapest)
        if reason:
            raise ValueError(f"This is not timed: {reason}. Take smaller sizes.")
        dearest = next((order for order in reversed(others) if not _too_much(asked, order)), cheapest)
        orders = [cheapest] + ([dearest] if dearest.flops > cheapest.flops else [])
        timings = []
        for number, order in enumerate(orders):
            begun, share = number / len(orders), 1 / len(orders)
            timings.append(
                (yield from as_progress(_steps(asked, order), at_most_s=LONGEST_S, begun=begun, share=share))
            )
            self.keep(asked, order, timings[-1].seconds)
            yield Progress(begun + 0.99 * share, f"{order.text} is done.", changed=True)
        yield Progress(1, _findings(orders, timings), changed=True)

    def keep(self, asked: Asked, order: Order, seconds: Number) -> None:
        """Remember a measurement; of the latest fifty products."""
        key = _key(asked)
        kept = {**self.seconds, key: {**self.seconds.get(key, {}), order.text: seconds}}
        self.seconds = dict(list(kept.items())[-50:])  # made anew: the panel may be reading the old one


def _key(asked: Asked) -> tuple:
    return (asked.einsum, tuple(asked.sizes.items()), asked.dtype)


def _findings(orders: list[Order], timings: list[measure.Timing]) -> str:
    first = timings[0].seconds
    doubts = sorted({timing.doubt for timing in timings if timing.doubt})
    doubt = f" Take it as an upper bound: {'; '.join(doubts)}." if doubts else ""
    if len(orders) == 1:
        rate = f", {rate_text(orders[0].flops / first)}" if orders[0].flops else ""
        return f"Measured: {seconds_text(first)}{rate}.{doubt}"
    second = timings[1].seconds
    return (
        f"Measured: {orders[0].text} {seconds_text(first)}, {orders[1].text} {seconds_text(second)}, "
        f"{times_text(second / first)} as long; "
        f"by FLOPs it would be {times_text(orders[1].flops / orders[0].flops)}.{doubt}"
    )


# Is it right?


def agreement(asked: Asked) -> str:
    """Whether torch agrees with the loops, where those are quickly done."""
    if asked.steps > LOOPED_AT_ONCE:
        return ""
    differ = sum(pair[0] != pair[1] for pair in _both_ways(asked) if pair)
    return _agreement(differ, asked)


def _agreement(differ: int, asked: Asked) -> str:
    numbers = _count(asked.shapes[-1])
    if differ:
        return f"torch and the loops differ in {differ:,} of {numbers:,} numbers."
    return "torch agrees with the loops" + (f" on all {numbers:,} numbers." if numbers > 1 else ".")


def _count(shape: tuple[int, ...]) -> int:
    return math.prod(shape)  # numel() overflows


def _both_ways(asked: Asked) -> Iterator[tuple[Number, Number] | None]:
    """Each number of the result from the loops and from torch, for small integers, where no order of sums matters."""
    draw = torch.Generator().manual_seed(0)
    operands = [torch.randint(-4, 5, shape, generator=draw).to(torch.float64) for shape in asked.shapes[:-1]]
    theirs = torch.einsum(asked.einsum.equation, *operands).numpy()
    read = [operand.numpy().__getitem__ for operand in operands]
    for found in einsums.looped(asked.einsum, asked.sizes, read):
        yield found and (float(found[1]), float(theirs[found[0]]))


def check(pattern: str, notation: str, dtype: str, sizes: Mapping[str, object]) -> Iterator[Progress]:
    """Run the loops in plain Python beside torch.einsum, and compare every number."""
    asked = asked_for(pattern, notation, sizes, dtype)
    if asked.steps > LOOPED_AT_MOST:
        raise ValueError(
            f"{asked.steps:,} steps are too many for loops in plain Python. Take sizes with up to {LOOPED_AT_MOST:,}."
        )
    numbers = _count(asked.shapes[-1])
    differ = done = steps = 0
    for pair in _both_ways(asked):
        if pair is None:
            steps += einsums.PAUSE_STEPS
        else:
            done += 1
            differ += pair[0] != pair[1]
        fraction = max(done / numbers, steps / asked.steps)
        yield Progress(min(0.99, fraction), f"{done:,} of {numbers:,} numbers; {differ} differ.")
    yield Progress(1, f"{asked.steps:,} steps of the loops done: {_agreement(differ, asked)}")


# How long does it take?


def _too_much(asked: Asked, order: Order) -> str:
    """Why this order is not timed; nothing if it can be."""
    *operands, result = map(_count, asked.shapes)
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
    quick = order.flops <= QUICK_FLOPS and sum(map(_count, asked.shapes)) + order.largest <= QUICK_NUMBERS
    steps = products.einsum_timing_steps if quick else products.einsum_timing_steps_apart
    return steps(
        pattern=asked.einsum.pattern,
        sizes=dict(asked.sizes),
        tree=order.tree,
        dtype=asked.dtype,
        device=machines.device(),
        at_most_s=AT_MOST_S,
    )
