"""What a machine holds of a training run is known beforehand, part by part: whether it fits, and what would make it.

After two minutes the reader has seen why 8 billion parameters do not fit on eight machines that each hold everything,
which part takes the room, what sharding does to each part and what it cannot help with, and that the prediction is
what a count finds, to the byte.
"""

from collections.abc import Iterator
from dataclasses import replace

from course_utils import predict
from course_utils.labs.lab import Change, Lab, Progress
from course_utils.labs.memory.asked import PRESETS, Asked, Found
from course_utils.labs.memory.picture import view
from course_utils.labs.memory.words import hopeless_as
from course_utils.predict import TrainingPlan
from course_utils.quantities import bytes_text

MOST_LAYERS, MOST_BYTES, LONGEST_S = 400, 2**60, 120.0  # of a count


class MemoryLab(Lab):
    """A training run against its machines' memory."""

    name = "Memory lab"
    asks, presets = Asked, PRESETS
    rows = (
        ("kind", "recipe", "fused", "fused_norm", "recompute"),
        ("layers", "width", "heads", "kv_heads", "feed_forward", "positions", "vocabulary"),
        ("batch", "sequence", "machines"),
        ("machine", "stage", "accumulate"),
    )
    view = staticmethod(view)

    def count(self, asked: Asked, found: Found) -> Iterator[Progress]:
        """Count the step on one machine, in a process that can be killed."""
        from course_utils.labs.jobs import as_progress
        from course_utils.workers import process, transformers

        plan = asked.plan
        _check_that_it_can_be_counted(plan)
        shape = replace(plan.shape, context=max(plan.shape.context, plan.sequence))
        order = {"shape": shape, "recipe": plan.recipe, "batch": plan.batch, "sequence": plan.sequence}
        order |= {way: getattr(asked, way) for way in ("fused", "fused_norm", "recompute", "accumulate")}
        steps = process.steps_of(transformers.counted_bytes, order)
        counted = yield from as_progress(steps, at_most_s=LONGEST_S)
        predicted = plan.alone.held
        alike = sum(counted[part] == predicted[part] for part in predicted)
        said = f"Counted: {alike} of {len(predicted)} parts are as predicted, to the byte."
        yield Progress(1, said, Change(found=lambda known: {**known, plan.step: counted}))

    def make_it_fit(self, asked: Asked, found: Found) -> Change:
        """Move the controls as little as it takes."""
        if asked.plan.fits:
            raise ValueError("It fits as it is.")
        remedy = predict.remedy(asked.plan)
        if not remedy:
            raise ValueError(hopeless_as(asked.plan))
        return Change(remedy)

    jobs, actions = {"Count it": count}, {"Make it fit": make_it_fit}
    needs_kernel = {*jobs}


def _check_that_it_can_be_counted(plan: TrainingPlan) -> None:
    if plan.shape.layers > MOST_LAYERS:
        raise ValueError(
            f"Not counted: every layer takes a while, and {plan.shape.layers:,} would take minutes. "
            f"Take {MOST_LAYERS} layers or fewer."
        )
    most = replace(plan.alone, recompute=False, fused=False, fused_norm=False).held.total
    if most > MOST_BYTES:
        raise ValueError(
            f"Not counted: {bytes_text(most)} are more than torch can address, even without memory. Make it smaller."
        )
