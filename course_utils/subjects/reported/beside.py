"""Predictions for a published run, beside what was reported of the run."""

from course_utils.core.say import Comparison, Number
from course_utils.subjects.reported.runs import PublishedRun

HEADS = ("predicted", "reported")  # of the columns of a Comparison
# The conventions of counting FLOPs for which `mfu` has a row: see PublishedRun.flops_per_token.
CONVENTIONS = ("all pairs", "causal", "6P")
GIB = 2**30


def mfu(run: PublishedRun) -> Comparison:
    """Compare the MFU that follows from the reported tokens a second with the reported MFU.

    Both are in % of the peak. The MFU that follows is given by three conventions of counting FLOPs,
    and by the convention of the run itself, which may be one of the three. If neither the
    tokens a second nor a rate that gives them was reported, only the run's own convention is left.
    """
    reported = _reported(run, "mfu_percent")
    predicted = {}
    if run.tokens_per_sec:
        for convention in CONVENTIONS:
            predicted[convention] = 100 * run.mfu_by_convention[convention]
    # `share_of_peak` needs no tokens a second where FLOP/s were reported. If `run.counts` is one of
    # CONVENTIONS, its row above gets the same number again.
    predicted[run.counts] = 100 * run.share_of_peak
    return Comparison(
        predicted,
        dict.fromkeys(predicted, reported),  # the same value beside each convention
        "% of the peak",
        digits=3,
        heads=HEADS,
    )


def memory(run: PublishedRun) -> Comparison:
    """Compare the predicted GiB on each GPU with the reported ones, by part if these are by part.

    If "reserved" memory was reported, it should be more than the prediction, which is of what torch
    allocates: torch reserves whole segments, and keeps those that are free again. Where it is less,
    the prediction counts too much.
    """
    reported = _reported(run, "memory_gib")
    if run.timeline is None:
        raise ValueError(
            f"No memory of {run.name} is predicted: the model is split, or a size not stated."
        )
    if isinstance(reported, dict):  # such as {"parameters": 2.9, "activations": 39.5}
        parts = {**run.timeline.state, "activations": run.timeline.kept}
    else:
        parts = {run.memory_kind: held_bytes(run)}
        reported = {run.memory_kind: reported}
    predicted = {part: parts[part] / GIB for part in reported}
    return Comparison(predicted, reported, "GiB", digits=4, heads=HEADS)


def held_bytes(run: PublishedRun) -> int:
    """Return the predicted bytes on each GPU at the fullest moment, without parts on the CPU."""
    most = run.timeline.fullest.during  # has the bytes of each part, and their total
    on_cpu = sum(getattr(most, part) for part in run.offloaded)
    return most.total - on_cpu


def _reported(run: PublishedRun, what: str) -> Number | dict[str, Number]:
    """Return what the run reports under the name `what`, such as "mfu_percent".

    ValueError, with the names of all that it reports, if there is nothing under that name.
    """
    if what not in run.reported:
        raise ValueError(f"{run.name} reports no {what}, but {', '.join(run.reported)}.")
    return run.reported[what]
