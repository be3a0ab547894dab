"""Whether a recording may be added: `python -m course_utils.machines.review FILE`, or `make recording FILE=...`."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

from course_utils.datasheets import MACHINES
from course_utils.machines import fields, recorded
from course_utils.machines.recorded import Recording
from course_utils.predict import DTYPE_BYTES
from course_utils.quantities import rate_text, seconds_text

SAME_WITHIN = 0.1  # a repeated product's two times, where its samples do not spread further
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
    machine = recording.machine
    if not machine.has_data_sheet:
        return
    sheet = MACHINES.get(machine.name)
    if sheet is None:
        yield f"machine.name: no data sheet here is called {machine.name!r}. Add it to datasheets.py, or set has_data_sheet to false."
    elif (sheet.peak_flop_per_sec, sheet.bytes_per_sec) != (machine.peak_flop_per_sec, machine.bytes_per_sec):
        yield f"machine: its rates are not those of the data sheet of {machine.name} in datasheets.py. Record again with this version."


def _rates(recording: Recording) -> Iterator[str]:
    machine = recording.machine
    factor = 1 if machine.has_data_sheet else OVER_A_MEASURED_PEAK
    what = (
        "dense peak"
        if machine.has_data_sheet
        else f"largest rate that was measured, even {factor} times that"
    )
    for dtype, seconds_by_size in recording.seconds_by_size.items():
        if dtype not in machine.peak_flop_per_sec or dtype not in DTYPE_BYTES:
            yield f"products.{dtype}: machine.peak_flop_per_sec has no {dtype}, so its rates cannot be judged."
            continue
        limit = factor * machine.peak_flop_per_sec[dtype]
        for size, seconds in seconds_by_size.items():
            rate = 2 * math.prod(size) / seconds
            if rate > limit:
                yield (
                    f"products.{dtype}: {_sizes(size)} in {seconds_text(seconds)} are {rate_text(rate)}, above the "
                    f"{what}, {rate_text(limit)}. Either the time is wrong or not all of the work was done."
                )
    for one in recording.workloads:
        limit = factor * machine.peak_flop_per_sec.get(one.dtype, math.inf)
        if one.flop_per_sec > limit:
            yield f"workloads: {one.name} at {rate_text(one.flop_per_sec)} is above the {what}, {rate_text(limit)}."


def _repeats(recording: Recording) -> Iterator[str]:
    if recording.source:
        return  # others timed nothing twice, and that is among what is not said
    if not recording.repeats:
        yield "repeats: no product was timed twice. Record again with this version."
    for one in recording.repeats:
        first = recording.seconds_by_size.get(one.dtype, {}).get(one.size)
        if first is None:
            yield f"repeats: {_sizes(one.size)} in {one.dtype} is not among the products."
            continue
        ratio, allowed = max(first, one.seconds) / min(first, one.seconds), 1 + max(SAME_WITHIN, one.spread)
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


def _sizes(size: recorded.Size) -> str:
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
    products = sum(map(len, recording.seconds_by_size.values()))
    repeats = ", and each that was timed twice took as long both times" if recording.repeats else ""
    print(f"{path.name} may be added: {recording.name}, {products} products, none above its peak{repeats}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
