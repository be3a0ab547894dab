"""Activation checkpointing: closed forms against torch's own hooks and counter, and dropout that agrees with itself."""

import functools
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from course_utils import measure, models, predict
from course_utils.measure import memory

KINDS = ("linear", "MLP", "explicit", "fused")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def blocks_of(kind, layers, width=8, dtype=torch.float32):
    options = {"dtype": dtype, "generator": seeded()}
    made = {
        "linear": lambda: models.Linear(width, width, biases=False, **options),
        "MLP": lambda: models.MLPBlock(width, **options),
        "explicit": lambda: models.Block(width, 2, **options),
        "fused": lambda: models.Block(width, 2, fused=True, **options),
    }
    return nn.ModuleList(made[kind]() for _ in range(layers))


def stack_of(kind, layers, batch, sequence, width=8, dtype="fp32", **options):
    if kind == "linear":
        return predict.linear_stack(layers, batch * sequence, width, dtype=dtype)
    if kind == "MLP":
        return predict.mlp_stack(layers, batch * sequence, width, dtype=dtype)
    shape = predict.Transformer(layers, width, 2, 11, sequence)
    return predict.transformer_stack(shape, batch, sequence, dtype=dtype, fused=kind == "fused", **options)


def measured(blocks, x, segment, **options):
    """Bytes kept after the forward pass, the most at one time, and FLOPs of a step."""

    def forward():
        return models.recomputed(blocks, x, segment, **options)

    def step():
        flops.append(measure.flops(lambda: forward().sum().backward()).total)

    weights, flops = list(blocks.parameters()), []
    kept = measure.saved_bytes(forward, exclude=weights)
    return kept, measure.peak_saved_bytes(step, exclude=weights), *flops


def predicted(stack, segment, **options):
    flops = stack.step_flops(segment, **options)
    return stack.kept_bytes(segment), stack.peak_bytes(segment).total, flops.total


def step_of(blocks, x, segment):
    models.recomputed(blocks, x, segment).sum().backward()


# The prediction is the measurement.


@settings(max_examples=24)
@given(
    st.sampled_from(KINDS),
    *(st.integers(1, 3), st.integers(1, 3), st.integers(1, 9)),
    st.booleans(),
    st.sampled_from(["fp32", "bf16"]),
    st.data(),
)
def test_bytes_flops_and_parameters_of_every_segment_are_those_that_torch_counts(
    kind, layers, batch, sequence, early_stop, dtype, data
):
    segment = data.draw(st.integers(0, layers))
    blocks = blocks_of(kind, layers, dtype=measure.DTYPES[dtype])
    stack = stack_of(kind, layers, batch, sequence, dtype=dtype)
    x = torch.randn(batch, sequence, 8, dtype=measure.DTYPES[dtype], requires_grad=True)
    found = measured(blocks, x, segment, early_stop=early_stop)
    assert found == predicted(stack, segment, early_stop=early_stop)
    assert layers * stack.parameters == sum(p.numel() for p in blocks.parameters())


@pytest.mark.parametrize(
    ("layers", "batch", "sequence", "heads", "above_what_is_kept"),
    [
        (2, 1, 1, 1, False),
        (2, 2, 4, 2, False),
        (1, 2, 4, 1, False),
        (2, 1, 40, 2, False),
        (1, 2, 40, 2, True),
        (2, 1, 100, 1, True),
    ],
)
@pytest.mark.parametrize("early_stop", [True, False])
def test_recomputed_scores_are_exact_whether_or_not_they_set_the_peak(
    layers, batch, sequence, heads, above_what_is_kept, early_stop
):
    blocks = nn.ModuleList(models.Block(8, heads, generator=seeded()) for _ in range(layers))
    for block in blocks:
        block.attention.mix = functools.partial(models.recomputed_attention, early_stop=early_stop)
    shape = predict.Transformer(layers, 8, heads, 11, sequence)
    stack = predict.transformer_stack(shape, batch, sequence, scores_again=True)
    x = torch.randn(batch, sequence, 8, requires_grad=True)
    assert measured(blocks, x, 0) == predicted(stack, 0, early_stop=early_stop)
    assert (stack.again_bytes > 0) == above_what_is_kept


def test_recomputed_attention_gives_the_same_gradients_to_the_last_bit():
    def gradients(mix):
        q, k, v = (torch.randn(2, 3, 5, 4, generator=seeded(n)).requires_grad_() for n in range(3))
        mix(q, k, v).pow(2).sum().backward()
        return [q.grad, k.grad, v.grad]

    assert all(map(torch.equal, gradients(models.attention), gradients(models.recomputed_attention)))


# What follows from it.


def test_a_stack_that_its_segments_do_not_divide_peaks_where_loops_say():
    def slow(layers, segment, block):  # in numbers of an input
        ends = [*range(segment, layers, segment), layers]
        begins = [0, *ends[:-1]]
        return max(n + block * (end - begin) for n, (begin, end) in enumerate(zip(begins, ends, strict=True)))

    for layers, segment in itertools.product(range(1, 17), range(1, 17)):
        if segment <= layers:
            for make, block in ((predict.linear_stack, 1), (predict.mlp_stack, 9)):
                assert make(layers, 1, 1).peak_bytes(segment).total == 4 * slow(layers, segment, block)


@pytest.mark.parametrize("layers", [2, 5, 12])
def test_among_equal_peaks_the_best_is_the_cheapest(layers):
    stack = predict.linear_stack(layers, 1, 1)
    costs = {s: (stack.peak_bytes(s).total, stack.step_flops(s).total) for s in range(layers + 1)}
    assert costs[stack.best_segment] == min(costs.values())
    assert predict.mlp_stack(1, 32, 64).best_segment == AGAIN.best_segment == 0  # it helps nothing


# What runs.


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.product = models.Linear(16, 16, generator=seeded())

    def forward(self, x):
        return functional.dropout(torch.tanh(self.product(x)), 0.5)


def gradients_with_dropout(segment, **options):
    blocks = nn.ModuleList(Dropping() for _ in range(4))
    x = torch.randn(8, 16, generator=seeded(1)).requires_grad_()
    torch.manual_seed(2)
    models.recomputed(blocks, x, segment, **options).sum().backward()
    return [x.grad, *(p.grad for p in blocks.parameters())]


def test_dropout_drops_the_same_numbers_again_if_generators_are_restored():
    plain, state = gradients_with_dropout(0), torch.get_rng_state()
    for segment in (1, 3):
        assert all(map(torch.equal, plain, gradients_with_dropout(segment)))
        assert torch.equal(torch.get_rng_state(), state)  # where it would be without recomputing
        other = gradients_with_dropout(segment, preserve_rng_state=False)
        assert not all(map(torch.equal, plain, other))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("early_stop", [True, False])
def test_recomputing_changes_no_bit_of_result_and_gradients(kind, early_stop):
    found = []
    for segment in (0, 1, 2):
        blocks = blocks_of(kind, 3)
        x = torch.randn(2, 5, 8, generator=seeded(1)).requires_grad_()
        result = models.recomputed(blocks, x, segment, early_stop=early_stop)
        result.pow(2).mean().backward()
        found.append([result, x.grad, *(p.grad for p in blocks.parameters())])
    assert all(all(map(torch.equal, found[0], other)) for other in found[1:])


def test_an_mlp_block_is_its_formula():
    block, x = models.MLPBlock(4, generator=seeded()), torch.randn(3, 4)
    up, down = block.parameters()
    assert (up.shape, down.shape) == ((4, 16), (16, 4))
    assert torch.equal(block(x), x + functional.gelu(x @ up) @ down)


# Bytes over time.


def test_what_autograd_keeps_counts_from_when_it_is_kept_until_it_is_freed():
    x = torch.ones(8, requires_grad=True)

    def chain(length):
        y = x
        for _ in range(length):
            y = y.exp()
        return y.sum()

    assert measure.peak_saved_bytes(lambda: chain(5).backward()) == 5 * 8 * 4
    # Two graphs one after the other are not there at one time; two together are.
    assert measure.peak_saved_bytes(lambda: [chain(5).backward() for _ in range(2)]) == 5 * 8 * 4
    assert measure.peak_saved_bytes(lambda: (chain(2) + chain(5)).backward()) == 7 * 8 * 4


def test_without_recomputing_the_most_is_what_the_forward_keeps():
    net = models.Transformer(2, 16, 2, 11, 8, generator=seeded())
    ids, weights = torch.arange(8)[None], list(net.parameters())
    kept = measure.saved_bytes(lambda: net(ids).sum(), exclude=weights)
    assert measure.peak_saved_bytes(lambda: net(ids).sum().backward(), exclude=weights) == kept


def test_excluded_tensors_are_not_counted_and_shared_storages_once():
    x, w = torch.ones(4, 4, requires_grad=True), torch.ones(4, 4, requires_grad=True)
    assert measure.peak_saved_bytes(lambda: (x @ w).sum().backward()) == 2 * 64
    assert measure.peak_saved_bytes(lambda: (x @ w).sum().backward(), exclude=[w]) == 64
    assert measure.peak_saved_bytes(lambda: (x * x[:1]).sum().backward()) == 64


def test_what_is_kept_is_told_each_time_it_changes_and_a_segment_is_told_when_it_is_rebuilt():
    over_time = measure.saved_bytes_over_time
    x = torch.ones(8, requires_grad=True)
    assert over_time(lambda: x.exp().exp().sum().backward()) == [0, 32, 64, 32, 0]
    left: list[torch.Tensor] = []
    nbytes = over_time(lambda: left.append(x.exp()))
    left.clear()
    assert nbytes == [0, 32], "what is freed later is no part of it"

    blocks, rows = blocks_of("MLP", 3, width=1), torch.ones(1, 1, requires_grad=True)

    def told(segment):
        nbytes = over_time(lambda: step_of(blocks, rows, segment), exclude=blocks.parameters())
        return [n // 4 for n in nbytes]

    # Its input, four numbers before GELU, four after; on the way back the last go first, and x itself stays.
    assert told(0) == told(3) == [0, 1, 5, 9, 10, 14, 18, 19, 23, 27, 23, 19, 18, 14, 10, 9, 5, 1]
    assert told(1) == [0, 1, 2, 3, 7, 11, 7, 3, 2, 6, 10, 6, 2, 1, 5, 9, 5, 1]


def test_hooks_are_as_before_also_after_an_error():
    enter = memory.saved_tensors_hooks.__enter__

    def fails():
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        measure.peak_saved_bytes(fails)
    assert memory.saved_tensors_hooks.__enter__ is enter
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t):
        torch.ones(2, requires_grad=True).exp()
    assert seen == [1]


# Nonsense.


STACK, SHAPE = predict.mlp_stack(4, 1, 1), predict.Transformer(2, 8, 2, 11, 4)
AGAIN = predict.transformer_stack(SHAPE, 1, 4, scores_again=True)
