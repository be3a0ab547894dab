"""The memory that this process may use: the machine's, or a container's or service's share of it.

Linux keeps the limit of a container or service in the process's control group, or in one above it.
What the system calls free memory is the whole machine's, whatever the limit is.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import psutil

OWN = Path("/proc/self/cgroup")  # names the groups that this process is in
MOUNTED = Path("/sys/fs/cgroup")  # has a folder for each group


class Names(NamedTuple):
    """How a version of control groups names its files, and a line in its file memory.stat."""

    limit: str
    used: str
    cached_files: str


V1 = Names("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = Names("memory.max", "memory.current", "inactive_file")


def memory_bytes() -> tuple[int, int]:
    """The bytes that this process may use, and how many of them are free without swapping.

    The smallest limit counts: the machine's memory, or that of a control group.
    """
    machine = psutil.virtual_memory()
    totals = [machine.total]
    frees = [machine.available]
    for folder, names in _groups():
        # A container may not see the folder, and a group without a limit has the limit "max".
        with suppress(OSError, ValueError):
            limit = int((folder / names.limit).read_text())
            used = _used_bytes(folder, names)
            totals.append(limit)
            frees.append(max(0, limit - used))
    return min(totals), min(frees)


def _used_bytes(folder: Path, names: Names) -> int:
    """The bytes that a group uses, without the cached files that were read long ago.

    The system counts these files as used memory, but drops them as soon as memory is needed.
    """
    lines = (folder / "memory.stat").read_text().splitlines()
    counts = dict(line.split() for line in lines)  # a line is such as "inactive_file 4096"
    used = int((folder / names.used).read_text())
    return used - int(counts.get(names.cached_files, 0))


def _groups() -> Iterator[tuple[Path, Names]]:
    """Yield the folder of this process's control group and of each above it, and `Names` for it."""
    with suppress(OSError):  # not Linux
        for line in OWN.read_text().splitlines():
            # Such as "9:memory:/docker/ab12" in version 1, and "0::/user.slice" in version 2.
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue  # version 1 has groups for other resources, too
            if controllers:
                mounted = MOUNTED / "memory"
                names = V1
            else:
                mounted = MOUNTED
                names = V2
            own = PurePosixPath(path)
            for group in (own, *own.parents):
                yield mounted / group.relative_to("/"), names
