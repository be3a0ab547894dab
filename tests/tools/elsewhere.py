"""The course on other people's machines: each place is made, the course runs in it, and a line says what came of it.

`make elsewhere`, or `make elsewhere ARGS="home disk"` for the places whose names hold one of these words. In each, a
copy of the course runs all notebooks against their stored outputs; then `make lab` has to answer and to give a kernel.
Most places can only be made by root, on Linux: there the course runs as the user nobody, since to root nothing is
forbidden, with no network but loopback, and root's own home is hidden. Whoever else calls this is told what is left out.

`make elsewhere ARGS=processors` runs the suite here, as a processor with fewer instructions would. `ARGS=pythons` runs
it with each Python from 3.11 to 3.14 that this machine has, in an environment of its own. Both take minutes for each,
so they run only where they are asked for.
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
# With the packages that are here, not installed again.
MAKE = ("make", "READY=", "TESTS=", "HUB=", f"RUN='{sys.executable}'")
TEST = (*MAKE, "test", "ARGS=-q notebooks")
# All but what needs a browser or a hub, whose answer does not hang on what is tried here.
SUITE = "ARGS=-q --ignore-glob=*/test_browser* --ignore=tests/stage/test_present.py --ignore=tests/stage/test_hub.py"
LAB = (sys.executable, "-c", "from tests.tools.elsewhere import lab; lab()")
NO_HOME = "lend Jupyter another folder"
# Root's part, in namespaces of its own, before the user takes over. Of root's home only Python is left to be seen.
BEFORE = """
ip link set lo up
for kept in "$PREFIX" "$BASE"; do mkdir -p "$PLACE/kept$kept"; mount --bind "$kept" "$PLACE/kept$kept"; done
mount -t tmpfs -o mode=755 none /root
for kept in "$PREFIX" "$BASE"; do mkdir -p "$kept"; mount --bind "$PLACE/kept$kept" "$kept"; done
"""
BECOME = f"""
cd "$COURSE"
exec setpriv --reuid={USER} --regid="$(id -g {USER})" --clear-groups --no-new-privs "$@"
"""
FULL = "mount -t tmpfs -o size=64k,mode=1777 none {0}; head -c 1M /dev/zero > {0}/ballast 2>/dev/null || true"


@dataclass(frozen=True)
class Place:
    """Somewhere to run the course: what root does there, what the copy's folder is called, what the environment says."""

    name: str
    by_root: str = ""
    folder: str = "course"
    environment: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""  # what `make` says there; then the home is another one


@dataclass(frozen=True)
class Suite:
    """Someone's processor or Python, with a seed for Python's hashes that nobody else has."""

    name: str
    environment: Mapping[str, str]
    python: str = ""  # whose environment is made anew; without one it is the course's own
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
    """One that knows no more than these instructions, as each of torch's libraries calls them."""
    names = "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "PYTHONHASHSEED"
    return Suite(
        f"processors with {most} at most",
        dict(zip(names, (torchs, onednns, mkls, seed), strict=True)),
    )


PROCESSORS = (
    processor("AVX2", "avx2", "AVX2", "AVX2", "2"),
    processor("SSE4", "default", "SSE41", "SSE4_2", "4"),
)


def pythons() -> Iterator[Suite]:
    """Each that the course supports, on the path or where pyenv puts them; the first of each that runs."""
    for minor in range(11, 15):
        name = f"python3.{minor}"
        where = (shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/*/bin/{name}")))
        for python in filter(None, where):
            asked = [python, "-c", "import platform, venv; print(platform.python_version())"]
            said = subprocess.run(asked, capture_output=True, text=True, check=False)
            if not said.returncode:
                yield Suite(
                    f"pythons: {said.stdout.strip()}", {"PYTHONHASHSEED": str(minor)}, str(python)
                )
                break


def run_suite(suite: Suite) -> str:
    """What went wrong; nothing where all tests pass."""
    ours = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    run = {"env": ours | suite.environment, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with tempfile.TemporaryDirectory(prefix="elsewhere-", dir="/var/tmp") as folder:
        command, course = [*MAKE, "test", SUITE], ROOT
        if suite.python:
            command, course = (
                ["make", "test", SUITE, f"PYTHON={suite.python}"],
                Path(folder, "course"),
            )
            copy(course)
        said = subprocess.run(command, cwd=course, check=False, **run)
    return said.stdout.decode(errors="replace").strip() if said.returncode else ""


def visit(place: Place) -> str:
    """What went wrong there; nothing where the course works."""
    # Not in /tmp, which one of the places has its own of.
    with tempfile.TemporaryDirectory(prefix="elsewhere-", dir="/var/tmp") as folder:
        home, course = Path(folder, "home"), Path(folder, place.folder)
        home.mkdir()
        copy(course)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(course)}
        environment |= {"LC_ALL": "C.UTF-8", "LOCPATH": f"{folder}/locales", **place.environment}
        add_locale(Path(folder, "locales"), environment["LC_ALL"])
        before = []
        if IS_ROOT:
            for part in (home, course, *course.rglob("*")):
                shutil.chown(part, USER)
            Path(folder).chmod(0o755)
            environment |= {"PLACE": folder, "COURSE": str(course)}
            environment |= {"PREFIX": sys.prefix, "BASE": sys.base_prefix}
            before = [
                "unshare",
                "--mount",
                "--net",
                "sh",
                "-euc",
                BEFORE + place.by_root + BECOME,
                "sh",
            ]

        def wrong(command: Sequence[str]) -> str:
            command = [*before, *command]
            run = subprocess.run(
                command, cwd=course, env=environment, capture_output=True, check=False
            )
            return (
                (run.stdout + run.stderr).decode(errors="replace").strip() if run.returncode else ""
            )

        if not place.refused:
            return wrong(TEST) or wrong(LAB)
        said = wrong(TEST)
        if place.refused not in said or "Traceback" in said:
            return f"`make` was to say: {place.refused}. It said: {said}"
        environment["HOME"] = f"{course}/lent"
        return wrong(LAB)


def copy(course: Path) -> None:
    """What git knows of, as it is now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        target = course / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)


def add_locale(folder: Path, name: str) -> None:
    """Make that language, which few machines have."""
    folder.mkdir()
    language, _, letters = name.partition(".")
    if language != "C":
        command = ["localedef", "-i", language, "-f", letters, str(folder / name)]
        subprocess.run(command, capture_output=True, check=True)


def lab() -> None:
    """`make lab`, called in the course's folder: it answers, and a kernel in it runs a cell."""
    port = free_port()
    token, here = secrets.token_hex(16), f"127.0.0.1:{port}"
    options = f"--no-browser --ServerApp.port={port} --ServerApp.port_retries=0"
    command = [*MAKE, "lab", f"ARGS={options}"]
    server = subprocess.Popen(
        command, env=os.environ | {"JUPYTER_TOKEN": token}, start_new_session=True
    )
    try:
        wait_until(
            lambda: server.poll() is not None or answers(f"http://{here}/api"), "JupyterLab answers"
        )
        if server.poll() is not None:
            sys.exit("`make lab` ended.")
        kernels = f"{here}/api/kernels"
        asked = {"params": {"token": token}, "json": {"path": "notebooks"}}
        kernel = requests.post(f"http://{kernels}", **asked, timeout=60).json()["id"]
        channel = websocket.create_connection(f"ws://{kernels}/{kernel}/channels?token={token}", 60)
        said = reply(channel, "from course_utils import labs; labs.float_lab()")
        if said["status"] != "ok":
            sys.exit(f"A cell failed: {said}")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def main(words: list[str]) -> int:
    """Print a line for each place."""
    places = [*PLACES, *PROCESSORS, *pythons()]
    chosen = (
        [place for place in places if any(word in place.name for word in words)]
        if words
        else PLACES
    )
    if not chosen:
        print(f"No place is called so. There are: {'; '.join(place.name for place in places)}.")
        return 2
    failed = []
    for place in chosen:
        begun, left_out = time.monotonic(), place.by_root and not IS_ROOT
        run = run_suite if isinstance(place, Suite) else visit
        wrong = "" if left_out else run(place)
        came = (
            "left out: only root can make it, on Linux;"
            if left_out
            else "FAILED"
            if wrong
            else "works"
        )
        print(f"{place.name:<40} {came:<8}{time.monotonic() - begun:.0f} s", flush=True)
        failed += [f"{place.name}:\n{wrong}"] if wrong else []
    print("\n\n".join(["", *failed]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
