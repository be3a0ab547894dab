"""What a model costs: bytes that are kept, FLOPs that are spent."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_utils.figures.style import COLOURS, axes_with, key, label
from course_utils.quantities import Number, bytes_text


def activations_by_length(
    sequences: Sequence[int], nbytes: Mapping[str, Sequence[Number]], limit: Number
) -> Figure:
    """Bytes that autograd keeps as sequences grow, each way a line, and the memory of one machine."""
    title = "Scores grow with the square of the sequence, everything else in proportion"
    with axes_with(title, "sequence length S", "activations of one sequence of GPT-3, bf16") as axes:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.axhline(limit, color=COLOURS["limit"], linestyle=":")
        label(axes, "an H100's memory", sequences[0], limit, COLOURS["limit"], (0, 5))
        for name, line in nbytes.items():
            axes.plot(sequences, line, color=COLOURS["predicted"])
            label(axes, name, sequences[-1], line[-1], COLOURS["predicted"], (6, -4))
        axes.set_xlim(sequences[0] / 1.2, sequences[-1] * 24)
        axes.set_xticks(sequences, [f"{s:,}" for s in sequences])
        axes.yaxis.set_major_formatter(lambda n, _: f"{n / 1e9:,.0f} GB")
    return axes.figure


def recompute_frontier(
    predicted: Mapping[int, tuple[Number, Number]], measured: Mapping[int, tuple[Number, Number]]
) -> Figure:
    """Each segment length's FLOPs of a step, over those without recomputing, and the most bytes kept at one time."""
    best = min(predicted, key=lambda segment: predicted[segment][1])
    title = f"Segments of {best} keep least" if best else "Recomputing does not help here"
    with axes_with(title, "FLOPs of a step, without recomputing = 1", "most bytes kept at one time") as axes:
        in_order = sorted(predicted.values())
        axes.plot(*zip(*in_order, strict=True), color=COLOURS["predicted"], linewidth=1)
        axes.plot(*zip(*in_order, strict=True), "o", color=COLOURS["predicted"], markersize=11)
        axes.plot(*zip(*measured.values(), strict=True), "o", color=COLOURS["measured"], markersize=5)
        for segment, (x, y) in predicted.items():
            words, offset = (f"s = {segment}", (9, -14)) if segment else ("everything kept", (9, 4))
            label(axes, words, x, y, COLOURS["predicted"], offset)
        most = max(y for _, y in predicted.values())
        axes.set(xlim=(0.98, 1.38), ylim=(0, 1.1 * most))
        axes.yaxis.set_major_formatter(lambda n, _: bytes_text(n).split(" = ")[-1])
        for words, height in (("predicted", 0.1), ("measured", 0.03)):
            axes.text(0.02, height, words, color=COLOURS[words], weight="bold", transform=axes.transAxes)
    return axes.figure


def attention_shares(
    sequences: Sequence[int],
    shares: Mapping[str, Sequence[Number]],
    counted: Mapping[str, Sequence[tuple[int, Number]]],
) -> Figure:
    """Attention's FLOPs over those of the matrices as sequences grow: predicted lines, counted points."""
    title = "Attention costs S / (6H) of what the matrices cost"
    with axes_with(title, "sequence length S", "attention, share of the matrices") as axes:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        blue, orange = COLOURS["predicted"], COLOURS["measured"]
        axes.axhline(1, color=COLOURS["limit"], linestyle=":")
        label(axes, "as much as all matrices", sequences[0], 1, COLOURS["limit"], (0, 5))
        for name, line in shares.items():
            axes.plot(sequences, line, color=blue)
            label(axes, name, sequences[-1], line[-1], blue, (6, -4))
        for points in counted.values():
            axes.plot(*zip(*points, strict=True), "o", color=orange, markersize=8)
        axes.set_xlim(sequences[0] / 1.2, sequences[-1] * 12)
        axes.set_xticks(sequences[::3], [f"{s:,}" for s in sequences[::3]])
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        key(axes, "predicted", "counted")
    return axes.figure
