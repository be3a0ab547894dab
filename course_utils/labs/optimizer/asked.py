"""A race of optimizers down a surface as it is asked for, and what can be predicted of it before it is run."""

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from course_utils import predict
from course_utils.labs.fields import Said, among, choice, several, whole
from course_utils.predict.descents import RULES, SURFACES, Descent, Settings, Surface, descent, noise
from course_utils.quantities import Number

LINEAR = ("SGD", "momentum")  # in the gradient: on a parabola their way is known beforehand
EDGE, OFF_THE_SADDLE = 2.0, 0.5  # what is drawn reaches from -2 to 2 in both coordinates
LEAST = 1e-12  # a smaller loss is rounding, and is not drawn
MOST_STEPS, SEEDS = 300, 10
LONGEST = 3000  # steps that a prediction looks ahead
# As even as a logarithmic slider's, but numbers that one can reckon with; a curvature of 100 has its limit at 0.02.
_LEADING = "1 1.1 1.2 1.3 1.5 1.6 1.8 1.9 1.95 2 2.05 2.2 2.4 2.7 3 3.3 3.6 3.8 3.9 4.3 4.7 5 5.6 6.2 6.8 7.5 8.2 9.1"
RATES = [float(f"{digits}e{power}") for power in range(-4, 1) for digits in _LEADING.split()] + [10.0]


def _question(surface: str, steepness: Number, racing: str, lr: Number, steps: int, **more: Number) -> Said:
    """A preset that shows the last step; what it does not name has its first value."""
    plain = {"momentum": 0.9, "beta2": 0.99, "weight_decay": 0.0, "noise": 0.0, "step": steps}
    asked = {"surface": surface, "steepness": steepness, "racing": tuple(racing.split()), "lr": lr}
    return plain | asked | {"steps": steps} | more


ALL = " ".join(RULES)
PRESETS = {
    "who wins?": _question("ravine", 100, ALL, 0.018, 200),
    "who diverges?": _question("ravine", 100, "SGD momentum Adam", 0.0205, 60),
    "who overshoots?": _question("ravine", 1, "SGD momentum", 0.03, 120),
    "who tires?": _question("ravine", 1, "AdaGrad RMSProp Adam", 0.03, 300),
    "who minds a turn?": _question("turned ravine", 100, "SGD momentum AdaGrad Adam", 0.018, 200),
    "who leaves?": _question("saddle", 1, ALL, 0.05, 200),
    "who settles?": _question("ravine", 1, "SGD momentum AdaGrad Adam", 0.2, 300, noise=0.3),
    "who decays?": _question("ravine", 0, "Adam AdamW", 0.03, 200, weight_decay=0.1),
}


@dataclass(frozen=True)
class Race:
    """The surface, who takes part, with which settings, how noisy and how long, and the step to look at."""

    surface: str = choice("surface", tuple(SURFACES), "ravine")
    racing: tuple[str, ...] = several("racing", tuple(RULES), tuple(RULES))
    lr: float = among("lr", RATES, 0.018, width_px=260)
    momentum: float = among("momentum, β1", (0.0, 0.5, 0.8, 0.9, 0.95, 0.99), 0.9, width_px=222)
    beta2: float = among("β2", (0.5, 0.9, 0.95, 0.99, 0.999), 0.99, width_px=145)
    weight_decay: float = among("weight decay", (0.0, 0.01, 0.03, 0.1, 0.3, 1.0), 0.0, width_px=220)
    steepness: int = among("steepness", (0, 1, 3, 10, 30, 100, 300, 1000), 100, width_px=190)
    noise: float = among("noise", (0.0, 0.1, 0.3, 1.0, 3.0), 0.0, width_px=140)
    seed: int = whole("seed", 0, 0, SEEDS - 1, width_px=125, when=lambda said: bool(said["noise"]))
    steps: int = whole("steps", 200, 10, MOST_STEPS, step=10, width_px=145)
    step: int = whole("look at step", 200, 0, lambda said: said["steps"], width_px=225)

    def __post_init__(self) -> None:
        """Refuse a race without optimizers, and look at the last step if the chosen one is beyond it."""
        if not self.racing:
            raise ValueError("Nobody races. Tick at least one optimizer.")
        object.__setattr__(self, "step", min(self.step, self.steps))

    @property
    def ground(self) -> Surface:
        """The surface itself."""
        return SURFACES[self.surface](self.steepness)

    @property
    def settings(self) -> Settings:
        """The settings of all rules."""
        return Settings(self.lr, self.momentum, self.beta2, self.weight_decay)

    @cached_property
    def descents(self) -> dict[str, Descent]:
        """The descent of each racing optimizer, by its name."""
        pushes = noise(self.noise, self.steps, self.seed)
        return {name: descent(name, self.ground, self.settings, pushes) for name in self.racing}

    @property
    def linear(self) -> list[str]:
        """The racing optimizers whose descent can be predicted."""
        return [name for name in self.racing if name in LINEAR]

    @property
    def dividing(self) -> list[str]:
        """The racing optimizers that divide the gradient by its size."""
        return [name for name in self.racing if name not in LINEAR]

    @property
    def only_decay_along_y(self) -> bool:
        """Whether nothing but weight decay pulls along y, which begins at 1."""
        return self.surface == "ravine" and not self.steepness and self.weight_decay > 0

    def momentum_of(self, name: str) -> Number:
        """The optimizer's μ; 0 for SGD."""
        return self.momentum if name == "momentum" else 0.0

    @property
    def bare_curvatures(self) -> tuple[Number, Number]:
        """The surface's curvatures at the start, without weight decay."""
        return self.ground.curvatures(*self.ground.start)

    @property
    def curvatures(self) -> tuple[Number, Number]:
        """The curvatures with weight decay, which adds to each as a part of the gradient."""
        flat, steep = self.bare_curvatures
        return flat + self.weight_decay, steep + self.weight_decay

    @property
    def limiting(self) -> Number:
        """The curvature that bounds lr: the largest, but along x on a saddle, where the other one changes."""
        return max(self.curvatures) if self.ground.quadratic else self.curvatures[0]

    def predicted_loss(self, name: str, step: int) -> Number:
        """The loss after that step, on a parabola without noise."""
        start = self.ground.along(*self.ground.start)
        return predict.parabola_loss(step, self.lr, self.bare_curvatures, start, **self._pulls(name))

    def predicted_floor(self, name: str) -> Number:
        """The loss that noise leaves in the long run, on a parabola."""
        return predict.noise_floor(self.lr, self.bare_curvatures, self.noise, **self._pulls(name))

    def _pulls(self, name: str) -> dict[str, Number]:
        return {"momentum": self.momentum_of(name), "weight_decay": self.weight_decay}

    def measured_floor(self, name: str) -> Number:
        """The mean loss of the second half over ten seeds; infinite if a descent diverged before."""
        pushes = [noise(self.noise, self.steps, seed) for seed in range(SEEDS)]
        runs = [descent(name, self.ground, self.settings, one) for one in pushes]
        return fmean(loss for run in runs for loss in run.losses[self.steps // 2 :] or [math.inf])

    def predicted_to_leave(self, name: str) -> int | None:
        """The step that leaves the saddle, if its curvature were the same everywhere as at the start."""
        a, times = self.lr * self.curvatures[1], OFF_THE_SADDLE / self.ground.start[1]
        return predict.steps_to_grow(times, a, self.momentum_of(name), at_most=LONGEST)

    def leaves_the_saddle(self, name: str) -> int | None:
        """The first step at which |y| is more than a half."""
        points = self.descents[name].points
        return next((t for t, (_, y) in enumerate(points) if abs(y) > OFF_THE_SADDLE), None)
