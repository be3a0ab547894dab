"""A step's operations in stretches, which repeat from layer to layer.

Layers are alike. So at most three units of layers are run on the tape, and the second unit stands
for all units between the first and the last. A unit is a layer, or several that are recomputed as
one.
"""

from collections.abc import Iterator
from itertools import pairwise
from operator import add, sub
from typing import NamedTuple

from course_utils.core.predict.passes import operations
from course_utils.core.predict.step_config import StepConfig
from course_utils.core.predict.storages import Held, Operation


class Stretch(NamedTuple):
    """Operations that are repeated, `times` times in all.

    From one repetition to the next, `grows` more bytes are held, and the layers' numbers go up by
    `layers`, which is below 0 in the backward pass.
    """

    rows: list[Operation]  # as the tape wrote them, for one repetition
    times: int
    start: Held  # what the first repetition holds beyond what `rows` say
    grows: Held
    layer: int  # what is added to the layers' numbers in the first repetition
    layers: int

    def shift(self, turn: int) -> Held:
        """Return the bytes to add to those held in `rows` for repetition number `turn`, from 0.

        `rows` are of one repetition that was run on the tape. Each further repetition adds `grows`.
        """
        shifted = []
        for begin, more in zip(self.start, self.grows, strict=True):
            shifted.append(begin + turn * more)
        return Held._make(shifted)

    def at(self, turn: int) -> Iterator[Operation]:
        """The operations of repetition number `turn`: `rows` with its layers and its held bytes."""
        added = self.shift(turn)
        layers_up = self.layer + turn * self.layers
        if layers_up == 0 and not any(added):
            yield from self.rows  # they need no change
            return
        for name, where, phase, layer, flops, moved, during, after in self.rows:
            if layer is not None:
                layer += layers_up
            held_during = Held._make(map(add, during, added))
            held_after = Held._make(map(add, after, added))
            yield Operation(name, where, phase, layer, flops, moved, held_during, held_after)


def stretches(config: StepConfig) -> tuple[Stretch, ...]:
    """All operations of the forward pass, the loss and the backward pass, in their order.

    Stretches alternate: one that does not repeat is followed by one that does. The second unit of
    layers repeats in the forward pass (stretch 1) and in the backward pass (stretch 3).
    """
    layers = config.model.layers
    skipped = max(layers // config.unit - 3, 0)  # three units are run, the second for all others
    rows = operations(config, layers - skipped * config.unit)
    if skipped == 0:
        return (Stretch(rows, times=1, start=Held(), grows=Held(), layer=0, layers=0),)

    found = []
    start = Held()
    layer = 0
    for first, end in pairwise(_borders(rows, config.unit)):
        repeats = len(found) % 2 == 1  # stretches 1 and 3
        if not repeats:
            once = rows[first:end]
            found.append(Stretch(once, times=1, start=start, grows=Held(), layer=layer, layers=0))
            continue
        # What one repetition leaves held beyond what was held before.
        grows = Held._make(map(sub, rows[end - 1].after, rows[first - 1].after))
        layers_up = config.unit if len(found) == 1 else -config.unit  # forward, or backward
        stretch = Stretch(rows[first:end], 1 + skipped, start, grows, layer, layers_up)
        found.append(stretch)
        start = stretch.shift(skipped)  # what follows comes after the last repetition
        layer += skipped * layers_up
    return tuple(found)


def _borders(rows: list[Operation], unit: int) -> list[int]:
    """The places in `rows` at which a stretch begins, and at last their end.

    A stretch begins wherever the second unit of layers begins or ends.
    """
    inside = [row.layer is not None and unit <= row.layer < 2 * unit for row in rows]
    borders = [0]
    for number in range(1, len(rows)):
        if inside[number] != inside[number - 1]:
            borders.append(number)
    return [*borders, len(rows)]
