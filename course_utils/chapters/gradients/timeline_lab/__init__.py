"""The memory of a training step is a landscape, and its highest place is known beforehand.

After two minutes the reader has seen what autograd keeps grow and go, at which moment most is held,
and what fused attention, recomputing, sharding and a loss in pieces take off there, and what they
leave.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from course_utils.chapters.gradients.timeline_lab.asked import PRESETS, Asked, Found
from course_utils.chapters.gradients.timeline_lab.picture import guessed, view
from course_utils.core.say import Guess, bytes_text
from course_utils.engine.labs.lab import Change, Lab, Progress

LONGEST_S = 120.0  # of a step that is measured
MOST_BYTES = 2**60  # of a step that is measured
MOST_FLOPS = 1e12  # of a step on real tensors: about a minute on a small processor


class TimelineLab(Lab):
    """What a machine holds over a training step."""

    name = "Timeline lab"
    asks = Asked
    presets = PRESETS
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
        """Run the step in a process that can be killed.

        A step that is too large to be run on real tensors runs on tensors without memory.
        """
        _refuse_what_cannot_run(asked)
        from course_utils.core.measure import free_bytes
        from course_utils.engine.labs.jobs import as_progress
        from course_utils.subjects.child_processes import process, transformers

        timeline = asked.timeline
        flops = sum(operation.flops for operation in timeline.operations)
        real = flops <= MOST_FLOPS and timeline.peak <= free_bytes("cpu") / 2
        context = max(asked.shape.context, asked.tokens)
        order = {
            "shape": replace(asked.shape, context=context),
            "recipe": asked.recipe,
            "batch": asked.batch,
            "sequence": asked.tokens,
            **asked.ways,
            "real": real,
        }
        steps = process.steps_of(transformers.step_moments, order)
        moments = yield from as_progress(steps, at_most_s=LONGEST_S)
        held = [moment.during for moment in moments]
        change = Change(found=lambda known: {**known, timeline: held})
        yield Progress(1, _compared(asked, held, real), change)

    jobs = {"Measure a real step": measure}
    needs_kernel = {"Measure a real step"}


def _refuse_what_cannot_run(asked: Asked) -> None:
    if asked.machines > 1:
        raise ValueError("A step is measured on one machine, yours. Set machines to 1.")
    if asked.timeline.peak > MOST_BYTES:
        most = bytes_text(asked.timeline.peak)
        raise ValueError(
            f"{most} are more than torch can address, even without memory. Make it smaller."
        )


def _compared(asked: Asked, held: Sequence[int], real: bool) -> str:
    """Compare what was measured with the prediction, operation by operation.

    The comparison ends before the optimizer's step, because what an optimizer holds for itself
    meanwhile is not predicted.
    """
    operations = asked.timeline.operations
    predicted = [one.during.total for one in operations if one.phase != "optimizer"]
    pairs = zip(held, predicted, strict=False)
    differing = sum(measured != expected for measured, expected in pairs)

    where = "on tensors without numbers, as it is large"
    if real:
        where = "with real numbers"
    alike = "as many bytes as predicted"
    if differing:
        alike = f"{differing:,} times other bytes than predicted"
    return f"Run {where}: {len(predicted):,} operations, up to the optimizer's step, hold {alike}."
