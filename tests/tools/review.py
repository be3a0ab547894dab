"""Says whether a recording may be added to those of the course: `make recording FILE=...`."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

from course_utils.core.datasheets import MACHINES
from course_utils.core.predict import DTYPE_BYTES
from course_utils.core.say import Number, rate_text, seconds_text
from course_utils.subjects.machines import MatmulSize, Recording
from course_utils.subjects.machines import recording as recording_files

# Where no data sheet gives a peak, the largest rate of a few shapes stands for it, and other shapes
# may exceed that. On a CPU without units for fp16, 1.41 times that rate was seen.
OVER_A_MEASURED_PEAK = 1.5
MOST_SAID = 20
AGAIN = "Record again with this version."


def problems_of(recording: Recording, path: Path) -> list[str]:
    """Return a sentence on everything that speaks against adding the recording."""
    return [*_machine(recording), *_rates(recording), *_twins(path, recording)]


def _machine(recording: Recording) -> Iterator[str]:
    """Yield a sentence on each difference between the recorded machine and its data sheet here."""
    machine = recording.machine
    sheet = MACHINES.get(machine.name)
    if machine.has_data_sheet != bool(sheet):
        there = "a sheet" if sheet else "no sheet"
        yield (
            f"machine.has_data_sheet: in datasheets.toml is {there} of {machine.name}. "
            "Add it, or record again with this version."
        )
    for name in ("peak_flop_per_sec", "sparse_flop_per_sec", "bytes", "bytes_per_sec"):
        if sheet and getattr(machine, name) != getattr(sheet, name):
            yield (
                f"machine.{name} is not that of the data sheet of {machine.name} "
                f"in datasheets.toml. {AGAIN}"
            )


def _limits(recording: Recording) -> tuple[Number, str]:
    """Return how many times the machine's peak a rate may be, and what that limit is called."""
    if recording.machine.has_data_sheet:
        return 1, "the dense peak"
    return OVER_A_MEASURED_PEAK, f"{OVER_A_MEASURED_PEAK} times the largest rate that was measured"


def _rates(recording: Recording) -> Iterator[str]:
    """Yield a sentence on each rate that is too high or cannot be judged."""
    factor, peak = _limits(recording)
    limits = {dtype: factor * rate for dtype, rate in recording.machine.peak_flop_per_sec.items()}
    for dtype in recording.seconds_by_size:
        if dtype not in DTYPE_BYTES:
            known = ", ".join(DTYPE_BYTES)
            yield f"products.{dtype}: no dtype is called that here; there are: {known}."
    for what, dtype, rate in _recorded_rates(recording):
        if dtype not in limits:
            yield f"{what}: machine.peak_flop_per_sec has no {dtype}, so its rate cannot be judged."
        elif rate > limits[dtype]:
            above = f"{rate_text(rate)}, above {peak}, {rate_text(limits[dtype])}"
            yield f"{what} is {above}. Either the time is wrong or not all of the work was done."


def _recorded_rates(recording: Recording) -> Iterator[tuple[str, str, Number]]:
    """Yield what was done, its dtype, and its FLOP/s."""
    for workload in recording.workloads:
        if workload.flops:
            yield f"workloads: {workload.name}", workload.dtype, workload.flop_per_sec
    for dtype, seconds_by_size in recording.seconds_by_size.items():
        for size, seconds in seconds_by_size.items():
            what = f"products.{dtype}: {_sizes(size)} in {seconds_text(seconds)}"
            yield what, dtype, 2 * math.prod(size) / seconds


def _twins(path: Path, recording: Recording) -> Iterator[str]:
    """Yield a sentence if another file of the course has a recording of this machine already."""
    other = recording_files.FOLDER / recording.file_name
    if other.exists() and other.resolve() != path.resolve():
        yield (
            f"machine.name: {other.name} is a recording of {recording.name} already. "
            "Replace that file if yours is better."
        )


def _sizes(size: MatmulSize) -> str:
    return " × ".join(f"{side:,}" for side in size)


def main(arguments: list[str]) -> int:
    """Say whether the recording may be added; the status is 0 if it may."""
    if len(arguments) != 1 or not arguments[0]:
        print("Which recording? Say it so: make recording FILE=path/to/recording.json")
        return 2
    path = Path(arguments[0]).expanduser()
    try:
        recording = recording_files.read(path)
        problems = problems_of(recording, path)
    except ValueError as error:
        problems = [str(error)]
    if problems:
        said = problems[:MOST_SAID]
        if len(problems) > MOST_SAID:
            said.append(f"and {len(problems) - MOST_SAID} more of the kind.")
        print(f"{path.name} may not be added:", *said, sep="\n- ")
        return 1
    count = sum(len(table) for table in recording.seconds_by_size.values())
    _, limit = _limits(recording)
    print(f"{path.name} may be added: {recording.name}, {count} products, none above {limit}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
