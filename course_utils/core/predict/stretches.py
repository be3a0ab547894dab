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

# The numbers of the two stretches, of five, in which the second unit of layers runs; see
# `stretches`. They are counted from 0.
REPEATED_FORWARD = 1
REPEATED_BACKWARD = 3


class Stretch(NamedTuple):
    """Operations that are repeated, `times` times in all.

    The first repetition holds `start` more bytes than `rows` say, and the numbers of its layers are
    `layer_start` higher. Each further repetition holds `grows` more bytes than the one before, and
    has layers whose numbers are `layer_step` higher; in the backward pass, `layer_step` is below 0.
    """

    rows: list[Operation]  # as the tape wrote them, for the one repetition that was run on it
    times: int
    start: Held
    grows: Held
    layer_start: int
    layer_step: int

    def shift(self, repetition: int) -> Held:
        """Return the bytes that a repetition, counted from 0, holds beyond what `rows` say."""
        shifted = []
        for begin, more in zip(self.start, self.grows, strict=True):
            shifted.append(begin + repetition * more)
        return Held._make(shifted)

    def at(self, repetition: int) -> Iterator[Operation]:
        """Yield the operations of a repetition, counted from 0, with its layers and held bytes."""
        added = self.shift(repetition)
        layers_up = self.layer_start + repetition * self.layer_step
        if layers_up == 0 and not any(added):  # nothing is added to layers and bytes
            yield from self.rows  # they need no change
            return
        for name, where, phase, layer, flops, moved, during, after in self.rows:
            if layer is not None:  # None: the operation is outside the layers
                layer += layers_up
            held_during = Held._make(map(add, during, added))
            held_after = Held._make(map(add, after, added))
            yield Operation(name, where, phase, layer, flops, moved, held_during, held_after)


def stretches(config: StepConfig) -> tuple[Stretch, ...]:
    """Return all operations of the forward pass, the loss and the backward pass, in their order.

    Only three units of layers are run. The second one stands for all between the first and the
    last, so its operations are repeated, in the forward pass and again in the backward pass. Dense
    layers before the layers with mixtures are run, too. If a routing is given, all layers are run.
    """
    layers = config.model.layers
    before = config.units_before
    # Units that are not run: all but three, and those before the mixtures.
    skipped = max(layers // config.unit - before - 3, 0)
    if config.routing is not None:
        skipped = 0
    rows = operations(config, layers - skipped * config.unit)
    if skipped == 0:
        return (once(rows, start=Held(), layer_start=0),)  # one stretch: each layer was run

    in_order = []
    # The rows are of a shorter model. So what follows a repeated stretch holds more than its rows
    # say, and in the forward pass its layers have higher numbers.
    start = Held()
    layer_start = 0
    # There are five stretches: all before the second unit, the second unit, all from the third unit
    # on until it has gone backward, the second unit's backward pass, and the rest.
    for number, (first, end) in enumerate(pairwise(_borders(rows, config.unit, before))):
        if number not in (REPEATED_FORWARD, REPEATED_BACKWARD):
            in_order.append(once(rows[first:end], start, layer_start))
            continue
        # What one repetition leaves held beyond what was held before.
        grows = Held._make(map(sub, rows[end - 1].after, rows[first - 1].after))
        layer_step = config.unit if number == REPEATED_FORWARD else -config.unit
        stretch = Stretch(rows[first:end], 1 + skipped, start, grows, layer_start, layer_step)
        in_order.append(stretch)
        start = stretch.shift(skipped)  # what follows comes after the last repetition
        layer_start += skipped * layer_step
    return tuple(in_order)


def once(rows: list[Operation], start: Held, layer_start: int) -> Stretch:
    """Return a stretch that is not repeated.

    It holds `start` more bytes than `rows` say, and its layers' numbers are `layer_start` higher.
    """
    return Stretch(rows, 1, start, grows=Held(), layer_start=layer_start, layer_step=0)


def _borders(rows: list[Operation], layers_in_unit: int, before: int) -> list[int]:
    """Return the places in `rows` at which a stretch begins, and at last the end of `rows`.

    A stretch begins wherever the second unit of layers begins or ends; `before` units that differ
    are not counted.
    """
    begin = (before + 1) * layers_in_unit
    second = range(begin, begin + layers_in_unit)  # the layers of the second unit
    inside = [row.layer in second for row in rows]  # a row outside the layers has None
    borders = [0]
    for number in range(1, len(rows)):
        if inside[number] != inside[number - 1]:
            borders.append(number)
    return [*borders, len(rows)]
