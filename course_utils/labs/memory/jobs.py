"""Counting a step on one machine."""

from collections.abc import Iterator
from dataclasses import replace

from course_utils.labs.jobs import as_progress
from course_utils.labs.lab import Change, Progress
from course_utils.labs.memory.asked import Found, Run
from course_utils.predict import TrainingPlan
from course_utils.quantities import bytes_text
from course_utils.workers import process, transformers

MOST_LAYERS, MOST_BYTES, LONGEST_S = 400, 2**60, 120.0  # of a count


def count(run: Run, found: Found) -> Iterator[Progress]:
    """Count the step on one machine, in a process that can be killed."""
    plan = run.plan
    _check_that_it_can_be_counted(plan)
    shape = replace(plan.shape, context=max(plan.shape.context, plan.sequence))
    order = {"shape": shape, "recipe": plan.recipe, "batch": plan.batch, "sequence": plan.sequence}
    steps = process.steps_of(transformers.held_bytes, order | plan.ways | {"accumulate": plan.accumulate})
    counted = yield from as_progress(steps, at_most_s=LONGEST_S)
    predicted = plan.alone.held
    alike = sum(counted[part] == predicted[part] for part in predicted)
    said = f"Counted: {alike} of {len(predicted)} parts to the byte as predicted."
    yield Progress(1, said, Change(found=lambda known: {**known, plan.step: counted}))


def _check_that_it_can_be_counted(plan: TrainingPlan) -> None:
    """A sentence on why it can't, if it can't."""
    if plan.shape.layers > MOST_LAYERS:
        raise ValueError(
            f"Not counted: every layer takes a while, and {plan.shape.layers:,} would take minutes. "
            f"Take {MOST_LAYERS} layers or fewer."
        )
    most = replace(plan.alone, recompute=False, fused=False, fused_norm=False).held.total
    if most > MOST_BYTES:
        raise ValueError(
            f"Not counted: {bytes_text(most)} are more than torch can address, be it without memory. Make it smaller."
        )
