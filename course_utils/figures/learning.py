"""What happens in training: scales, steps, losses, crashes."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_utils.figures.colours import COLOURS
from course_utils.figures.style import axes_with, ink, key, label, measured_dots
from course_utils.quantities import Number, seconds_text

Point = tuple[Number, Number]


def ravine(paths: Mapping[str, Sequence[Point]], contours: Sequence[Sequence[Point]], title: str) -> Figure:
    """The places that each optimizer came to, over lines of equal loss; the minimum is at 0."""
    with axes_with(title, "along the ravine; the minimum is at 0", "across it") as axes:
        for line in contours:
            axes.plot(*zip(*line, strict=True), color="#b9c0c6", linewidth=1, gid="grid")
        for row, (name, places) in enumerate(reversed(paths.items())):
            colour = COLOURS[name.lower()]
            axes.plot(*zip(*places, strict=True), "o-", color=colour, linewidth=1.5, markersize=4)
            words, place = f"{name}, {len(places) - 1} steps", (0.98, 0.03 + 0.07 * row)
            axes.text(*place, words, color=ink(colour), weight="bold", ha="right", transform=axes.transAxes)
        axes.plot(0, 0, "+", color=COLOURS["limit"], markersize=16, markeredgewidth=3)
        label(axes, "start", *places[0], COLOURS["limit"], (-8, 6), ha="right")
        axes.set(xlim=(-1.75, 0.75), ylim=(-1.25, 1.25))
        axes.grid(visible=False)
    return axes.figure


LOWEST_LOSS, HIGHEST_LOSS = 1e-9, 100.0  # that `loss_over_rate` draws


def loss_over_rate(rates: Sequence[Number], losses: Mapping[str, Sequence[Number]], title: str) -> Figure:
    """The loss that each optimizer ends with, by its learning rate. Its name states its best loss and that rate.

    A loss below 1e-9 is drawn there. One above 100 is not drawn.
    """
    with axes_with(title, "learning rate", "loss", height=5.2, log_x=10, log_y=10) as axes:
        for row, (name, line) in enumerate(losses.items()):
            colour = COLOURS[name.lower()]
            drawn = [max(loss, LOWEST_LOSS) if loss < HIGHEST_LOSS else math.nan for loss in line]
            axes.plot(rates, drawn, color=colour)
            best, rate = min((loss, rate) for loss, rate in zip(line, rates, strict=True) if loss < math.inf)
            axes.plot(rate, max(best, LOWEST_LOSS), "o", color=colour, markersize=9)
            words = f"{name}: {best:.0e} at {rate:.2g}"
            axes.text(
                0.7, 0.93 - 0.07 * row, words, color=ink(colour), weight="bold", transform=axes.transAxes
            )
        axes.set_xlim(rates[0], rates[-1] * 50)
        axes.set_xticks([rate for rate in (1e-3, 1e-2, 0.1, 1, 10) if rates[0] <= rate <= rates[-1] * 1.01])
        axes.minorticks_off()
        axes.spines["bottom"].set_bounds(rates[0], rates[-1])
        axes.set_ylim(LOWEST_LOSS / 3, HIGHEST_LOSS)
        axes.xaxis.set_major_formatter("{x:g}")
    return axes.figure


def losses_by_mix(losses: Mapping[str, Sequence[Number]]) -> Figure:
    """Losses by step on a logarithmic axis; curves that end within a tenth of each other share a label."""
    title = "Where precision or reach is missing, the loss falls behind"
    orange = COLOURS["measured"]
    with axes_with(title, "step", "loss", height=5.6, log_y=10) as axes:
        groups: list[tuple[Number, list[str]]] = []
        for name, line in sorted(losses.items(), key=lambda item: -item[1][-1]):
            axes.plot(line, color=orange, linewidth=2)
            if groups and line[-1] > 0.9 * groups[-1][0]:
                groups[-1][1].append(name)
            else:
                groups.append((line[-1], [name]))
        steps = len(line)
        for end, names in groups:
            axes.text(1.02 * steps, end, "\n".join(names), color=orange, weight="bold", va="center")
        axes.set_xlim(0, 1.42 * steps)
        axes.set_xticks(range(0, steps + 1, max(1, steps // 4)))
        axes.spines["bottom"].set_bounds(0, steps)
        axes.set_ylim(bottom=groups[-1][0] / 2.5)
        axes.yaxis.set_major_formatter("{x:g}")
    return axes.figure


def weights_by_step(alone: Sequence[Number], copies: Sequence[Number], masters: Sequence[Number]) -> Figure:
    """A weight in bf16 alone, and a master copy in fp32 with its own copy in bf16: the same updates, step by step."""
    title = "bf16 alone stands still; the copy of an fp32 master climbs in steps"
    orange = COLOURS["measured"]
    with axes_with(title, "step", "weight") as axes:
        axes.plot(masters, color=orange, linewidth=1)
        axes.plot(copies, color=orange, drawstyle="steps-post")
        axes.plot(alone, color=orange, linestyle="--")
        last = len(masters) - 1
        label(axes, "fp32 master", last, masters[-1], orange, (8, 4))
        label(axes, "its bf16 copy", last, copies[-1], orange, (8, -14))
        label(axes, "bf16 alone", last, alone[-1], orange, (8, -4))
        axes.set_xlim(0, last * 1.25)
        axes.set_xticks(range(0, last + 1, max(1, last // 4)))
        axes.spines["bottom"].set_bounds(0, last)
        axes.yaxis.set_major_formatter("{x:g}")
    return axes.figure


def scales_by_step(scales: Sequence[Number], by_torch: Sequence[Number], limits: Sequence[Number]) -> Figure:
    """The loss scale by a rule, torch's own beside it, and the scale from which each step's gradient is infinite."""
    title = "Halved at once, doubled after patience: the scale finds its limit"
    with axes_with(title, "step", "loss scale", height=5.2, log_y=2) as axes:
        axes.plot(limits, color=COLOURS["limit"], linestyle=":")
        axes.plot(scales, color=COLOURS["predicted"], drawstyle="steps-mid")
        measured_dots(axes, enumerate(by_torch), 5)
        label(axes, "dotted: infinite from here on", 0, max(limits), COLOURS["limit"], (0, -6))
        key(axes, "by the rule", "by torch")
    return axes.figure


def wasted_shares(
    intervals_s: Sequence[Number],
    predicted: Sequence[Number],
    simulated: Mapping[Number, Number],
    best_s: Number,
) -> Figure:
    """The share of a run's time that saving and lost work take, by the time between two saves."""
    title = "Save too often or too rarely, and the run pays; in between there is room"
    with axes_with(title, "time between two saves", "share of the time that is lost", log_x=10) as axes:
        axes.plot(intervals_s, predicted, color=COLOURS["predicted"])
        measured_dots(axes, simulated.items())
        axes.axvline(best_s, color=COLOURS["limit"], linestyle=":")
        label(axes, f"√(2CM): {seconds_text(best_s)}", best_s, 0, COLOURS["limit"], (6, 8))
        axes.set_ylim(0, 1)
        axes.set_xticks(list(simulated), [seconds_text(s) for s in simulated])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        key(axes, "predicted", "simulated")
    return axes.figure
