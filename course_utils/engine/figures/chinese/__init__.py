"""Chinese letters for figures and for the labs' still pictures: DejaVu Sans has none.

The font beside this file is a subset of Noto Sans CJK SC, with the letters of the sentences that
are translated; `tests/tools/chinese_font.py` makes it. Nothing reads it unless something Chinese is
drawn, so all other pictures are what they would be without it.
"""

from pathlib import Path

FONT = Path(__file__).with_name("letters.otf")
FAMILY = "Course Letters SC"  # no other font has this name
FIRST = "\u2e80"  # of the letters and marks of Chinese


def is_in(words: str) -> bool:
    """Whether there are Chinese letters in the words, or the marks that stand between them.

    >>> is_in("3.35 TB/s × 2 → λ"), is_in("\u663e\u5b58"), is_in("\uff0c")
    (False, True, True)
    """
    return any(letter >= FIRST for letter in words)
