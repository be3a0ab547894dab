"""A step that is only accounted for, against one that runs, and against what was predicted."""

import resource
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from course_utils.core import measure, predict
from course_utils.subjects import models
from course_utils.subjects.child_processes.transformers import _OPTIMIZERS as OPTIMIZERS

# Without shrinking: a model that fails is small anyway, and each takes a moment.
untimed = settings(
    deadline=None, max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Products here are small, so a second thread would only wait for its core."""
    with measure.cpu_threads(1):
        yield


def really_run(model, inputs, loss=torch.sum, optimizer=torch.optim.AdamW):
    """The same step with memory behind its tensors."""
    parameters = list(model.parameters())
    losses = []

    def forward():
        losses.append(loss(model(inputs)))

    def backward():
        losses[0].backward()

    activations = measure.saved_bytes(lambda: loss(model(inputs)), exclude=parameters)
    passes = {
        "forward": measure.flops(forward).total,
        "backward": measure.flops(backward).total,
    }
    optimizer = optimizer(parameters)
    if not isinstance(optimizer, torch.optim.Adagrad):
        assert measure.optimizer_bytes(optimizer) == 0
    optimizer.step()
    held = {
        "parameters": sum(p.nbytes for p in parameters),
        "gradients": sum(p.grad.nbytes for p in parameters if p.grad is not None),
        "optimizer": measure.optimizer_bytes(optimizer),
        "activations": activations,
    }
    count = sum(p.numel() for p in parameters)
    return count, passes, held


def parts(account):
    return account.parameters, account.flops, account.bytes


def cross_entropy(logits):
    rows = logits.flatten(0, 1).float()
    targets = torch.zeros(len(rows), dtype=torch.int64)
    return functional.cross_entropy(rows, targets)


SHAPES = st.fixed_dictionaries(
    {
        "layers": st.integers(0, 2),
        "width": st.sampled_from([8, 16]),
        "heads": st.just(4),
        "vocabulary": st.integers(1, 9),
        "context": st.just(8),
        "kv_heads": st.sampled_from([1, 2, 4]),
        "feed_forward": st.none() | st.integers(1, 40),
        "biases": st.booleans(),
        "learned_positions": st.booleans(),
        "tied_output": st.booleans(),
        "gated": st.booleans(),
        "rms_norm": st.booleans(),
        "rotary": st.booleans(),
    }
)


@untimed
@given(
    SHAPES,
    st.fixed_dictionaries({"fused": st.booleans(), "recompute": st.booleans()}),
    st.sampled_from(["fp32", "bf16"]),
    st.integers(1, 2),
    st.integers(1, 8),
    st.booleans(),
)
def test_a_transformers_account_is_the_step_that_runs_and_what_was_predicted(
    sizes, options, dtype, batch, sequence, with_loss
):
    shape = predict.Transformer(**sizes)

    def make():
        return models.Transformer(shape, **options, dtype=measure.DTYPES[dtype])

    ids = torch.zeros(batch, sequence, dtype=torch.int64)
    loss = cross_entropy if with_loss else torch.sum
    account = measure.account(make, ids, loss=loss)
    assert parts(account) == really_run(make(), ids, loss=loss)
    assert account.parameters == shape.parameters
    assert account.flops["forward"] == shape.forward_flops(batch, sequence).total

    kept = shape.activation_bytes(batch, sequence, dtype=dtype, loss=with_loss, **options)
    state = predict.training_bytes(shape.parameters, f"{dtype} adamw", tensors=shape.tensors)
    assert account.bytes == {
        "parameters": state["parameters"],
        "gradients": state["gradients"],
        "optimizer": state["optimizer"],
        "activations": kept.total,
    }
    if not options["recompute"]:
        flops = shape.training_flops(batch, sequence, fused=options["fused"])
        assert account.flops.total == flops.total


@pytest.mark.parametrize("recipe", [f"fp32 {name}" for name in OPTIMIZERS])
@settings(untimed, max_examples=4)
@given(
    batch=st.integers(1, 4),
    widths=st.lists(st.integers(1, 9), min_size=2, max_size=4),
)
def test_an_optimizers_bytes_are_those_of_its_recipe(recipe, batch, widths):
    x = torch.randn(batch, widths[0])
    optimizer = OPTIMIZERS[recipe.split()[-1]]

    def make():
        return models.MLP(widths, nonlinearity="gelu", biases=True)

    account = measure.account(make, x, optimizer=optimizer)
    assert parts(account) == really_run(make(), x, optimizer=optimizer)
    tensors = 2 * (len(widths) - 1)
    training = predict.training_bytes(account.parameters, recipe, tensors=tensors)
    layers_inputs = sum(widths[:-1])
    gelus_inputs = sum(widths[1:-1])
    kept = 4 * batch * (layers_inputs + gelus_inputs)
    assert account.bytes.total == training.total + kept
    assert account.flops == predict.mlp_flops(batch, widths)


def convolutions():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(144, 5),
    )


def encoder():
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)


def frozen():
    network = models.MLP([4, 5, 6])
    network.layers[0].requires_grad_(False)
    return network


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (convolutions, (2, 3, 8, 8)),
        (encoder, (2, 5, 8)),
        (frozen, (3, 4)),
    ],
)
@pytest.mark.parametrize("input_grad", [False, True])
def test_any_other_models_account_is_the_step_that_runs(make, shape, input_grad):
    x = torch.randn(shape, requires_grad=input_grad)
    account = measure.account(make, x)
    assert parts(account) == really_run(make(), x)


def most_bytes():
    """The most bytes that this process has held so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":
        return most
    return 1024 * most


def test_two_layers_of_a_70b_llama_are_accounted_for_exactly_within_500_megabytes():
    whole = predict.MODELS["Llama 3 70B"]
    assert whole.forward_flops(1, 8192).total == 1_314_637_949_698_048
    shape = replace(whole, layers=2)

    def make():
        return models.Transformer(shape, fused=True, dtype=torch.bfloat16)

    def tokens():
        return torch.zeros(1, 8192, dtype=torch.int64)

    before = most_bytes()
    account = measure.account(make, tokens)
    assert most_bytes() - before < 500e6
    assert account.parameters == shape.parameters > 3e9
    assert account.flops["forward"] == shape.forward_flops(1, 8192).total
    assert account.flops.total == shape.training_flops(1, 8192, fused=True).total
    kept = shape.activation_bytes(1, 8192, dtype="bf16", fused=True).total
    training = predict.training_bytes(shape.parameters, "bf16 adamw", tensors=shape.tensors)
    assert account.bytes["activations"] == kept
    assert account.bytes.total == training.total + kept


def test_accounting_draws_no_random_number_and_leaves_no_fake_tensor_behind():
    before = torch.get_rng_state()
    x = torch.ones(2, 3)
    measure.account(partial(models.MLP, [3, 4]), x)
    assert torch.equal(before, torch.get_rng_state())
    assert type(x) is torch.Tensor
    assert torch.ones(2).sum().item() == 2


def square():
    return nn.Linear(3, 3)


MADE_BEFORE = square()


def looks_at_values():
    layer = square()
    largest = layer.weight.max().item()
    nn.init.uniform_(layer.weight, -largest)
    return layer


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: MADE_BEFORE, "it gave one that was made before"),
        (looks_at_values, "here tensors have shapes and no numbers"),
        (lambda: square().bfloat16(), "with dtype=torch.bfloat16 instead of .bfloat16()"),
    ],
)
def test_what_cannot_be_fake_raises_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=r"^[A-Za-z'].*\.$") as caught:
        measure.account(make, torch.ones(2, 3))
    assert sentence in str(caught.value)
    next_account = measure.account(square, torch.ones(2, 3))
    assert next_account.flops["forward"] == 36


def test_an_account_is_two_tables_under_its_parameters():
    account = measure.account(square, torch.ones(2, 3))
    assert repr(account).startswith("12 parameters\n\n")
    assert account._repr_html_().count("<table>") == 2
