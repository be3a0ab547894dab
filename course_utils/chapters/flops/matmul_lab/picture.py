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
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.labs.draw import svg
from course_utils.engine.labs.draw.lettering import labelled_lines
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 356
ROW = 17  # from one line of words to the next
WORDS_AT = 100  # where the words of a line begin, behind the line's name
# The places of the two plots: left, top, width, height.
ROOF = (90, 188, 370, 126)
TIMES = (590, 188, 370, 126)
Row = tuple[str, str, str]  # a name, words, and their class
FAR_OVER = 1.1  # a rate so many times the largest known one is no noise
HEAD = (  # of the table
    template("where"),
    "B",
    "D",
    "K",
    "dtype",
    template("time"),
    "FLOP/s",
    template("of the peak"),
)
# By whether the product is above the ridge, and whether it has 1 FLOP per byte.
SIDES = {
    (True, True): template("1 FLOP per byte, above the ridge of {ridge}: compute-bound."),
    (True, False): template(
        "{intensity} FLOPs per byte, above the ridge of {ridge}: compute-bound."
    ),
    (False, True): template("1 FLOP per byte, below the ridge of {ridge}: memory-bound."),
    (False, False): template(
        "{intensity} FLOPs per byte, below the ridge of {ridge}: memory-bound."
    ),
}
# By whether it is known who recorded it, and whether it has other sizes than what is asked.
RECORDED = {
    (False, False): template("Recorded: {time}."),
    (False, True): template("Recorded at the nearest size ({size}): {time}."),
    (True, False): template("Recorded by {by}: {time}."),
    (True, True): template("Recorded by {by} at the nearest size ({size}): {time}."),
}
# By whether the run has other sizes, and whether its machine has a data sheet.
SHARES = {
    (False, False): template("{time}, {rate}, {percent} of the largest rate of a few"),
    (False, True): template("{time}, {rate}, {percent} of the data sheet's peak (MFU)"),
    (True, False): template(
        "{time} at the nearest size ({size}), {rate}, {percent} of the largest rate of a few"
    ),
    (True, True): template(
        "{time} at the nearest size ({size}), {rate}, {percent} of the data sheet's peak (MFU)"
    ),
}


def view(product: Product, found: Found) -> View:
    """Draw the prediction in full, the roofline, and the time along the swept size.

    If the machine has no peak for this dtype, raise a ValueError with the dtypes that it has.
    """
    machine = found.machine(product.where)
    machine.peak(product.dtype)  # called for its ValueError alone
    timed = product.timed(found.runs)
    runs = timed[len(product.recorded) :]  # `timed` begins with the recorded products
    run = _run_shown(product, runs)
    rows = _formulas(product, machine, run)
    drawn = [
        *labelled_lines(rows, WORDS_AT, 16, WIDTH, step=ROW),
        *_roofline(product, machine, timed, run),
        *_along(product, machine, runs, run),
    ]
    picture = svg.picture(WIDTH, HEIGHT, *drawn)
    return View(picture, _meaning(product, machine, run), _table(found))


def _run_shown(product: Product, runs: Sequence[TimedProduct]) -> TimedProduct | None:
    """Return the last run of these very sizes, or else the nearest recorded product, or None."""
    of_this_size = [run for run in runs if run.product.size == product.size]
    if of_this_size:
        return of_this_size[-1]
    if product.recorded:
        return product.nearest_recorded()
    return None


def _meaning(product: Product, machine: Machine, run: TimedProduct | None) -> str:
    """Return the text below the picture: what limits the product, and the run if there is one."""
    ridge = predict.ridge(machine, product.dtype)
    intensity = three_digits(product.intensity)
    side = SIDES[product.intensity >= ridge, intensity == "1"]
    limit = translated(side, intensity=intensity, ridge=three_digits(ridge))
    seconds = seconds_text(product.predicted_s(machine))
    if machine.has_data_sheet:
        predicted = translated("Predicted: {time}.", time=seconds)
    else:
        predicted = translated("Predicted: {time}, by measured peaks.", time=seconds)
    if run is None:
        return in_a_row(limit, predicted)
    timed = told(product, run, seconds_text(run.seconds))
    doubt = ""
    # Without a data sheet the peak is a measured rate, which this run then proves too low.
    if not machine.has_data_sheet and run.rate > FAR_OVER * machine.peak(product.dtype):
        doubt = translated(
            "That is {percent} of the largest rate known. "
            "Restart the kernel to measure that again.",
            percent=_percent_of_peak(run, machine),
        )
    return in_a_row(limit, predicted, timed, doubt)


def told(product: Product, run: TimedProduct, time: str) -> str:
    """Return a sentence on the run's time, with its sizes if they are not those that are asked."""
    if not run.is_recorded:
        return translated("Measured: {time}.", time=time)
    sentence = RECORDED[bool(run.by), run.product.size != product.size]
    return translated(sentence, time=time, by=run.by, size=_sizes_text(run))


def _sizes_text(run: TimedProduct) -> str:
    b, d, k = run.product.size
    return f"{b:,} × {d:,} × {k:,}"


# In numbers.


def _formulas(product: Product, machine: Machine, run: TimedProduct | None) -> Iterator[Row]:
    """Yield the formulas with their numbers, the measurement, and the sources of the numbers."""
    flops = product.flops
    nbytes = product.nbytes
    peak = machine.peak(product.dtype)
    bandwidth = machine.bytes_per_sec
    b, d, k = product.size
    multiplied = f"2·B·D·K = 2 · {b:,} · {d:,} · {k:,}"
    yield "FLOPs", f"{multiplied} = {number_text(flops)} = {flops_text(flops)}", ""
    yield translated("bytes"), f"{_bytes_formula(product.dtype)} = {bytes_text(nbytes)}", ""
    divided = f"{flops_text(flops)} / {rate_text(peak)}"
    yield translated("arithmetic"), f"{divided} = {seconds_text(flops / peak)}", ""
    divided = f"{number_text(nbytes)} {translated('bytes')} / {rate_text(bandwidth, 'B')}"
    yield translated("memory"), f"{divided} = {seconds_text(nbytes / bandwidth)}", ""
    predicted = seconds_text(product.predicted_s(machine))
    larger = translated("the larger of the two: {time}", time=predicted)
    yield translated("predicted"), larger, "formula"
    if run:
        yield _measured_row(product, machine, run)
    else:
        yield translated("measured"), _why_not_measured(product), "faint"
    yield translated("peaks"), f"{machine.name}: {machine.source}.", "faint small"
    if product.recording and product.recording.source:
        source = product.recording.source
        recorded = translated("Recorded by {by}: {where}.", by=source.by, where=source.where)
        yield translated("times"), recorded, "faint small"


def _bytes_formula(dtype: str) -> str:
    if dtype == "fp8":
        return "(B·D + D·K) · 1 + B·K · 2"  # the result is in 16 bits
    return f"(B·D + D·K + B·K) · {predict.dtype_bytes(dtype)}"


def _measured_row(product: Product, machine: Machine, run: TimedProduct) -> Row:
    """Return the row 'measured' or 'recorded', with the time and the rate of the run."""
    name = translated("recorded") if run.is_recorded else translated("measured")
    words = translated(
        SHARES[run.product.size != product.size, machine.has_data_sheet],
        time=seconds_text(run.seconds),
        size=_sizes_text(run),
        rate=rate_text(run.rate),
        percent=_percent_of_peak(run, machine),
    )
    return name, words, "measured-words"


def _why_not_measured(product: Product) -> str:
    """Return why there is no measurement, and how to get one."""
    if product.where == HERE:
        return translated("not timed yet")
    if product.recording:
        return translated(
            "not recorded in {dtype}; there are: {dtypes}",
            dtype=product.dtype,
            dtypes=", ".join(product.recording.seconds_by_size),
        )
    return translated(
        "not here, only by its data sheet; {here} and recorded machines have times", here=HERE
    )


def _percent_of_peak(run: TimedProduct, machine: Machine) -> str:
    """Return the run's rate in percent of the machine's peak."""
    percent = 100 * run.rate / machine.peak(run.product.dtype)
    return f"{percent:.1f} %"


def _table(found: Found) -> list[list[str]]:
    """Return a row for each run, the last run first, under a head; nothing without runs."""
    if not found.runs:
        return []
    rows = [[translated(words) for words in HEAD]]
    for run in reversed(found.runs):
        machine = found.machine(run.product.where)
        rows.append(_row(run, machine))
    return rows


def _row(run: TimedProduct, machine: Machine) -> list[str]:
    """Return a run as a row under HEAD. A time that is in doubt is an upper bound."""
    product = run.product
    time = seconds_text(run.seconds)
    if run.doubt:
        time = translated("at most {time}", time=time)
    return [
        product.where,
        f"{product.b:,}",
        f"{product.d:,}",
        f"{product.k:,}",
        product.dtype,
        time,
        rate_text(run.rate),
        _percent_of_peak(run, machine),
    ]


# In pictures.


def _roofline(
    product: Product,
    machine: Machine,
    runs: Sequence[TimedProduct],
    shown: TimedProduct | None,
) -> Iterator[str]:
    """Draw the roof, every run under it, and a ring where the product would touch the roof."""
    peak = machine.peak(product.dtype)
    bandwidth = machine.bytes_per_sec
    ridge = predict.ridge(machine, product.dtype)
    intensities = [product.intensity, *(run.product.intensity for run in runs)]
    # The axes are wide enough for usual products, and wider only if a run lies beyond them.
    low = min(0.1, *intensities)
    high = max(10_000, *intensities)
    lowest_rate = min((run.rate for run in runs), default=peak)
    bottom = min(peak / 10_000, lowest_rate / 2)
    x_axis = Axis(low, high, template("FLOPs per byte"), number_text, rescales=True)
    y_axis = Axis(bottom, peak * 3, "FLOP/s", rate_text, rescales=True)
    plot = Plot(*ROOF, x_axis, y_axis)

    yield plot.frame(translated("Under the roofline"))
    left_end = (low, min(peak, low * bandwidth))
    # The roof rises with the bandwidth up to the ridge, and from there on it is the peak.
    yield plot.line([left_end, (max(ridge, low), peak), (high, peak)], "line predicted")
    yield plot.line([(ridge, peak), (ridge, bottom)], "line dashed")
    yield svg.text(
        plot.x(ridge) + 6,
        plot.bottom - 8,
        translated("ridge {ridge}", ridge=f"{ridge:.3g}"),
        class_="small",
    )
    yield from _dots(runs, shown, lambda run: plot.at(run.product.intensity, run.rate))
    x, y = plot.at(product.intensity, min(peak, product.intensity * bandwidth))
    yield svg.dot(x, y, 8, class_="ring")


def _along(
    product: Product,
    machine: Machine,
    runs: Sequence[TimedProduct],
    shown: TimedProduct | None,
) -> Iterator[str]:
    """Draw the predicted time along the swept size, and the runs that share the other two.

    The sizes are those of the run that is shown, which may be only near those of the product.
    """
    name = product.sweep
    near = shown.product if shown else product
    others = near.others(name)
    predicted_s = [swept.predicted_s(machine) for swept in near.along(name)]
    sharing = [run for run in runs if run.product.others(name) == others]
    run_s = [run.seconds for run in sharing]
    x_axis = Axis(1, POWERS[-1], translated("size of {name}", name=name), number_text)
    # Some space around the prediction, and more only if a run needs it.
    shortest = min([predicted_s[0] / 10, *run_s])
    longest = max([predicted_s[-1] * 2, *run_s])
    y_axis = Axis(shortest, longest, "time", seconds_text, rescales=True)
    plot = Plot(*TIMES, x_axis, y_axis)

    def swept_size(swept: Product) -> int:
        """Return the size that the sweep changes, such as `swept.k` if `name` is "K"."""
        return getattr(swept, name.lower())

    title = translated("Time along {size}, at {others}", size=name, others=others)
    yield plot.frame(title)
    yield plot.line(zip(POWERS, predicted_s, strict=True), "line predicted")
    yield from _dots(sharing, shown, lambda run: plot.at(swept_size(run.product), run.seconds))
    x, y = plot.at(swept_size(near), near.predicted_s(machine))
    yield svg.dot(x, y, 8, class_="ring")


def _dots(
    runs: Sequence[TimedProduct],
    shown: TimedProduct | None,
    place_of: Callable[[TimedProduct], Point],
) -> Iterator[str]:
    """Draw a dot for each run, and above them a larger one for the run that is shown."""
    for run in runs:
        x, y = place_of(run)
        yield svg.dot(x, y, 4, class_="measured past")
    if shown:
        x, y = place_of(shown)
        yield svg.dot(x, y, 6, class_="measured")
