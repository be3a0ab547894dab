"""Runs everything that needs a GPU: `make gpu`.

These are the tests, our timer beside others, a recording, and the notebooks. Each part is bounded
in time, and if one fails, the next ones still run. It needs torch and pytest; without Jupyter the
labs are left out.
"""

import importlib.metadata
import platform
import subprocess
import sys
import time
import tomllib

import torch

from tests import ROOT

PARTS = {  # by name, the seconds that it may take, and the arguments for Python
    "tests": (300, ["-m", "pytest", "-o", "addopts=", "-q", "-rs", "tests/gpu/test_gpu.py"]),
    "bench": (270, ["-m", "tests.tools.bench_gpu"]),
    "record": (480, ["-m", "course_utils.subjects.machines"]),
    "notebooks": (600, ["-m", "tests.tools.shown_here"]),
}


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


def run(name: str) -> str:
    """Run one part in a process of its own, and say how it ended."""
    longest_s, arguments = PARTS[name]
    print(f"\n==== {name}: at most {longest_s} s", flush=True)
    begun = time.monotonic()
    command = [sys.executable, *arguments]
    try:
        process = subprocess.run(command, cwd=ROOT, check=False, timeout=longest_s)
    except subprocess.TimeoutExpired:
        return f"{name}: ended after {longest_s} s"
    took_s = time.monotonic() - begun
    if process.returncode:
        return f"{name}: failed ({process.returncode}) in {took_s:.0f} s"
    return f"{name}: done in {took_s:.0f} s"


def main(names: list[str]) -> int:
    """Run all parts, or those that `make gpu ARGS="tests bench"` names."""
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
    endings = [run(name) for name in names or PARTS]
    print("\n" + "\n".join(endings))
    all_done = all(": done" in ending for ending in endings)
    return 0 if all_done else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
