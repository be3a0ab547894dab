"""Writes the width of each character of the labs' font: `python -m tests.tools.font_widths`."""

import json
from pathlib import Path

import matplotlib
from PIL import ImageFont

from tests import ROOT

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
WRITTEN = ROOT / "course_utils" / "engine" / "labs" / "draw" / "font_widths.json"
BEYOND_LATIN = "λβμεσαΦΔ√−–—“”‘’…·×÷≈≤≥∞→←↑↓◂▸½¼¾²³°±µη∂Σπθ"


def widths() -> dict[str, dict[str, int]]:
    """Return each character's width in thousandths of the font's size, regular and bold."""
    latin = [chr(code) for code in (*range(32, 127), *range(0xA1, 0x100))]
    characters = sorted({*latin, *BEYOND_LATIN})
    found = {}
    for name, file in (("regular", "DejaVuSans.ttf"), ("bold", "DejaVuSans-Bold.ttf")):
        font = ImageFont.truetype(str(FONTS / file), 1000)
        found[name] = {character: round(font.getlength(character)) for character in characters}
    return found


def text() -> str:
    """Return the file's text, with one line for each weight."""
    lines = []
    for name, table in widths().items():
        lines.append(f" {json.dumps(name)}: {json.dumps(table, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    WRITTEN.write_text(text(), encoding="utf-8")
