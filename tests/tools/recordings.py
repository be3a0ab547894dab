"""Builds the recordings by others from what they published: `make recordings`.

`measured_elsewhere.json` beside this file holds their matrix products as their tables have them,
with source, licence, method, what is not said, and what is in doubt. Where a table's best rates in
f32 are above fp32's peak, "f32" says in which format the compiler most likely multiplied.
"""

import json
import math
from dataclasses import replace
from pathlib import Path

from course_utils.core.datasheets import Machine
from course_utils.core.say import Number
from course_utils.subjects.machines import MACHINES, MatmulSize, Recording
from course_utils.subjects.machines import recording as recording_files
from course_utils.subjects.machines.recording import SetApart, Source

PUBLISHED = Path(__file__).with_name("measured_elsewhere.json")
# Their names of formats, and ours. "f32" is not here: each GPU's entry says which format that is.
CALLED_HERE = {"bf16": "bf16", "fp8 E4M3": "fp8", "fp32": "fp32", "fp16 (tensor cores)": "fp16"}
# A product is in doubt if it takes less than this share of the time of one with a shorter D.
LEAST_SHARE = 0.9


def built() -> dict[str, str]:
    """Return each recording's text by the name of its file."""
    texts = {}
    for published in json.loads(PUBLISHED.read_text(encoding="utf-8"))["gpus"]:
        recording = recording_of(published)
        texts[recording.file_name] = recording_files.text_of(recording)
    return texts


def recording_of(published: dict) -> Recording:
    """Return what others published, in our format; what is in doubt is set apart."""
    used: dict[str, dict[MatmulSize, Number]] = {}
    set_apart: list[SetApart] = []
    doubts = published.get("in doubt", {})
    for theirs, rows in published["products"].items():
        dtype = CALLED_HERE.get(theirs, published["f32"])
        seconds = _seconds_by_size(rows, published["unit"])
        if dtype in doubts:
            set_apart.append(SetApart(dtype, doubts[dtype], seconds))
            continue
        why = published.get("faster with more to do")
        if why:
            faster = _faster_with_more_to_do(seconds)
            set_apart.append(SetApart(dtype, why, faster))
            seconds = {size: s for size, s in seconds.items() if size not in faster}
        used[dtype] = seconds
    return Recording(
        machine=_machine(published, used),
        taken=published["published"],
        software=_software(published.get("machine")),
        seconds_by_size=used,
        source=_source(published),
        set_apart=tuple(set_apart),
    )


def _machine(published: dict, used: dict[str, dict[MatmulSize, Number]]) -> Machine:
    """Return the machine by its data sheet, with the best rates that are not in doubt."""
    best = {}
    for dtype, seconds_by_size in used.items():
        best[dtype] = max(_rate(size, seconds) for size, seconds in seconds_by_size.items())
    return replace(
        MACHINES[published["sheet"]],
        achieved_flop_per_sec=best,
        achieved_source=f"the largest rate in {published['by']}'s table that is not in doubt",
    )


def _source(published: dict) -> Source:
    """Return who published what, where, by which licence and method, and what they do not say."""
    by, where, licence, method = (published[key] for key in ("by", "source", "licence", "method"))
    not_said = "software versions; when it was measured"
    if published.get("not said"):
        not_said = f"{published['not said']}; {not_said}"
    return Source(by, where, licence, method, not_said)


def _seconds_by_size(rows: list[list], unit: str) -> dict[MatmulSize, Number]:
    """Return the seconds of each product. A row has B, D and K, and the seconds or a rate."""
    seconds = {}
    for *size, value in rows:
        if unit == "seconds":
            seconds[tuple(size)] = value
        else:
            # Six digits are more than a rate was measured to.
            seconds[tuple(size)] = float(f"{2 * math.prod(size) / value:.6g}")
    return seconds


def _rate(size: MatmulSize, seconds: Number) -> Number:
    """Return the product's FLOP/s."""
    return 2 * math.prod(size) / seconds


def _faster_with_more_to_do(seconds: dict[MatmulSize, Number]) -> dict[MatmulSize, Number]:
    """Return the products that clearly take less time than another of same B and K, shorter D."""
    faster = {}
    for size, own_s in seconds.items():
        b, d, k = size
        shorter = [s for (b2, d2, k2), s in seconds.items() if (b2, k2) == (b, k) and d2 < d]
        if own_s < LEAST_SHARE * max(shorter, default=0):
            faster[size] = own_s
    return faster


def _software(machine: dict | None) -> str:
    """Return the versions that they state, such as "CUDA …, cuDNN …", or "not said"."""
    if not machine:
        return "not said"
    names = {
        "CUDA": "CUDA Version",
        "cuDNN": "Cudnn Version",
        "driver": "Nvidia Driver",
        "Linux": "Linux Kernel Version",
    }
    return ", ".join(f"{ours} {machine[theirs]}" for ours, theirs in names.items())


def main() -> None:
    """Write all recordings, and say how many products each has, and which are set apart."""
    for name, text in built().items():
        path = recording_files.FOLDER / name
        path.write_text(text, encoding="utf-8")
        recording = recording_files.read(path)
        counts = []
        for dtype, table in recording.seconds_by_size.items():
            counts.append(f"{len(table)} in {dtype}")
        print(f"{name}: {', '.join(counts)}.")
        for doubt in recording.set_apart:
            print(f"  In doubt: {len(doubt.seconds_by_size)} in {doubt.dtype}, {doubt.why}.")


if __name__ == "__main__":
    main()
