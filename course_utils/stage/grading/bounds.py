"""What an answer's process may take and do: its time, memory and files are bounded.

The bounds hold wherever Python runs. Besides, Python raises an audit event before some calls, and
we refuse some of these: that stops mistakes and pranks. What stops an attack is the sandbox around
the process.
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

PROCESSOR_S = 10  # of a processor's time, so that a busy machine ends nobody's answer
LONGEST_S = 20  # that the judge waits for an answer
LONGEST_START_S = 300.0  # that the judge waits for the process to import what it needs
MEMORY_BYTES = 2 << 30  # beyond what the process has when it begins to answer
FILE_BYTES = 100_000_000  # of each file that an answer writes
MORE_THAN_ANY_PROCESS_HAS = 30 << 30  # bytes of address space

# Audit events that begin with one of these names are refused.
REFUSED = (
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.kill",
    "signal.pthread_kill",
    "subprocess.",
    "socket.",
    "ctypes.",
    "pty.",
    "resource.",
    "sqlite3.",
)
# Events that are refused outside the answer's own folder, and how many of their first arguments may
# be paths.
CHANGING = {
    "os.remove": 2,
    "os.rename": 2,
    "os.rmdir": 2,
    "os.mkdir": 2,
    "os.link": 2,
    "os.symlink": 2,
    "os.truncate": 2,
    "os.chmod": 2,
    "os.chown": 2,
    "os.utime": 2,
    "shutil.rmtree": 2,
    "shutil.move": 2,
    "open": 1,
}
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# On an answer whose process has this exit status: minus the number of the signal that ended it.
SENTENCE_BY_STATUS = {
    -signal.SIGXCPU: f"It took longer than {PROCESSOR_S} s of a processor's time.",
    -signal.SIGSEGV: "It crashed Python, as endless recursion can.",
    -signal.SIGKILL: "It was killed.",
}
SET_DUMPABLE = 4  # the option PR_SET_DUMPABLE of prctl


def keep_memory_to_itself() -> None:
    """Let no other process of the same user read or change this one's memory.

    Its children inherit that.
    """
    if sys.platform == "linux":
        # Nobody but root can read or trace the memory of a process that is not dumpable.
        ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)


def bound(folder: str) -> None:
    """Bound this process from here on, and let it write in that folder alone."""
    user_s, system_s, *_ = os.times()
    used_s = int(user_s + system_s)
    cpu_s = used_s + PROCESSOR_S
    memory = _size_bytes() + MEMORY_BYTES
    # At the soft limit of time comes a signal that a process may ignore; at the hard one it is
    # killed.
    _limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)
    _limit(resource.RLIMIT_FSIZE, FILE_BYTES, FILE_BYTES)  # of each file
    _limit(resource.RLIMIT_CORE, 0, 0)  # a crash writes no image of the memory
    _limit(resource.RLIMIT_AS, memory, memory)  # of address space
    seccomp.refuse()  # on Linux; elsewhere there is only the hook
    sys.addaudithook(_refusing(folder))


def _limit(kind: int, soft: int, hard: int) -> None:
    """Set one bound, where the system has it."""
    with suppress(ValueError, OSError):  # macOS has no bound of memory
        resource.setrlimit(kind, (soft, hard))


def _size_bytes() -> int:
    """Return the bytes of this process's address space; if unknown, more than any process has."""
    try:
        return psutil.Process().memory_info().vms
    except (OSError, psutil.Error):  # a container without /proc
        return MORE_THAN_ANY_PROCESS_HAS


def _refusing(folder: str) -> Callable[[str, tuple], None]:
    """Return the hook for audit events, which raises PermissionError if an event is refused.

    Python calls it with the event's name, such as "open", and with the event's arguments. Its rules
    are in local names, because an answer can replace what a module holds.
    """
    real_path = os.path.realpath
    refused = REFUSED
    changing = dict(CHANGING)
    to_write = TO_WRITE
    writable = (f"{folder}{os.sep}", os.devnull)

    def refuse(event: str, arguments: tuple) -> None:
        """Raise PermissionError for a refused event, or a change outside the folder."""
        if event.startswith(refused):
            raise PermissionError(f"{event} is refused while an answer is judged.")
        if event not in changing:
            return
        # The arguments of "open" are a path, a mode and flags: without a flag of `to_write`, the
        # file is only read, which is allowed.
        if event == "open" and not arguments[2] & to_write:
            return
        for path in arguments[: changing[event]]:
            if not isinstance(path, str | bytes | os.PathLike):
                continue  # such as the number of an open folder
            # With a separator behind it, the folder /answer itself is inside, and /answers is not.
            real = f"{real_path(os.fsdecode(path))}{os.sep}"
            if not real.startswith(writable):
                raise PermissionError(f"{event} is refused outside the answer's own folder.")

    return refuse
