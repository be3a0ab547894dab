"""What holds the course to its promises, and in `tools` what its maintainers run."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
