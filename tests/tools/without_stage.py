"""All notebooks against their stored outputs, with the course installed from a wheel that has neither stage nor tests.

`make without-stage` builds that wheel, and an environment which has it and the packages that are here, but not this
clone. So it shows what a test of imports cannot: that no notebook, lab or check reads anything of the stage.
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

SHARED = re.compile(
    r"^\[tool\.hatch\.build\.targets\.wheel\.shared-data\]\n(?:.+\n)+", re.MULTILINE
)
WHERE = "import course_utils; print(course_utils.__path__[0])"


def wheel(folder: Path) -> Path:
    """Build the course's wheel in that folder, without the stage and what it shares with Jupyter."""
    source = folder / "source"
    without = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("course_utils", "notebooks"):
        shutil.copytree(ROOT / name, source / name, ignore=without)
    shutil.rmtree(source / "course_utils" / "stage")
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    project, times = SHARED.subn("", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if times != 1:
        raise ValueError(
            "pyproject.toml no longer says in one place what the stage shares with Jupyter."
        )
    (source / "pyproject.toml").write_text(project, encoding="utf-8")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(build, cwd=source, check=True, stdout=subprocess.DEVNULL)
    (built,) = folder.glob("*.whl")
    return built


def environment(folder: Path, built: Path) -> Path:
    """The Python of an environment that has this wheel, and beside it the packages that are here."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    # In a folder that is named so, no other .pth is read: this clone's own package stays out.
    (packages / "packages_here.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    install = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-index",
        built,
    ]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install], check=True)
    return python


def main() -> int:
    """Run the notebooks there; pytest says what came of it."""
    with tempfile.TemporaryDirectory(prefix="without-stage-") as place:
        python = environment(Path(place, "environment"), wheel(Path(place)))
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        asked = {"cwd": place, "env": alone, "capture_output": True, "text": True, "check": True}
        course = Path(subprocess.run([python, "-c", WHERE], **asked).stdout.strip())
        print(f"{course}: {', '.join(sorted(path.name for path in course.iterdir()))}", flush=True)
        if not course.is_relative_to(place) or (course / "stage").exists():
            raise ValueError(f"{course} is not the wheel without the stage.")
        strict = [
            "--nbval",
            "--nbval-cell-timeout=60",
            f"--nbval-sanitize-with={ROOT}/tests/sanitize.cfg",
        ]
        pytest = [
            python,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *strict,
            course / "course",
        ]
        return subprocess.run(pytest, cwd=place, env=alone, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
