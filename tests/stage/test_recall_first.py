"""The questions of notebooks 1 to 4, by routes that know nothing of their formulas."""

import heapq
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch

from course_utils.stage.recall import einsum, floats, flops, tensors
from tests.helpers.recall import counted_flops, disagreements

TORCH = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8": torch.float8_e4m3fn,
}
# Each format, and whole numbers of as many bits.
PATTERNS = {
    "bf16": (ml_dtypes.bfloat16, np.uint16),
    "fp16": (np.float16, np.uint16),
    "e4m3": (ml_dtypes.float8_e4m3fn, np.uint8),
    "e5m2": (ml_dtypes.float8_e5m2, np.uint8),
}


def empty(*shape, dtype="bf16"):
    """A tensor with a shape and no memory."""
    return torch.empty(*shape, dtype=TORCH[dtype], device="meta")


def stops(fraction_bits):
    total = 0
    while True:
        more = total + 1
        step = 2 ** max(0, more.bit_length() - fraction_bits - 1)
        rounded = round(Fraction(more, step)) * step  # Python's round goes to the even neighbour
        if rounded == total:
            return total
        total = rounded


def matrices(rows, columns, count, dtype):
    return sum(empty(rows, columns, dtype=dtype).nbytes for _ in range(count)) / 1e9


def largest(exponent_bits, fraction_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    fields = np.arange(1, 2**exponent_bits - 1)  # without the subnormals, and without infinity's
    significands = 1 + np.arange(2**fraction_bits) / 2**fraction_bits
    return np.ldexp(significands[:, None], fields - bias).max()


def gap(fmt, x):
    number, whole = PATTERNS[fmt]
    here = np.array([x], number)
    after = (here.view(whole) + whole(1)).view(number)
    return float(after[0]) - float(here[0])


def pattern(sign, exponent, eighths):
    bits = int(f"{sign:b}{exponent:08b}{eighths:03b}0000", 2)
    return float(np.array([bits], np.uint16).view(ml_dtypes.bfloat16)[0])


def vanishes(vocabulary):
    tokens = np.arange(1, 10_000)
    is_zero = (1 / (vocabulary * tokens)).astype(np.float16) == 0
    return int(tokens[is_zero][0])


def blocks(billions, block):
    count = 64 * block
    packed = np.zeros(count // 2, np.uint8).nbytes  # two weights in a byte
    scales = np.zeros(count // block, np.uint8).nbytes
    return billions * (packed + scales) / count


def kept(rows, columns, dtype):
    row = empty(rows, columns, dtype=dtype)[0]
    return row.untyped_storage().nbytes()


def position(a, b, c, i, j, k):
    return torch.arange(a * b * c).reshape(a, b, c)[i, j, k].item()


def stride(a, b, c, order, dimension):
    return torch.empty(a, b, c).permute([int(n) for n in order.split(",")]).stride(dimension)


def offset(rows, columns, i, j):
    return torch.empty(rows, columns)[i:, j:].storage_offset()


def repeated(columns, times, dtype):
    copy = empty(1, columns, dtype=dtype).expand(times, -1).contiguous()
    return copy.untyped_storage().nbytes()


def steps(batch, tokens, vocabulary, free_gb):
    free = free_gb * 10**9
    kept_by_the_list = []
    while True:
        view = empty(batch, tokens, vocabulary)[:, -1]
        free -= view.untyped_storage().nbytes()
        if free < 0:
            return len(kept_by_the_list)
        kept_by_the_list.append(view)


def lines(rows, columns, dtype):
    addresses = np.arange(rows) * columns * TORCH[dtype].itemsize
    return 64 * np.unique(addresses // 64).size


def scores_flops(batch, heads, tokens, head_width):
    queries = empty(batch, heads, tokens, head_width)
    return counted_flops(lambda: torch.einsum("bhid,bhjd->bhij", queries, queries))


def growth(tokens, times):
    return scores_flops(1, 1, tokens * times, 64) / scores_flops(1, 1, tokens, 64)


def order(tokens, width):
    q, k, v = (empty(tokens, width) for _ in range(3))
    return counted_flops(lambda: (q @ k.T) @ v) / counted_flops(lambda: q @ (k.T @ v))


def narrow(tokens, width, rank):
    x = empty(tokens, width)
    a = empty(width, rank)
    b = empty(rank, width)
    return min(counted_flops(lambda: (x @ a) @ b), counted_flops(lambda: x @ (a @ b)))


def keys(tokens, heads, share, head_width):
    key_of_each_query = torch.arange(heads) // share
    return sum(empty(tokens, head_width).nbytes for _ in key_of_each_query.unique())


def patches(height, width, patch):
    image = torch.empty(3, height, width, device="meta")
    cut = image.unfold(1, patch, patch).unfold(2, patch, patch)
    _, down, across, *_ = cut.shape
    return torch.empty(down, across, device="meta").numel()


def weights(width, share, inner):
    keys_and_values = [(width, width // share)] * 2
    feed_forward = [(width, inner), (width, inner), (inner, width)]
    shapes = [(width, width)] * 2 + keys_and_values + feed_forward
    layers = [torch.nn.Linear(*shape, bias=False, device="meta") for shape in shapes]
    return sum(layer.weight.numel() for layer in layers)


def flops_of_a_weight(with_backward=True):
    """FLOPs for each weight and token, counted by torch."""
    x = torch.ones(3, 5, requires_grad=True)
    layer = torch.nn.Linear(5, 7, bias=False)

    def step():
        loss = layer(x).sum()
        if with_backward:
            loss.backward()

    return counted_flops(step) / (3 * 5 * 7)


def days(billions, trillions, gpus, mfu):
    of_a_token = flops_of_a_weight() * billions * 10**9
    tokens_a_second = gpus * 990e12 * mfu / 100 / of_a_token
    return trillions * 1e12 / (tokens_a_second * 60 * 60 * 24)


def ridge(peak, terabytes):
    def is_compute_bound(n):
        compute = Fraction(2 * n**3, peak)
        memory = 2 * 3 * n**2 / Fraction(str(terabytes))
        return compute >= memory

    first = 1
    last = 10**6
    while first < last:
        middle = (first + last) // 2
        if is_compute_bound(middle):
            last = middle
        else:
            first = middle + 1
    return first


def one_user(billions, terabytes, dtype):
    read = empty(billions, 1000, 1000, 1000, dtype=dtype).nbytes
    return 1 / (read / (terabytes * 10**12))


def mfu(billions, tokens_per_sec):
    at_the_peak = 990e12 / (flops_of_a_weight() * billions * 10**9)
    return 100 * tokens_per_sec / at_the_peak


def cache(layers, kv_heads, head_width, tokens):
    keys_and_values = [empty(kv_heads, tokens, head_width) for _ in range(2 * layers)]
    return sum(tensor.nbytes for tensor in keys_and_values) / 1e9


def last_wave(tiles, cores):
    free_at = [0] * cores
    for _ in range(tiles):
        heapq.heapreplace(free_at, free_at[0] + 1)  # on the core that is free first
    return 100 * tiles / (cores * max(free_at))


def attention(width, tokens):
    x = empty(tokens, width)
    square = empty(width, width)
    up = empty(width, 4 * width)

    def in_matrices():
        for _ in range(4):
            x @ square
        (x @ up) @ up.T

    products = counted_flops(lambda: (x @ x.T) @ x)  # of one head as wide as the layer
    return 100 * products / counted_flops(in_matrices)


ROUTES: dict[str, Callable[..., float]] = {
    "floats.stops": stops,
    "floats.matrices": matrices,
    "floats.largest": largest,
    "floats.gap": gap,
    "floats.pattern": pattern,
    "floats.vanishes": vanishes,
    "floats.blocks": blocks,
    "tensors.kept": kept,
    "tensors.position": position,
    "tensors.stride": stride,
    "tensors.offset": offset,
    "tensors.repeated": repeated,
    "tensors.steps": steps,
    "tensors.lines": lines,
    "einsum.scores": scores_flops,
    "einsum.growth": growth,
    "einsum.order": order,
    "einsum.narrow": narrow,
    "einsum.keys": keys,
    "einsum.patches": patches,
    "einsum.weights": weights,
    "flops.days": days,
    "flops.ridge": ridge,
    "flops.one_user": one_user,
    "flops.mfu": mfu,
    "flops.cache": cache,
    "flops.last_wave": last_wave,
    "flops.attention": attention,
}


@pytest.mark.parametrize("name", ROUTES)
def test_drawn_answers_of_notebooks_1_to_4_are_those_of_a_route_of_their_own(name):
    assert disagreements(name, ROUTES[name], slack=0) == []


def test_every_question_of_notebooks_1_to_4_has_a_route():
    modules = (floats, tensors, einsum, flops)
    assert [question.name for module in modules for question in module.QUESTIONS] == list(ROUTES)
