"""A whole training run on one page: what it holds, how long it takes, and what crashes take of it."""

from functools import partial

from course_utils.datasheets import Machine
from course_utils.predict.recompute import transformer_stack
from course_utils.predict.saving import wasted_share, young_seconds
from course_utils.predict.step import held_bytes
from course_utils.predict.training import (
    SECONDS_PER_DAY,
    check_count,
    recipe_named,
    training_bytes,
    training_days,
)
from course_utils.predict.transformer import Transformer
from course_utils.quantities import Ledger, Number, Table, number_text, seconds_text, three_digits

# Unplanned interruptions per GPU and day: 419 in 54 days on 16,384 H100s (arXiv 2407.21783, section 3.3.4).
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
    hfu: Number = 0.4,
    save_s: Number = 60,
) -> Table:
    """Everything sharded, `batch` sequences of the full context on each machine, attention and normalisations in one kernel.

    `hfu` is the share of the peak that the hardware reaches, with whatever it computes. What a step adds is what it
    holds at its peak beside the state, as `held_bytes` says. All S × S scores are counted as work.
    """
    check_count(machines)
    if not tokens > 0:
        raise ValueError(f"A run reads more than 0 tokens; got {tokens!r}.")
    if not 0 < hfu <= 1:
        raise ValueError(f"HFU is a share, above 0 and at most 1; got {hfu!r}.")
    p, length, fused = shape.parameters, shape.context, {"fused": True, "fused_norm": True}
    sizes, ways = (shape, recipe, batch, length), {"machines": machines} | fused
    kept, recomputed = held_bytes(*sizes, **ways), held_bytes(*sizes, **ways, recompute=True)
    fits = kept.total <= machine.bytes
    # Model FLOPs: what is computed twice, by a fused kernel or by recomputing, counts once.
    work = shape.training_flops(1, length).total
    hidden = 3 * shape.forward_flops(1, length)["attention"] * (length - 1) / (2 * length)
    again = transformer_stack(shape, 1, length, **fused).step_flops(1)["recompute"]
    days = partial(_days_of, length, tokens, machine, machines, hfu)
    per_token = work / length
    state = training_bytes(p, recipe, tensors=shape.tensors, machines=machines).total
    rows = [
        ["parameters P", "", number_text(p)],
        ["FLOPs of a token", f"{per_token / p:.2f} for each parameter, attention included", f"{per_token:.3g}"],
        ["FLOPs of the run", f"× {tokens:.3g} tokens", f"{per_token * tokens:.3g}"],
        ["time", f"/ ({machines:,} × {machine.peak('bf16'):.4g} FLOP/s × {hfu:g}), everything kept", _days(days(work))],
        ["", f"each layer recomputed: × {1 + again / work:.2f}", _days(days(work + again))],
        ["", f"so its MFU is {hfu:g} / {1 + again / work:.2f}", f"{hfu * work / (work + again):.2f}"],
        ["by 6PN alone", "attention left out, everything kept", _days(days(6 * p * length))],
        ["by half the scores", "those that the mask leaves, everything kept", _days(days(work - hidden))],
        ["state on each machine", f"{recipe_named(recipe).bytes_by_part.total} bytes × P / {machines:,}", _gb(state)],
        ["added by a step", f"{batch} × {length:,} tokens, everything kept", _gb(kept["activations"])],
        ["", "each layer recomputed", _gb(recomputed["activations"])],
        ["in its memory", f"{_gb(machine.bytes)}, everything kept", _room(machine, kept)],
        ["", "each layer recomputed", _room(machine, recomputed)],
        ["a checkpoint", f"{checkpoint_bytes(1, recipe)} bytes × P", _gb(checkpoint_bytes(p, recipe))],
        *_crashes(machines, save_s, days(work if fits else work + again), "" if fits else "each layer recomputed"),
    ]  # fmt: skip
    return Table([["", "how", ""], *rows])


def _days_of(
    length: int, tokens: Number, machine: Machine, machines: int, hfu: Number, flops: Number
) -> Number:
    """Days of a run with so many FLOPs for each sequence."""
    return training_days(flops / length / 6, tokens, machine, machines, hfu)


def _crashes(machines: int, save_s: Number, days: Number, way: str) -> list[list[str]]:
    """The rows on what saving and crashing take of a run of so many days."""
    failure_s = SECONDS_PER_DAY / (FAILURES_PER_GPU_DAY * machines)
    every_s = young_seconds(save_s, failure_s)
    lost = wasted_share(every_s, save_s, failure_s)
    return [
        ["interruptions", "at Meta's rate of 419 in 16,384 × 54 GPU-days", f"{days * SECONDS_PER_DAY / failure_s:.3g}"],
        ["time between two saves", f"√(2 × {save_s:g} s × {seconds_text(failure_s)})", seconds_text(every_s)],
        ["lost to saving and crashing", "restarts left out", f"{100 * lost:.1f} %"],
        ["time, with that", way, _days(days / (1 - lost)) if lost < 1 else "never done"],
    ]  # fmt: skip


def _room(machine: Machine, held: Ledger) -> str:
    left = machine.bytes - held.total
    return f"{_gb(held.total)}: {_gb(abs(left))} {'left' if left >= 0 else 'too much'}"


def _gb(nbytes: Number) -> str:
    return f"{three_digits(nbytes / 1e9)} GB"


def _days(days: Number) -> str:
    return f"{three_digits(days)} days"
