"""Bytes against FLOPs: how much less is kept if segments of blocks are computed again, predicted and measured."""

from collections.abc import Iterator, Mapping, Sequence

import ipywidgets as widgets

from course_utils import apart
from course_utils.labs.panel import Panel, Progress, View, as_progress
from course_utils.labs.recompute_picture import view
from course_utils.labs.recompute_plan import (
    KINDS,
    Found,
    Plan,
    check_that_it_can_run,
    found,
    order_of,
    plan_of,
)
from course_utils.labs.size_control import SizeControl

DEEPEST = 96
PATIENCE_S = 180.0  # twice what a measurement may be expected to take
_FRESH = {"batch": 4, "sequence": 128, "width": 64, "early_stop": True, "scores_again": False}
_GPT2 = {"layers": 12, "batch": 1, "sequence": 1024, "width": 768}
PRESETS = {
    "MLP blocks: not √L but 1": _FRESH | {"kind": "MLP", "layers": 16, "segment": 4},
    "x W keeps its input alone: √L": _FRESH | {"kind": "x W", "layers": 16, "segment": 4},
    "without early stop: 8/6": _FRESH | {"kind": "MLP", "layers": 8, "segment": 2, "early_stop": False},
    "GPT-2's layers": _FRESH | _GPT2 | {"kind": "GPT, fused attention", "segment": 1},
    "long sequences: the scores": _FRESH
    | {
        "kind": "GPT",
        "layers": 6,
        "segment": 0,
        "batch": 1,
        "sequence": 1024,
        "width": 128,
        "scores_again": True,
    },
    "no help: one block": _FRESH | {"kind": "MLP", "layers": 1, "segment": 1},
    "no help: few tokens": _FRESH
    | {"kind": "MLP", "layers": 12, "segment": 1, "batch": 1, "sequence": 8, "width": 768},
}


def recompute_lab() -> Panel:
    """The recompute lab."""
    return _RecomputeLab().panel()


class _RecomputeLab:
    def __init__(self) -> None:
        self.found: dict[Plan, Found] = {}  # by the blocks, with everything kept

    def panel(self) -> Panel:
        plain = {"description_width": "initial"}
        style = plain | {"button_width": "auto"}
        first = next(iter(PRESETS.values()))

        def whole(name: str, described: str, least: int, most: int) -> widgets.IntSlider:
            return widgets.IntSlider(
                first[name],
                least,
                most,
                description=described,
                layout=widgets.Layout(width="320px"),
                style=plain,
            )

        def tick(name: str, described: str) -> widgets.Checkbox:
            return widgets.Checkbox(
                first[name], description=described, indent=False, layout=widgets.Layout(width="auto")
            )

        controls: dict[str, widgets.Widget] = {
            "kind": widgets.ToggleButtons(
                options=KINDS,
                value=first["kind"],
                description="blocks",
                layout=widgets.Layout(width="auto"),
                style=style,
            ),
            "layers": whole("layers", "blocks L", 1, DEEPEST),
            "segment": whole("segment", "segment s", 0, first["layers"]),
            "batch": SizeControl("batch B", first["batch"], name_px=70),
            "sequence": SizeControl("sequence S", first["sequence"], name_px=80),
            "width": SizeControl("width H", first["width"], name_px=70),
            "early_stop": tick("early_stop", "early stop"),
            "scores_again": tick("scores_again", "only the scores again"),
        }

        def follow(_: object) -> None:
            controls["segment"].max = controls["layers"].value
            explicit = controls["kind"].value == "GPT"
            controls["scores_again"].layout.display = "" if explicit else "none"
            scores = explicit and controls["scores_again"].value
            controls["segment"].layout.display = "none" if scores else ""

        for name in ("kind", "layers", "scores_again"):
            controls[name].observe(follow, names="value")
        follow(None)
        return Panel(
            "Recompute lab",
            self.show,
            controls,
            presets=PRESETS,
            jobs={"Measure": self.measure, "Measure all segments": self.measure_all},
        )

    def show(self, **values: object) -> View:
        """What there is to see for one state of the controls."""
        plan = plan_of(**values)
        return view(plan, self.found.get(plan.with_everything_kept, {}))

    def measure(self, **values: object) -> Iterator[Progress]:
        """A real step as it is chosen, and a plain one to compare it with."""
        plan = plan_of(**values)
        return self._run(plan, list(dict.fromkeys(["0", plan.again])))

    def measure_all(self, **values: object) -> Iterator[Progress]:
        """A real step for every point of the frontier."""
        plan = plan_of(**values)
        return self._run(plan, plan.choices)

    def _run(self, plan: Plan, choices: Sequence[str]) -> Iterator[Progress]:
        """In a process that can be killed."""
        check_that_it_can_run(plan, choices)
        steps = apart.steps_apart(found, order_of(plan, choices), at_most_s=PATIENCE_S)
        results = yield from as_progress(steps, at_most_s=PATIENCE_S)
        blocks = plan.with_everything_kept
        self.found = {**self.found, blocks: {**self.found.get(blocks, {}), **results}}
        alike = sum(results[again] == plan.choosing(again).predicted for again in choices)
        yield Progress(1, _said(alike, results), changed=True)


def _said(alike: int, results: Mapping[str, object]) -> str:
    steps = f"{len(results)} steps" if len(results) > 1 else "1 step"
    return f"Measured {steps}: bytes and FLOPs of {alike} of {len(results)} exactly as predicted."
