"""LaTeX as an SVG of outlines: it looks the same in every browser, and needs neither fonts nor a network."""

import re
from functools import cache
from html import escape

from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextToPath

COMMANDS = {
    Path.MOVETO: "M",
    Path.LINETO: "L",
    Path.CURVE3: "Q",
    Path.CURVE4: "C",
    Path.CLOSEPOLY: "Z",
}
# Where matplotlib spaces or sizes a formula otherwise than LaTeX does, by a pattern and what is to be drawn.
AS_IN_LATEX = [(r"\\frac", r"\\dfrac"), (r"(\\sum_\w) ", r"\1\\,"), (r"(\d)\.(?=[A-Z])", r"\1.\\!")]
SIZE = 100  # of the letters, in the drawing's units: these many are 1 em


@cache
def svg(latex: str) -> str:
    """The formula, as high as the letters around it; its text is read to those who do not see it."""
    latex = " ".join(latex.split())
    drawn = latex
    for pattern, replacement in AS_IN_LATEX:
        drawn = re.sub(pattern, replacement, drawn)
    font = FontProperties(size=SIZE, math_fontfamily="cm")
    to_path = TextToPath()
    width, height, depth = to_path.get_text_width_height_descent(f"${drawn}$", font, ismath=True)
    points, codes = to_path.get_text_path(font, f"${drawn}$", ismath=True)
    outline = Path([(x, -y) for x, y in points], codes)
    parts = (
        COMMANDS[code] + ("" if code == Path.CLOSEPOLY else " ".join(f"{x:.1f}" for x in numbers))
        for numbers, code in outline.iter_segments(simplify=False, curves=True)
    )
    return (
        f'<svg class="formula" role="img" aria-label="{escape(latex)}" '
        f'style="width:{width / SIZE:.3f}em;vertical-align:{-depth / SIZE:.3f}em" '
        f'viewBox="0 {depth - height:.1f} {width:.1f} {height:.1f}"><path d="{"".join(parts)}"/></svg>'
    )
