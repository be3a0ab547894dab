"""How fast a machine is: roofs and samples."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_utils.figures.style import COLOURS, axes_with, key, label, level, measured_dots
from course_utils.quantities import Number, rate_text, three_digits


def roofline(
    roofs: Mapping[str, tuple[Number, Number]],
    clouds: Mapping[str, Sequence[tuple[Number, Number]]],
    named_points: Mapping[str, tuple[Number, Number]],
    title: str,
) -> Figure:
    """Roofs as (peak FLOP/s, bytes/s), and what was measured under them as (FLOPs per byte, FLOP/s)."""
    blue, orange = COLOURS["predicted"], COLOURS["measured"]
    points = [*named_points.values(), *(point for cloud in clouds.values() for point in cloud)]
    with axes_with(title, "FLOPs per byte moved", "FLOP/s", height=5.4, log_x=10, log_y=10) as axes:
        ridges = [peak / bandwidth for peak, bandwidth in roofs.values()]
        low, high = min([x for x, _ in points] + ridges) / 8, max([x for x, _ in points] + ridges) * 6
        for name, (peak, bandwidth) in roofs.items():
            axes.plot([low, peak / bandwidth, high], [low * bandwidth, peak, peak], color=blue)
            label(axes, f"{name}: {rate_text(peak)}", high, peak, blue, (-4, 6), ha="right")
        for cloud in clouds.values():
            measured_dots(axes, cloud, 4, alpha=0.75)
        by_height = sorted(named_points.items(), key=lambda item: item[1][1])
        for rank, (name, (x, y)) in enumerate(by_height):
            measured_dots(axes, [(x, y)], 9)
            if x < min(ridges):  # where points crowd, words go down and up in turn
                label(axes, name, x, y, orange, (-10, 1 if rank % 2 else -12), ha="right")
            else:
                label(axes, name, x, y, orange, (8, -14))
        rates = [y for _, y in points] + [peak for peak, _ in roofs.values()]
        axes.set(xlim=(low, high), ylim=(min(rates) / 2, max(rates) * 3))
        axes.yaxis.set_major_formatter(lambda rate, _: rate_text(rate))
        key(axes, "predicted: the roof", "measured")
    return axes.figure


def timing_samples(samples: Sequence[Number]) -> Figure:
    """Every sample of one measurement in the order taken, the best of them, and their mean."""
    title = "The same call does not always take the same time"
    with axes_with(title, "sample", "µs a call", height=3.8) as axes:
        microseconds = [1e6 * seconds for seconds in samples]
        best, mean = min(microseconds), sum(microseconds) / len(microseconds)
        measured_dots(axes, enumerate(microseconds), 4, alpha=0.75)
        level(axes, f"best: {three_digits(best)}", len(microseconds), best, (4, -16))
        level(axes, f"mean: {three_digits(mean)}", len(microseconds), mean, (4, 6))
        axes.set(xlim=(-1, len(microseconds) * 1.2), ylim=(best * 0.9, max(mean * 1.2, best * 1.3)))
    return axes.figure
