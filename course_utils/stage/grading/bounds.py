"""What an answer's process may take and do: bounds of time, memory and files, and calls that are refused.

The bounds hold wherever Python runs. The refusals stop mistakes and pranks; what stops an attack is the sandbox around it.
"""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

import psutil

from course_utils.stage.grading import seccomp

PROCESSOR_S, LONGEST_S = 10, 20  # a busy machine ends nobody's answer
LONGEST_START_S = 300.0
MEMORY_BYTES, FILE_BYTES = 2 << 30, 100_000_000
# Python says each of these before it does it. The first are refused, the others outside the work's own folder.
REFUSED = "os.system os.exec os.fork os.posix_spawn os.kill signal.pthread_kill subprocess. socket. ctypes. pty. resource. sqlite3."
CHANGING = "os.remove os.rename os.rmdir os.mkdir os.link os.symlink os.truncate os.chmod os.chown os.utime shutil.rmtree shutil.move"
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ENDED = {-signal.SIGXCPU: f"It took longer than {PROCESSOR_S} s of a processor's time."}
ENDED |= {
    -signal.SIGSEGV: "It crashed Python, as endless recursion can.",
    -signal.SIGKILL: "It was killed.",
}
NOT_DUMPABLE = 4, 0  # prctl's PR_SET_DUMPABLE


def keep_memory_to_itself() -> None:
    """Let no other process of the same user read or change this one's memory; its children inherit that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(*NOT_DUMPABLE, 0, 0, 0)


def bound(folder: str) -> None:
    """From here on this process is bounded, and may write in that folder alone."""
    memory = _size_bytes() + MEMORY_BYTES
    used_s = int(sum(os.times()[:2]))
    most = {"CPU": used_s + PROCESSOR_S, "FSIZE": FILE_BYTES, "CORE": 0, "AS": memory}
    for name, most_of_it in most.items():
        with suppress(ValueError, OSError):  # macOS has no bound of memory
            hard = most_of_it + (1 if name == "CPU" else 0)
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most_of_it, hard))
    seccomp.refuse()
    sys.addaudithook(_refusing(folder))


def _size_bytes() -> int:
    """How much address space this process has; where nothing tells it, more than it ever has."""
    try:
        return psutil.Process().memory_info().vms
    except (OSError, psutil.Error):  # a container without /proc
        return 30 << 30


def _refusing(folder: str) -> Callable[[str, tuple], None]:
    real, inside, refused = (
        os.path.realpath,
        (f"{folder}{os.sep}", os.devnull),
        tuple(REFUSED.split()),
    )
    changing = dict.fromkeys(CHANGING.split(), 2) | {"open": 1}  # how many paths come first

    def refuse(event: str, arguments: tuple) -> None:
        if event.startswith(refused):
            raise PermissionError(f"{event} is refused while an answer is judged.")
        if event in changing and (event != "open" or arguments[2] & TO_WRITE):
            paths = [
                one
                for one in arguments[: changing[event]]
                if isinstance(one, str | bytes | os.PathLike)
            ]
            if not all(f"{real(os.fsdecode(path))}{os.sep}".startswith(inside) for path in paths):
                raise PermissionError(f"{event} is refused outside the answer's own folder.")

    return refuse
