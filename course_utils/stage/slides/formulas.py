"""Draws LaTeX as an SVG of outlines.

The SVG looks the same in every browser, and needs neither fonts nor a network.
"""

import re
from functools import cache
from html import escape

from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextToPath

COMMANDS = {  # the letters of SVG's path commands, by matplotlib's codes of segments
    Path.MOVETO: "M",
    Path.LINETO: "L",
    Path.CURVE3: "Q",
    Path.CURVE4: "C",
    Path.CLOSEPOLY: "Z",
}
# Where matplotlib sets a formula differently from LaTeX: a pattern, and what to draw in its place.
AS_IN_LATEX = [
    (r"\\frac", r"\\dfrac"),  # a fraction in full size
    (r"(\\sum_\w) ", r"\1\\,"),  # a thin space behind "\sum_i"
    (r"(\d)\.(?=[A-Z])", r"\1.\\!"),  # no space behind the point of "1.F"
]
SIZE = 100  # units of the drawing that are 1 em


@cache
def svg(latex: str) -> str:
    """Return the formula as an SVG as large as the text around it.

    A screen reader reads its LaTeX.
    """
    latex = " ".join(latex.split())
    drawn = latex
    for pattern, replacement in AS_IN_LATEX:
        drawn = re.sub(pattern, replacement, drawn)
    drawn = f"${drawn}$"
    font = FontProperties(size=SIZE, math_fontfamily="cm")
    to_path = TextToPath()
    width, height, depth = to_path.get_text_width_height_descent(drawn, font, ismath=True)
    points, codes = to_path.get_text_path(font, drawn, ismath=True)
    outline = Path([(x, -y) for x, y in points], codes)  # SVG's y goes down
    top = depth - height  # `height` includes `depth`, which is what lies below the baseline
    return (
        f'<svg class="formula" role="img" aria-label="{escape(latex)}" '
        f'style="width:{width / SIZE:.3f}em;vertical-align:{-depth / SIZE:.3f}em" '
        f'viewBox="0 {top:.1f} {width:.1f} {height:.1f}">'
        f'<path d="{_commands(outline)}"/></svg>'
    )


def _commands(outline: Path) -> str:
    """Return the outline as the value of a path's attribute `d`, such as "M0.0 0.0L5.0 1.0Z"."""
    commands = []
    # `numbers` has x and y of each point of the segment in a row: two numbers for a line.
    for numbers, code in outline.iter_segments(simplify=False, curves=True):
        commands.append(COMMANDS[code])
        if code != Path.CLOSEPOLY:
            commands.append(" ".join(f"{number:.1f}" for number in numbers))
    return "".join(commands)
