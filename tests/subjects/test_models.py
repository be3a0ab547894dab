"""The written-out models against loops, against torch's own layers, and against themselves with other options."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from course_utils.core import predict
from course_utils.core.accountant import Model
from course_utils.subjects import models

untimed = settings(deadline=None, max_examples=25)
size = st.integers(1, 5)
LLAMA = dict.fromkeys(("gated", "rms_norm", "rotary"), True) | {"kv_heads": 2}
LLAMA |= dict.fromkeys(("biases", "learned_positions", "tied_output"), False)
both_kinds = pytest.mark.parametrize("options", [{}, LLAMA], ids=["GPT", "Llama"])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def small(seed=0, **options):
    sizes = {"layers": 2, "width": 16, "heads": 4, "vocabulary": 11, "context": 8}
    ways = {name: options.pop(name) for name in ("fused", "recompute", "dtype") if name in options}
    return models.Transformer(
        predict.Transformer(**sizes | options), **ways, generator=seeded(seed)
    )


def close(a, b):
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5)


# The parts.


@untimed
@given(size, st.lists(st.integers(1, 6), min_size=2, max_size=4), st.booleans())
def test_a_deep_linear_model_is_the_product_of_its_matrices(batch, widths, biases):
    network, x = (
        models.MLP(widths, biases=biases, generator=seeded()),
        torch.randn(batch, widths[0]),
    )
    slow = x
    for layer in network.layers:
        slow = torch.einsum("bd,dk->bk", slow, layer.weight) + (layer.bias if biases else 0)
    assert close(network(x), slow)


def test_a_nonlinearity_stands_between_layers_and_not_behind_the_last():
    network, x = models.MLP([3, 4, 5], nonlinearity="relu", generator=seeded()), torch.randn(2, 3)
    first, last = (layer.weight for layer in network.layers)
    assert close(network(x), torch.relu(x @ first) @ last)
    assert (network(torch.randn(99, 3)) < 0).any()


def attention_by_loops(q, k, v):
    """Each head and each position by itself, in plain Python numbers."""
    batch, heads, s, d = q.shape
    shared = heads // k.shape[1]
    q, k, v = q.tolist(), k.tolist(), v.tolist()
    result = torch.zeros(batch, heads, s, d)
    for b, a, i in itertools.product(range(batch), range(heads), range(s)):
        keys, values = k[b][a // shared], v[b][a // shared]
        scores = [
            sum(q[b][a][i][n] * keys[j][n] for n in range(d)) / math.sqrt(d) for j in range(i + 1)
        ]
        weights = [math.exp(score) for score in scores]
        for n in range(d):
            mixed = sum(weight * values[j][n] for j, weight in enumerate(weights))
            result[b, a, i, n] = mixed / sum(weights)
    return result


@untimed
@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), size, size)
def test_both_attentions_are_what_loops_over_heads_and_earlier_positions_give(
    batch, kv, shared, s, d
):
    q, (k, v) = torch.randn(batch, kv * shared, s, d), torch.randn(2, batch, kv, s, d)
    slow = attention_by_loops(q, k, v)
    assert close(models.attention(q, k, v), slow)
    assert close(models.fused_attention(q, k, v), slow)


@untimed
@given(st.integers(1, 6), st.integers(1, 4))
def test_rotation_turns_each_pair_by_position_over_a_growing_period(s, half):
    x = torch.randn(1, s, 1, 2 * half)
    turned = models.rotated(x, models.rotation(s, 2 * half, x))
    for position, i in itertools.product(range(s), range(half)):
        pair = complex(x[0, position, 0, i], x[0, position, 0, i + half])
        slow = pair * complex(math.cos(angle := position / 10_000 ** (i / half)), math.sin(angle))
        fast = complex(turned[0, position, 0, i], turned[0, position, 0, i + half])
        assert abs(fast - slow) < 1e-4


# The whole.


@untimed
@given(st.integers(1, 3), size, st.booleans())
def test_a_gpt_block_is_torchs_encoder_layer(heads, s, fused):
    width = 4 * heads
    shape = predict.Transformer(1, width, heads, vocabulary=1, context=8)
    block = models.Block(shape, fused=fused, generator=seeded(1))
    theirs = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0, activation="gelu", batch_first=True, norm_first=True
    )
    a, f = block.attention, block.feed_forward
    with torch.no_grad():
        for bias in (p for p in block.parameters() if p.ndim == 1):
            bias.copy_(torch.randn_like(bias))
        theirs.self_attn.in_proj_weight.copy_(
            torch.cat([p.weight for p in (a.query, a.key, a.value)], 1).T
        )
        theirs.self_attn.in_proj_bias.copy_(torch.cat([p.bias for p in (a.query, a.key, a.value)]))
        pairs = [
            (theirs.self_attn.out_proj, a.out),
            (theirs.linear1, f.up),
            (theirs.linear2, f.down),
        ]
        for linear, ours in pairs:
            linear.weight.copy_(ours.weight.T)
            linear.bias.copy_(ours.bias)
        for norm, ours in ((theirs.norm1, block.norm1), (theirs.norm2, block.norm2)):
            norm.load_state_dict(ours.state_dict())
    x = torch.randn(2, s, width)
    assert close(block(x), theirs(x, src_mask=nn.Transformer.generate_square_subsequent_mask(s)))


def test_a_llama_block_is_written_out_once_more():
    m = Model(1, 8, heads=4, kv_heads=2, head_width=2, inner=6, vocabulary=1, context=8)
    block = models.Block(m, generator=seeded())
    x = torch.randn(2, 5, 8)
    turn = models.rotation(5, 2, x)

    def norm(y):
        return y / (y.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()

    def heads(y, weight):
        return (y @ weight).unflatten(-1, (-1, 2))

    a, f = block.attention, block.feed_forward
    q, k = (
        models.rotated(heads(norm(x), p.weight), turn).transpose(1, 2) for p in (a.query, a.key)
    )
    mixed = attention_by_loops(q, k, heads(norm(x), a.value.weight).transpose(1, 2))
    y = x + mixed.transpose(1, 2).flatten(2) @ a.out.weight
    inner = functional.silu(norm(y) @ f.gate.weight) * (norm(y) @ f.up.weight)
    assert close(block(x, turn), y + inner @ f.down.weight)


@both_kinds
@pytest.mark.parametrize("fused", [False, True])
def test_no_position_reads_a_later_token_and_each_reads_the_earlier_ones(options, fused):
    network, ids = small(**options, fused=fused), torch.arange(8)[None]
    for changed in range(8):
        other = ids.clone()
        other[0, changed] = 10
        same = torch.isclose(network(ids), network(other)).all(-1)[0]
        assert same.tolist() == [position < changed for position in range(8)]


@both_kinds
def test_swapped_tokens_are_told_apart(options):
    network = small(
        **{"layers": 1, **options}
    )  # a second layer would see what the first made of each
    first, second = network(torch.tensor([[1, 2, 3], [2, 1, 3]]))[:, -1]
    assert not close(first, second)


@both_kinds
def test_recomputing_changes_no_bit_of_the_gradients_and_every_parameter_has_one(options):
    def gradients(recompute):
        network = small(**options, recompute=recompute)
        network(torch.arange(8)[None]).pow(2).mean().backward()
        return {name: p.grad for name, p in network.named_parameters()}

    kept, again = gradients(False), gradients(True)
    assert [name for name in kept if kept[name] is None or not kept[name].any()] == []
    assert all(torch.equal(kept[name], again[name]) for name in kept)


# The first numbers.


def test_one_seed_gives_one_model_and_the_shared_generator_is_left_alone():
    before = torch.get_rng_state()
    a, again, other = (list(small(seed, **LLAMA).parameters()) for seed in (0, 0, 1))
    assert all(map(torch.equal, a, again))
    assert not any(torch.equal(x, y) for x, y in zip(a, other, strict=True) if x.dim() == 2)
    assert torch.equal(before, torch.get_rng_state())


def test_every_dtype_begins_with_the_same_numbers_rounded():
    pairs = zip(small().parameters(), small(dtype=torch.bfloat16).parameters(), strict=True)
    assert all(torch.equal(full.bfloat16(), half) for full, half in pairs)


@both_kinds
def test_outputs_begin_near_the_size_that_inputs_have(options):
    wide = models.Linear(2000, 500, generator=seeded())
    assert wide.weight.var().item() == pytest.approx(1 / 2000, rel=0.02)
    assert wide(torch.randn(100, 2000)).std().item() == pytest.approx(1, rel=0.05)
    sizes = {"layers": 1, "width": 256, "heads": 4, "vocabulary": 500, "context": 8}
    network = models.Transformer(predict.Transformer(**sizes, **options), generator=seeded())
    assert network(torch.arange(8)[None]).std().item() == pytest.approx(1, rel=0.1)


# A master copy.


def test_the_master_is_what_the_optimizer_moves_and_the_parameters_are_rounded_from_it():
    begin = torch.randn(4, 3).bfloat16()
    p, reference = begin.clone().requires_grad_(), begin.float().requires_grad_()
    ours = models.WithMaster([p], torch.optim.AdamW, keep_gradients=False)
    theirs = torch.optim.AdamW([reference])
    for _ in range(5):
        p.grad = torch.randn(4, 3).bfloat16()
        reference.grad = p.grad.float()
        ours.step()
        theirs.step()
    assert torch.equal(ours.master[0], reference.detach())
    assert torch.equal(p.detach(), reference.detach().bfloat16())
    assert not torch.equal(p.detach(), begin)
