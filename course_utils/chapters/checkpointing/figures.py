"""The figures of notebook 8."""

from collections.abc import Mapping, Sequence
from numbers import Real

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.core.say import Number, seconds_text
from course_utils.core.say.language import template, translated
from course_utils.engine.figures.filling import (
    NO_PART,
    quoted,
    refusal,
    refuse_names,
    size_text,
)
from course_utils.engine.figures.style import (
    COLOURS,
    CURVES,
    INK,
    QUIET,
    axes_with,
    label,
    measured_dots,
    points,
)

NO_WORDS = template("{name} wants a size as text in quotes, as in {example}; {value} is none.")


def wasted_shares(
    intervals_s: Sequence[Number],
    predicted: Sequence[Number],
    simulated: Mapping[Number, Number],
    best_s: Number,
) -> Figure:
    """Draw the share of a run's time that is lost, by the time between two saves.

    `predicted` has a share for each interval. `simulated` maps a few intervals to the shares that
    simulated runs have lost. `best_s` is the best interval by Young's rule.
    """
    title = "Save too often or too rarely, and the run pays; in between there is room"
    x_name = "time between two saves"
    y_name = "share of the time that is lost"
    with axes_with(title, x_name, y_name, log_x=10) as axes:
        axes.plot(intervals_s, predicted, color=COLOURS["predicted"])
        measured_dots(axes, simulated.items())
        axes.axvline(best_s, color=QUIET, linestyle=":", linewidth=points(1.5))
        label(axes, f"√(2CM): {seconds_text(best_s)}", best_s, 0, QUIET, offset=(6, 8))
        axes.set_ylim(0, 1)
        # A tick at each simulated interval, in words such as "20 min", instead of powers of ten.
        axes.set_xticks(list(simulated), [seconds_text(s) for s in simulated])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        # The words stand at the last point of the curve, and at the last dot.
        curve_end = (intervals_s[-1], predicted[-1])
        label(axes, "predicted", *curve_end, COLOURS["predicted"], offset=(-8, -2), ha="right")
        last_dot = list(simulated.items())[-1]
        label(axes, "simulated", *last_dot, COLOURS["measured"], offset=(10, -10))
    return axes.figure


def steps_on_a_gpu(
    predicted: Mapping[str, Sequence[Number]], measured: Mapping[str, Sequence[Number]]
) -> Figure:
    """Draw the GB that each operation of a step finds in memory, for several steps by their names.

    Measured are as many operations as predicted. A dot is drawn for every fortieth of them, and for
    the one that finds the most.
    """
    title = "A step on an H100 holds what was predicted, operation by operation"
    x_name = "operation"
    y_name = "GB beyond what is held between steps"
    with axes_with(title, x_name, y_name) as axes:
        dots = []
        for (name, gigabytes), colour in zip(predicted.items(), CURVES[1:], strict=False):
            axes.plot(gigabytes, color=colour, linewidth=points(2))
            found = measured[name]
            fullest = max(range(len(found)), key=found.__getitem__)
            dotted = sorted({*range(0, len(found), 40), fullest})
            dots += [(number, found[number]) for number in dotted]
            words = f"{name}: {found[fullest]:.1f} GB"
            label(axes, words, fullest, found[fullest], colour, offset=(8, 4))
        measured_dots(axes, dots)
        label(axes, "measured", *dots[len(dots) // 4], COLOURS["measured"], offset=(8, -14))
        axes.set_ylim(bottom=0)
        axes.margins(x=0.02, y=0.1)
    return axes.figure


# The boxes of `step_parts`: a name, how many boxes, the width and height of each. Nothing is to
# scale. Three of five layers are recomputed.
_PARTS = (
    ("inputs", 3, 0.5, 3),
    ("whole_layers", 2, 3.5, 3),
    ("last_norm", 2, 0.5, 3),
    ("loss", 3, 1.6, 5),
)
_APART = 2.6  # between two parts


def _refuse_other_than_text(filled: Mapping[str, object], example: str) -> None:
    """Raise a refusal for a size that is neither a text nor a number, which is written as one."""
    for name, value in filled.items():
        if not isinstance(value, Real | str):
            raise refusal(translated(NO_WORDS, name=name, example=example, value=quoted(value)))


def step_parts(*unnamed: object, **sizes: str | Real) -> Figure:
    """Draw the four parts of what a step keeps at the loss, in the order of the forward pass.

    A part in `sizes`, such as `inputs="recomputed × hidden"`, is filled, and says that size; the
    others have a question mark. A size is a text or a number; anything else is refused, and so is
    a name without a part.
    """
    names = [name for name, *_ in _PARTS]
    example = 'inputs="recomputed × hidden"'
    refuse_names(names, unnamed, sizes, example, unknown=NO_PART)
    _refuse_other_than_text(sizes, example)
    title = "At the loss a step holds four parts, which your sum adds up"
    with axes_with(title, "the forward pass, from left to right", "bytes", height=290) as axes:
        left = 1.0
        for name, count, width, height in _PARTS:
            right = _draw_boxes(axes, left, (count, width, height), is_filled=name in sizes)
            middle = (left + right) / 2
            axes.text(middle, -0.5, name, ha="center", va="top", weight="bold")
            axes.text(middle, -1.5, size_text(sizes.get(name, "?")), ha="center", va="top")
            left = right + _APART
        axes.set(xlim=(-1, left), ylim=(-2.6, 5.6), xticks=[], yticks=[])
        axes.grid(visible=False)
    return axes.figure


def _draw_boxes(
    axes: Axes, left: Number, boxes: tuple[int, Number, Number], *, is_filled: bool
) -> Number:
    """Draw equal boxes in a row, and return where the last one ends.

    `boxes` has their number, and the width and height of each.
    """
    count, width, height = boxes
    for _ in range(count):
        box = Rectangle(
            (left, 0),
            width,
            height,
            facecolor=COLOURS["parameters"] if is_filled else "white",
            edgecolor=INK,
            linewidth=1.2,
        )
        axes.add_patch(box)
        left += width + 0.3
    return left - 0.3
