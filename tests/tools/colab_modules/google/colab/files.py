"""Downloads to the reader's own machine."""

from pathlib import Path


def download(filename: str) -> None:
    """Raise an error if the file is missing, and do nothing else; Colab hands it to the browser."""
    if not Path(filename).exists():
        raise FileNotFoundError(f"Cannot find file: {filename}")
