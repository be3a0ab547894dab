"""Starts the process of the answers in bubblewrap's sandbox, if bubblewrap works here.

In the sandbox there is no network and no other process. Python, its packages, the system's
libraries and the course can be read, but not the checks with their answers, the notebooks or the
tests. One folder can be written to; it is in memory, and goes with the sandbox.
"""

import functools
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from course_utils import chapters

INSIDE = "/answer"  # the folder in the sandbox that answers write in
FOLDER_BYTES = 200_000_000  # of that folder
CHAPTERS = Path(chapters.__path__[0])
COURSE = CHAPTERS.parent  # the folder of the package course_utils
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
LONGEST_TRY_S = 60
# Hidden parts of the course's package: no answer uses them, and some show how answers are judged.
UNUSED = (
    "stage/grading/judging.py",
    "stage/grading/asking.py",
    "stage/workspace",
    "stage/present",
    "stage/poll",
    "stage/slides",
    "stage/hub",
    "stage/pages",
)
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "HOME": INSIDE,
}
PROMISED = (
    "The answers ran in bubblewrap: without a network, with nothing to read but Python and the "
    "course, nothing to write but an empty folder, and no other process in sight."
)
NOT_PROMISED = (
    "bubblewrap was not used: {why}. Nothing an answer said was believed, but it is not promised "
    "that no answer read your files, the seed, or the checks, or wrote outside its own folder, if "
    "a student set out to. Install it (Debian, Ubuntu: sudo apt install bubblewrap), or grade in a "
    "container: course_utils/stage/grading/Containerfile."
)


def command(folder: str) -> tuple[list[str], str]:
    """Return the command for the process of the answers, and the folder that it may write in."""
    if why_no_bubblewrap():
        return _python("open", folder), folder
    return [*_bubblewrap(), *_python("confined", INSIDE)], INSIDE


def sentence() -> str:
    """Return the sentence on what is promised of the answers' processes here, and what is not."""
    why = why_no_bubblewrap()
    if why:
        return NOT_PROMISED.format(why=why)
    return PROMISED


@functools.cache
def why_no_bubblewrap() -> str:
    """Return why bubblewrap cannot be used here, in a clause; an empty string if it can."""
    if sys.platform != "linux":
        return "it is for Linux alone"
    if shutil.which("bwrap") is None:
        return "it is not installed"
    try:
        # An import shows that Python finds its library in the sandbox.
        trial = [*_bubblewrap(), sys.executable, "-I", "-c", "import socket"]
        tried = subprocess.run(trial, capture_output=True, timeout=LONGEST_TRY_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "it does not start"
    if tried.returncode == 0:
        return ""
    lines = tried.stderr.decode(errors="replace").strip().splitlines()
    # The last line of an error says the most.
    reason = lines[-1] if lines else "no reason given"
    return f"it does not work here ({reason[:120]})"


def _python(mode: str, folder: str) -> list[str]:
    """Return the command of `answering`: its mode is "confined" in a sandbox, else "open"."""
    # With -I, Python takes no settings from the environment, and no module from the current folder.
    return [sys.executable, "-I", "-m", "course_utils.stage.grading.answering", mode, folder]


def _bubblewrap() -> list[str]:
    """Return the command of bubblewrap; what is to run in the sandbox follows it."""
    # These options take away the network, other processes, rights and settings. The sandbox ends
    # with this process.
    words = [
        shutil.which("bwrap") or "bwrap",
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
        "--clearenv",
    ]
    for name, value in ENVIRONMENT.items():
        words += ["--setenv", name, value]
    for path in _readable():
        words += ["--ro-bind", path, path]  # to be read only, under the same path
    # An empty folder, or an empty file, takes the place of what is hidden.
    for path in _hidden():
        if path.is_dir():
            words += ["--tmpfs", str(path)]
        else:
            words += ["--ro-bind", "/dev/null", str(path)]
    for path in DEVICES:
        words += ["--dev-bind", path, path]
    words += ["--proc", "/proc"]
    words += ["--size", str(FOLDER_BYTES), "--tmpfs", INSIDE]  # in memory, of at most this size
    words += ["--chdir", INSIDE]
    words += ["--remount-ro", "/"]  # INSIDE is mounted on its own, and can still be written to
    return [*words, "--"]


def _readable() -> list[str]:
    """Return the paths of Python, its packages, the system's libraries, and the course's package.

    A path inside another one of them is left out.
    """
    python = Path(sys.executable)
    paths = {
        *SYSTEM,
        str(COURSE),
        str(python),
        str(python.resolve()),
        str(Path(sys.base_prefix, "lib")),
        str(Path(sys.prefix, "pyvenv.cfg")),
    }
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        paths.add(sysconfig.get_path(name))
    # In a virtual environment Python is a link, which may lead to another link.
    for link in _links(python):
        paths.add(str(link))
    existing = sorted(path for path in paths if Path(path).exists())
    return [path for path in existing if not _lies_in_another(path, existing)]


def _lies_in_another(path: str, paths: Sequence[str]) -> bool:
    return any(path.startswith(f"{other}/") for other in paths)


def _links(path: Path) -> Iterator[Path]:
    """Yield a link's target; if that is a link, too, the target's target; and so on."""
    while path.is_symlink():
        path = path.parent / path.readlink()
        yield path


def _hidden() -> list[Path]:
    """Return the paths in the course's package that the process of the answers may not read.

    These are the checks, which have the right answers; the compiled files, among which are those of
    the checks; and UNUSED.
    """
    paths = [*CHAPTERS.glob("*/*check.py"), *CHAPTERS.glob("*/__pycache__")]
    for name in UNUSED:
        paths.append(COURSE / name)
    return [path for path in paths if path.exists()]


def temporary_folder() -> tempfile.TemporaryDirectory:
    """Return a folder in which answers can write where there is no sandbox."""
    return tempfile.TemporaryDirectory(prefix="answer-", ignore_cleanup_errors=True)
