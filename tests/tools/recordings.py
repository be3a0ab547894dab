"""Builds the recordings by others from what they published: `make recordings`.

`measured_elsewhere.json` beside this file holds their products as they stand in their tables, with source, licence,
method and what is not said. What is taken, under which name, and what is kept apart in doubt, is said here.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from course_utils.machines import MACHINES, Machine, Recording, Size, recorded
from course_utils.machines.recorded import SetApart, Source
from course_utils.quantities import Number, rate_text

PUBLISHED = Path(__file__).with_name("measured_elsewhere.json")
# What a compiler most likely makes of "f32": its best rates are above fp32's peak.
NVIDIAS_F32, AMDS_F32 = "tf32", "xf32"
CALLED_HERE = {"bf16": "bf16", "fp8 E4M3": "fp8", "fp32": "fp32", "fp16 (tensor cores)": "fp16"}
UNEXPLAINED = (
    "and the table does not say what the compiler made of it: this GPU has neither tf32 nor xf32 units, and its fp32 units "
    "reach 157.3 TFLOP/s, not the 238.6 of the fastest"
)
SUMS = "the format of fp16's sums: the stored code asks for fp16"
TOO_FAST = "among which the square product of 4,096 is 2.99 times as fast as in bf16, where the hardware allows twice"


@dataclass(frozen=True)
class Taken:
    """One GPU of the published tables: who measured it, on which data sheet it is held, and what "f32" was."""

    gpu: str
    by: str
    sheet: str
    published: str
    f32: str | None = None
    also_not_said: str = ""


TAKEN = (
    Taken(
        "H100 SXM",
        "OpenXLA",
        "H100 SXM",
        "2025-10-21",
        NVIDIAS_F32,
        "SXM is taken, because 780 TFLOP/s are more than the PCIe card's 756; an NVL, an H200 and a GH200 are not excluded",
    ),
    Taken("B200", "OpenXLA", "B200", "2025-10-21", NVIDIAS_F32),
    Taken("MI300X", "AMD", "MI300X", "2026-06-11", AMDS_F32),
    Taken("MI355X", "AMD", "MI355X", "2026-06-29"),
    Taken("T4", "DeepBench", "T4", "2020-08-11", also_not_said=f"power limit, clocks, {SUMS}"),
    Taken(
        "V100",
        "DeepBench",
        "V100 SXM2",
        "2020-08-11",
        also_not_said=f"clocks, {SUMS}, and the board: SXM2 is taken, because 14.8 TFLOP/s in fp32 are more than the PCIe card's 14",
    ),
)


def built() -> dict[str, str]:
    """Each recording's text by the name of its file."""
    published = {one["gpu"]: one for one in json.loads(PUBLISHED.read_text(encoding="utf-8"))["gpus"]}
    if set(published) != {one.gpu for one in TAKEN}:
        raise ValueError(f"Published are {', '.join(published)}; say for each of them what is taken.")
    recordings = (recording_of(one, published[one.gpu]) for one in TAKEN)
    return {recording.file_name: recorded.text_of(recording) for recording in recordings}


def recording_of(taken: Taken, published: dict) -> Recording:
    """What others published, in our format: seconds by size, and apart what cannot be or has no name."""
    sheet = MACHINES[taken.sheet]
    used: dict[str, dict[Size, Number]] = {}
    set_apart: list[SetApart] = []
    for theirs, rows in published["products"].items():
        seconds = {tuple(size): _seconds(size, value, published["unit"]) for *size, value in rows}
        ours = taken.f32 if theirs.startswith("f32 ") else CALLED_HERE[theirs]
        if ours is None or (taken.gpu, ours) == ("MI300X", "fp8"):
            set_apart.append(SetApart(ours or "f32", TOO_FAST if ours else UNEXPLAINED, seconds))
            continue
        for why, in_doubt in _suspicions(sheet, ours, seconds, used.get("bf16", {})):
            apart = {size: s for size, s in seconds.items() if in_doubt(size, s)}
            set_apart.append(SetApart(ours, why, apart))
            seconds = {size: s for size, s in seconds.items() if size not in apart}
        used[ours] = seconds
    silences = published.get("not said"), taken.also_not_said, "software versions; when it was measured"
    best = {dtype: max(_rate(size, s) for size, s in table.items()) for dtype, table in used.items()}
    found = f"the largest rate in {taken.by}'s table that is not in doubt"
    by_them = [published[name] for name in ("source", "licence", "method")]
    return Recording(
        machine=replace(sheet, achieved_flop_per_sec=best, achieved_source=found),
        taken=taken.published,
        software=_software(published.get("machine")),
        seconds_by_size=used,
        source=Source(taken.by, *by_them, "; ".join(filter(None, silences))),
        set_apart=tuple(set_apart),
    )


def _seconds(size: list[int], value: Number, unit: str) -> float:
    """Of a rate to six digits, which is more than was measured."""
    return value if unit == "seconds" else float(f"{2 * math.prod(size) / value:.6g}")


def _rate(size: Size, seconds: Number) -> Number:
    return 2 * math.prod(size) / seconds


def _suspicions(
    sheet: Machine, dtype: str, seconds: dict[Size, Number], in_bf16: dict[Size, Number]
) -> Iterator[tuple[str, Callable[[Size, Number], bool]]]:
    """Why products of this table are in doubt, and which: those that cannot be, and then others that are no better."""
    peak, found = sheet.peak(dtype), sheet.achieved_flop_per_sec.get(dtype)
    if max(_rate(size, s) for size, s in seconds.items()) > peak:
        yield f"above the dense peak of the data sheet, {rate_text(peak)}", lambda *one: _rate(*one) > peak
        if found:
            where = "in the same table and above all that a search found on such a GPU"
            yield f"{where}, {rate_text(found)}", lambda *one: _rate(*one) > found
        if in_bf16:
            times = peak / sheet.peak("bf16")
            faster = f"more than {times:g} times as fast as in bf16: more than the peaks allow"
            yield f"in the same table and {faster}", lambda size, s: times * s < in_bf16.get(size, 0)


def _software(machine: dict | None) -> str:
    if not machine:
        return "not said"
    names = {"CUDA": "CUDA Version", "cuDNN": "Cudnn Version"}
    names |= {"driver": "Nvidia Driver", "Linux": "Linux Kernel Version"}
    return ", ".join(f"{ours} {machine[theirs]}" for ours, theirs in names.items())


def main() -> None:
    """Write all of them, and say what was taken and what was not."""
    for name, text in built().items():
        (recorded.FOLDER / name).write_text(text, encoding="utf-8")
        recording = recorded.read(recorded.FOLDER / name)
        taken = ", ".join(f"{len(table)} in {dtype}" for dtype, table in recording.seconds_by_size.items())
        doubts = "".join(
            f"\n  In doubt: {len(doubt.seconds_by_size)} in {doubt.dtype}, {doubt.why}."
            for doubt in recording.set_apart
        )
        print(f"{name}: {taken}.{doubts}")


if __name__ == "__main__":
    main()
