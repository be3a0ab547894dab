"""Where the process of the answers runs: in a sandbox of bubblewrap's, if there is one that works here.

In it there is no network and no other process; Python, its packages, the system's libraries and the course can be read,
without the checks' answers, the notebooks and the tests; and nothing can be written but one folder, which is in memory and
goes with it.
"""

import functools
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

from course_utils import chapters

INSIDE, FOLDER_BYTES = "/answer", 200_000_000
CHAPTERS = Path(chapters.__path__[0])
COURSE = CHAPTERS.parent
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
LONGEST_TRY_S = 60
# What is in the course's package but no part of what an answer uses.
UNSEEN = tuple(
    f"stage/{name}"
    for name in (
        "grading/judging.py",
        "grading/asking.py",
        "workspace",
        "present",
        "poll",
        "slides",
        "hub",
        "pages",
    )
)
SET = {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "HOME": INSIDE}
PROMISED = (
    "The answers ran in bubblewrap: without a network, with nothing to read but Python and the course, nothing to write "
    "but an empty folder, and no other process in sight."
)
NOT_PROMISED = (
    "bubblewrap was not used: {why}. Nothing an answer said was believed, but it is not promised that no answer read "
    "your files, the seed, or the checks, or wrote outside its own folder, if a student set out to. Install it (Debian, "
    "Ubuntu: sudo apt install bubblewrap), or grade in a container: course_utils/stage/grading/Containerfile."
)


def command(folder: str) -> tuple[list[str], str]:
    """What starts the process of the answers, and the folder that it may write in."""
    if why_not():
        return _python("open", folder), folder
    return [*_bubblewrap(), *_python("confined", INSIDE)], INSIDE


def sentence() -> str:
    """What is promised of the answers' processes here, and what is not."""
    why = why_not()
    return NOT_PROMISED.format(why=why) if why else PROMISED


@functools.cache
def why_not() -> str:
    """Why bubblewrap is of no use here; an empty string if it is."""
    if sys.platform != "linux":
        return "it is for Linux alone"
    if shutil.which("bwrap") is None:
        return "it is not installed"
    try:
        tried = [*_bubblewrap(), sys.executable, "-I", "-c", "import socket"]
        run = subprocess.run(tried, capture_output=True, timeout=LONGEST_TRY_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "it does not start"
    said = run.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
    return f"it does not work here ({said[-1][:120]})" if run.returncode else ""


def _python(confined: str, folder: str) -> list[str]:
    return [sys.executable, "-I", "-m", "course_utils.stage.grading.answering", confined, folder]


def _bubblewrap() -> list[str]:
    words = [
        shutil.which("bwrap") or "bwrap",
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
    ]
    words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    for name, value in SET.items():
        words += ["--setenv", name, value]
    for path in _readable():
        words += ["--ro-bind", path, path]
    for path in _hidden():
        words += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    for path in DEVICES:
        words += ["--dev-bind", path, path]
    words += ["--proc", "/proc", "--size", str(FOLDER_BYTES), "--tmpfs", INSIDE]
    return [*words, "--chdir", INSIDE, "--remount-ro", "/", "--"]


def _readable() -> list[str]:
    """Python, its packages, the system's libraries, and the course's package; what lies in another one is left out."""
    python = Path(sys.executable)
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {str(COURSE), str(python.resolve()), str(Path(sys.base_prefix, "lib")), *SYSTEM}
    for link in (python, *_links(python)):
        paths.add(str(link))
    paths.add(str(Path(sys.prefix, "pyvenv.cfg")))
    there = sorted(path for path in paths if Path(path).exists())
    return [path for path in there if not any(path.startswith(f"{other}/") for other in there)]


def _links(path: Path) -> Iterator[Path]:
    """Each link on the way from that path to a file."""
    while path.is_symlink():
        path = path.parent / path.readlink()
        yield path


def _hidden() -> list[Path]:
    """The checks, which have the answers, also as Python has compiled them; and what no answer needs."""
    exercises = [*CHAPTERS.glob("*/*check.py")]
    unseen = [COURSE / name for name in UNSEEN]
    return [
        path for path in (*exercises, *CHAPTERS.glob("*/__pycache__"), *unseen) if path.exists()
    ]


def temporary_folder() -> tempfile.TemporaryDirectory:
    """A folder for answers without a sandbox."""
    return tempfile.TemporaryDirectory(prefix="answer-", ignore_cleanup_errors=True)
