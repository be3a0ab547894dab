"""`make reported` sets each number that others reported of a training run beside its prediction.

`make reported FILE=...` says whether a file of such runs is complete.
"""

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from course_utils.core import predict
from course_utils.core.datasheets import MACHINES
from course_utils.core.say import Number, number_text
from course_utils.subjects import reported
from course_utils.subjects.reported import PublishedRun, memory
from course_utils.subjects.reported.beside import held_bytes
from course_utils.subjects.reported.runs import COUNTS, read

PUBLISHED = Path(reported.__file__).with_name("published.json")  # the notebooks show some of them
FOUNDRY = Path(__file__).with_name("llm_foundry.json")  # 216 runs, for checking `predict` only
RUNS = read(PUBLISHED) | read(FOUNDRY)
HEAD = (
    "reported / predicted, largest disagreement first; nothing reported was measured by this course"
)
REPORTED = {
    "tokens_per_sec",  # the rates are of one GPU
    "tflop_per_sec",
    "gpu_hours",
    "tokens",  # of the whole run
    "mfu_percent",
    "hfu_percent",
    "flops_per_token",
    "parameters",
    "memory_gib",
    "fits",
}
NEEDED = {"name", "model", "machine", "gpus", "batch", "sequence", "reported", "source", "not_said"}
FIELDS = {field.name for field in fields(PublishedRun)} - {"shape"} | {"model"}

DEFAULTS = {  # of fields that a run need not have
    "recompute": None,
    "fused_loss": False,
    "counts": None,
    "memory_kind": "allocated",
    "stage": None,
}


@dataclass(frozen=True)
class Row:
    """One reported number, and the prediction of it."""

    run: PublishedRun
    what: str
    predicted: Number
    reported: Number

    @property
    def ratio(self) -> Number:
        """Reported / predicted."""
        return self.reported / self.predicted

    @property
    def apart(self) -> float:
        """How many times as large the larger of the two is."""
        return max(self.ratio, 1 / self.ratio)

    @property
    def why(self) -> str:
        """The cause of the disagreement, or "unknown"; within 1 % it needs none."""
        if self.apart <= 1.01:
            return ""
        kind, _, _ = self.what.partition(",")
        return self.run.source.why.get(kind.lower(), "unknown")


def rows(runs: Iterable[PublishedRun]) -> list[Row]:
    """Return all reported numbers that have a prediction, the largest disagreement first."""
    found = [row for run in runs for row in _rows_of(run)]

    def largest_first(row: Row) -> tuple[float, str, str]:
        # Rounded, so that equal ratios are in the same order on every machine.
        return -round(math.log(row.apart), 9), row.run.name, row.what

    return sorted(found, key=largest_first)


def _rows_of(run: PublishedRun) -> Iterator[Row]:
    """Yield a row for each of the run's reported numbers that can be predicted."""
    said = run.reported
    if "parameters" in said:
        yield Row(run, "parameters", run.shape.parameters, said["parameters"])
    if "flops_per_token" in said:
        predicted = run.flops_per_token[run.counts]
        yield Row(run, "FLOPs a token", predicted, said["flops_per_token"])
    if run.share_of_peak:
        predicted = 100 * run.share_of_peak
        if "mfu_percent" in said:
            yield Row(run, f"MFU, {run.counts}", predicted, said["mfu_percent"])
        elif "hfu_percent" in said:
            yield Row(run, "HFU", predicted, said["hfu_percent"])
    if "memory_gib" in said and run.timeline:
        table = memory(run)
        for part in table.measured:
            yield Row(run, f"memory, {part}", table.predicted[part], table.measured[part])


def fits(run: PublishedRun) -> bool:
    """Whether `predict` says that the run fits its GPUs' memory."""
    if run.gigabytes is None:
        memory_bytes = MACHINES[run.machine].bytes
    else:
        memory_bytes = run.gigabytes * 10**9
    return held_bytes(run) <= memory_bytes


def lines(runs: Iterable[PublishedRun]) -> list[str]:
    """Return a line for each reported number, with a disagreement's cause, and one on fitting."""
    runs = list(runs)
    found = [HEAD]
    for row in rows(runs):
        ratio = number_text(row.ratio, 4)
        predicted = number_text(row.predicted, 4)
        as_reported = number_text(row.reported, 4)
        what = f"{row.run.name}, {row.what}, {predicted} predicted, {as_reported} reported"
        why = f": {row.why}" if row.why else ""
        found.append(f"{ratio:>7}  {what}{why}")
    asked = [run for run in runs if "fits" in run.reported]
    right = sum(fits(run) == run.reported["fits"] for run in asked)
    found.append(f"Whether a run fits its memory: {right} of {len(asked)} as reported.")
    return found


def faults_of(data: Mapping) -> Iterator[str]:
    """Yield a sentence on everything that is missing or wrong in a file of runs."""
    absent = {"models", "sources", "runs"} - set(data)
    if absent:
        yield (
            f"The file has no {_sorted(absent)}. "
            "Write it as course_utils/subjects/reported/published.json is written."
        )
        return
    for name, source in data["sources"].items():
        for part in ("what", "where", "licence", "not_read"):
            may_be_empty = part == "not_read"
            if part not in source or not (source[part] or may_be_empty):
                yield (
                    f"Source {name!r} has no {part!r}. "
                    "If all was read at the source, 'not_read' is ''."
                )
    for given in data["runs"]:
        run = data.get("each", {}) | given
        name = run.get("name", "A run without a name")
        for fault in _of_run(data, run):
            yield f"{name}: {fault}"


def _of_run(data: Mapping, run: Mapping) -> Iterator[str]:
    """Yield a sentence on everything that is missing or wrong in one run of the file `data`."""
    missing = NEEDED - set(run)
    if missing:
        yield f"{_sorted(missing)} missing. Write null where the source does not say it."
        return
    said = run["reported"]
    for part, allowed in _allowed(data, said).items():
        value = run.get(part, DEFAULTS.get(part))
        if value not in allowed:
            yield f"{part} is {value}. Allowed are: {_sorted(allowed)}."
    for part, given, allowed in (("a field", run, FIELDS), ("reported", said, REPORTED)):
        unknown = set(given) - allowed
        if unknown:
            yield f"{part} is {_sorted(unknown)}. Allowed are: {_sorted(allowed)}."
    if not said or ("gpu_hours" in said and "tokens" not in said):
        yield f"report at least one of {_sorted(REPORTED)}, and with GPU hours the tokens."


def _allowed(data: Mapping, said: Mapping) -> dict[str, set[object]]:
    """Return the values that each field of a run may have. `said` is what the run reports."""
    allowed = {
        "model": {*predict.MODELS, *data["models"]},
        "machine": set(MACHINES),
        "source": set(data["sources"]),
        "recompute": {*predict.RECOMPUTE, None},
        "fused_loss": set(predict.FUSED_LOSSES),
        "counts": set(COUNTS),
        "memory_kind": {"allocated", "reserved"},
        "stage": {0, 1, 2, 3, None},
    }
    if "mfu_percent" not in said:  # without an MFU, a run need not say how FLOPs were counted
        allowed["counts"].add(None)
    return allowed


def _sorted(names: Iterable[object]) -> str:
    return ", ".join(sorted(str(name) for name in names))


def main(arguments: list[str]) -> int:
    """Print the comparison, or what is wrong with the named file; the status is 0 if nothing is."""
    if not any(arguments):
        print(*lines(RUNS.values()), sep="\n")
        return 0
    path = Path(arguments[0]).expanduser()
    try:
        faults = list(faults_of(json.loads(path.read_text(encoding="utf-8"))))
        runs = {} if faults else read(path)
    except (OSError, ValueError) as error:
        faults = [str(error)]
    if faults:
        print(f"{path.name} is not complete:", *faults, sep="\n- ")
        return 1
    print(f"{path.name} is complete: {len(runs)} runs.", *lines(runs.values()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
