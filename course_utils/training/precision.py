"""A small model trained in each mix of formats, and what a format makes of its gradients.

The task: of two digits, name the sum. An MLP, 20-64-64-19 wide, reads all 100 pairs in each step. Only the first weights
are drawn, and they are the same for every mix.

The loss is a mean, so each pair's share of the gradient falls as 1 / (pairs in the batch). `mean_over` says how many
pairs are in the batch. They come in micro-batches of 100, whose gradients are added up in the optimizer's format. Here
all micro-batches hold the same 100 pairs. So one is computed, and its gradient is counted `mean_over / 100` times. This
factor is a power of two, so in fp32 and bf16 nothing is rounded by it: the loss is the same for every batch. In fp16 it
is not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from course_utils import floats
from course_utils.measure import DTYPES, cpu_threads
from course_utils.models import MLP
from course_utils.predict import rounding
from course_utils.quantities import Comparison, Ledger, Number
from course_utils.training import generator_for

WIDTHS = (20, 64, 64, 19)
PAIRS = 100  # of digits; one micro-batch has them all
LEARNING_RATE = 3e-3  # of Adam, which is otherwise as torch has it
FIRST_SCALE = 2.0**16  # GradScaler's own
GROWTH_INTERVAL = 20  # GradScaler's is 2,000, longer than the runs here


@dataclass(frozen=True)
class Mix:
    """The formats of the model's parameters and gradients, of its products, and of what the optimizer keeps.

    Where the products have another format than the parameters, autocast casts them. Where the optimizer's
    copy has another, it is a master copy. `scaled`: torch's GradScaler finds the loss scale.
    """

    model: str = "fp32"
    products: str = "fp32"
    optimizer: str = "fp32"
    scaled: bool = False


MIXES = {
    "fp32": Mix(),
    "bf16 autocast": Mix(products="bf16"),
    "fp16 autocast": Mix(products="fp16"),
    "fp16 autocast, scaled": Mix(products="fp16", scaled=True),
    "bf16 alone": Mix(model="bf16", products="bf16", optimizer="bf16"),
    "bf16 + fp32 master": Mix(model="bf16", products="bf16"),
}


LETTERS = {"A": "bf16 alone", "B": "bf16 autocast", "C": "fp16 autocast"}  # mixes to be told by their curves


@dataclass(frozen=True)
class Trained:
    """One step: the loss that it found, the loss scale it had, and whether it was skipped."""

    loss: Number
    scale: Number
    skipped: bool


def digit_pairs() -> tuple[Float[Tensor, "pairs 20"], Int[Tensor, " pairs"]]:
    """All 100 pairs of digits as inputs with two ones, and their sums.

    >>> pairs, sums = digit_pairs()
    >>> pairs[37].nonzero().flatten().tolist(), sums[37].item()
    ([3, 17], 10)
    """
    digits = torch.cartesian_prod(torch.arange(10), torch.arange(10))
    return functional.one_hot(digits, 10).flatten(1).float(), digits.sum(1)


class Training:
    """The model in one mix, step by step. `scale` is the constant loss scale, or with GradScaler the first one."""

    def __init__(self, mix: str, *, scale: Number | None = None, mean_over: int = PAIRS) -> None:
        if mix not in MIXES:
            raise ValueError(f"There is no mix {mix!r}. There are: {', '.join(MIXES)}.")
        self.micro_batches = _micro_batches(mean_over)
        self.mix = MIXES[mix]
        if scale is None:
            scale = FIRST_SCALE if self.mix.scaled else 1.0
        self.scale = 1.0 if self.mix.scaled else float(rounding.checked_scale(scale))
        self.pairs, self.sums = digit_pairs()
        draw = generator_for("weights", seed=0)
        self.model = MLP(WIDTHS, nonlinearity="gelu", dtype=DTYPES[self.mix.model], generator=draw)
        self.working = list(self.model.parameters())
        # The master copy begins with the model's rounded numbers, as if they had been loaded.
        self.kept = self.working
        if self.mix.optimizer != self.mix.model:
            self.kept = [p.detach().to(DTYPES[self.mix.optimizer]) for p in self.working]
        self.optimizer = torch.optim.Adam(self.kept, LEARNING_RATE)
        self.scaler = torch.amp.GradScaler(
            "cpu",
            float(rounding.checked_scale(scale)),
            growth_interval=GROWTH_INTERVAL,
            enabled=self.mix.scaled,
        )

    def backward(self) -> Tensor:
        """Put the scaled gradients of this micro-batch's part of the loss into `grad`; returns the whole loss."""
        products = DTYPES[self.mix.products]
        with torch.autocast("cpu", products, enabled=self.mix.products != self.mix.model):
            logits = self.model(self.pairs.to(DTYPES[self.mix.model]))
        loss = functional.cross_entropy(logits.float(), self.sums)
        self.model.zero_grad()
        self.scaler.scale(loss * (self.scale / self.micro_batches)).backward()
        return loss.detach()

    def step(self) -> Trained:
        """Backward, the gradients of all micro-batches added up, and the optimizer's step."""
        with cpu_threads(1):  # a second thread, kept waiting, would only slow such small products
            loss, scale = self.backward(), self.scaler.get_scale() * self.scale
            for kept, working in zip(self.kept, self.working, strict=True):
                kept.grad = working.grad.to(kept.dtype)
            self.scaler.unscale_(self.optimizer)
            for kept in self.kept:
                kept.grad *= self.micro_batches / self.scale
            self.scaler.step(self.optimizer)
            self.scaler.update()
            with torch.no_grad():
                for kept, working in zip(self.kept, self.working, strict=True):
                    working.copy_(kept)
        skipped = self.scaler.get_scale() < scale if self.mix.scaled else False
        return Trained(loss.item(), scale, skipped)


def _micro_batches(mean_over: int) -> int:
    """How many micro-batches of 100 pairs make that batch."""
    count, rest = divmod(mean_over, PAIRS)
    if rest or count < 1 or count & (count - 1):
        allowed = ", ".join(f"{PAIRS * 2**n:,}" for n in range(3))
        raise ValueError(
            f"A batch has 100 pairs times a power of two: {allowed} and so on; got {mean_over!r}."
        )
    return count


def losses(mix: str, steps: int, *, scale: Number | None = None, mean_over: int = PAIRS) -> Iterator[Trained]:
    """Each step from the first on. The caller may stop after any of them.

    >>> [round(step.loss, 2) for step in losses("fp32", 2)]
    [2.94, 2.93]
    """
    training = Training(mix, scale=scale, mean_over=mean_over)
    for _ in range(steps):
        yield training.step()


def scales_by_torch(gradients: Sequence[Number], *, growth_interval: int) -> list[Number]:
    """GradScaler's scale at each step, for a weight whose gradients are these and come back through fp16.

    >>> scales_by_torch([1e-3, 300, 1e-3], growth_interval=1)
    [65536.0, 131072.0, 65536.0]
    """
    weight, found = torch.nn.Parameter(torch.ones(())), []
    sgd = torch.optim.SGD([weight])
    scaler = torch.amp.GradScaler("cpu", FIRST_SCALE, growth_interval=growth_interval)
    for gradient in gradients:
        found.append(scaler.get_scale())
        sgd.zero_grad()
        scaler.scale(weight.half().float() * gradient).backward()
        scaler.step(sgd)
        scaler.update()
    return found


def gradients(after: int = 0, *, layer: int | None = None, mean_over: int = PAIRS) -> Float[Tensor, " n"]:
    """The gradients of a micro-batch after `after` steps, all in fp32: of all weights, or of one layer (1, 2 or 3).

    This is one micro-batch's part of the whole, before the parts are added up.
    """
    if layer not in (None, 1, 2, 3):
        raise ValueError(f"The layers are 1 to 3, or None for all; got {layer!r}.")
    if after < 0:
        raise ValueError(f"Steps are counted from 0; got {after}.")
    by_layer = _gradients_by_layer(after)
    found = torch.cat(by_layer) if layer is None else by_layer[layer - 1]
    return found / _micro_batches(mean_over)


@lru_cache(maxsize=16)
def _gradients_by_layer(after: int) -> list[Tensor]:
    training = Training("fp32")
    with cpu_threads(1):
        for _ in range(after):
            training.step()
        training.backward()
    return [p.grad.flatten() for p in training.working]


def logit_gradients(vocabulary: int, mean_over: int, *, rows: int = 16) -> Float[Tensor, "rows vocabulary"]:
    """p / N for each wrong word, (p - 1) / N for the right one: autograd's gradients of an untrained model's logits.

    The last layer of the model is 64 wide, with weights of deviation 0.02, as in GPT-2. Each of the `rows` tokens is one
    of the `mean_over` tokens N over which the loss is a mean.
    """
    draw = generator_for("weights", seed=0)
    hidden = functional.layer_norm(torch.randn(rows, 64, generator=draw), (64,))
    logits = (hidden @ (0.02 * torch.randn(64, vocabulary, generator=draw))).requires_grad_()
    right = torch.randint(vocabulary, (rows,), generator=draw)
    (functional.cross_entropy(logits, right, reduction="sum") / mean_over).backward()
    return logits.grad


def fates(numbers: Float[Tensor, "..."], fmt: str, scale: Number = 1) -> Comparison:
    """|g| · scale against the format's edges, beside what torch's cast makes of it; zeros are left out.

    The numbers are taken in fp32. Exactly equal where the scale is a power of two, which rounds nothing
    within fp32's normal range.

    >>> fates(torch.tensor([1.0, 1e-6, 1e-9, 0.0]), "fp16").measured["to zero"]
    1
    """
    present = numbers[numbers != 0].detach().float().abs()
    if not present.isfinite().all():
        raise ValueError("Some of these numbers are infinite or NaN already. Give numbers that are finite.")
    rounding.checked_scale(scale)
    return Comparison(_by_edges(present, fmt, scale), _by_cast(present, fmt, scale))


def _by_edges(sizes: Float[Tensor, " n"], fmt: str, scale: Number) -> Ledger:
    edges = rounding.rounding_edges(fmt)
    scaled = sizes.double() * scale
    return _counted(scaled <= edges.zero_to, scaled < edges.normal_from, scaled >= edges.beyond_from)


def _by_cast(sizes: Float[Tensor, " n"], fmt: str, scale: Number) -> Ledger:
    if fmt not in DTYPES:
        raise ValueError(f"torch stores nothing in {fmt!r}, only in {', '.join(DTYPES)}.")
    f = floats.format_named(fmt)
    scaled = sizes * scale
    cast = scaled.to(DTYPES[fmt]).double()
    # E4M3 has no infinity: the cast gives the largest number, or in an older torch NaN.
    short = scaled.double() - cast > floats.spacing(f.max, fmt) / 2
    return _counted(cast == 0, cast < f.smallest_normal, ~cast.isfinite() | short)


def _counted(
    zero: Bool[Tensor, " n"], below_normal: Bool[Tensor, " n"], beyond: Bool[Tensor, " n"]
) -> Ledger:
    to_zero, small, large = (each.sum().item() for each in (zero, below_normal, beyond))
    counts = to_zero, small - to_zero, len(zero) - small - large, large
    return Ledger(dict(zip(rounding.FATES, counts, strict=True)), "numbers")


def lognormal_fit(numbers: Float[Tensor, "..."]) -> tuple[float, float]:
    """Mean and standard deviation of ln |g|; zeros are left out."""
    logs = numbers[numbers != 0].abs().double().log()
    if len(logs) < 2:
        raise ValueError(f"A fit needs two numbers other than 0; got {len(logs)}.")
    return logs.mean().item(), logs.std().item()
