"""`make slides`, or `make slides ARGS="04_flops.ipynb"` for one."""

import sys

from course_utils.desk import copies
from course_utils.room.slides.deck import deck

FOLDER = copies.ROOT / "slides"


def main(names: list[str]) -> int:
    """Write the decks of these notebooks, or of all, into `slides/`."""
    try:
        paths = copies.chosen(names)
    except ValueError as error:
        print(error)
        return 2
    try:
        FOLDER.mkdir(exist_ok=True)
        for path in paths:
            target = FOLDER / path.with_suffix(".html").name
            target.write_text(deck(path), encoding="utf-8")
            print(f"slides/{target.name}  {target.stat().st_size / 1000:.0f} kB")
    except OSError as error:  # a read-only checkout, a full disk
        print(f"The decks cannot be written: {error.strerror}, {error.filename or FOLDER}.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
