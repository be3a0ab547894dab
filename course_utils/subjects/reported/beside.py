"""What `predict` says of a published run, beside what was reported of it."""

from course_utils.core.say import Comparison, Number
from course_utils.subjects.reported.runs import PublishedRun

HEADS = ("predicted", "reported")
THREE = ("all pairs", "causal", "6P")
GIB = 2**30


def mfu(run: PublishedRun) -> Comparison:
    """The MFU in % of the reported rate, in three conventions and the run's own, beside what was reported."""
    said, ours = _of(run, "mfu_percent"), {}
    if run.tokens_per_sec:
        ours = {how: 100 * run.mfu_by_convention[how] for how in THREE}
    ours[run.counts] = 100 * run.share_of_peak
    return Comparison(ours, dict.fromkeys(ours, said), "% of the peak", digits=3, heads=HEADS)


def memory(run: PublishedRun) -> Comparison:
    """GiB on each GPU, by part where the parts were reported.

    Where "reserved" is reported, the prediction is a floor: torch reserves whole segments, and keeps those that are
    free again. What it allocates is never more than that.
    """
    said = _of(run, "memory_gib")
    if run.timeline is None:
        raise ValueError(
            f"No memory of {run.name} is predicted: the model is split, or a size not stated."
        )
    if isinstance(said, dict):
        parts = {**run.timeline.state, "activations": run.timeline.kept}
    else:
        parts, said = {run.memory_kind: held_bytes(run)}, {run.memory_kind: said}
    ours = {part: parts[part] / GIB for part in said}
    return Comparison(ours, said, "GiB", digits=4, heads=HEADS)


def held_bytes(run: PublishedRun) -> int:
    """What each GPU holds at the moment at which it holds most, without what lies on the CPU."""
    most = run.timeline.fullest.during
    return most.total - sum(getattr(most, part) for part in run.offloaded)


def _of(run: PublishedRun, what: str) -> Number | dict[str, Number]:
    if what not in run.reported:
        raise ValueError(f"{run.name} reports no {what}, but {', '.join(run.reported)}.")
    return run.reported[what]
