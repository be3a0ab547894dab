"""Real gradients over the reach of each format, a loss scale that moves them, and training in each mix of formats."""

from collections.abc import Iterator, Mapping
from functools import cache

import ipywidgets as widgets

from course_utils import floats
from course_utils.labs.panel import Panel, Progress, View
from course_utils.labs.precision_asked import CONSTANT, FORMATS, SCALER, Asked, Runs
from course_utils.labs.precision_picture import STEPS, view
from course_utils.precision import MIXES, Trained, losses
from course_utils.quantities import Number, count_text

MOST = 40  # the largest power of two
FRAME = 5  # steps between two pictures of a training
AFTER = (0, 50, 100, 200)
LAYERS = {"all": 0, "1": 1, "2": 2, "3": 3}
TICKED = ("fp32", CONSTANT, "bf16 alone")
NAMES = {CONSTANT: "fp16 × the scale", SCALER: "fp16, GradScaler from the scale"}
FIRST = {"after": 0, "layer": 0}
PRESETS: Mapping[str, Mapping[str, object]] = {
    "the fp16 that loses half": {"fmt": "fp16", "power": 0},
    "scaled by 1024": {"fmt": "fp16", "power": 10},
    "scaled too far": {"fmt": "fp16", "power": 40},
    "later, nearly all is lost": {"fmt": "fp16", "power": 0, "after": 200},
    "bf16 needs none": {"fmt": "bf16", "power": 0},
    "fp8: a range of its own": {"fmt": "e4m3", "power": 29},
}


def precision_lab() -> Panel:
    """The precision lab."""
    return _PrecisionLab().panel()


def scale_for(mix: str, power: int) -> Number | None:
    """The slider's scale for the two mixes that take it."""
    return 2.0**power if mix in (CONSTANT, SCALER) else None


@cache
def first_runs() -> Mapping[str, list[Trained]]:
    """What the lab shows before the reader has trained anything."""
    return {mix: list(losses(mix, STEPS, scale=scale_for(mix, 0))) for mix in TICKED}


class _PrecisionLab:
    def __init__(self) -> None:
        self.runs = Runs(first_runs(), 0)

    def panel(self) -> Panel:
        style = {"button_width": "auto", "description_width": "initial"}
        row, narrow = widgets.Layout(width="auto", flex_flow="row nowrap"), widgets.Layout(width="auto")

        def buttons(options: object, value: object, name: str) -> widgets.ToggleButtons:
            return widgets.ToggleButtons(
                options=options, value=value, description=name, layout=row, style=style
            )

        controls = {
            "fmt": buttons([(floats.FORMATS[name].label, name) for name in FORMATS], "fp16", "format"),
            "power": widgets.IntSlider(
                *(0, 0, MOST),
                description="loss scale 2^",
                layout=widgets.Layout(width="430px"),
                style={"description_width": "initial"},
            ),
            "after": buttons([(f"{n}", n) for n in AFTER], 0, "gradients after steps"),
            "layer": buttons(list(LAYERS.items()), 0, "of layer"),
            **{
                mix: widgets.Checkbox(
                    mix in TICKED, description=NAMES.get(mix, mix), indent=False, layout=narrow
                )
                for mix in MIXES
            },
        }
        presets = {name: {**FIRST, **values} for name, values in PRESETS.items()}
        return Panel("Precision lab", self.show, controls, presets=presets, jobs={"Train": self.train})

    def show(self, fmt: str, power: int, after: int, layer: int, **ticked: bool) -> View:
        """What there is to see for one state of the controls."""
        steps = {mix: run for mix, run in self.runs.steps.items() if ticked[mix]}
        return view(Asked(fmt, power, after, layer), Runs(steps, self.runs.power))

    def train(self, power: int, **said: object) -> Iterator[Progress]:
        """All that are ticked, side by side, step by step."""
        mixes = [mix for mix in MIXES if said[mix]]
        if not mixes:
            raise ValueError("Nothing to train. Tick at least one mix of formats.")
        going = {mix: losses(mix, STEPS, scale=scale_for(mix, power)) for mix in mixes}
        runs: Mapping[str, list[Trained]] = {mix: [] for mix in mixes}
        self.runs = Runs(runs, power)
        for step in range(1, STEPS + 1):
            for mix, steps in going.items():
                runs[mix].append(next(steps))
            changed = step in (1, STEPS) or step % FRAME == 0
            yield Progress(min(0.99, step / STEPS), f"Step {step} of {STEPS}.", changed)
        skipped = sum(step.skipped for step in runs.get(SCALER, ()))
        scaler = f" GradScaler skipped {count_text(skipped, 'step')}." if SCALER in runs else ""
        yield Progress(1, f"Trained {len(mixes)} of {len(MIXES)} mixes.{scaler}", changed=True)
