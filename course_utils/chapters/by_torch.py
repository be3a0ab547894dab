"""What torch counts of a model that the accountant describes, built as the course's transformer.

The tensors have shapes and no numbers, so the largest model takes no memory.
"""

from dataclasses import dataclass, replace
from functools import cache, lru_cache

import torch

from course_utils.core import measure
from course_utils.core.accountant import Model
from course_utils.core.say import Ledger
from course_utils.subjects import models

# Attention is one kernel, and so is each normalisation.
ONE_KERNEL = {"fused": True, "fused_norm": True}


@lru_cache(maxsize=64)
def model(m: Model) -> models.Transformer:
    """Build the model once. Every caller gets the same one, so nobody may change it."""
    with torch.device("meta"):
        return models.Transformer(m)


def layer(m: Model) -> models.Block:
    return model(m).blocks[0]


def matrix(m: Model, name: str) -> torch.Tensor:
    """Return the matrix of a layer to which `matrices` gives that name."""
    ending = f".{name}.weight"
    parameters = layer(m).named_parameters()
    return next(parameter for path, parameter in parameters if path.endswith(ending))


def matrices(m: Model) -> dict[str, tuple[int, int]]:
    """The (inputs, outputs) of each matrix of a layer, as torch builds it."""
    shapes = {}
    for path, parameter in layer(m).named_parameters():
        if "weight" in path and parameter.ndim == 2:
            name = path.split(".")[1]
            shapes[name] = tuple(parameter.shape)
    return shapes


@dataclass(frozen=True)
class Step:
    """What torch counted of a step: the parameters, and the FLOPs of each pass."""

    parameters: int
    flops: Ledger


@cache
def step(m: Model, batch: int, sequence: int, recomputed: int = 0) -> Step:
    """Count a training step that recomputes so many of the first layers.

    Attention is made of single products, so that a tensor on torch's "meta" device goes through the
    same operations as one on a CPU. Such tensors are four times as fast as the fake ones of
    `measure.account`, which would be needed to count bytes as well.
    """
    with torch.device("meta"):
        transformer = models.Transformer(m, recompute=recomputed)
        ids = torch.zeros(batch, sequence, dtype=torch.int64)
    losses: list[torch.Tensor] = []

    def forward() -> None:
        logits = transformer(ids)
        losses.append(logits.sum())

    flops = {}
    flops["forward"] = measure.flops(forward).total
    loss = losses.pop()
    flops["backward"] = measure.flops(loss.backward).total
    parameters = sum(parameter.numel() for parameter in transformer.parameters())
    return Step(parameters, Ledger(flops, unit="FLOPs"))


@cache
def layer_bytes(m: Model, batch: int, sequence: int, dtype: str) -> int:
    """What autograd keeps of one layer: what it keeps of two layers, less what it keeps of one."""
    options = ONE_KERNEL | {"dtype": measure.DTYPES[dtype]}

    def kept(layers: int) -> int:
        counted = measure.account(
            lambda: models.Transformer(replace(m, layers=layers), **options),
            lambda: torch.zeros(batch, sequence, dtype=torch.int64),
        )
        return counted.bytes["activations"]

    return kept(2) - kept(1)


@cache
def step_bytes(m: Model, batch: int, sequence: int, dtype: str, recomputed: int) -> int:
    """The most bytes that a step holds beside the parameters and an earlier batch's gradients.

    Its loss is computed in fp32.
    """
    options = ONE_KERNEL | {"dtype": measure.DTYPES[dtype], "recompute": recomputed}
    return measure.step_peak_bytes(
        lambda: models.Transformer(m, **options),
        lambda: torch.zeros(batch, sequence, dtype=torch.int64),
        loss=_mean_loss,
        accumulate=True,
    )


def _mean_loss(logits: torch.Tensor) -> torch.Tensor:
    """The loss if word 0 is right everywhere."""
    log_shares = logits.float().log_softmax(-1)
    return -log_shares[..., 0].mean()


def whole(m: Model, batch: int, sequence: int, dtype: str) -> tuple[int, ...]:
    """Parameters, and of a step that recomputes all layers the FLOPs and the most bytes.

    Two layers and three are counted; each further one adds the same.
    """
    of_two_layers = _counted(replace(m, layers=2), batch, sequence, dtype)
    of_three_layers = _counted(replace(m, layers=3), batch, sequence, dtype)
    totals = []
    for two, three in zip(of_two_layers, of_three_layers, strict=True):
        of_one_layer = three - two
        totals.append(two + (m.layers - 2) * of_one_layer)
    return tuple(totals)


def _counted(m: Model, batch: int, sequence: int, dtype: str) -> tuple[int, int, int]:
    """Count parameters, FLOPs and most bytes of a model that is small enough for it."""
    counted = step(m, batch, sequence, m.layers)
    most_bytes = step_bytes(m, batch, sequence, dtype, m.layers)
    return counted.parameters, counted.flops.total, most_bytes
