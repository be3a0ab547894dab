"""A small model trained in each mix of formats, and what a format makes of its gradients.

The task: of two digits, name the sum. An MLP, 20-64-64-19 wide, reads all 100 pairs in each step.
Only the first weights are drawn at random, and they are the same for every mix.

The loss is a mean, so each pair's share of the gradient falls as 1 / (pairs in the batch). The
argument `mean_over` is how many pairs are in the batch. They come in micro-batches of 100, whose
gradients are added up in the optimizer's format. Here all micro-batches hold the same 100 pairs. So
one micro-batch is computed, and its gradient is counted `mean_over / 100` times. This factor is a
power of two, so multiplying and dividing by it rounds nothing in fp32 and bf16: the loss is the
same for every batch. In fp16 it is not, because small gradients lose bits there, or become zero.
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
PAIRS = 100  # pairs of digits, which are all in each micro-batch
LEARNING_RATE = 3e-3  # Adam's other options are torch's defaults
FIRST_SCALE = 2.0**16  # GradScaler's default


class Mix(NamedTuple):
    """The formats of the model's parameters and of its matrix products.

    If the two differ, autocast casts the operands of the products.
    """

    model: str = "fp32"
    products: str = "fp32"


MIXES = {
    "fp32": Mix(),
    "bf16 autocast": Mix(products="bf16"),
    "fp16 autocast": Mix(products="fp16"),
    "bf16 alone": Mix(model="bf16", products="bf16"),
}


class Trained(NamedTuple):
    """What a step reports: the loss before its update."""

    loss: Number


def digit_pairs() -> tuple[Float[Tensor, "pairs 20"], Int[Tensor, " pairs"]]:
    """Return all 100 pairs of digits, each as 20 numbers, two of which are 1; and the pairs' sums.

    >>> pairs, sums = digit_pairs()
    >>> pairs[37].nonzero().flatten().tolist(), sums[37].item()
    ([3, 17], 10)
    """
    digits = torch.cartesian_prod(torch.arange(10), torch.arange(10))
    inputs = functional.one_hot(digits, 10).flatten(1).float()
    sums = digits.sum(1)
    return inputs, sums


class Training:
    """The model in one mix, step by step, without a loss scale."""

    def __init__(self, mix: str, *, mean_over: int = PAIRS) -> None:
        """Build the model, with the same first weights in every mix, and its optimizer."""
        if mix not in MIXES:
            raise ValueError(f"There is no mix {mix!r}. There are: {', '.join(MIXES)}.")
        self.micro_batches = _micro_batches(mean_over)  # how many; all hold the same pairs
        self.mix = MIXES[mix]
        self.pairs, self.sums = digit_pairs()
        draw = generator_for("weights", seed=0)
        self.model = MLP(WIDTHS, nonlinearity="gelu", dtype=DTYPES[self.mix.model], generator=draw)
        self.weights = list(self.model.parameters())
        self.optimizer = torch.optim.Adam(self.weights, LEARNING_RATE)

    def backward(self) -> Tensor:
        """Put the gradients of one micro-batch's part of the loss into the weights' `grad`.

        Every micro-batch holds all pairs. So each has the same loss, which is the mean loss of the
        whole batch, too; it is returned.
        """
        inputs = self.pairs.to(DTYPES[self.mix.model])
        needs_casts = self.mix.products != self.mix.model
        with torch.autocast("cpu", DTYPES[self.mix.products], enabled=needs_casts):
            logits = self.model(inputs)
        loss = functional.cross_entropy(logits.float(), self.sums)
        self.model.zero_grad()
        (loss / self.micro_batches).backward()
        return loss.detach()

    def step(self) -> Trained:
        """Make one step of the optimizer, with the gradients of all micro-batches added up."""
        with cpu_threads(1):  # a second thread would only slow down such small products
            loss = self.backward()
            for weight in self.weights:
                weight.grad *= self.micro_batches  # all micro-batches have the same gradients
            self.optimizer.step()
        return Trained(loss.item())


def _micro_batches(mean_over: int) -> int:
    """Return how many micro-batches of 100 pairs make a batch of `mean_over` pairs.

    ValueError if the number is not a power of two.
    """
    count, rest = divmod(mean_over, PAIRS)
    if rest or count < 1 or not _is_power_of_two(count):
        raise ValueError(
            "A batch has 100 pairs times a power of two: 100, 200, 400 and so on; "
            f"got {mean_over!r}."
        )
    return count


def _is_power_of_two(count: int) -> bool:
    """Whether one bit alone of a number above 0 is set."""
    without_lowest_bit = count & (count - 1)
    return without_lowest_bit == 0


def losses(mix: str, steps: int, *, mean_over: int = PAIRS) -> Iterator[Trained]:
    """Train in that mix, and yield what each step reports. The caller may stop at any time.

    `mean_over` is the number of pairs in a batch, over which its loss is the mean: 100, or 100
    times a power of two.

    >>> [round(step.loss, 2) for step in losses("fp32", 2)]
    [2.94, 2.93]
    """
    training = Training(mix, mean_over=mean_over)
    for _ in range(steps):
        yield training.step()


def scales_by_torch(gradients: Sequence[Number], *, growth_interval: int) -> list[Number]:
    """Return GradScaler's scale at each step, for one weight with these gradients.

    In the backward pass the gradients are cast to fp16, so a scale may turn out to be too large.
    Then GradScaler leaves the step out and halves the scale. After `growth_interval` good steps it
    doubles the scale.

    >>> scales_by_torch([1e-3, 300, 1e-3], growth_interval=1)
    [65536.0, 131072.0, 65536.0]
    """
    weight = torch.nn.Parameter(torch.ones(()))
    sgd = torch.optim.SGD([weight])  # GradScaler needs an optimizer; its steps do not matter
    scaler = torch.amp.GradScaler("cpu", FIRST_SCALE, growth_interval=growth_interval)
    scales = []
    for gradient in gradients:
        scales.append(scaler.get_scale())
        sgd.zero_grad()
        loss = weight.half().float() * gradient  # the backward pass of half() casts to fp16
        scaler.scale(loss).backward()
        scaler.step(sgd)
        scaler.update()
    return scales


def gradients(after: int = 0, *, mean_over: int = PAIRS) -> Float[Tensor, " n"]:
    """Return the gradients of all weights in one row, after `after` steps in fp32.

    They are the gradients of one micro-batch's part of the loss, before all parts are added up.
    """
    if after < 0:
        raise ValueError(f"Steps are counted from 0; got {after}.")
    return _gradients(after) / _micro_batches(mean_over)


@lru_cache(maxsize=16)
def _gradients(after: int) -> Float[Tensor, " n"]:
    """Return the gradients after `after` steps, if one micro-batch is the whole batch."""
    training = Training("fp32")
    with cpu_threads(1):
        for _ in range(after):
            training.step()
        training.backward()
    return torch.cat([weight.grad.flatten() for weight in training.weights])


def updates(
    steps: int, *, falling: bool
) -> Iterator[tuple[Float[Tensor, " n"], Bool[Tensor, " n"]]]:
    """Yield the sizes and the effects of the updates in each step of a training in bf16 alone.

    The first tensor has the size of each update, in halves of the gap between two bf16 numbers at
    the update's weight. The second one has whether the weight has changed. Updates of 0 are left
    out. With `falling`, the learning rate falls on a straight line from LEARNING_RATE to nearly 0.
    """
    training = Training("bf16 alone")
    for step in range(steps):
        group = training.optimizer.param_groups[0]
        group["lr"] = LEARNING_RATE
        if falling:
            group["lr"] *= 1 - step / steps
        before = _all_numbers(training.weights)
        training.step()
        after = _all_numbers(training.weights)
        states = [training.optimizer.state[weight] for weight in training.weights]
        adam_updates = torch.cat([_adam_update(state, group).flatten() for state in states])
        # bf16 has 8 significant bits: from 2^(e-1) to 2^e the gap between two numbers is 2^(e-8).
        exponents = torch.frexp(before.float()).exponent  # the e of a number from 2^(e-1) on
        half_gaps = torch.exp2(exponents - 9.0)  # half of 2^(e-8)
        sizes = adam_updates.abs() / half_gaps
        had_effect = after != before
        is_update = adam_updates != 0
        yield sizes[is_update], had_effect[is_update]


def _all_numbers(weights: Sequence[Tensor]) -> Tensor:
    """Return a copy of the numbers of all weights, in one row."""
    return torch.cat([weight.detach().flatten() for weight in weights])


def _adam_update(state: Mapping[str, Tensor], group: Mapping[str, object]) -> Tensor:
    """Return Adam's update of a weight, computed in fp32 from the averages in `state`.

    `state` is torch's of this weight, after the step, and `group` has the optimizer's options.
    torch's own update is rounded to the weight's bf16.
    """
    beta1, beta2 = group["betas"]
    step = state["step"].item()
    first = state["exp_avg"].float() / (1 - beta1**step)
    second = state["exp_avg_sq"].float() / (1 - beta2**step)
    return group["lr"] * first / (second.sqrt() + group["eps"])


def logit_gradients(
    vocabulary: int, mean_over: int, *, rows: int = 16
) -> Float[Tensor, "rows vocabulary"]:
    """Return autograd's gradients of an untrained model's logits, a row for each of `rows` tokens.

    A gradient is p / N for a wrong word, and (p - 1) / N for the right one, where p is the word's
    probability, and N is `mean_over`: the loss is a mean over N tokens, of which only `rows` are
    computed. The last layer of the model is 64 wide, with weights of standard deviation 0.02,
    as in GPT-2.
    """
    draw = generator_for("weights", seed=0)  # one generator for all draws of this function
    hidden = functional.layer_norm(torch.randn(rows, 64, generator=draw), (64,))
    weights = 0.02 * torch.randn(64, vocabulary, generator=draw)
    logits = (hidden @ weights).requires_grad_()
    right = torch.randint(vocabulary, (rows,), generator=draw)  # each token's right word, by number
    loss = functional.cross_entropy(logits, right, reduction="sum") / mean_over
    loss.backward()
    return logits.grad


def lost(numbers: Float[Tensor, "..."], fmt: str, scale: Number = 1) -> tuple[int, int]:
    """Count the numbers that torch's cast to `fmt` loses, after multiplying them by the scale.

    The first count is of numbers that become zero, the second of numbers that are too large for the
    format. Numbers that were zero before are not counted.

    >>> lost(torch.tensor([1.0, 1e-9, 0.0, 1e5]), "fp16")
    (1, 1)
    """
    if fmt not in DTYPES:
        raise ValueError(f"torch stores nothing in {fmt!r}, only in {', '.join(DTYPES)}.")
    scaled = numbers[numbers != 0].detach().float().abs() * rounding.checked_scale(scale)
    cast = scaled.to(DTYPES[fmt]).double()
    largest = floats.format_named(fmt).max
    # E4M3 has no infinity: the cast returns the largest number, or in an older torch NaN. A number
    # that lies farther above the largest one than half a gap is too large, and not rounded.
    is_cut_off = scaled.double() - cast > floats.spacing(largest, fmt) / 2
    is_too_large = ~cast.isfinite() | is_cut_off
    return (cast == 0).sum().item(), is_too_large.sum().item()
