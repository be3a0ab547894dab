"""A matrix product on a machine, as it is asked for, and the products that were timed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from course_utils.core import predict
from course_utils.core.datasheets import Machine
from course_utils.core.say import Number
from course_utils.engine.labs.fields import choice, size
from course_utils.subjects import machines
from course_utils.subjects.machines import MatmulSize

HERE = "this machine"
ON_PAPER = ("H100 SXM", "A100 SXM", "H200 SXM")  # by the data sheet alone
DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "xf32")  # xf32 is the MI300X's tf32
POWERS = [2**power for power in range(21)]
A_GPU = {"where": "H100 SXM, by OpenXLA", "dtype": "bf16"}
PRESETS = {
    "what suits a CPU?": {"b": 1024, "d": 256, "k": 64},
    "how fast is a square?": {"b": 1024, "d": 1024, "k": 1024},
    "how thin is one token?": {"b": 1, "d": 4096, "k": 4096},
    "what fills a GPU?": {"b": 16384, "d": 32768, "k": 8192} | A_GPU,
}


def recordings_by_label() -> dict[str, machines.Recording]:
    """Every recording, by the name that the lab's menu has for it.

    The name of a recording by others says already who made it.
    """
    by_label = {}
    for recording in machines.recordings().values():
        label = recording.name
        if not recording.source:
            label += " (recorded)"
        by_label[label] = recording
    return by_label


class _Machines(Mapping):
    """The names to choose a machine by. A machine that was recorded just now is among them."""

    def __iter__(self) -> Iterator[str]:
        return iter((HERE, *recordings_by_label(), *ON_PAPER))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> str:
        return next(label for label in self if label == name)


@dataclass(frozen=True)
class Product:
    """B × D times D × K in a dtype, on a machine; and the size that a sweep changes."""

    b: int = size("B", 1024)
    d: int = size("D", 1024)
    k: int = size("K", 1024)
    dtype: str = choice("dtype", DTYPES, "fp32")
    where: str = choice("machine", _Machines(), HERE, menu=True)
    sweep: str = choice("sweep over", ("B", "D", "K"), "K")

    @property
    def size(self) -> MatmulSize:
        """(B, D, K)."""
        return self.b, self.d, self.k

    def others(self, name: str) -> str:
        """The sizes, with a dot in the place of that one: 64 × · × 8."""
        texts = {"B": f"{self.b:,}", "D": f"{self.d:,}", "K": f"{self.k:,}"}
        texts[name] = "·"
        return " × ".join(texts.values())

    def along(self, name: str) -> list["Product"]:
        """The product once for each power of two that this size can be."""
        field = name.lower()
        return [replace(self, **{field: size}) for size in POWERS]

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
    def recording(self) -> machines.Recording | None:
        """The recording of that machine, if it is a recorded one."""
        return recordings_by_label().get(self.where)

    @cached_property
    def recorded(self) -> "dict[MatmulSize, TimedProduct]":
        """The products of that dtype in the recording, by their sizes."""
        if self.recording is None:
            return {}
        source = self.recording.source
        verb = f"Recorded by {source.by}" if source else "Recorded"
        seconds_by_size = self.recording.seconds_by_size.get(self.dtype, {})
        recorded = {}
        for (b, d, k), seconds in sorted(seconds_by_size.items()):
            product = Product(b, d, k, self.dtype, self.where)
            recorded[b, d, k] = TimedProduct(product, seconds, verb=verb)
        return recorded

    def timed(self, runs: Sequence["TimedProduct"]) -> list["TimedProduct"]:
        """The products that were timed on this machine in this dtype, recorded or in these runs."""
        timed = list(self.recorded.values())
        for run in runs:
            if run.product.where == self.where and run.product.dtype == self.dtype:
                timed.append(run)
        return timed

    def nearest_recorded(self) -> "TimedProduct":
        """The nearest product in the recording, or a sentence on the dtypes that it has."""
        nearest = self.recording.nearest(self.b, self.d, self.k, self.dtype)
        return self.recorded[nearest]


@dataclass(frozen=True)
class TimedProduct:
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
    runs: Sequence[TimedProduct] = ()

    def machine(self, where: str) -> Machine:
        """The machine of that name, with its peaks."""
        if where == HERE and self.here is None:
            raise ValueError(
                "A page without a kernel has no machine of its own. Choose one of the others."
            )
        if where == HERE:
            return self.here
        recording = recordings_by_label().get(where)
        if recording:
            return recording.machine
        return machines.machine_named(where)
