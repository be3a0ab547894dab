"""Optimizers race down a surface, in plain numbers at every movement, and with torch's own on request."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import ipywidgets as widgets
import torch
import traitlets

from course_utils.labs.optimizer_picture import view
from course_utils.labs.optimizer_race import MOST_STEPS, Asked, asked_for
from course_utils.labs.panel import Panel, Progress, View
from course_utils.labs.surfaces import SURFACES, Point, noise
from course_utils.labs.update_rules import RULES, Settings
from course_utils.quantities import Number

FRAMES, FRAME_S = 60, 0.05  # of the race
# As even as a logarithmic slider's, but numbers that one can reckon with; a curvature of 100 has its limit at 0.02.
_LEADING = "1 1.1 1.2 1.3 1.5 1.6 1.8 1.9 1.95 2 2.05 2.2 2.4 2.7 3 3.3 3.6 3.8 3.9 4.3 4.7 5 5.6 6.2 6.8 7.5 8.2 9.1"
RATES = [float(f"{digits}e{power}") for power in range(-4, 1) for digits in _LEADING.split()] + [10.0]
QUIET = {"momentum": 0.9, "beta2": 0.99, "weight_decay": 0.0, "noise": 0.0, "step": MOST_STEPS}
PRESETS: Mapping[str, Mapping[str, object]] = {
    "all six in the ravine": {
        "surface": "ravine",
        "steepness": 100,
        "racing": tuple(RULES),
        "lr": 0.018,
        "steps": 200,
    },
    "past the edge": {
        "surface": "ravine",
        "steepness": 100,
        "racing": ("SGD", "momentum", "Adam"),
        "lr": 0.0205,
        "steps": 60,
    },
    "momentum overshoots": {
        "surface": "ravine",
        "steepness": 1,
        "racing": ("SGD", "momentum"),
        "lr": 0.03,
        "steps": 120,
    },
    "AdaGrad grows tired": {
        "surface": "ravine",
        "steepness": 1,
        "racing": ("AdaGrad", "RMSProp", "Adam"),
        "lr": 0.03,
        "steps": 300,
    },
    "the ravine, turned": {
        "surface": "turned ravine",
        "steepness": 100,
        "racing": ("SGD", "momentum", "AdaGrad", "Adam"),
        "lr": 0.018,
        "steps": 200,
    },
    "saddle: who leaves first": {
        "surface": "saddle",
        "steepness": 1,
        "racing": tuple(RULES),
        "lr": 0.05,
        "steps": 200,
    },
    "noise: who averages": {
        "surface": "ravine",
        "steepness": 1,
        "racing": ("SGD", "momentum", "AdaGrad", "Adam"),
        "lr": 0.2,
        "noise": 0.3,
        "steps": 300,
    },
    "weight decay: AdamW and Adam": {
        "surface": "ravine",
        "steepness": 0,
        "racing": ("Adam", "AdamW"),
        "lr": 0.03,
        "weight_decay": 0.1,
        "steps": 200,
    },
}


def optimizer_lab() -> Panel:
    """The optimizer lab."""
    return _OptimizerLab().panel()


class Racers(widgets.HBox):
    """A checkbox for each optimizer; `value` names those that are ticked."""

    value = traitlets.Tuple()

    def __init__(self, value: Sequence[str]) -> None:
        narrow = widgets.Layout(width="auto")
        self._boxes = {
            name: widgets.Checkbox(False, description=name, indent=False, layout=narrow) for name in RULES
        }
        for box in self._boxes.values():
            box.observe(self._ticked, names="value")
        super().__init__(
            list(self._boxes.values()), layout=widgets.Layout(flex_flow="row wrap", grid_gap="0 12px")
        )
        self.observe(self._show, names="value")
        self.value = tuple(value)

    def _ticked(self, _: object) -> None:
        self.value = tuple(name for name, box in self._boxes.items() if box.value)

    def _show(self, change: Mapping[str, object]) -> None:
        wanted = change["new"]
        for box in self._boxes.values():
            box.unobserve(self._ticked, names="value")
        for name, box in self._boxes.items():
            box.value = name in wanted
        for box in self._boxes.values():
            box.observe(self._ticked, names="value")


class _OptimizerLab:
    def __init__(self) -> None:
        self.passing: int | None = None  # the step that a race shows just now

    def panel(self) -> Panel:
        start = {**QUIET, **PRESETS["all six in the ravine"]}
        style = {"button_width": "auto", "description_width": "initial"}
        row = widgets.Layout(width="auto", flex_flow="row nowrap")
        controls = {
            "surface": widgets.ToggleButtons(options=tuple(SURFACES), description="surface", layout=row, style=style),
            "steepness": _among((0, 1, 3, 10, 30, 100, 300, 1000), 100, "steepness"),
            "racing": Racers(start["racing"]),
            "lr": _among(RATES, start["lr"], "lr", "340px"),
            "momentum": _among((0.0, 0.5, 0.8, 0.9, 0.95, 0.99), 0.9, "momentum, β1"),
            "beta2": _among((0.5, 0.9, 0.95, 0.99, 0.999), 0.99, "β2"),
            "weight_decay": _among((0.0, 0.01, 0.03, 0.1, 0.3, 1.0), 0.0, "weight decay"),
            "noise": _among((0.0, 0.1, 0.3, 1.0, 3.0), 0.0, "noise"),
            "seed": _slider(0, 0, 9, "seed"),
            "steps": _slider(start["steps"], 10, MOST_STEPS, "steps", step=10),
            "step": _slider(start["steps"], 0, start["steps"], "look at step"),
        }  # fmt: skip
        controls["steps"].observe(partial(_end_with, controls["step"]), names="value")
        return Panel(
            "Optimizer lab",
            self.show,
            controls,
            presets={name: {**QUIET, **preset} for name, preset in PRESETS.items()},
            jobs={"Race": self.race, "Check against torch": check},
        )

    def show(self, **said: object) -> View:
        """What there is to see for one state of the controls."""
        if self.passing is not None:
            said["step"] = self.passing
        return view(asked_for(**said))

    def race(self, **said: object) -> Iterator[Progress]:
        """Look at one step after the other."""
        steps = asked_for(**said).steps
        try:
            for frame in range(FRAMES):
                self.passing = frame * steps // FRAMES
                yield Progress(frame / FRAMES, f"Step {self.passing} of {steps}.", changed=True)
                time.sleep(FRAME_S)
        finally:
            self.passing = None
        yield Progress(1, f"{steps} steps.", changed=True)


def _among(
    options: Sequence[Number], value: Number, name: str, width: str = "300px"
) -> widgets.SelectionSlider:
    named = [(f"{n:g}", n) for n in options]
    return widgets.SelectionSlider(options=named, value=value, description=name, **_wide(width))


def _end_with(step: widgets.IntSlider, steps: Mapping[str, object]) -> None:
    """The step that is looked at is one of those there are; who looks at the last goes on to do so."""
    at_the_end = step.value == step.max
    step.max = steps["new"]
    if at_the_end:
        step.value = step.max


def _slider(value: int, low: int, high: int, name: str, step: int = 1) -> widgets.IntSlider:
    return widgets.IntSlider(value, low, high, step=step, description=name, **_wide("300px"))


def _wide(width: str) -> dict[str, object]:
    return {"layout": widgets.Layout(width=width), "style": {"description_width": "initial"}}


# torch's opinion, on request.

Maker = Callable[[Sequence[torch.Tensor], Settings], torch.optim.Optimizer]


def _sgd(p: Sequence[torch.Tensor], s: Settings, momentum: Number = 0.0) -> torch.optim.Optimizer:
    return torch.optim.SGD(p, lr=s.lr, momentum=momentum, weight_decay=s.weight_decay)


TORCH: Mapping[str, Maker] = {
    "SGD": _sgd,
    "momentum": lambda p, s: _sgd(p, s, s.momentum),
    "AdaGrad": lambda p, s: torch.optim.Adagrad(p, lr=s.lr, weight_decay=s.weight_decay),
    "RMSProp": lambda p, s: torch.optim.RMSprop(p, lr=s.lr, alpha=s.beta2, weight_decay=s.weight_decay),
    "Adam": lambda p, s: torch.optim.Adam(p, s.lr, (s.momentum, s.beta2), weight_decay=s.weight_decay),
    "AdamW": lambda p, s: torch.optim.AdamW(p, s.lr, (s.momentum, s.beta2), weight_decay=s.weight_decay),
}


def torchs_points(asked: Asked, name: str) -> Iterator[Point]:
    """Where torch.optim goes in fp64, with gradients by autograd."""
    x, y = (torch.tensor(start, dtype=torch.float64, requires_grad=True) for start in asked.surface.start)
    optimizer = TORCH[name]([x, y], asked.settings)
    for push_x, push_y in noise(asked.sigma, asked.steps, asked.seed):
        optimizer.zero_grad()
        (asked.surface.loss(x, y) + push_x * x + push_y * y).backward()
        optimizer.step()
        yield x.item(), y.item()


def check(**said: object) -> Iterator[Progress]:
    """Let torch.optim take the same steps, and compare every coordinate at every step."""
    asked = asked_for(**said)
    worst, who, done, total = 0.0, asked.racing[0], 0, asked.steps * len(asked.racing)
    for name, run in asked.descents.items():
        for ours, theirs in zip(run.points[1:], torchs_points(asked, name), strict=False):
            apart = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(ours, theirs, strict=True))
            worst, who = max((worst, who), (apart, name))
            done += 1
            yield Progress(
                min(0.99, done / total),
                f"{name}: {done:,} of {total:,} steps; largest difference {worst:.1e}.",
            )
    names = ", ".join(asked.racing)
    if not done:
        raise ValueError(f"{names} left the picture in the very first step: there is nothing to compare.")
    yield Progress(
        1,
        f"torch.optim took the same {done:,} steps ({names}): the largest difference in a coordinate is {worst:.1e}, {who}'s.",
    )
