"""The matmul lab's questions and answers: what is asked for, what was timed, and how both are drawn."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from course_utils import machines, measure, predict
from course_utils.datasheets import Machine
from course_utils.labs import svg
from course_utils.labs.lettering import fitted
from course_utils.labs.panel import View
from course_utils.labs.size_control import size_of
from course_utils.quantities import Number, bytes_text, flops_text, number_text, rate_text, seconds_text

HERE = "this machine"
LONGEST_S = 60.0  # what may take longer is predicted, not run
APART_FROM_S, APART_FROM_BYTES = 0.3, 2**28  # what may be more runs in a process that can be killed
COLUMNS = (
    "where",
    "B",
    "D",
    "K",
    "dtype",
    "time",
    "spread",
    "FLOP/s",
    "MFU",
    "of achieved",
    "your guess",
    "quiet",
)


@dataclass(frozen=True)
class Run:
    """One product that was timed, here or when its machine was recorded."""

    machine: str
    b: int
    d: int
    k: int
    dtype: str
    seconds: Number
    spread: Number | None  # None where nobody said
    doubt: str = ""  # what makes the time doubtful, if anything does
    recorded: bool = False
    source: machines.Source | None = None  # who measured it, if it was not this course
    guess: Number | None = None

    @property
    def size(self) -> tuple[int, int, int]:
        """(B, D, K)."""
        return self.b, self.d, self.k

    @property
    def verb(self) -> str:
        """What was done, and by whom."""
        return (
            "Measured"
            if not self.recorded
            else f"Recorded by {self.source.by}"
            if self.source
            else "Recorded"
        )

    @property
    def quiet(self) -> bool:
        """Whether nothing makes the time doubtful."""
        return not self.doubt

    @property
    def flops(self) -> int:
        """What it had to do."""
        return predict.matmul_flops(self.b, self.d, self.k)

    @property
    def rate(self) -> Number:
        """FLOP/s."""
        return self.flops / self.seconds

    @property
    def intensity(self) -> Number:
        """FLOPs per byte."""
        return predict.intensity(self.flops, predict.matmul_bytes(self.b, self.d, self.k, self.dtype))


# What was asked for.


@dataclass(frozen=True)
class Asked:
    """A product on a machine, as the controls say it."""

    b: int
    d: int
    k: int
    dtype: str
    where: str

    @property
    def size(self) -> tuple[int, int, int]:
        """(B, D, K)."""
        return self.b, self.d, self.k

    def with_size(self, name: str, size: int) -> "Asked":
        """The same with another size."""
        sizes = list(self.size)
        sizes[place(name)] = size
        return Asked(*sizes, self.dtype, self.where)

    @property
    def recording(self) -> machines.Recording | None:
        """The recording of that machine, if it is a recorded one."""
        return recordings_by_label().get(self.where)

    @property
    def machine(self) -> Machine:
        """The machine, with its peaks."""
        if self.where == HERE:
            return machines.this_machine()
        return self.recording.machine if self.recording else machines.machine_named(self.where)

    @property
    def recorded(self) -> Run | None:
        """The nearest product in the recording, if it has any of that dtype."""
        if self.recording is None or self.dtype not in self.recording.seconds_by_size:
            return None
        return self.nearest_recorded()

    def nearest_recorded(self) -> Run:
        """The nearest product in the recording, or a sentence on the dtypes that it has."""
        return self._recorded_at(self.recording.nearest(*self.size, self.dtype))

    def _recorded_at(self, size: tuple[int, int, int]) -> Run:
        recording = self.recording
        seconds = recording.seconds_by_size[self.dtype][size]
        told = {"recorded": True, "source": recording.source}
        return Run(self.where, *size, self.dtype, seconds, recording.spread, **told)

    def recorded_along(self, name: str) -> list[Run]:
        """The recorded products that share the nearest one's other two sizes."""
        near, free = self.nearest_recorded(), place(name)
        sizes = [
            size
            for size in self.recording.seconds_by_size[self.dtype]
            if all(size[other] == near.size[other] for other in range(3) if other != free)
        ]
        return [self._recorded_at(size) for size in sorted(sizes)]

    @property
    def predicted_s(self) -> Number:
        """By what the machine is known to reach."""
        return predict.matmul_seconds(self.b, self.d, self.k, self.machine, self.dtype)

    @property
    def at_worst_s(self) -> Number:
        """With a margin: CPUs multiply some shapes at a fraction of their peak, and without units for a dtype at a tenth."""
        peaks = self.machine.peak_flop_per_sec
        slow = machines.device() == "cpu" and peaks[self.dtype] < peaks.get("fp32", 0) / 2
        return self.predicted_s * (10 if slow else 3)

    @property
    def runs_apart(self) -> bool:
        """Whether it could take longer than a moment, in running or in filling its operands with numbers."""
        return self.at_worst_s > APART_FROM_S or self.nbytes > APART_FROM_BYTES

    @property
    def nbytes(self) -> int:
        """Of the two operands and the result."""
        return predict.matmul_bytes(self.b, self.d, self.k, self.dtype)

    @property
    def fits(self) -> bool:
        """Whether it fits in what is free now, with some room left."""
        return self.nbytes < 0.8 * measure.free_bytes(machines.device())

    def check_that_it_can_run(self) -> None:
        """A sentence on why it can't, if it can't."""
        if not self.fits:
            free = bytes_text(measure.free_bytes(machines.device()))
            raise ValueError(
                f"Not run: it needs {bytes_text(self.nbytes)}, and {free} are free. Make it smaller."
            )
        if self.at_worst_s > LONGEST_S:
            raise ValueError(
                f"Not run: one product is predicted to take {seconds_text(self.predicted_s)} at the machine's peak and "
                f"could take {seconds_text(self.at_worst_s)}. This lab waits {LONGEST_S:.0f} s at most. Make it smaller."
            )


def recordings_by_label() -> dict[str, machines.Recording]:
    """Every recording, as the lab's buttons call it: those by others say by whom."""
    found = machines.recordings().values()
    return {one.name if one.source else f"{one.name} (recorded)": one for one in found}


def asked_for(b: object, d: object, k: object, dtype: str, where: str) -> Asked:
    """What the controls ask for, or a sentence on what they can."""
    asked = Asked(size_of("B", b), size_of("D", d), size_of("K", k), dtype, where)
    asked.machine.peak(dtype)  # or a sentence on what there is
    return asked


def place(name: str) -> int:
    """Of that size among (B, D, K)."""
    return "BDK".index(name)


_TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def typed_seconds(words: str) -> Number | None:
    """A time as people write it; nothing for an empty field.

    >>> typed_seconds("5 ms"), typed_seconds(""), typed_seconds("1.5e3us")
    (0.005, None, 0.0015)
    """
    said = words.strip()
    if not said:
        return None
    match = len(said) <= 40 and (  # a hundred thousand digits would take minutes
        re.fullmatch(r"(\d+\.?\d*(?:e[+-]?\d{1,2})?|\.\d+)\s*([a-zµμ]+)", said, re.ASCII | re.IGNORECASE)
        or re.fullmatch(r"(\d+\.?\d*)\s*(µs|μs)", said)
    )
    if not match or match[2].lower() not in _TIME_UNITS or not float(match[1]):
        raise ValueError(f"A guess is a time with its unit, like 5 ms or 200 us; “{said[:40]}” is none.")
    return float(match[1]) * _TIME_UNITS[match[2].lower()]


# How it is drawn.

WIDTH, HEIGHT = 1000, 404
ROW, WORDS_AT, NOTES_AT = 18, 100, 142
ROOF = svg.LogPlot(90, 218, 370, 144, x_range=(0.1, 10_000), y_range=(1, 10))
TIMES = svg.LogPlot(590, 218, 370, 144, x_range=(1, 2**20), y_range=(1, 10))


def view(asked: Asked, runs: list[Run], guess: Number | None, sweep: str) -> View:
    """The prediction in full, the roofline, and the time along the dimension that a sweep would take."""
    seconds = asked.predicted_s
    theirs = [run for run in runs if (run.machine, run.dtype) == (asked.where, asked.dtype)]
    exactly = [run for run in theirs if run.size == asked.size]
    run = exactly[-1] if exactly else asked.recorded
    sentence = _bound_sentence(asked, seconds)
    if run:
        sizes = "" if run.size == asked.size else " at {:,} × {:,} × {:,}".format(*run.size)
        sentence += f" {run.verb}{sizes}: {seconds_text(run.seconds)}."
    sentence += _not_drawn(asked)
    drawn = [*_account(asked, seconds, run, guess), _roofline(asked, theirs), _along(asked, sweep, theirs)]
    table = [COLUMNS, *(_row(run) for run in reversed(runs))] if runs else []
    return View(svg.picture(WIDTH, HEIGHT, *drawn), sentence, table)


def _not_drawn(asked: Asked) -> str:
    """What was recorded of that dtype, or as f32, and is set apart."""
    asked_as = {asked.dtype, *(["f32"] if asked.dtype in ("fp32", "tf32", "xf32") else [])}
    apart = asked.recording.set_apart if asked.recording else ()
    return "".join(
        f" Not drawn: {len(one.seconds_by_size)} products in {one.dtype}, {one.why}."
        for one in apart
        if one.dtype in asked_as
    )


def _bound_sentence(asked: Asked, seconds: Number) -> str:
    ridge = predict.ridge(asked.machine, asked.dtype)
    ours = predict.intensity(predict.matmul_flops(asked.b, asked.d, asked.k), asked.nbytes)
    side, limit = ("above", "arithmetic") if ours >= ridge else ("below", "memory")
    basis = "" if asked.machine.has_data_sheet else ", by measured peaks"
    return (
        f"{ours:.3g} FLOPs per byte, {side} the ridge of {ridge:.3g}: {limit} is the limit, and predicts "
        f"{seconds_text(seconds)}{basis}."
    )


def _account(asked: Asked, seconds: Number, run: Run | None, guess: Number | None) -> Iterator[str]:
    """The formulas with the numbers filled in, prediction beside measurement."""
    b, d, k, machine = asked.b, asked.d, asked.k, asked.machine
    flops, width = predict.matmul_flops(b, d, k), predict.dtype_bytes(asked.dtype)
    bytes_of = f"(B·D + D·K + B·K) · {width}" if asked.dtype != "fp8" else "(B·D + D·K) · 1 + B·K · 2"
    peak = machine.peak(asked.dtype)
    rows = [
        ("FLOPs", f"2·B·D·K = 2 · {b:,} · {d:,} · {k:,} = {number_text(flops)} = {flops_text(flops)}", ""),
        ("bytes", f"{bytes_of} = {bytes_text(asked.nbytes)}", ""),
        ("arithmetic", f"{flops_text(flops)} / {rate_text(peak)} = {seconds_text(flops / peak)}", ""),
        ("memory", _memory_words(asked), ""),
        ("predicted", f"the larger of the two: {seconds_text(seconds)}", "strong"),
        _measured_words(asked, run),
    ]
    if guess:
        rows.append(("my guess", _guess_words(asked, seconds, run, guess), ""))
    for number, (name, words, class_) in enumerate(rows):
        y = 16 + ROW * number
        yield svg.text(0, y, name, class_=class_ or "faint")
        yield fitted(WORDS_AT, y, words, WIDTH, class_)
    yield svg.dot(WORDS_AT - 12, 16 + ROW * 4 - 5, class_="predicted")
    if run:
        yield svg.dot(WORDS_AT - 12, 16 + ROW * 5 - 5, class_="measured")
    for number, words in enumerate(_footnotes(asked)):
        yield fitted(0, NOTES_AT + 15 * number, words, WIDTH, "faint small")


def _memory_words(asked: Asked) -> str:
    per_sec = asked.machine.bytes_per_sec
    return f"{number_text(asked.nbytes)} / {rate_text(per_sec, 'B')} = {seconds_text(asked.nbytes / per_sec)}"


def _measured_words(asked: Asked, run: Run | None) -> tuple[str, str, str]:
    if run is None:
        return "measured", _why_nothing(asked), "faint"
    sizes = f" at {run.b:,} × {run.d:,} × {run.k:,}" if run.size != asked.size else ""
    words = f"{seconds_text(run.seconds)}{sizes}, {rate_text(run.rate)}, {_utilisation(run)}"
    return "recorded" if run.recorded else "measured", words, "strong"


def _guess_words(asked: Asked, seconds: Number, run: Run | None, guess: Number) -> str:
    same = run is not None and run.size == asked.size
    beside, what = (run.seconds, "measured") if same else (seconds, "predicted")
    return f"{seconds_text(guess)}, {guess / beside:.3g} times what is {what}"


def _why_nothing(asked: Asked) -> str:
    """Instead of a measurement: why there is none, and what comes nearest to one."""
    if asked.where == HERE:
        return "not timed yet"
    if asked.recording:
        return f"not recorded in {asked.dtype}; there are: {', '.join(asked.recording.seconds_by_size)}"
    best = asked.machine.achieved_flop_per_sec.get(asked.dtype)
    if not best:
        return "only on paper: no such machine here, and no recording"
    share = best / asked.machine.peak(asked.dtype)
    return f"only on paper; others reached {rate_text(best)} with some shape, {share:.0%} of the peak"


def _footnotes(asked: Asked) -> list[str]:
    """Whose peaks and whose times these are."""
    machine, recording = asked.machine, asked.recording
    notes = [f"{machine.name}. {machine.source}."]
    if recording and recording.source:
        notes.append(f"Recorded by {recording.source.by}: {recording.source.where}.")
    elif not recording and asked.dtype in machine.achieved_flop_per_sec and asked.where != HERE:
        notes.append(f"Reached: {machine.achieved_source}.")
    return notes


def _utilisation(run: Run) -> str:
    """Of the data sheet where there is one, and of what is achieved; and which is which."""
    sheet, achieved = _shares(run)
    words = [f"MFU {100 * sheet:.1f} % of the sheet" if sheet else ""]
    words += [f"{100 * achieved:.1f} % of the largest rate" if achieved else ""]
    return ", ".join(filter(None, words))


def _shares(run: Run) -> tuple[Number | None, Number | None]:
    machine = Asked(run.b, run.d, run.k, run.dtype, run.machine).machine
    best = machine.achieved_flop_per_sec.get(run.dtype)
    of_the_sheet = run.rate / machine.peak(run.dtype) if machine.has_data_sheet else None
    return of_the_sheet, run.rate / max(best, run.rate) if best else None


def _row(run: Run) -> list[str]:
    sheet, achieved = _shares(run)
    return [
        run.machine,
        *(f"{size:,}" for size in (run.b, run.d, run.k)),
        run.dtype,
        seconds_text(run.seconds),
        f"{100 * run.spread:.1f} %" if run.spread is not None else "not said",
        rate_text(run.rate),
        f"{100 * sheet:.1f} %" if sheet else "no data sheet",
        f"{100 * achieved:.1f} %" if achieved else "",
        f"{seconds_text(run.guess)} ({run.guess / run.seconds:.3g} ×)" if run.guess else "",
        "recorded" if run.recorded else "yes" if run.quiet else "no",
    ]


def _plain(value: Number) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _ranged(plot: svg.LogPlot, y_range: tuple[Number, Number]) -> svg.LogPlot:
    return svg.LogPlot(plot.left, plot.top, plot.width, plot.height, plot.x_range, y_range)


def _roofline(asked: Asked, runs: list[Run]) -> str:
    """The roof, every run under it, and the product that is asked for on it."""
    machine, dtype = asked.machine, asked.dtype
    peak, ridge = machine.peak(dtype), predict.ridge(machine, dtype)
    recorded = asked.recording.points(dtype) if asked.recorded else []
    lowest = [*(run.rate / 2 for run in runs), *(rate / 2 for _, rate in recorded)]
    plot = _ranged(ROOF, (min([peak / 10_000, *lowest]), peak * 3))
    low, high = plot.x_range
    ours = predict.intensity(predict.matmul_flops(asked.b, asked.d, asked.k), asked.nbytes)
    attainable = min(peak, ours * machine.bytes_per_sec)
    start = (low, min(peak, low * machine.bytes_per_sec))
    roof = [plot.at(*start), plot.at(max(ridge, low), peak), plot.at(high, peak)]
    return "".join(
        [
            plot.frame(
                "Under the roofline", "FLOPs per byte", "FLOP/s", _plain, lambda rate: rate_text(rate)
            ),
            svg.polyline(roof, class_="line predicted"),
            svg.polyline(
                [plot.at(ridge, peak), (plot.x(ridge), plot.top + plot.height)], class_="line dashed"
            ),
            svg.text(plot.x(ridge) + 6, plot.top + plot.height - 8, f"ridge {ridge:.3g}", class_="small"),
            *(svg.dot(*plot.at(*point), 3, class_="measured past") for point in recorded),
            *_measured_dots(plot, asked, runs, lambda run: (run.intensity, run.rate)),
            svg.dot(*plot.at(ours, attainable), 8, class_="ring"),
        ]
    )


def _along(asked: Asked, name: str, runs: list[Run]) -> str:
    """Predicted time along one dimension, and the runs that share the other two."""
    near = replace(asked, **dict(zip("bdk", asked.recorded.size, strict=True))) if asked.recorded else asked
    sizes = [2.0**power for power in range(21)]
    seconds = [near.with_size(name, int(size)).predicted_s for size in sizes]
    others = [place(other) for other in "BDK".replace(name, "")]
    same = [run for run in runs if all(run.size[other] == near.size[other] for other in others)]
    fixed = " × ".join("·" if other == name else f"{near.size[place(other)]:,}" for other in "BDK")
    plot = _ranged(TIMES, (min([seconds[0] / 10, *(run.seconds / 2 for run in same)]), seconds[-1] * 2))
    return "".join(
        [
            plot.frame(f"Time along {name}, at {fixed}", f"size of {name}", "time", _plain, seconds_text),
            svg.polyline(
                [plot.at(x, s) for x, s in zip(sizes, seconds, strict=True)], class_="line predicted"
            ),
            *_measured_dots(plot, asked, same, lambda run: (getattr(run, name.lower()), run.seconds)),
            svg.dot(*plot.at(near.size[place(name)], near.predicted_s), 8, class_="ring"),
        ]
    )


def _measured_dots(
    plot: svg.LogPlot, asked: Asked, runs: list[Run], place: Callable[[Run], tuple[Number, Number]]
) -> Iterator[str]:
    latest = asked.recorded
    for run in [*runs, *([latest] if latest else [])]:
        now = run.size == asked.size or run is latest
        yield svg.dot(*plot.at(*place(run)), 6 if now else 4, class_="measured" if now else "measured past")
