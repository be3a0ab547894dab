"""Makes the font in which figures and stills draw Chinese, from one that has all letters.

`python -m tests.tools.chinese_font NotoSansCJK-Regular.ttc`, with the file of Debian's package
fonts-noto-cjk, which is under the SIL Open Font License 1.1. The font gets the letters that occur
in the sentences of the package. Run it again whenever `sentences.po` has a new one: a test says so.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

from course_utils.engine.figures.chinese import FAMILY, FIRST, FONT
from course_utils.stage.translations import catalogue
from course_utils.stage.translations.sources import SENTENCES_OF_CODE

LANGUAGE = "zh_CN"
PLACE = 2  # of Simplified Chinese among the fonts of the file
MODIFIED = 0  # seconds since 1904, so that the same letters give the same bytes
# What the font says of itself: its family, style, full name and name for printers. The copyright,
# the trademark and the licence stay as they are.
NAMES = {1: FAMILY, 2: "Regular", 4: FAMILY, 6: FAMILY.replace(" ", "")}
KEPT_NAMES = [0, 7, 13, 14]


def letters() -> str:
    """Return the Chinese letters and marks of the sentences, each once, in order."""
    entries = catalogue.entries(catalogue.path_of(LANGUAGE, SENTENCES_OF_CODE))
    occurring = {letter for entry in entries for letter in entry.msgstr}
    return "".join(sorted(letter for letter in occurring if letter >= FIRST))


def make(whole: Path, made: Path, wanted: str) -> None:
    """Write the font with the wanted letters of the whole one."""
    font = TTFont(whole, fontNumber=PLACE, recalcTimestamp=False)
    options = subset.Options(
        layout_features=[], hinting=False, name_IDs=[*NAMES, *KEPT_NAMES], drop_tables=["BASE"]
    )
    smaller = subset.Subsetter(options)
    smaller.populate(text=wanted)
    smaller.subset(font)
    for number, words in NAMES.items():
        font["name"].setName(words, number, 3, 1, 0x409)
    font["CFF "].cff.fontNames = [NAMES[6]]
    font["head"].modified = MODIFIED
    font.save(made)


def main(arguments: list[str]) -> int:
    """Make the font, and print what it has; return the exit status."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    wanted = letters()
    make(Path(arguments[0]), FONT, wanted)
    print(f"{FONT.name}: {len(wanted)} letters, {FONT.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
