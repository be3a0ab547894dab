"""Has the words of a figure that are Chinese drawn with a font that has their letters."""

from dataclasses import replace
from functools import cache

from matplotlib import font_manager
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter

from course_utils.engine.figures import chinese

USUAL = "DejaVu Sans"
BOLD = 700  # matplotlib's number for it


def find_chinese(figure: Figure) -> None:
    """Give the figure's Chinese words the font, and leave all others as they are."""
    for text in figure.findobj(Text):
        if chinese.is_in(text.get_text()):
            text.set_fontfamily(_families())
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            _find_at(axis)


def _find_at(axis: Axis) -> None:
    """Do the same for the names at an axis, which become texts only when they are drawn."""
    formatter = axis.get_major_formatter()
    if isinstance(formatter, FixedFormatter) and chinese.is_in("".join(formatter.seq)):
        axis.set_tick_params(labelfontfamily=_families())


@cache
def _families() -> list[str]:
    """Return the fonts in which to look for a letter, and make ours known when it is first used."""
    fonts = font_manager.fontManager
    fonts.addfont(chinese.FONT)
    regular = fonts.ttflist[-1]
    # It stands for bold letters, too, or matplotlib would say in the notebook that there are none.
    fonts.ttflist.append(replace(regular, weight=BOLD))
    return [USUAL, chinese.FAMILY]
