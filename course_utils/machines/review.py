"""Whether a recording may be added: `python -m course_utils.machines.review FILE`, or `make recording FILE=...`."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

from course_utils.datasheets import MACHINES
from course_utils.machines import fields, recorded
from course_utils.machines.recorded import Recording, Size
from course_utils.predict import DTYPE_BYTES
from course_utils.quantities import Number, rate_text, seconds_text

SAME_WITHIN = 0.1  # a repeated product's two times, where its samples do not spread further
WIDEST_SPREAD = 0.5  # that excuses a difference
# Where no sheet gives a peak, the largest rate of a few shapes takes its place, and other shapes may exceed it.
# On a CPU without units for it, fp16 was seen at 1.41 times that.
OVER_A_MEASURED_PEAK = 1.5
MOST_SAID = 20


def review(path: Path) -> list[str]:
    """A sentence on everything that speaks against adding the recording in that file; none, and it may be added."""
    try:
        wrong = list(fields.problems(recorded.json_in(path)))
    except ValueError as error:
        wrong = [str(error)]
    if wrong:
        return wrong
    recording = recorded.read(path)
    return [*_machine(recording), *_rates(recording), *_repeats(recording), *_twin(path, recording)]


def _machine(recording: Recording) -> Iterator[str]:
    machine, sheet = recording.machine, MACHINES.get(recording.machine.name)
    if sheet and not machine.has_data_sheet:
        yield f"machine.has_data_sheet: there is a data sheet of {machine.name} in datasheets.toml. Record again with this version."
    elif machine.has_data_sheet and not sheet:
        yield f"machine.name: no data sheet here is called {machine.name!r}. Add it to datasheets.toml, or set has_data_sheet to false."
    elif sheet:
        for name in ("peak_flop_per_sec", "sparse_flop_per_sec", "bytes", "bytes_per_sec"):
            if getattr(machine, name) != getattr(sheet, name):
                yield f"machine.{name} is not that of the data sheet of {machine.name} in datasheets.toml. Record again with this version."


def _limits(recording: Recording) -> tuple[Number, str]:
    """By how many times a rate may exceed the machine's peak, and what that peak is."""
    if recording.machine.has_data_sheet:
        return 1, "the dense peak"
    return OVER_A_MEASURED_PEAK, f"{OVER_A_MEASURED_PEAK} times the largest rate that was measured"


def _rates(recording: Recording) -> Iterator[str]:
    factor, what = _limits(recording)
    peaks = recording.machine.peak_flop_per_sec
    for dtype, seconds_by_size in recording.seconds_by_size.items():
        if dtype not in DTYPE_BYTES:
            yield f"products.{dtype}: no dtype is called that here; there are: {', '.join(DTYPE_BYTES)}."
        elif dtype not in peaks:
            yield f"products.{dtype}: machine.peak_flop_per_sec has no {dtype}, so its rates cannot be judged."
        else:
            for size, seconds in seconds_by_size.items():
                rate, limit = 2 * math.prod(size) / seconds, factor * peaks[dtype]
                if rate > limit:
                    yield (
                        f"products.{dtype}: {_sizes(size)} in {seconds_text(seconds)} are {rate_text(rate)}, above "
                        f"{what}, {rate_text(limit)}. Either the time is wrong or not all of the work was done."
                    )
    for one in recording.workloads:
        if one.flops and one.dtype not in peaks:
            yield f"workloads: machine.peak_flop_per_sec has no {one.dtype}, so {one.name} cannot be judged."
        elif one.flops and one.flop_per_sec > factor * peaks[one.dtype]:
            yield f"workloads: {one.name} at {rate_text(one.flop_per_sec)} is above {what}, {rate_text(factor * peaks[one.dtype])}."


def _repeats(recording: Recording) -> Iterator[str]:
    if recording.source:
        return  # others timed nothing twice, and that is among what is not said
    for dtype in recording.seconds_by_size:
        if dtype not in (one.dtype for one in recording.repeats):
            yield f"repeats: no product in {dtype} was timed twice. Record again with this version."
    for one in recording.repeats:
        first = recording.seconds_by_size.get(one.dtype, {}).get(one.size)
        if first is None:
            yield f"repeats: {_sizes(one.size)} in {one.dtype} is not among the products."
            continue
        ratio = max(first, one.seconds) / min(first, one.seconds)
        allowed = 1 + max(SAME_WITHIN, min(one.spread, WIDEST_SPREAD))
        if ratio > allowed:
            yield (
                f"repeats: {_sizes(one.size)} in {one.dtype} took {seconds_text(first)} and later {seconds_text(one.seconds)}, "
                f"{ratio:.2f} times apart where {allowed:.2f} is allowed. Something else ran; record again when it is quiet."
            )


def _twin(path: Path, recording: Recording) -> Iterator[str]:
    for other in sorted(recorded.FOLDER.glob("*.json")):
        if other.resolve() != path.resolve() and _name(other) == recording.name:
            yield f"machine.name: {other.name} is a recording of {recording.name} already. Replace that file if yours is better."


def _name(path: Path) -> str:
    try:
        return recorded.read(path).name
    except ValueError:
        return ""


def _sizes(size: Size) -> str:
    return " × ".join(f"{side:,}" for side in size)


def main(arguments: list[str]) -> int:
    """Say whether the recording may be added; 0 if it may."""
    if len(arguments) != 1 or not arguments[0]:
        print("Which recording? Say it so: make recording FILE=path/to/recording.json")
        return 2
    path = Path(arguments[0]).expanduser()
    wrong = review(path)
    if wrong:
        more = [f"and {len(wrong) - MOST_SAID} more of the kind."] if len(wrong) > MOST_SAID else []
        print(f"{path.name} may not be added:", *wrong[:MOST_SAID], *more, sep="\n- ")
        return 1
    recording = recorded.read(path)
    number, (_, what) = sum(map(len, recording.seconds_by_size.values())), _limits(recording)
    repeats = ", and each that was timed twice took as long both times" if recording.repeats else ""
    print(f"{path.name} may be added: {recording.name}, {number} products, none above {what}{repeats}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
