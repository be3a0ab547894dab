"""What goes to the reader's own machine."""

from pathlib import Path


def download(filename: str) -> None:
    """Colab hands the file to the browser; one that is not there is an error."""
    if not Path(filename).exists():
        raise FileNotFoundError(f"Cannot find file: {filename}")
