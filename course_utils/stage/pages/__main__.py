"""`make site`: the course as pages with working labs, in `site/`, for any static host.

With REPO=owner/name the pages link to the repository.
"""

import json
import sys
from pathlib import Path

from course_utils.engine.guessing.field import Field
from course_utils.engine.labs.screen import Screen
from course_utils.stage.front import drawing
from course_utils.stage.pages import guesses, languages, recall_page, render, runtime
from course_utils.stage.pages.host import Precomputed
from course_utils.stage.translations.edition import ENGLISH
from course_utils.stage.translations.sources import SENTENCES_OF_CODE
from course_utils.stage.translations.spoken import sentences_in
from course_utils.stage.workspace import copies

FOLDER = copies.ROOT / "site"
HERE = Path(__file__).parent
SCRIPTS = (
    "page.js",
    "guesses.js",
    "numbers.js",
    "lab.js",
    "link.js",
    "controls.js",
    "words.js",
    "worker.js",
)


def write(folder: Path, found: dict[str, Precomputed | None] | None = None) -> None:
    """Write all pages. What labs need from torch is computed now, unless `found` has it.

    `found` has the precomputed results by the lab's name, and None for a lab that needs none.
    """
    render.repository_url()  # raises ValueError for a wrong REPO before anything is fetched
    runtime.bring(folder / "pyodide")
    if found is None:
        found = {}
    for name, text in _texts(found).items():  # which fills `found`
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "course.zip").write_bytes(runtime.modules(found))


def _texts(found: dict[str, Precomputed | None]) -> dict[str, str]:
    """Return the texts of the site by the names of their files; rendering them fills `found`."""
    texts = {}
    for spoken in languages.there_are():
        ending = languages.ending(spoken)
        for path in copies.notebooks():
            texts[f"{path.stem}{ending}"] = render.notebook_page(path, found, spoken)
        texts[f"index{ending}"] = render.contents_page(spoken)
        texts[f"glossary{ending}"] = render.glossary_page(spoken)
        texts[f"account{ending}"] = render.account_page(found, spoken)
        texts[f"recall{ending}"] = render.recall_page(spoken)
        if spoken != ENGLISH:
            texts[f"sentences.{spoken}.json"] = sentences(spoken)
    texts["questions.js"] = recall_page.script()
    texts["style.css"] = render.style()
    texts["screen.js"] = Screen._esm  # the widget's script, which the pages use as it is
    texts["field.js"] = Field._esm
    texts["tables.js"] = guesses.tables()
    texts["front.js"] = drawing.SCRIPT
    for name in SCRIPTS:
        texts[name] = (HERE / name).read_text(encoding="utf-8")
    for name in recall_page.SCRIPTS:
        texts[name] = (recall_page.HERE / name).read_text(encoding="utf-8")
    return texts


def sentences(spoken: str) -> str:
    """Return what the pages' scripts and labs say in that language, by the English, as JSON."""
    said = sentences_in(spoken, (SENTENCES_OF_CODE,))
    return json.dumps(said, ensure_ascii=False, indent=0)


def main() -> int:
    """Write the site, and print how to look at it; return the exit status."""
    try:
        write(FOLDER)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:  # a read-only checkout, a full disk
        where = error.filename if error.filename else FOLDER
        print(f"The site cannot be written: {error.strerror}, {where}.", file=sys.stderr)
        return 1
    how = "python -m http.server --directory site"
    print(f"site/ is ready for any static host. To look at it here: {how}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
