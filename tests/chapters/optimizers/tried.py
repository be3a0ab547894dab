"""Answers to the exercises of notebook 06."""

import math
from functools import partial

import numpy as np
import torch

from course_utils.chapters.accountant import BYTES, SHARDED_FROM
from course_utils.chapters.optimizers import check
from course_utils.core import accountant, measure
from course_utils.core.accountant import Mixture, Model, mixture_matrices, newton_schulz_flops
from tests.engine.tried import Check, Tried


def with_lerp(p, g, m, v, t, lr, decay):
    """Another right way, as torch writes it: epsilon is scaled in place of the averages."""
    m = m.lerp(g, 0.1)
    v = v.lerp(g.square(), 0.001)
    root_of_correction = (1 - 0.999**t) ** 0.5
    size = lr * root_of_correction / (1 - 0.9**t)
    step = size * m / (v**0.5 + 1e-8 * root_of_correction)
    return [p - lr * decay * p - step, m, v]


def momentum_from_lists(p, g, buffer, lr, mu):
    """Another right way, number by number."""
    b = torch.stack([mu * old + new for old, new in zip(buffer, g, strict=True)])
    return [p.sub(b, alpha=lr), b]


def momentum_outside_lr(p, g, buffer, lr, mu):
    b = mu * buffer + g
    return p - lr * g + mu * buffer, b


def state_of_four_parts(numbers, recipe, gpus, stage):
    """It stops with a KeyError where a recipe has no master."""
    share = -(-numbers // gpus)
    held = {}
    for part in ("parameters", "gradients", "optimizer", "master"):
        numbers_here = share if stage >= SHARDED_FROM[part] else numbers
        held[part] = numbers_here * sum(BYTES[dtype] for dtype in recipe[part])
    return held


def state_in_a_loop(numbers, recipe, gpus, stage):
    """A right answer."""
    held = {}
    for part, dtypes in recipe.items():
        numbers_here = math.ceil(numbers / gpus) if stage >= SHARDED_FROM[part] else numbers
        held[part] = sum(numbers_here * BYTES[dtype] for dtype in dtypes)
    return held


def std_by_a_power(inputs, kept_share):
    return (inputs * kept_share) ** -0.5


def std_with_the_share_outside(inputs, kept_share):
    return 1 / math.sqrt(inputs) / kept_share


def std_of_what_is_lost(inputs, kept_share):
    return (inputs * (1 - kept_share)) ** -0.5


def adagrad_as_torch_writes_it(p, g, v, lr):
    v = v.addcmul(g, g)
    return [p.addcdiv(g, v.sqrt().add(1e-8), value=-lr), v]


def adagrad_number_by_number(p, g, v, lr):
    new_p = p.clone()
    new_v = v.clone()
    for i in range(len(p)):
        new_v[i] = v[i] + g[i] ** 2
        new_p[i] -= lr / (new_v[i] ** 0.5 + 1e-8) * g[i]
    return new_p, new_v


def adagrad_of_gradients(p, g, v, lr):
    v = v + g
    return p - lr * g / (v.abs().sqrt() + 1e-8), v


def adagrad_by_the_mean(p, g, v, lr):
    """As many squares are in v as there were steps, but a step does not know their number."""
    v = (v + g * g) / 2
    return p - lr * g / (v.sqrt() + 1e-8), v


def adagrad_by_signs(p, g, v, lr):
    return p - lr * g.sign(), v + g * g


def windows_by_torch(tokens, sequence):
    pieces = torch.tensor(tokens).unfold(0, sequence + 1, 1)
    return [(piece[:-1], piece[1:]) for piece in pieces]


def windows_by_numpy(tokens, sequence):
    pieces = np.lib.stride_tricks.sliding_window_view(tokens, sequence + 1)
    return list(zip(pieces[:, :-1], pieces[:, 1:], strict=True))


def windows_until_one_is_short(tokens, sequence):
    found = []
    start = 0
    while start + sequence + 1 <= len(tokens):
        piece = tokens[start : start + sequence + 1]
        found.append([piece[:-1], piece[1:]])
        start += 1
    return found


def windows_of_the_beginning(tokens, sequence):
    """What grows is the beginning of the file: no window has the wanted length but the last."""
    return [(tokens[:end], tokens[1 : end + 1]) for end in range(sequence, len(tokens))]


def windows_from_the_end(tokens, sequence):
    return windows_until_one_is_short(tokens, sequence)[::-1]


def one_window(tokens, sequence):
    return tokens[:sequence], tokens[1 : sequence + 1]


def clipped_by_torch(gradients, max_norm):
    parameters = [torch.zeros(len(gradient), requires_grad=True) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = torch.tensor(gradient)
    torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return [parameter.grad for parameter in parameters]


def norm_of_all(gradients):
    return math.hypot(*[x for gradient in gradients for x in gradient])


def clipped_with_a_floor(gradients, max_norm):
    norm = norm_of_all(gradients)
    scale = min(1, max_norm / max(norm, 1e-12))
    return [[x * scale for x in gradient] for gradient in gradients]


def clipped_by_numpy(gradients, max_norm):
    norm = np.linalg.norm(np.concatenate(gradients))
    if norm <= max_norm:
        return gradients
    return [np.array(gradient) / norm * max_norm for gradient in gradients]


def clipped_and_flattened(gradients, max_norm):
    return [x for gradient in clipped_with_a_floor(gradients, max_norm) for x in gradient]


def clipped_by_half(gradients, max_norm):
    """It halves what is too large, once."""
    too_large = norm_of_all(gradients) > max_norm
    return [[x / 2 if too_large else x for x in gradient] for gradient in gradients]


def clipped_by_the_first(gradients, max_norm):
    scale = min(1, max_norm / max(math.hypot(*gradients[0]), 1e-12))
    return [[x * scale for x in gradient] for gradient in gradients]


def rate_by_half_the_angle(step, peak, warmup, total):
    if step < warmup:
        return peak / warmup * (1 + step)
    return peak * math.cos(math.pi * (step - warmup) / (2 * (total - warmup))) ** 2


def rate_by_numpy(step, peak, warmup, total):
    rising = np.arange(1, warmup + 1) / warmup
    falling = (1 + np.cos(np.linspace(0, np.pi, total - warmup + 1))) / 2
    return peak * np.concatenate([rising, falling])[step]


def rate_by_torch(step, peak, warmup, total):
    """torch's own schedules; a tensor in fp32 would be near enough, too."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], peak)
    part = torch.optim.lr_scheduler
    rise = part.LinearLR(optimizer, 1 / warmup, 1, warmup - 1)
    fall = part.CosineAnnealingLR(optimizer, total - warmup)
    both = part.SequentialLR(optimizer, [rise, fall], [warmup])
    for _ in range(step):
        optimizer.step()
        both.step()
    return torch.tensor(optimizer.param_groups[0]["lr"])


def rate_from_a_tenth(step, peak, warmup, total):
    falling = rate_by_half_the_angle(step, peak, warmup, total)
    return 0.1 * peak + 0.9 * falling if step >= warmup else falling


def rate_that_rises_as_a_cosine(step, peak, warmup, total):
    if step < warmup:
        return peak * (1 - math.cos(math.pi * (step + 1) / warmup)) / 2
    return rate_by_half_the_angle(step, peak, warmup, total)


def rate_without_pi(step, peak, warmup, total):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (1 + math.cos((step - warmup) / (total - warmup))) / 2


def rate_that_ends_at_0(step, peak, warmup, total):
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / (total - warmup - 1)
    return peak * (1 + math.cos(math.pi * done)) / 2


def rate_without_a_fall(step, peak, warmup, total):
    return peak * min(1, (step + 1) / warmup)


def mixture_by_a_loop(width, inner, experts, used):
    stored = active = width * experts
    for number in range(experts):
        stored += 3 * width * inner
        if number < used:
            active += 3 * width * inner
    return [stored, active]


def mixture_by_the_accountant(width, inner, experts, used):
    mixture = Mixture(experts=experts, used=used, inner=inner)
    sizes = {"layers": 1, "width": width, "heads": 1, "kv_heads": 1, "head_width": 1}
    m = Model(**sizes, inner=1, vocabulary=1, context=1, mixture=mixture)
    found = mixture_matrices(m).values()
    return sum(g.stored * g.size for g in found), sum(g.used * g.size for g in found)


def mixture_by_torch(width, inner, experts, used):
    with torch.device("meta"):
        router = torch.empty(width, experts)
        up = torch.empty(experts, 2, width, inner)
        down = torch.empty(experts, inner, width)
    of_experts = up.numel() + down.numel()
    return router.numel() + of_experts, router.numel() + of_experts // experts * used


def mixture_without_router(width, inner, experts, used):
    return 3 * width * inner * experts, 3 * width * inner * used


def mixture_without_gate(width, inner, experts, used):
    router = width * experts
    return router + 2 * width * inner * experts, router + 2 * width * inner * used


def mixture_turned_round(width, inner, experts, used):
    stored, active = mixture_by_a_loop(width, inner, experts, used)
    return active, stored


def mixture_of_all(width, inner, experts, used):
    stored, _ = mixture_by_a_loop(width, inner, experts, used)
    return stored, stored


def flops_by_torch(rows, columns, steps):
    x = torch.empty(rows, columns, device="meta")
    x = x.T if rows > columns else x

    def iterate(x=x):
        for _ in range(steps):
            gram = x @ x.T
            x = x + (gram + gram @ gram) @ x

    return measure.flops(iterate).total


def flops_by_the_accountant(rows, columns, steps):
    return newton_schulz_flops(rows, columns, steps)


def flops_in_a_loop(rows, columns, steps):
    short, long = sorted((rows, columns))
    total = 0
    for _ in range(steps):
        total += 2 * short * long * short
        total += 2 * short * short * short
        total += 2 * short * short * long
    return total


def flops_of_a_tall_matrix_as_it_is(rows, columns, steps):
    return steps * (4 * rows * rows * columns + 2 * rows**3)


def flops_of_multiply_adds(rows, columns, steps):
    return flops_in_a_loop(rows, columns, steps) // 2


def flops_of_one_step(rows, columns, steps):
    return flops_in_a_loop(rows, columns, 1)


def flops_without_the_square(rows, columns, steps):
    return steps * 4 * min(rows, columns) * rows * columns


def flops_without_the_last(rows, columns, steps):
    short = min(rows, columns)
    return steps * (2 * short * rows * columns + 2 * short**3)


def flops_at_most(rows, columns, steps):
    """The bound, which is right for square matrices only."""
    return steps * 6 * min(rows, columns) * rows * columns


def state(numbers, recipe, gpus, stage, *, is_sharded=None, factor=1):
    """The state as it should be, or with other parts sharded, or times a factor."""
    is_sharded = is_sharded or (lambda part: stage >= accountant.SHARDED_FROM[part])
    held = {}
    for part, dtypes in recipe.items():
        bytes_each = factor * sum(accountant.BYTES[dtype] for dtype in dtypes)
        held[part] = bytes_each * (-(-numbers // gpus) if is_sharded(part) else numbers)
    return held


def state_in_bits(*case):
    return state(*case, factor=8)


def state_of_one_stage(numbers, recipe, gpus, stage):
    def is_sharded(part):
        return stage == accountant.SHARDED_FROM[part]

    return state(numbers, recipe, gpus, stage, is_sharded=is_sharded)


def state_by_tuples(numbers, recipe, gpus, stage):
    return {part: numbers * accountant.BYTES[dtypes] for part, dtypes in recipe.items()}


def state_of_divided_bytes(numbers, recipe, gpus, stage):
    held = state(numbers, recipe, gpus, stage, is_sharded=lambda part: False)
    sharded = [part for part in held if stage >= SHARDED_FROM[part]]
    return held | {part: held[part] // gpus for part in sharded}


def state_by_the_whole_table(numbers, recipe, gpus, stage):
    return state(numbers, recipe, gpus, stage, is_sharded=lambda part: stage >= SHARDED_FROM)


def state_by_the_whole_table_turned(numbers, recipe, gpus, stage):
    return state(numbers, recipe, gpus, stage, is_sharded=lambda part: stage < SHARDED_FROM)


def state_by_a_list(*case):
    return list(state(*case).values())


def momentum_without_lr(p, g, buffer, lr, mu):
    buffer = mu * buffer + g
    return p - buffer, buffer


def momentum_with_the_old_buffer(p, g, buffer, lr, mu):
    return p - lr * (mu * buffer + g), buffer


def adamw_with(p, g, m, v, t, lr, decay, *, correct_m=True, correct_v=True, epsilon=1e-8, power=2):
    """A step as the notebook's solution takes it, or with one mistake."""
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * (g * g if power == 2 else g)
    first = m / (1 - 0.9**t) if correct_m else m
    second = v / (1 - 0.999**t) if correct_v else v
    return p * (1 - lr * decay) - lr * first / (second**0.5 + epsilon), m, v


def adamw_by_math_sqrt(p, g, m, v, t, lr, decay):
    new_p, m, v = adamw_with(p, g, m, v, t, lr, decay)
    return p - (p - new_p) * math.sqrt(v), m, v


def adamw_with_rmsprops_beta(p, g, m, v, t, lr, decay):
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    root = (v / (1 - 0.99**t)).sqrt()
    return p * (1 - lr * decay) - lr * m / (1 - 0.9**t) / (root + 1e-8), m, v


TRIED: dict[Check, Tried] = {
    check.state_bytes: Tried(
        right=(state_in_a_loop,),
        wrong=(
            (state_of_four_parts, "A recipe may lack a part"),
            (state_in_bits, "Those are bits"),
            (state_of_one_stage, "stays sharded in all later stages"),
            (state_by_tuples, "A part has several dtypes"),
            (state_by_a_list, "Return a dict"),
            (state_of_divided_bytes, "That divides the bytes, and rounds down"),
            (state_by_the_whole_table, "SHARDED_FROM is a dict"),
            (state_by_the_whole_table_turned, "SHARDED_FROM is a dict"),
        ),
    ),
    check.initial_std: Tried(
        right=(std_by_a_power,),
        wrong=(
            (std_with_the_share_outside, "The share belongs under the root"),
            (std_of_what_is_lost, "kept_share is what is left already"),
        ),
    ),
    check.momentum: Tried(
        right=(momentum_from_lists,),
        wrong=(
            (momentum_outside_lr, "gave p[0]: -0.218 instead of 0.799; buffer ✓."),
            (momentum_without_lr, "lr is missing"),
            (momentum_with_the_old_buffer, "That is the buffer from before"),
        ),
    ),
    check.adamw_step: Tried(
        right=(with_lerp,),
        wrong=(
            (partial(adamw_with, correct_m=False), "correct m and v"),
            (partial(adamw_with, correct_v=False), "correct m and v"),
            (partial(adamw_with, epsilon=0.0), "Epsilon is missing in the divisor"),
            (partial(adamw_with, power=1), "averages the squares of the gradient"),
            (adamw_by_math_sqrt, "A tensor has v.sqrt()"),
            (adamw_with_rmsprops_beta, "In AdamW, v fades by 0.999"),
        ),
    ),
    check.adagrad: Tried(
        right=(adagrad_as_torch_writes_it, adagrad_number_by_number),
        wrong=(
            (adagrad_of_gradients, "; v[3]: -1.6 instead of 7.15."),
            (adagrad_by_the_mean, "; v[3]: 3.58 instead of 7.15."),
            (adagrad_by_signs, "gave p[0]: 0.9 instead of 0.967; v ✓."),
        ),
    ),
    check.token_windows: Tried(
        right=(windows_by_torch, windows_by_numpy, windows_until_one_is_short),
        wrong=(
            (windows_of_the_beginning, "expected"),
            (windows_from_the_end, "expected"),
            (one_window, "expected"),
        ),
    ),
    check.clipped: Tried(
        right=(clipped_by_torch, clipped_with_a_floor, clipped_by_numpy),
        wrong=(
            (clipped_and_flattened, "expected"),
            (clipped_by_half, "expected"),
            (clipped_by_the_first, "expected"),
        ),
    ),
    check.rate_of_step: Tried(
        right=(rate_by_half_the_angle, rate_by_numpy, rate_by_torch),
        wrong=(
            (rate_from_a_tenth, "expected"),
            (rate_that_rises_as_a_cosine, "expected"),
            (rate_without_a_fall, "expected"),
            (rate_without_pi, "multiply the share that is done by math.pi"),
            (rate_that_ends_at_0, "0 at step `total`, and not in the last step"),
        ),
    ),
    check.mixture_weights: Tried(
        right=(mixture_by_a_loop, mixture_by_the_accountant, mixture_by_torch),
        wrong=(
            (mixture_without_router, "The router has weights"),
            (mixture_without_gate, "three matrices each"),
            (mixture_turned_round, "In this order"),
            (mixture_of_all, "does not go through all"),
        ),
    ),
    check.newton_schulz_flops: Tried(
        right=(flops_by_torch, flops_by_the_accountant, flops_in_a_loop),
        wrong=(
            (flops_of_a_tall_matrix_as_it_is, "A tall matrix is transposed first"),
            (flops_of_multiply_adds, "A multiply-add is 2 FLOPs"),
            (flops_of_one_step, "That is one step"),
            (flops_without_the_square, "A is multiplied by itself"),
            (flops_without_the_last, "Two products have X in them"),
            (flops_at_most, "expected"),
        ),
    ),
}
