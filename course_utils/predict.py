"""Closed forms: bytes, FLOPs, seconds and days, from shapes alone. Nothing here runs what it predicts.

The convention, everywhere: a multiply-add is 2 FLOPs; element-wise operations, reductions and optimizers
count 0 unless a docstring says otherwise; attention is counted unmasked. Symbols: B batch, D input width,
K output width, L layers, S sequence length, H width of the model, A heads, V vocabulary, P parameters,
N tokens trained on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from course_utils import einsums
from course_utils.datasheets import Machine
from course_utils.quantities import Ledger, Number

SECONDS_PER_DAY = 86_400
DTYPE_BYTES: Mapping[str, Number] = {
    "fp64": 8,
    "fp32": 4,
    "tf32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8": 1,
    "e4m3": 1,
    "e5m2": 1,
    "int64": 8,
    "int32": 4,
    "int8": 1,
    "bool": 1,
}


def dtype_bytes(dtype: str) -> Number:
    """Bytes of one number."""
    if dtype not in DTYPE_BYTES:
        raise ValueError(f"There is no dtype {dtype!r} here. There are: {', '.join(DTYPE_BYTES)}.")
    return DTYPE_BYTES[dtype]


def _sizes(**sizes: object) -> None:
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ValueError(f"{name} is a size, a whole number from 0 up; got {size!r}.")


def tensor_bytes(shape: Sequence[int], dtype: str) -> int:
    """The product of the sizes times the bytes of one number.

    >>> tensor_bytes((4, 8), "bf16")
    64
    """
    _sizes(**{f"size {place}": size for place, size in enumerate(shape)})
    return math.prod(shape) * dtype_bytes(dtype)


# One matrix product: (B, D) @ (D, K).


def matmul_flops(b: int, d: int, k: int) -> int:
    """2BDK: each of BDK products is followed by an addition.

    >>> matmul_flops(1024, 256, 64)
    33554432
    """
    _sizes(b=b, d=d, k=k)
    return 2 * b * d * k


def matmul_bytes(b: int, d: int, k: int, dtype: str) -> int:
    """(BD + DK + BK) × bytes of a number: each operand read once, the result written once.

    >>> matmul_bytes(1024, 256, 64, "bf16")
    688128
    """
    return sum(tensor_bytes(shape, dtype) for shape in ((b, d), (d, k), (b, k)))


def intensity(flops: Number, nbytes: Number) -> Number:
    """FLOPs per byte moved: what decides which of the two limits a machine meets first."""
    return flops / nbytes if nbytes else math.nan


def ridge(machine: Machine, dtype: str) -> Number:
    """Peak FLOP/s over bytes/s: the intensity from which on the arithmetic is the limit, and not the memory."""
    return machine.peak(dtype) / machine.bytes_per_sec


def roofline_seconds(flops: Number, nbytes: Number, machine: Machine, dtype: str) -> Number:
    """max(FLOPs / peak, bytes / bandwidth): no faster than either lets it be."""
    return max(flops / machine.peak(dtype), nbytes / machine.bytes_per_sec)


def matmul_seconds(b: int, d: int, k: int, machine: Machine, dtype: str) -> Number:
    """The roofline's time of one product."""
    return roofline_seconds(matmul_flops(b, d, k), matmul_bytes(b, d, k, dtype), machine, dtype)


# Products of several tensors.


def einsum_flops(pattern: str, /, **sizes: int) -> int:
    """2 for each multiply-add of a pairwise product, 1 for each lone multiplication where nothing is summed.

    Three operands or more are multiplied in the cheapest order, two at a time and each pair as loops would do
    it: an index that only one operand has is not summed beforehand. The pattern is written as in einops.

    >>> einsum_flops("b h i d, b h j d -> b h i j", b=2, h=4, i=8, j=8, d=16)
    16384
    """
    einsum = einsums.parsed(pattern)
    if set(einsum.names) != set(sizes):
        raise ValueError(
            f"{pattern!r} needs the sizes of {', '.join(sorted(einsum.names))}; "
            f"got {', '.join(sorted(sizes)) or 'none'}."
        )
    _sizes(**sizes)
    return einsums.orders(einsum, sizes, only_cheapest=True)[0].flops


# Models and training runs.


def mlp_flops(batch: int, widths: Sequence[int], *, input_grad: bool = False) -> Ledger:
    """Forward 2B for each weight; backward 4B, but 2B in the first layer if the input needs no gradient.

    >>> mlp_flops(1024, [256, 256, 64])
                    FLOPs
    forward   167,772,160
    backward  201,326,592
    total     369,098,752
    """
    layers = list(pairwise(widths))
    if not layers:
        raise ValueError(
            f"A network needs at least two widths, its input's and its output's; got {list(widths)}."
        )
    forward = [matmul_flops(batch, d, k) for d, k in layers]
    backward = 2 * sum(forward) - (0 if input_grad else forward[0])
    return Ledger({"forward": sum(forward), "backward": backward}, unit="FLOPs")


def training_flops(parameters: Number, tokens: Number) -> Number:
    """6PN: forward 2 and backward 4 for each parameter and token.

    >>> training_flops(70e9, 15e12)
    6.3e+24
    """
    return 6 * parameters * tokens


def training_days(
    parameters: Number, tokens: Number, machine: Machine, count: int, mfu: Number, *, dtype: str = "bf16"
) -> Number:
    """6PN / (count × peak × MFU), in days.

    >>> from course_utils.datasheets import MACHINES
    >>> round(training_days(70e9, 15e12, MACHINES["H100 SXM"], 1024, 0.5), 3)
    143.927
    """
    if not 0 < mfu <= 1:
        raise ValueError(f"MFU is a share, above 0 and at most 1; got {mfu!r}.")
    _sizes(count=count)
    if count == 0:
        raise ValueError("Training needs at least one machine; got count 0.")
    return training_flops(parameters, tokens) / (count * machine.peak(dtype) * mfu) / SECONDS_PER_DAY


def mfu(flops: Number, seconds: Number, machine: Machine, count: int = 1, dtype: str = "bf16") -> Number:
    """(FLOPs that the model needs / seconds) / (count × dense peak): model FLOPs utilisation.

    Only what the mathematics asks for counts; work that is done twice, as in checkpointing, does not.
    """
    if not seconds > 0 or count < 1:
        raise ValueError(
            f"A rate needs a time above 0 on 1 machine or more; got {seconds!r} seconds on {count!r}."
        )
    return flops / seconds / (count * machine.peak(dtype))


@dataclass(frozen=True)
class Transformer:
    """GPT-2's shape: biases, learned positions, the output tied to the embedding, a feed-forward of 4H.

    >>> gpt2 = Transformer(layers=12, width=768, heads=12, vocabulary=50257, context=1024)
    >>> gpt2.parameters
    124439808
    """

    layers: int
    width: int
    heads: int
    vocabulary: int
    context: int
    feed_forward: int | None = None
    biases: bool = True
    learned_positions: bool = True
    tied_output: bool = True

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in ("layers", "width", "heads", "vocabulary", "context")}
        _sizes(**sizes)
        if self.feed_forward is not None:
            _sizes(feed_forward=self.feed_forward)
        if not self.heads or self.width % self.heads:
            raise ValueError(
                f"The width has to be a multiple of the heads; {self.width} is not one of {self.heads}."
            )

    @property
    def _inner(self) -> int:
        return 4 * self.width if self.feed_forward is None else self.feed_forward

    @property
    def block_weights(self) -> int:
        """4H² + 2H × feed-forward: the matrices of one layer; 12H² by default."""
        return 4 * self.width**2 + 2 * self.width * self._inner

    @property
    def parameters(self) -> int:
        """Everything that is trained."""
        return self.parameters_by_part.total

    @property
    def parameters_by_part(self) -> Ledger:
        """Embeddings, matrices, biases and normalisations; a tied output adds none."""
        h = self.width
        biases = self.layers * (3 * h + h + self._inner + h) if self.biases else 0
        one_norm = 2 * h if self.biases else h
        return Ledger(
            {
                "token embedding": self.vocabulary * h,
                "positions": self.context * h if self.learned_positions else 0,
                "matrices": self.layers * self.block_weights,
                "biases": biases,
                "normalisations": (2 * self.layers + 1) * one_norm,
                "output": 0 if self.tied_output else self.vocabulary * h,
            },
            unit="parameters",
        )

    def forward_flops(self, batch: int, sequence: int) -> Ledger:
        """2 for each weight of a product and token, and 4SH for attention's two products per layer and token."""
        _sizes(batch=batch, sequence=sequence)
        tokens = batch * sequence
        return Ledger(
            {
                "matrices": 2 * tokens * self.layers * self.block_weights,
                "attention": 4 * tokens * sequence * self.width * self.layers,
                "output": 2 * tokens * self.vocabulary * self.width,
            },
            unit="FLOPs",
        )

    def training_flops(self, batch: int, sequence: int, recompute: bool = False) -> Ledger:
        """Forward, a backward of twice that, and with activation checkpointing the layers' forward once more."""
        forward = self.forward_flops(batch, sequence)
        ledger = {"forward": forward.total, "backward": 2 * forward.total}
        if recompute:
            ledger["recompute"] = forward["matrices"] + forward["attention"]
        return Ledger(ledger, unit="FLOPs")
