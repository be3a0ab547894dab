"""Writes how wide the labs' font is, character by character: `python -m tests.tools.font_widths`."""

import json
from pathlib import Path

import matplotlib
from PIL import ImageFont

from tests import ROOT

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
WRITTEN = ROOT / "course_utils" / "engine" / "labs" / "draw" / "font_widths.json"
BEYOND_LATIN = "λβμεσαΦΔ√−–—“”‘’…·×÷≈≤≥∞→←↑↓◂▸½¼¾²³°±µη∂Σπθ"


def widths() -> dict[str, dict[str, int]]:
    """Thousandths of the font's size, regular and bold."""
    characters = sorted({*map(chr, range(32, 127)), *map(chr, range(0xA1, 0x100)), *BEYOND_LATIN})
    found = {}
    for name, file in (("regular", "DejaVuSans.ttf"), ("bold", "DejaVuSans-Bold.ttf")):
        font = ImageFont.truetype(str(FONTS / file), 1000)
        found[name] = {one: round(font.getlength(one)) for one in characters}
    return found


def text() -> str:
    """One line for each weight, so that it is read and compared in one look."""
    lines = (
        f" {json.dumps(name)}: {json.dumps(table, ensure_ascii=False)}"
        for name, table in widths().items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    WRITTEN.write_text(text(), encoding="utf-8")
