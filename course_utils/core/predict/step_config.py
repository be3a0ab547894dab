"""The configuration of a training step: a model, its tokens, and the ways in which it computes."""

from dataclasses import dataclass

from course_utils.core.predict.operations import check_sizes
from course_utils.core.predict.transformer import Shape

# What a step computes once more: nothing, each layer, every second one, or in each layer all but every other product's result.
Recompute = bool | str
RECOMPUTE: tuple[Recompute, ...] = (False, True, "every other layer", "every other product")
# A loss in one kernel of its own, or in one with the output's product, a few tokens at a time.
FusedLoss = bool | str
FUSED_LOSSES: tuple[FusedLoss, ...] = (False, True, "with output")


@dataclass(frozen=True)
class StepConfig:
    """Forward, loss and backward of a model, and how they compute."""

    model: Shape
    batch: int
    sequence: int
    n: int  # bytes of a number
    gradient_bytes: int  # and of one of a gradient
    accumulate: bool
    fused: bool
    recompute: Recompute
    segment: int
    fused_loss: FusedLoss
    pieces: int

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in ("batch", "sequence", "segment", "pieces")}
        check_sizes(**sizes)
        if not (self.segment and self.pieces):
            raise ValueError(
                f"A segment and the pieces are 1 or more; got segment {self.segment}, pieces {self.pieces}."
            )
        if self.fused_loss and self.pieces > 1:
            raise ValueError(
                f"A loss is fused or in pieces, not both; got {self.fused_loss!r} and {self.pieces} pieces."
            )
        for name, ways in (("recompute", RECOMPUTE), ("fused_loss", FUSED_LOSSES)):
            if (way := getattr(self, name)) not in ways:
                raise ValueError(f"For {name} there are {', '.join(map(str, ways))}; got {way!r}.")

    @property
    def unit(self) -> int:
        """The number of layers that repeat as one unit."""
        if self.recompute == "every other layer":
            return 2
        return self.segment if self.recompute is True else 1
