"""A mixture's training step, to the byte at each operation, for whatever the router picks."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.core import accountant, measure, predict
from course_utils.core.accountant import Mixture
from course_utils.core.predict.passes import operations
from course_utils.core.predict.step_config import even_tokens
from course_utils.subjects import models
from course_utils.subjects.child_processes import transformers
from tests.core.test_timeline import (
    BATCHES,
    IN_ONE_KERNEL,
    MANY,
    SEGMENTS,
    SEQUENCES,
    WAYS,
    WITHOUT_MASTER,
    YES_NO,
    assert_alike,
    shapes,
)

MADE = models.Transformer


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Products here are small, so a second thread would only wait for its core."""
    with measure.cpu_threads(1):
        yield


@st.composite
def mixtures(draw: st.DrawFn) -> predict.Shape:
    """GPT's and Llama's and everything between them, with experts in some layers or in all."""
    shape = draw(shapes())
    layers = draw(st.integers(1, 5))
    experts = draw(st.sampled_from([1, 2, 3, 6]))
    mixture = Mixture(
        experts=experts,
        used=draw(st.integers(1, experts)),
        inner=draw(st.integers(1, 20)),
        shared_inner=draw(st.sampled_from([0, 0, 5])),
        dense_layers=min(layers, draw(st.sampled_from([0, 0, 1, 2]))),
        router_bias=draw(YES_NO),
    )
    return replace(shape, layers=layers, mixture=mixture)


class Routed:
    """Makes a Transformer that notes how many tokens its routers send to each expert."""

    def __init__(self) -> None:
        self.counts = {}  # by the layer's number and the expert's

    def __call__(self, m: predict.Shape, **options: object) -> models.Transformer:
        model = MADE(m, **options)
        for layer, block in enumerate(model.blocks):
            for number, expert in enumerate(getattr(block.feed_forward, "experts", ())):
                expert.register_forward_pre_hook(partial(self.note, (layer, number)))
        return model

    def note(self, key: tuple[int, int], _: object, inputs: tuple[torch.Tensor]) -> None:
        self.counts[key] = len(inputs[0])

    def routing(self, shape: predict.Shape) -> tuple[tuple[int, ...], ...]:
        layers = range(shape.mixture.dense_layers, shape.layers)
        experts = range(shape.mixture.experts)
        return tuple(tuple(self.counts[layer, one] for one in experts) for layer in layers)


@settings(max_examples=MANY)
@given(
    mixtures(),
    BATCHES,
    SEQUENCES,
    st.sampled_from(IN_ONE_KERNEL),
    st.fixed_dictionaries(WAYS | SEGMENTS),
)
def test_each_operation_of_a_drawn_mixtures_step_holds_what_torch_holds(
    shape, batch, sequence, recipe, ways
):
    """Its routers pick as they will, and the timeline is told how many tokens each expert got."""
    routed = Routed()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "Transformer", routed)
        moments = transformers.step_moments(
            shape, recipe, batch, sequence, real=True, even=False, **ways
        )
    routing = routed.routing(shape)
    step = predict.timeline(shape, batch, sequence, recipe=recipe, routing=routing, **ways)
    ours = step.operations
    if recipe not in WITHOUT_MASTER:
        ours = [operation for operation in ours if operation.phase != "optimizer"]
        moments = moments[: len(ours)]
    assert_alike(ours, moments)


@settings(max_examples=MANY // 2)
@given(
    mixtures(),
    BATCHES,
    SEQUENCES,
    st.sampled_from(WITHOUT_MASTER),
    st.fixed_dictionaries(WAYS | SEGMENTS),
    YES_NO,
)
def test_with_tokens_spread_evenly_real_and_fake_tensors_hold_what_the_timeline_says(
    shape, batch, sequence, recipe, ways, real
):
    moments = transformers.step_moments(shape, recipe, batch, sequence, real=real, **ways)
    step = predict.timeline(shape, batch, sequence, recipe=recipe, **ways)
    assert_alike(step.operations, moments)


@settings(max_examples=MANY)
@given(
    mixtures(),
    BATCHES,
    SEQUENCES,
    st.fixed_dictionaries({**WAYS, **SEGMENTS, "recompute": st.sampled_from(predict.RECOMPUTE)}),
    st.integers(2, 13),
)
def test_alike_layers_are_run_once_though_dense_ones_stand_before_them(
    shape, batch, sequence, ways, layers
):
    shape = replace(shape, layers=layers)
    step = predict.timeline(shape, batch, sequence, recipe="fp32 sgd", **ways)
    *found, _, _ = step.operations
    one_by_one = operations(step.config, layers)
    assert [each[:6] for each in found] == [each[:6] for each in one_by_one]
    state = step._before_step.total
    assert [each.during.total for each in found] == [
        state + each.during.total for each in one_by_one
    ]
    assert step.peak == max(each.during.total for each in step.operations)
    # Told the same routing, the timeline runs every layer, and nothing changes.
    tokens = batch * sequence
    with_experts = layers - shape.mixture.dense_layers
    routing = (even_tokens(shape.mixture, tokens),) * with_experts
    told = predict.timeline(shape, batch, sequence, recipe="fp32 sgd", routing=routing, **ways)
    assert told.operations == step.operations


@settings(max_examples=MANY)
@given(mixtures(), st.integers(1, 2), st.integers(1, 16), YES_NO)
def test_a_mixtures_parameters_flops_and_kept_bytes_are_the_accountants(
    shape, batch, sequence, recompute
):
    with torch.device("meta"):
        model = models.Transformer(shape)
    assert shape.parameters == sum(each.numel() for each in model.parameters())
    assert shape.parameters_by_part.total == shape.parameters
    assert shape.tensors == len(list(model.parameters()))
    with_experts = shape.mixture.dense_layers  # the number of the first layer with experts
    layer = models.Block(shape, number=with_experts)
    assert shape.parameters_of_a_layer == sum(each.numel() for each in layer.parameters())

    step = predict.timeline(shape, batch, sequence, recipe="bf16 adamw", recompute=recompute)
    flops = sum(operation.flops for operation in step.operations)
    expected = shape.training_flops(batch, sequence, recompute, fused=True).total
    if recompute:  # what the last product of a layer would make is not needed a second time
        assert flops <= expected
    else:
        assert flops == expected


@settings(max_examples=MANY)
@given(mixtures(), st.integers(1, 2), st.integers(1, 16))
def test_a_mixtures_layers_keep_in_the_timeline_what_the_accountant_says(shape, batch, sequence):
    shape = replace(shape, rms_norm=True, norm_vectors=1)  # LayerNorm's statistics are left out
    without = replace(shape, layers=0, mixture=None)

    def kept(shape):
        step = predict.timeline(shape, batch, sequence, recipe="bf16 adamw")
        return step.kept

    expected = accountant.any_kept_bytes(shape, batch, sequence, "bf16")
    if shape.rotary:  # without layers, nothing keeps the angles' cosines and sines
        expected += accountant.tensor_bytes((sequence, shape.head_width), "bf16")
    assert kept(shape) - kept(without) == expected


@pytest.mark.parametrize(
    ("routing", "said"),
    [
        (((2, 2),), "2 layers have experts; got a routing for 1"),
        (((2, 2), (3, 2)), r"all together 4; got \(3, 2\)"),
        (((2, 2), (5, -1)), "0 to 4 tokens"),
        (((2, 2), (4,)), "Each of 2 experts"),
    ],
)
def test_an_impossible_routing_gets_a_sentence(routing, said):
    shape = predict.Transformer(2, 8, 2, 11, 16)
    shape = replace(shape, mixture=Mixture(experts=2, used=1, inner=4))
    with pytest.raises(ValueError, match=said):
        predict.timeline(shape, 1, 4, routing=routing)
