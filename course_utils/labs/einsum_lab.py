"""An einsum, typed: the roles of its names, its loops and its cost, checked against the loops and timed on request."""

import itertools
import time
from collections.abc import Generator, Iterator, Mapping

import ipywidgets as widgets
import torch

from course_utils import einsums, machines, measure
from course_utils.einsums import Order, Tree
from course_utils.labs.einsum_picture import Asked, asked_for, view
from course_utils.labs.panel import Panel, Progress, View
from course_utils.labs.size_control import SizesControl
from course_utils.quantities import Number, bytes_text, flops_text, rate_text, seconds_text, times_text

DTYPES = ("fp32", "fp64", "bf16")
LOOPED_AT_ONCE = 2_000  # steps
LOOPED_AT_MOST = 2**20
MOST_BYTES = 2**30  # of all tensors of a product that is timed
MOST_FLOPS = {"fp32": 2**33, "fp64": 2**33, "bf16": 2**31}  # without units for bf16, a CPU is slow in it
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
        self.seconds: dict[tuple, Number] = {}  # measured, by pattern, sizes, dtype and order

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
        measured = {key[-1]: seconds for key, seconds in self.seconds.items() if key[:-1] == _key(asked)}
        return view(asked, agreement(asked), measured)

    def time_it(
        self, pattern: str, notation: str, dtype: str, sizes: Mapping[str, object]
    ) -> Iterator[Progress]:
        """Time the cheapest order and, where there are several, the dearest that still can run."""
        asked = asked_for(pattern, notation, sizes, dtype)
        cheapest, *others = asked.orders
        _check_that_it_can_run(asked, cheapest)
        dearest = next((order for order in reversed(others) if not _too_much(asked, order)), None)
        device = machines.device()
        operands = [
            torch.randn(shape, device=device).to(measure.DTYPES[dtype]) for shape in asked.shapes[:-1]
        ]
        orders = [cheapest] + ([dearest] if dearest and dearest.flops > cheapest.flops else [])
        for number, order in enumerate(orders):
            timing = yield from _timed(asked, order, operands, device, number / len(orders), len(orders))
            self.seconds[(*_key(asked), order.text)] = timing.seconds
            yield Progress((number + 0.99) / len(orders), f"{order.text} is done.", changed=True)
        yield Progress(1, self._findings(asked, orders), changed=True)

    def _findings(self, asked: Asked, orders: list[Order]) -> str:
        seconds = [self.seconds[(*_key(asked), order.text)] for order in orders]
        if len(orders) == 1:
            rate = f", {rate_text(orders[0].flops / seconds[0])}" if orders[0].flops else ""
            return f"Measured: {seconds_text(seconds[0])}{rate}."
        return (
            f"Measured: {orders[0].text} {seconds_text(seconds[0])}, {orders[1].text} "
            f"{seconds_text(seconds[1])}, {times_text(seconds[1] / seconds[0])} as long; "
            f"by FLOPs it would be {times_text(orders[1].flops / orders[0].flops)}."
        )


def _key(asked: Asked) -> tuple:
    return (asked.einsum, tuple(asked.sizes.items()), asked.dtype)


# Is it right?


def agreement(asked: Asked) -> str:
    """Whether torch agrees with the loops, where those are quickly done."""
    if asked.steps > LOOPED_AT_ONCE:
        return ""
    differ = sum(theirs != ours for ours, theirs in _both_ways(asked))
    return _agreement(differ, asked)


def _agreement(differ: int, asked: Asked) -> str:
    numbers = _count(asked.shapes[-1])
    if differ:
        return f"torch and the loops differ in {differ:,} of {numbers:,} numbers."
    return "torch agrees with the loops" + (f" on all {numbers:,} numbers." if numbers > 1 else ".")


def _count(shape: tuple[int, ...]) -> int:
    return torch.Size(shape).numel()


def _both_ways(asked: Asked) -> Iterator[tuple[Number, Number]]:
    """Each number of the result from the loops and from torch, for small integers, where no order of sums matters."""
    draw = torch.Generator().manual_seed(0)
    operands = [torch.randint(-4, 5, shape, generator=draw).to(torch.float64) for shape in asked.shapes[:-1]]
    theirs = torch.einsum(asked.einsum.equation, *operands).numpy()
    read = [operand.numpy().__getitem__ for operand in operands]
    for place, ours in einsums.looped(asked.einsum, asked.sizes, read):
        yield float(ours), float(theirs[place])


def check(pattern: str, notation: str, dtype: str, sizes: Mapping[str, object]) -> Iterator[Progress]:
    """Run the loops in plain Python beside torch.einsum, and compare every number."""
    asked = asked_for(pattern, notation, sizes, dtype)
    if asked.steps > LOOPED_AT_MOST:
        raise ValueError(
            f"{asked.steps:,} steps are too many for loops in plain Python. Take sizes with up to {LOOPED_AT_MOST:,}."
        )
    numbers = _count(asked.shapes[-1])
    differ = 0
    for done, (ours, theirs) in enumerate(_both_ways(asked), start=1):
        differ += ours != theirs
        yield Progress(min(0.99, done / numbers), f"{done:,} of {numbers:,} numbers; {differ} differ.")
    yield Progress(1, f"{asked.steps:,} steps of the loops done: {_agreement(differ, asked)}")


# How long does it take?


def _too_much(asked: Asked, order: Order) -> str:
    numbers = sum(map(_count, asked.shapes)) + 2 * order.largest
    held = numbers * measure.DTYPES[asked.dtype].itemsize
    most = min(MOST_BYTES, measure.free_bytes(machines.device()) // 2)
    if held > most:
        return f"its tensors hold {bytes_text(held)}, and this lab takes at most {bytes_text(most)}"
    if max(order.flops, asked.steps if len(asked.einsum.operands) == 1 else 0) > MOST_FLOPS[asked.dtype]:
        limit = flops_text(MOST_FLOPS[asked.dtype])
        return f"it takes {flops_text(order.flops)}, and this lab at most {limit} in {asked.dtype}"
    return ""


def _check_that_it_can_run(asked: Asked, order: Order) -> None:
    reason = _too_much(asked, order)
    if reason:
        raise ValueError(f"This is not timed: {reason}. Take smaller sizes.")


def product_in_order(asked: Asked, tree: Tree, operands: list[torch.Tensor]) -> torch.Tensor:
    """Multiply in pairs, as the tree says."""
    einsum = asked.einsum

    def names_of(tree: Tree) -> set[str]:
        """The dimensions of a part that the rest, or the result, still needs."""
        inside = _leaves(tree)
        if isinstance(tree, int):
            return set(einsum.operands[tree])
        outside = [names for n, names in enumerate(einsum.operands) if n not in inside]
        needed = set(einsum.output).union(*outside)
        return set().union(*(einsum.operands[n] for n in inside)) & needed

    def value(tree: Tree, names: tuple[str, ...]) -> torch.Tensor:
        if isinstance(tree, int):
            return operands[tree]
        sides = [
            tuple(einsum.operands[part]) if isinstance(part, int) else tuple(sorted(names_of(part)))
            for part in tree
        ]
        equation = einsums.Einsum(tuple(sides), names).equation
        return torch.einsum(equation, *(value(part, side) for part, side in zip(tree, sides, strict=True)))

    if isinstance(tree, int):
        return torch.einsum(einsum.equation, *operands)
    return value(tree, einsum.output)


def _leaves(tree: Tree) -> set[int]:
    return {tree} if isinstance(tree, int) else set(itertools.chain(*map(_leaves, tree)))


def _timed(
    asked: Asked, order: Order, operands: list[torch.Tensor], device: str, begun: Number, parts: int
) -> Generator[Progress, None, measure.Timing]:
    steps = measure.timing_steps(
        lambda: product_in_order(asked, order.tree, operands), device=device, at_most_s=AT_MOST_S
    )
    deadline = time.monotonic() + 30
    try:
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value
            if time.monotonic() > deadline:
                raise ValueError(
                    "Ended after 30 s, which is the most that this lab waits. Take smaller sizes."
                )
            yield Progress(begun + min(0.98, step.fraction) / parts, f"{order.text}: {step.report}")
    finally:
        steps.close()
