"""What the precision lab is asked for: a format, a loss scale, gradients of a batch; and the mixes to be trained."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from course_utils import floats
from course_utils.labs.fields import choice, several, whole
from course_utils.quantities import Comparison, Number

FORMATS = ("fp32", "bf16", "fp16", "e5m2", "e4m3")
AFTER = (0, 50, 100, 200)
BATCHES = (100, 102_400, 1_638_400, 6_553_600)  # pairs of digits, which come in micro-batches of 100
LAYERS = {"all": 0, "1": 1, "2": 2, "3": 3}
MOST = 40  # the largest power of two
CONSTANT, SCALER = "fp16 × the scale", "fp16, GradScaler"
# Those that the slider's scale is for, and their names in `training`.
SCALED = {CONSTANT: "fp16 autocast", SCALER: "fp16 autocast, scaled"}
MIXES = ("fp32", "bf16 autocast", CONSTANT, SCALER, "bf16 alone", "bf16 + fp32 master")
TICKED = ("fp32", CONSTANT, "bf16 alone")
STEPS = 200  # of a training
BIN = 1 / 4  # of a histogram of gradients, in powers of two
_LARGE = {"after": 0, "layer": 0, "mean_over": 1_638_400}
PRESETS: Mapping[str, Mapping[str, object]] = {
    "what does fp16 lose?": _LARGE | {"fmt": "fp16", "power": 0},
    "a small batch?": _LARGE | {"fmt": "fp16", "power": 0, "mean_over": 100},
    "does 2^10 help?": _LARGE | {"fmt": "fp16", "power": 10},
    "what is too far?": _LARGE | {"fmt": "fp16", "power": 40},
    "200 steps later?": _LARGE | {"fmt": "fp16", "power": 0, "after": 200},
    "bf16?": _LARGE | {"fmt": "bf16", "power": 0},
    "fp8?": _LARGE | {"fmt": "e4m3", "power": 29},
}


@dataclass(frozen=True)
class Scaling:
    """The format in focus, a loss scale 2^power, and which gradients: after how many steps, and of which layer."""

    fmt: str = choice("format", {floats.FORMATS[name].label: name for name in FORMATS}, "fp16")
    power: int = whole("loss scale 2^", 0, 0, MOST)
    after: int = choice("gradients after steps", {f"{n}": n for n in AFTER}, 0)
    layer: int = choice("of layer", LAYERS, 0)  # 0 is all of them
    mean_over: int = choice("loss is a mean over", {f"{n:,}": n for n in BATCHES}, 1_638_400)
    mixes: Sequence[str] = several("train", MIXES, TICKED)


@dataclass(frozen=True)
class Gradients:
    """The unscaled gradients of a batch of 100 as a histogram, and what each format makes of the scaled ones."""

    bins: Sequence[tuple[Number, int]]  # the power of two at which one begins, and how many are in it
    fit: tuple[Number, Number]  # mean and standard deviation of ln |g|
    ends: tuple[Number, Number]  # log2 of the smallest and of the largest; zeros are left out
    fates: Mapping[str, Comparison]  # by format: by its edges, and by torch's cast

    def over(self, mean_over: int) -> "Gradients":
        """The same gradients for a loss that is a mean over `mean_over` pairs. Each is smaller by that factor."""
        halved, (mu, sigma) = halvings(mean_over), self.fit
        bins = tuple((begin - halved, count) for begin, count in self.bins)
        ends = tuple(end - halved for end in self.ends)
        return replace(self, bins=bins, fit=(mu - halved * math.log(2), sigma), ends=ends)


def halvings(mean_over: int) -> int:
    """How many doublings of a batch of 100 give that batch."""
    return round(math.log2(mean_over / 100))


@dataclass(frozen=True)
class Found:
    """The losses of each mix that was trained, with which loss scale 2^power and batch; and the gradients."""

    losses: Mapping[str, Sequence[Number]] = field(default_factory=dict)
    power: int = 0
    mean_over: int = 1_638_400
    gradients: Gradients | None = None
