"""The exercises of notebook 06."""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import count

import torch

from course_utils.core import measure, predict
from course_utils.core.accountant import SHARDED_FROM
from course_utils.core.accountant import recipe as recipe_of
from course_utils.core.say import Number
from course_utils.engine.judging import Answers, function

Brake = Callable[[torch.Tensor], torch.Tensor]


@function([(256, 1.0), (256, 0.5), (1024, 0.5), (100, 0.1), (4096, 0.9)], tolerance=1e-6)
def initial_std(inputs: int, kept_share: Number) -> Answers:
    """The standard deviation that keeps E[x²] through layers which zero a share of their outputs."""
    variance = 1 / (inputs * kept_share)
    yield (
        math.sqrt(variance),
        "Five cases. With a share of 1 it is LeCun's, with one half Kaiming's.",
    )
    without_share = math.sqrt(1 / inputs)
    yield without_share, "That keeps the scale only if nothing is zeroed. Use the kept share, too."
    yield variance, "That is the variance; its root is asked for."
    smaller = math.sqrt(kept_share / inputs)
    yield smaller, "What is zeroed is lost, so the rest has to be larger, not smaller."
    yield math.sqrt(2 / inputs), "That is for a share of one half, as with ReLU."


State = tuple[torch.Tensor, ...]


def _tensors(*scales: Number, seed: int) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(4, generator=draw, dtype=torch.float64) for scale in scales]


@function(
    lambda: [
        (*_tensors(1, 1, 1, seed=1), 0.1, 0.9),
        (*_tensors(1, 1, 0, seed=2), 0.5, 0.8),
        (*_tensors(1, 0, 1, seed=3), 0.1, 0.5),
    ],
    tolerance=1e-6,
)
def momentum(
    p: torch.Tensor, g: torch.Tensor, buffer: torch.Tensor, lr: Number, mu: Number
) -> Answers:
    """(parameter, buffer) after one step of SGD with momentum."""

    def step(new: torch.Tensor) -> State:
        return p - lr * new, new

    b = mu * buffer + g
    yield (
        step(b),
        "p - lr·b with b = μ·b + g: a middle step, a first one, and one without a gradient.",
    )
    yield (
        step(mu * buffer + (1 - mu) * g),
        "That averages: the factor (1 - μ) belongs to Adam. With μ = 0.9 your steps get 10 times shorter.",
    )
    yield step(buffer + g), "Old gradients have to fade: multiply the old buffer by μ."
    yield (
        step(mu * (buffer + g)),
        "μ multiplies the old buffer alone: the new gradient counts in full.",
    )
    exchanged = step(buffer + mu * g)
    yield (
        exchanged,
        "The other way round: μ multiplies the old buffer, and the gradient counts in full.",
    )
    yield (p - lr * g, b), "That steps by the gradient alone: step by the new buffer."
    yield (p - lr * buffer, b), "That steps by the old buffer: add the gradient first."
    nesterovs = (p - lr * (g + mu * b), b)
    yield nesterovs, "That is Nesterov's variant, which looks one step ahead: step by b itself."
    within = mu * buffer + lr * g
    yield (
        (p - within, within),
        "The buffer adds up gradients without lr; lr multiplies the whole step.",
    )
    yield (p + lr * b, b), "That goes up the slope: subtract the step."
    yield (b, p - lr * b), "The order is (p, buffer)."


def _brake(second: torch.Tensor) -> torch.Tensor:
    return second.sqrt() + 1e-8


def _adamw(
    state: tuple,
    *,
    b1: Number = 0.9,
    b2: Number = 0.999,
    weight: Number = 0.1,
    brake: Brake = _brake,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A step of AdamW; each option does one thing wrongly."""
    p, g, m, v, t, lr, decay = state
    m, v = b1 * m + weight * g, b2 * v + (1 - b2) * g * g
    first, second = m / (1 - b1**t), v / (1 - b2**t)
    return p * (1 - lr * decay) - lr * first / brake(second), m, v


def _states() -> list[tuple]:
    draw = torch.Generator().manual_seed(6)

    def numbers(scale: Number = 1.0) -> torch.Tensor:
        return scale * torch.randn(4, generator=draw, dtype=torch.float64)

    zero = torch.zeros(4, dtype=torch.float64)
    return [
        (numbers(), numbers(), zero, zero, 1, 0.1, 0.0),
        (numbers(), numbers(), numbers(), numbers() ** 2, 7, 0.1, 0.0),
        (numbers(), numbers(1e-7), zero, zero, 1, 0.1, 0.0),
        (numbers(), numbers(), numbers(), numbers() ** 2, 3, 0.1, 0.5),
        (numbers(), zero, zero, zero, 1, 0.1, 0.5),
    ]


@function(_states, tolerance=1e-9)
def adamw_step(
    p: torch.Tensor,
    g: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    t: int,
    lr: Number,
    decay: Number,
) -> Answers:
    """(parameter, average, average of squares) after one step of AdamW."""
    state = p, g, m, v, t, lr, decay
    new_p, new_m, new_v = right = _adamw(state)
    yield (
        right,
        "Five steps: a first and a later one, a tiny gradient, with decay, and with decay alone.",
    )
    uncorrected = _adamw(
        (p, g, m, v, math.inf, lr, decay)
    )  # after endless steps nothing is corrected
    yield uncorrected, "Averages that begin at 0 are too small at first: divide by 1 - beta^t."
    inside = _adamw(state, brake=lambda second: (second + 1e-8).sqrt())
    yield inside, "Epsilon stands outside the root."
    l2 = _adamw((p, g + decay * p, m, v, t, lr, 0.0))
    yield l2, "AdamW takes the decay off the parameter. Added to the gradient, it is Adam with L2."
    one_later = _adamw((p, g, m, v, t + 1, lr, decay))
    yield one_later, "t counts from 1: the first step divides by 1 - beta."
    summed = _adamw(state, weight=1.0)
    yield summed, "The new gradient has the weight 1 - beta: only then is it an average."
    exchanged = _adamw(state, b1=0.999, b2=0.9, weight=0.001)
    yield exchanged, "0.9 is for the average, 0.999 for the average of squares."
    rootless = _adamw(state, brake=lambda second: second + 1e-8)
    yield rootless, "Divide by the root of the average of squares, not by the average itself."
    uphill = 2 * p * (1 - lr * decay) - new_p
    yield (uphill, new_m, new_v), "That goes up the slope: subtract the step."
    corrected = new_p, new_m / (1 - 0.9**t), new_v / (1 - 0.999**t)
    yield (
        corrected,
        "Return the averages as they are kept. The corrected ones are for this step alone.",
    )
    yield (new_p, new_v, new_m), "The order is (p, m, v)."
    without_rate = _adamw((p, g, m, v, t, lr, decay / lr))
    yield without_rate, "The decay is multiplied by lr, as in p × (1 - lr × decay)."
    without_decay = _adamw((p, g, m, v, t, lr, 0.0))
    yield without_decay, "The decay is missing: p shrinks by lr × decay."
    after_the_step = _adamw((p, g, m, v, t, lr, 0.0))[0] * (1 - lr * decay)
    yield (after_the_step, new_m, new_v), "The decay takes the p before the step: shrink it first."
    times_t = p * (1 - lr * decay) - lr * new_m / (1 - 0.9 * t) / _brake(new_v / (1 - 0.999 * t))
    yield (times_t, new_m, new_v), "Beta to the power of t, beta**t, and not times t."


# The accountant's term.

STATES = [*((1003, recipe_of("bf16+master adamw"), 8, stage) for stage in (3, 2, 1, 0))]
STATES += [(1000, recipe_of("fp32 adamw"), 1, 0), (70_553_706_496, recipe_of("bf16 sgd"), 1024, 3)]
# Parts that are not there: torch keeps no master, and whoever only runs a model keeps neither of the others.
STATES += [
    (64**2, {"gradients": ("fp32",), "parameters": ("fp32",), "optimizer": ("fp32", "fp32")}, 1, 0)
]
STATES += [(1003, {"parameters": ("bf16",)}, 8, 3)]


@function(STATES)
def state_bytes(
    numbers: int, recipe: Mapping[str, tuple[str, ...]], gpus: int, stage: int
) -> Answers:
    """A reader's state_bytes(numbers, recipe, gpus, stage): each part's bytes on each GPU."""
    share, last = next(n for n in count(numbers // gpus) if n * gpus >= numbers), max(stage - 1, 0)
    split, split_before = (predict.training.split_in(each) for each in (stage, last))

    def held(share: Number, split: Iterable[str]) -> dict[str, Number]:
        return {
            part: (share if part in split else numbers)
            * sum(measure.DTYPES[d].itemsize for d in dtypes)
            for part, dtypes in recipe.items()
        }

    right, exact = held(share, split), held(numbers / gpus, split)
    yield (
        right,
        "Four stages, five recipes, two of which lack a part, and a number that the GPUs do not divide.",
    )
    yield held(share, ()), "What the stage shards is split over the GPUs."
    yield held(share, recipe), "SHARDED_FROM says from which stage on a part is sharded."
    yield held(share, split_before), "A part is sharded from its stage on, that stage included."
    yield held(numbers // gpus, split), "Round up: the largest share has to fit."
    yield exact, "Nobody holds a part of a number: round the share up."
    yield (
        {part: math.ceil(nbytes) for part, nbytes in exact.items()},
        "Round up the numbers, not the bytes.",
    )
    yield sum(right.values()), "The bytes of each part are wanted, by its name."
    one_each = {part: nbytes // max(len(recipe[part]), 1) for part, nbytes in right.items()}
    yield (
        one_each,
        "The optimizer may keep several numbers: add up the bytes of all dtypes of a part.",
    )
    lacking = [part for part in SHARDED_FROM if part not in recipe]
    yield (
        KeyError(*lacking[-1:]) if lacking else right,
        "A recipe may lack a part: go through those it has.",
    )
    yield right | dict.fromkeys(lacking, 0), "Only the parts that the recipe has are wanted."
