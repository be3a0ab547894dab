"""The configuration of a training step: a model, its tokens, and the ways in which it computes."""

from dataclasses import dataclass

from course_utils.core.accountant import Mixture
from course_utils.core.predict.operations import check_sizes
from course_utils.core.predict.transformer import Shape

# What a step computes a second time: nothing, all layers, every second one, or in each layer
# everything but every other product.
Recompute = bool | str
RECOMPUTE: tuple[Recompute, ...] = (False, True, "every other layer", "every other product")
# The loss is made of single operations, or is one kernel, or is one kernel with the output's
# product, a few tokens at a time.
FusedLoss = bool | str
FUSED_LOSSES: tuple[FusedLoss, ...] = (False, True, "with output")

# For each layer with a mixture, how many tokens go to each of its experts.
Routing = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class StepConfig:
    """The sizes of a step, and how its forward pass, loss and backward pass compute.

    The docstring of `timeline` explains each field.
    """

    model: Shape
    batch: int
    sequence: int
    dtype_bytes: int  # of one number of the model
    gradient_bytes: int  # of one number of a parameter's gradient
    accumulate: bool
    fused: bool
    recompute: Recompute
    segment: int
    fused_loss: FusedLoss
    pieces: int
    routing: Routing | None = None

    def __post_init__(self) -> None:
        """Raise a ValueError, with what is possible, if a field or two of them make no step."""
        sizes = {name: getattr(self, name) for name in ("batch", "sequence", "segment", "pieces")}
        check_sizes(**sizes)
        if not (self.segment and self.pieces):
            raise ValueError(
                "A segment and the pieces are 1 or more; "
                f"got segment {self.segment}, pieces {self.pieces}."
            )
        if self.fused_loss and self.pieces > 1:
            raise ValueError(
                "A loss is fused or in pieces, not both; "
                f"got {self.fused_loss!r} and {self.pieces} pieces."
            )
        _check_way("recompute", self.recompute, RECOMPUTE)
        _check_way("fused_loss", self.fused_loss, FUSED_LOSSES)
        if self.routing is not None:
            _check_routing(self.routing, self.model, self.batch * self.sequence)

    def tokens_of_experts(self, layer: int) -> tuple[int, ...]:
        """Return how many tokens go to each expert of this layer; () if the layer is dense."""
        mixture = self.model.mixture
        if mixture is None or layer < mixture.dense_layers:
            return ()
        if self.routing is not None:
            return self.routing[layer - mixture.dense_layers]
        return even_tokens(mixture, self.batch * self.sequence)

    @property
    def units_before(self) -> int:
        """The number of units at the beginning that may differ from the later ones.

        They are those with dense layers in a model whose later layers have mixtures.
        """
        mixture = self.model.mixture
        if mixture is None or mixture.dense_layers >= self.model.layers:
            return 0
        return -(-mixture.dense_layers // self.unit)  # rounded up

    @property
    def unit(self) -> int:
        """The number of layers that make one unit: units are alike, single layers may not be.

        If every other layer is recomputed, a unit is one layer that is not and one that is. Units
        are what `stretches` repeats.
        """
        if self.recompute == "every other layer":
            return 2
        if self.recompute is True:
            return self.segment
        return 1


def even_tokens(mixture: Mixture, tokens: int) -> tuple[int, ...]:
    """Return how many tokens go to each expert, if each gets as many as another, or one more.

    >>> even_tokens(Mixture(experts=3, used=2, inner=1), tokens=5)
    (4, 3, 3)
    """
    least, more = divmod(tokens * mixture.used, mixture.experts)
    return tuple(least + (number < more) for number in range(mixture.experts))


def _check_routing(routing: Routing, model: Shape, tokens: int) -> None:
    """Raise a ValueError if tokens cannot be spread over the model's experts in this way."""
    mixture = model.mixture
    layers = max(0, model.layers - mixture.dense_layers) if mixture else 0
    if len(routing) != layers:
        raise ValueError(f"{layers} layers have experts; got a routing for {len(routing)}.")
    for counts in routing:
        possible = all(0 <= count <= tokens for count in counts)
        whole = len(counts) == mixture.experts and sum(counts) == mixture.used * tokens
        if not (possible and whole):
            raise ValueError(
                f"Each of {mixture.experts} experts gets 0 to {tokens} tokens, and all together "
                f"{mixture.used * tokens}; got {counts}."
            )


def _check_way(name: str, way: bool | str, ways: tuple[bool | str, ...]) -> None:
    """Raise a ValueError if the option `name` is none of `ways`."""
    if way not in ways:
        raise ValueError(f"For {name} there are {', '.join(map(str, ways))}; got {way!r}.")
