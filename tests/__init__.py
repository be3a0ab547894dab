"""The tests, which hold the course to its promises; in `tools`, what its maintainers run."""

import sys
from pathlib import Path

# Without this line jsonschema, and with it nbformat, would compile 38 grammars of addresses at
# each start. That takes 0.9 s, and nothing here checks addresses.
sys.modules.setdefault("rfc3987_syntax", None)

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
