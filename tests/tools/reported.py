"""`make reported`: each number that others reported of a run beside its prediction, or whether a file is complete."""

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

PUBLISHED = Path(reported.__file__).with_name("published.json")  # what notebooks show, and more
FOUNDRY = Path(__file__).with_name(
    "llm_foundry.json"
)  # a table of 216 runs, which predict is held against
RUNS = read(PUBLISHED) | read(FOUNDRY)
HEAD = (
    "reported / predicted, largest disagreement first; nothing reported was measured by this course"
)
REPORTED = {
    "tokens_per_sec",
    "tflop_per_sec",
    "gpu_hours",
    "tokens",
}  # rates of one GPU, tokens of the run
REPORTED |= {"mfu_percent", "hfu_percent", "flops_per_token", "parameters", "memory_gib", "fits"}
NEEDED = {"name", "model", "machine", "gpus", "batch", "sequence", "reported", "source", "not_said"}
FIELDS = {one.name for one in fields(PublishedRun)} - {"shape"} | {"model"}


@dataclass(frozen=True)
class Row:
    """One reported number, and the prediction of it."""

    run: PublishedRun
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


def rows(runs: Iterable[PublishedRun]) -> list[Row]:
    """All reported numbers that have a prediction, the largest disagreement first."""
    found = [Row(run, *numbers) for run in runs for numbers in _numbers_of(run)]
    return sorted(found, key=lambda row: (-round(math.log(row.apart), 9), row.run.name, row.what))


def _numbers_of(run: PublishedRun) -> Iterator[tuple[str, Number, Number]]:
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
        for part in table.measured:
            yield f"memory, {part}", table.predicted[part], table.measured[part]


def fits(run: PublishedRun) -> bool:
    """Whether `predict` says that the run fits its GPUs' memory."""
    memory_bytes = MACHINES[run.machine].bytes if run.gigabytes is None else run.gigabytes * 10**9
    return held_bytes(run) <= memory_bytes


def lines(runs: Iterable[PublishedRun]) -> list[str]:
    """A line for each reported number, with the cause of a disagreement, and one for what fits."""
    runs, said = list(runs), [HEAD]
    for row in rows(runs):
        ratio = number_text(row.ratio, 4)
        numbers = (
            f"{number_text(row.predicted, 4)} predicted, {number_text(row.reported, 4)} reported"
        )
        why = f": {row.why}" if row.why else ""
        said.append(f"{ratio:>7}  {row.run.name}, {row.what}, {numbers}{why}")
    asked = [run for run in runs if "fits" in run.reported]
    right = sum(fits(run) == run.reported["fits"] for run in asked)
    return [*said, f"Whether a run fits its memory: {right} of {len(asked)} as reported."]


def faults_of(data: Mapping) -> Iterator[str]:
    """A sentence on everything that a file of runs lacks or says wrongly."""
    absent = {"models", "sources", "runs"} - set(data)
    if absent:
        yield f"The file has no {_sorted(absent)}. Write it as course_utils/subjects/reported/published.json is written."
        return
    for name, source in data["sources"].items():
        for part in ("what", "where", "licence", "not_read"):
            if part not in source or (part != "not_read" and not source[part]):
                yield f"Source {name!r} has no {part!r}. If all was read at the source, 'not_read' is ''."
    for one in data["runs"]:
        one = data.get("each", {}) | one
        yield from (
            f"{one.get('name', 'A run without a name')}: {fault}" for fault in _of_run(data, one)
        )


def _of_run(data: Mapping, one: Mapping) -> Iterator[str]:
    if NEEDED - set(one):
        yield f"{_sorted(NEEDED - set(one))} missing. Write null where the source does not say it."
        return
    said = one["reported"]
    allowed = {
        "model": {*predict.MODELS, *data["models"]},
        "machine": {*MACHINES},
        "source": {*data["sources"]},
        "recompute": {*predict.RECOMPUTE, None},
        "fused_loss": {*predict.FUSED_LOSSES},
        "counts": {*COUNTS} if "mfu_percent" in said else {*COUNTS, None},
        "memory_kind": {"allocated", "reserved"},
        "stage": {0, 1, 2, 3, None},
    }
    defaults = {
        "recompute": None,
        "fused_loss": False,
        "counts": None,
        "memory_kind": "allocated",
        "stage": None,
    }
    parts = [(part, {(defaults | one)[part]}, among) for part, among in allowed.items()]
    for part, given, among in (
        *parts,
        ("a field", {*one}, FIELDS),
        ("reported", {*said}, REPORTED),
    ):
        if given - among:
            yield f"{part} is {_sorted(given - among)}. Allowed are: {_sorted(among)}."
    if not said or ("gpu_hours" in said and "tokens" not in said):
        yield f"report at least one of {_sorted(REPORTED)}, and with GPU hours the tokens."


def _sorted(names: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, names)))


def main(arguments: list[str]) -> int:
    """Print the comparison, or what is wrong with the file that is named; 0 if nothing is."""
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
