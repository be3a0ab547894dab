"""Everything that wants a GPU, in one go, for whoever has one. Called by `make gpu`.

Tests, the timer beside others, the recording, the notebooks: each bounded in time, and one that fails does not keep the
next from running. It needs torch and pytest; without Jupyter the labs are left out.
"""

import importlib.metadata
import subprocess
import sys
import time
import tomllib

import torch

from tests import ROOT

PARTS = {  # by name: the longest it may take, and how it is called
    "tests": (300, ["-m", "pytest", "-o", "addopts=", "-q", "-rs", "tests/gpu/test_gpu.py"]),
    "bench": (270, ["-m", "tests.tools.bench_gpu"]),
    "record": (480, ["-m", "course_utils.subjects.machines"]),
    "notebooks": (600, ["-m", "tests.tools.shown_here"]),
}


def differing() -> list[str]:
    """The course's packages that are here in another version than the pinned one, or not at all."""
    pinned = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "dependencies"
    ]
    found = []
    for name, version in (line.split("==") for line in pinned):
        try:
            here = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            here = "missing"
        if here.partition("+")[0] != version:
            found.append(f"{name} {here} (pinned: {version})")
    return found


def run(name: str) -> str:
    """One part, in a process of its own; how it ended, in words."""
    longest_s, arguments = PARTS[name]
    print(f"\n==== {name}: at most {longest_s} s", flush=True)
    begun = time.monotonic()
    try:
        ended = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, check=False, timeout=longest_s
        ).returncode
    except subprocess.TimeoutExpired:
        return f"{name}: ended after {longest_s} s"
    return f"{name}: {'done' if not ended else f'failed ({ended})'} in {time.monotonic() - begun:.0f} s"


def main(names: list[str]) -> int:
    """`make gpu`, or `make gpu ARGS="tests bench"` for some of it."""
    if unknown := [name for name in names if name not in PARTS]:
        print(f"There is no part {', '.join(unknown)}. There are: {', '.join(PARTS)}.")
        return 2
    if not torch.cuda.is_available():
        print("There is no NVIDIA GPU here that torch can use; nothing was run.")
        return 1
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Python {sys.version.split()[0]}"
    )
    if other := differing():
        print(f"Other than pinned: {', '.join(other)}.", flush=True)
    endings = [run(name) for name in names or PARTS]
    print("\n" + "\n".join(endings))
    return int(any(": done" not in ending for ending in endings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
