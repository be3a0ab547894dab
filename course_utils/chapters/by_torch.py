"""Torch's own counts for a model that the accountant describes: parameters, FLOPs and bytes.

The model is built as the course's transformer. Its tensors have shapes and no numbers, so even the
largest model takes no memory.
"""

from dataclasses import dataclass, replace
from functools import cache, lru_cache

import torch

from course_utils.core import measure
from course_utils.core.accountant import Model
from course_utils.core.predict import shape_of
from course_utils.core.say import Ledger
from course_utils.core.say.alone import alone
from course_utils.subjects import models

# Options of models.Transformer: attention is one kernel, and so is each normalisation.
ONE_KERNEL = {"fused": True, "fused_norm": True}


@lru_cache(maxsize=64)
def model(m: Model) -> models.Transformer:
    """Return the model on torch's "meta" device, where tensors have shapes and no numbers.

    It is built once for each `Model`, so no caller may change it.
    """
    with torch.device("meta"):
        return models.Transformer(m)


def layer(m: Model) -> models.Block:
    """Return the model's first layer; all layers are alike."""
    return model(m).blocks[0]


def matrix(m: Model, name: str) -> torch.Tensor:
    """Return the layer's matrix of that name, which is one of the keys that `matrices` returns."""
    ending = f".{name}.weight"  # the path of "query" is "attention.query.weight"
    parameters = layer(m).named_parameters()
    return next(parameter for path, parameter in parameters if path.endswith(ending))


def matrices(m: Model) -> dict[str, tuple[int, int]]:
    """Return the shape (inputs, outputs) of each matrix of a layer, by the matrix's name.

    The course's layers keep their matrices in this order, unlike torch.nn.Linear.
    """
    shapes = {}
    for path, parameter in layer(m).named_parameters():
        # A normalisation's weight has one dimension, and is no matrix.
        if "weight" in path and parameter.ndim == 2:
            name = path.split(".")[1]  # the path is like "attention.query.weight"
            shapes[name] = tuple(parameter.shape)
    return shapes


def refuse_impossible(m: Model) -> None:
    """Raise a ValueError for a model that cannot be built; a notebook shows its sentence alone.

    A reader types shapes of their own, and should not have to find the sentence below a hundred
    lines of the course's and of torch's.
    """
    try:
        shape_of(m)
    except ValueError as error:
        alone(error, str(error))
        raise


@dataclass(frozen=True)
class Step:
    """Torch's counts for a training step: the model's parameters, and the FLOPs of each pass."""

    parameters: int
    flops: Ledger


@cache
def step(m: Model, batch: int, sequence: int, recomputed: int = 0) -> Step:
    """Count a training step in which the first `recomputed` layers are recomputed.

    The tensors are on torch's "meta" device. Fake tensors, as in `measure.account`, would take four
    times as long, and only counting bytes needs them. Attention is made of single products, not one
    kernel, so that both devices, "meta" and a CPU, run the same operations.
    """
    refuse_impossible(m)
    with torch.device("meta"):
        transformer = models.Transformer(m, recompute=recomputed)
        ids = torch.zeros(batch, sequence, dtype=torch.int64)
    losses: list[torch.Tensor] = []  # `measure.flops` does not return the result of `forward`

    def forward() -> None:
        logits = transformer(ids)
        losses.append(logits.sum())  # any loss will do: only matrix products are counted

    flops = {}
    flops["forward"] = measure.flops(forward).total
    loss = losses.pop()
    flops["backward"] = measure.flops(loss.backward).total
    parameters = sum(parameter.numel() for parameter in transformer.parameters())
    return Step(parameters, Ledger(flops, unit="FLOPs"))


@cache
def layer_bytes(m: Model, batch: int, sequence: int, dtype: str) -> int:
    """Return the bytes that autograd keeps for the backward pass of one layer.

    They are a two-layer model's bytes minus a one-layer model's, so that the embedding and the
    output, which both models have, cancel.
    """
    options = ONE_KERNEL | {"dtype": measure.DTYPES[dtype]}

    def kept(layers: int) -> int:
        """Return the bytes that autograd keeps of a model with `layers` layers."""
        # `account` calls both functions where new tensors are fake, and so take no memory.
        counted = measure.account(
            lambda: models.Transformer(replace(m, layers=layers), **options),
            lambda: torch.zeros(batch, sequence, dtype=torch.int64),
        )
        return counted.bytes["activations"]

    return kept(2) - kept(1)


@cache
def step_bytes(m: Model, batch: int, sequence: int, dtype: str, recomputed: int) -> int:
    """Return the most bytes that a training step holds beside parameters and gradients.

    The gradients are there from the start, because the step adds to those of an earlier batch. The
    loss is computed in fp32. The first `recomputed` layers are recomputed.
    """
    refuse_impossible(m)
    # Attention is one kernel, and so is each normalisation.
    options = ONE_KERNEL | {"dtype": measure.DTYPES[dtype], "recompute": recomputed}
    return measure.step_peak_bytes(
        lambda: models.Transformer(m, **options),
        lambda: torch.zeros(batch, sequence, dtype=torch.int64),
        loss=_mean_loss,
        accumulate=True,
    )


def _mean_loss(logits: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy if token 0 is the right one everywhere.

    Which token is right changes no tensor's size, and so no byte that is counted.
    """
    log_shares = logits.float().log_softmax(-1)
    return -log_shares[..., 0].mean()


def whole(m: Model, batch: int, sequence: int, dtype: str) -> tuple[int, ...]:
    """Return three totals: a model's parameters, and a training step's FLOPs and most bytes.

    The step recomputes all layers. To save time, only models with two and with three layers are
    counted: each further layer adds what the third one adds.
    """
    # Each is (parameters, FLOPs, bytes).
    of_two_layers = _counted(replace(m, layers=2), batch, sequence, dtype)
    of_three_layers = _counted(replace(m, layers=3), batch, sequence, dtype)
    totals = []
    for two, three in zip(of_two_layers, of_three_layers, strict=True):
        added_by_a_layer = three - two
        totals.append(two + (m.layers - 2) * added_by_a_layer)
    return tuple(totals)


def _counted(m: Model, batch: int, sequence: int, dtype: str) -> tuple[int, int, int]:
    """Return a small model's parameters, and the FLOPs and most bytes of a step.

    The step recomputes all layers.
    """
    counted = step(m, batch, sequence, m.layers)
    most_bytes = step_bytes(m, batch, sequence, dtype, m.layers)
    return counted.parameters, counted.flops.total, most_bytes
