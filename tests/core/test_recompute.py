"""Activation checkpointing: closed forms against torch's own hooks and counter, and dropout that agrees with itself."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from course_utils.core import measure, predict
from course_utils.core.measure import memory
from course_utils.subjects import models

KINDS = ("linear", "MLP", "explicit", "fused")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def blocks_of(kind, layers, width=8, dtype=torch.float32):
    options = {"dtype": dtype, "generator": seeded()}

    def block(**ways):
        shape = predict.Transformer(1, width, 2, vocabulary=1, context=8)
        return models.Block(shape, **ways, **options)

    made = {
        "linear": lambda: models.Linear(width, width, biases=False, **options),
        "MLP": lambda: models.MLPBlock(width, **options),
        "explicit": block,
        "fused": lambda: block(fused=True),
    }
    return nn.ModuleList(made[kind]() for _ in range(layers))


def step_of(blocks, x, segment):
    models.recomputed(blocks, x, segment).sum().backward()


def test_recomputed_attention_gives_the_same_gradients_to_the_last_bit():
    def gradients(mix):
        q, k, v = (torch.randn(2, 3, 5, 4, generator=seeded(n)).requires_grad_() for n in range(3))
        mix(q, k, v).pow(2).sum().backward()
        return [q.grad, k.grad, v.grad]

    assert all(
        map(torch.equal, gradients(models.attention), gradients(models.recomputed_attention))
    )


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
    net = models.Transformer(predict.Transformer(2, 16, 2, 11, 8), generator=seeded())
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
