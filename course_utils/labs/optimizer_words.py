"""What the optimizer lab says of a race: who diverges and why, what there is to see, and all numbers."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from course_utils.labs.optimizer_race import PREDICTED, Asked
from course_utils.labs.surfaces import EDGE, Ravine, Saddle, TurnedRavine, largest_lr, rate
from course_utils.quantities import Number, count_text, times_text

_steps = partial(count_text, of="step")


def why_it_diverges(asked: Asked, name: str) -> str:
    """The reason in numbers; nothing for one that stays. Of SGD and momentum it is known before they have left."""
    s, mu, run = asked.settings, asked.momentum_of(name), asked.descents[name]
    left = len(run.lengths) < asked.steps
    if name in PREDICTED:
        a, most = s.lr * asked.limiting, 2 * (1 + mu)
        side = "2" if name == "SGD" else f"2(1 + {mu:g}) = {most:g}"
        if a > most:
            return (
                f"{name} diverges: lr × {asked.limiting:g} = {over(a, most)} > {side}, "
                f"so its error grows {rate(a, mu):.4g}-fold a step."
            )
        if left:
            curvature = _curvature_that_threw_it_out(asked, name, most)
            product = over(s.lr * curvature, most)
            return f"{name} diverges: it came to where the curvature is {curvature:.4g}, and lr × that is {product} > {side}."
    if left and name == "AdamW" and s.lr * s.weight_decay > 2:
        product = over(s.lr * s.weight_decay, 2)
        return f"AdamW diverges: lr × weight decay = {product} > 2, so each step throws it across 0."
    return f"{name} left for good after {_steps(len(run.lengths))}." if left else ""


def _curvature_that_threw_it_out(asked: Asked, name: str, most: Number) -> Number:
    """Where it last was in the frame, or the first one from there on that is too large for the learning rate."""
    points = asked.descents[name].points
    last = max(n for n, (x, y) in enumerate(points) if max(abs(x), abs(y)) <= EDGE)
    curvatures = [
        max(asked.surface.curvatures(*point)) + asked.settings.weight_decay for point in points[last:]
    ]
    return next((c for c in curvatures if asked.settings.lr * c > most), max(curvatures))


def over(value: Number, limit: Number) -> str:
    """In as many digits as it takes to see that it is more.

    >>> over(2.1, 2), over(2.000001, 2)
    ('2.1', '2.000001')
    """
    return next((w for d in range(4, 17) if float(w := f"{value:.{d}g}") > limit), repr(value))


def meaning(asked: Asked) -> str:
    """Who diverges and why, what is special about this surface, and who leads."""
    said = list(filter(None, (why_it_diverges(asked, name) for name in asked.racing)))
    if isinstance(asked.surface, Saddle):
        said.append(_leaving(asked))
    elif asked.sigma:
        said.append(_averaging(asked))
    else:
        said += [_decaying(asked), _overshooting(asked), _tiring(asked), _turning(asked)]
    return " ".join(
        f"{words[0].upper()}{words[1:]}" for words in [*[*filter(None, said)][:3], _leading(asked)]
    )


def _leading(asked: Asked) -> str:
    losses = {
        name: run.losses[asked.step] for name, run in asked.descents.items() if asked.step < len(run.losses)
    }
    if not losses:
        return "Nobody is left."
    best = min(losses, key=losses.__getitem__)
    who = "leads with" if len(asked.racing) > 1 else "has"
    return f"After {_steps(asked.step)} {best} {who} a loss of {losses[best]:.3g}."


def _leaving(asked: Asked) -> str:
    left = {name: asked.leaves_the_ridge(name) for name in asked.racing}
    gone = sorted((t, name) for name, t in left.items() if t is not None)
    if not gone:
        return f"Nobody has left the ridge within {_steps(asked.steps)}."
    words = [f"{gone[0][1]} leaves the ridge first, after {_steps(gone[0][0])}"]
    if len(gone) > 1:
        words.append(f"{gone[-1][1]} last, after {gone[-1][0]}")
    still = [name for name, t in left.items() if t is None]
    words += [f"{' and '.join(still)} never in {_steps(asked.steps)}"] if still else []
    return "; ".join(words) + "."


def _averaging(asked: Asked) -> str:
    words = []
    held = {name: asked.measured_floor(name) for name in asked.racing if name in PREDICTED}
    floors = {name: asked.predicted_floor(name) for name in held}
    if len(held) == 2 and max(*held.values(), *floors.values()) < math.inf:
        ratio, predicted = (f["momentum"] / f["SGD"] for f in (held, floors))
        words.append(
            f"momentum settles at {ratio:.3g} times SGD's loss, predicted {predicted:.3g}: it sums gradients, it does not average them"
        )
    if "AdaGrad" in asked.racing and len(asked.descents["AdaGrad"].lengths) == asked.steps:
        losses = asked.descents["AdaGrad"].losses[asked.steps // 2 :]
        words.append(
            f"AdaGrad, whose steps get shorter, averages the noise away: {sum(losses) / len(losses):.2g} in the second half"
        )
    return _sentence("; ".join(words))


def _decaying(asked: Asked) -> str:
    """Where nothing but weight decay pulls along y."""
    s = asked.settings
    apart = {name: asked.descents[name] for name in ("Adam", "AdamW") if name in asked.racing}
    if not (s.weight_decay and isinstance(asked.surface, Ravine) and not asked.surface.steepness and apart):
        return ""
    if any(run.at(asked.step) < asked.step for run in apart.values()):
        return ""  # one of them has left the picture, and that is said elsewhere
    kept = {name: run.points[asked.step][1] / run.points[0][1] for name, run in apart.items()}
    words = []
    if "AdamW" in kept:
        by_formula = (1 - s.lr * s.weight_decay) ** asked.step
        words.append(
            f"along y only weight decay pulls: AdamW keeps (1 - lr·wd)^{asked.step} = {by_formula:.4g} of it, measured {kept['AdamW']:.4g}"
        )
    if "Adam" in kept:
        words.append(
            f"Adam has {abs(kept['Adam']):.2g} left, for it divides the decay by its own size and takes steps of lr"
        )
    return _sentence("; ".join(words))


def _overshooting(asked: Asked) -> str:
    if "momentum" not in asked.racing or not asked.surface.quadratic or why_it_diverges(asked, "momentum"):
        return ""
    points = asked.descents["momentum"].points[: asked.step + 1]
    beyond = max(asked.surface.along(*point)[0] for point in points)
    if beyond < 0.05:
        return ""
    return f"Momentum runs {beyond:.2g} past the minimum before it turns."


def _tiring(asked: Asked) -> str:
    """Steps that have become a tenth of the first while there is still somewhere to go."""
    if "AdaGrad" not in asked.racing or asked.step < 2:
        return ""
    run = asked.descents["AdaGrad"]
    first, last = run.lengths[0], run.lengths[asked.step - 1]
    left = asked.surface.distance(*run.points[asked.step])
    arrived = left < 0.2 or run.losses[asked.step] < 1e-6 * run.losses[0]
    if arrived or not 0 < last <= first / 10:
        return ""
    return f"AdaGrad has grown tired: step {asked.step} is 1/{first / last:,.0f} of its first, with {left:.2g} still to go."


def _turning(asked: Asked) -> str:
    if not isinstance(asked.surface, TurnedRavine):
        return ""
    straight = replace(asked, surface=Ravine(asked.surface.steepness))
    words = []
    for name, run in asked.descents.items():
        here, there = run.losses[run.at(asked.step)], straight.descents[name]
        before = there.losses[there.at(asked.step)]
        if name in PREDICTED and not any("same" in word for word in words):
            words.append(
                f"{' and '.join(n for n in PREDICTED if n in asked.racing)} do the same as in the straight ravine"
            )
        elif name not in PREDICTED and before > 1e-12:
            words.append(f"{name} has {times_text(here / before)} the loss that it has there")
    return _sentence("; ".join(words))


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}." if words else ""


# In numbers.

HEAD = ("optimizer", "loss", "distance", "last step", "first step", "first step predicted")


def table(asked: Asked) -> list[list[str]]:
    """Everyone after the step that is looked at."""
    rows = [list(HEAD)]
    for name, run in asked.descents.items():
        t = run.at(asked.step)
        gone = why_it_diverges(asked, name) and len(run.losses) <= asked.step
        numbers = [run.losses[t], asked.surface.distance(*run.points[t]), run.lengths[t - 1] if t else 0.0]
        first = f"{run.lengths[0]:.4g}" if run.lengths else "beyond all bounds"
        label = f"{name}, gone after {_steps(t)}" if gone else name
        rows.append([label, *(f"{n:.4g}" for n in numbers), first, f"{asked.first_length(name):.4g}"])
    return rows


Cells = Sequence[str]


def account(asked: Asked) -> Iterator[Cells]:
    """Of SGD and momentum, with the numbers filled in: the factor in each direction, the limit, prediction and measurement."""
    flat, steep = asked.curvatures
    what, predicted, measured = _compared(asked)
    titles = f"error × a step, λ = {flat:.3g}", f"λ = {steep:.3g}", "converges while"
    yield "", *titles, what, "mean of 10 seeds" if asked.sigma and asked.surface.quadratic else "measured"
    for name in PREDICTED:
        if name in asked.racing:
            lr, mu = asked.settings.lr, asked.momentum_of(name)
            factors = [_factor(lr * curvature, mu) for curvature in (flat, steep)]
            limit = largest_lr(asked.limiting, mu)
            formula = f"2(1 + {mu:g})" if name == "momentum" else "2"
            bound = f"lr < {formula}/{asked.limiting:g} = {limit:.4g}" if limit < math.inf else "any lr"
            yield name, *factors, bound, predicted(name), measured(name)


def _factor(a: Number, mu: Number) -> str:
    if mu:
        swings = ((1 + mu - a) / 2) ** 2 < mu
        return f"√{mu:g} = {rate(a, mu):.4g}" if swings else f"{rate(a, mu):.4g}"
    return f"1 {'-' if a >= 0 else '+'} {abs(a):.4g} = {1 - a:.4g}"


def _floor_text(floor: Number) -> str:
    return f"{floor:.3g}" if floor < math.inf else "none"


def _compared(asked: Asked) -> tuple[str, Callable[[str], str], Callable[[str], str]]:
    """What can be predicted here, its prediction, and its measurement."""

    def loss(name: str) -> str:
        run = asked.descents[name]
        return f"{run.losses[asked.step]:.4g}" if asked.step < len(run.losses) else "gone"

    def step(t: int | None) -> str:
        return f"{t}" if t is not None else "never"

    if isinstance(asked.surface, Saddle):
        return (
            "leaves, predicted",
            lambda name: "as noise has it" if asked.sigma else step(asked.predicted_to_leave(name)),
            lambda name: step(asked.leaves_the_ridge(name)),
        )
    if asked.sigma:
        return (
            "noise floor, predicted",
            lambda name: _floor_text(asked.predicted_floor(name)),
            lambda name: _floor_text(asked.measured_floor(name)),
        )
    return (
        "loss, predicted",
        lambda name: f"{asked.predicted_loss(name, asked.step):.4g}",
        loss,
    )
