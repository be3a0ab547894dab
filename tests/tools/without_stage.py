"""Compares all notebooks with their stored outputs, without the stage: `make without-stage`.

It builds a wheel that has neither stage nor tests, and an environment which has that wheel and the
packages that are installed here, but not this clone. So it shows what a test of imports cannot: no
notebook, lab or check reads any file of the stage.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests import ROOT

# The table of pyproject.toml with the files that the stage gives to Jupyter.
SHARED = re.compile(
    r"^\[tool\.hatch\.build\.targets\.wheel\.shared-data\]\n(?:.+\n)+", re.MULTILINE
)
WHERE = "import course_utils; print(course_utils.__path__[0])"


def wheel(folder: Path) -> Path:
    """Build the course's wheel in that folder, without the stage and its files for Jupyter."""
    source = folder / "source"
    unwanted = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("course_utils", "notebooks"):
        shutil.copytree(ROOT / name, source / name, ignore=unwanted)
    shutil.rmtree(source / "course_utils" / "stage")
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    whole_project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project, times = SHARED.subn("", whole_project)
    if times != 1:
        raise ValueError(
            "pyproject.toml no longer says in one place what the stage shares with Jupyter."
        )
    (source / "pyproject.toml").write_text(project, encoding="utf-8")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(build, cwd=source, check=True, stdout=subprocess.DEVNULL)
    (built,) = folder.glob("*.whl")  # the only one there
    return built


def environment(folder: Path, built: Path) -> Path:
    """Return the Python of a new environment, with this wheel and the packages installed here."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    # Python adds this folder to its path, but does not read the .pth files in it. One of them would
    # add this clone.
    (packages / "packages_here.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", python]
    quietly = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *quietly, "--no-deps", "--no-index", built], check=True)
    return python


def main() -> int:
    """Run the notebooks there; the status is that of pytest."""
    with tempfile.TemporaryDirectory(prefix="without-stage-") as place:
        built = wheel(Path(place))
        python = environment(Path(place, "environment"), built)
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        asked = subprocess.run(
            [python, "-c", WHERE],
            cwd=place,
            env=alone,
            capture_output=True,
            text=True,
            check=True,
        )
        course = Path(asked.stdout.strip())
        parts = sorted(path.name for path in course.iterdir())
        print(f"{course}: {', '.join(parts)}", flush=True)
        if not course.is_relative_to(place) or (course / "stage").exists():
            raise ValueError(f"{course} is not the wheel without the stage.")
        strict = [
            "--nbval",
            "--nbval-cell-timeout=60",
            f"--nbval-sanitize-with={ROOT}/tests/sanitize.cfg",
        ]
        pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        run = subprocess.run(
            [*pytest, *strict, course / "course"], cwd=place, env=alone, check=False
        )
        return run.returncode


if __name__ == "__main__":
    sys.exit(main())
