"""Builds the recordings by others from what they published: `make recordings`.

`measured_elsewhere.json` beside this file holds their products as they stand in their tables, with source, licence,
method, what is not said, and what is in doubt. "f32" is what a compiler most likely makes of it: its best rates are
above fp32's peak.
"""

import json
import math
from dataclasses import replace
from pathlib import Path

from course_utils.core.say import Number
from course_utils.subjects.machines import MACHINES, MatmulSize, Recording
from course_utils.subjects.machines import recording as recording_files
from course_utils.subjects.machines.recording import SetApart, Source

PUBLISHED = Path(__file__).with_name("measured_elsewhere.json")
CALLED_HERE = {"bf16": "bf16", "fp8 E4M3": "fp8", "fp32": "fp32", "fp16 (tensor cores)": "fp16"}
LEAST_SHARE = 0.9  # of the time of a product with a shorter D


def built() -> dict[str, str]:
    """Each recording's text by the name of its file."""
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))["gpus"]
    return {one.file_name: recording_files.text_of(one) for one in map(recording_of, published)}


def recording_of(published: dict) -> Recording:
    """What others published, in our format: seconds by size, and apart what is in doubt."""
    sheet, by = MACHINES[published["sheet"]], published["by"]
    used: dict[str, dict[MatmulSize, Number]] = {}
    set_apart: list[SetApart] = []
    for theirs, rows in published["products"].items():
        seconds = {tuple(size): _seconds(size, value, published["unit"]) for *size, value in rows}
        ours = CALLED_HERE.get(theirs, published["f32"])
        if why := published.get("in doubt", {}).get(ours):
            set_apart.append(SetApart(ours, why, seconds))
            continue
        if why := published.get("faster with more to do"):
            faster = _faster_with_more_to_do(seconds)
            set_apart.append(SetApart(ours, why, faster))
            seconds = {size: s for size, s in seconds.items() if size not in faster}
        used[ours] = seconds
    silences = published.get("not said"), "software versions; when it was measured"
    best = {
        dtype: max(_rate(size, s) for size, s in table.items()) for dtype, table in used.items()
    }
    found = f"the largest rate in {by}'s table that is not in doubt"
    by_them = [published[name] for name in ("source", "licence", "method")]
    return Recording(
        machine=replace(sheet, achieved_flop_per_sec=best, achieved_source=found),
        taken=published["published"],
        software=_software(published.get("machine")),
        seconds_by_size=used,
        source=Source(by, *by_them, "; ".join(filter(None, silences))),
        set_apart=tuple(set_apart),
    )


def _seconds(size: list[int], value: Number, unit: str) -> float:
    """Of a rate to six digits, which is more than was measured."""
    return value if unit == "seconds" else float(f"{2 * math.prod(size) / value:.6g}")


def _rate(size: MatmulSize, seconds: Number) -> Number:
    return 2 * math.prod(size) / seconds


def _faster_with_more_to_do(seconds: dict[MatmulSize, Number]) -> dict[MatmulSize, Number]:
    """Products that clearly take less time than the same with a shorter D."""

    def is_too_fast(b: int, d: int, k: int) -> bool:
        shorter = [s for size, s in seconds.items() if size[::2] == (b, k) and size[1] < d]
        return seconds[b, d, k] < LEAST_SHARE * max(shorter, default=0)

    return {size: s for size, s in seconds.items() if is_too_fast(*size)}


def _software(machine: dict | None) -> str:
    if not machine:
        return "not said"
    names = {"CUDA": "CUDA Version", "cuDNN": "Cudnn Version"}
    names |= {"driver": "Nvidia Driver", "Linux": "Linux Kernel Version"}
    return ", ".join(f"{ours} {machine[theirs]}" for ours, theirs in names.items())


def main() -> None:
    """Write all of them, and say what was taken and what was not."""
    for name, text in built().items():
        (recording_files.FOLDER / name).write_text(text, encoding="utf-8")
        recording = recording_files.read(recording_files.FOLDER / name)
        taken = ", ".join(
            f"{len(table)} in {dtype}" for dtype, table in recording.seconds_by_size.items()
        )
        doubts = "".join(
            f"\n  In doubt: {len(doubt.seconds_by_size)} in {doubt.dtype}, {doubt.why}."
            for doubt in recording.set_apart
        )
        print(f"{name}: {taken}.{doubts}")


if __name__ == "__main__":
    main()
