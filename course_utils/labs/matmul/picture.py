"""A product's prediction with its numbers filled in, the roofline, and the time along one size."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from course_utils import predict
from course_utils.datasheets import Machine
from course_utils.labs.draw import svg
from course_utils.labs.draw.lettering import account
from course_utils.labs.draw.plot import Axis, Plot
from course_utils.labs.lab import View
from course_utils.labs.matmul.asked import HERE, Found, Product, Run
from course_utils.quantities import Number, bytes_text, flops_text, number_text, rate_text, seconds_text

WIDTH, HEIGHT = 1000, 370
ROW, WORDS_AT = 17, 100
ROOF, TIMES = (90, 218, 370, 110), (590, 218, 370, 110)  # left, top, width, height
HEAD = ["where", "B", "D", "K", "dtype", "time", "spread", "FLOP/s", "of the peak"]
SIZES = [2.0**power for power in range(21)]


def view(product: Product, found: Found) -> View:
    """The prediction in full, the roofline, and the time along the size that a sweep would change."""
    machine = found.machine(product.where)
    machine.peak(product.dtype)  # or a sentence on what there is
    runs = [run for run in found.runs if (run.machine, run.dtype) == (product.where, product.dtype)]
    run = next((one for one in reversed(runs) if one.size == product.size), product.recorded)
    runs += [run] if run and run not in runs else []
    drawn = [
        *account(_account(product, machine, run), WORDS_AT, 16, WIDTH, step=ROW),
        _roofline(product, machine, runs, run),
        _along(product, machine, runs, run),
    ]
    rows = [_row(one, found.machine(one.machine)) for one in reversed(found.runs)]
    table = [HEAD, *rows] if rows else []
    return View(svg.picture(WIDTH, HEIGHT, *drawn), _meaning(product, machine, run), table)


def _meaning(product: Product, machine: Machine, run: Run | None) -> str:
    ridge, ours = predict.ridge(machine, product.dtype), product.intensity
    side, limit = ("above", "arithmetic") if ours >= ridge else ("below", "memory")
    basis = "" if machine.has_data_sheet else ", by measured peaks"
    found = f" {run.verb}{sizes_text(product, run)}: {seconds_text(run.seconds)}." if run else ""
    return (
        f"{_three_digits(ours)} FLOPs per byte, {side} the ridge of {_three_digits(ridge)}: {limit} is the limit, and predicts "
        f"{seconds_text(product.predicted_s(machine))}{basis}.{found}"
    )


def _three_digits(n: Number) -> str:
    return f"{n:,.0f}" if n >= 99.95 else f"{n:.3g}"


def sizes_text(product: Product, run: Run) -> str:
    """The sizes of a run, where they are others than was asked."""
    return "" if run.size == product.size else " at the nearest size ({:,} × {:,} × {:,})".format(*run.size)


# In numbers.


def _account(product: Product, machine: Machine, run: Run | None) -> Iterator[tuple[str, str, str]]:
    """The formulas with the numbers filled in, prediction beside measurement, and whose peaks and times these are."""
    (b, d, k), flops, nbytes = product.size, product.flops, product.nbytes
    width, seconds = predict.dtype_bytes(product.dtype), product.predicted_s(machine)
    bytes_of = f"(B·D + D·K + B·K) · {width}" if product.dtype != "fp8" else "(B·D + D·K) · 1 + B·K · 2"
    peak, per_sec = machine.peak(product.dtype), machine.bytes_per_sec
    reading = f"{number_text(nbytes)} / {rate_text(per_sec, 'B')} = {seconds_text(nbytes / per_sec)}"
    yield "FLOPs", f"2·B·D·K = 2 · {b:,} · {d:,} · {k:,} = {number_text(flops)} = {flops_text(flops)}", ""
    yield "bytes", f"{bytes_of} = {bytes_text(nbytes)}", ""
    yield "arithmetic", f"{flops_text(flops)} / {rate_text(peak)} = {seconds_text(flops / peak)}", ""
    yield "memory", reading, ""
    yield "predicted", f"the larger of the two: {seconds_text(seconds)}", "formula"
    if run:
        peaks = "the data sheet's peak (MFU)" if machine.has_data_sheet else "what large products reach"
        rate = f"{rate_text(run.rate)}, {_share(run, machine)} of {peaks}"
        words = f"{seconds_text(run.seconds)}{sizes_text(product, run)}, {rate}"
        yield "recorded" if run.recorded else "measured", words, "measured-words"
    else:
        yield "measured", _why_nothing(product), "faint"
    if product.guess_s:
        same = run is not None and run.size == product.size
        beside, what = (run.seconds, "measured") if same else (seconds, "predicted")
        times = f"{_three_digits(product.guess_s / beside)} times what is {what}"
        yield "my guess", f"{seconds_text(product.guess_s)}, {times}", ""
    yield "machine", machine.name, "faint small"
    yield "peaks", f"{machine.source}.", "faint small"
    if product.recording and product.recording.source:
        yield "times", _whose_times(product), "faint small"


def _why_nothing(product: Product) -> str:
    """Instead of a measurement: why there is none."""
    if product.where == HERE:
        return "not timed yet"
    if product.recording:
        return f"not recorded in {product.dtype}; there are: {', '.join(product.recording.seconds_by_size)}"
    return "only on paper: no such machine here, and no recording"


def _whose_times(product: Product) -> str:
    recording, source = product.recording, product.recording.source
    asked_as = {product.dtype, *(["f32"] if product.dtype in ("fp32", "tf32", "xf32") else [])}
    counts = Counter()
    for one in recording.set_apart:
        counts[one.dtype] += len(one.seconds_by_size) * (one.dtype in asked_as)
    left_out = "".join(f" In doubt and left out: {n} in {dtype}." for dtype, n in counts.items() if n)
    return f"Recorded by {source.by}: {source.where}.{left_out}"


def _share(run: Run, machine: Machine) -> str:
    return f"{100 * run.rate / machine.peak(run.dtype):.1f} %"


def _row(run: Run, machine: Machine) -> list[str]:
    sizes, at_most = [f"{size:,}" for size in run.size], "at most " if run.doubt else ""
    spread = "not said" if run.spread is None else f"{100 * run.spread:.1f} %"
    time = [f"{at_most}{seconds_text(run.seconds)}", spread, rate_text(run.rate), _share(run, machine)]
    return [run.machine, *sizes, run.dtype, *time]


# In pictures.


def _roofline(product: Product, machine: Machine, runs: Sequence[Run], now: Run | None) -> str:
    """The roof, every run under it, and the product that is asked for on it."""
    peak, ridge = machine.peak(product.dtype), predict.ridge(machine, product.dtype)
    recorded = product.recording.points(product.dtype) if product.recorded else []
    lowest = min([run.rate for run in runs] + [rate for _, rate in recorded], default=peak)
    y_axis = Axis(min(peak / 10_000, lowest / 2), peak * 3, "FLOP/s", rate_text)
    plot = Plot(*ROOF, Axis(0.1, 10_000, "FLOPs per byte", number_text), y_axis)
    low, high, ours = plot.x_axis.low, plot.x_axis.high, product.intensity
    roof = [(low, min(peak, low * machine.bytes_per_sec)), (max(ridge, low), peak), (high, peak)]
    return "".join(
        [
            plot.frame("Under the roofline"),
            plot.line(roof, "line predicted"),
            plot.line([(ridge, peak), (ridge, y_axis.low)], "line dashed"),
            svg.text(plot.x(ridge) + 6, plot.bottom - 8, f"ridge {ridge:.3g}", class_="small"),
            *(svg.dot(*plot.at(*point), 3, class_="measured past") for point in recorded),
            *_dots(plot, runs, now, lambda run: (run.intensity, run.rate)),
            svg.dot(*plot.at(ours, min(peak, ours * machine.bytes_per_sec)), 8, class_="ring"),
        ]
    )


def _along(product: Product, machine: Machine, runs: Sequence[Run], now: Run | None) -> str:
    """Predicted time along one size, and the runs that share the other two."""
    name = product.sweep
    near = replace(product, b=now.b, d=now.d, k=now.k) if now else product
    seconds = [near.with_size(name, int(size)).predicted_s(machine) for size in SIZES]
    same = [run for run in runs if run.others(name) == near.others(name)]
    least = min([seconds[0] / 10, *(run.seconds / 2 for run in same)])
    y_axis = Axis(least, seconds[-1] * 2, "time", seconds_text)
    plot = Plot(*TIMES, Axis(1, SIZES[-1], f"size of {name}", number_text), y_axis)
    return "".join(
        [
            plot.frame(f"Time along {name}, at {near.others(name)}"),
            plot.line(zip(SIZES, seconds, strict=True), "line predicted"),
            *_dots(plot, same, now, lambda run: (run.side(name), run.seconds)),
            svg.dot(*plot.at(near.side(name), near.predicted_s(machine)), 8, class_="ring"),
        ]
    )


def _dots(
    plot: Plot, runs: Sequence[Run], now: Run | None, at: Callable[[Run], tuple[Number, Number]]
) -> Iterator[str]:
    for run in runs:
        latest = now is not None and run.size == now.size
        class_ = "measured" if latest else "measured past"
        yield svg.dot(*plot.at(*at(run)), 6 if latest else 4, class_=class_)
