"""What a model costs: bytes that are kept, FLOPs that are spent."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_utils.figures.style import COLOURS, axes_with, key, label, level, measured_dots, predicted_line
from course_utils.quantities import Number, decimal_bytes_text


def activations_by_length(
    sequences: Sequence[int], nbytes: Mapping[str, Sequence[Number]], limit: Number
) -> Figure:
    """Bytes that autograd keeps as sequences grow, each way a line, and the memory of one machine."""
    title = "Scores grow with the square of the sequence, everything else in proportion"
    ylabel = "activations of one sequence of GPT-3, bf16"
    with axes_with(title, "sequence length S", ylabel, log_x=2, log_y=10) as axes:
        level(axes, "an H100's memory", sequences[0], limit, (0, 5))
        for name, line in nbytes.items():
            predicted_line(axes, name, sequences, line)
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
    blue = COLOURS["predicted"]
    with axes_with(title, "FLOPs of a step, without recomputing = 1", "most bytes kept at one time") as axes:
        costs, most_bytes = zip(*sorted(predicted.values()), strict=True)
        axes.plot(costs, most_bytes, "o-", color=blue, linewidth=1, markersize=11)
        measured_dots(axes, measured.values(), 5)
        for segment, (x, y) in predicted.items():
            words, offset = (f"s = {segment}", (9, -14)) if segment else ("everything kept", (9, 4))
            label(axes, words, x, y, blue, offset)
        axes.set(xlim=(0.98, 1.38), ylim=(0, 1.1 * max(most_bytes)))
        axes.yaxis.set_major_formatter(lambda n, _: decimal_bytes_text(n))
        key(axes, "predicted", "measured", left=True)
    return axes.figure


def attention_shares(
    sequences: Sequence[int],
    shares: Mapping[str, Sequence[Number]],
    counted: Mapping[object, Sequence[tuple[int, Number]]],
) -> Figure:
    """Attention's FLOPs over those of the matrices as sequences grow: predicted lines, counted points."""
    title = "Attention costs S / (6H) of what the matrices cost"
    ylabel = "attention, share of the matrices"
    with axes_with(title, "sequence length S", ylabel, log_x=2, log_y=10) as axes:
        level(axes, "as much as all matrices", sequences[0], 1, (0, 5))
        for name, line in shares.items():
            predicted_line(axes, name, sequences, line)
        for points in counted.values():
            measured_dots(axes, points)
        axes.set_xlim(sequences[0] / 1.2, sequences[-1] * 12)
        axes.set_xticks(sequences[::3], [f"{s:,}" for s in sequences[::3]])
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        key(axes, "predicted", "counted")
    return axes.figure
