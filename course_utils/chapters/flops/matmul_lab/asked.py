"""What the matmul lab asks, a matrix product on a machine; and the products that were timed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from course_utils.core import predict
from course_utils.core.datasheets import Machine
from course_utils.core.say import Number
from course_utils.core.say.language import translated
from course_utils.engine.labs.fields import choice, size
from course_utils.subjects import machines
from course_utils.subjects.machines import MatmulSize

HERE = "this machine"
ON_PAPER = ("H100 SXM", "A100 SXM", "H200 SXM")  # known by their data sheets alone
DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "xf32")  # xf32 is the MI300X's tf32
POWERS = [2**power for power in range(21)]  # the sizes of a sweep: 1, 2, 4 and so on to 1,048,576
A_GPU = {"where": "H100 SXM, by OpenXLA", "dtype": "bf16"}
PRESETS = {
    "what suits a CPU?": {"b": 1024, "d": 256, "k": 64},
    "how fast is a square?": {"b": 1024, "d": 1024, "k": 1024},
    "how thin is one token?": {"b": 1, "d": 4096, "k": 4096},
    "what fills a GPU?": {"b": 16384, "d": 32768, "k": 8192} | A_GPU,
}


def recordings_by_label() -> dict[str, machines.Recording]:
    """Return every recording by its name in the lab's menu.

    Ours get " (recorded)"; the names of others' recordings already say who made them.
    """
    by_label = {}
    for recording in machines.recordings().values():
        label = recording.name
        if not recording.source:
            label += " (recorded)"
        by_label[label] = recording
    return by_label


class _Machines(Mapping):
    """The machines to choose from, as the options of a `choice`: each name stands for itself.

    A list would be fixed when this module is imported. Here the names are looked up whenever they
    are used, so a machine that was recorded just now is among them.
    """

    def __iter__(self) -> Iterator[str]:
        return iter((HERE, *recordings_by_label(), *ON_PAPER))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> str:
        if name not in tuple(self):  # `in self` would call this method again
            raise KeyError(name)
        return name


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
        """Return the sizes in words, with a dot in place of the named one: 64 × · × 8."""
        texts = {"B": f"{self.b:,}", "D": f"{self.d:,}", "K": f"{self.k:,}"}
        texts[name] = "·"
        return " × ".join(texts.values())

    def along(self, name: str) -> list["Product"]:
        """Return this product with each power of two in POWERS as its size `name`."""
        field = name.lower()
        return [replace(self, **{field: power}) for power in POWERS]

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
        """Return the seconds by the roofline of this machine."""
        return predict.matmul_seconds(*self.size, machine, self.dtype)

    @property
    def recording(self) -> machines.Recording | None:
        """The recording of the chosen machine, or None if there is none."""
        return recordings_by_label().get(self.where)

    @cached_property
    def recorded(self) -> "dict[MatmulSize, TimedProduct]":
        """The recording's products in this dtype, by their sizes; empty without a recording."""
        if self.recording is None:
            return {}
        source = self.recording.source
        by = source.by if source else ""
        seconds_by_size = self.recording.seconds_by_size.get(self.dtype, {})
        recorded = {}
        for (b, d, k), seconds in sorted(seconds_by_size.items()):
            product = Product(b, d, k, self.dtype, self.where)
            recorded[b, d, k] = TimedProduct(product, seconds, is_recorded=True, by=by)
        return recorded

    def timed(self, runs: Sequence["TimedProduct"]) -> list["TimedProduct"]:
        """Return the recorded products, then the runs on the chosen machine in this dtype.

        `runs` are all runs of the reader, on any machine and in any dtype.
        """
        timed = list(self.recorded.values())
        for run in runs:
            if run.product.where == self.where and run.product.dtype == self.dtype:
                timed.append(run)
        return timed

    def nearest_recorded(self) -> "TimedProduct":
        """Return the recorded product nearest in size. The chosen machine must have a recording.

        If the recording lacks this dtype, raise a ValueError with the dtypes that it has.
        """
        nearest = self.recording.nearest(self.b, self.d, self.k, self.dtype)
        return self.recorded[nearest]


@dataclass(frozen=True)
class TimedProduct:
    """One product that was timed, here or when its machine was recorded."""

    product: Product
    seconds: Number
    doubt: str = ""  # what makes the time doubtful, if anything does
    is_recorded: bool = False  # and not measured here
    by: str = ""  # who recorded it, unless it was us

    @property
    def rate(self) -> Number:
        """FLOP/s."""
        return self.product.flops / self.seconds


@dataclass(frozen=True)
class Found:
    """This machine with its measured rates, and the products that were timed."""

    here: Machine | None = None  # None until it is measured, and on a page without a kernel
    runs: Sequence[TimedProduct] = ()

    def machine(self, where: str) -> Machine:
        """Return the machine of this name; ValueError for HERE on a page without a kernel."""
        if where == HERE and self.here is None:
            refused = translated(
                "A page without a kernel has no machine of its own. Choose one of the others."
            )
            raise ValueError(refused)
        if where == HERE:
            return self.here
        recording = recordings_by_label().get(where)
        if recording:
            return recording.machine
        return machines.machine_named(where)
