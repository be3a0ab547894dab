"""Work in a process of its own, with bounds: of time and memory, without a network, in an empty folder that goes.

The process is forked from this one, which has imported everything. Another one stands between, and ends it; so nothing that
the work does reaches further than what it returns. The bounds stop mistakes and pranks. They are no wall against an attack:
whoever expects one grades in a container.
"""

import json
import multiprocessing
import os
import resource
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import NoReturn, TypeVar

import psutil

PROCESSOR_S, LONGEST_S = 10, 20  # a busy machine ends nobody's answer
MEMORY_BYTES, FILE_BYTES, SAID_BYTES = 2 << 30, 100_000_000, 10_000
AT_ONCE = max(2, min(8, os.cpu_count() or 2))
FORKING = multiprocessing.get_context("fork")
# Python says each of these before it does it. The first are refused, the others outside the work's own folder.
REFUSED = "os.system os.exec os.fork os.posix_spawn os.kill signal.pthread_kill subprocess. socket. ctypes. pty. resource. sqlite3."
CHANGING = "os.remove os.rename os.rmdir os.mkdir os.link os.symlink os.truncate os.chmod os.chown os.utime shutil.rmtree shutil.move"
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ENDED = {-signal.SIGXCPU: f"It took longer than {PROCESSOR_S} s of a processor's time."}
ENDED |= {-signal.SIGSEGV: "It crashed Python, as endless recursion can.", -signal.SIGKILL: "It was killed."}
Key, Said = TypeVar("Key"), list[str]
Work = Callable[[], Said]


def done(works: Mapping[Key, Work]) -> Iterator[tuple[Key, Said]]:
    """Each work's key, and what it said, as they end; ["stopped", why, why] where it was stopped."""
    waiting, running = list(works.items())[::-1], {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            key, work = waiting.pop()
            ear, mouth = FORKING.Pipe(duplex=False)
            with mouth:
                FORKING.Process(target=_watch, args=(work, mouth)).start()
            running[ear] = key
        for ear in wait([*running]):
            said = ["stopped", "", "It ended the process that watches it, or spoke in its place."]
            with ear, suppress(EOFError, ValueError):
                status, looks_like, words = json.loads(ear.recv_bytes())
                said = [str(status), str(looks_like), str(words)]
            yield running.pop(ear), said


def _watch(work: Work, mouth: Connection) -> None:
    """Do the work in a process, wait, end whatever is left of it, and hand on what it said."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        ear, theirs = os.pipe()
        child = os.fork()
        if not child:
            _work(work, os.path.realpath(folder), theirs)
        os.close(theirs)
        in_time, *_ = select.select([ear], [], [], LONGEST_S)
        said = os.read(ear, SAID_BYTES) if in_time else b""
        with suppress(ProcessLookupError, PermissionError):  # macOS says so of a group that has ended
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        why = ENDED.get(code, f"It ended Python itself, with status {code}.")
        why = why if in_time else f"It took longer than {LONGEST_S} s."
        mouth.send_bytes(said or json.dumps(["stopped", why, why]).encode())


def _work(work: Work, folder: str, mouth: int) -> NoReturn:
    """What runs in the work's own process."""
    try:
        os.setsid()
        os.dup2(mouth, 3)
        os.closerange(4, 4096)
        for standard in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), standard)
        os.chdir(folder)
        tempfile.tempdir = os.environ["HOME"] = folder
        sys.dont_write_bytecode = True
        memory = psutil.Process().memory_info().vms + MEMORY_BYTES
        most = {"CPU": PROCESSOR_S, "FSIZE": FILE_BYTES, "CORE": 0, "AS": memory}
        for name, bound in most.items():
            with suppress(ValueError, OSError):  # macOS has no bound of memory
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (bound, bound + (name == "CPU")))
        sys.addaudithook(_refusing(folder))
        said = json.dumps([words[:500] for words in work()], ensure_ascii=False)
        os.write(3, said.encode("utf-8", "replace"))
    finally:
        os._exit(1)


def _refusing(folder: str) -> Callable[[str, tuple], None]:
    real, inside, refused = os.path.realpath, (f"{folder}{os.sep}", os.devnull), tuple(REFUSED.split())
    changing = dict.fromkeys(CHANGING.split(), 2) | {"open": 1}  # how many paths come first

    def refuse(event: str, arguments: tuple) -> None:
        if event.startswith(refused):
            raise PermissionError(f"{event} is refused while an answer is judged.")
        if event in changing and (event != "open" or arguments[2] & TO_WRITE):
            paths = [
                one for one in arguments[: changing[event]] if isinstance(one, str | bytes | os.PathLike)
            ]
            if not all(f"{real(os.fsdecode(path))}{os.sep}".startswith(inside) for path in paths):
                raise PermissionError(f"{event} is refused outside the answer's own folder.")

    return refuse
