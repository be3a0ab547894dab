"""A product's prediction with its numbers filled in, the roofline, and the time along one size."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from course_utils import predict
from course_utils.datasheets import Machine
from course_utils.labs.draw import svg
from course_utils.labs.draw.lettering import fitted, width_of
from course_utils.labs.draw.plot import Axis, Plot
from course_utils.labs.lab import View
from course_utils.labs.matmul.asked import HERE, Found, Product, Run, place
from course_utils.quantities import (
    Number,
    bytes_text,
    flops_text,
    number_text,
    rate_text,
    seconds_text,
    times_text,
)

WIDTH, HEIGHT = 1000, 370
ROW, WORDS_AT, NOTES_AT = 18, 100, 142
ROOF, TIMES = (90, 218, 370, 110), (590, 218, 370, 110)  # left, top, width, height
SIZES = [2.0**power for power in range(21)]


def view(product: Product, found: Found) -> View:
    """The prediction in full, the roofline, and the time along the size that a sweep would change."""
    machine = found.machine(product.where)
    machine.peak(product.dtype)  # or a sentence on what there is
    runs = [run for run in found.runs if (run.machine, run.dtype) == (product.where, product.dtype)]
    exactly = [run for run in runs if run.size == product.size]
    run = exactly[-1] if exactly else product.recorded
    drawn = [
        *_account(product, machine, run),
        _roofline(product, machine, runs),
        _along(product, machine, runs),
    ]
    rows = [_row(one, found.machine(one.machine)) for one in reversed(found.runs)]
    table = [list(rows[0]), *(list(row.values()) for row in rows)] if rows else []
    return View(svg.picture(WIDTH, HEIGHT, *drawn), _meaning(product, machine, run), table)


def _meaning(product: Product, machine: Machine, run: Run | None) -> str:
    ridge, ours = predict.ridge(machine, product.dtype), product.intensity
    side, limit = ("above", "arithmetic") if ours >= ridge else ("below", "memory")
    basis = "" if machine.has_data_sheet else ", by measured peaks"
    said = (
        f"{_three_digits(ours)} FLOPs per byte, {side} the ridge of {_three_digits(ridge)}: {limit} is the limit, and predicts "
        f"{seconds_text(product.predicted_s(machine))}{basis}."
    )
    if run and run.size == product.size:
        said += f" {run.verb}: {seconds_text(run.seconds)}."
    elif run:
        by, share = f", by {run.source.by}" if run.source else "", run.rate / machine.peak(run.dtype)
        size = "{:,} × {:,} × {:,}".format(*run.size)
        said += f" Nearest recorded, {size}{by}: {seconds_text(run.seconds)}, {_three_digits(100 * share)} % of the peak."
    return said + _not_drawn(product)


def _three_digits(n: Number) -> str:
    return f"{n:,.0f}" if n >= 99.95 else f"{n:.3g}"


def sizes_text(product: Product, run: Run) -> str:
    """The sizes of a run, where they are others than was asked."""
    return "" if run.size == product.size else " at {:,} × {:,} × {:,}".format(*run.size)


def _not_drawn(product: Product) -> str:
    """What was recorded of that dtype, or as f32, and is set apart."""
    asked_as = {product.dtype, *(["f32"] if product.dtype in ("fp32", "tf32", "xf32") else [])}
    apart = product.recording.set_apart if product.recording else ()
    return "".join(
        f" Not drawn: {len(one.seconds_by_size)} products in {one.dtype}, {one.why}."
        for one in apart
        if one.dtype in asked_as
    )


# In numbers.


def _account(product: Product, machine: Machine, run: Run | None) -> Iterator[str]:
    """The formulas with the numbers filled in, prediction beside measurement."""
    (b, d, k), flops, seconds = product.size, product.flops, product.predicted_s(machine)
    width = predict.dtype_bytes(product.dtype)
    bytes_of = f"(B·D + D·K + B·K) · {width}" if product.dtype != "fp8" else "(B·D + D·K) · 1 + B·K · 2"
    peak, per_sec = machine.peak(product.dtype), machine.bytes_per_sec
    reading = f"{number_text(product.nbytes)} / {rate_text(per_sec, 'B')} = {seconds_text(product.nbytes / per_sec)}"
    rows = [
        ("FLOPs", f"2·B·D·K = 2 · {b:,} · {d:,} · {k:,} = {number_text(flops)} = {flops_text(flops)}", ""),
        ("bytes", f"{bytes_of} = {bytes_text(product.nbytes)}", ""),
        ("arithmetic", f"{flops_text(flops)} / {rate_text(peak)} = {seconds_text(flops / peak)}", ""),
        ("memory", reading, ""),
        ("predicted", f"the larger of the two: {seconds_text(seconds)}", "strong"),
        _measured_words(product, machine, run),
    ]
    if product.guess_s:
        rows.append(("my guess", _guess_words(product, seconds, run), ""))
    for number, (name, words, class_) in enumerate(rows):
        y = 16 + ROW * number
        yield svg.text(0, y, name, class_=class_ or "faint")
        yield fitted(WORDS_AT, y, words, WIDTH, class_)
    yield svg.dot(WORDS_AT - 12, 16 + ROW * 4 - 5, class_="predicted")
    if run:
        yield svg.dot(WORDS_AT - 12, 16 + ROW * 5 - 5, class_="measured")
    for number, words in enumerate(_footnotes(product, machine)):
        yield fitted(0, NOTES_AT + 15 * number, words, WIDTH, "faint small")


def _measured_words(product: Product, machine: Machine, run: Run | None) -> tuple[str, str, str]:
    if run is None:
        return "measured", _why_nothing(product, machine), "faint"
    sheet, achieved = _shares(run, machine)
    words = [f"{seconds_text(run.seconds)}{sizes_text(product, run)}", rate_text(run.rate)]
    words += [f"MFU {100 * sheet:.1f} % of the sheet"] if sheet else []
    words += [f"{100 * achieved:.1f} % of the largest rate"] if achieved else []
    return "recorded" if run.recorded else "measured", ", ".join(words), "strong"


def _guess_words(product: Product, seconds: Number, run: Run | None) -> str:
    same = run is not None and run.size == product.size
    beside, what = (run.seconds, "measured") if same else (seconds, "predicted")
    return f"{seconds_text(product.guess_s)}, {times_text(product.guess_s / beside)} what is {what}"


def _why_nothing(product: Product, machine: Machine) -> str:
    """Instead of a measurement: why there is none, and what comes nearest to one."""
    if product.where == HERE:
        return "not timed yet"
    if product.recording:
        return f"not recorded in {product.dtype}; there are: {', '.join(product.recording.seconds_by_size)}"
    best = machine.achieved_flop_per_sec.get(product.dtype)
    if not best:
        return "only on paper: no such machine here, and no recording"
    share = best / machine.peak(product.dtype)
    return f"only on paper; others reached {rate_text(best)} with some shape, {share:.0%} of the peak"


def _footnotes(product: Product, machine: Machine) -> list[str]:
    """Whose peaks and whose times these are."""
    recording, notes = product.recording, [f"{machine.name}. {machine.source}."]
    if not recording and width_of(notes[0], "faint small") > WIDTH:
        notes = [f"{machine.name}.", f"{machine.source}."]
    if recording and recording.source:
        notes.append(f"Recorded by {recording.source.by}: {recording.source.where}.")
    elif not recording and product.dtype in machine.achieved_flop_per_sec and product.where != HERE:
        notes += _in_two(f"Reached: {machine.achieved_source}.")
    return notes


def _in_two(note: str) -> list[str]:
    """A footnote that is too long for its line, cut between two words."""
    if width_of(note, "faint small") <= WIDTH:
        return [note]
    spaces = (place for place, letter in enumerate(note) if letter == " ")
    cut = max(place for place in spaces if width_of(note[:place], "faint small") <= WIDTH)
    return [note[:cut], note[cut + 1 :]]


def _shares(run: Run, machine: Machine) -> tuple[Number | None, Number | None]:
    """Of the data sheet's peak where there is one, and of what is achieved."""
    best = machine.achieved_flop_per_sec.get(run.dtype)
    of_the_sheet = run.rate / machine.peak(run.dtype) if machine.has_data_sheet else None
    return of_the_sheet, run.rate / max(best, run.rate) if best else None


def _row(run: Run, machine: Machine) -> dict[str, str]:
    sheet, achieved = _shares(run, machine)
    return {
        "where": run.machine,
        **{name: f"{size:,}" for name, size in zip("BDK", run.size, strict=True)},
        "dtype": run.dtype,
        "time": seconds_text(run.seconds),
        "spread": f"{100 * run.spread:.1f} %" if run.spread is not None else "not said",
        "FLOP/s": rate_text(run.rate),
        "MFU": f"{100 * sheet:.1f} %" if sheet else "no data sheet",
        "of achieved": f"{100 * achieved:.1f} %" if achieved else "",
        "your guess": f"{seconds_text(run.guess)} ({run.guess / run.seconds:.3g} ×)" if run.guess else "",
        "quiet": "recorded" if run.recorded else "yes" if run.quiet else "no",
    }


# In pictures.


def _plain(value: Number) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _roofline(product: Product, machine: Machine, runs: Sequence[Run]) -> str:
    """The roof, every run under it, and the product that is asked for on it."""
    peak, ridge = machine.peak(product.dtype), predict.ridge(machine, product.dtype)
    recorded = product.recording.points(product.dtype) if product.recorded else []
    lowest = [*(run.rate / 2 for run in runs), *(rate / 2 for _, rate in recorded)]
    y_axis = Axis(min([peak / 10_000, *lowest]), peak * 3, "FLOP/s", lambda rate: rate_text(rate))
    plot = Plot(*ROOF, Axis(0.1, 10_000, "FLOPs per byte", _plain), y_axis)
    low, high, ours = plot.x_axis.low, plot.x_axis.high, product.intensity
    roof = [(low, min(peak, low * machine.bytes_per_sec)), (max(ridge, low), peak), (high, peak)]
    return "".join(
        [
            plot.frame("Under the roofline"),
            plot.line(roof, "line predicted"),
            plot.line([(ridge, peak), (ridge, y_axis.low)], "line dashed"),
            svg.text(plot.x(ridge) + 6, plot.bottom - 8, f"ridge {ridge:.3g}", class_="small"),
            *(svg.dot(*plot.at(*point), 3, class_="measured past") for point in recorded),
            *_measured_dots(plot, product, runs, lambda run: (run.intensity, run.rate)),
            svg.dot(*plot.at(ours, min(peak, ours * machine.bytes_per_sec)), 8, class_="ring"),
        ]
    )


def _along(product: Product, machine: Machine, runs: Sequence[Run]) -> str:
    """Predicted time along one size, and the runs that share the other two."""
    name, recorded = product.sweep, product.recorded
    near = replace(product, **dict(zip("bdk", recorded.size, strict=True))) if recorded else product
    seconds = [near.with_size(name, int(size)).predicted_s(machine) for size in SIZES]
    others = [place(other) for other in "BDK".replace(name, "")]
    same = [run for run in runs if all(run.size[other] == near.size[other] for other in others)]
    fixed = " × ".join("·" if other == name else f"{near.size[place(other)]:,}" for other in "BDK")
    least = min([seconds[0] / 10, *(run.seconds / 2 for run in same)])
    y_axis = Axis(least, seconds[-1] * 2, "time", seconds_text)
    plot = Plot(*TIMES, Axis(1, SIZES[-1], f"size of {name}", _plain), y_axis)
    return "".join(
        [
            plot.frame(f"Time along {name}, at {fixed}"),
            plot.line(zip(SIZES, seconds, strict=True), "line predicted"),
            *_measured_dots(plot, product, same, lambda run: (run.size[place(name)], run.seconds)),
            svg.dot(*plot.at(near.size[place(name)], near.predicted_s(machine)), 8, class_="ring"),
        ]
    )


def _measured_dots(
    plot: Plot, product: Product, runs: Sequence[Run], at: Callable[[Run], tuple[Number, Number]]
) -> Iterator[str]:
    latest = product.recorded
    for run in [*runs, *([latest] if latest else [])]:
        now = run.size == product.size or run is latest
        yield svg.dot(*plot.at(*at(run)), 6 if now else 4, class_="measured" if now else "measured past")
