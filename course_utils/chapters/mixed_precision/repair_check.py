"""The exercises of notebook 7 in which a broken loop is repaired.

Many loops are right, so these exercises yield no answers, and raise an error for a wrong one.
"""

import math
from collections.abc import Iterator
from functools import cache

import torch

from course_utils.chapters.mixed_precision import repair
from course_utils.core.say import Number
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.judging import NotYetError, call, objection
from course_utils.engine.judging.errors import said_by, stopped
from course_utils.engine.judging.exercises import Check, NotAttemptedError
from course_utils.engine.judging.sentences import name_of

TRAINS = (
    "Matrix products in 16 bits, no gradient lost, the right norm, updates that arrive, "
    "and a loss that falls as in fp32."
)
# By the letters of the loops on the main path.
HINTS = {
    "b": (
        "Its gradients are as they should be. Look for what the updates are added to, and for its "
        "format.",
        "autocast makes 16-bit copies for the products by itself, so the weights can stay in fp32.",
    ),
    "c": (
        "Two lines matter: one divides the gradients by the scale again, and the other compares "
        "their norm with 0.2. Find both.",
        "The norm that is compared with 0.2 has to be that of gradients without the scale.",
    ),
}


def _mended(letter: str) -> Check:
    """Make the check of the repair shop's loop with this letter, such as "a" for fault A.

    The checks of all letters are the same but for their names, and for A, whose turn is about fp16.
    """

    def mended(loop: repair.Loop) -> None:
        """The check of a mended loop: it has to train as in fp32, with products in 16 bits."""
        seen = _judge(loop)
        if letter == "a" and torch.bfloat16 in seen.products:
            raise NotYetError(
                "In bf16 no gradient is lost, so that is a way out, too. But here fp16 is to lose "
                "none: leave autocast in fp16, and change another line."
            )

    mended.__name__ = f"mended_{letter}"  # the name under which answers are recorded
    return objection(TRAINS, ours=repair.loop(), hints=HINTS.get(letter, ()))(mended)


mended_a = _mended("a")
mended_b = _mended("b")
mended_c = _mended("c")
mended_d = _mended("d")
mended_e = _mended("e")


@cache
def _right() -> repair.Seen:
    """Return what is seen of the loop without a fault."""
    return repair.seen(repair.loop())


def _judge(loop: repair.Loop) -> repair.Seen:
    """Run the reader's loop, and return what is seen of it if it is mended.

    Otherwise raise an error with a sentence for the reader: a NotAttemptedError if the loop is
    unchanged, a NotYetError if it fails or trains wrongly.
    """
    if repair.is_untouched(loop):
        raise NotAttemptedError(template("Change the loop above, and run both cells again."))
    seen, error = call(lambda: repair.seen(loop))
    if error is None:
        error = seen.error  # one that stopped the loop after it had begun
    if error and said_by(error) == repair.NO_LOSSES:
        raise NotYetError(repair.NO_LOSSES)
    if error:
        raise NotYetError(in_a_row(f"{name_of(loop)} {stopped(loop, error)}", _advice_on(error)))
    if len(seen.losses) < repair.STEPS:
        raise NotYetError(
            translated(
                "It gave {count} losses, and {wanted} are wanted: keep the last line, yield.",
                count=f"{len(seen.losses)}",
                wanted=f"{repair.STEPS}",
            )
        )
    complaint = next(_objections(seen, _right()), "")  # the first one, or "" if there is none
    if complaint:
        raise NotYetError(complaint)
    return seen


def _advice_on(error: BaseException) -> str:
    """Return what an error of torch's, or of `repair`, means here; empty if that is not known."""
    if "unscale FP16 gradients" in said_by(error):
        return translated(
            "The scaler takes no gradients in fp16, and they have the format of the weights. "
            "Which line casts the weights?"
        )
    return ""


def _objections(seen: repair.Seen, right: repair.Seen) -> Iterator[str]:
    """Yield what is wrong with a loop that ran to its end.

    Only the first sentence is taken, so each `if` may rely on those above: after the first one, for
    example, the lists in `seen` are not empty. The margins are far wider than the differences in
    rounding between processors.
    """
    if not seen.norms:
        yield template(
            "The optimizer made no step. Where are scaler.step(optimizer) and scaler.update()?"
        )
    if torch.float32 in seen.products:
        yield template(
            "The matrix products are in fp32 now, and their speed is lost. "
            "Leave autocast as it was: another line is wrong."
        )
    yield from _objections_to_gradients(seen, right)
    if seen.lost[-1] > 0.5:  # of the right loop's updates none are lost, with bf16 weights 0.9
        yield translated(
            "{percent} of the last updates are lost. "
            "In which format are the weights that get them?",
            percent=repair.percent(seen.lost[-1]),
        )
    if len(seen.scalers) > 1:
        yield template(
            "A new scaler in each step starts from the first scale again, "
            "and never learns from an infinity. Make a single one, before the loop."
        )
    if not seen.losses[-1] < 0.03:  # the right loop's is 0.002; NaN is no smaller than any number
        yield translated(
            "The loss ends at {loss}, and should end at {wanted}.",
            loss=f"{seen.losses[-1]:.2g}",
            wanted=f"{right.losses[-1]:.1g}",
        )


def _objections_to_gradients(seen: repair.Seen, right: repair.Seen) -> Iterator[str]:
    """Yield what is wrong with the gradients that reached the optimizer in its steps."""
    first = seen.norms[0]
    largest = max(seen.norms)
    if seen.zeros[0] > 0:
        yield translated(
            "{percent} of the first gradients are 0. "
            "What brings them into fp16's dynamic range before backward?",
            percent=repair.percent(seen.zeros[0]),
        )
    far_too_small = _far_too_small(first, right.norms[0])
    if far_too_small:
        yield far_too_small
    # A clipping that knows the scale's number is right for this one scale alone.
    at_larger_scale = min(seen.norms_at_larger_scale, default=first)
    if at_larger_scale < first / 1.5:
        yield translated(
            "With a scale four times as large, gradients of norm {norm} reach the optimizer, and "
            "not {most}. The scale changes during a run: unscale first, and clip then.",
            norm=f"{at_larger_scale:.2g}",
            most=f"{first:.2g}",
        )
    # Only three steps are compared: later ones start from weights that rounding has moved apart.
    for norm, wanted in zip(seen.norms[:3], right.norms, strict=False):
        if not wanted / 2 < norm < 2 * wanted:
            yield translated(
                "A gradient's norm is {norm}, and should be {wanted}. Which line changes it?",
                norm=f"{norm:.2g}",
                wanted=f"{wanted:.2g}",
            )
    if largest > 1.1 * repair.MAX_NORM:
        yield translated(
            "A norm of {norm} reaches the optimizer: the loop no longer clips to {most}.",
            norm=f"{largest:.2g}",
            most=f"{repair.MAX_NORM}",
        )


def _far_too_small(norm: Number, wanted: Number) -> str:
    """Return the sentence on a norm over a thousand times too small, and on why it is.

    The result is an empty string if the norm is larger, or if the reason is unknown.
    """
    if not norm <= wanted / 1000:  # so that NaN ends here, too
        return ""
    # Of one micro-batch, the norm is MICRO_BATCHES times too small, to within a tenth.
    if abs(norm * repair.MICRO_BATCHES / wanted - 1) < 0.1:
        return translated(
            "The optimizer gets gradients of norm {norm}: those of one micro-batch. "
            "Where are the gradients of all {micro_batches} added up?",
            norm=f"{norm:.1e}",
            micro_batches=f"{repair.MICRO_BATCHES:,}",
        )
    # Clipped before it is unscaled, the norm is MAX_NORM ÷ scale, and a scale is a power of two.
    powers = math.log2(repair.MAX_NORM / norm)
    if abs(powers - round(powers)) < 0.1:
        return translated(
            "The optimizer gets gradients of norm {norm}: "
            "they are clipped while the scale is still on.",
            norm=f"{norm:.1e}",
        )
    return ""
