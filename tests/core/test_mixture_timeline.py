"""A mixture's training step, to the byte at each operation, for whatever the router picks."""

import random
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import assume, given, settings
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


# The accountant, which says what fits, beside the timeline.

RECIPES = ["fp32 sgd", "bf16 adamw", "bf16+master adamw, fp32 gradients"]


@st.composite
def counted_mixtures(draw: st.DrawFn) -> accountant.Model:
    """Mixtures of which the accountant says when a step is fullest."""
    kv_heads = draw(st.sampled_from([1, 2]))
    heads = kv_heads * draw(st.sampled_from([1, 2]))
    layers = draw(st.sampled_from([1, 2, 3, 5]))
    experts = draw(st.sampled_from([1, 2, 3, 6, 10]))
    mixture = Mixture(
        experts=experts,
        used=draw(st.integers(1, experts)),
        inner=draw(st.sampled_from([4, 8, 30])),
        shared_inner=draw(st.sampled_from([0, 0, 4, 20])),
        dense_layers=min(layers, draw(st.sampled_from([0, 0, 0, 2]))),
        router_bias=draw(YES_NO),
    )
    m = accountant.Model(
        layers=layers,
        width=draw(st.sampled_from([4, 8])),
        heads=heads,
        kv_heads=kv_heads,
        head_width=draw(st.sampled_from([2, 4])),
        inner=draw(st.sampled_from([16, 40])),
        vocabulary=draw(st.sampled_from([1, 10, 300])),
        context=64,
        gated=draw(YES_NO),
        biases=draw(st.sampled_from([(), ("up",), accountant.ATTENTION])),
        norm_vectors=draw(st.sampled_from([1, 1, 2])),
        learned_positions=draw(YES_NO),
        tied=draw(YES_NO),
        mixture=mixture,
    )
    assume(accountant.step_is_counted(m))
    return m


def drawn_routing(m: accountant.Model, tokens: int, kind: str, seed: int) -> object:
    """Evenly, or all tokens to the same experts, or drawn for each token in each layer."""
    if kind == "even":
        return None
    draws = random.Random(seed)
    mixture = m.mixture

    def of_a_layer() -> tuple[int, ...]:
        first = range(mixture.used)
        counts = [0] * mixture.experts
        for _ in range(tokens):
            drawn = draws.sample(range(mixture.experts), mixture.used)
            for number in first if kind == "same" else drawn:
                counts[number] += 1
        return tuple(counts)

    return tuple(of_a_layer() for _ in range(m.layers - mixture.dense_layers))


@settings(max_examples=3 * MANY)
@given(
    counted_mixtures(),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 7, 16, 64]),
    st.sampled_from(RECIPES),
    YES_NO,
    st.sampled_from([1, 8]),
    st.integers(0, 3),
    st.sampled_from(["even", "same", "drawn"]),
    st.integers(0, 99),
)
def test_the_accountant_never_says_that_a_mixture_fits_where_the_timeline_says_it_does_not(
    m, batch, sequence, recipe, recompute, gpus, stage, kind, seed
):
    """Whatever its routers pick; and where they pick the fullest, it says no more than it must."""
    routing = drawn_routing(m, batch * sequence, kind, seed)
    options = {"recipe": recipe, "recompute": recompute, "machines": gpus, "stage": stage}
    step_of = partial(predict.timeline, m, batch, sequence, routing=routing, **options)
    peak = step_of(accumulate=True, gathered=True).peak
    lines = accountant.account(
        m,
        gpus=gpus,
        tokens=1e9,
        recipe_name=recipe,
        stage=stage,
        batch=batch,
        sequence=sequence,
        recomputed=m.layers if recompute else 0,
        memory=peak - 1,
        peak=1e12,
        share=0.4,
    )
    assert lines["fits"] == "no"
    assert peak <= lines["bytes together"]
    assert step_of(accumulate=False, gathered=True).peak <= peak
    if kind == "same" and not m.mixture.shared_inner:
        assert lines["bytes together"] <= peak + lines["bytes of the rest"]


@settings(max_examples=MANY)
@given(counted_mixtures(), st.sampled_from([1, 2]), st.sampled_from([1, 7, 16]), YES_NO)
def test_a_recomputed_mixtures_flops_are_those_of_its_timeline(m, batch, sequence, recompute):
    """The scores that fused attention's backward pass computes again are not the accountant's."""
    step = predict.timeline(m, batch, sequence, recompute=recompute)
    flops = sum(operation.flops for operation in step.operations)
    attention = predict.shape_of(m).forward_flops(batch, sequence)["attention"]
    again = m.layers if recompute else 0
    assert accountant.any_step_flops(m, batch, sequence, again) == flops - attention // 2


@settings(max_examples=MANY // 5)
@given(counted_mixtures(), st.sampled_from([1, 2]), st.sampled_from([1, 7, 16]))
def test_where_some_layers_are_recomputed_torch_holds_no_more_than_the_accountant_says(
    m, batch, sequence
):
    for again in {0, 1, m.layers}:
        most = max(accountant.any_moments(m, batch, sequence, "fp32", "fp32", again).values())
        model = MADE(m, fused=True, fused_norm=True, recompute=again)
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        ids = torch.arange(batch * sequence).view(batch, sequence) % m.vocabulary
        targets = torch.zeros(batch * sequence, dtype=torch.int64)

        def run(model=model, ids=ids, targets=targets):
            model.loss(ids, targets).backward()

        assert measure.peak_bytes(run) <= most + accountant.any_rest_bytes(
            m, batch, sequence, "fp32"
        )


@pytest.mark.parametrize("name", ["mixtral-8x7b", "qwen3-30b-a3b"])
def test_a_published_mixture_holds_in_the_timeline_almost_what_the_accountant_says(name):
    """With tokens spread evenly it is less than if one expert got all: by less than 1 %."""
    m = predict.known(name)
    step = predict.timeline(
        m,
        1,
        4096,
        recipe="bf16+master adamw",
        recompute=True,
        accumulate=True,
        machines=64,
        stage=3,
        gathered=True,
    )
    lines = accountant.account(
        m, 64, 1e12, "bf16+master adamw", 3, 1, 4096, m.layers, 80e9, accountant.PEAK, 0.4
    )
    assert step.peak <= lines["bytes together"] <= 1.01 * step.peak
    assert lines["fits"] == "yes"
