"""The exercises of notebook 06.

In some cases a listed mistake equals the right answer. It explains a reader's error only if it
agrees with what their function returned in every case so far.
"""

import math
from collections.abc import Callable

import torch

from course_utils.chapters.optimizers import slips_check
from course_utils.chapters.optimizers.beyond_check import (  # noqa: F401  exercises, too
    clipped,
    initial_std,
    mixture_weights,
    newton_schulz_flops,
    rate_of_step,
    token_windows,
)
from course_utils.chapters.optimizers.cases import (
    ADAGRAD_STATES,
    STATES,
    adamw_in_words,
    adamw_states,
    held_bytes,
    momentum_in_words,
    momentum_states,
    with_one_dtype_each,
)
from course_utils.chapters.optimizers.state_in_words import Recipe, state_in_words
from course_utils.core import predict
from course_utils.core.accountant import SHARDED_FROM
from course_utils.core.say import Number
from course_utils.engine.judging import Answers, function


@function(
    momentum_states,
    tolerance=1e-6,
    gives=("p", "buffer"),
    case_words=momentum_in_words,
    hints=(
        "Make the new buffer first: what is left of the old one, and the gradient on top.",
        "Then step as SGD does, with the new buffer in place of the gradient. Return both.",
    ),
)
def momentum(
    p: torch.Tensor, g: torch.Tensor, buffer: torch.Tensor, lr: Number, mu: Number
) -> Answers:
    """The check of a reader's momentum(p, g, buffer, lr, mu): (p, buffer) after a step."""
    b = mu * buffer + g
    yield (
        (p - lr * b, b),
        "p - lr·b with b = μ·b + g: a middle step, a first one, and one without a gradient.",
    )
    yield from _wrong_buffers(p, g, buffer, lr, mu)
    by_gradient = p - lr * g
    yield (by_gradient, b), "That steps by the gradient alone: step by the new buffer."
    by_old_buffer = p - lr * buffer
    yield (by_old_buffer, b), "That steps by the old buffer: add the gradient first."
    nesterovs = p - lr * (g + mu * b)
    yield (
        (nesterovs, b),
        "That is Nesterov's variant, which looks one step ahead: step by b itself.",
    )
    with_lr = mu * buffer + lr * g
    yield (
        (p - with_lr, with_lr),
        "The buffer adds up gradients without lr; lr multiplies the whole step.",
    )
    uphill = p + lr * b
    yield (uphill, b), "That goes up the slope: subtract the step."
    yield (b, p - lr * b), "The order is (p, buffer)."
    yield (p - b, b), "lr is missing: it multiplies the whole step."
    yield (p - lr * b, buffer), "That is the buffer from before. Return the new one."


def _wrong_buffers(
    p: torch.Tensor, g: torch.Tensor, buffer: torch.Tensor, lr: Number, mu: Number
) -> Answers:
    """Yield steps whose new buffer is wrong, each with the advice on the mistake."""
    average = mu * buffer + (1 - mu) * g
    yield (
        (p - lr * average, average),
        "That averages: the factor (1 - μ) belongs to Adam. "
        "With μ = 0.9 your steps get 10 times shorter.",
    )
    unfaded = buffer + g
    yield (
        (p - lr * unfaded, unfaded),
        "Old gradients have to fade: multiply the old buffer by μ.",
    )
    both_faded = mu * (buffer + g)
    yield (
        (p - lr * both_faded, both_faded),
        "μ multiplies the old buffer alone: the new gradient counts in full.",
    )
    exchanged = buffer + mu * g
    yield (
        (p - lr * exchanged, exchanged),
        "It is the other way round: μ multiplies the old buffer, and the gradient counts in full.",
    )


# Takes the corrected average of squares, and returns what the step is divided by.
Divisor = Callable[[torch.Tensor], torch.Tensor]


def _root_and_epsilon(second: torch.Tensor) -> torch.Tensor:
    return second.sqrt() + 1e-8


def _adamw(
    state: tuple,
    *,
    b1: Number = 0.9,
    b2: Number = 0.999,
    weight: Number = 0.1,  # of the gradient in its average
    divisor: Divisor = _root_and_epsilon,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (p, m, v) after a step of AdamW from the state (p, g, m, v, t, lr, decay).

    Other options than the defaults are mistakes that a reader may make.
    """
    p, g, m, v, t, lr, decay = state
    m = b1 * m + weight * g
    v = b2 * v + (1 - b2) * g * g
    first = m / (1 - b1**t)
    second = v / (1 - b2**t)
    new_p = p * (1 - lr * decay) - lr * first / divisor(second)
    return new_p, m, v


@function(
    adamw_states,
    tolerance=1e-9,
    gives=("p", "m", "v"),
    case_words=adamw_in_words,
    hints=(
        "First the two averages: m = 0.9 * m + 0.1 * g, and v likewise, of g * g with 0.999.",
        "They begin at 0. For this step alone, divide m by 1 - 0.9**t and v by 1 - 0.999**t.",
        "Shrink p to p * (1 - lr * decay), and subtract lr * corrected m / (root of corrected v "
        "+ 1e-8).",
    ),
)
def adamw_step(
    p: torch.Tensor,
    g: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    t: int,
    lr: Number,
    decay: Number,
) -> Answers:
    """The check of a reader's my_adamw(p, g, m, v, t, lr, decay): (p, m, v) after a step."""
    state = (p, g, m, v, t, lr, decay)
    new_p, new_m, new_v = _adamw(state)
    yield (
        (new_p, new_m, new_v),
        "Five steps: a first and a later one, a tiny gradient, with decay, and with decay alone.",
    )
    yield from _wrong_formulas(state)
    yield from _wrong_results(state)
    yield from slips_check.of_squares(state, _adamw(state, b2=0.99))


def _wrong_formulas(state: tuple) -> Answers:
    """Yield steps by AdamW's formulas with one mistake in them, each with the advice on it."""
    p, g, m, v, t, lr, decay = state
    uncorrected = _adamw((p, g, m, v, math.inf, lr, decay))  # dividing by 1 - beta^∞ = 1
    yield uncorrected, "Averages that begin at 0 are too small at first: divide by 1 - beta**t."
    m_corrected = "Both averages begin at 0: correct m and v, each with its own beta."
    first_alone = _adamw(state, divisor=lambda second: _root_and_epsilon(second * (1 - 0.999**t)))
    yield first_alone, m_corrected
    second_alone = _adamw((p, g, m, v, t, lr * (1 - 0.9**t), decay / (1 - 0.9**t)))
    yield second_alone, m_corrected
    inside = _adamw(state, divisor=lambda second: (second + 1e-8).sqrt())
    yield inside, "Epsilon stands outside the root."
    l2 = _adamw((p, g + decay * p, m, v, t, lr, 0.0))
    yield l2, "AdamW takes the decay off the parameter. Added to the gradient, it is Adam with L2."
    without_epsilon = _adamw(state, divisor=torch.sqrt)
    yield without_epsilon, "Epsilon is missing in the divisor: a gradient of 0 gives 0/0."
    yield _of_gradients(state), "v averages the squares of the gradient, g * g, and not g."
    one_later = _adamw((p, g, m, v, t + 1, lr, decay))
    yield one_later, "t counts from 1: the first step divides by 1 - beta."
    summed = _adamw(state, weight=1.0)
    yield summed, "The new gradient has the weight 1 - beta: only then is it an average."
    exchanged = _adamw(state, b1=0.999, b2=0.9, weight=0.001)
    yield exchanged, "0.9 is for the average, 0.999 for the average of squares."
    rootless = _adamw(state, divisor=lambda second: second + 1e-8)
    yield rootless, "Divide by the root of the average of squares, not by the average itself."


def _of_gradients(state: tuple) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (p, m, v) of a reader who averages g in v, in place of g * g.

    The root of a number below 0 is NaN. Two results with NaN are equal only to the last bit, so
    this is written as the solution is.
    """
    p, g, m, v, t, lr, decay = state
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g
    first = m / (1 - 0.9**t)
    second = v / (1 - 0.999**t)
    return p * (1 - lr * decay) - lr * first / (second**0.5 + 1e-8), m, v


def _wrong_results(state: tuple) -> Answers:
    """Yield steps with a wrong sign, decay, order or kept average, each with the advice on it."""
    p, g, m, v, t, lr, decay = state
    new_p, new_m, new_v = _adamw(state)
    shrunk_p = p * (1 - lr * decay)
    step = shrunk_p - new_p  # what AdamW subtracts, apart from the decay
    uphill_p = shrunk_p + step
    yield (uphill_p, new_m, new_v), "That goes up the slope: subtract the step."
    corrected_m = new_m / (1 - 0.9**t)
    corrected_v = new_v / (1 - 0.999**t)
    yield (
        (new_p, corrected_m, corrected_v),
        "Return the averages as they are kept. The corrected ones are for this step alone.",
    )
    yield (new_p, new_v, new_m), "The order is (p, m, v)."
    without_rate = _adamw((p, g, m, v, t, lr, decay / lr))  # so that lr × decay is decay alone
    yield without_rate, "The decay is multiplied by lr, as in p × (1 - lr × decay)."
    by_a_number = p - lr * decay - step
    yield (by_a_number, new_m, new_v), "The decay takes a share of p: multiply it by p, too."
    growing = p * (1 + lr * decay) - step
    yield (growing, new_m, new_v), "The decay makes p smaller: 1 - lr × decay."
    without_decay = _adamw((p, g, m, v, t, lr, 0.0))
    yield without_decay, "The decay is missing: p shrinks by the share lr × decay of itself."
    undecayed_p, _, _ = without_decay
    shrunk_last = undecayed_p * (1 - lr * decay)
    yield (
        (shrunk_last, new_m, new_v),
        "The decay acts on p as it was before the step: shrink it first.",
    )
    times_t_m = new_m / (1 - 0.9 * t)
    times_t_v = new_v / (1 - 0.999 * t)
    times_t_p = shrunk_p - lr * times_t_m / _root_and_epsilon(times_t_v)
    yield (times_t_p, new_m, new_v), "Take beta to the power of t, beta**t, and not beta times t."


# AdaGrad, in *Beyond*.


@function(
    ADAGRAD_STATES,
    tolerance=1e-6,
    gives=("p", "v"),
    hints=(
        "v is a sum now: all that was in it stays, and the new square g * g is added.",
        "Step as RMSProp does, with the new v: p - lr * g / (v.sqrt() + 1e-8).",
    ),
)
def adagrad(p: torch.Tensor, g: torch.Tensor, v: torch.Tensor, lr: Number) -> Answers:
    """The check of a reader's my_adagrad(p, g, v, lr): (p, v) after a step."""

    def stepped(v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (p, v) after a step that divides by the root of this v."""
        return p - lr * g / (v.sqrt() + 1e-8), v

    summed = v + g * g
    new_p, _ = stepped(summed)
    yield (
        (new_p, summed),
        "p - lr·g/(√v + ε) with v = v + g²: a later step, a first one, a tiny gradient, and none.",
    )
    averaged = 0.99 * v + 0.01 * g * g
    yield stepped(averaged), "That is RMSProp's average. In AdaGrad nothing fades: add g * g to v."
    yield stepped(g * g), "That forgets the squares of the earlier steps: add the new one to v."
    yield stepped(v + g.abs()), "v adds up squares, g * g, and not magnitudes."
    by_old = p - lr * g / (v.sqrt() + 1e-8)
    yield (by_old, summed), "That divides by the old v: add the new square first."
    rootless = p - lr * g / (summed + 1e-8)
    yield (rootless, summed), "Divide by the root of v, because v is made of squares."
    inside = p - lr * g / (summed + 1e-8).sqrt()
    yield (inside, summed), "Epsilon stands outside the root."
    without_epsilon = p - lr * g / summed.sqrt()
    yield (without_epsilon, summed), "Epsilon is missing in the divisor: a gradient of 0 gives 0/0."
    without_gradient = p - lr / (summed.sqrt() + 1e-8)
    yield (without_gradient, summed), "The gradient is missing: it gives the step its direction."
    uphill = 2 * p - new_p  # the same step in the other direction
    yield (uphill, summed), "That goes up the slope: subtract the step."
    yield (summed, new_p), "The order is (p, v)."


# The accountant's term.


# It yields the right answer first, and then likely mistakes, each with the sentence on it.
@function(
    STATES,
    case_words=state_in_words,
    unit="bytes",
    hints=(
        "The given line is right for a part that is not sharded. Inside the loop, test whether "
        "the part is sharded at this stage, and return the dict after the loop.",
        "A part is sharded if stage >= SHARDED_FROM[part]. Then a GPU holds its share of the "
        "numbers; otherwise it holds all of them.",
        "Rounded up, the share is (numbers + gpus - 1) // gpus.",
    ),
)
def state_bytes(numbers: int, recipe: Recipe, gpus: int, stage: int) -> Answers:
    """The check of a reader's state_bytes(numbers, recipe, gpus, stage): bytes by part, per GPU."""
    share = numbers // gpus
    while share * gpus < numbers:
        share += 1  # round up
    sharded = predict.training.split_in(stage)

    right = held_bytes(numbers, recipe, share, sharded)
    yield (
        right,
        "Four stages, five recipes, two of which lack a part, "
        "and a number that the GPUs do not divide.",
    )
    yield held_bytes(numbers, recipe, share, ()), "What the stage shards is split over the GPUs."
    yield (
        held_bytes(numbers, recipe, share, recipe.keys()),
        "SHARDED_FROM says from which stage on a part is sharded.",
    )
    yield from slips_check.of_the_stage(numbers, recipe, share, stage)
    one_more = held_bytes(numbers, recipe, numbers // gpus + 1, sharded)
    yield from slips_check.of_the_share(one_more, held_bytes(1, recipe, 1 / gpus, sharded))
    one_stage_late = held_bytes(
        numbers, recipe, share, predict.training.split_in(max(stage - 1, 0))
    )
    yield one_stage_late, "A part is sharded from its stage on, that stage included."
    rounded_down = held_bytes(numbers, recipe, numbers // gpus, sharded)
    yield rounded_down, "Round up: the largest share has to fit."
    unrounded = held_bytes(numbers, recipe, numbers / gpus, sharded)
    yield unrounded, "A GPU cannot hold a part of a number: round the share up."
    yield from slips_check.of_rounded_bytes(unrounded)
    yield from slips_check.of_bytes(right, recipe)
    yield sum(right.values()), "Return the bytes of each part, by its name, and not their sum."
    yield (
        with_one_dtype_each(right, recipe),
        "The optimizer may keep several numbers: add up the bytes of all dtypes of a part.",
    )
    yield from slips_check.of_the_dict(right)
    yield from slips_check.of_the_table(stage)
    yield from _of_lacking_parts(right, recipe)


def _of_lacking_parts(right: dict[str, int], recipe: Recipe) -> Answers:
    """Yield what a function gives that asks for parts that the recipe lacks."""
    lacking = [part for part in SHARDED_FROM if part not in recipe]
    # A function that asks for every part, the parameters first, stops with a KeyError at the first
    # one that is lacking. SHARDED_FROM lists the parameters last. If none is lacking, it is right.
    stops = KeyError(lacking[-1]) if lacking else right
    yield stops, "A recipe may lack a part: go through those it has."
    with_all_parts = right | dict.fromkeys(lacking, 0)
    yield with_all_parts, "Return only the parts that the recipe has."
