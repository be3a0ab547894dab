"""What happens in training: scales, steps, losses, crashes."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_utils.figures.style import COLOURS, axes_with, key, label
from course_utils.quantities import Number, seconds_text


def scale_by_depth(
    predicted: Mapping[str, Sequence[Number]], measured: Mapping[str, Sequence[Number]]
) -> Figure:
    """Mean square behind each layer, for each variance of the weights."""
    title = "Behind ReLU, only a variance of 2 / inputs keeps the scale"
    with axes_with(title, "layer", "mean square behind ReLU") as axes:
        axes.set_yscale("log")
        for name, line in predicted.items():
            layers = range(1, len(line) + 1)
            axes.plot(layers, line, color=COLOURS["predicted"])
            axes.plot(layers, measured[name], "o", color=COLOURS["measured"], markersize=8)
            label(axes, f"variance {name}", len(line), line[-1], COLOURS["predicted"], (8, -4))
        axes.set_xlim(0.5, len(line) * 1.8)
        axes.set_xticks(list(layers))
        key(axes, "predicted", "measured")
    return axes.figure


def steps_under_constant_gradient(
    predicted: Mapping[str, Sequence[Number]], measured: Mapping[str, Sequence[Number]], every: int
) -> Figure:
    """The steps of each optimizer when every gradient is 1: predicted lines, and every so many that were taken."""
    title = "The same gradient a hundred times: momentum adds up, AdaGrad tires"
    with axes_with(title, "step", "its length, in learning rates", height=5.2) as axes:
        axes.set_yscale("log")
        names_by_end: dict[Number, list[str]] = {}
        for name, line in predicted.items():
            axes.plot(range(1, len(line) + 1), line, color=COLOURS["predicted"])
            points = range(1, 1 + every * len(measured[name]), every)
            axes.plot(points, measured[name], "o", color=COLOURS["measured"], markersize=6)
            names_by_end.setdefault(round(line[-1], 6), []).append(name)
        for end, names in names_by_end.items():
            label(axes, " and ".join(names), len(line), end, COLOURS["predicted"], (8, -4))
        axes.set_xlim(0, len(line) * 1.45)
        axes.yaxis.set_major_formatter(lambda length, _: f"{length:g}")
        key(axes, "predicted", "taken")
    return axes.figure


def loss_curve(losses: Sequence[Number], even_guess: Number) -> Figure:
    """Losses by step, and the loss of guessing evenly."""
    title = "Training begins above the loss of an even guess, and falls"
    with axes_with(title, "step", "loss") as axes:
        axes.axhline(even_guess, color=COLOURS["predicted"], linestyle=":")
        label(
            axes,
            f"an even guess: {even_guess:.2f}",
            len(losses) * 0.55,
            even_guess,
            COLOURS["predicted"],
            (0, 6),
        )
        axes.plot(losses, color=COLOURS["measured"])
        axes.set_ylim(0, 1.15 * max(even_guess, *losses))
    return axes.figure


def losses_by_mix(losses: Mapping[str, Sequence[Number]]) -> Figure:
    """Losses by step on a logarithmic axis; curves that end within a tenth of each other share a label."""
    title = "Where precision or range is missing, the loss falls behind"
    with axes_with(title, "step", "loss", height=5.6) as axes:
        axes.set_yscale("log")
        groups: list[tuple[Number, list[str]]] = []
        for name, line in sorted(losses.items(), key=lambda item: -item[1][-1]):
            axes.plot(line, color=COLOURS["measured"], linewidth=2)
            if groups and line[-1] > 0.9 * groups[-1][0]:
                groups[-1][1].append(name)
            else:
                groups.append((line[-1], [name]))
        for end, names in groups:
            words = "\n".join(names)
            axes.text(1.02 * len(line), end, words, color=COLOURS["measured"], weight="bold", va="center")
        steps = len(line)
        axes.set_xlim(0, 1.42 * steps)
        axes.set_xticks(range(0, steps + 1, max(1, steps // 4)))
        axes.spines["bottom"].set_bounds(0, steps)
        axes.set_ylim(bottom=groups[-1][0] / 2.5)
        axes.yaxis.set_major_formatter(lambda loss, _: f"{loss:g}")
    return axes.figure


def wasted_shares(
    intervals_s: Sequence[Number],
    predicted: Sequence[Number],
    simulated: Mapping[Number, Number],
    best_s: Number,
) -> Figure:
    """The share of a run's time that saving and lost work take, by the time between two saves."""
    title = "Save too often or too rarely, and the run pays; in between there is room"
    with axes_with(title, "time between two saves", "share of the time that is lost") as axes:
        axes.set_xscale("log")
        axes.plot(intervals_s, predicted, color=COLOURS["predicted"])
        axes.plot(*zip(*simulated.items(), strict=True), "o", color=COLOURS["measured"], markersize=8)
        axes.axvline(best_s, color=COLOURS["limit"], linestyle=":")
        label(axes, f"√(2CM): {seconds_text(best_s)}", best_s, 0, COLOURS["limit"], (6, 8))
        axes.set_ylim(0, 1)
        axes.set_xticks(list(simulated), [seconds_text(s) for s in simulated])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        key(axes, "predicted", "simulated")
    return axes.figure
