"""Runs everything that needs a GPU: `make gpu`, or `python -m tests.tools.on_gpu`.

These are a recording, the tests, our timer beside others, training steps, decoding, and the
notebooks: in the order of their worth, in nine minutes at most. Each part is bounded in time, and
if one fails, the next ones still run. It needs torch and pytest; the energy needs nvidia-ml-py,
"theirs" transformers, and "notebooks" IPython. Without Jupyter's widgets, labs are left out. What
is measured is written to a folder, `gpu` or another:

    python -m tests.tools.on_gpu --to results step decode
"""

import argparse
import importlib.metadata
import os
import platform
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path

import torch

from tests import ROOT

FOLDER = "{folder}"  # stands for the folder of the results
STEPS = ["-m", "tests.tools.gpu_steps"]
RECORDING_S = 130
# By name, the seconds that each part may take, and the arguments for Python.
PARTS = {
    "record": (
        RECORDING_S + 15,
        ["-m", "course_utils.chapters.flops.new_recording", FOLDER, f"{RECORDING_S}"],
    ),
    "tests": (
        60,
        ["-m", "pytest", "-o", "addopts=", "--noconftest", "-q", "-rs", "tests/gpu/test_gpu.py"],
    ),
    "step": (60, [*STEPS, "step", FOLDER]),
    "bench": (65, ["-m", "tests.tools.bench_gpu", FOLDER]),
    "mixture": (35, [*STEPS, "mixture", FOLDER]),
    "decode": (20, [*STEPS, "decode", FOLDER]),
    "largest": (30, [*STEPS, "largest", FOLDER]),
    "theirs": (30, [*STEPS, "theirs", FOLDER]),
    "notebooks": (90, ["-m", "tests.tools.shown_here"]),
}
# A notebook's stored outputs were computed with one thread of a CPU. The other parts wait for the
# GPU, whatever number of threads they have.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def differing() -> list[str]:
    """Return the course's packages that are missing here, or not in the pinned version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = []
    for pin in project["dependencies"]:
        name, version = pin.split("==")
        try:
            here = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            here = "missing"
        if here.partition("+")[0] != version:
            found.append(f"{name} {here} (pinned: {version})")
    return found


def run(name: str, folder: Path) -> str:
    """Run one part in a process of its own, and say how it ended."""
    longest_s, arguments = PARTS[name]
    print(f"\n==== {name}: at most {longest_s} s", flush=True)
    begun = time.monotonic()
    filled = [str(folder) if argument == FOLDER else argument for argument in arguments]
    command = [sys.executable, *filled]
    environment = {**os.environ, **ONE_THREAD}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    try:
        process.wait(longest_s)
    except subprocess.TimeoutExpired:
        return f"{name}: ended after {longest_s} s"
    finally:  # the processes that a part has started end with it
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    took_s = time.monotonic() - begun
    if process.returncode:
        return f"{name}: failed ({process.returncode}) in {took_s:.0f} s"
    return f"{name}: done in {took_s:.0f} s"


def main(arguments: list[str]) -> int:
    """Run all parts, or those that `make gpu ARGS="tests bench"` names."""
    parser = argparse.ArgumentParser(prog="on_gpu", description="Run what needs a GPU.")
    parser.add_argument("--to", type=Path, default=ROOT / "gpu", help="the folder of the results")
    parser.add_argument("parts", nargs="*", help=f"some of these: {', '.join(PARTS)}")
    asked = parser.parse_args(arguments)
    folder = asked.to.resolve()
    names = asked.parts
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"There is no part {', '.join(unknown)}. There are: {', '.join(PARTS)}.")
        return 2
    if not torch.cuda.is_available():
        print("There is no NVIDIA GPU here that torch can use; nothing was run.")
        return 1
    python = platform.python_version()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Python {python}")
    other_versions = differing()
    if other_versions:
        print(f"Other than pinned: {', '.join(other_versions)}.", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    endings = [run(name, folder) for name in names or PARTS]
    print("\n" + "\n".join(endings))
    all_done = all(": done" in ending for ending in endings)
    return 0 if all_done else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
