"""What the roof lab asks: a table that others recorded, c and e, and the reader's share of the peak for each square."""

from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.core import predict
from course_utils.core.datasheets import Machine
from course_utils.core.predict.forecast import Timed
from course_utils.core.say import Number, count_text, three_digits
from course_utils.engine.labs.fields import among, choice, drawn, reveal, whole
from course_utils.subjects import machines

C_STEP_US, MOST_C_US = 0.25, 20.0  # of c's slider
C_US = [C_STEP_US * n for n in range(1 + round(MOST_C_US / C_STEP_US))]
SQUARES = (256, 512, 1024, 2048, 4096)


TABLES = {  # those that have every square, the H100's first
    f"{name}, {dtype}": (name, dtype)
    for name, recording in sorted(
        machines.recordings().items(), key=lambda item: "H100" not in item[0]
    )
    for dtype, timed in recording.seconds_by_size.items()
    if recording.source and all((n, n, n) in timed for n in SQUARES)
}
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


@dataclass(frozen=True)
class Roofed:
    """A table of products, the forecast's c and e, and the shares of the peak that the reader has drawn."""

    table: str = choice("products", tuple(TABLES), next(iter(TABLES)), menu=True)
    c_us: float = among("c, µs", C_US, 0.0, width_px=190)
    e_percent: int = whole("e, %", 100, 1, 100, width_px=190)
    shown: bool = reveal()
    shares: Sequence[int | None] = drawn(
        "share of the peak",
        marks=[f"n = {n:,}" for n in SQUARES],
        levels=101,
        says=lambda _, level: f"{level} %",
    )

    @property
    def recording(self) -> machines.Recording:
        """What was recorded, and by whom."""
        return machines.recordings()[TABLES[self.table][0]]

    @property
    def dtype(self) -> str:
        """The format of the products."""
        return TABLES[self.table][1]

    @property
    def machine(self) -> Machine:
        """The machine with its data sheet's peaks."""
        return self.recording.machine

    @property
    def seconds_by_size(self) -> Timed:
        """The recorded products."""
        return self.recording.seconds_by_size[self.dtype]

    @property
    def c_and_e(self) -> tuple[Number, Number]:
        """A kernel's own price in seconds, and the share of the roof's speed that large products get."""
        return self.c_us / 1e6, self.e_percent / 100

    def recorded(self, n: int) -> Number:
        """The share of the peak that the product of n × n matrices reached, in percent."""
        return self._percent(n, self.seconds_by_size[n, n, n])

    def forecast(self, n: int, c: Number, e: Number) -> Number:
        """The same share, in percent, if the product takes c + roof / e."""
        return self._percent(n, predict.product_seconds(n, n, n, self.machine, self.dtype, c, e))

    def _percent(self, n: int, seconds: Number) -> Number:
        return 200 * n**3 / seconds / self.machine.peak(self.dtype)

    def errors_text(self, timed: Timed, c: Number, e: Number) -> str:
        """How far that forecast is from what was timed: how many products, the median error, the worst factor."""
        median, worst = predict.forecast_errors(timed, self.machine, self.dtype, c, e)
        products = count_text(len(timed), "product")
        return f"{products}: median error {three_digits(100 * median)} %, worst factor {three_digits(worst)}"
