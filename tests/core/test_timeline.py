"""A step's timeline, to the byte at each operation: of models that run, and of those that fit nowhere."""

import math
import os
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise, zip_longest
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
from course_utils.subjects import models
from course_utils.subjects.child_processes import transformers
from course_utils.subjects.models.layers import OneKernelRMSNorm


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Small products: a second thread would only wait for its core."""
    with measure.cpu_threads(1):
        yield


MANY = 300 if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else 30
# Small, and of a Llama's proportions: a vocabulary that is larger than the context and four widths.
SMALL = {"layers": 3, "width": 64, "heads": 4, "kv_heads": 2, "vocabulary": 512, "context": 64}
LLAMA = replace(predict.MODELS["Llama 3 8B"], **SMALL, head_width=16, inner=224)
YES_NO = st.booleans()
# Without RMSProp, which torch has not in one kernel; and without a master copy, which an optimizer's step copies for itself.
IN_ONE_KERNEL = [name for name in predict.RECIPES if "rmsprop" not in name]
RECIPES = [name for name in IN_ONE_KERNEL if not predict.RECIPES[name].master]


@st.composite
def shapes(draw: st.DrawFn) -> predict.Shape:
    """GPT's, Llama's, Qwen's, and everything between them."""
    kv_heads, shared, head = (
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([4, 6])),
    )
    own_width, heads = draw(YES_NO), kv_heads * shared
    yes = (
        "biases",
        "learned_positions",
        "tied_output",
        "gated",
        "rms_norm",
        "rotary",
        "head_norms",
    )
    return predict.Transformer(
        *(
            draw(st.integers(0, 7)),
            10 if own_width else heads * head,
            heads,
            draw(st.integers(1, 99)),
            16,
        ),
        feed_forward=draw(st.none() | st.integers(1, 40)),
        kv_heads=kv_heads,
        head_width=head if own_width else None,
        qkv_biases=draw(YES_NO),
        **{name: draw(YES_NO) for name in yes},
    )


SIZES = st.sampled_from([1, 2, 3, 5]), st.sampled_from([1, 2, 7, 16])
WAYS = {"fused": YES_NO, "accumulate": YES_NO}
SEGMENTS = {
    "recompute": YES_NO,
    "segment": st.sampled_from([1, 1, 2, 3]),
    "pieces": st.sampled_from([1, 1, 2, 5]),
}


def assert_alike(predicted: predict.Timeline, moments: list[measure.Moment]) -> None:
    """Each operation: its name, what is held during it, and after what goes."""
    for number, (ours, theirs) in enumerate(zip_longest(predicted, moments)):
        said = ours and (ours.name, ours.during.total, ours.after.total)
        assert said == theirs, (
            f"operation {number}: torch {torch.__version__} runs {theirs}; predicted is {said}, {ours and ours[1:4]}"
        )


@settings(max_examples=MANY)
@given(shapes(), *SIZES, st.sampled_from(IN_ONE_KERNEL), st.fixed_dictionaries(WAYS | SEGMENTS))
def test_each_operation_of_a_drawn_models_step_holds_what_torch_holds(
    shape, batch, sequence, recipe, ways
):
    moments = transformers.step_moments(shape, recipe, batch, sequence, real=True, **ways)
    ours = predict.timeline(shape, batch, sequence, recipe=recipe, **ways).operations
    if recipe not in RECIPES:
        ours = [one for one in ours if one.phase != "optimizer"]
        moments = moments[: len(ours)]
    assert_alike(ours, moments)


@pytest.mark.parametrize("fused", [True, False])
def test_each_operation_of_gpt2_small_holds_what_torch_holds(fused):
    asked = predict.MODELS["GPT-2 small"], "fp32 adamw", 1, 1024
    moments = transformers.step_moments(*asked, fused=fused)
    assert len(moments) > 500
    assert_alike(predict.timeline(asked[0], 1, 1024, fused=fused).operations, moments)


# What is recomputed by operation or in every second layer, and a loss in a kernel of its own.

KERNEL = torch.library.Library("course", "FRAGMENT")
KERNEL.define("cross_entropy(Tensor logits, Tensor targets) -> (Tensor, Tensor)")
KERNEL.define("cross_entropy_backward(Tensor(a!) logits, Tensor targets, Tensor sums) -> ()")


@torch.library.impl(KERNEL, "cross_entropy", "CompositeExplicitAutograd")
def cross_entropy(logits, targets):
    sums = logits.float().logsumexp(1)
    return sums.mean() - logits.gather(1, targets[:, None]).float().mean(), sums


@torch.library.impl(KERNEL, "cross_entropy_backward", "CompositeExplicitAutograd")
def cross_entropy_backward(logits, targets, sums):
    probabilities = (logits - sums[:, None]).exp()
    probabilities[range(len(targets)), targets] -= 1
    logits.copy_(probabilities / len(targets))


MADE = models.Transformer


class LossInPlace(torch.autograd.Function):
    """Cross-entropy in one kernel: of the logits a number for each row is kept, and the gradient is written over them."""

    @staticmethod
    def forward(ctx, logits, targets):
        loss, sums = torch.ops.course.cross_entropy(logits, targets)
        ctx.save_for_backward(logits, targets, sums)
        return loss

    @staticmethod
    def backward(ctx, gradient):
        torch.ops.course.cross_entropy_backward(*ctx.saved_tensors)
        return ctx.saved_tensors[0], None


def every_other_product():
    """What torchtitan calls selective, by operation: kept are every second product and the fused attention."""
    seen = Counter()

    def policy(ctx, op, *_, **__):
        seen[ctx.is_recompute, op] += 1
        product = op is torch.ops.aten.mm.default and seen[ctx.is_recompute, op] % 2
        attention = op is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        return (
            CheckpointPolicy.MUST_SAVE
            if product or attention
            else CheckpointPolicy.PREFER_RECOMPUTE
        )

    return create_selective_checkpoint_contexts(policy)


def recompute_some(model: models.Transformer, recompute: str) -> None:
    """In every second layer all, or in each layer every other product."""
    by_product = recompute == "every other product"
    options = {"context_fn": every_other_product} if by_product else {}
    for block in model.blocks if by_product else model.blocks[1::2]:
        run = partial(
            checkpoint, block.forward, use_reentrant=False, preserve_rng_state=False, **options
        )
        block.forward = run


@settings(max_examples=MANY // 2)
@given(
    shapes().filter(lambda shape: shape.layers),
    *SIZES,
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
            model.loss = lambda ids, targets, _: LossInPlace.apply(
                model(ids).flatten(0, 1), targets
            )
        return model

    how = {name: value for name, value in ways.items() if name != "fused_loss"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "Transformer", made)
        moments = transformers.step_moments(shape, recipe, batch, sequence, real=True, **how)
    step = predict.timeline(shape, batch, sequence, recipe=recipe, recompute=recompute, **ways)
    assert_alike(step.operations, moments)


# What follows from it.


@given(
    shapes().filter(lambda shape: shape.layers),
    *SIZES,
    st.sampled_from(list(predict.RECIPES)),
    st.fixed_dictionaries(
        WAYS
        | SEGMENTS
        | {"recompute": st.sampled_from(predict.RECOMPUTE), "gathered": YES_NO}
        | {"machines": st.sampled_from([1, 2, 8]), "stage": st.integers(0, 3)}
    ),
    st.integers(1, 13),
)
def test_layers_that_are_alike_are_not_run_one_by_one_and_nothing_changes(
    shape, batch, sequence, recipe, ways, layers
):
    shape = replace(shape, layers=layers)
    step = predict.timeline(shape, batch, sequence, recipe=recipe, **ways)
    rows = operations(step.config, layers)
    assert [one[:6] for one in step.operations[:-2]] == [row[:6] for row in rows]
    begin = predict.timeline(
        shape, batch, sequence, recipe=recipe, accumulate=ways["accumulate"]
    )._begin
    if step.machines == 1:
        for one, row in zip(step.operations, rows, strict=False):
            assert (one.during, one.after) == tuple(
                tuple(map(add, begin, held)) for held in row[-2:]
            )
    assert (
        ways["machines"] > 1
        or step.operations[-3].after.gradients == step.state["gradients"]
        or "twice" in recipe
    )
    assert (
        step.peak == step.fullest.during.total == max(one.during.total for one in step.operations)
    )


@given(
    shapes(), st.sampled_from(list(predict.RECIPES)), st.integers(2, 9), st.integers(1, 3), YES_NO
)
def test_what_a_stage_splits_each_machine_holds_a_part_of(
    shape, recipe, machines, stage, accumulate
):
    ways = {"recipe": recipe, "accumulate": accumulate}
    whole, parts = (
        predict.timeline(shape, 2, 4, **ways, **where)
        for where in ({}, {"machines": machines, "stage": stage})
    )
    each, split = (
        predict.dtype_bytes(predict.RECIPES[recipe].gradients[0]),
        predict.training.split_in(stage),
    )
    state = predict.training_bytes(
        shape.parameters, recipe, tensors=shape.tensors, machines=machines, stage=stage
    )
    for one, other in zip(whole.operations[:-2], parts.operations[:-2], strict=True):
        held = one.during._asdict() | {
            part: state[part] for part in ("parameters", "optimizer", "master")
        }
        if "gradients" in split:
            held["gradients"] = math.ceil(held["gradients"] // each / machines) * each
        assert other.during._asdict() == held
    assert dict(state) == {part: getattr(parts.operations[-2].during, part) for part in state}


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
    ids, targets = (
        torch.zeros(size, dtype=torch.int64) for size in ((batch, sequence), batch * sequence)
    )
    counted = measure.flops(lambda: model.loss(ids, targets, pieces).backward()).total
    step = predict.timeline(shape, batch, sequence, pieces=pieces, **ways)
    assert sum(one.flops for one in step.operations) == counted
    if not recompute and pieces == 1:
        assert counted == shape.training_flops(batch, sequence, fused=True).total


@given(shapes(), *SIZES, YES_NO)
def test_what_layers_keep_is_what_autograd_keeps(shape, batch, sequence, fused):
    sizes, ways = [replace(shape, layers=layers) for layers in (shape.layers, 0)], {"fused": fused}
    ours, none = (
        predict.timeline(size, batch, sequence, recipe="bf16 adamw", **ways).kept for size in sizes
    )
    kept, else_kept = (
        size.activation_bytes(batch, sequence, dtype="bf16", fused_norm=True, **ways).total
        for size in sizes
    )
    assert ours - none == kept - else_kept


def test_gradients_are_held_at_the_loss_only_if_they_are_those_of_an_earlier_micro_batch():
    """Before the backward pass of a first micro-batch there are none: 25.6 GB at most, and 30.6 with them."""
    xl = predict.MODELS["GPT-2 XL"]
    first, later = (predict.timeline(xl, 1, 1024, accumulate=later) for later in (False, True))
    at_the_loss = [
        [one.during for one in step.operations if one.where == "cross-entropy"]
        for step in (first, later)
    ]
    assert {held.gradients for held in at_the_loss[0]} == {0}
    assert {held.gradients for held in at_the_loss[1]} == {4 * xl.parameters}
    assert (round(first.peak / 1e9, 1), round(later.peak / 1e9, 1)) == (25.6, 30.6)


def test_a_loss_with_its_output_holds_two_gradients_and_never_all_logits():
    """One token's logits are there at a time, in fp32 and twice more while their gradient is made."""
    x, output = (
        torch.randn(1024, 64, dtype=torch.bfloat16),
        torch.randn(4000, 64, dtype=torch.bfloat16),
    )

    def gradients() -> tuple[torch.Tensor, torch.Tensor]:
        of_x, of_output = torch.empty_like(x), torch.zeros_like(output)
        for part, place in zip(x.split(1), of_x.split(1), strict=True):
            of_logits = (part @ output.T).float().softmax(-1).bfloat16()  # less 1 at its target
            place.copy_(of_logits @ output)
            of_output.addmm_(of_logits.T, part)
        return of_x, of_output

    shape, predicted = replace(LLAMA, vocabulary=4000), 2 * 64 * (4000 + 16 * 64)
    step = predict.timeline(shape, 16, 64, recipe="bf16 adamw", fused_loss="with output").operations
    (kernel,) = (after for before, after in pairwise(step) if after.name == "linear_cross_entropy")
    (before,) = (before for before, after in pairwise(step) if after.name == "linear_cross_entropy")
    assert kernel.during.total - before.after.total == predicted + 4  # the loss
    assert predicted <= measure.peak_bytes(gradients) <= predicted + 16 * 4000


@pytest.fixture
def a_process_of_eight():
    """As one of eight processes: the others are pretended, and send nothing."""
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    yield init_device_mesh("cpu", (8,))
    distributed.destroy_process_group()


class Gathers(TorchDispatchMode):
    """The bytes of each layer that is gathered."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op.name().startswith("c10d::_allgather"):
            self.bytes.append(max(each.nbytes for each in args if isinstance(each, torch.Tensor)))
        return op(*args, **kwargs or {})


def test_what_is_gathered_is_what_fully_shard_has_whole(a_process_of_eight):
    """A layer on its way back, the next one that is fetched meanwhile, and what stands around the layers."""
    model = models.Transformer(LLAMA, dtype=torch.bfloat16, fused=True, fused_norm=True)
    for part in (*model.blocks, model):
        fully_shard(part, mesh=a_process_of_eight)
    gathers, seen = Gathers(), []

    def note(*_: object) -> None:
        """The weights and gradients that are whole, and the one gradient of the layer that is still to come."""
        whole = [p for p in model.parameters() if not isinstance(p, DTensor)]
        gradients = [p.grad for p in whole if p.grad is not None]
        seen.append(measure.storage_bytes(whole + gradients) + 2 * LLAMA.width + gathers.bytes[-1])

    for block in model.blocks[1:]:  # before the first there is none to fetch
        block.norm1.register_full_backward_pre_hook(note)
    with gathers:
        model(torch.zeros(1, 64, dtype=torch.int64)).float().sum().backward()
    order = {"recipe": "bf16 adamw", "machines": 8, "stage": 3, "gathered": True}
    step = predict.timeline(LLAMA, 1, 64, **order).operations
    assert {seen[0], *seen} == {
        one.during.gathered for one in step if one.layer == 2 and one.phase == "backward"
    }


def test_at_the_loss_and_at_the_logits_gradient_no_gradient_is_whole(a_process_of_eight):
    """The output's gradient is made after that, and at the operations that make it the pass holds it anyway."""
    model = models.Transformer(LLAMA, dtype=torch.bfloat16, fused=True, fused_norm=True)
    for part in (*model.blocks, model):
        fully_shard(part, mesh=a_process_of_eight)
    seen = []

    def note(*_: object) -> None:
        whole = [p for p in model.parameters() if not isinstance(p, DTensor)]
        seen.append(measure.storage_bytes(whole + [p.grad for p in whole if p.grad is not None]))

    logits = model(torch.zeros(1, 64, dtype=torch.int64))
    logits.register_hook(note)
    note()
    logits.float().sum().backward()
    order = {"recipe": "bf16 adamw", "machines": 8, "stage": 3, "gathered": True}
    step = predict.timeline(LLAMA, 1, 64, **order).operations
    at_the_loss = {one.during.gathered for one in step if one.where in ("cross-entropy", "output")}
    assert set(seen) == at_the_loss


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
    x, gradient, weight = (torch.randn(*shape, width).to(dtype) for shape in (sizes, sizes, []))

    def normed(make, dtype):
        """The result, and the gradients of input and weight."""
        norm, given = make(width, eps=1e-5, dtype=dtype), x.detach().to(dtype).requires_grad_()
        norm.weight.data.copy_(weight)
        result = norm(given)
        result.backward(gradient.to(dtype))
        return result, given.grad, norm.weight.grad

    (ours, *rounded), (theirs, *_) = normed(OneKernelRMSNorm, dtype), normed(nn.RMSNorm, dtype)
    assert torch.equal(ours, theirs)
    wide = normed(OneKernelRMSNorm, torch.float32)[1:]
    assert all(torch.equal(one, other.to(dtype)) for one, other in zip(rounded, wide, strict=True))


def test_its_gradient_is_that_of_the_formula():
    x, weight = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 2, 5), (5,))
    )
    norm = models.layers._OneKernel.apply
    assert torch.autograd.gradcheck(lambda x, weight: norm(x, weight, 1e-5), (x, weight))


def test_it_keeps_its_input_alone_where_single_operations_keep_two_copies_in_fp32():
    x = torch.randn(7, 64, dtype=torch.bfloat16, requires_grad=True)
    ours, theirs = (
        models.normalisation(64, True, False, x.dtype, fused=fused) for fused in (True, False)
    )
    kept = [
        measure.saved_bytes(lambda n=norm: n(x), exclude=norm.parameters())
        for norm in (ours, theirs)
    ]
    assert kept == [7 * 64 * 2, 7 * (2 * 64 * 4 + 4)]
