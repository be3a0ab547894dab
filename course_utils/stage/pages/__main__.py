"""`make site`: the course as pages with living labs, in `site/`, for any static host.

With REPO=owner/name they lead to the repository.
"""

import sys
from pathlib import Path

from course_utils.engine.labs.screen import Screen
from course_utils.stage.pages import render, runtime
from course_utils.stage.pages.host import Precomputed
from course_utils.stage.workspace import copies

FOLDER = copies.ROOT / "site"
HERE = Path(__file__).parent


def write(folder: Path, found: dict[str, Precomputed | None] | None = None) -> None:
    """Write all pages. What labs need from torch is computed now, unless it is given."""
    render.repository_url()  # which is wrong before anything is fetched
    runtime.bring(folder / "pyodide")
    found = {} if found is None else found
    texts = {f"{path.stem}.html": render.notebook_page(path, found) for path in copies.notebooks()}
    texts |= {"index.html": render.contents_page(), "glossary.html": render.glossary_page()}
    texts |= {"style.css": render.style(), "screen.js": Screen._esm}
    texts |= {
        name: (HERE / name).read_text(encoding="utf-8")
        for name in ("page.js", "lab.js", "controls.js", "worker.js")
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / render.PICTURE).write_bytes(
        (copies.COURSE / "pictures" / render.PICTURE).read_bytes()
    )
    (folder / "course.zip").write_bytes(runtime.modules(found))


def main() -> int:
    """Write it into `site/`, and say how to look at it."""
    try:
        write(FOLDER)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:  # a read-only checkout, a full disk
        print(
            f"The site cannot be written: {error.strerror}, {error.filename or FOLDER}.",
            file=sys.stderr,
        )
        return 1
    print(
        "site/ is ready for any static host. To look at it here: python -m http.server --directory site"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
