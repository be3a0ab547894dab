"""The most that a step holds, to the byte: of models that run, and of those that fit nowhere."""

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn import functional
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from course_utils import measure, models, predict
from course_utils.models.layers import OneKernelRMSNorm
from course_utils.workers import transformers


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Small products: a second thread would only wait for its core."""
    with measure.cpu_threads(1):
        yield


# Small, and of a Llama's proportions: a vocabulary that is larger than the context and four widths.
SMALL = {"layers": 3, "width": 64, "heads": 4, "kv_heads": 2, "vocabulary": 512, "context": 64}
LLAMA = replace(predict.MODELS["Llama 3 8B"], **SMALL, feed_forward=224)


@st.composite
def shapes(draw: st.DrawFn) -> predict.Transformer:
    heads, head_width = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([4, 8, 16]))
    width = heads * head_width
    yes = {name: draw(st.booleans()) for name in ("biases", "learned_positions", "tied_output")}
    yes |= {name: draw(st.booleans()) for name in ("gated", "rms_norm", "rotary")}
    return predict.Transformer(
        *(draw(st.integers(1, 3)), width, heads, draw(st.integers(max(64, 4 * width), 4000)), 64),
        feed_forward=draw(st.none() | st.integers(1, 5 * width)),
        kv_heads=draw(st.sampled_from([n for n in (1, 2, 4) if heads % n == 0])),
        **yes,
    )


class LossInPlace(torch.autograd.Function):
    """Cross-entropy in one pass: of the logits a number for each row is kept, and the gradient is written over them."""

    @staticmethod
    def forward(ctx, logits, targets):
        sums = torch.empty(len(logits))
        for row, one in zip(logits, sums, strict=True):
            one.copy_(row.float().logsumexp(0))
        ctx.save_for_backward(logits, targets, sums)
        return sums.mean() - logits.gather(1, targets[:, None]).float().mean()

    @staticmethod
    def backward(ctx, gradient):
        logits, targets, sums = ctx.saved_tensors
        for row, target, one in zip(logits, targets, sums, strict=True):
            row.sub_(one).exp_()
            row[target] -= 1
        return logits.mul_(1 / len(logits)), None


def every_other_product():
    """What torchtitan calls selective, by operation: kept are every second product and the fused attention."""
    seen = Counter()

    def policy(ctx, op, *_, **__):
        seen[ctx.is_recompute, op] += 1
        product = op is torch.ops.aten.mm.default and seen[ctx.is_recompute, op] % 2
        attention = op is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        return CheckpointPolicy.MUST_SAVE if product or attention else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def recompute_some(model: models.Transformer, recompute: str) -> None:
    """In every second layer all, or in each layer every other product."""
    by_product = recompute == "every other product"
    options = {"context_fn": every_other_product} if by_product else {}
    for block in model.blocks if by_product else model.blocks[1::2]:
        run = partial(checkpoint, block.forward, use_reentrant=False, preserve_rng_state=False, **options)
        block.forward = run


def step_of(
    shape: predict.Transformer,
    dtype: str,
    batch: int,
    sequence: int,
    gradients: str | None = None,
    accumulate: bool = False,
    recompute: bool | str = False,
    fused_loss: bool = False,
    **ways: bool,
):
    """A step of a real model, to accumulate gradients or to make the first; and the model's parameters."""
    model = models.Transformer(
        **vars(shape), dtype=measure.DTYPES[dtype], recompute=recompute is True, **ways
    )
    if isinstance(recompute, str):
        recompute_some(model, recompute)
    for p in model.parameters():
        p.grad_dtype = measure.DTYPES[gradients or dtype]
        p.grad = torch.zeros_like(p, dtype=p.grad_dtype) if accumulate else None
    ids = torch.randint(shape.vocabulary, (batch, sequence + 1))
    read, targets = ids[:, :-1].contiguous(), ids[:, 1:].flatten()

    def step() -> None:
        logits = model(read).flatten(0, 1)
        loss = (
            LossInPlace.apply(logits, targets)
            if fused_loss
            else functional.cross_entropy(logits.float(), targets)
        )
        del logits
        loss.backward()

    return step, list(model.parameters())


def ways(
    fused: bool, fused_norm: bool, recompute: bool | str, accumulate: bool = False, fused_loss: bool = False
) -> dict[str, bool | str]:
    steps = {"recompute": recompute, "accumulate": accumulate} | ({"fused_loss": True} if fused_loss else {})
    return {"fused": fused, "fused_norm": fused_norm, **steps}


@settings(max_examples=60)
@given(
    shapes(),
    st.sampled_from([1, 2, 3, 8]),
    st.sampled_from([1, 2, 8, 32, 64]),
    st.sampled_from([("fp32", None), ("bf16", None), ("bf16", "fp32")]),
    st.builds(
        ways,
        *(st.booleans(), st.booleans(), st.sampled_from(predict.RECOMPUTE), st.booleans(), st.booleans()),
    ),
)
@example(LLAMA, 4, 64, ("bf16", None), ways(True, True, "every other product", fused_loss=True))
@example(
    replace(LLAMA, layers=5), 4, 64, ("bf16", None), ways(True, True, "every other layer", fused_loss=True)
)
@example(LLAMA, 1, 64, ("bf16", None), ways(True, True, True))
@example(LLAMA, 4, 64, ("bf16", None), ways(True, True, False))
@example(LLAMA, 2, 1, ("bf16", None), ways(True, False, True))
@example(LLAMA, 16, 8, ("bf16", None), ways(True, False, False))
def test_the_most_that_a_step_holds_is_predicted_to_the_byte(shape, batch, sequence, dtypes, ways):
    dtype, gradients = dtypes
    predicted = predict.step_peak_bytes(shape, batch, sequence, dtype=dtype, gradients=gradients, **ways)
    measured = measure.backward_peak_bytes(*step_of(shape, dtype, batch, sequence, gradients, **ways))
    if not predict.has_known_peak(shape, **ways):
        assert measured.total >= predicted.total
        return
    gradients = predicted["gradients"]
    assert measured == {"gradients": gradients, "activations": predicted.total - gradients}


def test_each_moment_is_the_peak_of_some_step():
    """So none of them is there for nothing, and each is held against a step by the tests above."""
    seen, yes_no = set(), (True, False)
    for layers, vocabulary, sequence, fused, recompute, accumulate in product(
        (1, 3), (256, 1000), (2, 32, 64), yes_no, yes_no, yes_no
    ):
        shape = replace(LLAMA, layers=layers, vocabulary=vocabulary, heads=16, kv_heads=16)
        order = {"fused": fused, "recompute": recompute, "accumulate": accumulate}
        moments = predict.step_moments(shape, 1, sequence, **order)
        seen.add(max(moments, key=lambda moment: moments[moment].total))
    of_layers = {"last matrix", "feed-forward", "scores"}
    assert seen == {"loss", "output", "embedding"} | {
        f"{part} of layer {n}" for part in of_layers for n in (1, 3)
    }


@pytest.mark.parametrize(("number", "recipe"), list(enumerate(predict.RECIPES)))
def test_what_is_held_is_what_fake_tensors_count(number, recipe):
    shape = replace(LLAMA, layers=1, tied_output=number > 4)
    asked, order = (shape, recipe, 2, 8), ways(*(bool(number & bit) for bit in (1, 2, 4)))
    assert transformers.counted_bytes(*asked, **order) == predict.held_bytes(*asked, **order)


@pytest.mark.parametrize(
    ("name", "recompute", "split", "said"),
    [
        ("Llama 3 8B", False, 1, 56_801_361_928),
        ("Llama 3 8B", True, 8, 14_891_876_360),
        ("Llama 3 70B", True, 1024, 23_616_028_680),
    ],
)
def test_a_llamas_step_of_8192_tokens_holds_what_is_said_of_an_h100(name, recompute, split, said):
    """As predicted for all of its layers, and counted, without memory, for as many as a test has time for."""
    shape, order = predict.MODELS[name], ways(True, True, recompute)
    assert predict.step_peak_bytes(shape, 1, 8192, dtype="bf16", split=split, **order).total == said
    few = replace(shape, layers=2)
    counted = transformers.counted_bytes(few, "bf16 adamw", 1, 8192, **order)
    assert counted == predict.held_bytes(few, "bf16 adamw", 1, 8192, **order)


def test_a_loss_with_its_output_holds_two_gradients_and_never_all_logits():
    """One token's logits are there at a time, in fp32 and twice more while their gradient is made."""
    x, output = torch.randn(1024, 64, dtype=torch.bfloat16), torch.randn(4000, 64, dtype=torch.bfloat16)

    def gradients() -> tuple[torch.Tensor, torch.Tensor]:
        of_x, of_output = torch.empty_like(x), torch.zeros_like(output)
        for part, place in zip(x.split(1), of_x.split(1), strict=True):
            of_logits = (part @ output.T).float().softmax(-1).bfloat16()  # less 1 at its target
            place.copy_(of_logits @ output)
            of_output.addmm_(of_logits.T, part)
        return of_x, of_output

    options = {"dtype": "bf16", "loss": True, "fused_loss": "with output"}
    predicted = replace(LLAMA, vocabulary=4000).activation_bytes(16, 64, **options)["loss"]
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
    model = models.Transformer(**vars(LLAMA), dtype=torch.bfloat16, fused=True, fused_norm=True)
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
    order = {"dtype": "bf16", "split": 8, "gathered": True, "fused": True, "fused_norm": True}
    moments = predict.step_moments(LLAMA, 1, 64, **order)
    assert seen == [moments["feed-forward of layer 3"]["gathered"]] * 2


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
    x, weight = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 2, 5), (5,)))
    norm = models.layers._OneKernel.apply
    assert torch.autograd.gradcheck(lambda x, weight: norm(x, weight, 1e-5), (x, weight))


def test_it_keeps_its_input_alone_where_single_operations_keep_two_copies_in_fp32():
    x = torch.randn(7, 64, dtype=torch.bfloat16, requires_grad=True)
    ours, theirs = (models.normalisation(64, True, False, x.dtype, fused=fused) for fused in (True, False))
    kept = [measure.saved_bytes(lambda n=norm: n(x), exclude=norm.parameters()) for norm in (ours, theirs)]
    assert kept == [7 * 64 * 2, 7 * (2 * 64 * 4 + 4)]
