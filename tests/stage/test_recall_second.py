"""The questions of notebooks 5 to 8, by routes that know nothing of their formulas."""

import functools
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.utils.checkpoint import checkpoint

from course_utils.core import measure
from course_utils.core.accountant import Model
from course_utils.stage.recall import checkpointing, gradients, mixed_precision, optimizers
from course_utils.subjects import models
from tests.helpers.recall import counted_flops, disagreements
from tests.stage.test_recall_first import PATTERNS, empty

WIDE = 4  # numbers in a layer of the small networks that are counted
ROWS = 3


def network(layers):
    return [nn.Linear(WIDE, WIDE, bias=False) for _ in range(layers)]


def products(layers, *, input_grad=False, segment=0):
    """How many matrix products a step takes, as torch counts them."""
    x = torch.ones(ROWS, WIDE, requires_grad=input_grad)

    def through(some, x):
        for layer in some:
            x = layer(torch.tanh(x))  # a segment ends with a product, whose result nobody needs
        return x

    def step():
        y = x
        for begin in range(0, len(layers), segment or len(layers)):
            some = layers[begin : begin + (segment or len(layers))]
            y = checkpoint(through, some, y, use_reentrant=False) if segment else through(some, y)
        y.sum().backward()

    return counted_flops(step) / (2 * ROWS * WIDE * WIDE)


def rule_of_six(layers):
    return 100 * products(network(layers)) / (3 * layers)


def frozen(layers, trained):
    built = network(layers)
    for number, layer in enumerate(built, 1):
        layer.weight.requires_grad_(number == trained)
    return products(built)


@functools.cache
def bytes_of_a_layer(width, heads, tokens, *, fused):
    m = Model(1, width, heads, heads, width // heads, 4 * width, 10, tokens, False, norm_vectors=2)
    with FakeTensorMode():  # shapes and dtypes, without memory
        block = models.Block(m, fused=fused, dtype=torch.bfloat16)
        x = torch.empty(1, tokens, width, dtype=torch.bfloat16, requires_grad=True)
        return measure.saved_bytes(lambda: block(x), exclude=block.parameters())


def kept(width, heads, tokens, layers):
    return layers * bytes_of_a_layer(width, heads, tokens, fused=True) / 1e9


def scores(batch, heads, tokens):
    queries = empty(batch, heads, tokens, 64)
    return (queries @ queries.mT).nbytes / 1e9


def in_parts(activations, state, parts):
    held = [float(state)]
    for _ in range(parts):
        held.append(held[-1] + activations / parts)  # the part goes forward
        held.append(held[-1] - activations / parts)  # and backward
    return max(held)


def low_rank(width, rank):
    x = empty(ROWS, width).requires_grad_()
    matrix = empty(width, width)
    down = empty(width, rank).requires_grad_()
    up = empty(rank, width).requires_grad_()
    pair = counted_flops(lambda: (x @ matrix + (x @ down) @ up).sum().backward())
    matrix.requires_grad_()
    return 100 * pair / counted_flops(lambda: (x @ matrix).sum().backward())


def half_scores(width, heads):
    """By how much the scores grow, against all else that an explicit layer keeps at any length."""
    short = bytes_of_a_layer(width, heads, 64, fused=False) / 64
    twice = bytes_of_a_layer(width, heads, 128, fused=False) / 128
    of_a_token = (twice - short) / 64  # that each token more adds to what a token keeps
    return (short - 64 * of_a_token) / of_a_token


def bytes_of_a_parameter(optimizer, dtype=torch.float32):
    weight = nn.Parameter(torch.ones(1000, dtype=dtype))
    by_name = {
        "sgd": lambda: torch.optim.SGD([weight]),
        "momentum": lambda: torch.optim.SGD([weight], momentum=0.9),
        "adamw": lambda: torch.optim.AdamW([weight]),
    }
    made = by_name[optimizer]()
    weight.sum().backward()
    made.step()
    states = [state for state in made.state[weight].values() if state is not None]
    tensors = [weight, weight.grad, *(state for state in states if state.numel() == 1000)]
    return sum(tensor.nbytes for tensor in tensors) / 1000


def largest(gpus, memory, optimizer):
    return gpus * memory / bytes_of_a_parameter(optimizer)


def zero(billions, gpus, stage):
    # Each part, in how many bytes, and the first stage that splits it.
    parts = [("bf16", 3), ("bf16", 2), ("fp32", 1), ("fp32", 1), ("fp32", 1)]
    held = 0
    for dtype, first_stage in parts:
        whole = empty(billions * 10**9, dtype=dtype)
        held += whole.chunk(gpus)[0].nbytes if stage >= first_stage else whole.nbytes
    return held / 1e9


def momentum(hundredths, lr, gradient):
    buffer = 0.0
    for _ in range(3000):
        buffer = hundredths / 100 * buffer + gradient
    return lr * buffer


def diverges(curvature, flat):
    def grows(lr):
        point = np.array([1.0, 1.0])
        for _ in range(50):
            point = point - lr * np.array([curvature, flat]) * point
        return abs(point).max() > 1

    low = 0.0
    high = 10.0
    for _ in range(40):
        middle = (low + high) / 2
        if grows(middle):
            high = middle
        else:
            low = middle
    return low


def adamw(lr, decay, weight, gradient):
    p = nn.Parameter(torch.tensor(float(weight), dtype=torch.float64))
    p.grad = torch.tensor(float(gradient), dtype=torch.float64)
    torch.optim.AdamW([p], lr=lr, weight_decay=decay).step()
    return weight - p.item()


def adagrad(step, lr):
    squares = 0.0
    for _ in range(step):
        squares += 7.0**2
    return lr * 7.0 / squares**0.5


def experts(layers, width, inner, experts, used):
    weights_of_an_expert = 2 * empty(inner, width).numel() + empty(width, inner).numel()
    chosen = torch.rand(layers, experts).topk(used).indices  # by a router that draws
    return chosen.numel() * weights_of_an_expert / 1e9


def rounded(number, fmt):
    kind, _ = PATTERNS[fmt]
    return float(np.float64(number).astype(kind))


def arrive(weight, first):
    updates = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
    weights = [rounded(weight + update, "bf16") for update in updates[first : first + 4]]
    return sum(new != weight for new in weights)


def stalls(weight, fmt):
    low = 0.0
    high = float(weight)
    for _ in range(40):
        middle = (low + high) / 2
        if rounded(weight + middle, fmt) == weight:
            low = middle
        else:
            high = middle
    return low


def drift(update, times):
    weight = 1.0
    for _ in range(times):
        weight = rounded(weight + update, "bf16")
    return weight


def scale(power):
    scales = [2**doubling for doubling in range(64)]
    return next(scale for scale in scales if np.float16(2.0**-power * scale) > 0)


def scaler(start, overflows, good, interval):
    now = torch.tensor(2.0**start)
    good_steps = torch.tensor(0, dtype=torch.int32)
    for found in [1.0] * overflows + [0.0] * good:
        torch._amp_update_scale_(now, good_steps, torch.tensor(found), 2.0, 0.5, interval)
    return now.item()


def recipe(billions, name):
    dtypes = {
        "bf16+master adamw": ["bf16", "bf16", "fp32", "fp32", "fp32"],
        "bf16+master adamw, fp32 gradients": ["bf16", "fp32", "fp32", "fp32", "fp32"],
        "bf16 adamw": ["bf16"] * 4,
        "bf16+master momentum": ["bf16", "bf16", "fp32", "fp32"],
    }
    return sum(empty(billions * 10**9, dtype=dtype).nbytes for dtype in dtypes[name]) / 1e9


def to_e4m3(largest):
    return float(ml_dtypes.finfo(ml_dtypes.float8_e4m3fn).max) / largest


def by_chance(weight, share):
    gap = rounded(np.nextafter(np.float32(weight), np.inf) + weight * 2**-8, "bf16") - weight
    update = float(f"{share * gap:.2g}")
    # The lower half of fp32's bits says how far a number is on its way through bf16's gap.
    lower = np.float32(weight + update).view(np.uint32) & 0xFFFF
    return 100 * np.mean(np.arange(2**16) < lower)


def interval(save_s, hours):
    times_s = np.geomspace(10, 10**6, 200_001)
    shares = save_s / times_s + times_s / (2 * hours * 3600)
    return times_s[shares.argmin()] / 60


def lost(save_s, minutes, hours, restart_min):
    moments = (np.arange(1000) + 0.5) / 1000 * minutes  # at which a failure can come
    of_a_failure = moments.mean() + restart_min
    return 100 * (save_s / 60 / minutes + of_a_failure / (60 * hours))


def fails_every(thousands, gpus):
    failures_an_hour = np.full(gpus, 1 / (1000 * thousands)).sum()
    return 1 / failures_an_hour


def again(products, segment):
    layers = network(products * segment * 2)  # two segments
    return 100 * (counted_again(layers, products * segment) - 1)


def counted_again(layers, segment):
    return products(layers, input_grad=True, segment=segment) / products(layers, input_grad=True)


def inputs(layers, width, tokens, whole):
    kept_numbers = [16] * whole + [1] * (layers - whole)
    return sum(count * empty(tokens, width).nbytes for count in kept_numbers) / 1e9


def segments(layers, segment, layer_mb, input_mb):
    memory = {}
    for layer in range(0, layers, segment):  # forward: each segment leaves its input
        memory[layer] = input_mb
    for layer in range(layers - segment, layers):  # the last one is recomputed
        memory[layer] = layer_mb
    return sum(memory.values()) / 1000


def file(billions, gigabytes_per_sec):
    weight = nn.Parameter(torch.ones(1000))
    optimizer = torch.optim.AdamW([weight])
    weight.sum().backward()
    optimizer.step()
    states = [s for s in optimizer.state_dict()["state"][0].values() if s.numel() == 1000]
    saved = sum(tensor.nbytes for tensor in [weight.detach(), *states]) / 1000
    return billions * saved / gigabytes_per_sec


# Each route, and how far off it may be. A step of AdamW divides by √v + 1e-8, not by √v; a layer
# keeps LayerNorm's statistics, too; a grid and a bisection end; bits are cut off.
ROUTES: dict[str, tuple[Callable[..., float], float]] = {
    "gradients.rule_of_six": (rule_of_six, 0),
    "gradients.frozen": (frozen, 0),
    "gradients.kept": (kept, 1e-3),
    "gradients.scores": (scores, 0),
    "gradients.in_parts": (in_parts, 1e-9),
    "gradients.low_rank": (low_rank, 0),
    "gradients.half_scores": (half_scores, 0.01),
    "optimizers.largest": (largest, 0),
    "optimizers.zero": (zero, 0),
    "optimizers.momentum": (momentum, 1e-9),
    "optimizers.diverges": (diverges, 1e-6),
    "optimizers.adamw": (adamw, 1e-5),
    "optimizers.adagrad": (adagrad, 1e-9),
    "optimizers.experts": (experts, 0),
    "mixed_precision.arrive": (arrive, 0),
    "mixed_precision.stalls": (stalls, 1e-4),
    "mixed_precision.drift": (drift, 0),
    "mixed_precision.scale": (scale, 0),
    "mixed_precision.scaler": (scaler, 0),
    "mixed_precision.recipe": (recipe, 0),
    "mixed_precision.to_e4m3": (to_e4m3, 0),
    "mixed_precision.by_chance": (by_chance, 1e-3),
    "checkpointing.interval": (interval, 1e-4),
    "checkpointing.lost": (lost, 1e-9),
    "checkpointing.fails_every": (fails_every, 1e-9),
    "checkpointing.again": (again, 1e-9),
    "checkpointing.inputs": (inputs, 1e-9),
    "checkpointing.segments": (segments, 0),
    "checkpointing.file": (file, 0),
}


@pytest.mark.parametrize("name", ROUTES)
def test_drawn_answers_of_notebooks_5_to_8_are_those_of_a_route_of_their_own(name):
    route, slack = ROUTES[name]
    assert disagreements(name, route, slack) == []


def test_every_question_of_notebooks_5_to_8_has_a_route():
    modules = (gradients, optimizers, mixed_precision, checkpointing)
    assert [question.name for module in modules for question in module.QUESTIONS] == list(ROUTES)
