"""The most that a step holds, to the byte: of models that run, and of those that fit nowhere."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

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


def step_of(
    shape: predict.Transformer,
    dtype: str,
    batch: int,
    sequence: int,
    gradients: str | None = None,
    accumulate: bool = False,
    **ways: bool,
):
    """A step of a real model, to accumulate gradients or to make the first; and the model's parameters."""
    model = models.Transformer(**vars(shape), dtype=measure.DTYPES[dtype], **ways)
    for p in model.parameters():
        p.grad_dtype = measure.DTYPES[gradients or dtype]
        p.grad = torch.zeros_like(p, dtype=p.grad_dtype) if accumulate else None
    ids = torch.randint(shape.vocabulary, (batch, sequence + 1))
    read, targets = ids[:, :-1].contiguous(), ids[:, 1:].flatten()

    def step() -> None:
        logits = model(read)
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), targets)
        del logits
        loss.backward()

    return step, list(model.parameters())


def ways(fused: bool, fused_norm: bool, recompute: bool, accumulate: bool = False) -> dict[str, bool]:
    return {"fused": fused, "fused_norm": fused_norm, "recompute": recompute, "accumulate": accumulate}


@settings(max_examples=40)
@given(
    shapes(),
    st.sampled_from([1, 2, 3, 8]),
    st.sampled_from([1, 2, 8, 32, 64]),
    st.sampled_from([("fp32", None), ("bf16", None), ("bf16", "fp32")]),
    st.builds(ways, st.booleans(), st.booleans(), st.booleans(), st.booleans()),
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
