"""What the roof lab asks: a table that others recorded, the forecast's c and e, and marks."""

from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.core import predict
from course_utils.core.datasheets import Machine
from course_utils.core.predict.forecast import Timed
from course_utils.core.say import Number, three_digits
from course_utils.core.say.language import template
from course_utils.engine.labs.fields import among, choice, drawn, reveal, said_is, whole
from course_utils.subjects import machines

# The steps and the end of the slider of c, in microseconds.
C_STEP_US = 0.25
MOST_C_US = 20.0
C_US = [C_STEP_US * n for n in range(1 + round(MOST_C_US / C_STEP_US))]
# What a guess is about, by n. SQUARES are its sizes.
QUESTIONS = {
    256: template("the share of the peak at n = 256, in %"),
    512: template("the share of the peak at n = 512, in %"),
    1024: template("the share of the peak at n = 1,024, in %"),
    2048: template("the share of the peak at n = 2,048, in %"),
    4096: template("the share of the peak at n = 4,096, in %"),
}
SQUARES = tuple(QUESTIONS)


def _tables() -> dict[str, tuple[str, str]]:
    """Return (recording's name, dtype) of each published table that has all SQUARES, by its label.

    A label is like "MI300X, by AMD, bf16". The H100's tables come first.
    """
    h100s = {}
    others = {}
    for name, recording in machines.recordings().items():
        if not recording.source:  # it is ours or the reader's, and not published
            continue
        tables = h100s if "H100" in name else others
        for dtype, timed in recording.seconds_by_size.items():
            if all((n, n, n) in timed for n in SQUARES):
                tables[f"{name}, {dtype}"] = (name, dtype)
    return {**h100s, **others}


TABLES = _tables()
PRESETS = {
    "what do squares reach?": {"shown": False, "c_us": 0.0, "e_percent": 100},
    "how near are c and e?": {"shown": True, "c_us": 5.5, "e_percent": 78},
    "and an AMD GPU?": {
        "table": "MI300X, by AMD, bf16",
        "shown": True,
        "c_us": 5.5,
        "e_percent": 78,
    },
}


def _percent_text(_: int, level: int) -> str:
    """Return what stands at a mark. The first argument is the number of the mark."""
    return f"{level} %"


@dataclass(frozen=True)
class Roofed:
    """A table of products, the forecast's c and e, and the shares of the peak that were drawn."""

    # Of `whole`: its label, its default, the least and the most.
    table: str = choice("products", tuple(TABLES), next(iter(TABLES)), menu=True)
    c_us: float = among("c, µs", C_US, 0.0, width_px=190, when=said_is("shown", True))
    e_percent: int = whole("e, %", 100, 1, 100, width_px=190, when=said_is("shown", True))
    shown: bool = reveal()
    # A percentage for each of SQUARES, or None while its mark is not set.
    shares: Sequence[int | None] = drawn(
        "share of the peak",
        marks=[f"n = {n:,}" for n in SQUARES],
        levels=101,
        says=_percent_text,
        about=("table",),
    )

    @property
    def recording(self) -> machines.Recording:
        """The recording to which the table belongs."""
        name, _ = TABLES[self.table]
        return machines.recordings()[name]

    @property
    def dtype(self) -> str:
        """The format of the products."""
        _, dtype = TABLES[self.table]
        return dtype

    @property
    def machine(self) -> Machine:
        """The machine with its data sheet's peaks."""
        return self.recording.machine

    @property
    def seconds_by_size(self) -> Timed:
        """The recorded times of the table, by the products' sizes."""
        return self.recording.seconds_by_size[self.dtype]

    @property
    def c_and_e(self) -> tuple[Number, Number]:
        """The forecast's c, a kernel's own price in seconds, and e.

        e is the share of the roof's speed that large products reach.
        """
        return self.c_us / 1e6, self.e_percent / 100

    def recorded(self, n: int) -> Number:
        """Return the share of the peak that the product of n × n matrices reached, in percent."""
        return self._percent(n, self.seconds_by_size[n, n, n])

    def forecast(self, n: int, c: Number, e: Number) -> Number:
        """Return the share of the peak, in percent, that n × n matrices reach by c + roof / e."""
        seconds = predict.product_seconds(n, n, n, self.machine, self.dtype, c, e)
        return self._percent(n, seconds)

    def _percent(self, n: int, seconds: Number) -> Number:
        """Return the percentage of the peak that is reached by 2n³ FLOPs in this time."""
        flops = 2 * n**3
        return 100 * flops / seconds / self.machine.peak(self.dtype)

    def errors(self, timed: Timed, c: Number, e: Number) -> tuple[str, str]:
        """Return the forecast's median error in percent, and its worst factor, each as a text.

        They are its errors for products that were timed.
        """
        median, worst = predict.forecast_errors(timed, self.machine, self.dtype, c, e)
        return three_digits(100 * median), three_digits(worst)
