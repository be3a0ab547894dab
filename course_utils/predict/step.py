"""The most that a training step holds: its state, what autograd keeps, and what the backward pass adds to it."""

from dataclasses import dataclass, replace
from functools import lru_cache

from course_utils.predict.operations import dtype_bytes
from course_utils.predict.training import SHARDED_IN_STAGE, recipe_named, training_bytes
from course_utils.predict.transformer import FP32_BYTES, FusedLoss, Recompute, Transformer
from course_utils.quantities import Ledger

STEP_DTYPES = ("fp32", "fp16", "bf16")
Moment = tuple[int | None, dict[str, int]]  # how many parameters have their gradient, and what is held beside


def held_bytes(
    shape: Transformer,
    recipe: str,
    batch: int,
    sequence: int,
    *,
    machines: int = 1,
    stage: int = 3,
    **ways: Recompute,
) -> Ledger:
    """What each machine holds at the moment of a step at which it holds most.

    Batch and sequence are those of one machine; `ways` are accumulate, fused, fused_norm, fused_loss, recompute and
    gathered, as of `step_peak_bytes`. Gradients are those that are there at that moment. Not in it: what machines send
    each other, an optimizer's own temporaries, gaps between allocations, and at stage 3, if not `gathered`, a layer's
    weights while they are whole.

    >>> held_bytes(Transformer(1, 8, 2, 11, 4), "bf16+master adamw", 2, 4)
                  bytes
    parameters    2,016
    gradients        48
    optimizer     8,144
    master        4,032
    activations   3,576
    total        17,816
    """
    _, peak = peak_moment(shape, recipe, batch, sequence, machines, stage, **ways)
    here = {"gradients": peak["gradients"], "activations": peak.total - peak["gradients"]}
    return Ledger({**state_bytes(shape, recipe, machines, stage), **here}, unit="bytes")


# A search asks for the same again and again.


@lru_cache(4096)
def state_bytes(shape: Transformer, recipe: str, machines: int = 1, stage: int = 3) -> Ledger:
    """What each machine holds when the optimizer takes its step, activations aside."""
    options = {"tensors": shape.tensors, "machines": machines, "stage": stage}
    return training_bytes(shape.parameters, recipe, **options)


@lru_cache(4096)
def peak_moment(
    shape: Transformer,
    recipe: str,
    batch: int,
    sequence: int,
    machines: int = 1,
    stage: int = 3,
    **ways: Recompute,
) -> tuple[str, Ledger]:
    """The moment of a step at which most is held beside parameters and optimizer, and what that is, gradients first."""
    kind, split = recipe_named(recipe), machines if "gradients" in SHARDED_IN_STAGE[stage] else 1
    options = {"dtype": kind.parameters, "gradients": kind.gradients[0], "split": split}
    ways["gathered"] = (
        ways.get("gathered", False) and "parameters" in SHARDED_IN_STAGE[stage] and machines > 1
    )
    moments = step_moments(shape, batch, sequence, **options, **ways)
    at_the_update = {"gradients": state_bytes(shape, recipe, machines, stage)["gradients"]}
    moments["optimizer's step"] = Ledger(at_the_update, unit="bytes")
    return max(moments.items(), key=lambda moment: moment[1].total)


def step_peak_bytes(shape: Transformer, batch: int, sequence: int, **options: str | int | None) -> Ledger:
    """The most that forward, cross-entropy and backward hold at one time, beside parameters and tokens.

    `options` are dtype, fused, fused_norm, fused_loss and recompute, as of `Transformer.activation_bytes`; gradients, their
    dtype if it is not the model's; split, the number of machines that each hold a part of them; and gathered, what
    machines that each hold a part of the parameters put together, as `fully_shard` does. Before the backward pass there are no gradients, as after `zero_grad()`. With accumulate, those of an earlier batch are there
    from the start, and a new one stands beside them until it has been added.

    >>> step_peak_bytes(Transformer(12, 768, 12, 50257, 1024), 1, 1024, dtype="bf16", fused=True)
                                                     bytes
    gradients                                            0
    activations                                305,827,840
    log-probabilities and their two gradients  617,558,016
    the loss and its gradient                            8
    total                                      923,385,864
    """
    return max(step_moments(shape, batch, sequence, **options).values(), key=lambda held: held.total)


def step_moments(
    shape: Transformer, batch: int, sequence: int, **options: str | int | None
) -> dict[str, Ledger]:
    """What is held at each moment that can be the peak. The options are those of `step_peak_bytes`.

    Exact for `models.Transformer` on a CPU if it `has_known_peak`.
    """
    step = _Step(shape, batch, sequence, **options)
    moments = step.around_the_layers()
    for layer in step.decisive_layers:
        moments |= step.in_layer(layer)
    return {name: Ledger(step.with_gradients(*moment), unit="bytes") for name, moment in moments.items()}


def has_known_peak(
    shape: Transformer, *, fused: bool = False, fused_norm: bool = False, **ways: Recompute
) -> bool:
    """Whether one of `step_moments` is the peak, by counting many steps: the vocabulary has to be large enough.

    With a smaller one, attention's backward pass or the single operations of an RMSNorm can hold more; with a fused
    loss, or where only some is recomputed, also with a large one, if the feed-forward is narrow.
    """
    one_kernel_each = fused and fused_norm
    widths = 4 if ways.get("accumulate") or one_kernel_each else 16
    needs_kernels = ways.get("fused_loss") or isinstance(ways.get("recompute"), str)
    known = not needs_kernels or (one_kernel_each and shape.inner_width >= 2 * shape.width)
    return known and shape.vocabulary >= widths * shape.width


@dataclass(frozen=True)
class _Step:
    """A model, what it reads in a step, and how it computes."""

    shape: Transformer
    batch: int
    sequence: int
    dtype: str = "fp32"
    gradients: str | None = None
    fused: bool = False
    fused_norm: bool = False
    fused_loss: FusedLoss = False
    recompute: Recompute = False
    accumulate: bool = False
    split: int = 1
    gathered: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in STEP_DTYPES:
            raise ValueError(f"A step is counted in {', '.join(STEP_DTYPES)}; got {self.dtype!r}.")

    @property
    def ways(self) -> dict[str, str | bool]:
        return {"dtype": self.dtype, "fused": self.fused, "fused_norm": self.fused_norm}

    @property
    def kept(self) -> Ledger:
        """What autograd keeps of all layers, without the loss."""
        options = self.ways | {"recompute": self.recompute, "fused_loss": self.fused_loss}
        return self.shape.activation_bytes(self.batch, self.sequence, **options)

    @property
    def inputs(self) -> int:
        """Bytes of one layer's input."""
        return dtype_bytes(self.dtype) * self.batch * self.sequence * self.shape.width

    @property
    def embedding(self) -> int:
        return self.shape.vocabulary * self.shape.width

    @property
    def tied(self) -> int:
        """Bytes of the first gradient of a matrix that is input and output: it waits for the second."""
        return dtype_bytes(self.gradients or self.dtype) * self.embedding * self.shape.tied_output

    def new_gradient(self, numbers: int, beside: int, beside_cast: int = 0) -> int:
        """Bytes of a matrix's new gradient, of what else is held when it is made, and of its copy in another dtype."""
        made, kept = dtype_bytes(self.dtype), dtype_bytes(self.gradients or self.dtype)
        cast = 0 if made == kept else (made + kept) * numbers + beside_cast
        return max(made * numbers + beside, cast)

    def with_gradients(self, done: int | None, parts: dict[str, int]) -> dict[str, int]:
        """What is held when so many parameters have their gradient; None means the forward pass."""
        there = self.shape.parameters if self.accumulate else done or 0
        share = -(-there // self.split)  # rounded up
        gradients = {"gradients": dtype_bytes(self.gradients or self.dtype) * share}
        return gradients | parts | {"the loss and its gradient": 2 * FP32_BYTES * (done is not None)}

    def gathered_bytes(self, layers: int = 0, gradients: int = 0) -> dict[str, int]:
        """What is whole for a while, as `fully_shard` does it on each layer and on the model.

        What stands around the layers has whole weights during the whole step. A layer has them while it computes, and
        so has the next one, which is fetched meanwhile. On the way back a layer's gradients are whole until all are
        made, and the output's until the step's end.
        """
        shape, layer = self.shape, self.shape.parameters_of_a_layer
        around = shape.parameters - shape.layers * layer
        whole = around + min(layers, shape.layers) * layer + gradients
        return {"gathered": dtype_bytes(self.dtype) * whole} if self.gathered else {}

    def around_the_layers(self) -> dict[str, Moment]:
        """The moments at the loss, at the output and at the embedding; there first with two gradients, then with their sum."""
        kept, logits = self.kept, self.batch * self.sequence * self.shape.vocabulary
        activations = {"activations": kept.total - kept["tokens"]}
        of_embedding = 3 * self.tied or self.new_gradient(self.embedding, self.inputs, self.inputs)
        of_output = self.new_gradient(self.embedding, dtype_bytes(self.dtype) * logits + self.inputs)
        at_the_loss = {"log-probabilities and their two gradients": 3 * FP32_BYTES * logits}
        if self.fused_loss:  # the gradient is written over the logits
            rows = FP32_BYTES * self.batch * self.sequence
            at_the_loss = {"logits, then their gradient": dtype_bytes(self.dtype) * logits + rows}
        if self.fused_loss == "with output":
            of_output = dtype_bytes(self.dtype) * self.embedding + self.inputs
            at_the_loss = {}
        return {
            "loss": (0, activations | at_the_loss | self.gathered_bytes()),
            "output": (0, activations | {"gradients of the output": of_output} | self.gathered_bytes()),
            "embedding": (
                self.shape.parameters - self.embedding,
                {"gradients of the embedding": of_embedding}
                | self.gathered_bytes(0, self.shape.parameters_of_output),
            ),
        }

    @property
    def decisive_layers(self) -> set[int]:
        """The first and the last layer, and where only some are recomputed, the first and the last of both kinds."""
        ends = {1, self.shape.layers}
        if self.recompute == "every other layer":
            ends |= {2, self.shape.layers - 1}
        return ends & set(range(1, self.shape.layers + 1))

    @property
    def layer(self) -> int:
        """Bytes that a layer keeps if nothing of it is recomputed."""
        one, none = (
            replace(self.shape, layers=layers).activation_bytes(self.batch, self.sequence, **self.ways)
            for layers in (1, 0)
        )
        return one.total - none.total - one["rotation"]  # which all layers share

    def is_recomputed(self, number: int) -> bool:
        """Whether that layer runs once more on the way back."""
        return number % 2 == 0 if self.recompute == "every other layer" else bool(self.recompute)

    def kept_before(self, number: int) -> int:
        """What the layers before that one keep."""
        before = replace(self.shape, layers=number - 1)
        again = before.recomputed_layers(self.recompute)
        kept = before.activation_bytes(self.batch, self.sequence, recompute=self.recompute, **self.ways)
        return (number - 1 - again) * self.layer + again * self.inputs + kept.get("products", 0)

    def in_layer(self, number: int) -> dict[str, Moment]:
        """At its feed-forward, where the last matrix's gradient is made and behind it; and where scores are computed."""
        shape, n = self.shape, dtype_bytes(self.dtype)
        layer, again = self.layer, self.is_recomputed(number)
        # Copied to fp32, an input is not kept.
        copied = self.inputs if shape.rms_norm and not self.fused_norm and n < FP32_BYTES else 0
        earlier = self.kept_before(number) + self.kept["rotation"]
        wide = n * self.batch * self.sequence * shape.inner_width
        of_down = self.new_gradient(shape.inner_width * shape.width, wide, 0 if again else wide)
        done = shape.parameters_of_output + (shape.layers - number) * shape.parameters_of_a_layer
        bias = shape.width if shape.biases else 0
        inside = {"earlier layers": earlier + copied * again, f"layer {number}": layer}
        if self.recompute == "every other product" and shape.gated:
            inside["its result, kept"] = self.inputs

        on_the_way_back = self.gathered_bytes(2, shape.parameters_of_a_layer + shape.parameters_of_output)

        def feed_forward(made: int) -> dict[str, int]:
            return inside | {"new gradients": self.inputs + self.tied + made} | on_the_way_back

        moments = {
            f"last matrix of layer {number}": (done + bias, feed_forward(of_down)),
            f"feed-forward of layer {number}": (
                done + bias + shape.inner_width * shape.width,
                feed_forward((1 + shape.gated) * wide),
            ),
        }
        if self.fused:
            return moments
        scores = {
            "earlier layers": earlier + copied,
            "before the scores": self.before_the_scores(),
            "scores, masked, and their softmax": n * self.sequence**2 * (3 * self.batch * shape.heads + 1),
            "new gradients": self.inputs + self.tied if again else 0,
        } | (on_the_way_back if again else self.gathered_bytes(2))
        return moments | {f"scores of layer {number}": (done if again else None, scores)}

    def before_the_scores(self) -> int:
        """A layer's first normalisation; queries, keys, values; and copies of the first two that stand head by head."""
        shape, numbers = self.shape, self.batch * self.sequence * dtype_bytes(self.dtype)
        kv_heads, queries, keys = (
            shape.kv_heads or shape.heads,
            numbers * shape.query_width,
            numbers * shape.kv_width,
        )
        by_head = min(self.batch, self.sequence, kv_heads) > 1
        in_groups = kv_heads < shape.heads and self.sequence > 1
        copies = queries * (by_head or in_groups) + keys * by_head
        normalised = self.batch * self.sequence * shape.norm_bytes(self.dtype, self.fused_norm)
        return normalised + queries + 2 * keys + copies
