"""What torch counts: of layers at every movement, of a transformer in a process that can be killed."""

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import pairwise

import torch

from course_utils import measure, predict
from course_utils.labs.gradient.asked import Asked
from course_utils.labs.jobs import as_progress
from course_utils.labs.lab import Change, Progress
from course_utils.quantities import Ledger
from course_utils.workers import process, transformers

LONGEST_S = 120.0  # of a count


def refresh(asked: Asked, found: Mapping[Asked, Ledger]) -> Mapping[Asked, Ledger]:
    """Count the layers, as torch's counter sees them on tensors without numbers."""
    if asked.what != "layers":
        return found
    x = torch.empty(asked.b, asked.d, device="meta", requires_grad=asked.input_grad)
    weights = [
        torch.empty(d, k, device="meta", requires_grad=layer not in asked.frozen_layers)
        for layer, (d, k) in enumerate(pairwise(asked.widths))
    ]
    result = []

    def forward() -> None:
        result.append(reduce(torch.matmul, weights, x).sum())

    counted = {"forward": measure.flops(forward).total, "backward": 0}
    if result[0].requires_grad:
        counted["backward"] = measure.flops(result[0].backward).total
    return {asked: Ledger(counted, unit="FLOPs")}


def count(asked: Asked, found: Mapping[Asked, Ledger]) -> Iterator[Progress]:
    """Count one step of the model without its memory, in a process that can be killed."""
    if asked.what != "transformer":
        raise ValueError("The layers are counted at every movement. Choose the transformer for this button.")
    order = {"shape": predict.MODELS[asked.model], "sequence": asked.sequence}
    steps = process.steps_of(transformers.step_flops, order)
    counted = yield from as_progress(steps, at_most_s=LONGEST_S)
    change = Change(found=lambda known: {**known, asked: counted})
    yield Progress(1, f"Counted: {counted.total:,} FLOPs.", change)
