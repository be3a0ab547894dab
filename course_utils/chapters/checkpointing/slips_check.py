"""Slips of those who write a step's FLOPs and bytes, each with the advice on it."""

from collections.abc import Iterator

from course_utils.core.accountant import Model
from course_utils.core.say.language import template
from course_utils.engine.judging import Answers

ROWS = template("There are batch × sequence rows, in the output and in a layer's last product.")


def run_again(m: Model, recomputed: int, forward: int, output: int, down: int) -> Answers:
    """Yield wrong FLOPs of what runs again, each with the advice on the mistake.

    `output` and `down` have the FLOPs of these two products.
    """
    layer = (forward - output) // m.layers
    yield recomputed * layer, "Recomputing stops early: a layer's last product is not needed again."
    yield 0, "A recomputed layer runs forward once more."
    yield recomputed * forward, "One layer runs forward again, and not the whole model."
    yield forward, "Only `recomputed` layers run again, and not the whole model."
    with_output = "The output's product is no part of a layer: it is not recomputed."
    yield recomputed * (forward // m.layers - down), with_output
    yield recomputed * forward // m.layers - recomputed * down, with_output
    yield (
        recomputed * layer - down,
        "Each recomputed layer leaves its last product out: are there brackets?",
    )
    yield (
        recomputed * (layer + down),
        "A layer's last product does not run again: that is less, and not more.",
    )
    no_two = "A product takes 2 FLOPs for each multiplication: is the 2 in both that you subtract?"
    half_output = (forward - output // 2) // m.layers
    yield recomputed * (layer - down // 2), no_two
    yield recomputed * (half_output - down), no_two
    yield recomputed * (half_output - down // 2), no_two
    undivided = "The layers share what is left of the forward pass. What is one layer's share?"
    yield recomputed * (forward - output - down), undivided
    yield m.layers * (layer - down), "Not all layers run again, but `recomputed` of them."
    exchanged = (m.layers - recomputed) * (layer - down)
    yield exchanged, "`recomputed` says how many layers run again, and not how many are kept."
    square = down * m.width // m.inner
    yield (
        recomputed * (layer - square),
        "In a layer's last product, rows of m.inner numbers become rows of m.width.",
    )
    yield recomputed * (layer - output), "A layer's last product is its own, and not the output's."


def of_fewer_rows(
    m: Model, batch: int, sequence: int, recomputed: int, forward: int
) -> Iterator[int]:
    """Yield wrong FLOPs of what runs again, if the rows of a product are miscounted.

    They may be one row, or those of the batch or the sequence alone, in one product or in both.
    """
    rows = batch * sequence
    for mistaken in (1, batch, sequence):
        for down_rows, output_rows in ((mistaken, mistaken), (mistaken, rows), (rows, mistaken)):
            output = 2 * output_rows * m.width * m.vocabulary
            down = 2 * down_rows * m.inner * m.width
            yield recomputed * ((forward - output) // m.layers - down)


def still_open(operator: str) -> Answers:
    """Yield the errors of a half-written function in which a part is still `...`."""
    for left, right in (("int", "ellipsis"), ("ellipsis", "int"), ("ellipsis", "ellipsis")):
        error = TypeError(f"unsupported operand type(s) for {operator}: '{left}' and '{right}'")
        yield error, "A part is still open: something has to take the place of each `...`."
