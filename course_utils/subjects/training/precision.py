"""A small model trained in each mix of formats, and what a format makes of its gradients.

The task: of two digits, name the sum. An MLP, 20-64-64-19 wide, reads all 100 pairs in each step. Only the first weights
are drawn, and they are the same for every mix.

The loss is a mean, so each pair's share of the gradient falls as 1 / (pairs in the batch). `mean_over` says how many
pairs are in the batch. They come in micro-batches of 100, whose gradients are added up in the optimizer's format. Here
all micro-batches hold the same 100 pairs. So one is computed, and its gradient is counted `mean_over / 100` times. This
factor is a power of two, so in fp32 and bf16 nothing is rounded by it: the loss is the same for every batch. In fp16 it
is not.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from course_utils.core import floats
from course_utils.core.measure import DTYPES, cpu_threads
from course_utils.core.predict import rounding
from course_utils.core.say import Number
from course_utils.subjects.models import MLP
from course_utils.subjects.training import generator_for

WIDTHS = (20, 64, 64, 19)
PAIRS = 100  # of digits; one micro-batch has them all
LEARNING_RATE = 3e-3  # of Adam, which is otherwise as torch has it
FIRST_SCALE = 2.0**16  # GradScaler's own


class Mix(NamedTuple):
    """The formats of the model's numbers and of its products: if they differ, autocast casts."""

    model: str = "fp32"
    products: str = "fp32"


MIXES = {
    "fp32": Mix(),
    "bf16 autocast": Mix(products="bf16"),
    "fp16 autocast": Mix(products="fp16"),
    "bf16 alone": Mix(model="bf16", products="bf16"),
}


class Trained(NamedTuple):
    """One step: the loss that it found."""

    loss: Number


def digit_pairs() -> tuple[Float[Tensor, "pairs 20"], Int[Tensor, " pairs"]]:
    """All 100 pairs of digits as inputs with two ones, and their sums.

    >>> pairs, sums = digit_pairs()
    >>> pairs[37].nonzero().flatten().tolist(), sums[37].item()
    ([3, 17], 10)
    """
    digits = torch.cartesian_prod(torch.arange(10), torch.arange(10))
    return functional.one_hot(digits, 10).flatten(1).float(), digits.sum(1)


class Training:
    """The model in one mix, step by step, without a loss scale."""

    def __init__(self, mix: str, *, mean_over: int = PAIRS) -> None:
        if mix not in MIXES:
            raise ValueError(f"There is no mix {mix!r}. There are: {', '.join(MIXES)}.")
        self.micro_batches = _micro_batches(mean_over)
        self.mix = MIXES[mix]
        self.pairs, self.sums = digit_pairs()
        draw = generator_for("weights", seed=0)
        self.model = MLP(WIDTHS, nonlinearity="gelu", dtype=DTYPES[self.mix.model], generator=draw)
        self.weights = list(self.model.parameters())
        self.optimizer = torch.optim.Adam(self.weights, LEARNING_RATE)

    def backward(self) -> Tensor:
        """Put the gradients of this micro-batch's part of the loss into `grad`; returns the whole loss."""
        products = DTYPES[self.mix.products]
        with torch.autocast("cpu", products, enabled=self.mix.products != self.mix.model):
            logits = self.model(self.pairs.to(DTYPES[self.mix.model]))
        loss = functional.cross_entropy(logits.float(), self.sums)
        self.model.zero_grad()
        (loss / self.micro_batches).backward()
        return loss.detach()

    def step(self) -> Trained:
        """Backward, the gradients of all micro-batches added up, and the optimizer's step."""
        with cpu_threads(1):  # a second thread, kept waiting, would only slow such small products
            loss = self.backward()
            for weight in self.weights:
                weight.grad *= self.micro_batches
            self.optimizer.step()
        return Trained(loss.item())


def _micro_batches(mean_over: int) -> int:
    """How many micro-batches of 100 pairs make that batch."""
    count, rest = divmod(mean_over, PAIRS)
    if rest or count < 1 or count & (count - 1):
        allowed = ", ".join(f"{PAIRS * 2**n:,}" for n in range(3))
        raise ValueError(
            f"A batch has 100 pairs times a power of two: {allowed} and so on; got {mean_over!r}."
        )
    return count


def losses(mix: str, steps: int, *, mean_over: int = PAIRS) -> Iterator[Trained]:
    """Each step from the first on. The caller may stop after any of them.

    >>> [round(step.loss, 2) for step in losses("fp32", 2)]
    [2.94, 2.93]
    """
    training = Training(mix, mean_over=mean_over)
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


def gradients(after: int = 0, *, mean_over: int = PAIRS) -> Float[Tensor, " n"]:
    """The gradients of all weights from a micro-batch after `after` steps, all in fp32.

    This is one micro-batch's part of the whole, before the parts are added up.
    """
    if after < 0:
        raise ValueError(f"Steps are counted from 0; got {after}.")
    return _gradients(after) / _micro_batches(mean_over)


@lru_cache(maxsize=16)
def _gradients(after: int) -> Float[Tensor, " n"]:
    training = Training("fp32")
    with cpu_threads(1):
        for _ in range(after):
            training.step()
        training.backward()
    return torch.cat([p.grad.flatten() for p in training.weights])


def updates(
    steps: int, *, falling: bool
) -> Iterator[tuple[Float[Tensor, " n"], Bool[Tensor, " n"]]]:
    """Each step of a training in bf16 alone: Adam's updates in half steps of their weights, and which moved their weight.

    Updates of 0 are left out. With `falling`, the learning rate falls in a line from LEARNING_RATE to nearly 0.
    """
    training = Training("bf16 alone")
    for n in range(steps):
        group = training.optimizer.param_groups[0]
        group["lr"] = LEARNING_RATE * (1 - n / steps if falling else 1)
        before = torch.cat([p.detach().flatten().clone() for p in training.weights])
        training.step()
        after = torch.cat([p.detach().flatten() for p in training.weights])
        found = torch.cat(
            [_adam_update(training.optimizer.state[p], group).flatten() for p in training.weights]
        )
        # bf16 has 8 significant bits: a number of 2^(e-1) to 2^e has steps of 2^(e-8).
        half_steps = found.abs() / torch.exp2(torch.frexp(before.float()).exponent - 9.0)
        yield half_steps[found != 0], (after != before)[found != 0]


def _adam_update(state: Mapping[str, Tensor], group: Mapping[str, object]) -> Tensor:
    """Adam's update, computed in fp32 from what it keeps."""
    (beta1, beta2), n = group["betas"], state["step"].item()
    first, second = (
        state["exp_avg"].float() / (1 - beta1**n),
        state["exp_avg_sq"].float() / (1 - beta2**n),
    )
    return group["lr"] * first / (second.sqrt() + group["eps"])


def logit_gradients(
    vocabulary: int, mean_over: int, *, rows: int = 16
) -> Float[Tensor, "rows vocabulary"]:
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


def lost(numbers: Float[Tensor, "..."], fmt: str, scale: Number = 1) -> tuple[int, int]:
    """How many numbers · scale torch's cast to that format makes zero, and how many too large for it; zeros are left out.

    >>> lost(torch.tensor([1.0, 1e-9, 0.0, 1e5]), "fp16")
    (1, 1)
    """
    if fmt not in DTYPES:
        raise ValueError(f"torch stores nothing in {fmt!r}, only in {', '.join(DTYPES)}.")
    scaled = numbers[numbers != 0].detach().float().abs() * rounding.checked_scale(scale)
    cast, f = scaled.to(DTYPES[fmt]).double(), floats.format_named(fmt)
    # E4M3 has no infinity: the cast gives the largest number, or in an older torch NaN.
    beyond = ~cast.isfinite() | (scaled.double() - cast > floats.spacing(f.max, fmt) / 2)
    return (cast == 0).sum().item(), beyond.sum().item()
