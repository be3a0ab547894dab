"""What the precision lab is asked for: a format, a loss scale, some gradients; and the mixes that are to be trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from course_utils import floats
from course_utils.labs.fields import choice, several, whole
from course_utils.quantities import Comparison, Number

FORMATS = ("fp32", "bf16", "fp16", "e5m2", "e4m3")
AFTER = (0, 50, 100, 200)
LAYERS = {"all": 0, "1": 1, "2": 2, "3": 3}
MOST = 40  # the largest power of two
CONSTANT, SCALER = "fp16 × the scale", "fp16, GradScaler"
# Those that the slider's scale is for, and their names in `training`.
SCALED = {CONSTANT: "fp16 autocast", SCALER: "fp16 autocast, scaled"}
MIXES = ("fp32", "bf16 autocast", CONSTANT, SCALER, "bf16 alone", "bf16 + fp32 master")
TICKED = ("fp32", CONSTANT, "bf16 alone")
STEPS = 200  # of a training
BIN = 1 / 4  # of a histogram of gradients, in powers of two
PRESETS: Mapping[str, Mapping[str, object]] = {
    "what does fp16 lose?": {"fmt": "fp16", "power": 0, "after": 0, "layer": 0},
    "does 2^10 help?": {"fmt": "fp16", "power": 10, "after": 0, "layer": 0},
    "what is too far?": {"fmt": "fp16", "power": 40, "after": 0, "layer": 0},
    "200 steps later?": {"fmt": "fp16", "power": 0, "after": 200, "layer": 0},
    "and in bf16?": {"fmt": "bf16", "power": 0, "after": 0, "layer": 0},
    "and in fp8?": {"fmt": "e4m3", "power": 29, "after": 0, "layer": 0},
}


@dataclass(frozen=True)
class Scaling:
    """The format in focus, a loss scale 2^power, and which gradients: after how many steps, and of which layer."""

    fmt: str = choice("format", {floats.FORMATS[name].label: name for name in FORMATS}, "fp16")
    power: int = whole("loss scale 2^", 0, 0, MOST)
    after: int = choice("gradients after steps", {f"{n}": n for n in AFTER}, 0)
    layer: int = choice("of layer", LAYERS, 0)  # 0 is all of them
    mixes: Sequence[str] = several("train", MIXES, TICKED)


@dataclass(frozen=True)
class Gradients:
    """The gradients that are asked for, unscaled; and what each format makes of them at the scale."""

    bins: Sequence[tuple[Number, int]]  # the power of two at which one begins, and how many are in it
    fit: tuple[Number, Number]  # mean and standard deviation of ln |g|
    ends: tuple[Number, Number]  # log2 of the smallest and of the largest; zeros are left out
    fates: Mapping[str, Comparison]  # by format: by its edges, and by torch's cast


@dataclass(frozen=True)
class Found:
    """The losses of each mix that was trained, the loss scale 2^power that it was trained with; and the gradients."""

    losses: Mapping[str, Sequence[Number]] = field(default_factory=dict)
    power: int = 0
    gradients: Gradients | None = None
