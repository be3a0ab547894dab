"""Closed forms against loops that count, or torch that runs them; data sheets against themselves.

Einsums have a file of their own.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional
from torch.utils.checkpoint import set_checkpoint_early_stop

from course_utils.core import measure, predict
from course_utils.core.datasheets import MACHINES
from course_utils.subjects import models

size = st.integers(0, 6)
large_size = st.integers(1, 5000)
H100 = MACHINES["H100 SXM"]
TORCH_DTYPES = {
    **measure.DTYPES,
    "tf32": torch.float32,  # stored as fp32, and so is xf32
    "xf32": torch.float32,
    "fp8": torch.float8_e4m3fn,
    "int64": torch.int64,
    "int32": torch.int32,
    "int8": torch.int8,
    "bool": torch.bool,
}


# Bytes and FLOPs of one tensor, one product.


@given(st.lists(size, max_size=4), st.sampled_from(list(predict.DTYPE_BYTES)))
def test_a_tensors_bytes_are_those_that_torch_takes(shape, dtype):
    tensor = torch.empty(shape, dtype=TORCH_DTYPES[dtype])
    assert predict.tensor_bytes(shape, dtype) == tensor.nbytes


@given(size, size, size)
def test_matmul_flops_are_what_three_loops_count(b, d, k):
    counted = 0
    for _ in itertools.product(range(b), range(k), range(d)):
        counted += 1  # a product
        counted += 1  # added to the sum
    assert predict.matmul_flops(b, d, k) == counted


@given(size, size, size, st.sampled_from(["fp64", "fp32", "bf16"]))
def test_matmul_bytes_are_those_of_both_operands_and_the_result(b, d, k, dtype):
    x = torch.zeros(b, d, dtype=TORCH_DTYPES[dtype])
    w = torch.zeros(d, k, dtype=TORCH_DTYPES[dtype])
    result = x @ w
    assert predict.matmul_bytes(b, d, k, dtype) == x.nbytes + w.nbytes + result.nbytes


# Models, against torch.


@settings(max_examples=40)
@given(
    batch=st.integers(1, 5),
    widths=st.lists(st.integers(1, 9), min_size=2, max_size=6),
    input_grad=st.booleans(),
)
def test_a_network_computes_the_gradients_that_autograd_asks_of_it(batch, widths, input_grad):
    network = models.MLP(widths, biases=True)
    x = torch.randn(batch, widths[0], requires_grad=input_grad)
    sums = []

    def forward():
        sums.append(network(x).sum())

    counted = {"forward": measure.flops(forward).total}
    counted["backward"] = measure.flops(sums[0].backward).total
    assert predict.mlp_flops(batch, widths, input_grad=input_grad) == counted


@st.composite
def shapes(draw):
    """GPT's, Llama's, and everything between the two."""
    kv_heads = draw(st.integers(1, 2))
    queries_a_key = draw(st.integers(1, 2))
    heads = kv_heads * queries_a_key
    rotary = draw(st.booleans())
    head_width = draw(st.integers(1, 4))
    if rotary:
        head_width *= 2
    said_kv_heads = st.just(kv_heads)
    if queries_a_key == 1:
        said_kv_heads |= st.none()
    return predict.Transformer(
        layers=draw(st.integers(0, 2)),
        width=heads * head_width,
        heads=heads,
        vocabulary=draw(st.integers(1, 9)),
        context=8,
        feed_forward=draw(st.none() | st.integers(1, 9)),
        biases=draw(st.booleans()),
        learned_positions=draw(st.booleans()),
        tied_output=draw(st.booleans()),
        kv_heads=draw(said_kv_heads),
        gated=draw(st.booleans()),
        rms_norm=draw(st.booleans()),
        rotary=rotary,
    )


@settings(max_examples=50)
@given(
    shapes(),
    st.integers(1, 3),
    st.integers(1, 8),
    st.sampled_from(["fp64", "fp32", "fp16", "bf16"]),
    st.fixed_dictionaries({"fused": st.booleans(), "recompute": st.booleans()}),
    st.booleans(),
)
def test_activation_bytes_are_those_that_autograd_keeps(
    shape, batch, sequence, dtype, options, with_loss
):
    network = models.Transformer(shape, **options, dtype=TORCH_DTYPES[dtype])
    ids = torch.randint(shape.vocabulary, (batch, sequence))

    def forward():
        logits = network(ids)
        if not with_loss:
            return logits
        targets = ids.clone().flatten()  # a storage of its own
        return functional.cross_entropy(logits.float().flatten(0, 1), targets)

    ledger = shape.activation_bytes(batch, sequence, dtype=dtype, **options, loss=with_loss)
    assert ledger.total == measure.saved_bytes(forward, exclude=network.parameters())


SMALL = predict.Transformer(layers=2, width=16, heads=2, vocabulary=11, context=8)


def test_recomputing_runs_the_layers_once_more_and_not_the_output():
    ledger = SMALL.training_flops(2, 8, recompute=True)
    network = models.Transformer(SMALL, recompute=True)
    ids = torch.zeros(2, 8, dtype=torch.int64)
    # To the end of each layer: torch would leave out a layer's last product.
    with set_checkpoint_early_stop(False):
        result = network(ids)
        counted = measure.flops(result.sum().backward).total
    assert counted == ledger["backward"] + ledger["recompute"]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [  # as published with their weights
        ("GPT-2 small", 124_439_808),
        ("GPT-2 medium", 354_823_168),
        ("GPT-2 large", 774_030_080),
        ("GPT-2 XL", 1_557_611_200),
        ("Llama 3 8B", 8_030_261_248),
        ("Llama 3 70B", 70_553_706_496),
        ("Llama 3.1 405B", 405_853_388_800),
    ],
)
def test_models_have_as_many_parameters_as_published(name, parameters):
    assert predict.MODELS[name].parameters == parameters


# Rates and times.


@given(
    parameters=st.integers(1, 10**6),
    tokens=st.integers(1, 10**6),
    count=st.integers(1, 64),
    share=st.floats(0.01, 1),
)
def test_mfu_is_the_share_with_which_training_took_so_long(parameters, tokens, count, share):
    seconds = predict.training_days(parameters, tokens, H100, count, share) * 86_400
    flops = 6 * parameters * tokens
    assert math.isclose(predict.mfu(flops, seconds, H100, count), share)


def sent_by_a_ring(numbers, machines):
    """Numbers that all machines send to sum so many.

    Each machine passes a part on until all parts are summed, and again until all have the sums.
    """
    sent = 0
    for _ in ("summed", "handed round"):
        for _ in range(machines - 1):
            for _ in range(machines):
                sent += numbers / machines
    return sent


# The sizes of Llama 3 8B, and an H100's FLOP/s.
WIDTH = 4096
KEYS = 1024
INNER = 14_336
LAYERS = 32
SEQUENCE = 8192
VOCABULARY = 128_256
PEAK = 989.5e12


def days_by_part_of_llama_3_8b():
    """Seconds of a machine for a token: the shortest and the longest estimate of each part.

    Each machine has 86,400 billion tokens. So a day is a billionth of a second for each of them.
    """
    estimates = predict.days_by_part(
        predict.MODELS["Llama 3 8B"],
        tokens=10 * 86_400e9,
        machine=H100,
        count=10,
        products=(0.5, 0.8),
        attention=(0.7, 0.35),
        step_mfu=0.2,
        running=0.9,
    )
    return [{part: days / 1e9 for part, days in estimate.items()} for estimate in estimates]


def test_a_runs_days_of_products_are_those_of_its_multiplications():
    shortest, longest = days_by_part_of_llama_3_8b()
    square = 2 * WIDTH * WIDTH + 2 * WIDTH * KEYS
    inner = 3 * WIDTH * INNER
    weights_s = 3 * 2 * (LAYERS * (square + inner) + VOCABULARY * WIDTH) / PEAK
    pairs_s = LAYERS * 2 * SEQUENCE * WIDTH / PEAK  # of one product of all pairs
    assert longest["FLOPs at the peak"] == pytest.approx(weights_s + 3 * 2 * pairs_s)
    assert shortest["products below the peak"] == pytest.approx(weights_s / 4)
    assert longest["products below the peak"] == pytest.approx(weights_s)

    kernel_s = (2 + 5) * pairs_s / 2  # forward, backward with the scores again; half of the pairs
    assert shortest["attention's kernel"] == pytest.approx(kernel_s / 0.7 - 6 * pairs_s)
    assert longest["attention's kernel"] == pytest.approx(kernel_s / 0.35 - 6 * pairs_s)


def test_a_runs_days_of_passes_and_sending_are_those_of_its_tensors_and_sums():
    shortest, longest = days_by_part_of_llama_3_8b()
    normalised = 2 * [WIDTH] * 4  # numbers of each tensor that is read or written
    rotated = [WIDTH, WIDTH, KEYS, KEYS]
    gated = [INNER, INNER, INNER]
    moved_bytes = 3 * LAYERS * 2 * sum([*normalised, *rotated, *gated])
    assert shortest["passes over memory"] == pytest.approx(moved_bytes / 3.35e12)
    assert longest["passes over memory"] == pytest.approx(moved_bytes / 3.35e12)

    sent_bytes = 4 * LAYERS * 2 * sent_by_a_ring(WIDTH, machines=8)
    assert shortest["sending"] == 0
    assert longest["sending"] == pytest.approx(sent_bytes / 450e9)


def test_a_runs_days_make_up_its_steps_and_its_pauses():
    shortest, longest = days_by_part_of_llama_3_8b()
    steps_s = longest["FLOPs at the peak"] / 0.2
    assert sum(shortest.values()) == pytest.approx(steps_s)
    assert shortest["pauses"] == 0
    assert sum(longest.values()) - longest["pauses"] == pytest.approx(steps_s)
    assert longest["pauses"] == pytest.approx(steps_s / 9)


def product_intensity(b, d, k):
    flops = predict.matmul_flops(b, d, k)
    nbytes = predict.matmul_bytes(b, d, k, "bf16")
    return predict.intensity(flops, nbytes)


def limited_by_arithmetic(b, d, k):
    seconds = predict.matmul_seconds(b, d, k, H100, "bf16")
    return seconds == predict.matmul_flops(b, d, k) / H100.peak("bf16")


def test_on_an_h100_squares_cross_the_ridge_of_295_at_887_and_layers_of_4096_at_batch_346():
    ridge = predict.ridge(H100, "bf16")
    assert round(ridge, 1) == 295.4
    for n in (885, 886, 887, 888):
        assert limited_by_arithmetic(n, n, n) == (n >= 887)
    for batch in (344, 345, 346, 347):
        assert limited_by_arithmetic(batch, 4096, 4096) == (batch >= 346)
    assert product_intensity(886, 886, 886) < ridge
    assert product_intensity(887, 887, 887) > ridge


@given(large_size, large_size, large_size)
def test_the_roofline_is_the_slower_of_both_limits(b, d, k):
    compute_s = 2 * b * d * k / 989.5e12
    memory_s = 2 * (b * d + d * k + b * k) / 3.35e12
    roof_s = max(compute_s, memory_s)
    assert predict.matmul_seconds(b, d, k, H100, "bf16") == pytest.approx(roof_s, rel=1e-12)


# What training keeps.


@given(
    st.integers(0, 50),
    st.integers(1, 8),
    st.sampled_from(list(predict.RECIPES)),
    st.sampled_from([0, 1, 2, 3]),
)
def test_zero_gives_each_machine_its_part_of_what_a_stage_splits(
    parameters, machines, recipe, stage
):
    shares = np.array_split(np.arange(parameters), machines)
    largest_share = max(len(share) for share in shares)
    is_split = {
        "optimizer": stage > 0,
        "master": stage > 0,
        "gradients": stage > 1,
        "parameters": stage > 2,
    }
    ledger = predict.training_bytes(parameters, recipe, machines=machines, stage=stage)
    for part, nbytes in predict.RECIPES[recipe].bytes_by_part.items():
        numbers = largest_share if is_split[part] else parameters
        assert ledger[part] == numbers * nbytes


@given(
    st.sampled_from(list(MACHINES.values())),
    st.integers(1, 5000),
    st.sampled_from(list(predict.RECIPES)),
    st.integers(0, 3),
)
def test_the_largest_model_of_a_stage_fits_and_one_a_little_larger_does_not(
    machine, machines, recipe, stage
):
    most = predict.largest_model(machine, machines, recipe, stage=stage)

    def held(parameters):
        return predict.training_bytes(parameters, recipe, machines=machines, stage=stage).total

    # A machine's share is rounded up, so what matters is a parameter more on each of them.
    assert held(most - machines) <= machine.bytes
    assert held(most + machines) > machine.bytes


# Data sheets.


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_every_machine_has_a_source_and_sparse_rates_are_twice_its_dense_ones(machine):
    assert machine.has_data_sheet
    assert len(machine.source) > 20
    assert set(machine.sparse_flop_per_sec) <= set(machine.peak_flop_per_sec)
    for dtype, sparse in machine.sparse_flop_per_sec.items():
        tolerance = 0.002  # the sheets round
        if machine.name == "L40S" and dtype in ("bf16", "fp16"):
            tolerance = 0.013  # "362.05 | 733" is what the sheet prints
        assert sparse == pytest.approx(2 * machine.peak(dtype), rel=tolerance)
    assert machine.bytes > 10**9
    assert 10**11 < machine.bytes_per_sec < 10**13


def test_an_h100s_dense_peak_is_what_its_units_can_do():
    assert H100.peak("bf16") == 989.5e12
    tensor_cores = 132 * 4  # four in each multiprocessor
    clock_hz = 1.83e9
    multiply_adds_per_sec = tensor_cores * 512 * clock_hz
    assert H100.peak("bf16") == pytest.approx(2 * multiply_adds_per_sec, rel=0.001)
