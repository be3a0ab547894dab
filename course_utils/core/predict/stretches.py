"""A step's operations in stretches: layers are alike, so three of them are run, and one stands for all between."""

from collections.abc import Iterator
from itertools import pairwise
from operator import add, sub
from typing import NamedTuple

from course_utils.core.predict.passes import operations
from course_utils.core.predict.step_config import StepConfig
from course_utils.core.predict.storages import Held, Operation


class Stretch(NamedTuple):
    """Operations that repeat. Each time `grows` more bytes are held, and they belong to layers that are `layers` further on."""

    rows: list[Operation]
    times: int
    start: Held  # what is added to the first time
    grows: Held
    layer: int  # what is added to the first time's layers
    layers: int

    def shift(self, turn: int) -> Held:
        """The bytes that are added to what this repetition holds."""
        return Held(
            *(begin + turn * more for begin, more in zip(self.start, self.grows, strict=True))
        )

    def at(self, turn: int) -> Iterator[Operation]:
        """The operations of this repetition."""
        more, up = self.shift(turn), self.layer + turn * self.layers
        if not (any(more) or up):
            yield from self.rows
            return
        for name, where, phase, layer, flops, moved, during, after in self.rows:
            layer = layer if layer is None else layer + up
            held = Held._make(map(add, during, more)), Held._make(map(add, after, more))
            yield Operation(name, where, phase, layer, flops, moved, *held)


def stretches(config: StepConfig) -> tuple[Stretch, ...]:
    """The operations of all layers. The second unit of layers stands for all units between the first and the last."""
    layers, unit = config.model.layers, config.unit
    more = max(layers // unit - 3, 0)  # times that the second unit comes again
    rows, none = operations(config, layers - more * unit), Held()
    ends = [0, len(rows)]
    if more:
        inside = [row.layer is not None and unit <= row.layer < 2 * unit for row in rows]
        ends = [0, *(n for n in range(1, len(rows)) if inside[n] != inside[n - 1]), len(rows)]
    made, added, layer = [], none, 0
    for number, (first, last) in enumerate(pairwise(ends)):
        repeats = number % 2
        grows = Held(*map(sub, rows[last - 1].after, rows[first - 1].after)) if repeats else none
        up = unit if number == 1 else -unit
        made.append(Stretch(rows[first:last], 1 + repeats * more, added, grows, layer, up))
        added, layer = made[-1].shift(repeats * more), layer + repeats * more * up
    return tuple(made)
