"""How numbers are stored, and what their sums come to."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

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


def running_sums(
    counts: Mapping[str, Sequence[int]], sums: Mapping[str, Sequence[Number]], ceilings: Mapping[str, Number]
) -> Figure:
    """Sums of ones as they run, and the height at which each was predicted to stop."""
    title = "A running sum of ones stops where 1 is half a step"
    blue, orange = COLOURS["predicted"], COLOURS["measured"]
    with axes_with(title, "ones added", "the sum as it is stored", log_x=2, log_y=2) as axes:
        for name, ceiling in ceilings.items():
            last_count, last_sum = counts[name][-1], sums[name][-1]
            axes.axhline(ceiling, color=blue, linestyle=":", linewidth=2)
            axes.plot(counts[name], sums[name], "o-", markevery=[-1], color=orange)
            label(axes, f"predicted for {name}: {ceiling:,.0f}", 0.15, ceiling, blue, (0, 5))
            label(axes, f"{name} measured: {last_sum:,.0f}", last_count, last_sum, orange, (-6, -17))
        ticks = [2**k for k in range(0, 25, 4)]
        axes.set(xlim=(2**-3, 2**36), ylim=(1, 2**27), xticks=ticks, yticks=ticks)
    return axes.figure


def sizes_over_reach(sizes: Sequence[Number], formats: Mapping[str, Format]) -> Figure:
    """How many numbers have which size, and above them what each format can hold: below its line's end it is 0."""
    powers = Counter(math.floor(math.log2(size)) for size in sizes)
    most, least = max(powers.values()), min(powers)
    title = "Gradients fall out of fp16's reach, not out of bf16's"
    left, right = least - 4, 22
    with axes_with(
        title, "size of a gradient", "gradients in each power of two", height=5.2, log_x=2
    ) as axes:
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
            words = f"{f.label}: everything up to {lost:.0e} becomes 0".replace("e-0", "e-")
            label(axes, words, max(begin, 2.0 ** (least + 2)), height, COLOURS["limit"], (0, 8))
        axes.set_xticks([2.0**power for power in range(10 * (left // 10 + 1), right, 10)])
    return axes.figure
