"""Tries the course in places like other people's machines, and prints a line for each.

`make elsewhere`, or `make elsewhere ARGS="home disk"` for the places whose names hold one of these
words. In each place, a copy of the course compares all notebooks with their stored outputs; then
`make lab` has to answer and to give a kernel. Most places can only be made by root, on Linux. There
the course runs as the user nobody, because root may do anything, without a network but loopback and
without root's own home. For anyone else, those places are left out, and the line says so.

`make elsewhere ARGS=processors` runs the suite here as if the processor had fewer instructions.
`ARGS=pythons` runs it with each Python from 3.11 to 3.14 that this machine has, in an environment
of its own. Each of these takes minutes, so they run only when they are asked for.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import requests
import websocket

from tests import ROOT
from tests.helpers.browser import answers, free_port
from tests.helpers.waiting import wait_until
from tests.tools.remote import reply

USER = "nobody"
IS_ROOT = sys.platform == "linux" and os.geteuid() == 0
# The packages that are installed here are used, so nothing has to be installed again.
MAKE = ("make", "READY=", "TESTS=", "HUB=", f"RUN='{sys.executable}'")
TEST = (*MAKE, "test", "ARGS=-q notebooks")
# Tests that need a browser or a hub are left out: what is tried here does not change their results.
SUITE = (
    "ARGS=-q --ignore-glob=*/test_browser* "
    "--ignore=tests/stage/test_present.py --ignore=tests/stage/test_hub.py"
)
LAB = (sys.executable, "-c", "from tests.tools.elsewhere import lab; lab()")
NO_HOME = "lend Jupyter another folder"
# What root does first, in namespaces of its own, before the user takes over. Root's home is
# replaced by an empty one, in which only the folders of Python are left.
BEFORE = """
ip link set lo up
for kept in "$PREFIX" "$BASE"; do
    mkdir -p "$PLACE/kept$kept"
    mount --bind "$kept" "$PLACE/kept$kept"
done
mount -t tmpfs -o mode=755 none /root
for kept in "$PREFIX" "$BASE"; do
    mkdir -p "$kept"
    mount --bind "$PLACE/kept$kept" "$kept"
done
"""
# How root becomes the user, and runs the command that follows the script.
BECOME = f"""
cd "$COURSE"
exec setpriv --reuid={USER} --regid="$(id -g {USER})" --clear-groups --no-new-privs "$@"
"""
# Mounts a disk of 64 kB at a folder, and fills it.
FULL = (
    "mount -t tmpfs -o size=64k,mode=1777 none {0}; "
    "head -c 1M /dev/zero > {0}/ballast 2>/dev/null || true"
)


@dataclass(frozen=True)
class Place:
    """Somewhere to run the course."""

    name: str
    by_root: str = ""  # the commands of root that make the place
    folder: str = "course"  # that the copy lies in
    environment: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""  # what `make` has to say there, until it is given another home


@dataclass(frozen=True)
class Suite:
    """The whole suite with another processor or Python, each with a seed of its own for hashes."""

    name: str
    environment: Mapping[str, str]
    python: str = ""  # it gets a new environment; without one, the course's own is used
    by_root = ""


PLACES = (
    Place("an ordinary user, and no network", ":"),
    Place(
        "a path with spaces and many scripts", folder="Mein Kurs – Ümläut, 北京 & 'so' 100% $HOME"
    ),
    Place("a checkout of someone else's", 'chown -R 0:0 "$COURSE"'),
    Place(
        "a checkout on a read-only disk",
        'mount --bind "$COURSE" "$COURSE"; mount -o remount,bind,ro "$COURSE"',
    ),
    Place("a home of someone else's", 'chown 0:0 "$PLACE/home"', refused=NO_HOME),
    Place("a home that is full", FULL.format('"$PLACE/home"'), refused=NO_HOME),
    Place("a home that does not exist", 'rm -d -f "$PLACE/home"', refused=NO_HOME),
    Place("a /tmp that is full", FULL.format("/tmp")),
    Place(
        "German, time zone far ahead",
        environment={"LC_ALL": "de_DE.UTF-8", "TZ": "Pacific/Kiritimati"},
    ),
    Place(
        "German in Latin-1, zone far behind",
        environment={"LC_ALL": "de_DE.ISO-8859-1", "TZ": "Pacific/Pago_Pago"},
    ),
    Place(
        "Turkish, zone in quarters of an hour",
        environment={"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"},
    ),
    Place("no language at all", environment={"LC_ALL": "C", "TZ": ""}),
)


def processor(most: str, torchs: str, onednns: str, mkls: str, seed: str) -> Suite:
    """Return a suite as if the processor had no more than these instructions.

    `torchs`, `onednns` and `mkls` are what torch's libraries call them.
    """
    environment = {
        "ATEN_CPU_CAPABILITY": torchs,
        "ONEDNN_MAX_CPU_ISA": onednns,
        "MKL_ENABLE_INSTRUCTIONS": mkls,
        "PYTHONHASHSEED": seed,
    }
    return Suite(f"processors with {most} at most", environment)


PROCESSORS = (
    processor("AVX2", "avx2", "AVX2", "AVX2", "2"),
    processor("SSE4", "default", "SSE41", "SSE4_2", "4"),
)


def pythons() -> Iterator[Suite]:
    """Yield a suite for each supported Python that runs here, on the path or installed by pyenv."""
    for minor in range(11, 15):
        name = f"python3.{minor}"
        candidates = sorted(Path.home().glob(f".pyenv/versions/*/bin/{name}"))
        on_path = shutil.which(name)
        if on_path:
            candidates.insert(0, Path(on_path))
        for python in candidates:
            version = version_of(python)
            if version:
                seed = {"PYTHONHASHSEED": str(minor)}
                yield Suite(f"pythons: {version}", seed, str(python))
                break


def version_of(python: Path) -> str:
    """Return the version of a Python; "" if it does not run, or cannot make an environment."""
    asked = [python, "-c", "import platform, venv; print(platform.python_version())"]
    run = subprocess.run(asked, capture_output=True, text=True, check=False)
    return "" if run.returncode else run.stdout.strip()


def failure_of(command: Sequence[str], course: Path, environment: Mapping[str, str]) -> str:
    """Run the command in the course's folder; return what it printed if it failed, else ""."""
    run = subprocess.run(
        command,
        cwd=course,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if not run.returncode:
        return ""
    return run.stdout.decode(errors="replace").strip()


def run_suite(suite: Suite) -> str:
    """Run the suite; return what failed, or "" if all tests pass."""
    environment = {}
    for name, value in os.environ.items():
        if not name.startswith(("MAKE", "MFLAGS")):  # those are of the make that runs this
            environment[name] = value
    environment.update(suite.environment)
    if not suite.python:
        return failure_of([*MAKE, "test", SUITE], ROOT, environment)
    with tempfile.TemporaryDirectory(prefix="elsewhere-", dir="/var/tmp") as folder:
        course = Path(folder, "course")
        copy(course)
        return failure_of(["make", "test", SUITE, f"PYTHON={suite.python}"], course, environment)


def visit(place: Place) -> str:
    """Run the course in that place; return what failed, or "" if the course works there."""
    # The folder is not in /tmp, because one of the places mounts a /tmp of its own.
    with tempfile.TemporaryDirectory(prefix="elsewhere-", dir="/var/tmp") as folder:
        home = Path(folder, "home")
        home.mkdir()
        course = Path(folder, place.folder)
        copy(course)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(course),
            "LC_ALL": "C.UTF-8",
            "LOCPATH": f"{folder}/locales",
            **place.environment,
        }
        add_locale(Path(folder, "locales"), environment["LC_ALL"])
        make_the_place = []
        if IS_ROOT:
            for path in (home, course, *course.rglob("*")):
                shutil.chown(path, USER)
            Path(folder).chmod(0o755)
            environment["PLACE"] = folder
            environment["COURSE"] = str(course)
            environment["PREFIX"] = sys.prefix
            environment["BASE"] = sys.base_prefix
            script = BEFORE + place.by_root + BECOME
            make_the_place = ["unshare", "--mount", "--net", "sh", "-euc", script, "sh"]

        run_notebooks = [*make_the_place, *TEST]
        open_lab = [*make_the_place, *LAB]
        wrong = failure_of(run_notebooks, course, environment)
        if not place.refused:
            return wrong or failure_of(open_lab, course, environment)
        if place.refused not in wrong or "Traceback" in wrong:
            return f"`make` was to say: {place.refused}. It said: {wrong}"
        environment["HOME"] = f"{course}/lent"
        return failure_of(open_lab, course, environment)


def copy(course: Path) -> None:
    """Copy the files that git knows of, as they are now, committed or not."""
    run = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in run.stdout.rstrip("\0").split("\0"):
        target = course / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)


def add_locale(folder: Path, name: str) -> None:
    """Make the locale, such as "de_DE.UTF-8", because few machines have it."""
    folder.mkdir()
    language, _, encoding = name.partition(".")
    if language != "C":
        command = ["localedef", "-i", language, "-f", encoding, str(folder / name)]
        subprocess.run(command, capture_output=True, check=True)


def lab() -> None:
    """Run `make lab` in the course's folder, and exit with an error unless a kernel runs a cell."""
    port = free_port()
    token = secrets.token_hex(16)
    here = f"127.0.0.1:{port}"
    options = f"--no-browser --ServerApp.port={port} --ServerApp.port_retries=0"
    command = [*MAKE, "lab", f"ARGS={options}"]
    environment = os.environ | {"JUPYTER_TOKEN": token}
    server = subprocess.Popen(command, env=environment, start_new_session=True)

    def has_ended() -> bool:
        return server.poll() is not None

    try:
        wait_until(lambda: has_ended() or answers(f"http://{here}/api"), "JupyterLab answers")
        if has_ended():
            sys.exit("`make lab` ended.")
        said = reply_of_a_kernel(here, token, "from course_utils import labs; labs.float_lab()")
        if said["status"] != "ok":
            sys.exit(f"A cell failed: {said}")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def reply_of_a_kernel(server: str, token: str, code: str) -> dict[str, object]:
    """Start a kernel, and let it run this code."""
    kernels = f"{server}/api/kernels"
    created = requests.post(
        f"http://{kernels}", params={"token": token}, json={"path": "notebooks"}, timeout=60
    )
    kernel = created.json()["id"]
    channel = websocket.create_connection(f"ws://{kernels}/{kernel}/channels?token={token}", 60)
    return reply(channel, code)


def chosen_by(words: list[str]) -> list[Place | Suite]:
    """Return the places whose names hold one of these words; by default, those that are quick."""
    if not words:
        return list(PLACES)
    places = [*PLACES, *PROCESSORS, *pythons()]
    return [place for place in places if any(word in place.name for word in words)]


def main(words: list[str]) -> int:
    """Print a line for each place."""
    chosen = chosen_by(words)
    if not chosen:
        names = [place.name for place in (*PLACES, *PROCESSORS, *pythons())]
        print(f"No place is called so. There are: {'; '.join(names)}.")
        return 2
    failures = []
    for place in chosen:
        if place.by_root and not IS_ROOT:
            print(f"{place.name:<40} left out: only root can make it, on Linux", flush=True)
            continue
        begun = time.monotonic()
        wrong = run_suite(place) if isinstance(place, Suite) else visit(place)
        outcome = "FAILED" if wrong else "works"
        print(f"{place.name:<40} {outcome:<8}{time.monotonic() - begun:.0f} s", flush=True)
        if wrong:
            failures.append(f"{place.name}:\n{wrong}")
    print("\n\n".join(["", *failures]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
