"""Writes what `make gpu` measured into the files of the course.

    python -m tests.tools.gpu_results folder_of_the_h100 folder_of_the_h200

A folder is what `python -m tests.tools.on_gpu --to folder` has filled on that GPU. The recordings
in it are copied, and of the steps only what the course tells is kept.
"""

import json
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path

from course_utils.core.accountant import Model
from course_utils.subjects.machines import by_us
from course_utils.subjects.machines import recording as recording_files
from tests.tools import gpu_steps

# An operation's name on a GPU, and the name that the course's predictions have for it.
CALLED_HERE = {
    "_fused_rms_norm": "rms_norm",
    "_fused_rms_norm_backward": "rms_norm_backward",
    "_scaled_dot_product_cudnn_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_cudnn_attention_backward": "scaled_dot_product_attention_backward",
}


def moments(operations: list[list]) -> list[list]:
    """Return the operations that made or freed something, as [name, during, after].

    What is held after an operation is what is held before the next one of these. All is counted
    from what is held before the first. The optimizer's update is left out.
    """
    kept = []
    for name, before, most, after in operations:
        if most > before or after != before:
            short = name.removeprefix("aten.")
            kept.append((CALLED_HERE.get(short, short), before, most))
    _, base, *_ = operations[0]
    rows = []
    for (name, _, most), (_, next_before, _) in pairwise(kept):
        rows.append([name, most - base, next_before - base])
    while rows[-1][0] == "_to_copy":  # the optimizer copies each gradient to fp32
        rows.pop()
    return rows


def step_of(found: dict, way: str) -> dict[str, object]:
    """Return what is told of a step, "plain" or "recomputed"."""
    time = found[f"{way}: time"]
    energy = found[f"{way}: energy"]
    told = {
        "state_bytes": found[f"{way}: state bytes"],
        "peak_bytes": found[f"{way}: peak bytes"],
        "seconds": float(f"{time['seconds']:.4g}"),
        "spread": float(f"{time['spread']:.2g}"),
        "joules": float(f"{energy['joules']:.4g}"),
        "watts": float(f"{energy['watts']:.4g}"),
    }
    reserved = found.get(f"{way}: reserved bytes")
    if reserved:
        told["reserved_bytes"] = reserved["reserved"]
        told["used_bytes"] = reserved["used"]
    return told


def decode_of(found: dict) -> dict[str, object]:
    """Return the seconds of a step of decoding, by the number of users."""
    sizes = found["sizes"]
    told = {"tokens": sizes["tokens"], "seconds": {}, "without_cache_seconds": {}}
    for users in sizes["users"]:
        with_cache = found[f"{users} users: time"]["seconds"]
        without = found[f"{users} users, without the cache: time"]["seconds"]
        told["seconds"][users] = float(f"{with_cache:.4g}")
        told["without_cache_seconds"][users] = float(f"{without:.4g}")
    return told


def mixture_of(found: dict) -> dict[str, object]:
    return {
        **found["sizes"],
        "kept_bytes": found["kept bytes"],
        "peak_bytes": found["peak bytes"],
        "state_bytes": found["state bytes"],
        "forward_flops": found["forward FLOPs"],
        "seconds": float(f"{found['time']['seconds']:.4g}"),
        "spread": float(f"{found['time']['spread']:.2g}"),
        "samples": found["time"]["samples"],
        "watts": float(f"{found['energy']['watts']:.4g}"),
        "operations": len(found["operations"]),
    }


def largest_of(found: dict) -> dict[str, object]:
    """Return, for each batch that was tried, whether it fitted in each way of allocating."""
    told = {**found["sizes"], "predicted_batch": found["predicted largest batch"]}
    for way in ("as it is", "expandable"):
        tried = {}
        for name, what in found.items():
            way_of_it, _, batch = name.partition(": a batch of ")
            if way_of_it == way:
                tried[batch] = {key: what[key] for key in ("predicted", "held", "reserved", "fits")}
                tried[batch] |= said_in(what.get("error", ""))
        told[way] = tried
    return told


def said_in(error: str) -> dict[str, float]:
    """Return what torch's message says when memory ran out; nothing if the message is empty."""
    if not error:
        return {}
    asked = re.search(r"Tried to allocate ([\d.]+) GiB", error)
    unallocated = re.search(r"([\d.]+) ([GM])iB is reserved by PyTorch but unallocated", error)
    gib = float(unallocated[1]) if unallocated[2] == "G" else float(unallocated[1]) / 1024
    return {"asked_gib": float(asked[1]), "unallocated_gib": round(gib, 2)}


def transformers_of(found: dict) -> dict[str, object]:
    told = {"version": found["version"]}
    for who in ("theirs", "ours"):
        told[who] = {
            "kept_bytes": found[f"{who}: kept"],
            "forward_flops": found[f"{who}: FLOPs"],
            "seconds": float(f"{found[f'{who}: time']['seconds']:.4g}"),
        }
    return told


def rounded(timers: dict) -> dict[str, dict[str, list[float]]]:
    """Return the errors of each way of timing, in each state of the machine, to three digits."""
    told = {}
    for state, errors_by_way in timers.items():
        told[state] = {}
        for way, errors in errors_by_way.items():
            told[state][way] = [round(error, 3) for error in errors]
    return told


def told_of(folder: Path) -> dict[str, object]:
    """Return what the course tells of one GPU's folder."""

    def read(name: str) -> dict:
        path = folder / f"{name}.json"
        found = json.loads(path.read_text(encoding="utf-8"))
        lacking = gpu_steps.missing(found)
        if lacking:
            raise ValueError(f"{path} has no {', '.join(lacking)}: measure this part again.")
        return found

    step = read("step")
    product = step["product of 8192: energy"]
    told = {
        "batch": step["sizes"]["batch"],
        "sequence": step["sizes"]["sequence"],
        "idle_watts": float(f"{step['idle watts']:.3g}"),
        "step": step_of(step, "plain"),
        "recomputed": step_of(step, "recomputed"),
        "product": {
            "n": 8192,
            "seconds_in_a_loop": float(f"{product['took_s'] / product['calls']:.4g}"),
            "joules": float(f"{product['joules']:.4g}"),
        },
        "decode": decode_of(read("decode")),
    }
    makers = {"mixture": mixture_of, "largest": largest_of, "theirs": transformers_of}
    for name, make in makers.items():
        if (folder / f"{name}.json").exists():
            told["transformers" if name == "theirs" else name] = make(read(name))
    if (folder / "timers.json").exists():
        told["timers"] = rounded(read("timers"))
    return told


def fields_of(model: dict) -> dict[str, object]:
    """Return a model's fields, without those that have their default."""
    defaults = {name: field.default for name, field in Model.__dataclass_fields__.items()}
    return {name: value for name, value in model.items() if value not in (defaults[name], [])}


def main(of_h100: str, of_h200: str) -> None:
    folders = dict(zip(by_us.GPUS, (Path(of_h100), Path(of_h200)), strict=True))
    step = json.loads((folders["H100 SXM"] / "step.json").read_text(encoding="utf-8"))
    mixture = json.loads((folders["H100 SXM"] / "mixture.json").read_text(encoding="utf-8"))
    told = {
        "model": fields_of(step["model"]),
        "mixture model": fields_of(mixture["model"]),
        **{name: told_of(folder) for name, folder in folders.items()},
    }
    by_us.FOLDER.mkdir(exist_ok=True)
    # A list of numbers takes one line.
    text = re.sub(r"\[[^][{}]+\]", lambda row: " ".join(row[0].split()), json.dumps(told, indent=1))
    text += "\n"
    (by_us.FOLDER / "steps.json").write_text(text, encoding="utf-8")
    for way, name in (("plain", "h100_step"), ("recomputed", "h100_recomputed")):
        rows = moments(step[f"{way}: operations"])
        text = "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"
        (by_us.FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    for folder in folders.values():
        for path in folder.glob("*_sxm.json"):
            shutil.copy(path, recording_files.FOLDER / path.name)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("Which folders? python -m tests.tools.gpu_results of_the_h100 of_the_h200")
    main(*sys.argv[1:])
