"""A training run as it is asked for: a model of some sizes, how it is trained, and on which machines."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property

from course_utils import predict
from course_utils.labs.fields import choice, said_is, size, tick
from course_utils.predict import TrainingPlan
from course_utils.quantities import Ledger

SLIDER_PX = 110  # three sizes in a row
NAMES = ("T4", "L4", "A100 SXM 40GB", "A100 SXM", "H100 SXM", "H200 SXM", "B200", "MI300X")
MACHINES = {name.replace(" SXM", ""): name for name in NAMES}
STAGES = {f"{stage}": stage for stage in range(4)}
Found = Mapping[tuple, Ledger]  # the bytes of each step that was counted, by what they depend on
SIZES = ("layers", "width", "heads", "vocabulary")
CHOSEN = {one.name for one in fields(TrainingPlan)} - {"shape", "machine_name", "fused_loss", "gathered"}
SMALL, LARGE = predict.MODELS["GPT-2 small"], predict.MODELS["Llama 3 8B"]


def sizes_of(shape: predict.Transformer) -> dict[str, object]:
    """The fields' values for a model, also for the fields of the other kind, which can be switched to."""
    return {
        "kind": "Llama" if shape.gated else "GPT",
        **{name: getattr(shape, name) for name in SIZES},
        "positions": shape.context,
        "kv_heads": shape.kv_heads or shape.heads,
        "feed_forward": shape.inner_width,
        "sequence": shape.context,
    }


_PLAIN = {"batch": 1, "fused": True, "fused_norm": True, "recompute": False, "accumulate": False}
_EIGHT_H100S = {"recipe": "bf16+master adamw", "machine": "H100 SXM", "machines": 8, "stage": 0}
# A model is asked of the recipe and the machine that the reader has chosen.
PRESETS = {"do 8 H100s hold 8B?": sizes_of(LARGE) | _PLAIN | _EIGHT_H100S} | {
    f"{name}?": sizes_of(shape) | _PLAIN | {"machines": 8, "stage": 0}
    for name, shape in predict.MODELS.items()
    if name != "GPT-2 medium"
}


_of_gpts, _of_llamas = said_is("kind", "GPT"), said_is("kind", "Llama")


@dataclass(frozen=True)
class Asked:
    """A model's sizes, a recipe, the tokens on each machine, the machines, and what is split over them."""

    kind: str = choice("model", ("GPT", "Llama"), "Llama")
    layers: int = size("layers", LARGE.layers, slider=False)
    width: int = size("width", LARGE.width, slider=False)
    heads: int = size("heads", LARGE.heads, slider=False)
    kv_heads: int = size("KV heads", LARGE.kv_heads, slider=False, when=_of_llamas)
    feed_forward: int = size("MLP width", LARGE.inner_width, slider=False, when=_of_llamas)
    positions: int = size("positions", LARGE.context, slider=False, when=_of_gpts)
    vocabulary: int = size("vocabulary", LARGE.vocabulary, slider=False)
    recipe: str = choice("recipe", tuple(predict.RECIPES), "bf16+master adamw", menu=True)
    batch: int = size("batch on each", 1, slider_px=SLIDER_PX)
    sequence: int = size("sequence", LARGE.context, slider_px=SLIDER_PX)
    machine: str = choice("machine", MACHINES, "H100 SXM")
    machines: int = size("machines", 8, slider_px=SLIDER_PX)
    stage: int = choice("sharding stage", STAGES, 0)
    fused: bool = tick("fused attention", True)
    fused_norm: bool = tick("fused norms", True)
    recompute: bool = tick("recompute layers", False)
    accumulate: bool = tick("accumulate", False)

    def __post_init__(self) -> None:
        """Raise a sentence if the sizes do not go together."""
        if self.kind == "GPT" and self.sequence > self.positions:
            raise ValueError(
                f"A GPT learns a vector for each position. This one has {self.positions:,}, so it cannot read a sequence of "
                f"{self.sequence:,}. Take more positions or a shorter sequence. A Llama has no such limit."
            )
        self.plan  # noqa: B018  the shape looks at its sizes

    @cached_property
    def plan(self) -> TrainingPlan:
        """What is asked, as `predict` takes it."""
        sizes = {name: getattr(self, name) for name in SIZES}
        if self.kind == "GPT":
            shape = replace(SMALL, context=self.positions, **sizes)
        else:
            shape = replace(LARGE, kv_heads=self.kv_heads, feed_forward=self.feed_forward, **sizes)
        chosen = {name: getattr(self, name) for name in CHOSEN}
        return TrainingPlan(shape, machine_name=self.machine, **chosen)
