"""A whole training run on one page: what it holds, how long it takes, and what crashes take of it."""

from course_utils.datasheets import Machine
from course_utils.predict.saving import wasted_share, young_seconds
from course_utils.predict.step import held_bytes
from course_utils.predict.training import SECONDS_PER_DAY, check_count, recipe_named, training_days
from course_utils.predict.transformer import Transformer
from course_utils.quantities import Ledger, Number, Table, number_text, seconds_text, three_digits

# Interruptions that nobody planned, of a GPU in a day: 419 in 54 days on 16,384 H100s (arXiv 2407.21783, section 3.3.4).
FAILURES_PER_GPU_DAY = 419 / (54 * 16_384)


def checkpoint_bytes(parameters: Number, recipe: str = "fp32 adamw") -> Number:
    """P × (what the optimizer keeps + the master, or without one the parameters). Gradients are made anew.

    >>> checkpoint_bytes(70_000_000_000), checkpoint_bytes(70_000_000_000, "bf16+master adamw")
    (840000000000, 840000000000)
    """
    parts = recipe_named(recipe).bytes_by_part
    return (parts["optimizer"] + (parts["master"] or parts["parameters"])) * parameters


def training_account(
    shape: Transformer,
    machine: Machine,
    machines: int,
    recipe: str,
    tokens: Number,
    *,
    batch: int = 1,
    mfu: Number = 0.4,
    save_s: Number = 60,
) -> Table:
    """Everything sharded, `batch` sequences of the full context on each machine, attention and normalisations in one kernel.

    What a step adds to the state is its peak, the loss's backward pass included, as `held_bytes` says. All S × S
    scores are counted as work.
    """
    check_count(machines)
    if not tokens > 0:
        raise ValueError(f"A run reads more than 0 tokens; got {tokens!r}.")
    p, length = shape.parameters, shape.context
    ways = {"machines": machines, "fused": True, "fused_norm": True}
    kept = held_bytes(shape, recipe, batch, length, **ways)
    recomputed = held_bytes(shape, recipe, batch, length, **ways, recompute=True)
    # Model FLOPs: what a fused kernel or recomputing does twice is no progress.
    per_token = shape.training_flops(1, length).total / length
    days = training_days(per_token / 6, tokens, machine, machines, mfu)
    failure_s = SECONDS_PER_DAY / (FAILURES_PER_GPU_DAY * machines)
    every_s = young_seconds(save_s, failure_s)
    lost = wasted_share(every_s, save_s, failure_s)
    per_parameter = recipe_named(recipe).bytes_by_part.total
    rows = [
        ["parameters P", "", number_text(p)],
        ["FLOPs of a token", f"{per_token / p:.2f} for each parameter, attention included", f"{per_token:.3g}"],
        ["FLOPs of the run", f"× {tokens:.3g} tokens", f"{per_token * tokens:.3g}"],
        ["time", f"/ ({machines:,} × {machine.peak('bf16'):.4g} FLOP/s × {mfu:g})", _days(days)],
        ["by 6PN alone", "attention left out", _days(training_days(p, tokens, machine, machines, mfu))],
        ["state on each machine", f"{per_parameter} bytes × P / {machines:,}", _gb(kept.total - kept["activations"])],
        ["added by a step", f"{batch} × {length:,} tokens, everything kept", _gb(kept["activations"])],
        ["", "each layer recomputed", _gb(recomputed["activations"])],
        ["in its memory", f"{_gb(machine.bytes)}, everything kept", _room(machine, kept)],
        ["", "each layer recomputed", _room(machine, recomputed)],
        ["a checkpoint", f"{checkpoint_bytes(1, recipe)} bytes × P", _gb(checkpoint_bytes(p, recipe))],
        ["interruptions", "at Meta's rate of 419 in 16,384 × 54 GPU-days", f"{days * SECONDS_PER_DAY / failure_s:.3g}"],
        ["time between two saves", f"√(2 × {save_s:g} s × {seconds_text(failure_s)})", seconds_text(every_s)],
        ["lost to saving and crashing", "restarts left out", f"{100 * lost:.1f} %"],
        ["time, with that", "", _days(days / (1 - lost)) if lost < 1 else "never done"],
    ]  # fmt: skip
    return Table([["", "how", ""], *rows])


def _room(machine: Machine, held: Ledger) -> str:
    left = machine.bytes - held.total
    return f"{_gb(held.total)}: {_gb(abs(left))} {'left' if left >= 0 else 'too much'}"


def _gb(nbytes: Number) -> str:
    return f"{three_digits(nbytes / 1e9)} GB"


def _days(days: Number) -> str:
    return f"{three_digits(days)} days"
