"""The published runs, as data: read from the file beside this module."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.core import predict
from course_utils.core.datasheets import MACHINES
from course_utils.core.predict import MODELS, Shape, Timeline
from course_utils.core.say import Number

# The recipe by which the memory of each run is predicted. It takes 16 bytes a parameter. So do all
# of these runs, whether they hold the parameters in fp32 alone, or in bf16 with an fp32 copy.
RECIPE = "bf16+master adamw"
# The conventions by which runs count the FLOPs of a token: see PublishedRun.flops_per_token.
COUNTS = ("all pairs", "causal", "6P", "6P + all pairs", "6P + causal", "its own rate")


@dataclass(frozen=True)
class Source:
    """Where a run is published, under which licence, and what could not be read there.

    If a prediction differs from a reported value, `why` has under the value's name what is known of
    the cause.
    """

    what: str
    where: str
    licence: str
    not_read: str
    why: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """A training run as others published it; this course has measured nothing of it.

    A field is None where the publication does not state it. `reported` has the published values by
    name, with their units in the names; rates are those of one GPU. Where the model itself is split
    over GPUs, `parallel` says how.
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
    stage: int | None = None  # of ZeRO's sharding, over all GPUs
    parallel: Mapping[str, int] = field(default_factory=dict)
    recompute: bool | str | None = None  # as predict.timeline takes it, such as "every other layer"
    fused_loss: bool | str = False  # as predict.timeline takes it
    offloaded: Sequence[str] = ()  # parts of the state that lie on the CPU
    precision: str = "bf16"
    peak: str = "bf16"  # the run's MFU is a share of the machine's peak in this dtype
    counts: str | None = None  # one of COUNTS: which FLOPs the run's MFU counts
    memory_kind: str = "allocated"  # by torch; or "reserved", which is what the driver gave torch
    gigabytes: Number | None = None  # of a card whose memory is not that of its data sheet

    @property
    def peak_flop_per_sec(self) -> Number:
        """The machine's peak, of which the run's MFU is a share."""
        return MACHINES[self.machine].peak(self.peak)

    @property
    def flops_per_token(self) -> dict[str, Number]:
        """A token's FLOPs in training, by the name of the convention that counts them.

        "All pairs" and "causal" count the matrix products, with all scores of attention or half of
        them. 6P counts six FLOPs for each parameter, even for those that no product reads, and
        none for attention; some people add attention's FLOPs to 6P.
        """
        forward = self.shape.forward_flops(1, self.sequence)
        # Training takes 3 times the forward pass: the backward pass has twice as many FLOPs.
        attention = 3 * forward["attention"] // self.sequence
        products = 3 * (forward["matrices"] + forward["output"]) // self.sequence
        six_p = predict.training_flops(self.shape.parameters, 1)
        *conventions, _its_own_rate = COUNTS  # the last one counts no FLOPs
        flops = [  # in the order of COUNTS
            products + attention,
            products + attention / 2,
            six_p,
            six_p + attention,
            six_p + attention / 2,
        ]
        return dict(zip(conventions, flops, strict=True))

    @property
    def tokens_per_sec(self) -> Number | None:
        """Tokens a second on one GPU: as reported, or from the run's GPU hours or FLOP/s."""
        if "gpu_hours" in self.reported:
            gpu_seconds = self.reported["gpu_hours"] * 3600
            return self.reported["tokens"] / gpu_seconds
        # Not for "its own rate", which does not say how many FLOPs a token takes.
        if "tflop_per_sec" in self.reported and self.counts in self.flops_per_token:
            flop_per_sec = self.reported["tflop_per_sec"] * 1e12
            return flop_per_sec / self.flops_per_token[self.counts]
        return self.reported.get("tokens_per_sec")

    @property
    def mfu_by_convention(self) -> dict[str, Number]:
        """The MFU by convention: the FLOPs of the reported tokens a second / the peak.

        ValueError if no tokens a second were reported, and nothing that gives them.
        """
        if self.tokens_per_sec is None:
            raise ValueError(f"{self.name} does not say how many tokens it read a second.")
        shares = {}
        for convention, flops in self.flops_per_token.items():
            shares[convention] = flops * self.tokens_per_sec / self.peak_flop_per_sec
        return shares

    @property
    def share_of_peak(self) -> Number | None:
        """The reported rate as a share of the peak, in the FLOPs that the run itself counts.

        It is None if neither FLOP/s nor tokens a second were reported, or if the run does not say
        which FLOPs it counts.
        """
        if "tflop_per_sec" in self.reported:
            return self.reported["tflop_per_sec"] * 1e12 / self.peak_flop_per_sec
        if self.counts and self.tokens_per_sec:
            return self.mfu_by_convention[self.counts]
        return None

    @property
    def timeline(self) -> Timeline | None:
        """The predicted timeline of a step.

        It is None if the publication does not state all that the prediction needs, or if the model
        itself is split.
        """
        # None is "not stated". A recompute of False is stated: nothing is recomputed.
        if self.parallel or None in (self.stage, self.batch, self.recompute, self.gpus):
            return None
        return predict.timeline(
            self.shape,
            self.batch,
            self.sequence,
            recipe=RECIPE,
            machines=self.gpus,
            stage=self.stage,
            gathered=True,
            fused=True,
            recompute=self.recompute,
            fused_loss=self.fused_loss,
        )


def read(path: Path) -> dict[str, PublishedRun]:
    """Return the runs of a file, by name.

    If the file has "each", the fields under it are the defaults of all runs.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    defaults = data.get("each", {})
    runs = {}
    for fields in data["runs"]:
        run = _run(data, {**defaults, **fields})
        runs[run.name] = run
    return runs


def _run(data: Mapping, fields: dict) -> PublishedRun:
    """Return the run with these fields of the file, whose contents are `data`.

    The field "model" has a name in MODELS or in data["models"], and the field "source" has a name
    in data["sources"]. Both are taken out of `fields`; all others are fields of PublishedRun.
    """
    model = fields.pop("model")
    source = data["sources"][fields.pop("source")]
    if model in MODELS:
        shape = MODELS[model]
    else:
        # Where no context is stated, the model takes just the run's sequences.
        sizes = {"context": fields["sequence"], **data["models"][model]}
        shape = predict.Transformer(**sizes)
    return PublishedRun(shape=shape, source=Source(**source), **fields)


RUNS: Mapping[str, PublishedRun] = read(Path(__file__).with_name("published.json"))


def run_named(words: str) -> PublishedRun:
    """Return the run whose name begins with these words; ValueError if not exactly one does.

    >>> run_named("llm.c").name
    'llm.c GPT-2 1558M 8 × H100'
    """
    if words in RUNS:
        return RUNS[words]
    matching = [name for name in RUNS if name.startswith(words)]
    if len(matching) == 1:
        return RUNS[matching[0]]
    # If no name begins so, the first word of every name is listed, each word once.
    first_words = dict.fromkeys(name.split()[0] for name in RUNS)
    # The sentence has no room for more than nine names. Without a name, the list is empty, and so
    # `or` takes the first words.
    among = ", ".join(matching[:9] or first_words)
    raise ValueError(
        f"Of the published runs {len(matching)} begin with {words!r}. Name one of: {among}."
    )
