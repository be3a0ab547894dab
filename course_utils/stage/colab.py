"""The course on a machine that is lent for some hours, as Colab lends one.

The first cell of each copy calls `settle`. Packages that the machine already has stay as they are.
The reader's answers, guesses and accountant are kept in the notebook's folder.
"""

import importlib
import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from course_utils.core.accountant_file import NAME
from course_utils.core.record import HIDDEN, RECORD

# What the notebooks import beside torch, numpy, matplotlib and ipywidgets, which Colab has.
NEEDED = (
    "anywidget==0.11.0",
    "beartype==0.23.1",
    "einops==0.8.2",
    "jaxtyping==0.3.11",
    "ml_dtypes==0.6.0",
    "opt_einsum==3.4.0",
    "pillow==13.0.0",
    "psutil==7.2.2",
    "psygnal==0.16.1",
    "resvg_py==0.5.0",
    "wadler-lindig==0.1.8",
)
_BEGAN = Path.cwd()  # the notebook's folder, in which its kernel has imported this module
_COURSE = str(Path(__file__).resolve().parents[2])  # the folder that has `course_utils` in it


def settle() -> None:
    """Install the packages that are missing, and make the folder for what the reader makes.

    A package that is installed in another version is not replaced.
    """
    missing = [pin for pin in NEEDED if not _is_installed(pin)]
    if missing:
        _install(missing)
    # The first cell has put "course" into sys.path. That is a relative path, which leads nowhere
    # once `keep_on_drive` has changed the folder.
    sys.path.insert(0, _COURSE)
    os.environ["PYTHONPATH"] = _COURSE  # for the processes that labs start
    _keep_in(Path.cwd())
    added = ", ".join(missing) if missing else "nothing"
    print(f"The course is here. Added: {added}. Replaced: nothing.")


def keep_on_drive() -> None:
    """From now on, keep what the reader makes on their Google Drive, for the next machine.

    The first cell of a copy has this call in a comment, from which the reader takes the # off.
    """
    from google.colab import drive  # exists on Colab alone

    drive.mount(str(_BEGAN / "drive"))
    _keep_in(_BEGAN / "drive" / "MyDrive" / "my_notebooks")


def download(*names: str) -> None:
    """Send files of this folder to the reader's browser, before the machine is taken back.

    Without names, these are the record of answers and guesses, and `accountant.py`. A file that
    does not exist is skipped. The first cell of a copy has this call in a comment, too.
    """
    from google.colab import files  # exists on Colab alone

    if not names:
        names = (RECORD, NAME)
    for name in names:
        if Path(name).exists():
            files.download(name)


def _is_installed(pin: str) -> bool:
    """Whether the package of a pin such as "einops==0.8.2" is installed, in whatever version."""
    name, _, _ = pin.partition("==")
    return any(distributions(name=name))  # of the installed packages, those of that name


def _install(pins: list[str]) -> None:
    """Install these versions and nothing that they depend on, so that no package is replaced.

    Raise a ValueError if that fails.
    """
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *pins]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(
            f"No package could be added. Is there a network? Then try again.\n{done.stderr}"
        )
    importlib.invalidate_caches()  # so that imports find the new packages


def _keep_in(folder: Path) -> None:
    """Make the folder, and work in it from now on.

    The folder `.course` in it marks it as the one where the course keeps the reader's record.
    """
    (folder / HIDDEN).mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
