"""Where the 6 comes from: three equal products for each layer, without those that nobody needs.

After two minutes the reader has seen that the backward pass costs two products for the forward pass's one, that it is
one less where the data need no gradient, that freezing saves most in front of all that is trained, and how long a
sequence has to be until attention, which the 6 leaves out, matters.
"""

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import pairwise

from course_utils import predict
from course_utils.labs.gradient.asked import PRESETS, Asked, frozen_or_not
from course_utils.labs.gradient.picture import view
from course_utils.labs.lab import Change, Lab, Progress
from course_utils.quantities import Ledger

LONGEST_S = 120.0  # of a count
Found = Mapping[Asked, Ledger]


class GradientLab(Lab):
    """The products of a training step, predicted and counted."""

    name = "Gradient lab"
    asks, presets = Asked, PRESETS
    rows = (("what", "sequence", "depth", "frozen", "input_grad"), ("model",), ("b", "d", "k"))
    view, pick = staticmethod(view), staticmethod(frozen_or_not)

    def known(self, asked: Asked, found: Found) -> Found:
        """The count of the layers at hand, by torch's counter on tensors without numbers."""
        if asked.what != "layers":
            return found
        import torch

        from course_utils import measure

        x = torch.empty(asked.b, asked.d, device="meta", requires_grad=asked.input_grad)
        weights = [
            torch.empty(d, k, device="meta", requires_grad=layer not in asked.frozen_layers)
            for layer, (d, k) in enumerate(pairwise(asked.widths))
        ]
        result = []
        forward = measure.flops(lambda: result.append(reduce(torch.matmul, weights, x).sum())).total
        backward = measure.flops(result[0].backward).total if result[0].requires_grad else 0
        return {asked: Ledger({"forward": forward, "backward": backward}, unit="FLOPs")}

    def count(self, asked: Asked, found: Found) -> Iterator[Progress]:
        """Count one step of the model without its memory, in a process that can be killed."""
        if asked.what != "transformer":
            raise ValueError("The layers are counted at every move. Choose the transformer for this button.")
        from course_utils.labs.jobs import as_progress
        from course_utils.workers import process, transformers

        order = {"shape": predict.MODELS[asked.model], "sequence": asked.sequence}
        steps = process.steps_of(transformers.step_flops, order)
        counted = yield from as_progress(steps, at_most_s=LONGEST_S)
        change = Change(found=lambda known: {**known, asked: counted})
        yield Progress(1, f"Counted: {counted.total:,} FLOPs.", change)

    jobs = {"Count the transformer": count}
    needs_kernel = {*jobs}
