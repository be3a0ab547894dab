"""A product's prediction with its numbers filled in, the roofline, and the time along one size."""

from collections.abc import Callable, Iterator, Sequence

from course_utils.chapters.flops.matmul_lab.asked import HERE, POWERS, Found, Product, TimedProduct
from course_utils.core import predict
from course_utils.core.datasheets import Machine
from course_utils.core.say import (
    bytes_text,
    flops_text,
    number_text,
    rate_text,
    seconds_text,
    three_digits,
)
from course_utils.engine.labs.draw import svg
from course_utils.engine.labs.draw.lettering import labelled_lines
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.lab import View

WIDTH, HEIGHT = 1000, 356
ROW, WORDS_AT = 17, 100
ROOF, TIMES = ((left, 188, 370, 126) for left in (90, 590))  # left, top, width, height
Rows = Iterator[tuple[str, str, str]]
FAR_OVER = 1.1  # a rate so far over the largest known one is no noise
HEAD = ["where", "B", "D", "K", "dtype", "time", "FLOP/s", "of the peak"]


def view(product: Product, found: Found) -> View:
    """The prediction in full, the roofline, and the time along the size that a sweep would change."""
    machine = found.machine(product.where)
    machine.peak(product.dtype)  # or a sentence on what there is
    timed = product.timed(found.runs)
    runs = timed[len(product.recorded) :]
    now = [run for run in runs if run.product.size == product.size]
    run = now[-1] if now else product.nearest_recorded() if product.recorded else None
    drawn = [
        *labelled_lines(_formulas(product, machine, run), WORDS_AT, 16, WIDTH, step=ROW),
        *_roofline(product, machine, timed, run),
        *_along(product, machine, runs, run),
    ]
    rows = [_row(one, found.machine(one.product.where)) for one in reversed(found.runs)]
    return View(
        svg.picture(WIDTH, HEIGHT, *drawn), _meaning(product, machine, run), rows and [HEAD, *rows]
    )


def _meaning(product: Product, machine: Machine, run: TimedProduct | None) -> str:
    ridge, ours = predict.ridge(machine, product.dtype), product.intensity
    side, limit = ("above", "arithmetic") if ours >= ridge else ("below", "memory")
    basis = "" if machine.has_data_sheet else ", by measured peaks"
    found = f" {run.verb}{sizes_text(product, run)}: {seconds_text(run.seconds)}." if run else ""
    if run and not machine.has_data_sheet and run.rate > FAR_OVER * machine.peak(product.dtype):
        found += f" That is {_share(run, machine)} of the largest rate known. Restart the kernel to measure that again."
    return (
        f"{three_digits(ours)} FLOPs per byte, {side} the ridge of {three_digits(ridge)}: {limit} is the limit, and predicts "
        f"{seconds_text(product.predicted_s(machine))}{basis}.{found}"
    )


def sizes_text(product: Product, run: TimedProduct) -> str:
    """The sizes of a run, if they are not those that are asked for."""
    near = run.product.size
    return "" if near == product.size else " at the nearest size ({:,} × {:,} × {:,})".format(*near)


# In numbers.


def _formulas(product: Product, machine: Machine, run: TimedProduct | None) -> Rows:
    """The formulas with the numbers filled in, prediction beside measurement, and whose peaks and times these are."""
    (b, d, k), flops, nbytes = product.size, product.flops, product.nbytes
    width, seconds = predict.dtype_bytes(product.dtype), product.predicted_s(machine)
    bytes_of = (
        f"(B·D + D·K + B·K) · {width}" if product.dtype != "fp8" else "(B·D + D·K) · 1 + B·K · 2"
    )
    peak, per_sec = machine.peak(product.dtype), machine.bytes_per_sec
    yield (
        "FLOPs",
        f"2·B·D·K = 2 · {b:,} · {d:,} · {k:,} = {number_text(flops)} = {flops_text(flops)}",
        "",
    )
    yield "bytes", f"{bytes_of} = {bytes_text(nbytes)}", ""
    yield (
        "arithmetic",
        f"{flops_text(flops)} / {rate_text(peak)} = {seconds_text(flops / peak)}",
        "",
    )
    moved = f"{number_text(nbytes)} / {rate_text(per_sec, 'B')} = {seconds_text(nbytes / per_sec)}"
    yield "memory", moved, ""
    yield "predicted", f"the larger of the two: {seconds_text(seconds)}", "formula"
    if run:
        peaks = (
            "the data sheet's peak (MFU)" if machine.has_data_sheet else "the largest rate of a few"
        )
        rate = f"{rate_text(run.rate)}, {_share(run, machine)} of {peaks}"
        words = f"{seconds_text(run.seconds)}{sizes_text(product, run)}, {rate}"
        yield run.verb.split()[0].lower(), words, "measured-words"
    else:
        yield "measured", _why_nothing(product), "faint"
    yield "peaks", f"{machine.name}: {machine.source}.", "faint small"
    if product.recording and product.recording.source:
        source = product.recording.source
        yield "times", f"Recorded by {source.by}: {source.where}.", "faint small"


def _why_nothing(product: Product) -> str:
    """Why there is no measurement; it stands in its place."""
    if product.where == HERE:
        return "not timed yet"
    if product.recording:
        return f"not recorded in {product.dtype}; there are: {', '.join(product.recording.seconds_by_size)}"
    return f"not here, only by its data sheet; for times, choose {HERE} or one that was recorded"


def _share(run: TimedProduct, machine: Machine) -> str:
    return f"{100 * run.rate / machine.peak(run.product.dtype):.1f} %"


def _row(run: TimedProduct, machine: Machine) -> list[str]:
    product, at_most = run.product, "at most " if run.doubt else ""
    sizes = [f"{size:,}" for size in product.size]
    time = [f"{at_most}{seconds_text(run.seconds)}", rate_text(run.rate), _share(run, machine)]
    return [product.where, *sizes, product.dtype, *time]


# In pictures.


def _roofline(
    product: Product, machine: Machine, runs: Sequence[TimedProduct], now: TimedProduct | None
) -> Iterator[str]:
    """The roof, every run under it, and the product that is asked for on it."""
    peak, ridge = machine.peak(product.dtype), predict.ridge(machine, product.dtype)
    lowest = min((run.rate for run in runs), default=peak)
    y_axis = Axis(min(peak / 10_000, lowest / 2), peak * 3, "FLOP/s", rate_text)
    ours = product.intensity
    shown = [ours, *(run.product.intensity for run in runs)]
    low, high = min(0.1, *shown), max(10_000, *shown)
    plot = Plot(*ROOF, Axis(low, high, "FLOPs per byte", number_text), y_axis)
    roof = [(low, min(peak, low * machine.bytes_per_sec)), (max(ridge, low), peak), (high, peak)]
    yield plot.frame("Under the roofline")
    yield plot.line(roof, "line predicted")
    yield plot.line([(ridge, peak), (ridge, y_axis.low)], "line dashed")
    yield svg.text(plot.x(ridge) + 6, plot.bottom - 8, f"ridge {ridge:.3g}", class_="small")
    yield from _dots(runs, now, lambda run: plot.at(run.product.intensity, run.rate))
    yield svg.dot(*plot.at(ours, min(peak, ours * machine.bytes_per_sec)), 8, class_="ring")


def _along(
    product: Product, machine: Machine, runs: Sequence[TimedProduct], now: TimedProduct | None
) -> Iterator[str]:
    """Predicted time along one size, and the runs that share the other two."""
    name, near = product.sweep, now.product if now else product
    seconds = [one.predicted_s(machine) for one in near.along(name)]
    same = [run for run in runs if run.product.others(name) == near.others(name)]
    shown = [run.seconds for run in same]
    y_axis = Axis(
        min([seconds[0] / 10, *shown]), max([seconds[-1] * 2, *shown]), "time", seconds_text
    )
    plot = Plot(*TIMES, Axis(1, POWERS[-1], f"size of {name}", number_text), y_axis)
    yield plot.frame(f"Time along {name}, at {near.others(name)}")
    yield plot.line(zip(POWERS, seconds, strict=True), "line predicted")
    yield from _dots(
        same, now, lambda run: plot.at(getattr(run.product, name.lower()), run.seconds)
    )
    yield svg.dot(
        *plot.at(getattr(near, name.lower()), near.predicted_s(machine)), 8, class_="ring"
    )


def _dots(
    runs: Sequence[TimedProduct], now: TimedProduct | None, at: Callable[[TimedProduct], Point]
) -> Iterator[str]:
    yield from (svg.dot(*at(run), 4, class_="measured past") for run in runs)
    if now:
        yield svg.dot(*at(now), 6, class_="measured")
