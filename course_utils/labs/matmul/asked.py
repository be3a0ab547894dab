"""A matrix product on a machine, as it is asked for, and the products that were timed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from course_utils import machines, predict
from course_utils.datasheets import Machine
from course_utils.labs.fields import choice, size, typed
from course_utils.quantities import Number

HERE = "this machine"
ON_PAPER = ("A100 SXM", "H200 SXM")  # a T4, an H100, a B200 and an MI300X stand among the recorded
DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "xf32")  # an MI300X was recorded in the last
PRESETS = {
    "what suits a CPU?": {"b": 1024, "d": 256, "k": 64},
    "how fast is a square?": {"b": 1024, "d": 1024, "k": 1024},
    "how thin is one token?": {"b": 1, "d": 4096, "k": 4096},
    "what fills a GPU?": {"b": 16384, "d": 32768, "k": 8192},
}


def recordings_by_label() -> dict[str, machines.Recording]:
    """Every recording, as the lab's buttons call it: those by others say by whom."""
    found = machines.recordings().values()
    return {one.name if one.source else f"{one.name} (recorded)": one for one in found}


class Sized:
    """What follows from a product's sizes b, d, k and its dtype."""

    @property
    def size(self) -> tuple[int, int, int]:
        """(B, D, K)."""
        return self.b, self.d, self.k

    def side(self, name: str) -> int:
        """B, D or K."""
        return getattr(self, name.lower())

    def others(self, name: str) -> str:
        """The sizes, with a dot in the place of that one: 64 × · × 8."""
        return " × ".join("·" if other == name else f"{self.side(other):,}" for other in "BDK")

    @property
    def flops(self) -> int:
        """2BDK."""
        return predict.matmul_flops(*self.size)

    @property
    def nbytes(self) -> int:
        """Of the two operands and the result."""
        return predict.matmul_bytes(*self.size, self.dtype)

    @property
    def intensity(self) -> Number:
        """FLOPs per byte."""
        return predict.intensity(self.flops, self.nbytes)


@dataclass(frozen=True)
class Run(Sized):
    """One product that was timed, here or when its machine was recorded."""

    machine: str
    b: int
    d: int
    k: int
    dtype: str
    seconds: Number
    spread: Number | None  # None where nobody said
    doubt: str = ""  # what makes the time doubtful, if anything does
    verb: str = "Measured"  # or how it was recorded, and by whom

    @property
    def recorded(self) -> bool:
        """Whether it was timed elsewhere."""
        return self.verb != "Measured"

    @property
    def rate(self) -> Number:
        """FLOP/s."""
        return self.flops / self.seconds


@dataclass(frozen=True)
class Found:
    """This machine, where there is one to ask, and the products that were timed."""

    here: Machine | None = None
    runs: Sequence[Run] = ()

    def machine(self, where: str) -> Machine:
        """The machine of that name, with its peaks."""
        if where in recordings_by_label():
            return recordings_by_label()[where].machine
        if where != HERE:
            return machines.machine_named(where)
        if self.here is None:
            raise ValueError("A page without a kernel has no machine of its own. Choose one of the others.")
        return self.here

    def with_runs(self, *runs: Run) -> "Found":
        """Some more; what was recorded is the same each time."""
        new = [run for run in runs if not (run.recorded and run in self.runs)]
        return replace(self, runs=(*self.runs, *new))


@dataclass(frozen=True)
class Product(Sized):
    """B × D times D × K in a dtype, on a machine; a guess of its time; the size that a sweep changes."""

    b: int = size("B", 1024)
    d: int = size("D", 1024)
    k: int = size("K", 1024)
    dtype: str = choice("dtype", DTYPES, "fp32")
    where: str = choice("machine", (HERE, *recordings_by_label(), *ON_PAPER), HERE)
    guess: str = typed("my guess", "", examples=("", "5 ms", "200 us"), placeholder="like 5 ms")
    sweep: str = choice("sweep over", ("B", "D", "K"), "K")

    def __post_init__(self) -> None:
        """A sentence, if the guess is none."""
        typed_seconds(self.guess)

    @property
    def guess_s(self) -> Number | None:
        """The guess in seconds."""
        return typed_seconds(self.guess)

    def predicted_s(self, machine: Machine) -> Number:
        """By what the machine is known to reach."""
        return predict.matmul_seconds(*self.size, machine, self.dtype)

    def with_size(self, name: str, size: int) -> "Product":
        """The same with another size."""
        return replace(self, **{name.lower(): size})

    @property
    def recording(self) -> machines.Recording | None:
        """The recording of that machine, if it is a recorded one."""
        return recordings_by_label().get(self.where)

    @property
    def recorded(self) -> Run | None:
        """The nearest product in the recording, if it has any of that dtype."""
        if self.recording is None or self.dtype not in self.recording.seconds_by_size:
            return None
        return self.nearest_recorded()

    def nearest_recorded(self) -> Run:
        """The nearest product in the recording, or a sentence on the dtypes that it has."""
        return self._recorded_at(self.recording.nearest(*self.size, self.dtype))

    def recorded_along(self, name: str) -> list[Run]:
        """The recorded products that share the nearest one's other two sizes."""
        near = self.nearest_recorded()
        runs = [self._recorded_at(size) for size in sorted(self.recording.seconds_by_size[self.dtype])]
        return [run for run in runs if run.others(name) == near.others(name)]

    def _recorded_at(self, size: tuple[int, int, int]) -> Run:
        recording, source = self.recording, self.recording.source
        seconds, verb = recording.seconds_by_size[self.dtype][size], "Recorded"
        verb += f" by {source.by}" if source else ""
        return Run(self.where, *size, self.dtype, seconds, recording.median_spread, verb=verb)


_TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


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
