"""The memory of a training step is a landscape, and its highest place is known beforehand.

After two minutes the reader has seen the activations grow and shrink, and at which moment most
bytes are held. They know how many of these bytes are saved by fused attention, recomputing,
sharding and a loss in pieces, and how many are left.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from course_utils.chapters.gradients.timeline_lab.asked import FULLEST, PRESETS, Asked, Found
from course_utils.chapters.gradients.timeline_lab.picture import guessed, view
from course_utils.core.say import Guess, bytes_text
from course_utils.core.say.language import template, translated
from course_utils.engine.labs.lab import Change, Lab, Progress

LONGEST_S = 120.0  # the time in which a measured step has to end
MOST_BYTES = 2**60  # of a measured step's peak: torch can address no more, even on fake tensors
MOST_FLOPS = 1e12  # of a step on real tensors: about a minute on a small processor
# By whether the step ran with real numbers, and whether some operations held other bytes.
COMPARED = {
    (True, False): template(
        "Run with real numbers: {operations} operations, up to the optimizer's step, "
        "hold as many bytes as predicted."
    ),
    (True, True): template(
        "Run with real numbers: {operations} operations, up to the optimizer's step, "
        "hold as many bytes as predicted, except in {differing} of them."
    ),
    (False, False): template(
        "Run on tensors without numbers, as it is large: {operations} operations, "
        "up to the optimizer's step, hold as many bytes as predicted."
    ),
    (False, True): template(
        "Run on tensors without numbers, as it is large: {operations} operations, "
        "up to the optimizer's step, hold as many bytes as predicted, "
        "except in {differing} of them."
    ),
}


class TimelineLab(Lab):
    """What a GPU holds over a training step."""

    name = "Timeline lab"
    asks = Asked
    presets = PRESETS
    rows = (
        ("model", "recipe", "machine", "stage"),
        ("batch", "sequence", "machines"),
        ("segment", "accumulate"),
    )
    more = (("moment", "fused", "pieces", "ask", "shown"),)
    view = staticmethod(view)

    def guesses(self, asked: Asked, found: Found) -> Sequence[Guess]:
        """Return each mark that the reader has set, beside the prediction."""
        return guessed(asked)

    def on_show(self, asked: Asked) -> Mapping[str, object]:
        """Look at the fullest moment, if that is what the reader was asked for."""
        if asked.ask != FULLEST:
            return {}
        return {"moment": round(asked.step.fullest.percent)}

    def measure(self, asked: Asked, found: Found) -> Iterator[Progress]:
        """Run the step in a process of its own, which can be killed, and note the bytes it holds.

        A step of more FLOPs than MOST_FLOPS, or that would fill more than half of the free memory,
        runs on fake tensors: they have shapes, but neither numbers nor memory.
        """
        _refuse_what_cannot_run(asked)
        # Imported late, because they need torch, which a page without a kernel does not have.
        from course_utils.core.measure import free_bytes
        from course_utils.engine.labs.jobs import as_progress
        from course_utils.subjects.child_processes import process, transformers

        timeline = asked.timeline
        flops = sum(operation.flops for operation in timeline.operations)
        real = flops <= MOST_FLOPS and timeline.peak <= free_bytes("cpu") / 2
        arguments = {
            # The context has to hold the whole sequence.
            "shape": replace(asked.shape, context=max(asked.shape.context, asked.tokens)),
            "recipe": asked.recipe,
            "batch": asked.batch,
            "sequence": asked.tokens,
            **asked.options,
            "real": real,
        }
        steps = process.steps_of(transformers.step_moments, arguments)
        moments = yield from as_progress(steps, at_most_s=LONGEST_S)
        held = [moment.during for moment in moments]
        change = Change(found=lambda known: {**known, timeline: held})
        yield Progress(1, _compared(asked, held, real), change)

    jobs = {"Measure a real step": measure}
    needs_kernel = {"Measure a real step"}


def _refuse_what_cannot_run(asked: Asked) -> None:
    """Raise ValueError, with the reason, if the step cannot be measured."""
    if asked.machines > 1:
        raise ValueError(translated("A step is measured on one machine, yours. Set machines to 1."))
    if asked.timeline.peak > MOST_BYTES:
        raise ValueError(
            translated(
                "{bytes} are more than torch can address, even without memory. Make it smaller.",
                bytes=bytes_text(asked.timeline.peak),
            )
        )


def _compared(asked: Asked, held: Sequence[int], real: bool) -> str:
    """Return a sentence on how many operations held other bytes than predicted.

    `held` has the bytes that were measured at each operation. The comparison ends before the
    optimizer's step, because the temporary tensors of an optimizer are not predicted.
    """
    operations = asked.timeline.operations
    predicted = [one.during.total for one in operations if one.phase != "optimizer"]
    pairs = zip(held, predicted, strict=False)  # `held` goes on with the optimizer's step
    # The number of pairs that differ: True counts as 1.
    differing = sum(measured != expected for measured, expected in pairs)

    return translated(
        COMPARED[real, differing > 0],
        operations=f"{len(predicted):,}",
        differing=f"{differing:,}",
    )
