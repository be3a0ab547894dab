"""Every closed form against loops that count or torch that runs it; data sheets against themselves. Einsums have their own file."""

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
H100 = MACHINES["H100 SXM"]
TORCH_DTYPES = {
    **measure.DTYPES,
    **{name: getattr(torch, name) for name in ("int64", "int32", "int8", "bool")},
    **dict.fromkeys(("tf32", "xf32"), torch.float32),  # ways to multiply what is stored as fp32
    "fp8": torch.float8_e4m3fn,
}


# Bytes and FLOPs of one tensor, one product.


@given(st.lists(size, max_size=4), st.sampled_from(list(predict.DTYPE_BYTES)))
def test_a_tensors_bytes_are_those_that_torch_takes(shape, dtype):
    assert (
        predict.tensor_bytes(shape, dtype) == torch.empty(shape, dtype=TORCH_DTYPES[dtype]).nbytes
    )


@given(size, size, size)
def test_matmul_flops_are_what_three_loops_count(b, d, k):
    counted = 0
    for _ in itertools.product(range(b), range(k), range(d)):
        counted += 1  # a product
        counted += 1  # added to the sum
    assert predict.matmul_flops(b, d, k) == counted


@given(size, size, size, st.sampled_from(["fp64", "fp32", "bf16"]))
def test_matmul_bytes_are_those_of_both_operands_and_the_result(b, d, k, dtype):
    x, w = (torch.zeros(shape, dtype=TORCH_DTYPES[dtype]) for shape in ((b, d), (d, k)))
    assert predict.matmul_bytes(b, d, k, dtype) == x.nbytes + w.nbytes + (x @ w).nbytes


# Models, against torch.


@settings(max_examples=40)
@given(st.integers(1, 5), st.lists(st.integers(1, 9), min_size=2, max_size=6), st.booleans())
def test_a_network_computes_the_gradients_that_autograd_asks_of_it(batch, widths, input_grad):
    network = models.MLP(widths, biases=True)
    x, out = torch.randn(batch, widths[0], requires_grad=input_grad), []
    counted = {"forward": measure.flops(lambda: out.append(network(x).sum())).total}
    counted["backward"] = measure.flops(out[0].backward).total
    assert predict.mlp_flops(batch, widths, input_grad=input_grad) == counted


@st.composite
def shapes(draw):
    """GPT's, Llama's, and everything between the two."""
    kv_heads, shared, rotary = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.booleans())
    head = draw(st.integers(1, 4)) * (2 if rotary else 1)
    return predict.Transformer(
        draw(st.integers(0, 2)),
        kv_heads * shared * head,
        kv_heads * shared,
        draw(st.integers(1, 9)),
        8,
        draw(st.none() | st.integers(1, 9)),
        *(draw(st.booleans()) for _ in range(3)),
        kv_heads=draw(st.just(kv_heads) | st.none()) if shared == 1 else kv_heads,
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
        targets = (ids + 0).flatten()  # not the model's own input
        return (
            functional.cross_entropy(logits.float().flatten(0, 1), targets) if with_loss else logits
        )

    ledger = shape.activation_bytes(batch, sequence, dtype=dtype, **options, loss=with_loss)
    assert ledger.total == measure.saved_bytes(forward, exclude=network.parameters())


SMALL = predict.Transformer(layers=2, width=16, heads=2, vocabulary=11, context=8)


def test_recomputing_runs_the_layers_once_more_and_not_the_output():
    ledger = SMALL.training_flops(2, 8, recompute=True)
    with set_checkpoint_early_stop(
        False
    ):  # to the end of each layer; torch would leave out its last product
        result = models.Transformer(SMALL, recompute=True)(torch.zeros(2, 8, dtype=torch.int64))
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


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 64), st.floats(0.01, 1))
def test_mfu_is_the_share_with_which_training_took_so_long(parameters, tokens, count, share):
    seconds = predict.training_days(parameters, tokens, H100, count, share) * 86_400
    assert math.isclose(predict.mfu(6 * parameters * tokens, seconds, H100, count), share)


def summed_by_a_ring(numbers, machines):
    """What all machines send: each passes a part on until all parts are summed, and again until all have the sums."""
    return sum(
        numbers / machines for _ in range(2) for _ in range(machines - 1) for _ in range(machines)
    )


def test_a_runs_days_by_part_are_what_its_tokens_take_in_multiplications_in_tensors_and_in_sums():
    name, h, kv, f, layers, s = "Llama 3 8B", 4096, 1024, 14336, 32, 8192
    reached = {"products": (0.5, 0.8), "attention": (0.7, 0.35), "step_mfu": 0.2, "running": 0.9}
    days = predict.days_by_part(predict.MODELS[name], 10 * 86_400e9, H100, 10, **reached)
    least, most = (
        {part: n / 1e9 for part, n in one.items()} for one in days
    )  # seconds of a token on one machine
    square, inner, pair = (
        2 * h * h + 2 * h * kv,
        3 * h * f,
        2 * s * h / 989.5e12,
    )  # of a product of all pairs
    weights = 3 * 2 * (layers * (square + inner) + 128256 * h) / 989.5e12
    assert most["FLOPs at the peak"] == pytest.approx(weights + layers * 3 * 2 * pair)
    assert [one["products below the peak"] for one in (least, most)] == pytest.approx(
        [weights / 4, weights]
    )
    kernel = (
        layers * (2 + 5) * pair / 2
    )  # forward, backward with the scores again; half of the pairs
    beyond = [kernel / share - layers * 6 * pair for share in (0.7, 0.35)]
    assert [one["attention's kernel"] for one in (least, most)] == pytest.approx(beyond)
    normalised, rotated, gated = (
        2 * [h] * 4,
        [h, h, kv, kv],
        [f, f, f],
    )  # tensors that are read or written
    moved = 3 * layers * 2 * sum(normalised + rotated + gated)
    assert (
        least["passes over memory"] == most["passes over memory"] == pytest.approx(moved / 3.35e12)
    )
    assert most["sending"] == pytest.approx(4 * layers * 2 * summed_by_a_ring(h, 8) / 450e9)
    steps = [sum(one.values()) - one["pauses"] for one in (least, most)]
    assert steps == pytest.approx([most["FLOPs at the peak"] / 0.2] * 2)
    assert most["pauses"] == pytest.approx(steps[1] / 9)
    assert (least["sending"], least["pauses"]) == (0, 0)


def product_intensity(b, d, k):
    return predict.intensity(predict.matmul_flops(b, d, k), predict.matmul_bytes(b, d, k, "bf16"))


def test_on_an_h100_squares_cross_the_ridge_of_295_at_887_and_layers_of_4096_at_batch_346():
    def limited_by_arithmetic(b, d, k):
        seconds = predict.matmul_seconds(b, d, k, H100, "bf16")
        return seconds == predict.matmul_flops(b, d, k) / H100.peak("bf16")

    assert round(predict.ridge(H100, "bf16"), 1) == 295.4
    assert next(n for n in itertools.count(1) if limited_by_arithmetic(n, n, n)) == 887
    assert next(b for b in itertools.count(1) if limited_by_arithmetic(b, 4096, 4096)) == 346
    assert (
        product_intensity(886, 886, 886)
        < predict.ridge(H100, "bf16")
        < product_intensity(887, 887, 887)
    )


@given(*[st.integers(1, 5000)] * 3)
def test_the_roofline_is_the_slower_of_both_limits(b, d, k):
    limits = 2 * b * d * k / 989.5e12, 2 * (b * d + d * k + b * k) / 3.35e12
    assert predict.matmul_seconds(b, d, k, H100, "bf16") == pytest.approx(max(limits), rel=1e-12)


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
    most = max(len(part) for part in np.array_split(np.arange(parameters), machines))
    split = {
        "optimizer": stage > 0,
        "master": stage > 0,
        "gradients": stage > 1,
        "parameters": stage > 2,
    }
    ledger = predict.training_bytes(parameters, recipe, machines=machines, stage=stage)
    for part, nbytes in predict.RECIPES[recipe].bytes_by_part.items():
        assert ledger[part] == nbytes * (most if split[part] else parameters)


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

    assert held(most - machines) <= machine.bytes < held(most + machines)  # a share is rounded up


# Data sheets.


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_every_machine_has_a_source_and_sparse_rates_are_twice_its_dense_ones(machine):
    assert machine.has_data_sheet
    assert len(machine.source) > 20
    assert set(machine.sparse_flop_per_sec) <= set(machine.peak_flop_per_sec)
    for dtype, sparse in machine.sparse_flop_per_sec.items():
        # L40S: "362.05 | 733" is how it is printed. The others differ by rounding.
        tolerance = (
            0.013 if (machine.name, dtype) in {("L40S", "bf16"), ("L40S", "fp16")} else 0.002
        )
        assert sparse == pytest.approx(2 * machine.peak(dtype), rel=tolerance)
    assert machine.bytes > 10**9
    assert 10**11 < machine.bytes_per_sec < 10**13


def test_an_h100s_dense_peak_is_what_its_units_can_do():
    assert H100.peak("bf16") == 989.5e12
    multiply_adds_per_sec = (
        132 * 4 * 512 * 1.83e9
    )  # multiprocessors × tensor cores × multiply-adds × clock
    assert H100.peak("bf16") == pytest.approx(2 * multiply_adds_per_sec, rel=0.001)
