"""A step's timeline, to the byte at each operation: of models that run, and of too large ones."""

import math
import os
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from operator import add

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from course_utils.core import measure, predict
from course_utils.core.predict.passes import operations
from course_utils.core.predict.storages import Held
from course_utils.core.predict.tape import Tape
from course_utils.subjects import models
from course_utils.subjects.child_processes import transformers
from course_utils.subjects.models.layers import OneKernelRMSNorm


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Products here are small, so a second thread would only wait for its core."""
    with measure.cpu_threads(1):
        yield


MANY = 300 if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else 30
# Small, and of a Llama's proportions: a vocabulary that is larger than the context and four widths.
LLAMA = replace(
    predict.MODELS["Llama 3 8B"],
    layers=3,
    width=64,
    heads=4,
    kv_heads=2,
    head_width=16,
    inner=224,
    vocabulary=512,
    context=64,
)
YES_NO = st.booleans()
# torch has no RMSProp in one kernel.
IN_ONE_KERNEL = [name for name in predict.RECIPES if "rmsprop" not in name]
# With a master, an optimizer's step copies gradients, which the timeline leaves out.
WITHOUT_MASTER = [name for name in IN_ONE_KERNEL if not predict.RECIPES[name].master]


@st.composite
def shapes(draw: st.DrawFn) -> predict.Shape:
    """GPT's, Llama's, Qwen's, and everything between them."""
    kv_heads = draw(st.integers(1, 3))
    queries_a_key = draw(st.integers(1, 3))
    heads = kv_heads * queries_a_key
    head_width = draw(st.sampled_from([4, 6]))
    if draw(YES_NO):
        widths = {"width": 10, "head_width": head_width}
    else:
        widths = {"width": heads * head_width}
    return predict.Transformer(
        layers=draw(st.integers(0, 7)),
        heads=heads,
        vocabulary=draw(st.integers(1, 99)),
        context=16,
        feed_forward=draw(st.none() | st.integers(1, 40)),
        biases=draw(YES_NO),
        learned_positions=draw(YES_NO),
        tied_output=draw(YES_NO),
        kv_heads=kv_heads,
        gated=draw(YES_NO),
        rms_norm=draw(YES_NO),
        rotary=draw(YES_NO),
        head_norms=draw(YES_NO),
        qkv_biases=draw(YES_NO),
        **widths,
    )


BATCHES = st.sampled_from([1, 2, 3, 5])
SEQUENCES = st.sampled_from([1, 2, 7, 16])
WAYS = {"fused": YES_NO, "accumulate": YES_NO}
SEGMENTS = {
    "recompute": YES_NO,
    "segment": st.sampled_from([1, 1, 2, 3]),
    "pieces": st.sampled_from([1, 1, 2, 5]),
}


def assert_alike(predicted: predict.Timeline, moments: list[measure.Moment]) -> None:
    """Each operation has the same name, and as much is held during and after it."""
    found = [(each.name, each.during.total, each.after.total) for each in predicted]
    for number, (ours, theirs) in enumerate(zip_longest(found, moments)):
        if ours != theirs:
            where = predicted[number][1:4] if ours else "behind the last"
            pytest.fail(
                f"operation {number}: torch {torch.__version__} runs {theirs}; "
                f"predicted is {ours}, {where}"
            )


@settings(max_examples=MANY)
@given(
    shapes(),
    BATCHES,
    SEQUENCES,
    st.sampled_from(IN_ONE_KERNEL),
    st.fixed_dictionaries(WAYS | SEGMENTS),
)
def test_each_operation_of_a_drawn_models_step_holds_what_torch_holds(
    shape, batch, sequence, recipe, ways
):
    moments = transformers.step_moments(shape, recipe, batch, sequence, real=True, **ways)
    ours = predict.timeline(shape, batch, sequence, recipe=recipe, **ways).operations
    if recipe not in WITHOUT_MASTER:
        ours = [operation for operation in ours if operation.phase != "optimizer"]
        moments = moments[: len(ours)]
    assert_alike(ours, moments)


@pytest.mark.parametrize("fused", [True, False])
def test_each_operation_of_gpt2_small_holds_what_torch_holds(fused):
    shape = predict.MODELS["GPT-2 small"]
    moments = transformers.step_moments(shape, "fp32 adamw", 1, 1024, fused=fused)
    assert len(moments) > 500
    assert_alike(predict.timeline(shape, 1, 1024, fused=fused).operations, moments)


# Recomputing by operation or in every second layer, and a loss in a kernel of its own.

KERNEL = torch.library.Library("course", "FRAGMENT")
KERNEL.define("cross_entropy(Tensor logits, Tensor targets) -> (Tensor, Tensor)")
KERNEL.define("cross_entropy_backward(Tensor(a!) logits, Tensor targets, Tensor sums) -> ()")


@torch.library.impl(KERNEL, "cross_entropy", "CompositeExplicitAutograd")
def cross_entropy(logits, targets):
    sums = logits.float().logsumexp(1)
    of_targets = logits.gather(1, targets[:, None]).float()
    loss = sums.mean() - of_targets.mean()
    return loss, sums


@torch.library.impl(KERNEL, "cross_entropy_backward", "CompositeExplicitAutograd")
def cross_entropy_backward(logits, targets, sums):
    probabilities = (logits - sums[:, None]).exp()
    probabilities[range(len(targets)), targets] -= 1
    logits.copy_(probabilities / len(targets))


MADE = models.Transformer


class LossInPlace(torch.autograd.Function):
    """Cross-entropy in one kernel, which keeps the logits and a number for each row of them.

    The gradient is written over the logits.
    """

    @staticmethod
    def forward(ctx, logits, targets):
        loss, sums = torch.ops.course.cross_entropy(logits, targets)
        ctx.save_for_backward(logits, targets, sums)
        return loss

    @staticmethod
    def backward(ctx, gradient):
        logits, targets, sums = ctx.saved_tensors
        torch.ops.course.cross_entropy_backward(logits, targets, sums)
        return logits, None


ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
PRODUCT = torch.ops.aten.mm.default


def loss_in_place(
    model: models.Transformer, ids: torch.Tensor, targets: torch.Tensor, _pieces: int
) -> torch.Tensor:
    logits = model(ids).flatten(0, 1)
    return LossInPlace.apply(logits, targets)


def every_other_product():
    """What torchtitan calls selective: every second product is kept, and so is fused attention."""
    products = Counter()

    def policy(ctx, op, *_, **__):
        keeps = op is ATTENTION
        if op is PRODUCT:
            products[ctx.is_recompute] += 1
            keeps = products[ctx.is_recompute] % 2 == 1
        return CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def recompute_some(model: models.Transformer, recompute: str) -> None:
    """In every second layer all operations, or in each layer all but every other product."""
    run = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)
    if recompute == "every other product":
        run = partial(run, context_fn=every_other_product)
        blocks = model.blocks
    else:
        blocks = model.blocks[1::2]
    for block in blocks:
        block.forward = partial(run, block.forward)


@settings(max_examples=MANY // 2)
@given(
    shapes().filter(lambda shape: shape.layers > 0),
    BATCHES,
    SEQUENCES,
    st.sampled_from(["fp32 sgd", "bf16 adamw"]),
    st.fixed_dictionaries(WAYS | {"fused_loss": YES_NO}),
    st.sampled_from(["every other layer", "every other product"]),
)
def test_so_does_each_operation_if_only_some_are_computed_again(
    shape, batch, sequence, recipe, ways, recompute
):
    def made(m: predict.Shape, **options: object) -> models.Transformer:
        model = MADE(m, **options)
        recompute_some(model, recompute)
        if ways["fused_loss"]:
            model.loss = partial(loss_in_place, model)
        return model

    how = {name: value for name, value in ways.items() if name != "fused_loss"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "Transformer", made)
        moments = transformers.step_moments(shape, recipe, batch, sequence, real=True, **how)
    step = predict.timeline(shape, batch, sequence, recipe=recipe, recompute=recompute, **ways)
    assert_alike(step.operations, moments)


# What follows from it.


@given(
    shapes(),
    BATCHES,
    SEQUENCES,
    st.sampled_from(list(predict.RECIPES)),
    st.fixed_dictionaries(
        {
            **WAYS,
            **SEGMENTS,
            "recompute": st.sampled_from(predict.RECOMPUTE),
            "machines": st.sampled_from([1, 2, 8]),
            "stage": st.integers(0, 3),
            "gathered": YES_NO,
        }
    ),
    st.integers(1, 13),
)
def test_layers_that_are_alike_are_not_run_one_by_one_and_nothing_changes(
    shape, batch, sequence, recipe, ways, layers
):
    shape = replace(shape, layers=layers)
    step = predict.timeline(shape, batch, sequence, recipe=recipe, **ways)
    *found, _, _ = step.operations
    one_by_one = operations(step.config, layers)
    assert [each[:6] for each in found] == [each[:6] for each in one_by_one]
    assert step.peak == step.fullest.during.total
    assert step.peak == max(each.during.total for each in step.operations)
    most_by_part = Held._make(
        map(max, zip(*(each.during for each in step.operations), strict=True))
    )
    assert step.parts_held == {part for part, most in most_by_part._asdict().items() if most}
    if step.machines > 1:
        return
    for ours, theirs in zip(found, one_by_one, strict=True):
        assert ours.during == sum_of(step._before_step, theirs.during)
        assert ours.after == sum_of(step._before_step, theirs.after)
    if "twice" not in recipe:
        assert found[-1].after.gradients == step.state["gradients"]


def sum_of(held: Held, other: Held) -> Held:
    return Held._make(map(add, held, other))


@given(
    shapes(),
    st.sampled_from(list(predict.RECIPES)),
    st.integers(2, 9),
    st.integers(1, 3),
    YES_NO,
)
def test_what_a_stage_splits_each_machine_holds_a_part_of(
    shape, recipe, machines, stage, accumulate
):
    made = partial(predict.timeline, shape, 2, 4, recipe=recipe, accumulate=accumulate)
    *whole, _, _ = made().operations
    *parts, update, _ = made(machines=machines, stage=stage).operations
    state = predict.training_bytes(
        shape.parameters,
        recipe,
        tensors=shape.tensors,
        machines=machines,
        stage=stage,
    )
    number_bytes = predict.dtype_bytes(predict.RECIPES[recipe].gradients[0])
    for ours, of_one in zip(whole, parts, strict=True):
        gradients = ours.during.gradients
        if "gradients" in predict.training.split_in(stage):
            numbers = gradients // number_bytes
            gradients = math.ceil(numbers / machines) * number_bytes
        assert of_one.during == ours.during._replace(
            parameters=state["parameters"],
            optimizer=state["optimizer"],
            master=state["master"],
            gradients=gradients,
        )
    for part, nbytes in state.items():
        assert getattr(update.during, part) == nbytes


@settings(max_examples=20)
@given(
    shapes(),
    st.integers(1, 2),
    st.integers(1, 16),
    YES_NO,
    st.sampled_from([1, 2]),
    st.sampled_from([1, 3]),
)
def test_its_flops_are_those_that_torch_counts(shape, batch, sequence, recompute, segment, pieces):
    ways = {"recompute": recompute, "segment": segment}
    model = models.Transformer(shape, fused=True, fused_norm=True, **ways)
    ids = torch.zeros(batch, sequence, dtype=torch.int64)
    targets = torch.zeros(batch * sequence, dtype=torch.int64)

    def run():
        model.loss(ids, targets, pieces).backward()

    counted = measure.flops(run).total
    step = predict.timeline(shape, batch, sequence, pieces=pieces, **ways)
    assert sum(operation.flops for operation in step.operations) == counted
    if not recompute and pieces == 1:
        assert counted == shape.training_flops(batch, sequence, fused=True).total


@given(shapes(), BATCHES, SEQUENCES, YES_NO)
def test_what_layers_keep_is_what_autograd_keeps(shape, batch, sequence, fused):
    without_layers = replace(shape, layers=0)

    def in_the_timeline(shape):
        step = predict.timeline(shape, batch, sequence, recipe="bf16 adamw", fused=fused)
        return step.kept

    def by_autograd(shape):
        kernels = {"fused": fused, "fused_norm": True}
        return shape.activation_bytes(batch, sequence, dtype="bf16", **kernels).total

    layers = in_the_timeline(shape) - in_the_timeline(without_layers)
    assert layers == by_autograd(shape) - by_autograd(without_layers)


@pytest.mark.parametrize(
    ("accumulate", "gradient_bytes", "peak"),
    [(False, 0, 25.6e9), (True, 4, 30.6e9)],
)
def test_gradients_are_held_at_the_loss_only_if_they_are_those_of_an_earlier_micro_batch(
    accumulate, gradient_bytes, peak
):
    xl = predict.MODELS["GPT-2 XL"]
    step = predict.timeline(xl, 1, 1024, accumulate=accumulate)
    for operation in step.operations:
        if operation.where == "cross-entropy":
            assert operation.during.gradients == gradient_bytes * xl.parameters
    assert step.peak == pytest.approx(peak, abs=0.05e9)


def test_a_loss_with_its_output_holds_two_gradients_and_never_all_logits():
    """One token's logits are there at a time, and their gradient in fp32 and in bf16."""
    vocabulary = 4000
    x = torch.randn(1024, 64, dtype=torch.bfloat16)
    output = torch.randn(vocabulary, 64, dtype=torch.bfloat16)

    def gradients() -> tuple[torch.Tensor, torch.Tensor]:
        of_x = torch.empty_like(x)
        of_output = torch.zeros_like(output)
        for token, of_token in zip(x.split(1), of_x.split(1), strict=True):
            logits = token @ output.T
            of_logits = logits.float().softmax(-1).bfloat16()  # less 1 at its target
            of_token.copy_(of_logits @ output)
            of_output.addmm_(of_logits.T, token)
        return of_x, of_output

    shape = replace(LLAMA, vocabulary=vocabulary)
    step = predict.timeline(shape, 16, 64, recipe="bf16 adamw", fused_loss="with output").operations
    number = [operation.name for operation in step].index("linear_cross_entropy")
    made = step[number].during.total - step[number - 1].after.total
    two_gradients = x.nbytes + output.nbytes
    assert made == two_gradients + 4  # the loss
    assert two_gradients <= measure.peak_bytes(gradients) <= two_gradients + 16 * vocabulary


@pytest.fixture
def a_process_of_eight():
    """This process as one of eight. The others are pretended, and send nothing."""
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    yield init_device_mesh("cpu", (8,))
    distributed.destroy_process_group()


class Gathers(TorchDispatchMode):
    """The bytes of the layer that was gathered last."""

    latest = 0

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op.name().startswith("c10d::_allgather"):
            self.latest = max(arg.nbytes for arg in args if isinstance(arg, torch.Tensor))
        return op(*args, **(kwargs or {}))


def sharded(mesh) -> models.Transformer:
    model = models.Transformer(LLAMA, dtype=torch.bfloat16, fused=True, fused_norm=True)
    for part in (*model.blocks, model):
        fully_shard(part, mesh=mesh)
    return model


def whole_bytes(model: models.Transformer) -> int:
    """The bytes of weights and gradients that this process has whole."""
    weights = [p for p in model.parameters() if not isinstance(p, DTensor)]
    gradients = [p.grad for p in weights if p.grad is not None]
    return measure.storage_bytes(weights + gradients)


def predicted_on_eight() -> tuple[predict.Operation, ...]:
    step = predict.timeline(
        LLAMA,
        batch=1,
        sequence=64,
        recipe="bf16 adamw",
        machines=8,
        stage=3,
        gathered=True,
    )
    return step.operations


def test_what_is_gathered_is_what_fully_shard_has_whole(a_process_of_eight):
    """A layer going backward, the next one, which is fetched, and what is around the layers."""
    model = sharded(a_process_of_eight)
    gathers = Gathers()
    seen = set()

    def note(*_: object) -> None:
        still_to_come = 2 * LLAMA.width  # the gradient of the layer's first normalisation
        seen.add(whole_bytes(model) + still_to_come + gathers.latest)

    for block in model.blocks[1:]:  # before the first there is none to fetch
        block.norm1.register_full_backward_pre_hook(note)
    with gathers:
        model(torch.zeros(1, 64, dtype=torch.int64)).float().sum().backward()
    predicted = set()
    for operation in predicted_on_eight():
        if operation.layer == 2 and operation.phase == "backward":
            predicted.add(operation.during.gathered)
    assert len(predicted) > 0
    assert seen == predicted


def test_at_the_loss_and_at_the_logits_gradient_no_gradient_is_whole(a_process_of_eight):
    """The output's gradient is made after that; while it is made, it counts as held in passing."""
    model = sharded(a_process_of_eight)
    seen = set()

    def note(*_: object) -> None:
        seen.add(whole_bytes(model))

    logits = model(torch.zeros(1, 64, dtype=torch.int64))
    logits.register_hook(note)
    note()
    logits.float().sum().backward()
    predicted = set()
    for operation in predicted_on_eight():
        if operation.where in ("cross-entropy", "output"):
            predicted.add(operation.during.gathered)
    assert seen == predicted


# A normalisation in one kernel.


@settings(max_examples=20)
@given(
    st.sampled_from([torch.bfloat16, torch.float16, torch.float32]),
    st.lists(st.integers(1, 9), max_size=2),
    st.integers(1, 65),
)
def test_a_norm_in_one_kernel_is_torchs_to_the_last_bit_and_its_gradients_are_rounded_once(
    dtype, sizes, width
):
    x = torch.randn(*sizes, width).to(dtype)
    gradient = torch.randn(*sizes, width).to(dtype)
    weight = torch.randn(width).to(dtype)

    def normed(make, dtype):
        """The result, and the gradients of input and weight."""
        given = x.detach().to(dtype).requires_grad_()
        norm = make(width, eps=1e-5, dtype=dtype)
        norm.weight.data.copy_(weight)
        result = norm(given)
        result.backward(gradient.to(dtype))
        return result, given.grad, norm.weight.grad

    ours, of_x, of_weight = normed(OneKernelRMSNorm, dtype)
    theirs, _, _ = normed(nn.RMSNorm, dtype)
    assert torch.equal(ours, theirs)
    _, wide_of_x, wide_of_weight = normed(OneKernelRMSNorm, torch.float32)
    assert torch.equal(of_x, wide_of_x.to(dtype))
    assert torch.equal(of_weight, wide_of_weight.to(dtype))


def test_its_gradient_is_that_of_the_formula():
    x = torch.randn(3, 2, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, dtype=torch.float64, requires_grad=True)

    def norm(x, weight):
        return models.layers._OneKernel.apply(x, weight, 1e-5)

    assert torch.autograd.gradcheck(norm, (x, weight))


@pytest.mark.parametrize(
    ("fused", "a_row"),
    [
        (True, 64 * 2),  # the input
        (False, 2 * 64 * 4 + 4),  # two copies in fp32, and a number
    ],
)
def test_a_norm_in_one_kernel_keeps_its_input_and_single_operations_two_copies_in_fp32(
    fused, a_row
):
    x = torch.randn(7, 64, dtype=torch.bfloat16, requires_grad=True)
    norm = models.normalisation(64, True, False, x.dtype, fused=fused)
    assert measure.saved_bytes(lambda: norm(x), exclude=norm.parameters()) == 7 * a_row


def test_a_tape_is_read_as_often_as_one_likes():
    tape = Tape(dtype_bytes=4, gradient_bytes=4, accumulate=False)
    kept = tape.one("add", 8)
    assert tape.written() == tape.written()
    del kept
    assert [sum(operation.after) for operation in tape.written()] == [0]
