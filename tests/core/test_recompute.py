"""Activation checkpointing, against torch without it.

Results and gradients are the same to the last bit, and so is dropout.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional

from course_utils.core import measure, predict
from course_utils.core.measure import memory
from course_utils.subjects import models

KINDS = ("linear", "MLP", "explicit", "fused")
NUMBER_BYTES = 4  # in fp32


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def ones(*shape):
    return torch.ones(shape, requires_grad=True)


def same_bits(tensors, others):
    return all(torch.equal(a, b) for a, b in zip(tensors, others, strict=True))


def block_of(kind, width, generator):
    if kind == "linear":
        return models.Linear(width, width, biases=False, generator=generator)
    if kind == "MLP":
        return models.MLPBlock(width, generator=generator)
    shape = predict.Transformer(
        layers=1,
        width=width,
        heads=2,
        vocabulary=1,
        context=8,
    )
    return models.Block(shape, fused=kind == "fused", generator=generator)


def blocks_of(kind, layers, width=8):
    generator = seeded()
    blocks = nn.ModuleList()
    for _ in range(layers):
        blocks.append(block_of(kind, width, generator))
    return blocks


def test_recomputed_attention_gives_the_same_gradients_to_the_last_bit():
    def gradients(mix):
        generator = seeded()
        inputs = []
        for _ in range(3):
            inputs.append(torch.randn(2, 3, 5, 4, generator=generator).requires_grad_())
        mix(*inputs).pow(2).sum().backward()
        return [x.grad for x in inputs]

    plain = gradients(models.attention)
    recomputed = gradients(models.recomputed_attention)
    assert same_bits(plain, recomputed)


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
    return [x.grad, *gradients_of(blocks)]


def gradients_of(blocks):
    return [p.grad for p in blocks.parameters()]


def test_dropout_drops_the_same_numbers_again_if_generators_are_restored():
    plain = gradients_with_dropout(0)
    state = torch.get_rng_state()
    for segment in (1, 3):
        recomputed = gradients_with_dropout(segment)
        assert same_bits(plain, recomputed)
        assert torch.equal(torch.get_rng_state(), state)  # as it is without recomputing
        drawn_anew = gradients_with_dropout(segment, preserve_rng_state=False)
        assert not same_bits(plain, drawn_anew)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("early_stop", [True, False])
def test_recomputing_changes_no_bit_of_result_and_gradients(kind, early_stop):
    found = []
    for segment in (0, 1, 2):
        blocks = blocks_of(kind, 3)
        x = torch.randn(2, 5, 8, generator=seeded(1)).requires_grad_()
        result = models.recomputed(blocks, x, segment, early_stop=early_stop)
        result.pow(2).mean().backward()
        found.append([result, x.grad, *gradients_of(blocks)])
    plain, by_layer, by_two_layers = found
    assert same_bits(plain, by_layer)
    assert same_bits(plain, by_two_layers)


def test_an_mlp_block_is_its_formula():
    block = models.MLPBlock(4, generator=seeded())
    x = torch.randn(3, 4)
    up, down = block.parameters()
    assert up.shape == (4, 16)
    assert down.shape == (16, 4)
    assert torch.equal(block(x), x + functional.gelu(x @ up) @ down)


# Bytes over time.


def test_what_autograd_keeps_counts_from_when_it_is_kept_until_it_is_freed():
    x = ones(8)
    a_step = 8 * NUMBER_BYTES

    def chain(length):
        y = x
        for _ in range(length):
            y = y.exp()
        return y.sum()

    def one_chain():
        chain(5).backward()

    def one_after_the_other():
        chain(5).backward()
        chain(5).backward()

    def both_at_once():
        both = chain(2) + chain(5)
        both.backward()

    assert measure.peak_saved_bytes(one_chain) == 5 * a_step
    assert measure.peak_saved_bytes(one_after_the_other) == 5 * a_step
    assert measure.peak_saved_bytes(both_at_once) == 7 * a_step


def test_without_recomputing_the_most_is_what_the_forward_keeps():
    shape = predict.Transformer(
        layers=2,
        width=16,
        heads=2,
        vocabulary=11,
        context=8,
    )
    network = models.Transformer(shape, generator=seeded())
    weights = list(network.parameters())
    ids = torch.arange(8)[None]

    def forward():
        return network(ids).sum()

    def step():
        forward().backward()

    kept = measure.saved_bytes(forward, exclude=weights)
    assert measure.peak_saved_bytes(step, exclude=weights) == kept


def test_excluded_tensors_are_not_counted_and_shared_storages_once():
    x = ones(4, 4)
    w = ones(4, 4)

    def product():
        (x @ w).sum().backward()

    def with_its_own_row():
        (x * x[:1]).sum().backward()

    assert measure.peak_saved_bytes(product) == x.nbytes + w.nbytes
    assert measure.peak_saved_bytes(product, exclude=[w]) == x.nbytes
    assert measure.peak_saved_bytes(with_its_own_row) == x.nbytes


def test_what_is_kept_is_told_each_time_it_changes():
    x = ones(8)
    left = []

    def step():
        x.exp().exp().sum().backward()

    def forward_alone():
        left.append(x.exp())

    assert measure.saved_bytes_over_time(step) == [0, 32, 64, 32, 0]
    nbytes = measure.saved_bytes_over_time(forward_alone)
    left.clear()
    assert nbytes == [0, 32], "what is freed later is no part of it"


def test_a_segments_bytes_are_told_when_it_is_computed_again():
    """A block keeps its input, four numbers before GELU, and four after it.

    On the way back the last numbers go first, and x itself stays.
    """
    blocks = blocks_of("MLP", 3, width=1)
    x = ones(1, 1)

    def numbers_over_time(segment):
        def step():
            models.recomputed(blocks, x, segment).sum().backward()

        nbytes = measure.saved_bytes_over_time(step, exclude=blocks.parameters())
        return [n // NUMBER_BYTES for n in nbytes]

    plain = [0, 1, 5, 9, 10, 14, 18, 19, 23, 27, 23, 19, 18, 14, 10, 9, 5, 1]
    assert numbers_over_time(segment=0) == plain
    assert numbers_over_time(segment=3) == plain
    by_layer = [0, 1, 2, 3, 7, 11, 7, 3, 2, 6, 10, 6, 2, 1, 5, 9, 5, 1]
    assert numbers_over_time(segment=1) == by_layer


def test_hooks_are_as_before_also_after_an_error():
    enter = memory.saved_tensors_hooks.__enter__

    def fails():
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        measure.peak_saved_bytes(fails)
    assert memory.saved_tensors_hooks.__enter__ is enter

    packed = []

    def pack(tensor):
        packed.append(tensor)
        return tensor

    def unpack(tensor):
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        ones(2).exp()
    assert len(packed) == 1
