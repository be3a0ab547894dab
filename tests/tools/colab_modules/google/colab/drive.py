"""The reader's Google Drive."""

from pathlib import Path


def mount(mountpoint: str) -> None:
    """Colab asks the reader first; then the folder is there."""
    Path(mountpoint, "MyDrive").mkdir(parents=True, exist_ok=True)
