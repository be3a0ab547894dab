"""The published runs, as data: read from the file beside this module."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.core import predict
from course_utils.core.datasheets import MACHINES
from course_utils.core.predict import MODELS, Shape, Timeline
from course_utils.core.say import Number

RECIPE = "bf16+master adamw"  # 16 bytes a parameter, as all of these runs have, be the parameters fp32 or bf16 and fp32
COUNTS = ("all pairs", "causal", "6P", "6P + all pairs", "6P + causal", "its own rate")


@dataclass(frozen=True)
class Source:
    """Where a run is published, under which licence, and what of it could not be read there.

    `why` is what is known of the cause where prediction and report differ, by what is reported.
    """

    what: str
    where: str
    licence: str
    not_read: str
    why: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """A training run as others published it. None was measured by this course; None stands for "not stated".

    Rates in `reported` are those of one GPU. Where the model itself is split, `parallel` says how.
    """

    name: str
    shape: Shape
    machine: str
    gpus: int | None
    batch: Number | None  # sequences on each GPU
    sequence: int
    reported: Mapping[str, object]
    source: Source
    not_said: str
    stage: int | None = None  # of sharding, over all GPUs
    parallel: Mapping[str, int] = field(default_factory=dict)
    recompute: bool | str | None = None
    fused_loss: bool | str = False
    offloaded: Sequence[str] = ()  # parts of the state that lie on the CPU
    precision: str = "bf16"
    peak: str = "bf16"  # the dtype of the peak that its MFU divides by
    counts: str | None = None  # one of COUNTS: which FLOPs its MFU counts
    memory_kind: str = "allocated"  # by torch, or "reserved": what torch has asked the driver for
    gigabytes: Number | None = None  # of a card with another memory than its data sheet's

    @property
    def peak_flop_per_sec(self) -> Number:
        """The peak that its MFU is a share of."""
        return MACHINES[self.machine].peak(self.peak)

    @property
    def flops_per_token(self) -> dict[str, Number]:
        """A token's FLOPs in training, in the conventions in use.

        "All pairs" and "causal" count the products, with all scores or with half of them. 6P counts six for each
        parameter, also for those that no product reads, and no attention; some add attention to that.
        """
        forward = self.shape.forward_flops(1, self.sequence)
        attention = 3 * forward["attention"] // self.sequence
        products = 3 * (forward["matrices"] + forward["output"]) // self.sequence
        six = predict.training_flops(self.shape.parameters, 1)
        sums = (
            products + attention,
            products + attention / 2,
            six,
            six + attention,
            six + attention / 2,
        )
        return dict(zip(COUNTS, sums, strict=False))

    @property
    def tokens_per_sec(self) -> Number | None:
        """Tokens a second on one GPU: as reported, or from the run's GPU hours or FLOP/s."""
        if "gpu_hours" in self.reported:
            return self.reported["tokens"] / (self.reported["gpu_hours"] * 3600)
        if "tflop_per_sec" in self.reported and self.counts in self.flops_per_token:
            return self.reported["tflop_per_sec"] * 1e12 / self.flops_per_token[self.counts]
        return self.reported.get("tokens_per_sec")

    @property
    def mfu_by_convention(self) -> dict[str, Number]:
        """The same tokens a second as a share of the peak, in each convention."""
        if self.tokens_per_sec is None:
            raise ValueError(f"{self.name} does not say how many tokens it read a second.")
        flops = self.flops_per_token
        return {
            how: count * self.tokens_per_sec / self.peak_flop_per_sec
            for how, count in flops.items()
        }

    @property
    def share_of_peak(self) -> Number | None:
        """The reported rate as a share of the peak, in the FLOPs that the run counts itself."""
        if "tflop_per_sec" in self.reported:
            return self.reported["tflop_per_sec"] * 1e12 / self.peak_flop_per_sec
        return self.mfu_by_convention[self.counts] if self.counts and self.tokens_per_sec else None

    @property
    def timeline(self) -> Timeline | None:
        """A step as `predict` has it; None where something is not stated, or the model itself is split."""
        if self.parallel or None in (self.stage, self.batch, self.recompute, self.gpus):
            return None
        where = {"recipe": RECIPE, "machines": self.gpus, "stage": self.stage, "gathered": True}
        ways = {"fused": True, "recompute": self.recompute, "fused_loss": self.fused_loss}
        return predict.timeline(self.shape, self.batch, self.sequence, **where, **ways)


def read(path: Path) -> dict[str, PublishedRun]:
    """The runs of a file, by name. What "each" says holds for every run that does not say it itself."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return {
        run.name: run for run in (_run(data, data.get("each", {}) | one) for one in data["runs"])
    }


def _run(data: Mapping, one: dict) -> PublishedRun:
    model, source = one.pop("model"), data["sources"][one.pop("source")]
    sizes = {"context": one["sequence"]} | data["models"].get(model, {})
    shape = MODELS[model] if model in MODELS else predict.Transformer(**sizes)
    return PublishedRun(shape=shape, source=Source(**source), **one)


RUNS: Mapping[str, PublishedRun] = read(Path(__file__).with_name("published.json"))


def run_named(words: str) -> PublishedRun:
    """The one run whose name begins so, or a sentence.

    >>> run_named("llm.c").name
    'llm.c GPT-2 1558M 8 × H100'
    """
    found = [name for name in RUNS if name.startswith(words)]
    if words not in found and len(found) != 1:
        among = ", ".join(found[:9] or dict.fromkeys(name.split()[0] for name in RUNS))
        raise ValueError(
            f"Of the published runs {len(found)} begin with {words!r}. Name one of: {among}."
        )
    return RUNS[words if words in found else found[0]]
