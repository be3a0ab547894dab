"""The models against loops, against torch's own layers, and against themselves in other ways."""

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
LLAMA = {
    "gated": True,
    "rms_norm": True,
    "rotary": True,
    "kv_heads": 2,
    "biases": False,
    "learned_positions": False,
    "tied_output": False,
}
both_kinds = pytest.mark.parametrize("options", [{}, LLAMA], ids=["GPT", "Llama"])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def small(seed=0, **options):
    """A small model. Options that do not change its shape go to the module."""
    sizes = {"layers": 2, "width": 16, "heads": 4, "vocabulary": 11, "context": 8}
    ways = {}
    for name, value in options.items():
        if name in ("fused", "recompute", "dtype"):
            ways[name] = value
        else:
            sizes[name] = value
    shape = predict.Transformer(**sizes)
    return models.Transformer(shape, **ways, generator=seeded(seed))


def close(a, b):
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5)


# The parts.


@untimed
@given(size, st.lists(st.integers(1, 6), min_size=2, max_size=4), st.booleans())
def test_a_deep_linear_model_is_the_product_of_its_matrices(batch, widths, biases):
    network = models.MLP(widths, biases=biases, generator=seeded())
    x = torch.randn(batch, widths[0])
    slow = x
    for layer in network.layers:
        slow = torch.einsum("bd,dk->bk", slow, layer.weight)
        if biases:
            slow = slow + layer.bias
    assert close(network(x), slow)


def test_a_nonlinearity_stands_between_layers_and_not_behind_the_last():
    network = models.MLP([3, 4, 5], nonlinearity="relu", generator=seeded())
    x = torch.randn(2, 3)
    first, last = (layer.weight for layer in network.layers)
    assert close(network(x), torch.relu(x @ first) @ last)
    assert (network(torch.randn(99, 3)) < 0).any()


def attention_by_loops(q, k, v):
    """Each head and each position by itself, in plain Python numbers."""
    batch, heads, s, d = q.shape
    heads_per_key = heads // k.shape[1]
    result = torch.zeros(batch, heads, s, d)
    for b, a, i in itertools.product(range(batch), range(heads), range(s)):
        query = q[b, a, i].tolist()
        keys = k[b, a // heads_per_key].tolist()
        values = v[b, a // heads_per_key].tolist()
        weights = []
        for key in keys[: i + 1]:  # up to this position
            score = sum(query[n] * key[n] for n in range(d)) / math.sqrt(d)
            weights.append(math.exp(score))
        for n in range(d):
            mixed = sum(weight * values[j][n] for j, weight in enumerate(weights))
            result[b, a, i, n] = mixed / sum(weights)
    return result


@untimed
@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), size, size)
def test_both_attentions_are_what_loops_over_heads_and_earlier_positions_give(
    batch, kv, shared, s, d
):
    q = torch.randn(batch, kv * shared, s, d)
    k, v = torch.randn(2, batch, kv, s, d)
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
        angle = position / 10_000 ** (i / half)
        slow = pair * complex(math.cos(angle), math.sin(angle))
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
    with torch.no_grad():
        for parameter in block.parameters():
            if parameter.ndim == 1:  # a bias or a norm's weight, which is 0 or 1 at first
                parameter.copy_(torch.randn_like(parameter))
        copy_block(block, theirs)
    x = torch.randn(2, s, width)
    mask = nn.Transformer.generate_square_subsequent_mask(s)
    assert close(block(x), theirs(x, src_mask=mask))


def copy_block(block, theirs):
    """Give torch's layer the numbers of our block."""
    attention = block.attention
    projections = (attention.query, attention.key, attention.value)
    theirs.self_attn.in_proj_weight.copy_(torch.cat([p.weight for p in projections], 1).T)
    theirs.self_attn.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
    linears = [
        (theirs.self_attn.out_proj, attention.out),
        (theirs.linear1, block.feed_forward.up),
        (theirs.linear2, block.feed_forward.down),
    ]
    for linear, ours in linears:
        linear.weight.copy_(ours.weight.T)
        linear.bias.copy_(ours.bias)
    theirs.norm1.load_state_dict(block.norm1.state_dict())
    theirs.norm2.load_state_dict(block.norm2.state_dict())


def test_a_llama_block_is_written_out_once_more():
    m = Model(1, 8, heads=4, kv_heads=2, head_width=2, inner=6, vocabulary=1, context=8)
    block = models.Block(m, generator=seeded())
    x = torch.randn(2, 5, 8)
    turn = models.rotation(5, 2, x)

    def norm(y):
        return y / (y.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()

    def heads(linear):
        return (norm(x) @ linear.weight).unflatten(-1, (-1, 2))

    attention = block.attention
    q = models.rotated(heads(attention.query), turn).transpose(1, 2)
    k = models.rotated(heads(attention.key), turn).transpose(1, 2)
    v = heads(attention.value).transpose(1, 2)
    mixed = attention_by_loops(q, k, v).transpose(1, 2).flatten(2)
    y = x + mixed @ attention.out.weight
    ours = block.feed_forward
    gate = functional.silu(norm(y) @ ours.gate.weight)
    inner = gate * (norm(y) @ ours.up.weight)
    assert close(block(x, turn), y + inner @ ours.down.weight)


@both_kinds
@pytest.mark.parametrize("fused", [False, True])
def test_no_position_reads_a_later_token_and_each_reads_the_earlier_ones(options, fused):
    network = small(**options, fused=fused)
    ids = torch.arange(8)[None]
    for changed in range(8):
        other = ids.clone()
        other[0, changed] = 10
        same = torch.isclose(network(ids), network(other)).all(-1)[0]
        assert same.tolist() == [position < changed for position in range(8)]


@both_kinds
def test_swapped_tokens_are_told_apart(options):
    # One layer, because a second one would see what the first has made of each token.
    network = small(**options, layers=1)
    first, second = network(torch.tensor([[1, 2, 3], [2, 1, 3]]))[:, -1]
    assert not close(first, second)


@both_kinds
def test_recomputing_changes_no_bit_of_the_gradients_and_every_parameter_has_one(options):
    def gradients(recompute):
        network = small(**options, recompute=recompute)
        network(torch.arange(8)[None]).pow(2).mean().backward()
        return {name: p.grad for name, p in network.named_parameters()}

    kept = gradients(False)
    recomputed = gradients(True)
    for name, gradient in kept.items():
        assert gradient is not None, name
        assert gradient.any(), name
        assert torch.equal(gradient, recomputed[name]), name


# The first numbers.


def test_one_seed_gives_one_model_and_the_shared_generator_is_left_alone():
    before = torch.get_rng_state()
    first, again, other = (list(small(seed, **LLAMA).parameters()) for seed in (0, 0, 1))
    assert all(map(torch.equal, first, again))
    for ours, theirs in zip(first, other, strict=True):
        if ours.dim() == 2:  # the others are 1 in every model
            assert not torch.equal(ours, theirs)
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
    p = begin.clone().requires_grad_()
    reference = begin.float().requires_grad_()
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
