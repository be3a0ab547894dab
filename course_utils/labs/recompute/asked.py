"""A stack of blocks, what of it is computed again, and what a step then keeps and costs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from course_utils import predict
from course_utils.labs.fields import Said, choice, said_is, size, tick, whole
from course_utils.predict import BlockStack
from course_utils.quantities import Number

KINDS = ("x W", "MLP", "GPT", "GPT, fused attention")
DEEPEST = 96
HEAD_WIDTH = 64  # as in every GPT, where the width is a multiple of it
SLIDER_PX = 130  # three sizes in a row

_FRESH = {"batch": 4, "sequence": 128, "width": 64, "early_stop": True, "scores_again": False}
_LONG = {"batch": 1, "sequence": 1024, "width": 128, "scores_again": True}
_GPT2 = {"layers": 12, "batch": 1, "sequence": 1024, "width": 768}
PRESETS = {
    "is √L best?": _FRESH | {"kind": "MLP", "layers": 16, "segment": 4},
    "when is √L best?": _FRESH | {"kind": "x W", "layers": 16, "segment": 4},
    "when is it 8/6?": _FRESH | {"kind": "MLP", "layers": 8, "segment": 2, "early_stop": False},
    "what of GPT-2?": _FRESH | _GPT2 | {"kind": "GPT, fused attention", "segment": 1},
    "only the scores?": _FRESH | _LONG | {"kind": "GPT", "layers": 6, "segment": 0},
    "with one block?": _FRESH | {"kind": "MLP", "layers": 1, "segment": 1},
    "with few tokens?": _FRESH | _GPT2 | {"kind": "MLP", "sequence": 8, "segment": 1},
}


@dataclass(frozen=True)
class Cost:
    """What one step costs: bytes kept after the forward pass, the most bytes at one time, and FLOPs."""

    kept: int
    peak: int
    flops: int


def _in_segments(said: Said) -> bool:
    return said["kind"] != "GPT" or not said["scores_again"]


@dataclass(frozen=True)
class Plan:
    """Blocks, their sizes, and what is computed again: segments of blocks, or only the scores of each block."""

    kind: str = choice("blocks", KINDS, "MLP")
    layers: int = whole("blocks L", 16, 1, DEEPEST)
    scores_again: bool = tick("only the scores again", False, when=said_is("kind", "GPT"))
    segment: int = whole("segment s", 4, 0, lambda said: said["layers"], when=_in_segments)
    early_stop: bool = tick("early stop", True)
    batch: int = size("batch B", 4, slider_px=SLIDER_PX)
    sequence: int = size("sequence S", 128, slider_px=SLIDER_PX)
    width: int = size("width H", 64, slider_px=SLIDER_PX)

    def __post_init__(self) -> None:
        """If only the scores are computed again, there are no segments."""
        if self.scores_again:
            object.__setattr__(self, "segment", 0)

    @cached_property
    def all_kept(self) -> "Plan":
        """The same blocks with nothing computed again."""
        return replace(self, segment=0, scores_again=False)

    @cached_property
    def stack(self) -> BlockStack:
        """What `predict` says of these blocks."""
        if not self.kind.startswith("GPT"):
            make = predict.linear_stack if self.kind == "x W" else predict.mlp_stack
            return make(self.layers, self.batch * self.sequence, self.width)
        shape = predict.Transformer(self.layers, self.width, self.heads, 1, self.sequence)
        ways = {"fused": self.kind == "GPT, fused attention", "scores_again": self.scores_again}
        return predict.transformer_stack(shape, self.batch, self.sequence, **ways)

    @property
    def heads(self) -> int:
        """The width is cut into heads of 64, or of its largest part that divides 64."""
        return self.width // math.gcd(self.width, HEAD_WIDTH)

    @property
    def fullest(self) -> int:
        """The number, from 0, of the segment that is rebuilt when most is kept. As many inputs wait before it."""
        return self.stack.peak_bytes(self.segment)["inputs of earlier segments"] // self.stack.input_bytes

    @cached_property
    def predicted(self) -> Cost:
        """The predicted cost of a step."""
        flops = self.stack.step_flops(self.segment, early_stop=self.early_stop).total
        return Cost(self.stack.kept_bytes(self.segment), self.stack.peak_bytes(self.segment).total, flops)

    @property
    def ratio(self) -> Number:
        """FLOPs of a step over those with everything kept."""
        return self.predicted.flops / self.all_kept.predicted.flops

    @cached_property
    def frontier(self) -> Sequence["Plan"]:
        """The same blocks with each choice: all kept, each length of segments, and for a GPT the scores again."""
        kept = self.all_kept
        in_segments = [replace(kept, segment=segment) for segment in range(self.layers + 1)]
        return [*in_segments, replace(kept, scores_again=True)] if self.kind == "GPT" else in_segments

    @cached_property
    def least(self) -> "Plan":
        """The choice with the least peak; of equals the one with the fewest FLOPs."""
        return min(self.frontier, key=lambda one: (one.predicted.peak, one.predicted.flops))


Found = Mapping[Plan, Cost]  # what was counted of real steps
