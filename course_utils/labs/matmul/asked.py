"""A matrix product on a machine, as it is asked for, and the products that were timed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from course_utils import machines, predict
from course_utils.datasheets import Machine
from course_utils.labs.fields import among, choice, size, typed, whole
from course_utils.machines import Size
from course_utils.quantities import Number

HERE = "this machine"
ON_PAPER = ("A100 SXM", "H200 SXM")  # a T4, an H100, a B200 and an MI300X stand among the recorded
DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "xf32")  # an MI300X was recorded in the last
C_STEP_US, MOST_C_US = 0.25, 20.0  # of the forecast's slider
C_US = [C_STEP_US * n for n in range(1 + round(MOST_C_US / C_STEP_US))]
POWERS = [2**power for power in range(21)]
A_GPU = {"where": "H100 SXM, by OpenXLA", "dtype": "bf16"}
PRESETS = {
    "what suits a CPU?": {"b": 1024, "d": 256, "k": 64},
    "how fast is a square?": {"b": 1024, "d": 1024, "k": 1024},
    "how thin is one token?": {"b": 1, "d": 4096, "k": 4096},
    "what fills a GPU?": {"b": 16384, "d": 32768, "k": 8192} | A_GPU,
}


def recordings_by_label() -> dict[str, machines.Recording]:
    """Every recording, as the lab's buttons call it: those by others say by whom."""
    found = machines.recordings().values()
    return {one.name if one.source else f"{one.name} (recorded)": one for one in found}


@dataclass(frozen=True)
class Product:
    """B × D times D × K in a dtype, on a machine; a guess of its time; the size that a sweep changes; the forecast's c and e."""

    b: int = size("B", 1024)
    d: int = size("D", 1024)
    k: int = size("K", 1024)
    dtype: str = choice("dtype", DTYPES, "fp32")
    where: str = choice("machine", (HERE, *recordings_by_label(), *ON_PAPER), HERE, menu=True)
    guess: str = typed("my guess", "", examples=("", "5 ms", "200 us"), placeholder="like 5 ms")
    sweep: str = choice("sweep over", ("B", "D", "K"), "K")
    c_us: float = among("c, µs", C_US, 0.0, width_px=215)
    e_percent: int = whole("e, %", 100, 1, 100, width_px=215)

    def __post_init__(self) -> None:
        """Raise a sentence if the guess is no time."""
        typed_seconds(self.guess)

    @property
    def size(self) -> Size:
        """(B, D, K)."""
        return self.b, self.d, self.k

    def others(self, name: str) -> str:
        """The sizes, with a dot in the place of that one: 64 × · × 8."""
        sizes = zip("BDK", self.size, strict=True)
        return " × ".join("·" if other == name else f"{size:,}" for other, size in sizes)

    def along(self, name: str) -> list["Product"]:
        """The sizes once for each power of two that this one can be."""
        return [replace(self, **{name.lower(): size}) for size in POWERS]

    @property
    def flops(self) -> int:
        """2BDK."""
        return predict.matmul_flops(*self.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the two operands and the result."""
        return predict.matmul_bytes(*self.size, self.dtype)

    @property
    def intensity(self) -> Number:
        """FLOPs per byte."""
        return predict.intensity(self.flops, self.nbytes)

    def predicted_s(self, machine: Machine) -> Number:
        """The time that follows from what the machine is known to reach."""
        return predict.matmul_seconds(*self.size, machine, self.dtype)

    @property
    def c_and_e(self) -> tuple[Number, Number]:
        """A kernel's own price in seconds, and the share of the roof's speed that large products get."""
        return self.c_us / 1e6, self.e_percent / 100

    @property
    def recording(self) -> machines.Recording | None:
        """The recording of that machine, if it is a recorded one."""
        return recordings_by_label().get(self.where)

    @cached_property
    def recorded(self) -> "dict[Size, Run]":
        """The products of that dtype in the recording, by their sizes."""
        if self.recording is None:
            return {}
        source = self.recording.source
        verb = f"Recorded by {source.by}" if source else "Recorded"
        products = self.recording.seconds_by_size.get(self.dtype, {})
        return {
            size: Run(Product(*size, self.dtype, self.where), seconds, verb=verb)
            for size, seconds in sorted(products.items())
        }

    def timed(self, runs: Sequence["Run"]) -> list["Run"]:
        """The products that were timed on this machine in this dtype: those recorded, and those among the runs."""
        here = self.where, self.dtype
        mine = (run for run in runs if (run.product.where, run.product.dtype) == here)
        return [*self.recorded.values(), *mine]

    def seconds_by_size(self, runs: Sequence["Run"]) -> dict[Size, Number]:
        """The latest time of each size among them."""
        return {run.product.size: run.seconds for run in self.timed(runs)}

    def nearest_recorded(self) -> "Run":
        """The nearest product in the recording, or a sentence on the dtypes that it has."""
        return self.recorded[self.recording.nearest(*self.size, self.dtype)]


@dataclass(frozen=True)
class Run:
    """One product that was timed, here or when its machine was recorded."""

    product: Product
    seconds: Number
    doubt: str = ""  # what makes the time doubtful, if anything does
    verb: str = "Measured"  # or how it was recorded, and by whom

    @property
    def rate(self) -> Number:
        """FLOP/s."""
        return self.product.flops / self.seconds


@dataclass(frozen=True)
class Found:
    """This machine, where there is one to ask, and the products that were timed."""

    here: Machine | None = None
    runs: Sequence[Run] = ()

    def machine(self, where: str) -> Machine:
        """The machine of that name, with its peaks."""
        if where == HERE and self.here is None:
            raise ValueError("A page without a kernel has no machine of its own. Choose one of the others.")
        known = {label: one.machine for label, one in recordings_by_label().items()} | {HERE: self.here}
        return known[where] if where in known else machines.machine_named(where)


_TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_TIME_UNITS |= {"minutes": 60.0, "hours": 3600.0, "days": 86400.0, "years": 365.25 * 86400}  # as shown
_TIME = re.compile(r"(\d+\.?\d*(?:e[+-]?\d{1,2})?|\.\d+)\s*([a-zµμ]+)", re.ASCII)


def typed_seconds(words: str) -> Number | None:
    """A time as people write it; nothing for an empty field.

    >>> typed_seconds("5 ms"), typed_seconds(""), typed_seconds("1.5e3us")
    (0.005, None, 0.0015)
    """
    said = words.strip()
    if not said:
        return None
    match = _TIME.fullmatch(said.lower()) if len(said) <= 40 else None  # 100,000 digits would take minutes
    if not match or match[2] not in _TIME_UNITS or not float(match[1]):
        raise ValueError(f"A guess is a time with its unit, like 5 ms or 200 us; “{said[:40]}” is none.")
    return float(match[1]) * _TIME_UNITS[match[2]]
