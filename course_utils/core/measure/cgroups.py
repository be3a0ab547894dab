"""The memory that this process may use: the machine's, or what a container or a service was granted of it.

Linux keeps such a limit in the process's control group or in one above it. What the system says of free memory is
the machine's all the same.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

import psutil

OWN, MOUNTED = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
V2 = "memory.max", "memory.current", "inactive_file"
V1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"


def memory_bytes() -> tuple[int, int]:
    """(all memory, the part that is free without swapping)."""
    machine = psutil.virtual_memory()
    limits = [(machine.total, machine.available), *_limits()]
    return min(total for total, _ in limits), min(free for _, free in limits)


def _limits() -> Iterator[tuple[int, int]]:
    for folder, (limit, used, cache) in _groups():
        with suppress(
            OSError, ValueError
        ):  # no such group from in here, or "max", which is no limit
            total = int((folder / limit).read_text())
            of_files = dict(
                line.split() for line in (folder / "memory.stat").read_text().splitlines()
            )
            # A file that was read long ago counts as used, and goes as soon as somebody needs the place.
            taken = int((folder / used).read_text()) - int(of_files.get(cache, 0))
            yield total, max(0, total - taken)


def _groups() -> Iterator[tuple[Path, tuple[str, str, str]]]:
    """This process's control group and those above it, with the names of their files."""
    with suppress(OSError):  # not Linux
        for line in OWN.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            mounted, names = (MOUNTED / "memory", V1) if controllers else (MOUNTED, V2)
            own = PurePosixPath(path)
            for each in (own, *own.parents):
                yield mounted / each.relative_to("/"), names
