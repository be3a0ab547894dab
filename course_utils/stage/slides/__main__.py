"""`make slides`, or `make slides ARGS="04_flops.ipynb"` for the deck of one notebook.

With CUT=25, a deck has what a lecture of 25 minutes shows.
"""

import os
import sys

from course_utils.stage.slides.deck import deck_of_cut, decks
from course_utils.stage.translations import language
from course_utils.stage.workspace import copies

FOLDER = copies.ROOT / "slides"


def main(names: list[str]) -> int:
    """Write the decks of these notebooks, or of all, into `slides/`; return the exit status."""
    minutes = os.environ.get("CUT", "")
    try:
        spoken = language.chosen()
        texts = {}  # the HTML of each deck by the name of its file
        for path in copies.chosen(names):
            if minutes:
                texts |= deck_of_cut(path, minutes, spoken)
            else:
                texts |= decks(path, spoken)
    except ValueError as error:
        print(error)
        return 2
    try:
        FOLDER.mkdir(exist_ok=True)
        for name, text in texts.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
            print(f"slides/{name}  {len(text.encode()) / 1000:.0f} kB")
    except OSError as error:  # a read-only checkout, a full disk
        print(f"The decks cannot be written: {error.strerror}, {error.filename or FOLDER}.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
