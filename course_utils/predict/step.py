"""The most that a training step holds beside its state: what autograd keeps, and what the backward pass adds to it."""

from course_utils.predict.operations import dtype_bytes
from course_utils.predict.recompute import transformer_stack
from course_utils.predict.training import recipe_named, training_bytes
from course_utils.predict.transformer import FP32_BYTES, Transformer
from course_utils.quantities import Ledger

STEP_DTYPES = ("fp32", "fp16", "bf16")


def held_bytes(
    shape: Transformer,
    recipe: str,
    batch: int,
    sequence: int,
    *,
    machines: int = 1,
    stage: int = 3,
    fused: bool = False,
    fused_norm: bool = False,
    recompute: bool = False,
) -> Ledger:
    """The most that each machine holds in a step: the recipe's state, and what forward and backward add to it.

    Batch and sequence are those of one machine. Not in it: a layer's weights while they are gathered from all
    machines, what machines send each other, an optimizer's own temporaries, and gaps between allocations.

    >>> held_bytes(Transformer(1, 8, 2, 11, 4), "bf16+master adamw", 2, 4).total
    19800
    """
    kind = recipe_named(recipe)
    state = training_bytes(shape.parameters, recipe, tensors=shape.tensors, machines=machines, stage=stage)
    ways = {
        "dtype": kind.parameters,
        "gradients": kind.gradients[0],
        "fused": fused,
        "fused_norm": fused_norm,
    }
    peak = step_peak_bytes(shape, batch, sequence, recompute=recompute, **ways)
    return Ledger({**state, "activations": peak.total}, unit="bytes")


def step_peak_bytes(
    shape: Transformer,
    batch: int,
    sequence: int,
    *,
    dtype: str = "fp32",
    gradients: str | None = None,
    fused: bool = False,
    fused_norm: bool = False,
    recompute: bool = False,
) -> Ledger:
    """The most that forward, cross-entropy and backward hold at one time, beside parameters, gradients and tokens.

    The gradients are there from the start, as a recipe counts them, in `gradients` or in the model's dtype; a new
    one stands beside them until it has been added. The other options are those of `Transformer.activation_bytes`.

    >>> step_peak_bytes(Transformer(12, 768, 12, 50257, 1024), 1, 1024, dtype="bf16", fused=True)
                                                     bytes
    activations                                305,827,840
    log-probabilities and their two gradients  617,558,016
    the loss and its gradient                            8
    total                                      923,385,864
    """
    ways = {"dtype": dtype, "gradients": gradients, "fused": fused, "fused_norm": fused_norm}
    moments = step_moments(shape, batch, sequence, recompute=recompute, **ways)
    return max(moments.values(), key=lambda held: held.total)


def step_moments(
    shape: Transformer,
    batch: int,
    sequence: int,
    *,
    dtype: str = "fp32",
    gradients: str | None = None,
    fused: bool = False,
    fused_norm: bool = False,
    recompute: bool = False,
) -> dict[str, Ledger]:
    """What is held at each of the moments that can be the peak: one of them is.

    Exact for `models.Transformer` on a CPU, if its feed-forward is at least twice as wide as the model and its
    vocabulary four times. Otherwise the single operations that an RMSNorm is made of there can hold more.
    """
    if dtype not in STEP_DTYPES:
        raise ValueError(f"A step is counted in {', '.join(STEP_DTYPES)}; got {dtype!r}.")
    ways = {"dtype": dtype, "fused": fused, "fused_norm": fused_norm}
    kept = shape.activation_bytes(batch, sequence, recompute=recompute, loss=True, **ways)
    activations = {"activations": kept.total - kept["tokens"] - kept["loss"]}
    n, of_gradient, tokens = dtype_bytes(dtype), dtype_bytes(gradients or dtype), batch * sequence
    inputs, logits, matrix = (
        n * tokens * shape.width,
        tokens * shape.vocabulary,
        shape.vocabulary * shape.width,
    )

    def new_gradient(numbers: int, beside: int, beside_cast: int = 0) -> int:
        """Of a matrix, with what else is there when it is made, and when it is cast to another dtype."""
        cast = 0 if of_gradient == n else (n + of_gradient) * numbers + beside_cast
        return max(n * numbers + beside, cast)

    moments = {
        "loss": activations | {"log-probabilities and their two gradients": 3 * FP32_BYTES * logits},
        "output": activations | {"gradients of the output": new_gradient(matrix, n * logits + inputs)},
    }
    # A matrix that is input and output has two gradients: the first waits for the second, and then there is their sum.
    tied = of_gradient * matrix if shape.tied_output else 0
    moments["embedding"] = {"gradients of the embedding": 3 * tied or new_gradient(matrix, 0)}
    if shape.layers:
        stack = transformer_stack(shape, batch, sequence, **ways)
        copied = (
            inputs if shape.rms_norm and not fused_norm and n < FP32_BYTES else 0
        )  # and so the input is not kept
        earlier = (shape.layers - 1) * (inputs if recompute else stack.block_bytes) + kept["rotation"]
        wide = n * tokens * shape.inner_width
        of_factors = 2 * wide if shape.gated else 0
        of_down = new_gradient(shape.inner_width * shape.width, wide, 0 if recompute else wide)
        moments["feed-forward"] = {
            "earlier layers": earlier + copied * recompute,
            "the last layer": stack.block_bytes,
            "gradients": inputs + tied + max(of_factors, of_down),
        }
        if not fused:
            moments["scores"] = {
                "earlier layers": earlier + copied,
                "before the scores": _before_scores(shape, batch, sequence, dtype, fused_norm),
                "scores, masked, and their softmax": n * sequence**2 * (3 * batch * shape.heads + 1),
                "gradients": inputs + tied if recompute else 0,
            }
    for name, parts in moments.items():
        there = recompute or name != "scores"  # which are made first on the way forward
        parts["the loss and its gradient"] = 2 * FP32_BYTES * there
    return {name: Ledger(parts, unit="bytes") for name, parts in moments.items()}


def _before_scores(shape: Transformer, batch: int, sequence: int, dtype: str, fused_norm: bool) -> int:
    """A layer's first normalisation; queries, keys and values; and copies of the first two that stand head by head."""
    numbers, kv_heads = batch * sequence * dtype_bytes(dtype), shape.kv_heads or shape.heads
    queries, keys = numbers * shape.width, numbers * shape.kv_width
    by_head = min(batch, sequence, kv_heads) > 1
    in_groups = kv_heads < shape.heads and sequence > 1
    copies = queries * (by_head or in_groups) + keys * by_head
    return batch * sequence * shape.norm_bytes(dtype, fused_norm) + queries + 2 * keys + copies
