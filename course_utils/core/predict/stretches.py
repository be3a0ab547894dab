"""A step's operations in stretches, which repeat from layer to layer.

Layers are alike. So at most three units of layers are run on the tape, and the second of them
stands for all between the first and the last.
"""

from collections.abc import Iterator
from itertools import pairwise
from operator import add, sub
from typing import NamedTuple

from course_utils.core.predict.passes import operations
from course_utils.core.predict.step_config import StepConfig
from course_utils.core.predict.storages import Held, Operation


class Stretch(NamedTuple):
    """Operations that repeat.

    From one repetition to the next, `grows` more bytes are held, and the layers' numbers go up by
    `layers`, which is below 0 on the way back.
    """

    rows: list[Operation]
    times: int
    start: Held  # what the first repetition holds beyond what `rows` say
    grows: Held
    layer: int  # what is added to the layers' numbers in the first repetition
    layers: int

    def shift(self, turn: int) -> Held:
        """The bytes that are added to what this repetition holds."""
        shifted = []
        for begin, more in zip(self.start, self.grows, strict=True):
            shifted.append(begin + turn * more)
        return Held._make(shifted)

    def at(self, turn: int) -> Iterator[Operation]:
        """The operations of this repetition."""
        added = self.shift(turn)
        layers_up = self.layer + turn * self.layers
        if layers_up == 0 and not any(added):
            yield from self.rows
            return
        for name, where, phase, layer, flops, moved, during, after in self.rows:
            if layer is not None:
                layer += layers_up
            held = Held._make(map(add, during, added))
            left = Held._make(map(add, after, added))
            yield Operation(name, where, phase, layer, flops, moved, held, left)


def stretches(config: StepConfig) -> tuple[Stretch, ...]:
    """The operations of all layers."""
    layers = config.model.layers
    skipped = max(layers // config.unit - 3, 0)  # units for which the second one stands
    rows = operations(config, layers - skipped * config.unit)
    if skipped == 0:
        return (Stretch(rows, times=1, start=Held(), grows=Held(), layer=0, layers=0),)

    found = []
    start = Held()
    layer = 0
    for first, end in pairwise(_borders(rows, config.unit)):
        repeats = len(found) % 2 == 1  # the second unit, on its way forward and backward
        if not repeats:
            found.append(Stretch(rows[first:end], 1, start, Held(), layer, 0))
            continue
        grows = Held._make(map(sub, rows[end - 1].after, rows[first - 1].after))
        layers_up = config.unit if len(found) == 1 else -config.unit
        stretch = Stretch(rows[first:end], 1 + skipped, start, grows, layer, layers_up)
        found.append(stretch)
        start = stretch.shift(skipped)
        layer += skipped * layers_up
    return tuple(found)


def _borders(rows: list[Operation], unit: int) -> list[int]:
    """Where the second unit of layers begins and ends, and where all operations do."""
    inside = [row.layer is not None and unit <= row.layer < 2 * unit for row in rows]
    borders = [0]
    for number in range(1, len(rows)):
        if inside[number] != inside[number - 1]:
            borders.append(number)
    return [*borders, len(rows)]
