"""What `predict` says of a published run, beside what was reported of it."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course_utils.core.datasheets import MACHINES
from course_utils.core.say import Comparison, Number
from course_utils.subjects.reported.runs import Run

HEADS = ("predicted", "reported")
THREE = ("all pairs", "causal", "6P")
GIB = 2**30


def mfu(run: Run) -> Comparison:
    """The MFU in % of the reported rate, in three conventions and the run's own, beside what was reported."""
    said, ours = _of(run, "mfu_percent"), {}
    if run.tokens_per_sec:
        ours = {how: 100 * run.mfu_by_convention[how] for how in THREE}
    ours[run.counts] = 100 * run.share_of_peak
    return Comparison(ours, dict.fromkeys(ours, said), "% of the peak", digits=3, heads=HEADS)


def memory(run: Run) -> Comparison:
    """GiB on each GPU, by part where the parts were reported.

    Where "reserved" is reported, the prediction is a floor: torch reserves whole segments, and keeps those that are
    free again. What it allocates is never more than that.
    """
    said = _of(run, "memory_gib")
    if run.timeline is None:
        raise ValueError(f"No memory of {run.name} is predicted: the model is split, or a size not stated.")
    if isinstance(said, dict):
        parts = {**run.timeline.state, "activations": run.timeline.kept}
    else:
        parts, said = {run.memory_kind: held_bytes(run)}, {run.memory_kind: said}
    ours = {part: parts[part] / GIB for part in said}
    return Comparison(ours, said, "GiB", digits=4, heads=HEADS)


def held_bytes(run: Run) -> int:
    """What each GPU holds at the moment at which it holds most, without what lies on the CPU."""
    most = run.timeline.fullest.during
    return most.total - sum(getattr(most, part) for part in run.offloaded)


def fits(run: Run) -> bool:
    """Whether `predict` says that the run fits its GPUs' memory."""
    memory_bytes = MACHINES[run.machine].bytes if run.gigabytes is None else run.gigabytes * 10**9
    return held_bytes(run) <= memory_bytes


def _of(run: Run, what: str) -> Number | dict[str, Number]:
    if what not in run.reported:
        raise ValueError(f"{run.name} reports no {what}, but {', '.join(run.reported)}.")
    return run.reported[what]


@dataclass(frozen=True)
class Row:
    """One reported number, and the prediction of it."""

    run: Run
    what: str
    predicted: Number
    reported: Number

    @property
    def ratio(self) -> Number:
        return self.reported / self.predicted

    @property
    def apart(self) -> float:
        """How many times as large the larger of the two is."""
        return max(self.ratio, 1 / self.ratio)

    @property
    def why(self) -> str:
        """What is known of the cause, or unknown; nothing within 1 %."""
        kind = self.what.split(",")[0].lower()
        return self.run.source.why.get(kind, "unknown") if self.apart > 1.01 else ""


def rows(runs: Iterable[Run]) -> list[Row]:
    """All reported numbers that have a prediction, the largest disagreement first."""
    found = [Row(run, *numbers) for run in runs for numbers in _numbers_of(run)]
    return sorted(found, key=lambda row: (-round(math.log(row.apart), 9), row.run.name, row.what))


def _numbers_of(run: Run) -> Iterator[tuple[str, Number, Number]]:
    said = run.reported
    if "parameters" in said:
        yield "parameters", run.shape.parameters, said["parameters"]
    if "flops_per_token" in said:
        yield "FLOPs a token", run.flops_per_token[run.counts], said["flops_per_token"]
    for share, name in (("mfu_percent", f"MFU, {run.counts}"), ("hfu_percent", "HFU")):
        if share in said and run.share_of_peak and (name != "HFU" or "mfu_percent" not in said):
            yield name, 100 * run.share_of_peak, said[share]
    if "memory_gib" in said and run.timeline:
        table = memory(run)
        yield from (
            (f"memory, {part}", table.predicted[part], table.measured[part]) for part in table.measured
        )
