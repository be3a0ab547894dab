"""What the accountant says, against torch, sums of parts, and tables written out by hand."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils.chapters import by_torch
from course_utils.core import accountant, measure, predict
from course_utils.core.accountant import Model
from course_utils.subjects import models

NAMES = ("query", "key", "value", "out", "up", "down", "gate")
YES_NO = st.booleans()
BATCHES = st.integers(1, 3)
SEQUENCES = st.integers(1, 8)
RECIPES = st.sampled_from(["bf16 adamw", "bf16+master adamw, fp32 gradients"])


@st.composite
def described(draw: st.DrawFn) -> Model:
    """Any small model that a `Model` can describe, with any heads and any biases."""
    kv_heads = draw(st.integers(1, 3))
    queries_a_key = draw(st.integers(1, 3))
    gated = draw(YES_NO)
    names = NAMES if gated else NAMES[:-1]
    return Model(
        layers=draw(st.integers(1, 4)),
        width=draw(st.integers(1, 20)),
        heads=kv_heads * queries_a_key,
        kv_heads=kv_heads,
        head_width=draw(st.sampled_from([2, 4, 6])),
        inner=draw(st.integers(1, 30)),
        vocabulary=draw(st.integers(1, 40)),
        context=draw(st.integers(8, 12)),
        gated=gated,
        biases=tuple(name for name in names if draw(YES_NO)),
        norm_vectors=draw(st.sampled_from([1, 2])),
        head_norms=draw(YES_NO),
        learned_positions=draw(YES_NO),
        tied=draw(YES_NO),
    )


@given(described())
def test_torch_builds_every_model_with_the_accountants_matrices_and_parameters(m):
    built = by_torch.model(m)
    shape = predict.shape_of(m)
    assert by_torch.matrices(m) == accountant.matrices(m)
    assert numbers_in(built) == accountant.parameters(m)
    assert shape.parameters == accountant.parameters(m)
    assert shape.parameters_by_part.total == accountant.parameters(m)
    assert shape.parameters_of_a_layer == numbers_in(built.blocks[0])
    assert shape.tensors == len(list(built.parameters()))


def numbers_in(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@settings(max_examples=30)
@given(described(), BATCHES, SEQUENCES)
def test_torch_multiplies_as_the_accountant_counts_and_so_do_the_timelines_operations(
    m, batch, sequence
):
    counted = by_torch.step(m, batch, sequence).flops
    assert counted["forward"] == accountant.forward_flops(m, batch, sequence)
    assert counted.total == accountant.step_flops(m, batch, sequence, 0)
    step = predict.timeline(m, batch, sequence, fused=False).operations
    assert sum(operation.flops for operation in step) == counted.total


def statistics_bytes(m: Model, tokens: int, dtype: str) -> int:
    """LayerNorm's mean and deviation of each row, which the accountant counts as the rest."""
    if m.norm_vectors == 1:
        return 0
    rows = 2
    if m.head_norms:
        rows += m.heads + m.kv_heads
    return tokens * rows * 2 * accountant.BYTES[dtype]


@settings(max_examples=30)
@given(described(), BATCHES, SEQUENCES, st.sampled_from(["fp32", "bf16"]))
def test_what_a_layer_keeps_by_its_parts_is_what_the_accountant_says_and_torch_keeps(
    m, batch, sequence, dtype
):
    kernels = {"fused": True, "fused_norm": True}

    def kept(layers: int) -> int:
        shape = replace(predict.shape_of(m), layers=layers)
        return shape.activation_bytes(batch, sequence, dtype=dtype, **kernels).total

    layer = accountant.layer_bytes(m, batch, sequence, dtype)
    assert kept(3) - kept(2) == layer + statistics_bytes(m, batch * sequence, dtype)
    network = models.Transformer(m, **kernels, dtype=measure.DTYPES[dtype])
    ids = torch.zeros(batch, sequence, dtype=torch.int64)
    by_torch = measure.saved_bytes(lambda: network(ids), exclude=network.parameters())
    assert by_torch == kept(m.layers)


@settings(max_examples=30)
@given(described(), RECIPES, YES_NO)
def test_a_timeline_ends_with_the_accountants_state_in_each_stage(m, recipe, accumulate):
    numbers = accountant.parameters(m)
    parts = accountant.recipe(recipe)
    for stage in range(4):
        state = accountant.state_bytes(numbers, parts, 3, stage)
        state["optimizer"] += 4 * predict.shape_of(m).tensors  # a counter of steps for each
        step = predict.timeline(
            m,
            batch=1,
            sequence=4,
            recipe=recipe,
            machines=3,
            stage=stage,
            accumulate=accumulate,
        )
        *_, update, _ = step.operations
        for part, nbytes in state.items():
            assert getattr(update.during, part) == nbytes


def test_a_parameters_bytes_in_each_recipe_are_these():
    found = {}
    for name, recipe in predict.RECIPES.items():
        found[name] = [*recipe.bytes_by_part.values()]
    assert found == {  # parameters, gradients, optimizer, master
        "fp32 sgd": [4, 4, 0, 0],
        "fp32 momentum": [4, 4, 4, 0],
        "fp32 adagrad": [4, 4, 4, 0],
        "fp32 rmsprop": [4, 4, 4, 0],
        "fp32 adamw": [4, 4, 8, 0],
        "fp32 amsgrad": [4, 4, 12, 0],
        "bf16 adamw": [2, 2, 4, 0],
        "bf16+master adamw": [2, 2, 8, 4],
        "bf16+master adamw, fp32 gradients": [2, 4, 8, 4],
        "bf16+master adamw, gradients twice": [2, 6, 8, 4],
    }
    assert {*predict.training.split_in(0)} == set()
    assert {*predict.training.split_in(1)} == {"optimizer", "master"}
    assert {*predict.training.split_in(2)} == {"optimizer", "master", "gradients"}
    assert {*predict.training.split_in(3)} == {"optimizer", "master", "gradients", "parameters"}


# Layers, width, heads, vocabulary and context; and the width inside the feed-forward.
GPT_SIZES = {
    "GPT-2 small": (12, 768, 12, 50_257, 1024),
    "GPT-2 medium": (24, 1024, 16, 50_257, 1024),
    "GPT-2 large": (36, 1280, 20, 50_257, 1024),
    "GPT-2 XL": (48, 1600, 25, 50_257, 1024),
    "GPT-3": (96, 12_288, 96, 50_257, 2048),
}
LLAMA_SIZES = {
    "Llama 3 8B": (32, 4096, 32, 128_256, 8192, 14_336),
    "Llama 3 70B": (80, 8192, 64, 128_256, 8192, 28_672),
    "Llama 3.1 405B": (126, 16_384, 128, 128_256, 8192, 53_248),
}
LLAMA = {
    "biases": False,
    "learned_positions": False,
    "tied_output": False,
    "kv_heads": 8,
    "gated": True,
    "rms_norm": True,
    "rotary": True,
}


def test_published_models_have_the_sizes_that_their_papers_print():
    """By `Transformer`, because other material relies on the order of its arguments."""
    shapes = {}
    for name, sizes in GPT_SIZES.items():
        shapes[name] = predict.Transformer(*sizes)
    for name, sizes in LLAMA_SIZES.items():
        shapes[name] = predict.Transformer(*sizes, **LLAMA)
    assert shapes == predict.MODELS


WRONG = [
    ({"biases": ("query", "gate")}, "some of query, key, value, out, up, down; got"),
    ({"biases": True}, "some of query, key, value, out, up, down; got True"),
    ({"norm_vectors": 3}, "LayerNorm has that one, or a bias as well, two. Got norm_vectors 3"),
    ({"rms_norm": True}, "RMSNorm has one vector, a weight; .* Got norm_vectors 2"),
    ({"heads": 0}, "0 is not one of 12"),
    ({"inner": -1}, "inner is a size, a whole number from 0 up; got -1"),
]


@pytest.mark.parametrize(("changed", "said"), WRONG)
def test_a_shape_that_no_model_has_gets_a_sentence(changed, said):
    with pytest.raises(ValueError, match=said):
        replace(predict.MODELS["GPT-2 small"], **changed)
