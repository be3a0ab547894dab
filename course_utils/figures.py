"""Data in, a closed matplotlib Figure out. Nothing here computes what it draws."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.floats import Format
from course_utils.quantities import Number, rate_text

# A colour means one thing in the whole series. Okabe and Ito's and Tol's, which colour-blind readers can tell apart.
COLOURS = {
    "predicted": "#0072B2",
    "measured": "#D55E00",
    "limit": "#5f6b76",
    "alarm": "#D55E00",
    "sign": "#CC79A7",
    "exponent": "#00A878",
    "fraction": "#56B4E9",
    "batch": "#BBBBBB",
    "kept": "#88CCEE",
    "summed": "#DDCC77",
    "forward": "#88CCEE",
    "weight_gradient": "#CC6677",
    "input_gradient": "#DDCC77",
    # What training holds; for every kind of eye the nearest two are far apart.
    "parameters": "#88BBEE",
    "gradients": "#EEDD88",
    "optimizer": "#117755",
    "master": "#999933",
    "activations": "#EE99AA",
    "sgd": "#834D3F",
    "momentum": "#E69F00",
    "adagrad": "#6EB9B9",
    "rmsprop": "#AA186F",
    "adam": "#4444E4",
    "adamw": "#70A1EB",
}

_STYLE = {
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "font.size": 12,
    "axes.titlesize": 14,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e6e8",
    "lines.linewidth": 2.5,
}


@contextmanager
def _axes(title: str, xlabel: str, ylabel: str, height: Number = 4.8) -> Iterator[Axes]:
    """Axes in the course's style, on a figure that is closed when the drawing is done: it shows once, when returned."""
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(9.5, height), layout="constrained")
        try:
            axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
            yield axes
        finally:
            plt.close(figure)


def reach_and_step(formats: Mapping[str, Format]) -> Figure:
    """Each format as a line: its reach from left to right, its step at a height, lower being finer."""
    colours = {11: COLOURS["limit"], 8: "#1a1a1a", 5: "#9a6700"}  # one for each width of the exponent
    beside = {"e2m1": (-4, 9), "e4m3": (9, -14), "fp16": (-14, -20)}  # where a label would cover a line
    title = "Exponent bits buy reach, fraction bits buy fine steps"
    with _axes(title, "size of the number", "step to the next number ÷ the number", height=5.6) as axes:
        axes.set(xscale="log", yscale="log", xlim=(1e-48, 1e52), ylim=(3e-17, 8))
        for name, f in formats.items():
            colour = colours.get(f.exponent_bits, COLOURS["limit"])
            # Below the smallest normal number the step no longer shrinks with the number.
            sizes = [max(f.smallest_subnormal, 1e-320), f.smallest_normal, f.max]
            style = "--" if name == "tf32" else "-"  # fp16 lies on it
            axes.plot(sizes, [1.0, f.epsilon, f.epsilon], color=colour, linestyle=style)
            label = name.upper() if name.startswith("e") else name
            if f.max < axes.get_xlim()[1]:
                axes.plot(f.max, f.epsilon, "o", color=colour)
                _label(axes, label, f.max, f.epsilon, colour, beside.get(name, (9, -4)))
            else:
                words = f"{label}, and on to {f.max:.1e}".replace("e+", "e")
                _label(axes, words, 1e16, f.epsilon, colour, (0, 8))
        _label(axes, "subnormals lose\ndigits one by one", 3e-36, 2e-5, COLOURS["limit"], (0, 0))
    return axes.figure


def running_sums(
    counts: Mapping[str, Sequence[int]], sums: Mapping[str, Sequence[Number]], ceilings: Mapping[str, Number]
) -> Figure:
    """Sums of ones as they run, and the height at which each was predicted to stop."""
    title = "A running sum of ones stops where 1 is half a step"
    with _axes(title, "ones added", "the sum as it is stored") as axes:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        blue, orange = COLOURS["predicted"], COLOURS["measured"]
        for name, ceiling in ceilings.items():
            last_count, last_sum = counts[name][-1], sums[name][-1]
            axes.axhline(ceiling, color=blue, linestyle=":", linewidth=2)
            axes.plot(counts[name], sums[name], color=orange)
            axes.plot(last_count, last_sum, "o", color=orange)
            _label(axes, f"predicted for {name}: {ceiling:,.0f}", 0.15, ceiling, blue, (0, 5))
            _label(axes, f"{name} measured: {last_sum:,.0f}", last_count, last_sum, orange, (-6, -17))
        ticks = [2**k for k in range(0, 25, 4)]
        axes.set(xlim=(2**-3, 2**36), ylim=(1, 2**27), xticks=ticks, yticks=ticks)
    return axes.figure


def roofline(
    roofs: Mapping[str, tuple[Number, Number]],
    clouds: Mapping[str, Sequence[tuple[Number, Number]]],
    named_points: Mapping[str, tuple[Number, Number]],
    title: str,
) -> Figure:
    """Roofs as (peak FLOP/s, bytes/s), and what was measured under them as (FLOPs per byte, FLOP/s)."""
    with _axes(title, "FLOPs per byte moved", "FLOP/s", height=5.4) as axes:
        axes.set(xscale="log", yscale="log")
        blue, orange = COLOURS["predicted"], COLOURS["measured"]
        points = [*named_points.values(), *(point for cloud in clouds.values() for point in cloud)]
        ridges = [peak / bandwidth for peak, bandwidth in roofs.values()]
        low, high = min([x for x, _ in points] + ridges) / 8, max([x for x, _ in points] + ridges) * 6
        for name, (peak, bandwidth) in roofs.items():
            axes.plot([low, peak / bandwidth, high], [low * bandwidth, peak, peak], color=blue)
            _label(axes, f"{name}: {rate_text(peak)}", peak / bandwidth, peak, blue, (4, 6))
        for cloud in clouds.values():
            axes.plot(*zip(*cloud, strict=True), "o", color=orange, markersize=4, alpha=0.3)
        by_height = sorted(named_points.items(), key=lambda item: item[1][1])
        for rank, (name, (x, y)) in enumerate(by_height):
            axes.plot(x, y, "o", color=orange, markersize=9)
            left = x < min(ridges)  # where points crowd, words go down and up in turn
            _label(
                axes,
                name,
                x,
                y,
                orange,
                (-10, 1 if rank % 2 else -12) if left else (8, -14),
                ha="right" if left else "left",
            )
        axes.set_xlim(low, high)
        rates = [y for _, y in points] + [peak for peak, _ in roofs.values()]
        axes.set_ylim(min(rates) / 2, max(rates) * 3)
        axes.yaxis.set_major_formatter(lambda rate, _: rate_text(rate))
        _key(axes, "predicted: the roof", "measured")
    return axes.figure


def timing_samples(samples: Sequence[Number]) -> Figure:
    """Every sample of one measurement in the order taken, the best of them, and their mean."""
    with _axes(
        "The mean reports other programs too, the best reports the call", "sample", "µs a call", 3.8
    ) as axes:
        microseconds = [1e6 * seconds for seconds in samples]
        axes.plot(microseconds, "o", color=COLOURS["measured"], markersize=4, alpha=0.6)
        best, mean = min(microseconds), sum(microseconds) / len(microseconds)
        for words, value, offset in ((f"best: {best:.4g}", best, -16), (f"mean: {mean:.4g}", mean, 6)):
            axes.axhline(value, color=COLOURS["limit"], linestyle=":")
            _label(axes, words, len(microseconds), value, COLOURS["limit"], (4, offset))
        axes.set_xlim(-1, len(microseconds) * 1.2)
        axes.set_ylim(best * 0.9, max(mean * 1.2, best * 1.3))
    return axes.figure


def strided_reads(strides: Sequence[int], predicted: Sequence[Number], measured: Sequence[Number]) -> Figure:
    """Time to read one number at each stride, over that at stride 1: by cache lines, and as it was measured."""
    title = "The further apart numbers lie, the more each costs to read"
    with _axes(title, "stride, in numbers of 4 bytes", "time for each number, stride 1 = 1") as axes:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        for name, values, style in (("predicted", predicted, "-"), ("measured", measured, "o-")):
            axes.plot(strides, values, style, color=COLOURS[name], markersize=9)
        _key(axes, "cache lines fetched", "measured")
        ticks = [2**k for k in range(1 + int(max(*predicted, *measured)).bit_length())]
        axes.set_xticks(strides, [str(s) for s in strides])
        axes.set_yticks(ticks, [str(t) for t in ticks])
        axes.set_ylim(0.8, 2 * max(*predicted, *measured))
    return axes.figure


def scale_by_depth(
    predicted: Mapping[str, Sequence[Number]], measured: Mapping[str, Sequence[Number]]
) -> Figure:
    """Mean square behind each layer, for each variance of the weights."""
    title = "Behind ReLU, only a variance of 2 / inputs keeps the scale"
    with _axes(title, "layer", "mean square behind ReLU") as axes:
        axes.set_yscale("log")
        for name, line in predicted.items():
            layers = range(1, len(line) + 1)
            axes.plot(layers, line, color=COLOURS["predicted"])
            axes.plot(layers, measured[name], "o", color=COLOURS["measured"], markersize=8)
            _label(axes, f"variance {name}", len(line), line[-1], COLOURS["predicted"], (8, -4))
        axes.set_xlim(0.5, len(line) * 1.8)
        axes.set_xticks(list(layers))
        _key(axes, "predicted", "measured")
    return axes.figure


def steps_under_constant_gradient(
    predicted: Mapping[str, Sequence[Number]], measured: Mapping[str, Sequence[Number]], every: int
) -> Figure:
    """The steps of each optimizer when every gradient is 1: predicted lines, and every so many that were taken."""
    title = "The same gradient a hundred times: momentum adds up, AdaGrad tires"
    with _axes(title, "step", "its length, in learning rates", height=5.2) as axes:
        axes.set_yscale("log")
        names_by_end: dict[Number, list[str]] = {}
        for name, line in predicted.items():
            axes.plot(range(1, len(line) + 1), line, color=COLOURS["predicted"])
            points = range(1, 1 + every * len(measured[name]), every)
            axes.plot(points, measured[name], "o", color=COLOURS["measured"], markersize=6)
            names_by_end.setdefault(round(line[-1], 6), []).append(name)
        for end, names in names_by_end.items():
            _label(axes, " and ".join(names), len(line), end, COLOURS["predicted"], (8, -4))
        axes.set_xlim(0, len(line) * 1.45)
        axes.yaxis.set_major_formatter(lambda length, _: f"{length:g}")
        _key(axes, "predicted", "taken")
    return axes.figure


def loss_curve(losses: Sequence[Number], even_guess: Number) -> Figure:
    """Losses by step, and the loss of guessing evenly."""
    title = "Training begins above the loss of an even guess, and falls"
    with _axes(title, "step", "loss") as axes:
        axes.axhline(even_guess, color=COLOURS["predicted"], linestyle=":")
        _label(
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


def activations_by_length(
    sequences: Sequence[int], nbytes: Mapping[str, Sequence[Number]], limit: Number
) -> Figure:
    """Bytes that autograd keeps as sequences grow, each way a line, and the memory of one machine."""
    title = "Scores grow with the square of the sequence, everything else in proportion"
    with _axes(title, "sequence length S", "activations of one sequence of GPT-3, bf16") as axes:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.axhline(limit, color=COLOURS["limit"], linestyle=":")
        _label(axes, "an H100's memory", sequences[0], limit, COLOURS["limit"], (0, 5))
        for name, line in nbytes.items():
            axes.plot(sequences, line, color=COLOURS["predicted"])
            _label(axes, name, sequences[-1], line[-1], COLOURS["predicted"], (6, -4))
        axes.set_xlim(sequences[0] / 1.2, sequences[-1] * 24)
        axes.set_xticks(sequences, [f"{s:,}" for s in sequences])
        axes.yaxis.set_major_formatter(lambda n, _: f"{n / 1e9:,.0f} GB")
    return axes.figure


def attention_shares(
    sequences: Sequence[int],
    shares: Mapping[str, Sequence[Number]],
    counted: Mapping[str, Sequence[tuple[int, Number]]],
) -> Figure:
    """Attention's FLOPs over those of the matrices as sequences grow: predicted lines, counted points."""
    title = "Attention costs S / (6H) of what the matrices cost"
    with _axes(title, "sequence length S", "attention, share of the matrices") as axes:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        blue, orange = COLOURS["predicted"], COLOURS["measured"]
        axes.axhline(1, color=COLOURS["limit"], linestyle=":")
        _label(axes, "as much as all matrices", sequences[0], 1, COLOURS["limit"], (0, 5))
        for name, line in shares.items():
            axes.plot(sequences, line, color=blue)
            _label(axes, name, sequences[-1], line[-1], blue, (6, -4))
        for points in counted.values():
            axes.plot(*zip(*points, strict=True), "o", color=orange, markersize=8)
        axes.set_xlim(sequences[0] / 1.2, sequences[-1] * 12)
        axes.set_xticks(sequences[::3], [f"{s:,}" for s in sequences[::3]])
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        _key(axes, "predicted", "counted")
    return axes.figure


def _key(axes: Axes, predicted: str, measured: str) -> None:
    """What blue and orange stand for, in the corner."""
    for words, colour, height in (
        (predicted, COLOURS["predicted"], 0.1),
        (measured, COLOURS["measured"], 0.03),
    ):
        axes.text(0.98, height, words, color=colour, weight="bold", ha="right", transform=axes.transAxes)


def _label(
    axes: Axes, words: str, x: Number, y: Number, colour: str, offset: tuple[int, int], ha: str = "left"
) -> None:
    """Words beside the thing they name, `offset` points away."""
    axes.annotate(
        words, (x, y), xytext=offset, textcoords="offset points", color=colour, weight="bold", ha=ha
    )
