"""The reader's Google Drive."""

from pathlib import Path


def mount(mountpoint: str) -> None:
    """Make the folder at once; Colab asks the reader first."""
    Path(mountpoint, "MyDrive").mkdir(parents=True, exist_ok=True)
