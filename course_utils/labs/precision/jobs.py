"""Real gradients and what torch's cast makes of them, and training in each mix of formats."""

from collections.abc import Iterator
from dataclasses import astuple, replace
from functools import lru_cache

from torch import Tensor

from course_utils import precision
from course_utils.labs.lab import Change, Progress
from course_utils.labs.precision.asked import (
    BIN,
    CONSTANT,
    FORMATS,
    MIXES,
    SCALER,
    STEPS,
    TICKED,
    Found,
    Gradients,
    Scaling,
    Step,
)
from course_utils.measure import cpu_threads
from course_utils.quantities import Comparison, count_text

FRAME = 5  # steps between two pictures of a training
_AS_TRAINED = {CONSTANT: "fp16 autocast", SCALER: "fp16 autocast, scaled"}
_kept = lru_cache(maxsize=2048)


@_kept
def begin() -> Found:
    """What is shown before the reader has trained anything."""
    return Found({mix: tuple(_losses(mix, 0)) for mix in TICKED})


def at_once(asked: Scaling, found: Found) -> Found:
    """With the gradients that are asked for."""
    with cpu_threads(1):  # a second thread, kept waiting, would only slow such small counts
        fates = {fmt: _fates(fmt, asked.power, asked.after, asked.layer) for fmt in FORMATS}
    return replace(found, gradients=replace(_unscaled(asked.after, asked.layer), fates=fates))


def train(asked: Scaling, found: Found) -> Iterator[Progress]:
    """All that are ticked, side by side, step by step."""
    if not asked.mixes:
        raise ValueError("Nothing to train. Tick at least one mix of formats.")
    going = {mix: _losses(mix, asked.power) for mix in asked.mixes}
    runs: dict[str, tuple[Step, ...]] = dict.fromkeys(asked.mixes, ())
    for step in range(1, STEPS + 1):
        runs = {mix: (*runs[mix], next(steps)) for mix, steps in going.items()}
        trained = Found(runs, asked.power)
        seen = Change(found=lambda _, trained=trained: trained) if step == 1 or step % FRAME == 0 else None
        yield Progress(min(0.99, step / STEPS), f"Step {step} of {STEPS}.", seen)
    skipped = sum(step.skipped for step in runs.get(SCALER, ()))
    scaler = f" GradScaler skipped {count_text(skipped, 'step')}." if SCALER in runs else ""
    yield Progress(1, f"Trained {len(runs)} of {len(MIXES)} mixes.{scaler}")


def _losses(mix: str, power: int) -> Iterator[Step]:
    scale = 2.0**power if mix in (CONSTANT, SCALER) else None
    for step in precision.losses(_AS_TRAINED.get(mix, mix), STEPS, scale=scale):
        yield Step(*astuple(step))


@_kept
def _numbers(after: int, layer: int) -> Tensor:
    return precision.gradients(after, layer=layer or None)


@_kept
def _unscaled(after: int, layer: int) -> Gradients:
    numbers = _numbers(after, layer)
    powers = numbers[numbers != 0].abs().double().log2()
    places, counts = (powers / BIN).floor().unique(return_counts=True)
    bins = tuple(zip((places * BIN).tolist(), counts.tolist(), strict=True))
    ends = powers.min().item(), powers.max().item()
    return Gradients(bins, precision.lognormal_fit(numbers), ends, fates={})


@_kept
def _fates(fmt: str, power: int, after: int, layer: int) -> Comparison:
    return precision.fates(_numbers(after, layer), fmt, 2.0**power)
