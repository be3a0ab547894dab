"""What is trained: a deep linear model, layer by layer, or a transformer."""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from course_utils import predict
from course_utils.labs.fields import choice, said_is, size, tick, typed, whole

DEEPEST = 12
_FRESH = {"what": "layers", "d": 64, "k": 64, "b": 16, "input_grad": False, "frozen": ""}
PRESETS = {
    "what do two layers cost?": _FRESH | {"depth": 2, "d": 256, "k": 64, "b": 1024},
    "what do plain data save?": _FRESH | {"depth": 4},
    "when exactly 6?": _FRESH | {"depth": 4, "input_grad": True},
    "train only the last?": _FRESH | {"depth": 6, "frozen": "0 1 2 3 4"},
    "only the first?": _FRESH | {"depth": 6, "frozen": "1 2 3 4 5"},
    "long sequences?": {"what": "transformer", "model": "GPT-3", "sequence": 131072},
}


_of_layers, _of_a_transformer = said_is("what", "layers"), said_is("what", "transformer")


@dataclass(frozen=True)
class Asked:
    """Layers D × D, the last one D × K, on B data points; or one sequence through a transformer."""

    what: str = choice("FLOPs of", ("layers", "transformer"), "layers")
    model: str = choice("model", list(predict.MODELS), next(iter(predict.MODELS)), when=_of_a_transformer)
    sequence: int = size("S", 1024, when=_of_a_transformer)
    depth: int = whole("layers", 2, 1, DEEPEST, when=_of_layers, width_px=260)
    frozen: str = typed(
        "frozen layers", "", examples=("", "0", "2, 0", "1 2 3"), placeholder="like 0 1", when=_of_layers
    )
    b: int = size("B", 1024, when=_of_layers)
    d: int = size("D", 256, when=_of_layers)
    k: int = size("K", 64, when=_of_layers)
    input_grad: bool = tick("the data need a gradient", False, when=_of_layers)

    @cached_property
    def frozen_layers(self) -> tuple[int, ...]:
        """The layers that were typed; ValueError if they are none. Those beyond the last layer are ignored.

        >>> Asked(depth=3, frozen="2, 0 7").frozen_layers
        (0, 2)
        """
        words = self.frozen
        parts = [part for part in re.split(r"[\s,]+", words.strip()) if part]
        if len(words) > 60:
            raise ValueError(f"That is {len(words)} characters long; 60 are enough for {DEEPEST} layers.")
        if not all(re.fullmatch(r"\d{1,3}", part, re.ASCII) for part in parts):
            raise ValueError(f"“{words}” are no layers. Type their numbers, like 0 1, or click on them.")
        return tuple(sorted({int(part) for part in parts if int(part) < self.depth}))

    @property
    def widths(self) -> tuple[int, ...]:
        """The width of the data, and of each layer's result."""
        return (self.d,) * self.depth + (self.k,)

    @property
    def parameters(self) -> int:
        """The number of weights of all layers."""
        return sum(d * k for d, k in pairwise(self.widths))


def frozen_or_not(key: str, asked: Asked) -> dict[str, str]:
    """The controls after a click on a layer."""
    return {"frozen": " ".join(map(str, sorted({*asked.frozen_layers} ^ {int(key)})))}
