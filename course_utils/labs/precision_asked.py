"""What the precision lab is asked for: a format, a loss scale, some gradients; and what was trained beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from course_utils.precision import Trained, fates, gradients, lognormal_fit
from course_utils.quantities import Comparison

FORMATS = ("fp32", "bf16", "fp16", "e5m2", "e4m3")
CONSTANT, SCALER = "fp16 autocast", "fp16 autocast, scaled"  # the two mixes that the slider's scale is for
_kept = lru_cache(maxsize=2048)


@dataclass(frozen=True)
class Asked:
    """The format in focus, a loss scale 2^power, and which gradients: after how many steps, and of which layer."""

    fmt: str
    power: int
    after: int
    layer: int  # 0 is all of them

    @property
    def fates(self) -> Comparison:
        """By the format's edges, and by torch's cast."""
        return fates_in(self.fmt, self.power, self.after, self.layer)

    @property
    def sizes(self) -> torch.Tensor:
        """log2 |g|, unscaled, in order."""
        return log_sizes(self.after, self.layer)

    @property
    def fit(self) -> tuple[float, float]:
        """Mean and standard deviation of ln |g|, unscaled."""
        return fitted(self.after, self.layer)


@dataclass(frozen=True)
class Runs:
    """What was trained, by mix, and the loss scale 2^power that it was trained with."""

    steps: Mapping[str, Sequence[Trained]]
    power: int

    def name(self, mix: str) -> str:
        """As short as it can be said."""
        short = {CONSTANT: f"fp16 × 2^{self.power}", SCALER: "GradScaler"}
        return short.get(mix, mix.replace("fp32 master", "master"))


@_kept
def some_gradients(after: int, layer: int) -> torch.Tensor:
    """Those that are looked at."""
    return gradients(after, layer=layer or None)


@_kept
def log_sizes(after: int, layer: int) -> torch.Tensor:
    """log2 |g| in order; zeros are left out."""
    found = some_gradients(after, layer)
    return found[found != 0].abs().double().log2().sort().values


@_kept
def fitted(after: int, layer: int) -> tuple[float, float]:
    """The log-normal with their mean and spread."""
    return lognormal_fit(some_gradients(after, layer))


@_kept
def fates_in(fmt: str, power: int, after: int, layer: int) -> Comparison:
    """By the edges and by the cast."""
    return fates(some_gradients(after, layer), fmt, 2.0**power)
