"""Real gradients and what torch's cast makes of them, and training in each mix of formats."""

from collections.abc import Iterator
from functools import lru_cache

from course_utils.labs.lab import Change, Progress
from course_utils.labs.precision import asked
from course_utils.labs.precision.asked import Found, Gradients, Scaling
from course_utils.measure import cpu_threads
from course_utils.quantities import Number, count_text
from course_utils.training import precision

FRAME = 5  # steps between two pictures of a training


@lru_cache(maxsize=1)
def first_losses() -> dict[str, tuple[Number, ...]]:
    """The example losses that are shown before the reader has trained anything."""
    first = Scaling()
    return {mix: tuple(step.loss for step in _steps(mix, first)) for mix in first.mixes}


def gradients(scaling: Scaling) -> Gradients:
    """The gradients that are asked for, and what each format makes of them."""
    with cpu_threads(1):  # a second thread, kept waiting, would only slow such small counts
        return _gradients(scaling.power - asked.halvings(scaling.mean_over), scaling.after, scaling.layer)


def train(scaling: Scaling) -> Iterator[Progress]:
    """Train all ticked mixes side by side, step by step."""
    if not scaling.mixes:
        raise ValueError("Nothing to train. Tick at least one mix of formats.")
    going = {mix: _steps(mix, scaling) for mix in scaling.mixes}
    losses: dict[str, tuple[Number, ...]] = dict.fromkeys(scaling.mixes, ())
    skipped = 0
    for number in range(1, asked.STEPS + 1):
        steps = {mix: next(steps) for mix, steps in going.items()}
        losses = {mix: (*losses[mix], step.loss) for mix, step in steps.items()}
        skipped += sum(step.skipped for step in steps.values())
        trained = Found(losses, scaling.power, scaling.mean_over)
        seen = None if number % FRAME else Change(found=lambda _, trained=trained: trained)
        yield Progress(min(0.99, number / asked.STEPS), f"Step {number} of {asked.STEPS}.", seen)
    scaler = f" GradScaler skipped {count_text(skipped, 'step')}." if skipped else ""
    yield Progress(1, f"Trained {len(losses)} of {len(asked.MIXES)} mixes.{scaler}")


def _steps(mix: str, scaling: Scaling) -> Iterator[precision.Trained]:
    scale = 2.0**scaling.power if mix in asked.SCALED else None
    return precision.losses(asked.SCALED.get(mix, mix), asked.STEPS, scale=scale, mean_over=scaling.mean_over)


@lru_cache(maxsize=2048)
def _gradients(power: int, after: int, layer: int) -> Gradients:
    numbers = precision.gradients(after, layer=layer or None)
    powers = numbers[numbers != 0].abs().double().log2()
    places, counts = (powers / asked.BIN).floor().unique(return_counts=True)
    return Gradients(
        bins=tuple(zip((places * asked.BIN).tolist(), counts.tolist(), strict=True)),
        fit=precision.lognormal_fit(numbers),
        ends=(powers.min().item(), powers.max().item()),
        fates={fmt: precision.fates(numbers, fmt, 2.0**power) for fmt in asked.FORMATS},
    )
