"""What the accountant says, against what can be held beside it: torch, sums of parts, and tables written out by hand."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.chapters import by_torch
from course_utils.core import accountant, measure, predict
from course_utils.core.accountant import Model
from course_utils.subjects import models

NAMES = ("query", "key", "value", "out", "up", "down", "gate")
YES_NO = st.booleans()


@st.composite
def described(draw: st.DrawFn) -> Model:
    """Any small model that a `Model` can describe: whichever matrices have a bias, whatever its heads."""
    kv_heads, shared, gated = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(YES_NO)
    names = NAMES if gated else NAMES[:-1]
    return Model(
        layers=draw(st.integers(1, 4)),
        width=draw(st.integers(1, 20)),
        heads=kv_heads * shared,
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
    tensors, shape = list(built.parameters()), predict.shape_of(m)
    assert by_torch.matrices(m) == accountant.matrices(m)
    assert sum(p.numel() for p in tensors) == accountant.parameters(m)
    assert shape.parameters_by_part.total == shape.parameters == accountant.parameters(m)
    assert sum(p.numel() for p in built.blocks[0].parameters()) == shape.parameters_of_a_layer
    assert len(tensors) == shape.tensors


@settings(max_examples=30)
@given(described(), st.integers(1, 3), st.integers(1, 8))
def test_torch_multiplies_as_the_accountant_counts_and_so_do_the_timelines_operations(
    m, batch, sequence
):
    counted = by_torch.step(m, batch, sequence).flops
    assert counted["forward"] == accountant.forward_flops(m, batch, sequence)
    assert counted.total == accountant.step_flops(m, batch, sequence, 0)
    step = predict.timeline(m, batch, sequence, fused=False).operations
    assert sum(one.flops for one in step) == counted.total


@settings(max_examples=30)
@given(described(), st.integers(1, 3), st.integers(1, 8), st.sampled_from(["fp32", "bf16"]))
def test_what_a_layer_keeps_by_its_parts_is_what_the_accountant_says_and_torch_keeps(
    m, batch, sequence, dtype
):
    ways = {"fused": True, "fused_norm": True}

    def kept(layers: int) -> int:
        of = replace(predict.shape_of(m), layers=layers)
        return of.activation_bytes(batch, sequence, dtype=dtype, **ways).total

    def statistics() -> int:
        """LayerNorm's mean and deviation of each row, which the accountant counts as the rest."""
        rows = 2 + m.head_norms * (m.heads + m.kv_heads)
        return 0 if m.norm_vectors == 1 else batch * sequence * rows * 2 * accountant.BYTES[dtype]

    layer = accountant.layer_bytes(m, batch, sequence, dtype) + statistics()
    assert kept(3) - kept(2) == layer
    network = models.Transformer(m, **ways, dtype=measure.DTYPES[dtype])
    ids = torch.zeros(batch, sequence, dtype=torch.int64)
    assert measure.saved_bytes(lambda: network(ids), exclude=network.parameters()) == kept(m.layers)


@settings(max_examples=30)
@given(described(), st.sampled_from(["bf16 adamw", "bf16+master adamw, fp32 gradients"]), YES_NO)
def test_a_timeline_ends_with_the_accountants_state_in_each_stage(m, recipe, accumulate):
    for stage in range(4):
        where = {"recipe": recipe, "machines": 3, "stage": stage, "accumulate": accumulate}
        held = predict.timeline(m, 1, 4, **where).operations[-2].during._asdict()
        state = accountant.state_bytes(
            accountant.parameters(m), accountant.recipe(recipe), 3, stage
        )
        state["optimizer"] += 4 * predict.shape_of(m).tensors  # a counter of steps for each
        assert {part: held[part] for part in state} == state


def test_a_parameters_bytes_in_each_recipe_are_these():
    parts = {name: [*recipe.bytes_by_part.values()] for name, recipe in predict.RECIPES.items()}
    assert parts == {  # parameters, gradients, optimizer, master
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
    split = [predict.training.split_in(stage) for stage in range(4)]
    assert [{*parts} for parts in split] == [
        set(),
        {"optimizer", "master"},
        {"optimizer", "master", "gradients"},
        {"optimizer", "master", "gradients", "parameters"},
    ]


def test_published_models_have_the_sizes_that_their_papers_print():
    """By `Transformer`, whose names and order other material relies on."""
    llama = {"biases": False, "learned_positions": False, "tied_output": False, "kv_heads": 8}
    llama |= {"gated": True, "rms_norm": True, "rotary": True}
    sizes = {
        "Llama 3 8B": (32, 4096, 32, 128_256, 8192, 14_336),
        "Llama 3 70B": (80, 8192, 64, 128_256, 8192, 28_672),
        "Llama 3.1 405B": (126, 16_384, 128, 128_256, 8192, 53_248),
    }
    by_hand = {name: predict.Transformer(*each, **llama) for name, each in sizes.items()}
    gpts = {
        "GPT-2 small": (12, 768, 12),
        "GPT-2 medium": (24, 1024, 16),
        "GPT-2 large": (36, 1280, 20),
    }
    gpts |= {"GPT-2 XL": (48, 1600, 25), "GPT-3": (96, 12_288, 96)}
    for name, (layers, width, heads) in gpts.items():
        context = 2048 if name == "GPT-3" else 1024
        by_hand[name] = predict.Transformer(layers, width, heads, 50_257, context)
    assert by_hand == predict.MODELS


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
