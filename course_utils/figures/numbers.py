"""How numbers are stored, and what their sums come to."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.figures.style import COLOURS, axes_with, label
from course_utils.floats import Format
from course_utils.quantities import Number


def reach_and_step(formats: Mapping[str, Format]) -> Figure:
    """Each format as a line: its reach from left to right, its step at a height, lower being finer."""
    colours = {11: COLOURS["limit"], 8: "#1a1a1a", 5: "#9a6700"}  # one for each width of the exponent
    beside = {"e2m1": (-4, 9), "e4m3": (9, -14), "fp16": (-14, -20)}  # where a label would cover a line
    title = "Exponent bits buy reach, fraction bits buy fine steps"
    ylabel = "step to the next number ÷ the number"
    with axes_with(title, "size of the number", ylabel, height=5.6, log_x=10, log_y=10) as axes:
        axes.set(xlim=(1e-48, 1e52), ylim=(3e-17, 8))
        for name, f in formats.items():
            colour = colours.get(f.exponent_bits, COLOURS["limit"])
            # Below the smallest normal number the step no longer shrinks with the number.
            sizes = [max(f.smallest_subnormal, 1e-320), f.smallest_normal, f.max]
            style = "--" if name == "tf32" else "-"  # fp16 lies on it
            axes.plot(sizes, [1.0, f.epsilon, f.epsilon], color=colour, linestyle=style)
            if f.max < axes.get_xlim()[1]:
                axes.plot(f.max, f.epsilon, "o", color=colour)
                label(axes, f.label, f.max, f.epsilon, colour, beside.get(name, (9, -4)))
            else:
                words = f"{f.label}, and on to {f.max:.1e}".replace("e+", "e")
                label(axes, words, 1e16, f.epsilon, colour, (0, 8))
        label(axes, "subnormals lose\ndigits one by one", 3e-36, 2e-5, COLOURS["limit"], (0, 0))
    return axes.figure


def sizes_over_reach(sizes: Sequence[Number], formats: Mapping[str, Format]) -> Figure:
    """A histogram of sizes, and above it a line for what each format can hold. Left of the line numbers become 0."""
    powers = Counter(math.floor(math.log2(size)) for size in sizes)
    most, least = max(powers.values()), min(powers)
    title = "Gradients fall out of fp16's reach, not out of bf16's"
    left, right = least - 4, 22
    ylabel = "gradients in each power of two"
    with axes_with(title, "size of a gradient", ylabel, height=5.2, log_x=2) as axes:
        begins = [2.0**power for power in powers]
        look = {"align": "edge", "color": COLOURS["measured"], "edgecolor": "white"}
        axes.bar(begins, list(powers.values()), width=begins, **look)
        axes.set_axisbelow(True)
        axes.set(xlim=(2.0**left, 2.0**right), ylim=(0, most * (1.25 + 0.25 * len(formats))))
        for place, f in enumerate(formats.values()):
            height = most * (1.2 + 0.25 * place)
            lost = f.smallest_subnormal / 2  # and what is smaller
            begin, end = max(lost, 2.0**left), min(f.max, 2.0**right)
            axes.hlines(height, begin, end, color=COLOURS["limit"], linewidth=5)
            words = f"{f.label}: everything up to 2^{round(math.log2(lost))} becomes 0"
            label(axes, words, max(begin, 2.0 ** (least + 2)), height, COLOURS["limit"], (0, 8))
        axes.set_xticks([2.0**power for power in range(10 * (left // 10 + 1), right, 10)])
    return axes.figure


def split_into_heads(
    matrix: Sequence[Sequence[Number]], splits: Mapping[str, Sequence[Sequence[Sequence[Number]]]]
) -> Figure:
    """A matrix of tokens, drawn once for each way to split it in two. Each number has the shade of its head."""
    shades = ("#c9e4f5", "#0b4f7d")  # pale and dark, whatever the eye
    rows, columns = len(matrix), len(matrix[0])
    title = "Each split has the right shape; only the first has the right heads"
    with axes_with(title, "place in the width", "token", height=2.7) as axes:
        for number, (name, heads) in enumerate(splits.items()):
            left = number * (columns + 1.5)
            head_of = {int(n): head for head, part in enumerate(heads) for row in part for n in row}
            for row, column in itertools.product(range(rows), range(columns)):
                shade = shades[head_of[int(matrix[row][column])]]
                _square(axes, left + column, row, shade)
            label(axes, name, left, 0, "#1a1a1a", (0, 8))
        right = len(splits) * (columns + 1.5)
        for head, shade in enumerate(shades):
            _square(axes, right, 1.2 * head, shade)
            label(axes, f"head {head}", right + 1.2, 1.2 * head + 0.7, "#1a1a1a", (0, 0))
        starts = [number * (columns + 1.5) for number in range(len(splits))]
        axes.set(xlim=(-0.2, right + 4.5), ylim=(rows + 0.2, -1.1), aspect="equal")
        middles = [start + column + 0.5 for start in starts for column in range(columns)]
        axes.set_xticks(middles, [*range(columns)] * len(starts))
        axes.set_yticks([row + 0.5 for row in range(rows)], range(rows))
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    return axes.figure


def _square(axes: Axes, x: Number, y: Number, fill: object, edge: str = COLOURS["limit"]) -> None:
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=fill, edgecolor=edge))


def bit_fields(patterns: Mapping[str, str], formats: Mapping[str, Format]) -> Figure:
    """One number's bits in several formats, the fields in their colours, each fraction below the other's."""
    title = "Three fields; the formats differ in how wide each is"
    xlabel = "bits, from the left"
    with axes_with(title, xlabel, "format", height=1.4 + 0.9 * len(patterns)) as axes:
        for row, (name, bits) in enumerate(patterns.items()):
            f, y = formats[name], -row
            widths = {"sign": 1, "exponent": f.exponent_bits, "fraction": f.fraction_bits}
            label(axes, f.label, -3.8, y + 0.23, "#1a1a1a", (0, -5))
            place = 0
            for field, width in widths.items():
                look = {"height": 0.46, "align": "edge", "color": COLOURS[field], "edgecolor": "white"}
                axes.barh([y] * width, [1] * width, left=range(place, place + width), **look)
                words = f"{field}, {width}" if width > 1 else field
                label(axes, words, place, y + 0.46, "#1a1a1a", (0 if width > 1 else -14, 3))
                place += width
            for digit in "01":  # as markers: what is written is for the words beside the picture
                places = [place + 0.5 for place, bit in enumerate(bits) if bit == digit]
                axes.plot(places, [y + 0.23] * len(places), ls="", marker=f"${digit}$", color="#1a1a1a", ms=9)
        axes.grid(visible=False)
        axes.set(xlim=(-4, 32), ylim=(0.8 - len(patterns), 0.9), xticks=range(0, 33, 8), yticks=[])
    return axes.figure


def numbers_around(numbers: Mapping[str, Sequence[Number]], total: Number, more: Number) -> Figure:
    """Each format's numbers as ticks on a line of its own; in the first, a sum that falls back to what it was."""
    title = f"{more:g} more is half a step: {total:g} + {more:g} falls back to {total:g}"
    with axes_with(title, "number", "format", height=3.2) as axes:
        for row, some in enumerate(numbers.values()):
            axes.plot([min(some), max(some)], [row, row], color=COLOURS["limit"], linewidth=1)
            axes.plot(some, [row] * len(some), "|", color="#1a1a1a", markersize=26, markeredgewidth=3)
        axes.plot(total + more, 0, "o", color=COLOURS["alarm"], markersize=8)
        alarm = {"color": COLOURS["alarm"]}
        arrow = {"arrowstyle": "->", "connectionstyle": "arc3,rad=0.3", "linewidth": 2.5, **alarm}
        places = (total + more / 8, 0.25), (total + more, 0.42)  # the tip, and the words
        axes.annotate(f"{total:g} + {more:g}", *places, weight="bold", arrowprops=arrow, **alarm)
        axes.grid(visible=False)
        axes.set(ylim=(-0.5, len(numbers) - 0.4))
        axes.set_yticks(range(len(numbers)), list(numbers))
    return axes.figure


def strip_and_grids(storage: Sequence[Number], grids: Mapping[str, Sequence[Sequence[Number]]]) -> Figure:
    """A storage as a strip, and the matrices in it as grids. Each number has the colour of its place."""
    colours = matplotlib.colormaps["viridis"].resampled(64)  # the stride lab's
    shares = {number: place / max(1, len(storage) - 1) for place, number in enumerate(storage)}

    def draw(axes: Axes, number: Number, x: Number, y: Number) -> None:
        _square(axes, x, y, colours(shares[number]), "white")
        ink = "#1a1a1a" if shares[number] > 0.5 else "white"
        axes.text(x + 0.5, y + 0.53, f"{number:g}", color=ink, size=10, ha="center", va="center")

    tallest, widest = max(map(len, grids.values())), sum(len(grid[0]) for grid in grids.values())
    gap = (len(storage) - widest) / max(1, len(grids) - 1)
    title = "One strip of memory, walked in several ways"
    with axes_with(title, "place in the storage", "row", height=1.7 + 0.38 * tallest) as axes:
        for place, number in enumerate(storage):
            draw(axes, number, place, 0)
        left = 0.0
        for name, grid in grids.items():
            label(axes, name, left, 2.6, "#1a1a1a", (0, 4))
            for row, column in itertools.product(range(len(grid)), range(len(grid[0]))):
                draw(axes, grid[row][column], left + column, 2.6 + row)
            left += len(grid[0]) + gap
        axes.set(xlim=(-0.1, len(storage) + 0.1), ylim=(2.7 + tallest, -0.1), aspect="equal")
        axes.xaxis.set_ticks_position("top")
        axes.xaxis.set_label_position("top")
        axes.set_xticks([place + 0.5 for place in range(len(storage))], range(len(storage)))
        axes.set_yticks([3.1 + row for row in range(tallest)], range(tallest))
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    return axes.figure


def walks(places: Mapping[str, Sequence[int]]) -> Figure:
    """Where each element of a tensor lies in its storage, row by row; a dot has the colour of its place."""
    title = "A walk in equal steps is a straight line"
    last = max(map(max, places.values()))
    with axes_with(title, "element, read row by row", "place in the storage", height=4.2) as axes:
        for name, walk in places.items():
            axes.plot(walk, color=COLOURS["limit"], linewidth=1.5)
            look = {"c": walk, "cmap": "viridis", "vmin": 0, "vmax": last, "edgecolor": "white"}
            axes.scatter(range(len(walk)), walk, s=60, zorder=2.5, **look)
            label(axes, name, len(walk) - 1, walk[-1], "#1a1a1a", (9, -4))
        axes.set_xlim(-0.7, 1.25 * max(map(len, places.values())))
    return axes.figure
