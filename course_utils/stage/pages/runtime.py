"""Fetches Python for the browser, and packs the course's modules for it."""

import base64
import hashlib
import io
import pickle
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from course_utils.stage.pages.host import PRECOMPUTED, Precomputed
from course_utils.stage.workspace.copies import ROOT

PACKAGE = "pyodide"  # of npm
VERSION = "314.0.7"
# The package's digest, as npm states it, so that nothing else is taken for the package.
SHA512 = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
FILES = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
NEEDS_NPM = (
    "The site brings Python to the browser as an npm package, and npm is not here: "
    "install Node.js, and run this again."
)
# A program that prints the files of the course's modules which a page's labs import.
LOADED = """
import sys
from course_utils import labs
from course_utils.core.say import how_far  # which a lab loads only when somebody has guessed
from course_utils.stage.pages import host
for name in labs.__all__:
    labs.lab_named(name.removesuffix("_lab"))
for name, module in sys.modules.items():
    if name.startswith("course_utils"):
        print(module.__file__)
"""


def bring(folder: Path) -> None:
    """Put Python for the browser into that folder, unless it is there already.

    Raise a ValueError if npm is missing, or does not bring the package.
    """
    stamp = folder / "version.txt"
    if stamp.is_file() and stamp.read_text() == VERSION:
        return
    if shutil.which("npm") is None:
        raise ValueError(NEEDS_NPM)
    with tempfile.TemporaryDirectory() as fetched:
        archive = _fetch(Path(fetched))
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as package:
            for name in FILES:
                (folder / name).write_bytes(package.extractfile(f"package/{name}").read())
    stamp.write_text(VERSION)  # last, so that an interrupted fetch is made again


def _fetch(folder: Path) -> Path:
    """Fetch the npm package into that folder; ValueError if that fails, or the bytes differ.

    npm keeps what it has fetched once.
    """
    command = ["npm", "pack", f"{PACKAGE}@{VERSION}", "--prefer-offline", "--silent"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip()
        raise ValueError(f"npm did not bring {PACKAGE} {VERSION}: {reason[-300:]}")
    (archive,) = folder.glob("*.tgz")  # the only file that npm has put there
    digest = hashlib.sha512(archive.read_bytes()).digest()
    if base64.b64encode(digest).decode() != SHA512:
        raise ValueError(f"{PACKAGE} {VERSION} is not the one that this course was tried with.")
    return archive


def modules(found: Mapping[str, Precomputed | None]) -> bytes:
    """Return a zip of the modules that the labs import, and of their precomputed results."""
    # This process may have imported more than the labs need, and a new one has not.
    listed = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    package = ROOT / "course_utils"
    paths = {Path(line) for line in listed.stdout.splitlines()}
    # Data that modules read, such as the recorded machines; Python does not import these files.
    paths.update(package.rglob("*.toml"))
    paths.update(package.rglob("*.json"))
    entries = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in sorted(paths)}
    for name, known in found.items():
        if known:
            entries[f"{PRECOMPUTED}/{name}.pickle"] = pickle.dumps(known)
    return _zip(entries)


def _zip(entries: Mapping[str, bytes]) -> bytes:
    """Return a zip of the entries, whose keys are the files' names."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in entries.items():
            # Without a time, so that the same course gives the same bytes.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()
