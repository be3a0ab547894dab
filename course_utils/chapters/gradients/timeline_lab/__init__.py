"""The memory of one training step is a landscape with one highest place, known beforehand, operation by operation.

After two minutes the reader has seen what autograd keeps grow and go, at which moment most is held, and what fused
attention, recomputing, sharding and a loss in pieces take off there, and what they leave.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from course_utils.chapters.gradients.timeline_lab.asked import PRESETS, Asked, Found
from course_utils.chapters.gradients.timeline_lab.picture import guessed, view
from course_utils.core.say import Guess, bytes_text
from course_utils.engine.labs.lab import Change, Lab, Progress

LONGEST_S, MOST_BYTES = 120.0, 2**60  # of a step that is measured
MOST_FLOPS = 1e12  # of a step on real tensors: about a minute on a small processor


class TimelineLab(Lab):
    """What a machine holds over a training step."""

    name = "Timeline lab"
    asks, presets = Asked, PRESETS
    rows = (
        ("model", "recipe", "machine", "stage"),
        ("batch", "sequence", "machines"),
        ("segment", "fused", "pieces", "accumulate"),
        ("moment", "ask", "shown"),
    )
    view = staticmethod(view)

    def guesses(self, asked: Asked, found: Found) -> Sequence[Guess]:
        """What the reader's marks say."""
        return guessed(asked)

    def measure(self, asked: Asked, found: Found) -> Iterator[Progress]:
        """Run the step in a process that can be killed; if it is too large for that, on tensors without memory."""
        _check_that_it_can_run(asked)
        from course_utils.core.measure import free_bytes
        from course_utils.engine.labs.jobs import as_progress
        from course_utils.subjects.child_processes import process, transformers

        timeline = asked.timeline
        is_small = sum(one.flops for one in timeline.operations) <= MOST_FLOPS
        real = is_small and timeline.peak <= free_bytes("cpu") / 2
        shape = replace(asked.shape, context=max(asked.shape.context, asked.tokens))
        order = {
            "shape": shape,
            "recipe": asked.recipe,
            "batch": asked.batch,
            "sequence": asked.tokens,
        }
        order |= asked.ways | {"real": real}
        steps = process.steps_of(transformers.step_moments, order)
        moments = yield from as_progress(steps, at_most_s=LONGEST_S)
        held = [moment.during for moment in moments]
        yield Progress(
            1, _compared(asked, held, real), Change(found=lambda known: {**known, timeline: held})
        )

    jobs = {"Measure a real step": measure}
    needs_kernel = {*jobs}


def _check_that_it_can_run(asked: Asked) -> None:
    if asked.machines > 1:
        raise ValueError("A step is measured on one machine, yours. Set machines to 1.")
    if asked.timeline.peak > MOST_BYTES:
        most = bytes_text(asked.timeline.peak)
        raise ValueError(
            f"{most} are more than torch can address, even without memory. Make it smaller."
        )


def _compared(asked: Asked, held: Sequence[int], real: bool) -> str:
    """Operation by operation, up to the optimizer's step: what that holds for itself is not predicted."""
    predicted = [one.during.total for one in asked.timeline.operations if one.phase != "optimizer"]
    where = "with real numbers" if real else "on tensors without numbers, as it is large"
    differ = sum(here != there for here, there in zip(held, predicted, strict=False))
    alike = (
        "as many bytes as predicted"
        if not differ
        else f"{differ:,} times other bytes than predicted"
    )
    return f"Run {where}: {len(predicted):,} operations, up to the optimizer's step, hold {alike}."
