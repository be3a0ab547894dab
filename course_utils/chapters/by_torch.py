"""What torch counts of a model that the accountant describes: built as the course's transformer, without its memory."""

from dataclasses import dataclass, replace
from functools import cache, lru_cache

import torch

from course_utils.core import measure
from course_utils.core.accountant import Model
from course_utils.core.say import Ledger
from course_utils.subjects import models

ONE_KERNEL = {"fused": True, "fused_norm": True}  # attention, and each normalisation


@lru_cache(maxsize=64)
def model(m: Model) -> models.Transformer:
    """The model as torch builds it, once: leave it as it is. Its tensors have shapes and no numbers."""
    with torch.device("meta"):
        return models.Transformer(m)


def layer(m: Model) -> models.Block:
    return model(m).blocks[0]


def matrix(m: Model, name: str) -> torch.Tensor:
    """One of a layer's, as `matrices` names them."""
    return next(p for path, p in layer(m).named_parameters() if path.endswith(f".{name}.weight"))


def matrices(m: Model) -> dict[str, tuple[int, int]]:
    """The (inputs, outputs) of each matrix of a layer, as torch builds it."""
    weights = {name.split(".")[1]: p for name, p in layer(m).named_parameters() if "weight" in name}
    return {name: tuple(weight.shape) for name, weight in weights.items() if weight.ndim == 2}


@dataclass(frozen=True)
class Step:
    """What torch counted of a step: the parameters, and the FLOPs of each pass."""

    parameters: int
    flops: Ledger


@cache
def step(m: Model, batch: int, sequence: int, recomputed: int = 0) -> Step:
    """A step, the first layers of which may be recomputed. Attention is made of single products, so that tensors on
    torch's "meta" device take the way of those on a CPU. They are four times as fast as the fake ones of
    `measure.account`, which it would take to count bytes as well.
    """
    with torch.device("meta"):
        made = models.Transformer(m, recompute=recomputed)
        ids = torch.zeros(batch, sequence, dtype=torch.int64)
    losses: list[torch.Tensor] = []
    passes = {"forward": measure.flops(lambda: losses.append(made(ids).sum())).total}
    passes["backward"] = measure.flops(losses.pop().backward).total
    return Step(sum(p.numel() for p in made.parameters()), Ledger(passes, unit="FLOPs"))


@cache
def layer_bytes(m: Model, batch: int, sequence: int, dtype: str) -> int:
    """What autograd keeps of one layer: what it keeps of two layers, less what it keeps of one."""
    ids, ways = (batch, sequence), ONE_KERNEL | {"dtype": measure.DTYPES[dtype]}

    def kept(layers: int) -> int:
        made = measure.account(
            lambda: models.Transformer(replace(m, layers=layers), **ways),
            lambda: torch.zeros(ids, dtype=torch.int64),
        )
        return made.bytes["activations"]

    return kept(2) - kept(1)


@cache
def step_bytes(m: Model, batch: int, sequence: int, dtype: str, recomputed: int) -> int:
    """The most that a step and its loss in fp32 hold, beside parameters and the gradients of an earlier batch."""
    ways = ONE_KERNEL | {"dtype": measure.DTYPES[dtype], "recompute": recomputed}
    return measure.step_peak_bytes(
        lambda: models.Transformer(m, **ways),
        lambda: torch.zeros(batch, sequence, dtype=torch.int64),
        loss=lambda logits: -logits.float().log_softmax(-1)[..., 0].mean(),
        accumulate=True,
    )


def whole(m: Model, batch: int, sequence: int, dtype: str) -> tuple[int, ...]:
    """Parameters, and of a step with all layers recomputed the FLOPs and the most bytes.

    Two layers and three are counted; each further one adds the same.
    """
    counted = []
    for layers in (2, 3):
        sizes = replace(m, layers=layers), batch, sequence
        account = step(*sizes, layers)
        counted.append((account.parameters, account.flops.total, step_bytes(*sizes, dtype, layers)))
    return tuple(two + (m.layers - 2) * (three - two) for two, three in zip(*counted, strict=True))
