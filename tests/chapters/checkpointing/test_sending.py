"""What GPUs send, counted at their links; the accountant's formulas are held by these counts."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.chapters.checkpointing import sending, shared_layers
from course_utils.chapters.checkpointing.sending import Links
from course_utils.core import accountant, predict
from course_utils.core.accountant import Latent, Mixture, Model
from course_utils.core.predict.known import known

SMALL = Model(
    layers=4,
    width=32,
    heads=8,
    kv_heads=4,
    head_width=4,
    inner=48,
    vocabulary=11,
    context=16,
)
WITH_LATENT = replace(
    SMALL,
    latent=Latent(query_rank=6, rank=7, content_width=4, position_width=2, value_width=5),
)
WITHOUT_QUERY_LATENT = replace(WITH_LATENT, latent=replace(WITH_LATENT.latent, query_rank=0))


def drawn(*shape, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64, **options)


# The links.


@given(st.integers(1, 7), st.integers(1, 30))
def test_a_ring_adds_up_and_sends_what_the_accountant_says(gpus, numbers_of_a_part):
    tensors = [drawn(gpus, numbers_of_a_part, seed=gpu) for gpu in range(gpus)]
    links = Links(gpus)
    for total in sending.all_reduced(links, tensors):
        torch.testing.assert_close(total, sum(tensors))
    nbytes = tensors[0].nbytes
    assert links.sent == [accountant.all_reduce_bytes(nbytes, gpus)] * gpus


def test_what_a_link_carries_is_counted_and_arrives_as_a_copy():
    links = Links(2)
    mine = torch.ones(3)
    arrived = links.carried(mine, 0, 1)
    arrived += 1
    assert mine.tolist() == [1, 1, 1]
    assert links.sent == [12, 0]
    links.carried(mine, 1, 1)
    assert links.sent == [12, 0]


# The model on several GPUs. All of it is in fp64, so that the results agree closely.


def in_fp64(layers):
    return [{name: matrix.double() for name, matrix in layer.items()} for layer in layers]


def layers_of(m):
    return in_fp64(shared_layers.drawn_layers(m, torch.Generator().manual_seed(3)))


def alone(m, batch=2, tokens=16):
    """Return the result and the input's gradient of a step on one GPU."""
    x = drawn(batch, tokens, m.width, requires_grad=True)
    result = shared_layers.run_layers(m, layers_of(m), x)
    result.square().sum().backward()
    return result, x.grad


def step(run, m, links, batch=2, tokens=16):
    """Return what `run` gives and the input's gradient, if each result is squared and added up."""
    x = drawn(batch, tokens, m.width, requires_grad=True)
    results = run(m, layers_of(m), x, links)
    sum(result.square().sum() for result in results).backward()
    return results, x.grad


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_tensor_parallel_layers_compute_the_same_and_send_what_the_accountant_says(gpus):
    expected, gradient = alone(SMALL)
    links = Links(gpus)
    results, gradients = step(shared_layers.run_tensor_parallel, SMALL, links)
    for result in results:
        torch.testing.assert_close(result, expected)
    # Each GPU has a loss of its own and goes back to its own copy of x.
    torch.testing.assert_close(gradients / gpus, gradient)
    sent = accountant.tensor_parallel_bytes(SMALL, 2, 16, "fp64", 0, gpus)
    assert links.sent == [sent] * gpus


def test_each_gpu_of_a_tensor_parallel_layer_has_an_equal_share_of_each_matrix():
    (layer, *_) = layers_of(SMALL)
    for gpu in range(4):
        share = shared_layers.share_of(layer, gpu, 4)
        for name, matrix in layer.items():
            assert 4 * share[name].numel() == matrix.numel()


def test_a_pipeline_computes_the_same_and_sends_what_the_accountant_says():
    expected, gradient = alone(SMALL)
    links = Links(4)
    x = drawn(2, 16, 32, requires_grad=True)
    result = shared_layers.run_pipeline(SMALL, layers_of(SMALL), x, links)
    assert torch.equal(result, expected)
    result.square().sum().backward()
    assert torch.equal(x.grad, gradient)
    at_a_border = accountant.pipeline_parallel_bytes(SMALL, 2, 16, "fp64", 1)
    one_way = at_a_border // 2
    # The first stage sends nothing back, and the last one nothing on.
    assert links.sent == [one_way, at_a_border, at_a_border, one_way]


@pytest.mark.parametrize("m", [SMALL, WITH_LATENT, WITHOUT_QUERY_LATENT])
@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_a_sequence_on_several_gpus_gives_the_same_and_sends_what_the_accountant_says(m, gpus):
    expected, gradient = alone(m)
    links = Links(gpus)
    results, gradients = step(shared_layers.run_context_parallel, m, links)
    torch.testing.assert_close(torch.cat(list(results), dim=1), expected)
    torch.testing.assert_close(gradients, gradient)
    sent = accountant.context_parallel_bytes(m, 2, 16, "fp64", gpus)
    assert links.sent == [sent] * gpus


def test_without_the_backward_pass_a_sequence_on_several_gpus_sends_a_third():
    links = Links(4)
    x = drawn(2, 16, 32)
    shared_layers.run_context_parallel(SMALL, layers_of(SMALL), x, links)
    sent = accountant.context_parallel_bytes(SMALL, 2, 16, "fp64", 4)
    assert [3 * nbytes for nbytes in links.sent] == [sent] * 4


def test_a_query_on_one_gpu_does_not_see_a_later_token_on_another():
    x = drawn(1, 16, 32)
    changed = x.clone()
    changed[:, 8:] += 1
    before, _ = shared_layers.run_context_parallel(SMALL, layers_of(SMALL), x, Links(2))
    after, later = shared_layers.run_context_parallel(SMALL, layers_of(SMALL), changed, Links(2))
    assert torch.equal(before, after)
    assert later.shape == (1, 8, 32)


def test_experts_far_away_compute_the_same_and_send_at_most_what_the_accountant_says():
    mixture = Mixture(experts=8, used=3, inner=6)
    generator = torch.Generator().manual_seed(5)
    experts = shared_layers.drawn_experts(16, mixture, generator).double()
    rows = [drawn(50, 16, seed=gpu, requires_grad=True) for gpu in range(4)]
    links = Links(4)
    results = shared_layers.run_expert_parallel(experts, rows, links)
    in_one = experts(torch.stack(rows))
    for result, expected in zip(results, in_one, strict=True):
        torch.testing.assert_close(result, expected)

    sum(result.square().sum() for result in results).backward()
    chosen = experts.router(torch.stack(rows)).topk(3).indices
    home = chosen // 2  # each GPU has two experts
    away = sum((home[gpu] != gpu).sum().item() for gpu in range(4))
    there_and_back_twice = 4 * 16 * 8  # bytes of a row in fp64, forward and backward
    assert sum(links.sent) == away * there_and_back_twice
    m = replace(SMALL, layers=1, width=16, mixture=mixture)
    at_most = accountant.expert_parallel_bytes(m, 4, 50, "fp64", "fp64")
    assert at_most == 4 * 50 * 3 * there_and_back_twice
    assert sum(links.sent) < at_most


def test_if_all_experts_are_on_one_gpu_nothing_is_sent():
    experts = shared_layers.drawn_experts(
        16, Mixture(experts=4, used=2, inner=6), torch.Generator().manual_seed(0)
    )
    links = Links(1)
    shared_layers.run_expert_parallel(experts, [torch.randn(5, 16)], links)
    assert links.sent == [0]


# What the notebook says in words.


def test_what_deepseek_reports_lies_between_the_peaks_of_two_formats():
    """ArXiv 2412.19437, section 3.2.1: "approximately 1:1"."""
    m = known("deepseek-v3")
    assert m.layers - m.mixture.dense_layers == 58
    # A row crosses the network four times at most, there in fp8 and back in bf16: 1 + 2 bytes.
    sent = 2 * 58 * 4096 * 4 * m.width * (1 + 2)
    products_s = accountant.sequence_flops(m, 4096, 0) / accountant.PEAK
    ratio = products_s / (sent / 50e9)
    assert ratio / 2 < 1 < ratio  # the peak of fp8 is twice that of bf16


@pytest.mark.parametrize("causal", [False, True])
def test_a_long_sequence_of_llama_sends_for_less_than_a_tenth_of_its_products(causal):
    """ArXiv 2407.21783, table 4: 131,072 tokens on 16 GPUs. The overhead is called negligible."""
    m = predict.MODELS["Llama 3.1 405B"]
    assert m.kv_heads * m.head_width == 1024
    sent = accountant.context_parallel_bytes(m, 1, 131_072, "bf16", 16)
    flops = 3 * accountant.active_forward_flops(m, 1, 131_072, causal)
    products_s = flops / 16 / (0.5 * accountant.PEAK)
    assert sent / 50e9 < 0.1 * products_s


def test_the_two_ways_to_count_scores_differ_by_an_eighth_for_deepseek():
    m = known("deepseek-v3")
    both = [accountant.active_forward_flops(m, 1, 4096, causal) for causal in (False, True)]
    assert both[0] / both[1] == pytest.approx(9 / 8, rel=0.005)
    # Of Llama 3.1 405B, arXiv 2505.09343 has 2,448 GFLOP.
    dense = predict.MODELS["Llama 3.1 405B"]
    counted = 3 * accountant.active_forward_flops(dense, 1, 4096, causal=True) / 4096
    assert counted / 2448e9 == pytest.approx(1.01, abs=0.002)


# Tokens, layers, heads, inner width, billions of parameters, MWh: arXiv 2302.13971, tables 2, 15.
LLAMAS = [
    (1.0e12, 32, 32, 11_008, 6.7, 36),
    (1.0e12, 40, 40, 13_824, 13.0, 59),
    (1.4e12, 60, 52, 17_920, 32.5, 233),
    (1.4e12, 80, 64, 22_016, 65.2, 449),
]


@pytest.mark.parametrize(("tokens", "layers", "heads", "inner", "billions", "mwh"), LLAMAS)
def test_llamas_needed_less_energy_than_at_a_share_of_two_fifths(
    tokens, layers, heads, inner, billions, mwh
):
    sizes = {"layers": layers, "heads": heads, "kv_heads": heads, "width": 128 * heads}
    m = replace(known("llama-2-13b"), inner=inner, **sizes)
    assert accountant.parameters(m) == pytest.approx(billions * 1e9, rel=0.006)
    flops = tokens * accountant.sequence_flops(m, 2048, 0) / 2048
    hours = 24 * accountant.days(flops, 1, 312e12, 0.4)
    predicted = accountant.energy_kwh(hours, 400, 1.1) / 1000
    assert 0.7 < mwh / predicted < 0.9


def test_the_four_final_runs_are_less_than_a_third_of_the_energy_of_developing_them():
    """ArXiv 2302.13971, section 6: developing all of them took 2,638 MWh."""
    assert sum(mwh for *_, mwh in LLAMAS) < 2638 / 3


def test_tokens_a_day_and_gpu_hours_of_deepseek_agree():
    """ArXiv 2505.09343, table 4, and arXiv 2412.19437, table 1."""
    hours = 14.8e12 / 272.80e9 * 24 * 2048
    assert hours == pytest.approx(2.664e6, rel=0.002)
