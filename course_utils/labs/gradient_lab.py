"""Where the 2, the 4 and the 6 come from: a deep linear model layer by layer, and a transformer as sequences grow."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import ipywidgets as widgets
import torch

from course_utils import measure, predict, whole_models
from course_utils.labs.gradient_picture import layers_view, transformer_view
from course_utils.labs.panel import Panel, Progress, View, as_progress
from course_utils.labs.size_control import SizeControl, size_of
from course_utils.quantities import Ledger

DEEPEST = 12
LONGEST_S = 120.0  # of a count
OF_LAYERS = ("depth", "d", "k", "b", "input_grad", "frozen")
OF_TRANSFORMER = ("model", "sequence")
_FRESH = {"what": "layers", "d": 64, "k": 64, "b": 16, "input_grad": False, "frozen": ""}
PRESETS = {
    "two layers": _FRESH | {"depth": 2, "d": 256, "k": 64, "b": 1024},
    "plain data": _FRESH | {"depth": 4},
    "exactly 6": _FRESH | {"depth": 4, "input_grad": True},
    "train the last layer": _FRESH | {"depth": 6, "frozen": "0 1 2 3 4"},
    "train the first layer": _FRESH | {"depth": 6, "frozen": "1 2 3 4 5"},
    "long sequences": {"what": "transformer", "model": "GPT-3", "sequence": 131072},
}


def gradient_lab() -> Panel:
    """The gradient lab."""
    return _GradientLab().panel()


class _GradientLab:
    def __init__(self) -> None:
        self.counted: dict[tuple[str, int], Ledger] = {}  # transformers, by model and sequence

    def panel(self) -> Panel:
        style = {"button_width": "auto", "description_width": "initial"}
        auto = widgets.Layout(width="auto")
        controls = {
            "what": widgets.ToggleButtons(options=("layers", "transformer"), style=style),
            "depth": widgets.IntSlider(
                2, 1, DEEPEST, description="layers", layout=widgets.Layout(width="300px")
            ),
            "d": SizeControl("D", 256),
            "k": SizeControl("K", 64),
            "b": SizeControl("B", 1024),
            "input_grad": widgets.Checkbox(False, description="the data need a gradient", indent=False),
            "frozen": widgets.Text(
                "",
                description="frozen layers",
                placeholder="like 0 1",
                continuous_update=True,
                style={"description_width": "initial"},
            ),
            "model": widgets.ToggleButtons(options=list(predict.MODELS), layout=auto, style=style),
            "sequence": SizeControl("S", 1024),
        }

        def follow(_: object) -> None:
            shown = OF_LAYERS if controls["what"].value == "layers" else OF_TRANSFORMER
            for name, control in controls.items():
                control.layout.display = "" if name in ("what", *shown) else "none"

        controls["what"].observe(follow, names="value")
        follow(None)
        return Panel(
            "Gradient lab",
            self.show,
            controls,
            presets=PRESETS,
            jobs={"Count the transformer": self.count},
            pick=frozen_or_not,
        )

    def show(self, what: str, model: str, sequence: object, **of_layers: object) -> View:
        """The view that was chosen."""
        if what == "layers":
            return layers(**of_layers)
        size = size_of("S", sequence)
        return transformer_view(model, size, self.counted.get((model, size)))

    def count(self, what: str, model: str, sequence: object, **_: object) -> Iterator[Progress]:
        """Count one step of the model without its memory, in a process that can be killed."""
        if what != "transformer":
            raise ValueError(
                "The layers are counted at every movement. Choose the transformer for this button."
            )
        size = size_of("S", sequence)
        steps = whole_models.step_flops_apart(predict.MODELS[model], size)
        self.counted = {**self.counted, (model, size): (yield from as_progress(steps, at_most_s=LONGEST_S))}
        yield Progress(1, f"Counted: {self.counted[model, size].total:,} FLOPs.", changed=True)


def layers(depth: int, d: object, k: object, b: object, input_grad: bool, frozen: str) -> View:
    """Every layer's three products, predicted, beside what torch counts of them."""
    widths = [size_of("D", d)] * depth + [size_of("K", k)]
    batch, left_out = size_of("B", b), frozen_layers(frozen, depth)
    return layers_view(
        batch, widths, input_grad, left_out, counted_layers(batch, tuple(widths), input_grad, left_out)
    )


def frozen_layers(words: str, depth: int) -> tuple[int, ...]:
    """The numbers that were typed.

    >>> frozen_layers("0, 2", 3)
    (0, 2)
    """
    parts = [part for part in re.split(r"[\s,]+", words.strip()) if part]
    if len(words) > 60 or not all(re.fullmatch(r"\d{1,3}", part, re.ASCII) for part in parts):
        raise ValueError(f"“{words[:60]}” are no layers. Type their numbers, like 0 1, or click on them.")
    wanted = tuple(sorted(set(map(int, parts))))
    return tuple(layer for layer in wanted if layer < depth)  # deeper ones wait for more layers


def frozen_or_not(key: str, depth: int, frozen: str, **_: object) -> dict[str, str]:
    """The controls after a click on a layer."""
    now = set(frozen_layers(frozen, depth)) ^ {int(key)}
    return {"frozen": " ".join(map(str, sorted(now)))}


@lru_cache(maxsize=256)
def counted_layers(batch: int, widths: tuple[int, ...], input_grad: bool, frozen: tuple[int, ...]) -> Ledger:
    """FLOPs of the forward and the backward pass, as torch's counter sees them on tensors without numbers."""
    x = torch.empty(batch, widths[0], device="meta", requires_grad=input_grad)
    weights = [
        torch.empty(d, k, device="meta", requires_grad=layer not in frozen)
        for layer, (d, k) in enumerate(pairwise(widths))
    ]
    result = []

    def forward() -> None:
        h = x
        for weight in weights:
            h = h @ weight
        result.append(h.sum())

    counted = {"forward": measure.flops(forward).total, "backward": 0}
    if result[0].requires_grad:
        counted["backward"] = measure.flops(result[0].backward).total
    return Ledger(counted, unit="FLOPs")
