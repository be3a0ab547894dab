"""What 2026 adds to the accountant: against published numbers, counted models, and itself."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.core import accountant, measure
from course_utils.core.accountant import Latent, Mixture, Model
from course_utils.core.accountant_file import OURS
from course_utils.core.predict.known import CONFIGS, known
from course_utils.subjects import models
from course_utils.subjects.machines import by_us

H100_BYTES_A_SECOND = 3.35e12

# Parameters, as transformers 5.24.0 makes each model from the same config on the meta device, with
# the router's correction bias of DeepSeek-V3 and Kimi K2, which it holds as a buffer.
STORED = {
    "deepseek-v2": 235_741_434_880,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_419_200,  # without the layers for a second token ahead
    "gemma-2-9b": 9_241_705_984,
    "gemma-3-1b": 999_885_952,
    "gemma-7b": 8_537_680_896,
    "gpt-oss-120b": 116_829_156_672,
    "gpt-oss-20b": 20_914_757_184,
    "kimi-k2": 1_026_408_232_448,
    "mixtral-8x7b": 46_702_792_704,
    "qwen3-30b-a3b": 30_532_122_624,
}
# In billions, as published: the papers' and the cards' own numbers.
USED = {
    "deepseek-v2": 21,  # arXiv 2405.04434, abstract
    "deepseek-v3": 37,  # arXiv 2412.19437, abstract
    "mixtral-8x7b": 13,  # arXiv 2401.04088, abstract
    "qwen3-30b-a3b": 3.3,  # its card
}


@pytest.mark.parametrize("name", STORED)
def test_a_published_models_parameters_agree_to_the_last_digit(name):
    assert accountant.stored_parameters(known(name)) == STORED[name]


@pytest.mark.parametrize("name", USED)
def test_a_published_models_used_parameters_agree_to_the_digits_given(name):
    used = accountant.active_parameters(known(name)) / 1e9
    digits = 1 if isinstance(USED[name], float) else 0
    # Qwen says 3.3 for 3.35, and DeepSeek says 37 for 37.55: they cut the number off.
    assert USED[name] in (round(used, digits), math.floor(used * 10**digits) / 10**digits)


def test_gpt_oss_counts_only_one_table_among_the_parameters_that_a_token_uses():
    """Its card, arXiv 2508.10925, table 1: 3.61 and 5.13 billion."""
    for name, billions in (("gpt-oss-20b", 3.61), ("gpt-oss-120b", 5.13)):
        m = known(name)
        with_one_table = accountant.active_parameters(m) - m.vocabulary * m.width
        assert round(with_one_table / 1e9, 2) == billions


def test_the_experts_of_gpt_oss_120b_have_as_many_parameters_as_its_card_says():
    """The same table: the MLPs have 114.71 and 19.12 billion."""
    parts = {}
    for name in ("gpt-oss-120b", "gpt-oss-20b"):
        table = accountant.all_matrices(known(name))
        mlp = [each for kind, each in table.items() if kind == "router" or "experts" in kind]
        parts[name] = sum(each.stored * each.parameters for each in mlp) / 1e9
    assert {name: round(part, 2) for name, part in parts.items()} == {
        "gpt-oss-120b": 114.71,
        "gpt-oss-20b": 19.12,
    }


# What is counted of models that are written out.


@st.composite
def drawn_models(draw, dense=False):
    """Small ones with experts, latent attention, or both."""
    latent = draw(
        st.none()
        | st.builds(
            Latent,
            query_rank=st.integers(0, 9),
            rank=st.integers(1, 9),
            content_width=st.integers(1, 6),
            position_width=st.sampled_from([2, 4]),
            value_width=st.integers(1, 6),
        )
    )
    layers = draw(st.integers(1, 4))
    experts = draw(st.integers(1, 6))
    mixture = Mixture(
        experts=experts,
        used=draw(st.integers(1, experts)),
        inner=draw(st.integers(1, 12)),
        shared_inner=draw(st.sampled_from([0, 5, 12])),
        dense_layers=draw(st.integers(0, layers)),
        router_bias=draw(st.booleans()),
    )
    kv_heads = draw(st.integers(1, 3))
    biases = st.lists(st.sampled_from(["up", "gate", "down"]), unique=True)
    return Model(
        layers=layers,
        width=draw(st.integers(1, 12)),
        heads=kv_heads * draw(st.integers(1, 2)),
        kv_heads=kv_heads,
        head_width=draw(st.sampled_from([2, 4])),
        inner=draw(st.integers(1, 12)),
        vocabulary=draw(st.integers(2, 20)),
        context=16,
        tied=draw(st.booleans()),
        biases=tuple(draw(biases)),
        head_norms=draw(st.booleans()) and latent is None,  # no model has both
        mixture=None if dense else mixture,
        latent=None if dense else latent,
    )


@settings(max_examples=300, deadline=None)
@given(drawn_models(), st.integers(1, 2), st.integers(1, 8))
def test_a_drawn_mixture_agrees_with_the_counted_one_to_the_digit(m, batch, sequence):
    model = models.MixtureTransformer(m)
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert accountant.stored_parameters(m) == counted

    ids = torch.zeros(batch, sequence, dtype=torch.int64)
    flops = measure.flops(lambda: model(ids)).total
    assert accountant.active_forward_flops(m, batch, sequence) == flops


def with_a_mixture(m):
    return m.mixture is not None and m.latent is None


def outside_the_layers(m, batch, sequence, dtype):
    """The bytes that autograd keeps of a MixtureTransformer, besides those of its layers."""
    last_norm = 2 * accountant.tensor_bytes((batch, sequence, m.width), dtype)
    # The embedding keeps its tokens, and rotation a cosine and a sine for each position.
    turned = m.latent.position_width if m.latent else m.head_width
    of_positions = accountant.tensor_bytes((2, sequence, turned // 2), dtype)
    return last_norm + of_positions + accountant.tensor_bytes((batch, sequence), "int64")


@settings(max_examples=300, deadline=None)
@given(
    drawn_models().filter(with_a_mixture),
    st.integers(1, 2),
    st.integers(1, 8),
    st.sampled_from(["fp32", "bf16"]),
)
def test_what_a_drawn_mixture_keeps_agrees_with_what_autograd_keeps_to_the_byte(
    m, batch, sequence, dtype
):
    """Whatever the router picks: the tokens of all experts together are as many as before."""
    options = {"fused_norm": True, "dtype": measure.DTYPES[dtype]}
    model = models.MixtureTransformer(m, **options, generator=torch.Generator().manual_seed(0))
    ids = torch.randint(m.vocabulary, (batch, sequence))
    kept = measure.saved_bytes(lambda: model(ids), exclude=model.parameters())
    outside = outside_the_layers(m, batch, sequence, dtype)
    assert accountant.any_kept_bytes(m, batch, sequence, dtype) + outside == kept


def with_latent_attention(m):
    return m.latent is not None


def with_equal_widths(m):
    """The model, with values as wide as keys: on CPUs, torch has a fused kernel for these alone."""
    key_width = m.latent.content_width + m.latent.position_width
    return replace(m, latent=replace(m.latent, value_width=key_width))


@settings(max_examples=150, deadline=None)
@given(
    drawn_models().filter(with_latent_attention).map(with_equal_widths),
    st.integers(1, 2),
    st.integers(1, 8),
    st.sampled_from(["fp32", "bf16"]),
)
def test_what_a_drawn_latent_attention_keeps_agrees_with_what_autograd_keeps_to_the_byte(
    m, batch, sequence, dtype
):
    """By torch's fused kernel for CPUs; with experts, too, or with ordinary feed-forwards."""
    options = {"fused_norm": True, "dtype": measure.DTYPES[dtype]}
    model = models.MixtureTransformer(m, **options, generator=torch.Generator().manual_seed(0))
    ids = torch.randint(m.vocabulary, (batch, sequence))
    kept = measure.saved_bytes(lambda: model(ids), exclude=model.parameters())
    outside = outside_the_layers(m, batch, sequence, dtype)
    assert accountant.any_kept_bytes(m, batch, sequence, dtype) + outside == kept


@settings(max_examples=150, deadline=None)
@given(
    drawn_models().filter(with_latent_attention),
    st.integers(1, 2),
    st.integers(1, 2),
    st.sampled_from(["fp32", "bf16"]),
)
def test_values_of_another_width_than_the_keys_keep_what_the_term_says_in_a_fused_kernel(
    m, batch, blocks, dtype
):
    """By torch's memory-efficient kernel for GPUs, on "meta": only its shapes are known there.

    It keeps a row sum for each row of a block of 32, and 2 numbers from which dropout draws.
    """
    sequence = 32 * blocks
    options = {"fused_norm": True, "dtype": measure.DTYPES[dtype]}
    with torch.device("meta"):
        attention = models.LatentAttention(m.width, m.heads, m.latent, **options)
        x = torch.zeros(batch, sequence, m.width, dtype=measure.DTYPES[dtype], requires_grad=True)
        turn = models.rotation(sequence, m.latent.position_width, x)

    def efficient(q, k, v, is_causal):
        kernel = torch.ops.aten._scaled_dot_product_efficient_attention
        return kernel(q, k, v, None, True, is_causal=is_causal)[0]

    given_anyway = [*attention.parameters(), x, turn]
    with mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", efficient):
        kept = measure.saved_bytes(lambda: attention(x, turn), exclude=given_anyway)
    dropout = accountant.tensor_bytes((2,), "int64")
    assert accountant.latent_bytes(m, batch, sequence, dtype) + dropout == kept


def test_on_a_cpu_values_of_another_width_than_the_keys_are_multiplied_without_a_fused_kernel():
    """What autograd keeps then grows with the square of the sequence, and no term counts it."""
    latent = Latent(query_rank=5, rank=6, content_width=4, position_width=2, value_width=3)
    m = replace(PLAIN, latent=latent)
    attention = models.LatentAttention(m.width, m.heads, latent, fused_norm=True)

    def beyond_the_term(sequence):
        x = torch.zeros(1, sequence, m.width, requires_grad=True)
        turn = models.rotation(sequence, latent.position_width, x)
        given_anyway = [*attention.parameters(), x, turn]
        kept = measure.saved_bytes(lambda: attention(x, turn), exclude=given_anyway)
        return kept - accountant.latent_bytes(m, 1, sequence, "fp32")

    assert beyond_the_term(64) > 3 * beyond_the_term(32)


def test_what_the_mixture_kept_on_an_h100_is_explained_to_the_byte():
    m = by_us.small_mixture()
    found = by_us.measured("H100 SXM")["mixture"]
    batch = found["batch"]
    sequence = found["sequence"]
    tokens = batch * sequence
    hidden = accountant.tensor_bytes((tokens, m.width), "bf16")
    of_the_loss = 4 * tokens * m.vocabulary + 4  # logarithms in fp32, and the sum of the weights
    of_positions = 2 * sequence * m.head_width // 2 * 2
    ids = 2 * tokens * 8  # the tokens and the targets
    of_kernels = (2 * m.layers + 1) * 4 * tokens + 16 * m.layers  # norms' numbers, generators
    kept = accountant.any_kept_bytes(m, batch, sequence, "bf16") + 2 * hidden
    kept += of_the_loss + of_positions + ids + of_kernels
    assert kept == found["kept_bytes"]
    assert accountant.active_forward_flops(m, batch, sequence) == found["forward_flops"]


@pytest.mark.parametrize("part", [{"sinks": True}, {"norms_per_layer": 4}])
def test_what_sinks_and_four_normalisations_keep_is_not_counted_and_that_is_said(part):
    with pytest.raises(ValueError, match="sinks or four normalisations"):
        accountant.any_kept_bytes(replace(PLAIN, **part), 1, 8, "bf16")


@given(drawn_models())
def test_the_parameters_that_a_token_uses_are_those_that_get_a_gradient_from_one_token(m):
    model = models.MixtureTransformer(m, generator=torch.Generator().manual_seed(0))
    model(torch.zeros(1, 1, dtype=torch.int64)).sum().backward()
    used = 0
    for name, parameter in model.named_parameters():
        # Each expert's matrices have a gradient, but of an expert without tokens it is 0.
        of_unused_expert = ".experts." in name and not parameter.grad.any()
        if not of_unused_expert:
            used += parameter.numel()
    assert accountant.active_parameters(m) == used


PLAIN = Model(
    layers=2, width=8, heads=2, kv_heads=1, head_width=4, inner=16, vocabulary=11, context=6
)


@pytest.mark.parametrize(
    ("part", "word"),
    [
        ({"window": 4, "window_layers": 1}, "windows"),
        ({"sinks": True}, "sinks"),
        ({"norms_per_layer": 4}, "four normalisations"),
        ({"norm_vectors": 2}, "LayerNorm"),
        ({"learned_positions": True}, "learned positions"),
        ({"head_norms": True, "latent": Latent(0, 4, 2, 2, 2)}, "normalised heads"),
    ],
)
def test_a_part_that_a_mixture_transformer_would_leave_out_is_refused(part, word):
    models.MixtureTransformer(PLAIN)  # without the part, it is built
    with pytest.raises(ValueError, match=f"does not build {word}"):
        models.MixtureTransformer(replace(PLAIN, **part))


@given(drawn_models(dense=True), st.integers(1, 3), st.integers(1, 16))
def test_of_a_dense_model_the_new_terms_say_what_the_thirteen_say(m, batch, sequence):
    assert accountant.terms_suffice(m)
    assert accountant.stored_parameters(m) == accountant.parameters(m)
    assert accountant.active_parameters(m) == accountant.parameters(m)
    flops = accountant.forward_flops(m, batch, sequence)
    assert accountant.active_forward_flops(m, batch, sequence) == flops


@given(st.integers(1, 30), st.integers(0, 40))
def test_the_pairs_of_a_window_are_those_that_its_mask_leaves(sequence, window):
    query = torch.arange(sequence)[:, None]
    key = torch.arange(sequence)[None]
    leaves = key <= query
    if window:
        leaves &= query - key < window
    assert accountant.pairs(sequence, window, causal=True) == leaves.sum()
    # The other convention: every query has as many keys as the last one.
    assert accountant.pairs(sequence, window) == sequence * leaves[-1].sum()


def test_deepseek_v3_takes_as_many_flops_a_token_as_its_makers_say():
    """ArXiv 2505.09343, table 2: 250 GFLOP for each token at 4,096, with the causal half of pairs.

    Table 4 of the same paper: 272.80 billion tokens a day on 2,048 H800s are 432 TFLOP/s for each
    with all pairs, and 385 with the causal half.
    """
    m = known("deepseek-v3")
    causal = 3 * accountant.active_forward_flops(m, 1, 4096, causal=True) / 4096
    assert round(causal / 1e9) == 250
    tokens_a_second = 272.80e9 / accountant.SECONDS_PER_DAY / 2048
    every_pair = 3 * accountant.active_forward_flops(m, 1, 4096) / 4096
    assert every_pair * tokens_a_second / 1e12 == pytest.approx(432, rel=0.005)
    assert causal * tokens_a_second / 1e12 == pytest.approx(385, rel=0.005)


def test_all_pairs_of_mistral_at_32768_tokens_are_nearly_twice_the_work_of_its_window():
    m = known("mistral-7b")
    all_pairs = accountant.forward_flops(m, 1, 32_768)
    causal = accountant.active_forward_flops(m, 1, 32_768, causal=True)
    assert all_pairs / causal == pytest.approx(1.93, abs=0.005)


# Serving.


@pytest.mark.parametrize(
    ("name", "tokens", "nbytes"),
    [
        ("deepseek-v3", 1, 70_272),  # arXiv 2505.09343, table 1
        ("llama-3-8b", 1, 131_072),
        ("llama-3-70b", 1, 327_680),  # the same table has Qwen2.5 72B, of the same shape
        ("llama-3-70b", 131_072, 40 * 2**30),
        ("mistral-7b", 4096, 2**29),
        ("mistral-7b", 32_768, 2**29),  # arXiv 2310.06825, section 2: 8 times less than without
        ("gpt-oss-120b", 131_072, 4_836_556_800),
    ],
)
def test_a_cache_has_the_published_bytes(name, tokens, nbytes):
    assert accountant.cache_bytes(known(name), tokens, "bf16") == nbytes


def test_latent_attention_caches_as_many_numbers_as_deepseek_says():
    """ArXiv 2405.04434, table 9: two mixtures of 15.7 and 247.4 billion parameters.

    The table does not give their layers; those of DeepSeek-V2-Lite and DeepSeek-V2 fit.
    """
    small = known("deepseek-v2-lite")
    usual = replace(small, latent=None, head_width=128)
    in_thousands = {
        "small, latent": accountant.cache_bytes(small, 1, "int8") / 1000,
        "small, usual": accountant.cache_bytes(usual, 1, "int8") / 1000,
        "large, latent": accountant.cache_bytes(known("deepseek-v2"), 1, "int8") / 1000,
    }
    assert {name: round(numbers, 1) for name, numbers in in_thousands.items()} == {
        "small, latent": 15.6,
        "small, usual": 110.6,
        "large, latent": 34.6,
    }


def test_deepseek_v2s_cache_is_smaller_than_deepseek_67bs_by_as_much_as_its_abstract_says():
    """With 6 bits for a number, section 3.2.3 of arXiv 2405.04434. The 67B has 95 layers."""
    ours_bits = 6 * accountant.cache_bytes(known("deepseek-v2"), 1, "int8")
    theirs = replace(known("llama-3-70b"), layers=95)  # its keys and values have the same heads
    theirs_bits = 8 * accountant.cache_bytes(theirs, 1, "bf16")
    assert round(100 * (1 - ours_bits / theirs_bits), 1) == 93.3


def test_half_of_gpt_oss_keeps_128_tokens_in_its_cache():
    m = known("gpt-oss-120b")
    for_a_token = 2 * 8 * 64 * 2  # keys and values of 8 heads, 64 wide, in bf16
    assert accountant.cache_bytes(m, 131_072, "bf16") == 18 * for_a_token * (131_072 + 128)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 4), st.integers(0, 40))
def test_what_decoding_reads_of_the_experts_is_what_all_draws_together_say(
    experts, used, users, tokens
):
    """Over all ways in which users choose their experts, each as likely as any other."""
    used = min(used, experts)
    mixture = Mixture(experts=experts, used=used, inner=3)
    m = Model(1, 4, 2, 1, 2, 3, 7, 64, mixture=mixture)
    missed_by_one = 1 - used / experts
    read = experts * (1 - missed_by_one**users)
    outside = accountant.active_weights(m) - used * 3 * 4 * 3  # three matrices of 4 × 3
    expected = outside + read * 3 * 4 * 3
    assert accountant.weights_read(m, users) == pytest.approx(expected)
    cache = users * accountant.cache_bytes(m, tokens, "bf16")
    assert accountant.decode_bytes(m, users, tokens, "bf16") == pytest.approx(2 * expected + cache)


def test_an_experts_mean_is_that_of_users_who_choose_at_random():
    m = Model(1, 4, 2, 1, 2, 3, 7, 64, mixture=Mixture(experts=8, used=2, inner=3))
    generator = torch.Generator().manual_seed(0)
    chances = torch.rand(20_000, 5, 8, generator=generator)  # five users, eight experts
    chosen = chances.topk(2).indices.flatten(1)
    hit = torch.zeros(20_000, 8).scatter_(1, chosen, 1.0).sum(1).mean().item()
    outside = accountant.active_weights(m) - 2 * 3 * 4 * 3
    read = (accountant.weights_read(m, 5) - outside) / (3 * 4 * 3)
    assert read == pytest.approx(hit, abs=0.03)  # five standard errors of the mean are 0.03


def test_8_billion_parameters_in_bf16_give_209_tokens_a_second_and_serve_296_users_at_the_ridge():
    """From an H100's memory at 3.35 TB/s; the cache is left out, as on a napkin."""
    tokens_a_second = H100_BYTES_A_SECOND / (8e9 * 2)
    assert round(tokens_a_second) == 209
    users = accountant.ridge_users("bf16", H100_BYTES_A_SECOND, accountant.PEAK)
    assert math.ceil(users) == 296


@given(st.sampled_from(sorted(STORED)), st.integers(1, 2000), st.integers(1, 100_000))
def test_a_step_of_decoding_takes_no_less_than_either_reading_or_computing(name, users, tokens):
    m = known(name)
    seconds = accountant.decode_seconds(m, users, tokens, "bf16", 1e12, 1e15)
    assert seconds >= accountant.decode_bytes(m, users, tokens, "bf16") / 1e12
    assert seconds >= accountant.decode_flops(m, users, tokens) / 1e15
    assert accountant.decode_seconds(m, users + 1, tokens, "bf16", 1e12, 1e15) > seconds


def test_a_token_after_others_costs_its_share_of_the_causal_half_of_a_pass():
    """Each token looks at those before it and itself, so the sum over tokens is a causal pass."""
    for name in ("llama-3-8b", "mixtral-8x7b", "gpt-oss-20b"):
        m = known(name)
        one_by_one = sum(accountant.decode_flops(m, 1, tokens) for tokens in range(1, 301))
        assert one_by_one == accountant.active_forward_flops(m, 1, 300, causal=True)


# What is sent.


def ring(parts, rounds):
    """Bytes that one of `parts` GPUs sends in a ring: a part of the data in each round."""
    return rounds * (parts - 1) / parts


@given(st.integers(2, 64), st.integers(1, 10**6))
def test_what_is_sent_is_what_a_ring_sends(gpus, numbers):
    nbytes = 2 * numbers
    assert accountant.all_gather_bytes(nbytes, gpus) == math.ceil(nbytes * ring(gpus, 1))
    of_a_sum = 2 * math.ceil(nbytes * ring(gpus, 1))
    assert accountant.all_reduce_bytes(nbytes, gpus) == of_a_sum
    for stage, rounds in ((0, 2), (1, 2), (2, 2), (3, 3)):  # arXiv 1910.02054, section 7
        sent = accountant.data_parallel_bytes(numbers, 2, 2, gpus, stage)
        assert sent == rounds * math.ceil(nbytes * ring(gpus, 1))


@pytest.mark.parametrize(
    ("recipe", "stage", "bytes_of_a_number"),
    [
        ("bf16+master adamw", 0, 2 + 2),  # a reduce-scatter and an all-gather of the gradients
        ("bf16+master adamw, fp32 gradients", 0, 4 + 4),
        ("bf16+master adamw, fp32 gradients", 1, 4 + 2),  # of the gradients, of the parameters
        ("bf16+master adamw, fp32 gradients", 3, 4 + 2 * 2),
        ("fp32 adamw", 3, 4 + 2 * 4),
    ],
)
def test_what_is_sent_has_the_formats_of_the_recipe(recipe, stage, bytes_of_a_number):
    m = known("llama-3-8b")
    parts = accountant.recipe(recipe)
    run = {"gpus": 8, "batch": 1, "sequence": 100, "recomputed": 0}
    lines = accountant.sending_lines(m, parts, stage=stage, split=8, micro_batches=4, **run)
    numbers = accountant.parameters(m) * 7 / 8
    sent = lines["bytes sent by data parallelism"]
    assert sent == pytest.approx(bytes_of_a_number * numbers)


def test_a_layer_split_over_gpus_sends_what_megatrons_paper_counts():
    """ArXiv 2104.04473, section 3.2: 8 · b · s · h · (t - 1) / t numbers for each layer."""
    m = known("llama-3-8b")
    for gpus in (1, 2, 8):
        numbers = 8 * 3 * 100 * m.width * (gpus - 1) / gpus
        sent = accountant.tensor_parallel_bytes(m, 3, 100, "bf16", 0, gpus)
        assert sent == pytest.approx(m.layers * numbers * 2)
        # A recomputed layer repeats one of its four sums: that of attention.
        again = accountant.tensor_parallel_bytes(m, 3, 100, "bf16", m.layers, gpus)
        assert again == pytest.approx(5 / 4 * sent)


def test_a_pipeline_idles_as_megatrons_paper_counts():
    """ArXiv 2104.04473, section 2.2: (p - 1) / m of the work, and 1/v of that with v chunks."""
    assert accountant.pipeline_bubble(stages=8, micro_batches=32) == 7 / 32
    assert accountant.pipeline_bubble(stages=8, micro_batches=32, chunks=2) == 7 / 64
    m = known("llama-3-8b")
    there_and_back = 2 * 10 * m.width * 2
    assert accountant.pipeline_parallel_bytes(m, 1, 10, "bf16", 32) == 32 * there_and_back


def test_a_pipeline_has_no_more_stages_than_layers_and_one_stage_is_none():
    m = known("gpt2")
    run = {"gpus": 8, "stage": 3, "batch": 1, "sequence": 100, "recomputed": 0}
    parts = accountant.recipe("bf16 adamw")
    of_100 = accountant.sending_lines(m, parts, split=100, micro_batches=32, **run)
    assert of_100["stages of a pipeline"] == m.layers
    assert of_100["bubble of a pipeline, over its work"] == (m.layers - 1) / 32
    alone = accountant.sending_lines(m, parts, split=1, micro_batches=32, **run)
    assert "bytes sent at a pipeline's border" not in alone
    assert alone["bytes sent by tensor parallelism"] == 0


def test_experts_far_away_get_as_many_bytes_as_deepseek_counts():
    """ArXiv 2505.09343, section 2.3.2: (1 + 2) bytes × 32 tokens × 9 experts × 7,000 at 50 GB/s.

    That is one layer, forward only, and its ninth expert is the shared one.
    """
    m = Model(1, 7000, 2, 1, 2, 4, 7, 64, mixture=Mixture(experts=256, used=9, inner=8))
    there_and_back = accountant.expert_parallel_bytes(m, 1, 32, "fp8", "bf16") / 2
    assert there_and_back / 50e9 == pytest.approx(120.96e-6)


def test_a_sequence_on_several_gpus_sends_keys_and_values_thrice_whatever_the_queries_are():
    m = known("llama-3-70b")
    for gpus in (1, 2, 16):
        numbers = m.layers * 8192 * 2 * m.kv_heads * m.head_width
        sent = accountant.context_parallel_bytes(m, 2, 8192, "bf16", gpus)
        assert sent == 2 * numbers * 2 * ring(gpus, 3)
    latent = known("deepseek-v3")  # 512 and 64 numbers: arXiv 2412.19437, section 4.2
    sent = accountant.context_parallel_bytes(latent, 1, 4096, "bf16", 2)
    assert sent == 61 * 4096 * (512 + 64) * 2 * ring(2, 3)


# Muon.


def test_muon_keeps_12_bytes_for_each_weight_of_a_layer_where_adamw_keeps_16():
    m = known("llama-3-70b")
    in_layers = m.layers * sum(
        inputs * outputs for inputs, outputs in accountant.matrices(m).values()
    )
    others = accountant.parameters(m) - in_layers
    assert accountant.muon_state_numbers(m) == in_layers + 2 * others


def test_muon_runs_once_in_a_step_on_one_gpu_or_on_each():
    m = known("gpt2")
    parts = accountant.recipe("bf16+master adamw")
    added = {}
    for stage in (0, 1):
        lines = accountant.muon_lines(m, 8, parts, stage, 1024, 0, step_tokens=524_288)
        added[stage] = lines["share of FLOPs that Muon adds"]
    assert added[0] == pytest.approx(8 * added[1])
    longer = accountant.muon_lines(m, 8, parts, 1, 1024, 0, step_tokens=2 * 524_288)
    assert longer["share of FLOPs that Muon adds"] == pytest.approx(added[1] / 2)
    recomputed = accountant.muon_lines(m, 8, parts, 1, 1024, m.layers, step_tokens=524_288)
    assert recomputed["share of FLOPs that Muon adds"] < added[1]


@given(st.integers(1, 9), st.integers(1, 9))
def test_muons_flops_are_those_of_its_products(rows, columns):
    weight = torch.ones(rows, columns)
    if rows > columns:
        weight = weight.T

    def iterate():
        x = weight
        for _ in range(5):
            gram = x @ x.T
            x = x + (gram + gram @ gram) @ x

    assert accountant.newton_schulz_flops(rows, columns, 5) == measure.flops(iterate).total


@pytest.mark.parametrize(("width", "tokens", "share"), [(768, 524_288, 0.7), (16_384, 16e6, 0.5)])
def test_muon_adds_the_share_of_a_step_that_its_author_counts(width, tokens, share):
    """Keller Jordan, *Muon: An optimizer for hidden layers in neural networks*, 2024, in percent.

    Square matrices take the largest share: at most 5 · width / tokens.
    """
    most = 5 * width / tokens
    counted = accountant.newton_schulz_flops(width, width, 5) / (6 * width * width * tokens)
    assert counted <= most
    assert round(100 * most, 1) == share


# Formats with scales, and files.


@pytest.mark.parametrize(
    ("name", "nbytes"), [("gpt-oss-20b", 13_761_264_768), ("gpt-oss-120b", 65_248_815_744)]
)
def test_the_files_of_gpt_oss_have_the_published_bytes(name, nbytes):
    """`total_size` in model.safetensors.index.json of openai/gpt-oss-20b and openai/gpt-oss-120b.

    Their card, arXiv 2508.10925, table 1, says 12.8 and 60.8 GiB.
    """
    experts = {f"experts' {matrix}": "mxfp4" for matrix in ("up", "gate", "down")}
    assert accountant.model_file_bytes(known(name), "bf16", experts) == nbytes


# What Hugging Face counts in the files of deepseek-ai/DeepSeek-V3 ("safetensors" in its API).
# Scales are numbers in fp32, too, beside 256 biases of each of 59 routers.
DEEPSEEK_NUMBERS = {"fp8": 680_571_043_840, "bf16": 3_918_786_560, "fp32": 41_555_600}


def test_the_files_of_deepseek_v3_have_the_published_numbers_and_bytes():
    m = known("deepseek-v3")
    in_blocks = []
    for name, group in accountant.file_matrices(m).items():
        if name not in ("router", "output", "joining"):
            in_blocks += [group] * group.stored
    in_fp8 = sum(group.size for group in in_blocks)
    scales = sum(-(-group.inputs // 128) * -(-group.outputs // 128) for group in in_blocks)
    biases = 59 * 256
    in_bf16 = accountant.file_parameters(m) - in_fp8 - biases
    assert {"fp8": in_fp8, "bf16": in_bf16, "fp32": scales + biases} == DEEPSEEK_NUMBERS

    nbytes = sum(numbers * accountant.BYTES[dtype] for dtype, numbers in DEEPSEEK_NUMBERS.items())
    lines = accountant.file_lines(m)
    assert lines["bytes with layers in fp8 128x128"] == nbytes
    # All files together, as listed there, have 688,586,727,753 bytes: each has a head, too.
    assert 0 < 688_586_727_753 - nbytes < 2e-5 * nbytes


def test_what_deepseek_v3_has_for_a_second_token_is_in_its_file_and_in_nothing_else():
    """README.md and README_WEIGHTS.md of deepseek-ai/DeepSeek-V3, on GitHub.

    They say 671B, 14B for a second token, 685B in all, and 11.5B without the second tables.
    """
    m = known("deepseek-v3")
    without = replace(m, mtp_layers=0)
    assert accountant.stored_parameters(m) == accountant.stored_parameters(without)
    assert accountant.active_parameters(m) == accountant.active_parameters(without)
    assert accountant.mtp_parameters(without) == 0
    assert accountant.file_parameters(without) == accountant.stored_parameters(m)
    more = accountant.file_parameters(m) - accountant.stored_parameters(m)
    assert round(more / 1e9, 1) == 13.5
    assert round((more + accountant.stored_parameters(m)) / 1e9) == 684
    assert round(sum(DEEPSEEK_NUMBERS.values()) / 1e9) == 685  # with the scales
    joining = 2 * m.width**2
    assert round(accountant.mtp_parameters(m) / 1e9, 1) == 11.6
    assert round((accountant.mtp_parameters(m) - joining) / 1e9, 1) == 11.5


def test_layers_for_later_tokens_are_counted_one_by_one():
    m = known("deepseek-v3")
    for layers in range(4):
        several = replace(m, mtp_layers=layers)
        assert accountant.mtp_parameters(several) == layers * 11_610_068_224


def test_a_plain_file_has_two_bytes_for_each_number():
    """`total_size` in the index of Meta-Llama-3-8B."""
    assert accountant.model_file_bytes(known("llama-3-8b"), "bf16", {}) == 16_060_522_496


@pytest.mark.parametrize(
    ("name", "bits"), [("mxfp8", 8.25), ("mxfp4", 4.25), ("nvfp4", 4.5), ("fp8 128x128", 8)]
)
def test_a_number_with_its_share_of_the_scale_takes_so_many_bits(name, bits):
    rows = columns = 4096
    counted = 8 * accountant.block_bytes((rows, columns), name) / (rows * columns)
    assert counted == pytest.approx(bits, abs=0.002)  # 32 bits for 128 × 128 numbers are 0.002


@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from(sorted(accountant.BLOCK_FORMATS)))
def test_a_block_at_the_edge_has_a_scale_of_its_own(rows, columns, name):
    scaled = accountant.BLOCK_FORMATS[name]
    block_rows, block_columns = scaled.block
    scales = 0
    for _ in range(0, rows, block_rows):
        for _ in range(0, columns, block_columns):
            scales += 1
    bits = rows * columns * scaled.number_bits + scales * scaled.scale_bits
    bits += scaled.tensor_scale_bits
    assert 0 <= 8 * accountant.block_bytes((rows, columns), name) - bits < 8


# Energy and money.


def test_llamas_65b_took_the_energy_that_its_paper_says():
    """ArXiv 2302.13971, table 15: 1,022,362 hours at 400 W and a PUE of 1.1 are 449 MWh."""
    assert accountant.energy_kwh(1_022_362, 400, 1.1) / 1000 == pytest.approx(449, abs=1)


def test_deepseek_v3_cost_as_many_dollars_as_its_paper_says():
    """ArXiv 2412.19437, table 1: 2.788 million hours of an H800 at $2 are $5.576 million."""
    days_of_run = 2.788e6 / 24 / 2048
    lines = accountant.cost_lines(days_of_run, gpus=2048, watts=700, pue=1.1, price=2)
    assert lines["GPU hours"] == pytest.approx(2.788e6)
    assert lines["dollars"] == pytest.approx(5.576e6)


# The program.


def printed_by(*asked):
    """What our file prints, run by a Python that has no package."""
    command = [sys.executable, "-I", "-S", str(OURS), *map(str, asked)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_program_says_of_a_mixture_what_is_stored_what_is_used_and_what_it_does_not_know():
    asked = [CONFIGS / "deepseek-v3.json", "--gpus", "2048", "--tokens", "14.8e12"]
    report = printed_by(*asked, "--sequence", "1024")
    assert f"  {'parameters':<36}{'671 billion':>14}    stored_parameters" in report
    assert f"  {'of these, a token uses':<36}{'37.6 billion':>14}    active_parameters" in report
    assert "Whether it fits is not known, since a step adds to this: each GPU has 80 GB." in report
    assert f"  {'the cache, for each token':<36}{'70.3 kB':>14}    cache_bytes" in report
    assert "Weights and caches do not fit: each GPU has 80 GB. Decoding is memory-bound." in report
    assert "  1 layer for a second token ahead is left out" in report
    kept = printed_by(*asked, "--sequence", "8192")  # more than a GPU holds, if all is kept
    assert "This alone does not fit: each GPU has 80 GB." in kept
    alone = printed_by(CONFIGS / "deepseek-v3.json", "--gpus", "8")
    assert "This alone does not fit: each GPU has 80 GB." in alone


def test_many_users_of_a_small_model_are_bound_by_compute():
    asked = [CONFIGS / "qwen2.5-0.5b.json", "--users", "4096", "--cached", "1", "--serving", "1"]
    assert "Decoding is compute-bound." in printed_by(*asked)


def test_serving_does_not_change_with_the_recipe_of_training():
    asked = [CONFIGS / "llama-3-8b.json", "--users", "300", "--cached", "1"]
    takes = {}
    for recipe in (["--recipe", "bf16 adamw"], ["--recipe", "fp32 adamw", "--peak", "67e12"]):
        (line,) = [line for line in printed_by(*asked, *recipe).splitlines() if "takes, at" in line]
        takes[recipe[1]] = line
    assert takes["bf16 adamw"] == takes["fp32 adamw"]


def test_several_users_of_a_mixture_get_a_mean_and_no_bound():
    one = printed_by(CONFIGS / "mixtral-8x7b.json")
    several = printed_by(CONFIGS / "mixtral-8x7b.json", "--users", "2")
    assert "a token takes, at least" in one
    assert "a token takes, about" in several


def test_the_price_and_the_energy_are_those_of_the_run():
    asked = [CONFIGS / "gpt2.json", "--watts", "500", "--pue", "1.5", "--price", "3", "--exact"]
    said = {line[:38].strip(): line[38:].strip() for line in printed_by(*asked).splitlines()}
    hours = float(said["GPU hours"].replace(",", ""))
    run_days = float(said["days without saves and failures"].replace(",", ""))
    assert hours == pytest.approx(8 * 24 * run_days, rel=1e-3)
    assert float(said["kilowatt-hours"].replace(",", "")) == pytest.approx(0.75 * hours, rel=1e-3)
    assert float(said["dollars"].replace(",", "")) == pytest.approx(3 * hours, rel=1e-3)


def costs_printed(options):
    """Return all that is printed with these options, and its part on what a run takes."""
    report = printed_by(CONFIGS / "gpt2.json", *(part for pair in options.items() for part in pair))
    _, _, from_costs_on = report.partition("What it takes, without saves and failures\n")
    return report, from_costs_on.partition("\n\n")[0]


def test_every_assumption_on_energy_and_money_is_printed_with_the_option_that_changes_it():
    chosen = {
        "--tokens": "3e12",
        "--peak": "312e12",
        "--share": "0.3",
        "--watts": "400",
        "--pue": "1.2",
        "--price": "1.5",
    }
    report, costs = costs_printed(chosen)
    typed = [line[58:] for line in report.splitlines()]
    for option, value in chosen.items():
        assert f"{option} {value}" in typed
        _, costs_without = costs_printed(chosen | {option: "1e12" if float(value) > 10 else "1"})
        assert costs_without != costs, option


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--users", "0"], "users is a number above 0; got 0"),
        (["--serving", "-2"], "serving is a number above 0; got -2"),
        (["--bandwidth", "nan"], "bandwidth is a number above 0"),
        (["--cached", "0"], "cached is a number above 0; got 0"),
        (["--pue", "0.9"], "pue is at least 1"),
        (["--price", "-1"], "price is a number above 0"),
        (["--recomputed", "33"], "Of 32 layers, 0 to 32 can be recomputed"),
        (["--cached", "40000"], "at most 32,768 tokens in the cache here"),
        (["--serving-peak", "0"], "serving-peak is a number above 0"),
        (["--split", "0"], "split is a number above 0"),
        (["--step-tokens", "-1"], "step-tokens is a number above 0"),
        (["--tokens", "1e305"], "too large or too small to count with"),
        (["--share", "1e-300", "--peak", "1e-300"], "too large or too small to count with"),
        (["--bandwidth", "1e308", "--serving", "100", "--serving-peak", "1e308"], "too small"),
    ],
)
def test_an_impossible_option_gets_a_sentence(options, said):
    command = [sys.executable, "-I", "-S", OURS, CONFIGS / "mixtral-8x7b.json", *options]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stdout == ""
    assert said in run.stderr.splitlines()[-1]


# What is read of a config.json.


def config(name, **changed):
    return json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8")) | changed


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        ("qwen3-30b-a3b", {"mlp_only_layers": [0]}, "has mlp_only_layers: "),
        ("qwen3-30b-a3b", {"decoder_sparse_step": 2}, "has decoder_sparse_step: "),
        ("deepseek-v3", {"moe_layer_freq": 2}, "has moe_layer_freq: "),
        ("mixtral-8x7b", {"n_shared_experts": 1}, "has n_shared_experts: "),
        ("mixtral-8x7b", {"num_experts_per_tok": 9}, "goes to 9 experts, and a layer has 8"),
        ("deepseek-v3", {"kv_lora_rank": 0}, "kv_lora_rank is a whole number from 1 up"),
        ("gemma-3-1b", {"use_bidirectional_attention": True}, "use_bidirectional_attention: "),
        ("gpt-oss-20b", {"layer_types": ["full_attention"]}, "layer_types has 1 layers, and "),
        ("mistral-7b", {"kv_lora_rank": 512}, "has kv_lora_rank: "),
        ("llama-3-8b", {"sliding_window": 64}, "sliding_window, which a model of type llama"),
        ("mistral-7b", {"layer_types": ["full_attention"] * 32}, "All layers of a model of type"),
        ("llama-3-8b", {"layer_types": ["sliding_attention"] * 32}, "config has no window"),
        ("mistral-7b", {"architectures": ["MistralModel"]}, "Its architecture is MistralModel"),
        ("llama-3-8b", {"vision_config": {"hidden_size": 8}}, "has vision_config: "),
        ("llama-3-8b", {"tie_word_embeddings": "false"}, "true or false; the config has 'false'"),
        ("gpt-oss-20b", {"experts_per_token": 8}, "are not the same"),
        ("qwen3-30b-a3b", {"num_local_experts": 64}, "are one number, and the config has two"),
        ("qwen3-30b-a3b", {"decoder_sparse_step": 0}, "has decoder_sparse_step: "),
        ("deepseek-v3", {"attention_bias": True}, "is not counted of a model of type deepseek_v3"),
    ],
)
def test_a_field_that_it_cannot_count_is_named(name, changed, said):
    with pytest.raises(ValueError, match=said):
        accountant.model_from(config(name, **changed))


@pytest.mark.parametrize(
    ("name", "changed", "window", "layers"),
    [
        ("mistral-7b", {}, 4096, 32),
        ("mistral-7b", {"sliding_window": None}, 0, 0),
        ("gemma-2-9b", {}, 4096, 21),
        ("gemma-3-1b", {}, 512, 22),  # layers 6, 12, 18 and 24 of 26 look at everything
        ("gpt-oss-20b", {"layer_types": None}, 128, 12),
        ("qwen3-4b", {"use_sliding_window": True, "sliding_window": 8}, 8, 8),  # from the 29th on
        ("qwen3-4b", {"use_sliding_window": False, "sliding_window": 8}, 0, 0),
        ("llama-3-8b", {"sliding_window": 64, "use_sliding_window": False}, 0, 0),
    ],
)
def test_the_layers_with_a_window_are_those_that_transformers_gives_one(
    name, changed, window, layers
):
    m = accountant.model_from(config(name, **changed))
    assert (m.window, m.window_layers) == (window, layers)


def test_a_recomputed_layer_with_a_window_costs_the_work_of_the_window():
    m = known("mistral-7b")
    once = accountant.sequence_flops(m, 32_768, recomputed=0)
    all_again = accountant.sequence_flops(m, 32_768, recomputed=m.layers)
    layers = accountant.active_forward_flops(m, 1, 32_768) - 2 * 32_768 * m.width * m.vocabulary
    last_products = m.layers * 2 * 32_768 * m.inner * m.width
    assert all_again - once == layers - last_products
    mixed = accountant.model_from(config("qwen3-4b", use_sliding_window=True, sliding_window=8))
    with pytest.raises(ValueError, match="it is not known whether those are recomputed"):
        accountant.sequence_flops(mixed, 100, recomputed=1)
