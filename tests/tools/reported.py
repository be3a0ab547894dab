"""`make reported`: each number that others reported of a run beside its prediction, or whether a file is complete."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from course_utils.core import predict
from course_utils.core.datasheets import MACHINES
from course_utils.core.say import number_text
from course_utils.subjects.reported import RUNS, Run, fits, rows
from course_utils.subjects.reported.runs import COUNTS, read

HEAD = "reported / predicted, largest disagreement first; nothing reported was measured by this course"
REPORTED = {"tokens_per_sec", "tflop_per_sec", "gpu_hours", "tokens"}  # rates of one GPU, tokens of the run
REPORTED |= {"mfu_percent", "hfu_percent", "flops_per_token", "parameters", "memory_gib", "fits"}
NEEDED = {"name", "model", "machine", "gpus", "batch", "sequence", "reported", "source", "not_said"}
FIELDS = {one.name for one in fields(Run)} - {"shape"} | {"model"}


def lines(runs: Iterable[Run]) -> list[str]:
    """A line for each reported number, with the cause of a disagreement, and one for what fits."""
    runs, said = list(runs), [HEAD]
    for row in rows(runs):
        ratio, predicted, reported = (number_text(n, 4) for n in (row.ratio, row.predicted, row.reported))
        why = f": {row.why}" if row.why else ""
        said.append(
            f"{ratio:>7}  {row.run.name}, {row.what}, {predicted} predicted, {reported} reported{why}"
        )
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
        yield from (f"{one.get('name', 'A run without a name')}: {fault}" for fault in _of_run(data, one))


def _of_run(data: Mapping, one: Mapping) -> Iterator[str]:
    if NEEDED - set(one):
        yield f"{_sorted(NEEDED - set(one))} missing. Write null where the source does not say it."
        return
    reported = one["reported"]
    allowed = {
        "model": {*predict.MODELS, *data["models"]},
        "machine": {*MACHINES},
        "source": {*data["sources"]},
        "recompute": {*predict.RECOMPUTE, None},
        "fused_loss": {*predict.FUSED_LOSSES},
        "counts": {*COUNTS} if "mfu_percent" in reported else {*COUNTS, None},
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
    said = [(part, {(defaults | one)[part]}, among) for part, among in allowed.items()]
    for part, given, among in (*said, ("a field", {*one}, FIELDS), ("reported", {*reported}, REPORTED)):
        if given - among:
            yield f"{part} is {_sorted(given - among)}. Allowed are: {_sorted(among)}."
    if not reported or ("gpu_hours" in reported and "tokens" not in reported):
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
