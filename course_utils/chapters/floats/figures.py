"""The figures of notebook 1."""

from collections.abc import Collection, Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.core.floats import Format
from course_utils.core.say import Number
from course_utils.engine.figures.style import (
    COLOURS,
    CURVES,
    FORMATS,
    INK,
    QUIET,
    Curve,
    axes_with,
    label,
    name_curves,
    points,
)


def losses_by_mix(losses: Mapping[str, Sequence[Number]], *, title: str) -> Figure:
    """Draw each mix's losses, one for each step, as a curve on a logarithmic axis.

    All curves have equally many steps. A curve's name stands at its end, in the curve's colour.
    """
    colours = _colours(losses)
    ends = {}
    any_losses = next(iter(losses.values()))  # of the first curve: all are equally long
    steps = len(any_losses)
    with axes_with(title, "step", "loss", log_y=10) as axes:
        # From the highest end down, the order in which `DescribedFigure.words` lists the names.
        for name in sorted(losses, key=lambda name: -losses[name][-1]):
            axes.plot(losses[name], color=colours[name], linewidth=points(2))
            ends[name] = Curve(steps, losses[name][-1], colours[name])
        axes.set_xlim(0, 1.25 * steps)  # with space for the names
        axes.set_xticks(range(0, steps + 1, max(1, steps // 4)))
        # With space below the lowest end.
        axes.set_ylim(bottom=min(end.y for end in ends.values()) / 2.5)
        axes.yaxis.set_major_formatter("{x:g}")
        name_curves(axes, ends)
    return axes.figure


def _colours(names: Collection[str]) -> dict[str, str]:
    """Return each curve's colour: that of its format, if all curves are named after formats.

    Otherwise the colours of CURVES are given in turn, and begin anew after the last one.
    """
    if set(names) <= set(FORMATS):
        return {name: FORMATS[name] for name in names}
    return dict(zip(names, cycle(CURVES), strict=False))


# By format, how many points to the right of the line's end and above it the label stands, where
# the usual place, (9, -4), would cover another line.
LABEL_OFFSETS = {"e2m1": (-4, 9), "e4m3": (9, -14), "fp16": (-14, -20)}


def range_and_gap(formats: Mapping[str, Format]) -> Figure:
    """Draw each format as a line.

    It goes from the smallest number above zero to the largest, the format's dynamic range. The
    lower the line is, the smaller are the gaps between numbers, as a share of the number.
    """
    title = "Exponent bits buy dynamic range, fraction bits buy precision"
    ylabel = "gap to the next number ÷ the number"
    with axes_with(title, "size of the number", ylabel, log_x=10, log_y=10) as axes:
        # All of fp32, whose smallest number is 1.4e-45. The line of fp64 goes on beyond both edges.
        axes.set(xlim=(1e-48, 1e52), ylim=(3e-17, 8))
        for name, number_format in formats.items():
            _draw_format(axes, name, number_format)
        # Beside the part of fp32's line that rises, for numbers below 1.2e-38.
        label(axes, "subnormals lose\ndigits one by one", 3e-36, 2e-5, QUIET, (0, 0))
    return axes.figure


def _draw_format(axes: Axes, name: str, f: Format) -> None:
    """Draw the format's line, with its name.

    Among the subnormals, below the smallest normal number, the gap no longer shrinks with the
    number. So the line rises there to 1, where the number is itself one gap.
    """
    colour = FORMATS[name]
    sizes = [f.smallest_subnormal, f.smallest_normal, f.max]
    relative_gaps = [1.0, f.epsilon, f.epsilon]
    style = "--" if name == "tf32" else "-"  # so that fp16's line, which lies on it, is seen, too
    axes.plot(sizes, relative_gaps, color=colour, linestyle=style)
    _, right_edge = axes.get_xlim()
    if f.max < right_edge:
        axes.plot(f.max, f.epsilon, "o", color=colour, markersize=points(8))
        label(axes, f.label, f.max, f.epsilon, colour, LABEL_OFFSETS.get(name, (9, -4)))
    else:  # the line does not end in the figure, so its name stands on it
        words = f"{f.label}, and on to {f.max:.1e}".replace("e+", "e")  # as in 1.8e308
        label(axes, words, 1e16, f.epsilon, colour, (0, 8))


# Of the drawing of bits: the sides of a bit's box, and the space between two fields.
_BIT = 1.0
_BETWEEN_FIELDS = 0.35


def bit_fields(bits: int, exponent_bits: int, fraction_bits: int) -> Figure:
    """Draw a pattern's bits as boxes, in its three fields.

    Below each field stands how wide it is, and the integer that its bits are by themselves. What
    they stand for together is left to the reader.
    """
    digits = f"{bits:0{1 + exponent_bits + fraction_bits}b}"
    fields = {  # a field's colour, its bits, and its width in words
        "sign": (digits[0], "1 bit"),
        "exponent": (digits[1 : 1 + exponent_bits], f"exponent_bits = {exponent_bits}"),
        "fraction": (digits[1 + exponent_bits :], f"fraction_bits = {fraction_bits}"),
    }
    title = "A float is three integers, side by side"
    across = "from the first bit to the last"
    with axes_with(title, across, "each box is one bit", height=300) as axes:
        left = 0.0
        for name, (of_field, width) in fields.items():
            left = _draw_field(axes, name, of_field, width, left) + _BETWEEN_FIELDS
        axes.set(xlim=(-0.1, max(left, 12)), ylim=(-1.4, 1.1), xticks=[], yticks=[])
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    return axes.figure


def _draw_field(axes: Axes, name: str, digits: str, width: str, left: Number) -> Number:
    """Draw a field from `left` on, and return where it ends."""
    for place, digit in enumerate(digits):
        x = left + place * _BIT
        box = Rectangle((x, 0), _BIT, _BIT, facecolor=COLOURS[name], edgecolor="white", lw=2)
        axes.add_patch(box)
        middle = x + _BIT / 2
        axes.text(middle, 0.5, digit, ha="center", va="center", fontsize=points(22), color=INK)
    end = left + len(digits) * _BIT
    centre = (left + end) / 2
    letter = name[0].upper()
    integer = f"{letter} = {int(digits, base=2)}"
    axes.text(centre, -0.15, f"{name}: {width}", ha="center", va="top")
    axes.text(centre, -0.75, integer, ha="center", va="top", weight="bold", fontsize=points(18))
    return end
