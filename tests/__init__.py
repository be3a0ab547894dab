"""What holds the course to its promises, and in `tools` what its maintainers run."""

import sys
from pathlib import Path

# With it jsonschema, and so nbformat, would compile 38 grammars of addresses at each start: 0.9 s for what nobody checks.
sys.modules.setdefault("rfc3987_syntax", None)

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
