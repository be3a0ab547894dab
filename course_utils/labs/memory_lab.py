"""What a training run holds, against the memory of its machines; what would make it fit; and a count beside the prediction."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import ipywidgets as widgets

from course_utils import measure, predict, whole_models
from course_utils.labs.memory_picture import MACHINES, view
from course_utils.labs.memory_plan import PARTS, Plan, remedies
from course_utils.labs.memory_words import advice
from course_utils.labs.panel import Panel, Progress, View, as_progress
from course_utils.labs.size_control import SizeControl, size_of
from course_utils.quantities import Ledger, bytes_text, seconds_text

KINDS = ("GPT", "Llama")
# The fields that hold the model's sizes, and the kinds that have them.
FIELDS = {
    "layers": KINDS,
    "width": KINDS,
    "heads": KINDS,
    "vocabulary": KINDS,
    "positions": ("GPT",),
    "kv_heads": ("Llama",),
    "feed_forward": ("Llama",),
}
SMALL, LARGE = predict.MODELS["GPT-2 small"], predict.MODELS["Llama 3 8B"]
LLAMAS_OWN = {
    name: value for name, value in vars(LARGE).items() if isinstance(value, bool) or name == "context"
}
MOST_LAYERS, MOST_BYTES, LONGEST_S = 400, 2**60, 120.0  # of a count
A_PROCESS_BYTES = 2**29  # that counts; no model makes it much larger


def memory_lab() -> Panel:
    """The memory lab."""
    return _MemoryLab().panel()


def sizes_of(shape: predict.Transformer) -> dict[str, object]:
    """What the fields say for a model."""
    return {
        "kind": "Llama" if shape.gated else "GPT",
        **{name: f"{getattr(shape, name)}" for name in ("layers", "width", "heads", "vocabulary")},
        "positions": f"{shape.context}",
        "kv_heads": f"{shape.kv_heads or shape.heads}",
        "feed_forward": f"{shape.feed_forward or 4 * shape.width}",
        "sequence": shape.context,
    }


PRESETS = {name: sizes_of(shape) for name, shape in predict.MODELS.items()} | {
    "the opening question": sizes_of(LARGE)
    | {"recipe": "bf16+master adamw", "machine": "H100 SXM", "machines": 8, "stage": 0}
}


def shape_of(kind: str, **fields: str) -> predict.Transformer:
    """The model that the fields say, or a sentence on what they cannot mean."""
    n = {
        name: size_of(name.replace("_", " "), fields[name]) for name, kinds in FIELDS.items() if kind in kinds
    }
    if kind == "GPT":
        return replace(SMALL, context=n.pop("positions"), **n)
    return predict.Transformer(**n, **LLAMAS_OWN)


def plan_of(kind: str, **values: object) -> Plan:
    """All that the controls say, or a sentence on what they cannot mean."""
    shape = shape_of(kind, **{name: str(values[name]) for name in FIELDS})
    sizes = {name: size_of(name, values[name]) for name in ("batch", "sequence", "machines")}
    if kind == "GPT" and sizes["sequence"] > shape.context:
        raise ValueError(
            f"A GPT has learned a vector for each position, and this one has {shape.context:,}: no sequence of "
            f"{sizes['sequence']:,}. Take more positions or a shorter sequence; a Llama turns its vectors, and has no such end."
        )
    return Plan(
        shape=shape,
        recipe=str(values["recipe"]),
        **sizes,
        machine_name=str(values["machine"]),
        stage=int(values["stage"]),
        fused=bool(values["fused"]),
        fused_norm=bool(values["fused_norm"]),
        recompute=bool(values["recompute"]),
    )


class _MemoryLab:
    def __init__(self) -> None:
        self.counted: dict[tuple, Ledger] = {}

    def panel(self) -> Panel:
        plain = {"description_width": "initial"}
        style = plain | {"button_width": "auto"}
        row = widgets.Layout(width="auto", flex_flow="row nowrap")
        narrow = widgets.Layout(width="auto")
        sizes = sizes_of(LARGE)

        def buttons(options: object, value: object, name: str) -> widgets.ToggleButtons:
            return widgets.ToggleButtons(
                options=options, value=value, description=name, layout=row, style=style
            )

        def field(name: str) -> widgets.Text:
            words = name.replace("_", " ")
            layout = widgets.Layout(width=f"{75 + 7 * len(words)}px")
            return widgets.Text(
                sizes[name], description=words, continuous_update=True, layout=layout, style=plain
            )

        controls: dict[str, widgets.Widget] = {
            "kind": buttons(KINDS, sizes["kind"], "model"),
            **{name: field(name) for name in FIELDS},
            "recipe": buttons(tuple(predict.RECIPES), "bf16+master adamw", "recipe"),
            "batch": SizeControl("batch on each", 1, name_px=95),
            "sequence": SizeControl("sequence", LARGE.context, name_px=95),
            "machine": buttons(MACHINES, "H100 SXM", "machine"),
            "machines": SizeControl("machines", 8, name_px=95),
            "stage": buttons([(f"{n}", n) for n in range(4)], 0, "sharding stage"),
            "fused": widgets.Checkbox(True, description="fused attention", indent=False, layout=narrow),
            "fused_norm": widgets.Checkbox(
                True, description="norms in one kernel", indent=False, layout=narrow
            ),
            "recompute": widgets.Checkbox(False, description="recompute layers", indent=False, layout=narrow),
        }

        def show_fields(_: object) -> None:
            for name, kinds in FIELDS.items():
                controls[name].layout.display = "" if controls["kind"].value in kinds else "none"

        controls["kind"].observe(show_fields, names="value")
        show_fields(None)
        return Panel(
            "Memory lab",
            self.show,
            controls,
            presets=PRESETS,
            jobs={"Count it": self.count},
            actions={"Make it fit": make_it_fit},
        )

    def show(self, **values: object) -> View:
        """What there is to see for one state of the controls."""
        plan = plan_of(**values)
        return view(plan, self.counted.get(_counted_as(plan)))

    def count(self, **values: object) -> Iterator[Progress]:
        """Count the step on one machine, in a process that can be killed."""
        plan = plan_of(**values)
        check_that_it_can_be_counted(plan)
        begin = time.monotonic()
        shape = replace(plan.shape, context=max(plan.shape.context, plan.sequence))
        ways = {"fused": plan.fused, "fused_norm": plan.fused_norm, "recompute": plan.recompute}
        steps = whole_models.held_bytes_apart(shape, plan.recipe, plan.batch, plan.sequence, **ways)
        found = yield from as_progress(steps, at_most_s=LONGEST_S)
        self.counted[_counted_as(plan)] = found
        alike = sum(found[part] == plan.whole.held[part] for part in PARTS)
        took = seconds_text(time.monotonic() - begin)
        yield Progress(
            1, f"Counted in {took}: {alike} of {len(PARTS)} parts to the byte as predicted.", changed=True
        )


def _counted_as(plan: Plan) -> tuple:
    """What a count depends on; how many machines there are, and which, is none of it."""
    return plan.whole._of_moments


def check_that_it_can_be_counted(plan: Plan) -> None:
    """A sentence on why it can't, if it can't."""
    if plan.shape.layers > MOST_LAYERS:
        raise ValueError(
            f"Not counted: every layer takes a while, and {plan.shape.layers:,} would take minutes. "
            f"Take {MOST_LAYERS} layers or fewer."
        )
    most = replace(plan.whole, recompute=False, fused=False, fused_norm=False).held.total
    if most > MOST_BYTES:
        raise ValueError(
            f"Not counted: {bytes_text(most)} are more than torch can address, be it without memory. Make it smaller."
        )
    free = measure.free_bytes("cpu")
    if free < A_PROCESS_BYTES:
        raise ValueError(
            f"Not counted: a process that counts needs {bytes_text(A_PROCESS_BYTES)}, and {bytes_text(free)} are free."
        )


def make_it_fit(**values: object) -> Mapping[str, object]:
    """The first of the smallest remedies, as values for the controls."""
    plan = plan_of(**values)
    if plan.fits:
        raise ValueError("It fits as it is.")
    changes = next(remedies(plan), None)
    if changes is None:
        raise ValueError(advice(plan))
    return changes
