"""What there is to say of a race: who leads, who diverges and why, what is special about it, and what was predicted."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from course_utils import predict
from course_utils.labs.optimizer.asked import LEAST, LONGEST, Race
from course_utils.quantities import Number, count_text, listed


def meaning(race: Race) -> str:
    """Who leads, and who diverges and why; or where nobody does, what is special about this race."""
    reasons = [why for name in race.racing if (why := why_it_diverges(race, name))]
    said = [_leading(race), *(reasons[:2] or [next(_special(race), "")])]
    return " ".join(f"{words[0].upper()}{words[1:]}" for words in said if words)


def why_it_diverges(race: Race, name: str) -> str:
    """The reason in numbers, or an empty string. For SGD and momentum it is known before they diverge."""
    mu, steps = race.momentum_of(name), len(race.descents[name].lengths)
    a, most = race.lr * race.limiting, 2 * (1 + mu)
    if name in race.linear and a > most * (1 + 1e-9):  # at the bound itself it neither grows nor shrinks
        side = f"2(1 + {mu:g}) = {most:g}" if mu else "2"
        grows = f"its error grows {predict.convergence_rate(a, mu):.6g}-fold a step"
        return f"{name} diverges: lr × {race.limiting:g} = {a:.6g} > {side}, so {grows}."
    return f"{name} left for good after {count_text(steps, 'step')}." if steps < race.steps else ""


def _leading(race: Race) -> str:
    losses = {n: run.losses[race.step] for n, run in race.descents.items() if race.step < len(run.losses)}
    if not losses:
        return "Nobody is left."
    least = min(losses.values())
    best = [name for name, loss in losses.items() if loss == least]
    who = f"{listed(best)} {'has' if len(best) == 1 else 'have'}"
    return f"After {count_text(race.step, 'step')} {who} the least loss, {least:.3g}."


def _special(race: Race) -> Iterator[str]:
    """What is special where nobody diverges, the most special first."""
    if not race.ground.quadratic:
        left = {name: race.leaves_the_saddle(name) for name in race.racing}
        order = sorted(left, key=lambda name: left[name] or math.inf)
        yield f"off the saddle: {', '.join(f'{name} {_at(left[name], race.steps)}' for name in order)}."
        return
    points = {name: run.points[: race.step + 1] for name, run in race.descents.items()}
    if race.noise:
        yield from _averaging(race)
    elif race.only_decay_along_y and {"Adam", "AdamW"} <= points.keys():
        adam, adamw = points["Adam"][-1][1], points["AdamW"][-1][1]
        kept = (1 - race.lr * race.weight_decay) ** race.step
        said = f"AdamW keeps (1 - lr·wd)^{race.step} = {kept:.4g}, measured {adamw:.4g}; Adam"
        why = "it divides the decay by its size, like any gradient"
        yield f"along y only decay pulls: {said} keeps {abs(adam):.2g}: {why}."
    if race.surface == "turned ravine":
        yield from _turning(race)
    past = max((race.ground.along(*point)[0] for point in points.get("momentum", ())), default=0)
    if past >= 0.05:
        yield f"momentum has run {past:.2g} past the minimum."
    if "AdaGrad" in points and race.step:
        lengths, left = race.descents["AdaGrad"].lengths, race.ground.distance(*points["AdaGrad"][-1])
        share = lengths[race.step - 1] / lengths[0]
        if share < 0.1 and left > 0.2:
            said = f"step {race.step} is {share:.2g} of its first, and the minimum {left:.2g} away"
            yield f"AdaGrad tires: {said}."


def _averaging(race: Race) -> Iterator[str]:
    floors = {name: race.predicted_floor(name) for name in race.linear}
    held = [f"{name} at {floor:.3g}" for name, floor in floors.items() if floor < math.inf]
    free = [name for name, floor in floors.items() if floor == math.inf]
    said = [f"noise holds the loss of {listed(held)}"] if held else []
    if free:
        said.append(f"nothing holds the loss of {listed(free)}")
    if race.momentum and len(held) == 2:
        said = [f"{said[0]}, which sums gradients and averages none"]
    if "AdaGrad" in race.racing:
        said.append("noise holds AdaGrad nowhere: its learning rate falls for ever")
    if said:
        yield f"in the long run {'; '.join(said)}."


def _turning(race: Race) -> Iterator[str]:
    straight = replace(race, surface="ravine").descents
    said = []
    for name, run in straight.items():
        turned, plain = (one.losses[run.at(race.step)] for one in (race.descents[name], run))
        said += [f"{name}'s by {turned / plain:.3g}"] if plain > LEAST else []
    if said:
        yield f"the turn multiplies the loss: {', '.join(said)}."


# In numbers.


def _at(step: int | None, within: int) -> str:
    return f"not in {count_text(within, 'step')}" if step is None else f"at step {step}"


def rows(race: Race) -> list[Sequence[str]]:
    """A row for SGD and for momentum: name, factor in each direction, bound, prediction and measurement."""
    flat, steep = race.curvatures
    bound, what, measured = "converges while", "loss, predicted", "measured"
    if not race.ground.quadratic:
        bound, what = "x converges while", "leaves without noise, predicted"
    elif race.noise:
        what, measured = "noise floor, predicted", "mean of 10 seeds"
    rows = [("", f"error × a step, λ = {flat:.3g}", f"λ = {steep:.3g}", bound, what, measured)]
    for name in race.linear:
        mu, limiting = race.momentum_of(name), race.limiting
        factors = [_factor(race.lr * curvature, mu) for curvature in race.curvatures]
        side = f"2(1 + {mu:g})" if mu else "2"
        bound = f"lr < {side}/{limiting:g} = {predict.largest_lr(limiting, mu):.4g}" if limiting else "any lr"
        rows.append((name, *factors, bound, *_compared(race, name)))
    return rows


def of_those_who_divide(race: Race) -> str:
    """What a learning rate means for optimizers that divide the gradient by its size."""
    who = f"{listed(race.dividing)} divide{'s' * (len(race.dividing) == 1)}"
    return f"{who} the gradient by its size: there lr = {race.lr:.4g} is a length, which no curvature bounds."


def _factor(a: Number, mu: Number) -> str:
    if mu:
        swings = ((1 + mu - a) / 2) ** 2 < mu
        return f"{f'√{mu:g} = ' * swings}{predict.convergence_rate(a, mu):.4g}"
    return f"1 {'-' if a >= 0 else '+'} {abs(a):.4g} = {1 - a:.4g}"


def _compared(race: Race, name: str) -> Sequence[str]:
    """The last two cells of a row: prediction and measurement."""
    if not race.ground.quadratic:
        leaves = race.leaves_the_saddle(name)
        return _at(race.predicted_to_leave(name), LONGEST), _at(leaves, race.steps)
    if race.noise:
        floor = race.predicted_floor(name)
        return ["none" if floor == math.inf else f"{floor:.3g}", f"{race.measured_floor(name):.3g}"]
    losses = race.descents[name].losses
    measured = f"{losses[race.step]:.4g}" if race.step < len(losses) else "gone"
    return f"{race.predicted_loss(name, race.step):.4g}", measured
