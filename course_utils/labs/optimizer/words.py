"""What there is to say of a race: who diverges and why, what is special about it, and all its numbers."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from course_utils import predict
from course_utils.descents import RULES
from course_utils.labs.optimizer.asked import EDGE, LINEAR, Race
from course_utils.quantities import Number, count_text, listed, times_text

_steps = partial(count_text, of="step")
TWO_LINES = 236  # letters that fit in the page


def meaning(race: Race) -> str:
    """Who diverges and why, what is special about this surface, and who leads."""
    said = [why_it_diverges(race, name) for name in race.racing]
    if not race.ground.quadratic:
        said.append(_leaving(race))
    elif race.noise:
        said.append(_averaging(race))
    else:
        said += [_decaying(race), _turning(race), _overshooting(race), _tiring(race)]
    everyone_stays = race.ground.quadratic and len(race.racing) == len(RULES) and not any(said[: len(RULES)])
    leading, said = _leading(race), [*filter(None, said)][:2]
    if sum(map(len, (*said, leading))) + len(said) > TWO_LINES:
        del said[1:]
    said.insert(0 if everyone_stays else len(said), leading)  # then the race itself is what is asked about
    return " ".join(f"{words[0].upper()}{words[1:]}" for words in said)


# Who diverges.


def why_it_diverges(race: Race, name: str) -> str:
    """The reason in numbers; nothing for one that stays. Of SGD and momentum it is known before they have left."""
    steps, mu, decay = len(race.descents[name].lengths), race.momentum_of(name), race.lr * race.weight_decay
    most, side = 2 * (1 + mu), f"2(1 + {mu:g}) = {2 * (1 + mu):g}" if mu else "2"
    left, grows = steps < race.steps, race.lr * race.limiting > most
    curvature = race.limiting if grows else _curvature_that_threw_it_out(race, name, most) if left else None
    if name in LINEAR and curvature is not None:
        rate = predict.convergence_rate(race.lr * curvature, mu)
        why = (
            f"so its error grows {rate:.4g}-fold a step"
            if grows
            else "for it came to where that is the curvature"
        )
        return f"{name} diverges: lr × {curvature:g} = {over(race.lr * curvature, most)} > {side}, {why}."
    if left and name == "AdamW" and decay > 2:
        return f"AdamW diverges: lr × weight decay = {over(decay, 2)} > 2, so each step throws it across 0."
    return f"{name} left for good after {_steps(steps)}." if left else ""


def _curvature_that_threw_it_out(race: Race, name: str, most: Number) -> Number | None:
    """From where it last was in the frame, the first one that is too large for the learning rate, if one is."""
    points = race.descents[name].points
    last = max(n for n, (x, y) in enumerate(points) if max(abs(x), abs(y)) <= EDGE)
    found = [max(race.ground.curvatures(*point)) + race.weight_decay for point in points[last:]]
    return next((c for c in found if race.lr * c > most), None)


def over(value: Number, limit: Number) -> str:
    """In as many digits as it takes to see that it is more.

    >>> over(2.1, 2), over(2.000001, 2)
    ('2.1', '2.000001')
    """
    return next((w for d in range(4, 17) if float(w := f"{value:.{d}g}") > limit), repr(value))


# What is special.


def _leading(race: Race) -> str:
    losses = {n: run.losses[race.step] for n, run in race.descents.items() if race.step < len(run.losses)}
    if not losses:
        return "Nobody is left."
    best = min(losses, key=losses.__getitem__)
    who = "leads with" if len(race.racing) > 1 else "has"
    return f"After {_steps(race.step)} {best} {who} a loss of {losses[best]:.3g}."


def _leaving(race: Race) -> str:
    left = {name: race.leaves_the_saddle(name) for name in race.racing}
    gone = sorted((t, name) for name, t in left.items() if t is not None)
    if not gone:
        return f"Nobody has left the saddle within {_steps(race.steps)}."
    said = f"{gone[0][1]} leaves the saddle first, after {_steps(gone[0][0])}"
    said += f"; {gone[-1][1]} last, after {gone[-1][0]}" if gone[-1][0] > gone[0][0] else ""
    still = " and ".join(name for name, t in left.items() if t is None)
    return f"{said}; {still} never in {_steps(race.steps)}." if still else f"{said}."


def _averaging(race: Race) -> str:
    said, floors = [], [(race.predicted_floor(name), race.measured_floor(name)) for name in race.linear]
    if len(floors) == 2 and all(map(race.settles, race.linear)):
        predicted, measured = (momentum / sgd for sgd, momentum in zip(*floors, strict=True))
        times = f"{measured:.3g} times SGD's loss, predicted {predicted:.3g}"
        said.append(f"momentum settles at {times}: it sums gradients, it does not average them.")
    losses = race.descents["AdaGrad"].losses[race.steps // 2 :] if "AdaGrad" in race.racing else []
    mean = sum(losses) / len(losses) if losses else math.inf
    if mean < race.predicted_floor("SGD") < math.inf:
        said.append(f"AdaGrad's ever shorter steps average the noise away: {mean:.2g} in its second half.")
    return " ".join(said)


def _decaying(race: Race) -> str:
    """Where nothing but weight decay pulls along y."""
    runs = {name: race.descents[name] for name in ("AdamW", "Adam") if name in race.racing}
    gone = any(run.at(race.step) < race.step for run in runs.values())
    if not (race.weight_decay and race.surface == "ravine" and not race.steepness and runs) or gone:
        return ""
    said, kept = [], {name: run.points[race.step][1] / run.points[0][1] for name, run in runs.items()}
    if "AdamW" in kept:
        share = (1 - race.lr * race.weight_decay) ** race.step
        said.append(f"AdamW keeps (1 - lr·wd)^{race.step} = {share:.4g}, measured {kept['AdamW']:.4g}")
    if "Adam" in kept:
        said.append(
            f"Adam keeps {abs(kept['Adam']):.2g}: it divides the decay by its own size, so it counts as much as any gradient"
        )
    return f"along y only decay pulls: {'; '.join(said)}."


def _turning(race: Race) -> str:
    """Who does as in the ravine that lies straight, and who least of all."""
    if race.surface != "turned ravine":
        return ""
    straight, times = replace(race, surface="ravine").descents, {}
    for name in race.dividing:
        here, there = (run.losses[run.at(race.step)] for run in (race.descents[name], straight[name]))
        times |= {here / there: name} if there > 1e-12 else {}
    said = [f"the turn changes nothing for {' and '.join(race.linear)}"] if race.linear else []
    said += (
        [f"{times[max(times)]}'s loss is {times_text(max(times))} what it is in the straight ravine"]
        if times
        else []
    )
    return f"{'; '.join(said)}." if said else ""


def _overshooting(race: Race) -> str:
    if "momentum" not in race.racing or why_it_diverges(race, "momentum"):
        return ""
    way = [race.ground.along(*point)[0] for point in race.descents["momentum"].points[: race.step + 1]]
    turned = way[-1] < max(way) >= 0.05
    return f"momentum runs {max(way):.2g} past the minimum before it turns." if turned else ""


def _tiring(race: Race) -> str:
    """Steps that have become a tenth of the first while there is still somewhere to go."""
    if "AdaGrad" not in race.racing or race.step < 2:
        return ""
    run = race.descents["AdaGrad"]
    first, last = run.lengths[0], run.lengths[race.step - 1]
    left = race.ground.distance(*run.points[race.step])
    arrived = left < 0.2 or run.losses[race.step] < 1e-6 * run.losses[0]
    if arrived or not 0 < last <= first / 10:
        return ""
    short = f"its step {race.step} is 1/{first / last:,.0f} as long as its first"
    return f"AdaGrad tires: {short}, and the minimum is still {left:.2g} away."


# In numbers.


def account(race: Race) -> list[Sequence[str]]:
    """Of SGD and momentum: the factor in each direction, the bound, prediction and measurement; their names first."""
    flat, steep = race.curvatures
    bound, what, measured = "converges while", "loss, predicted", "measured"
    if not race.ground.quadratic:
        bound, what = "x converges while", "leaves, predicted"
    elif race.noise:
        what, measured = "noise floor, predicted", "mean of 10 seeds"
    head = ("", f"error × a step, λ = {flat:.3g}", f"λ = {steep:.3g}", bound, what, measured)
    return [head, *((name, *_predicted(race, name), *_compared(race, name)) for name in race.linear)]


def of_those_who_divide(race: Race) -> str:
    """What a learning rate is to them."""
    who = f"{listed(race.dividing)} divide{'s' * (len(race.dividing) == 1)}"
    return (
        f"{who} the gradient by its size: there lr = {race.lr:.4g} is a length, and no curvature bounds it."
    )


def _predicted(race: Race, name: str) -> Sequence[str]:
    mu = race.momentum_of(name)
    limit, bound = predict.largest_lr(race.limiting, mu), f"2(1 + {mu:g})" if mu else "2"
    said = f"lr < {bound}/{race.limiting:g} = {limit:.4g}" if limit < math.inf else "any lr"
    return (*(_factor(race.lr * curvature, mu) for curvature in race.curvatures), said)


def _factor(a: Number, mu: Number) -> str:
    if mu:
        swings = ((1 + mu - a) / 2) ** 2 < mu
        return f"{f'√{mu:g} = ' * swings}{predict.convergence_rate(a, mu):.4g}"
    return f"1 {'-' if a >= 0 else '+'} {abs(a):.4g} = {1 - a:.4g}"


def _compared(race: Race, name: str) -> Sequence[str]:
    """Prediction and measurement."""
    if not race.ground.quadratic:
        predicted, measured = race.predicted_to_leave(name), race.leaves_the_saddle(name)
        said = ["never" if step is None else f"step {step}" for step in (predicted, measured)]
        return ("as noise has it", said[1]) if race.noise else said
    if race.noise:
        floors = race.predicted_floor(name), race.measured_floor(name)
        return [f"{floor:.3g}" if floor < math.inf else "none" for floor in floors]
    losses = race.descents[name].losses
    measured = f"{losses[race.step]:.4g}" if race.step < len(losses) else "gone"
    return f"{race.predicted_loss(name, race.step):.4g}", measured


HEAD = ("optimizer", "loss", "distance", "last step", "first step", "first step predicted")


def table(race: Race) -> list[Sequence[str]]:
    """Everyone after the step that is looked at."""
    rows = [HEAD]
    for name, run in race.descents.items():
        t = run.at(race.step)
        numbers = [run.losses[t], race.ground.distance(*run.points[t]), run.lengths[t - 1] if t else 0.0]
        first = f"{run.lengths[0]:.4g}" if run.lengths else "beyond all bounds"
        label = f"{name}, gone after {_steps(t)}" if t < race.step else name
        rows.append((label, *(f"{n:.4g}" for n in numbers), first, f"{race.first_length(name):.4g}"))
    return rows
