"""What this course measured on an H100 and an H200, in a quarter of an hour together.

`make gpu` measured it, and tests/tools/gpu_results.py wrote the files that are read here. The
products and the parts of a step are recordings, like those of other machines.
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path

from course_utils.core.accountant import Mixture, Model
from course_utils.core.measure import Moment

FOLDER = Path(__file__).with_name("measured")
GPUS = ("H100 SXM", "H200 SXM")


@functools.cache
def _all() -> dict[str, dict]:
    return json.loads((FOLDER / "steps.json").read_text(encoding="utf-8"))


def measured(gpu: str) -> dict[str, object]:
    """Return what was measured on that GPU, by name: seconds, bytes, joules, watts.

    A step's `peak_bytes` come on top of its `state_bytes`.

    "step" and "recomputed" are training steps of `billion()`, "decode" are steps of decoding, and
    "product" is a large matrix product. Only the H100 has "mixture" and "timers", and only the
    H200 has "largest" and "transformers".

    >>> step = measured("H100 SXM")["step"]
    >>> step["peak_bytes"], f"{step['seconds']:.4f} s"
    (24772920320, '0.1606 s')
    """
    if gpu not in GPUS:
        raise ValueError(f"{gpu!r} was not measured by us. There are: {', '.join(GPUS)}.")
    return _all()[gpu]


@functools.cache
def billion() -> Model:
    """Return the model whose step was measured: Llama 3.2 1B."""
    return _model(_all()["model"])


@functools.cache
def small_mixture() -> Model:
    """Return the mixture of experts whose step was measured on the H100; it has no name."""
    return _model(_all()["mixture model"])


def _model(fields: Mapping[str, object]) -> Model:
    fields = dict(fields)
    if "mixture" in fields:
        fields["mixture"] = Mixture(**fields["mixture"])
    return Model(**fields)


@functools.cache
def h100_moments(recompute: bool = False) -> tuple[Moment, ...]:
    """Return each operation of the H100's step, with the bytes that its allocator said.

    They are bytes that were asked for, before they are rounded to blocks, beyond what is held
    between two steps. The optimizer's update is left out.

    >>> max(h100_moments(), key=lambda moment: moment.during)
    Moment(name='_log_softmax_backward_data', during=24772903176, after=16367517960)
    """
    name = "h100_recomputed.json" if recompute else "h100_step.json"
    rows = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return tuple(Moment(*row) for row in rows)
