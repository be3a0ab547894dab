"""The exercises: the solution shown in the notebook passes, wrong answers fail with advice."""

import functools
import itertools
import json
import math

import numpy as np
import pytest
import torch
from beartype import beartype
from jaxtyping import Float, Shaped, jaxtyped

from course_utils.checks import einsum, flops, gradients, optimizers, tensors
from course_utils.checks import floats as check
from course_utils.checks.verdict import NOT_ATTEMPTED, near, same
from tests.notebooks import exercises

EXERCISES = exercises()


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_the_stub_is_not_attempted_yet(exercise):
    assert exercise.verdict(exercise.stub) == NOT_ATTEMPTED


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_the_folded_solution_is_right(exercise):
    verdict = exercise.verdict(exercise.solution)
    assert verdict.right, verdict


FORWARD = 2 * 64 * (512 * 2048 + 2048 * 2048 + 2048 * 10)  # of notebook 05's first exercise
BACKWARD = 2 * FORWARD - 2 * 64 * 512 * 2048
WRONG_VALUES = [
    (check.spelled, "0100011010000000", "the first bit says minus"),
    (check.spelled, "1100000011010000", "bias 127"),
    (check.spelled, -6.5, "as a string, in quotes"),
    (check.spelled, None, "as a string, in quotes"),
    (check.spelled, "1 10001 101", "9 came"),
    (check.spelled, "minus", "is not it"),
    (check.block_gib, "2.25 GiB", "without quotes"),
    (check.block_gib, math.nan, "is not it"),
    (check.block_gib, 2.415919104, "10^9"),
    (check.block_gib, 2.415919104 / 2, "in GB"),
    (check.block_gib, 1.125, "one matrix"),
    (check.block_gib, 4.5, "bf16 takes 2"),
    (check.block_gib, 2304, "MiB"),
    (check.block_gib, torch.zeros(3), "is not it"),
    (flops.cheaper_order, 2 * 1000**3 + 2 * 1000**2, "Start from the other end"),
    (flops.cheaper_order, 2_000_000, "one product"),
    (flops.cheaper_order, None, "is not it"),
    (flops.cheaper_order, math.nan, "is not it"),
    (flops.cheaper_order, "4e6", "is not it"),
    (flops.days, 11.4, "Half of 312"),
    (flops.days, 5.69, "sparse rate and at full peak"),
    (flops.days, 7.59, "forward pass alone"),
    (flops.days, 22.77 * 86400, "in seconds"),
    (flops.days, 22.77 * 1024, "one A100"),
    (flops.days, True, "is not it"),
    (flops.days, [22.77], "is not it"),
    (tensors.metadata, ((3, 3), (1, 4), 0), "both move the offset"),
    (tensors.metadata, ((3, 3), (1, 4), 1), "so it adds 12"),
    (tensors.metadata, ((3, 3), (1, 4), 12), "its stride is 1"),
    (tensors.metadata, ((3, 3), (3, 1), 13), "A view keeps those of its base"),
    (tensors.metadata, ([3, 3], [4, 1], 13), "exchanges the first stride with the last"),
    (tensors.metadata, ((3, 3), (12, 4), 13), "transpose comes first"),
    (tensors.metadata, None, "A tuple (shape, stride, offset) is wanted"),
    (tensors.metadata, "(3, 3)", "A tuple (shape, stride, offset) is wanted"),
    (tensors.metadata, math.nan, "is not it"),
    (tensors.kept_alive, 32 * 50257 * 2, "A view keeps the whole storage"),
    (tensors.kept_alive, 32 * 1024 * 50257 * 4, "bf16 takes 2"),
    (tensors.kept_alive, 32 * 1024 * 50257, "the number of elements"),
    (tensors.kept_alive, "3 GB", "plain number"),
    (tensors.kept_alive, 3.07, "in GiB"),
    (tensors.kept_alive, 3.29, "in GB"),
    (tensors.metadata, [[3, 3], [1, 4], 12], "its stride is 1"),
    (einsum.similarities, "b s w, b s w -> b s s", "two different names"),
    (einsum.similarities, "b s w, b s w -> b s", "two different names"),
    (einsum.similarities, "b i w, b j w -> b i", "Keep both tokens"),
    (einsum.similarities, "b i w, b j w -> b j i", "then the tokens of x"),
    (einsum.similarities, "b i w, b j w -> i j", "keep the batch"),
    (einsum.similarities, "b i w, c j w -> b c i j", "the batch has the same name in both"),
    (einsum.similarities, "b i w, c j w -> b i j", "the batch has the same name in both"),
    (einsum.similarities, "b i w, b j v -> b i j", "it has the same name in both"),
    (einsum.similarities, "b i w, b j w -> b i w j", "leave the width out"),
    (einsum.similarities, "bid,bjd->bij", "Put spaces between the names"),
    (einsum.similarities, "b i w, b w j -> b i j", "is another product"),
    (einsum.similarities, "b i w -> b i", "three dimensions each"),
    (einsum.similarities, "b i w, b j w", "the -> is missing"),
    (einsum.similarities, None, "A pattern is a string"),
    (einsum.similarities, "__import__('os')", "the -> is missing"),
    (einsum.low_rank_flops, 2 * 4096 * 1024 * 1024 + 2 * 1024 * 8 * 1024, "Go through the narrow place"),
    (einsum.low_rank_flops, 2 * 4096 * 1024 * 8, "That is the way in alone"),
    (einsum.low_rank_flops, 2 * 4096 * 1024 * 1024, "which is what the two narrow ones"),
    (einsum.low_rank_flops, 2 * 4096 * 1024 * 8 * 1024, "all four dimensions"),
    (einsum.low_rank_flops, math.nan, "is not it"),
    (einsum.patches, "b (p r) (q c) ch -> b (r c) (p q ch)", "You have it the other way round"),
    (einsum.patches, "b (r p) (c q) ch -> b (c r) (p q ch)", "first the patches of the first row"),
    (einsum.patches, "b (r p) (c q) ch -> b r c (p q ch)", "an image 2 × 2 patches"),
    (einsum.patches, "b (r p) (c p) ch -> b (r c) (p p ch)", "einops says"),
    (einsum.patches, "nonsense", "has no arrow"),
    (einsum.patches, "", "has no arrow"),
    (einsum.patches, "b (h q) (w p) c -> b (h w) (q p c)", "einops says"),
    (einsum.patches, 5, "A pattern is a string"),
    (gradients.backward_flops, 2 * FORWARD, "The first one reads plain data"),
    (gradients.backward_flops, FORWARD, "the forward pass"),
    (gradients.backward_flops, BACKWARD // 2, "comes with an addition"),
    (gradients.backward_flops, FORWARD + BACKWARD, "forward and backward together"),
    (gradients.backward_flops, 2 * FORWARD - 2 * 64 * 2048 * 10, "not the last"),
    (gradients.backward_flops, "many", "plain number"),
    (gradients.backward_flops, math.nan, "is not it"),
    (gradients.low_rank_flops, 3 * 2 * 4096**2 + 3 * 4 * 4096 * 16, "two products of three remain"),
    (gradients.low_rank_flops, 2 * 4096**2 + 3 * 4 * 4096 * 16, "pass the gradient on"),
    (gradients.low_rank_flops, 3 * 4 * 4096 * 16, "takes part, too"),
    (gradients.low_rank_flops, 2 * 2 * 4096**2 + 2 * 4 * 4096 * 16, "three products each"),
    (gradients.low_rank_flops, 2 * 2 * 4096**2 + 3 * 2 * 4096 * 16, "two narrow matrices"),
    (gradients.low_rank_flops, None, "plain number"),
    (optimizers.state_bytes, 70e9 * 16, "each of the 64 holds an equal part"),
    (optimizers.state_bytes, 70e9 * 12 / 64, "2 bytes each in bf16"),
    (optimizers.state_bytes, 70e9 * 14 / 64, "2 bytes out"),
    (optimizers.state_bytes, 70e9 * 8 / 64, "without the fp32 master copy"),
    (optimizers.state_bytes, 70e9 * 20 / 64, "are bf16 here"),
    (optimizers.state_bytes, 17.5, "In bytes"),
    (optimizers.state_bytes, "17.5 GB", "plain number"),
]


@pytest.mark.parametrize(("judge", "answer", "advice"), WRONG_VALUES)
def test_a_wrong_value_gets_advice(judge, answer, advice):
    verdict = judge(answer)
    assert verdict.status == "not yet"
    assert advice in verdict.words


def ieee(bits, e, m, *, leading=1, exponent_of_zero=1, infinity=math.inf, nan=math.nan):
    """A decoder with one thing at a time done wrongly."""
    sign, exponent, fraction = bits >> (e + m), bits >> m & (2**e - 1), bits & (2**m - 1)
    bias = 2 ** (e - 1) - 1
    if exponent == 2**e - 1:
        return nan if fraction else (-1) ** sign * infinity
    if exponent == 0:
        return (-1) ** sign * (1 - leading + fraction / 2**m) * 2.0 ** (exponent_of_zero - bias)
    return (-1) ** sign * (1 + fraction / 2**m) * 2.0 ** (exponent - bias)


def stops_after_ties_up(fraction_bits, step):
    return 2.0 ** (fraction_bits + 1 + math.floor(math.log2(step)))


def half_up(bits):
    return (bits + 0x8000) >> 16


def without_nan(bits):
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def utilisation(rate, parameters, layers, width, sequence, peak, *, attention=12.0, passes=1.0):
    """MFU with one thing at a time done wrongly."""
    return passes * (6 * parameters + attention * layers * width * sequence) * rate / peak


def mean_roof(points):
    return sum(rate for _, rate in points) / len(points), 1.0


def outermost(points):
    points = sorted(points)
    return points[-1][1], points[0][1] / points[0][0]


def highest(points):
    return max(rate for _, rate in points), max(rate / x for x, rate in points)


def pairs_with_ones(shape, stride):
    return all(stride[n] == shape[n + 1] * stride[n + 1] for n in range(len(shape) - 1))


def grouped(q, k):
    return q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT


def annotated(first, second, result=None, *, kind=Float):
    """q @ k.mT behind such annotations."""

    def scores(q, k):
        return q @ k.mT

    scores.__annotations__ = {"q": kind[torch.Tensor, first], "k": kind[torch.Tensor, second]}
    if result:
        scores.__annotations__["return"] = kind[torch.Tensor, result]
    return jaxtyped(typechecker=beartype)(scores)


def by_hand(x, w1, w2, *, masked=True, before=False, scale=1):
    a = x @ w1
    h = a.clamp(min=0)
    y = h @ w2
    back = y @ w2.T * (a > 0 if masked else 1)
    return scale * x.T @ back, scale * (a if before else h).T @ y


def frozen(batch, widths, layers, *, always=False):
    total, needed = 0, False
    for layer, (d, k) in enumerate(itertools.pairwise(widths)):
        total += 2 * batch * d * k * (1 + (layer not in layers) + ((layer > 0) if always else needed))
        needed = needed or layer not in layers
    return total


def windows(tokens, sequence, more=0):
    starts = range(len(tokens) - sequence + more)
    return [(tokens[s : s + sequence], tokens[s + 1 : s + sequence + 1]) for s in starts]


def adamw(p, g, m, v, t, lr, decay, *, correct=True, inside=False, coupled=False):
    g = g + decay * p * coupled
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    first, second = (m / (1 - 0.9**t), v / (1 - 0.999**t)) if correct else (m, v)
    brake = (second + 1e-8).sqrt() if inside else second.sqrt() + 1e-8
    return p * (1 - lr * decay * (not coupled)) - lr * first / brake, m, v


def unguarded(gradients, limit):
    norm = math.sqrt(sum(x * x for one in gradients for x in one))
    return [[min(1.0, limit / norm) * x for x in one] for one in gradients]


def clipped(gradients, limit, *, always=False):
    norm = math.sqrt(sum(x * x for one in gradients for x in one))
    scale = limit / norm if norm and (always or norm > limit) else 1.0
    return [[scale * x for x in one] for one in gradients]


WRONG_FUNCTIONS = [
    (flops.smallest_batch, lambda d, k, f, w: math.ceil(f / w), "takes a larger B"),
    (
        flops.smallest_batch,
        lambda d, k, f, w: math.ceil(f / w * d * k / (d * k - f / w * (d + k))) - 1,
        "expected",
    ),
    (
        flops.smallest_batch,
        lambda d, k, f, w: math.ceil(2 * f / w * d * k / (d * k - 2 * f / w * (d + k))),
        "bf16 has 2",
    ),
    (flops.smallest_batch, lambda d, k, f, w: None, "gave None"),
    (flops.smallest_batch, lambda d, k, f, w: math.nan, "gave nan"),
    (flops.smallest_batch, lambda d, k: 0, "TypeError"),
    (flops.utilisation, functools.partial(utilisation, attention=0), "leaves attention out"),
    (flops.utilisation, functools.partial(utilisation, attention=4), "has a backward pass too"),
    (flops.utilisation, functools.partial(utilisation, passes=1 / 3), "forward pass alone"),
    (flops.utilisation, lambda r, p, n, h, s, peak: utilisation(r, p, n, h, s * s, peak), "one S remains"),
    (flops.utilisation, lambda *_: "0.5", "gave '0.5'"),
    (flops.fitted_roofline, outermost, "need not lie on the roof"),
    (flops.fitted_roofline, lambda points: highest(points)[::-1], "The peak comes first"),
    (flops.fitted_roofline, mean_roof, "expected"),
    (flops.fitted_roofline, lambda points: highest(points)[0], "expected"),
    (flops.fitted_roofline, lambda points: (math.nan, math.nan), "expected"),
    (flops.fitted_roofline, 3, "A function is wanted"),
    (check.decoded, lambda b, e, m: ieee(b, e, m, exponent_of_zero=0), "2^(1 - bias)"),
    (check.decoded, lambda b, e, m: ieee(b, e, m, leading=0), "expected 0.0"),
    (check.decoded, lambda b, e, m: ieee(b, e, m, infinity=65536.0), "expected inf"),
    (check.decoded, lambda b, e, m: ieee(b, e, m, nan=math.inf), "expected nan"),
    (check.decoded, lambda b, e, m: abs(ieee(b, e, m)), "expected -"),
    (check.decoded, lambda b, e, m: 1 / 0, "ZeroDivisionError"),
    (check.decoded, lambda bits: 0.0, "TypeError"),
    (check.decoded, lambda b, e, m: None, "gave None"),
    (check.stall, lambda m, step: 2.0 ** (m + 1), "steps of 1"),
    (check.stall, lambda m, step: step * 2.0 ** (m + 1), "power of two"),
    (check.stall, stops_after_ties_up, "Round the exponent up"),
    (check.stall, None, "A function is wanted"),
    (check.decoded, 3, "A function is wanted"),
    (check.decoded, lambda b, e, m: 0 if b == 0x8000 else ieee(b, e, m), "Zero has a sign too"),
    (check.decoded, functools.partial(ieee, infinity=65536.0), "your function(31744, 5, 10)"),
    (check.scale_for_e4m3, None, "A function is wanted"),
    (check.scale_for_e4m3, lambda x: x.abs().max() / 448, "the inverse"),
    (check.scale_for_e4m3, lambda x: -448 / x.abs().max(), "turns every sign"),
    (check.scale_for_e4m3, lambda x: 460 / x.abs().max(), "nothing is gained"),
    (check.bf16_by_integers, None, "A function is wanted"),
    (check.bf16_by_integers, lambda bits: (bits + 0x7FFF) >> 16, "every tie down"),
    (check.bf16_by_integers, lambda bits: float(bits >> 16), "TypeError"),
    (check.scale_for_e4m3, lambda x: 448 / x.abs().max(), "zeros"),
    (check.scale_for_e4m3, lambda x: 448 / max(x.max().item(), 1e-9), "magnitude"),
    (check.scale_for_e4m3, lambda x: 1.0, "room up to 448"),
    (check.scale_for_e4m3, lambda x: x, "not one number"),
    (check.scale_for_e4m3, lambda x: x.no_such_thing, "AttributeError"),
    (check.bf16_by_integers, lambda bits: bits >> 16, "rounds towards zero"),
    (check.bf16_by_integers, half_up, "every tie up"),
    (check.bf16_by_integers, without_nan, "must stay a NaN"),
    (tensors.element, lambda s, st, o, i, j: s[i * st[0] + j], "use both strides"),
    (tensors.element, lambda s, st, o, i, j: s[i * st[0] + j * st[1]], "at its offset"),
    (tensors.element, lambda s, st, o, i, j: s[o + i * st[1] + j * st[0]], "steps by the first stride"),
    (tensors.element, lambda s, st, o, i, j: s[o + i * st[0] + j], "use both strides"),
    (tensors.element, lambda s, st, o, i, j: None, "gave None"),
    (tensors.element, lambda s, st, o, i, j: s[10**6], "IndexError"),
    (tensors.element, 3, "A function is wanted"),
    (tensors.windows, lambda n, w, s: (((n - w) // s, w), (s, 1)), "One window short"),
    (tensors.windows, lambda n, w, s: ((n // w, w), (w, 1)), "do not overlap"),
    (tensors.windows, lambda n, w, s: (((n - w) // s + 1, w), (w, 1)), "step numbers later, not width"),
    (tensors.windows, lambda n, w, s: ((-(-n // s), w), (s, 1)), "beyond the end"),
    (tensors.windows, lambda n, w, s: ((w, (n - w) // s + 1), (1, s)), "A row for each window"),
    (tensors.windows, lambda n, w, s: ((n - w + 1, w), (s, 1)), "only every step-th"),
    (tensors.windows, lambda n, w, s: (((n - w) / s + 1, w), (s, 1)), "round down"),
    (tensors.windows, lambda n, w, s: math.nan, "gave nan"),
    (tensors.flattens, lambda n, s: len(n) < 2 or s[-2] == n[-1] * s[-1], "not the last one alone"),
    (
        tensors.flattens,
        lambda n, s: torch.empty_strided(n, s).is_contiguous(),
        "asks whether it is contiguous",
    ),
    (tensors.flattens, lambda n, s: True, "by copying"),
    (tensors.flattens, lambda n, s: list(s) == sorted(s, reverse=True), "Falling strides are not enough"),
    (tensors.flattens, lambda n, s: len(n) < 2 or s[0] == n[1] * s[1], "Every pair of neighbours"),
    (tensors.flattens, pairs_with_ones, "never stepped along"),
    (tensors.flattens, lambda n, s: None, "gave None"),
    (einsum.grouped_attention, lambda q, k: q @ k.mT, "Split the heads into groups first"),
    (
        einsum.grouped_attention,
        lambda q, k: q @ k.repeat(1, q.shape[1] // k.shape[1], 1, 1).mT,
        "heads 0 and 1 use the first keys",
    ),
    (einsum.grouped_attention, lambda q, k: q @ k[:, :1].mT, "keys of its own"),
    (einsum.grouped_attention, lambda q, k: grouped(q, k) / q.shape[-1] ** 0.5, "before scaling"),
    (einsum.grouped_attention, lambda q, k: grouped(q, k).mT, "expected shape"),
    (einsum.grouped_attention, lambda q, k: grouped(q, k) * math.nan, "differ by up to nan"),
    (einsum.grouped_attention, lambda q, k: 0.5, "gave 0.5"),
    (einsum.grouped_attention, lambda q, k: torch.einsum("bhid,bhjd->bhij", q, k), "Split the heads"),
    (einsum.grouped_attention, lambda q, k: grouped(q, k).softmax(-1), "before any softmax"),
    (einsum.guarded, lambda q, k: q @ k.mT, "refuse keys for one sequence"),
    (einsum.guarded, lambda q, k: q @ k, "but it was refused"),
    (einsum.guarded, lambda q, k: k @ q.mT, "should be q @ k.mT"),
    (einsum.guarded, annotated("... i d", "... j d"), "refuse"),
    (einsum.guarded, annotated("b i d", "c j d"), "the same batch"),
    (einsum.guarded, annotated("b i d", "b j e"), "The width has the same name"),
    (einsum.guarded, annotated("2 3 4", "2 5 4"), "every size may change"),
    (einsum.guarded, annotated("b i d", "b j d", kind=Shaped), "refuse integers"),
    (einsum.guarded, annotated("b i d", "b i d"), "may differ in number"),
    (einsum.guarded, annotated("b i d", "b j d"), "Annotate the result"),
    (einsum.guarded, annotated("b i d", "b j d", "x y z"), "Annotate the result"),
    (einsum.guarded, None, "A function is wanted"),
    (gradients.two_layers_by_hand, lambda x, w1, w2: by_hand(x, w1, w2, masked=False), "above 0"),
    (gradients.two_layers_by_hand, lambda x, w1, w2: by_hand(x, w1, w2, before=True), "not by what went in"),
    (gradients.two_layers_by_hand, lambda x, w1, w2: by_hand(x, w1, w2, scale=2), "without a 2"),
    (gradients.two_layers_by_hand, lambda x, w1, w2: by_hand(x, w1, w2)[::-1], "of w1 comes first"),
    (gradients.two_layers_by_hand, lambda x, w1, w2: by_hand(x, w1, w2, scale=1 / len(x)), "not a mean"),
    (gradients.two_layers_by_hand, lambda x, w1, w2: None, "gave None"),
    (gradients.frozen_flops, lambda b, w, f: frozen(b, w, ()), "no gradient of its weight"),
    (gradients.frozen_flops, lambda b, w, f: frozen(b, w, range(len(f))), "and not only how many"),
    (gradients.frozen_flops, lambda b, w, f: frozen(b, w, f, always=True), "nothing before it is trained"),
    (gradients.frozen_flops, lambda b, w, f: math.nan, "gave nan"),
    (gradients.kept_bytes, lambda b, w, n: 4 * b * sum(w[:-1]), "GELU keeps its own input"),
    (gradients.kept_bytes, lambda b, w, n: 4 * b * (sum(w[:-1]) + sum(w[1:-1])), "once for both"),
    (
        gradients.kept_bytes,
        lambda b, w, n: 4 * b * (sum(w) + (n == "gelu") * sum(w[1:-1])),
        "The last result",
    ),
    (gradients.kept_bytes, 5, "A function is wanted"),
    (optimizers.initial_std, lambda n, share: math.sqrt(1 / n), "has to be made up for"),
    (optimizers.initial_std, lambda n, share: 1 / (n * share), "its root is asked for"),
    (optimizers.initial_std, lambda n, share: math.sqrt(share / n), "larger, not smaller"),
    (optimizers.initial_std, lambda n, share: math.sqrt(2 / n), "share of one half"),
    (optimizers.initial_std, lambda n, share: math.nan, "gave nan"),
    (optimizers.last_token, lambda t, s: windows(t, s)[:-1], "very last token"),
    (optimizers.last_token, lambda t, s: [(w, w) for w, _ in windows(t, s)], "one token later"),
    (optimizers.last_token, lambda t, s: windows(t, s, 1), "a target too few"),
    (optimizers.last_token, lambda t, s: windows(t, s)[::s], "may overlap"),
    (optimizers.last_token, lambda t, s: None, "gave None"),
    (optimizers.adamw_step, lambda *case: adamw(*case, correct=False), "divide by 1 - beta^t"),
    (optimizers.adamw_step, lambda *case: adamw(*case, inside=True), "outside the root"),
    (optimizers.adamw_step, lambda *case: adamw(*case, coupled=True), "off the parameter itself"),
    (optimizers.adamw_step, lambda *case: adamw(*case[:-1], 0.0), "The decay is missing"),
    (optimizers.adamw_step, lambda *case: adamw(*case)[0], "expected"),
    (optimizers.clipped, lambda g, n: [clipped([one], n)[0] for one in g], "One norm for all"),
    (
        optimizers.clipped,
        lambda g, n: [[max(-n, min(n, x)) for x in one] for one in g],
        "turns the direction",
    ),
    (optimizers.clipped, lambda g, n: clipped(g, n, always=True), "stay as they are"),
    (optimizers.clipped, lambda g, n: math.nan, "gave nan"),
    (optimizers.clipped, lambda g, n: clipped(g, 1.0), "expected"),
    (optimizers.clipped, unguarded, "leave them as they are"),
    (optimizers.clipped, lambda g, n: g.clear() or [], "changed what it was given"),
    (
        optimizers.adamw_step,
        lambda p, g, m, v, t, lr, d: (p.zero_(), m.zero_(), v.zero_()),
        "Change nothing in place",
    ),
    (optimizers.adamw_step, lambda p, g, m, v, t, lr, d: adamw(p, g, m, v, t + 1, lr, d), "t counts from 1"),
    (gradients.two_layers_by_hand, lambda x, w1, w2: (w1.zero_(), w2.zero_()), "Change nothing in place"),
    (gradients.two_layers_by_hand, lambda *case: tuple(g.T for g in by_hand(*case)), "transpose it"),
    (gradients.frozen_flops, lambda b, w, f: frozen(b, w, f) - frozen(b, w, range(9)), "backward pass alone"),
]


RIGHT_IN_ANOTHER_TYPE = [
    (flops.cheaper_order, 4e6),
    (flops.cheaper_order, torch.tensor(4_000_000)),
    (flops.days, np.float64(22.7)),
    (flops.utilisation, lambda *run: torch.tensor(utilisation(*run), dtype=torch.float64)),
    (flops.fitted_roofline, lambda points: list(highest(points))),
    (
        flops.fitted_roofline,
        lambda points: np.array(points).T[1].max() * np.array([1, 0]) + [0, highest(points)[1]],
    ),
    (tensors.metadata, [[3, 3], (1, 4), 13.0]),
    (tensors.metadata, (torch.Size([3, 3]), (1, 4), 13)),
    (tensors.element, lambda s, st, o, i, j: torch.tensor(s[o + i * st[0] + j * st[1]])),
    (tensors.windows, lambda n, w, s: [[(n - w) // s + 1, w], [s, 1]]),
    (einsum.similarities, "x  y z ,x t z->x y t"),
    (einsum.grouped_attention, lambda q, k: grouped(q.double(), k.double())),
    (einsum.patches, "n (a p) (b q) c -> n (a b) (p q c)"),
    (check.spelled, "0b1100011010000000"),
    (check.block_gib, np.float32(2.25)),
    (check.decoded, lambda b, e, m: np.float32(ieee(b, e, m))),
    (check.decoded, lambda b, e, m: torch.tensor(ieee(b, e, m))),
    (check.scale_for_e4m3, lambda x: np.float32(448) / np.abs(x.numpy()).max() if x.any() else np.float32(1)),
    (
        check.bf16_by_integers,
        lambda bits: np.uint16(bits >> 16 | 0x40 if bits & 0x7FFFFFFF > 0x7F800000 else without_nan(bits)),
    ),
]


@pytest.mark.parametrize(("judge", "answer"), RIGHT_IN_ANOTHER_TYPE)
def test_a_right_answer_is_right_in_whatever_type_it_comes(judge, answer):
    assert judge(answer).right, judge(answer)


def test_the_line_that_is_named_is_the_readers_own():
    def stumbles(bits, exponent_bits, fraction_bits):
        return json.loads("no json")

    line = stumbles.__code__.co_firstlineno + 1
    assert f"stopped in line {line} with JSONDecodeError" in check.decoded(stumbles).words
    assert "stopped with TypeError" in check.decoded(lambda bits: bits).words


@pytest.mark.parametrize(("judge", "answer", "advice"), WRONG_FUNCTIONS)
def test_a_wrong_function_gets_advice_and_no_stack_trace(judge, answer, advice):
    verdict = judge(answer)
    assert verdict.status == "not yet"
    assert advice in verdict.words


def test_same_is_equal_to_the_last_bit():
    assert same(math.nan, math.nan)
    assert same(1, 1.0)
    assert not same(0.0, -0.0)
    assert not same(True, 1)
    assert not same("1", 1)
    assert not same(torch.zeros(2), 0.0)


def test_near_is_a_share_and_nothing_without_one():
    assert near(101, 100, 0.01)
    assert not near(102, 100, 0.01)
    assert not near(100, 100, 0.0)
    assert near((1.0, 2.0), [1.001, 2.0], 0.01)
    assert not near((1.0, 2.0), (1.0, 2.0, 3.0), 0.01)
    assert not near("1", 1, 0.5)
    assert not near(True, 1, 0.5)


def test_a_verdict_escapes_what_the_reader_wrote():
    assert "<script>" not in check.spelled("<script>")._repr_html_()
