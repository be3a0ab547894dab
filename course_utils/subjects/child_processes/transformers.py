"""A transformer's training step, run and counted, on fake tensors or real ones: here, or in a process by `process.steps_of`.

In a thread it could not be stopped, and would hold this process up.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial

import torch

from course_utils.core import measure
from course_utils.core.accountant import Model
from course_utils.core.measure import MeasurementProgress, Moment, Watch
from course_utils.core.measure.internals import FakeTensorMode
from course_utils.core.measure.results import OnProgress
from course_utils.core.predict.training import optimizer_of, recipe_named
from course_utils.subjects import models

_BUILDING = MeasurementProgress(0, "Building the model without its memory.")
_OPTIMIZERS: Mapping[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": partial(torch.optim.SGD, fused=True),
    "momentum": partial(torch.optim.SGD, momentum=0.9, fused=True),
    "adagrad": partial(torch.optim.Adagrad, fused=True),
    "rmsprop": torch.optim.RMSprop,
    "adamw": partial(torch.optim.AdamW, fused=True),
    "amsgrad": partial(torch.optim.AdamW, amsgrad=True, fused=True),
}


def step_moments(
    shape: Model,
    recipe: str,
    batch: int,
    sequence: int,
    *,
    on_progress: OnProgress = lambda step: None,
    real: bool = False,
    pieces: int = 1,
    accumulate: bool = False,
    **ways: bool | int,
) -> list[Moment]:
    """What `predict.timeline` predicts for one machine, as a step that runs: each operation, and all that is held.

    `ways` are fused, recompute and segment. Each normalisation is one kernel. If the step is not `real`, it runs on fake tensors. The optimizer's
    step counts as one operation.

    >>> from course_utils.core import predict
    >>> max(step_moments(predict.Transformer(1, 8, 2, 11, 4), "fp32 adamw", 2, 4), key=lambda one: one.during)
    Moment(name='mm', during=19416, after=18392)
    """
    on_progress(_BUILDING)
    kind = recipe_named(recipe)
    dtype, gradients = (measure.DTYPES[name] for name in (kind.parameters, kind.gradients[0]))
    with nullcontext() if real else FakeTensorMode():
        model = models.Transformer(shape, **ways, fused_norm=True, dtype=dtype)
        for p in model.parameters():
            p.grad_dtype = gradients
        optimizer = _with_state(model, recipe)
        if not accumulate:
            optimizer.zero_grad()
        _report_layers(model, on_progress)
        ids, targets = (
            torch.zeros(size, dtype=torch.int64) for size in ((batch, sequence), batch * sequence)
        )
        parameters, master = [*model.parameters()], getattr(optimizer, "master", ())
        with Watch(
            measure.tensors_in(parameters, [p.grad for p in parameters], optimizer.state, master)
        ) as watch:
            model.loss(ids, targets, pieces).backward()
            with watch.as_one(optimizer_of(recipe)):
                optimizer.step()
            with watch.as_one("zero_grad"):
                optimizer.zero_grad()
        return watch.moments


def _with_state(model: models.Transformer, recipe: str) -> torch.optim.Optimizer:
    """The recipe's optimizer, as it is after its first step, with that step's gradients."""
    kind, make = recipe_named(recipe), _OPTIMIZERS[optimizer_of(recipe)]
    if kind.master:
        make = partial(
            models.WithMaster, make_optimizer=make, keep_gradients=len(kind.gradients) > 1
        )
    optimizer = make(model.parameters())
    for p in model.parameters():
        p.grad = torch.zeros_like(p, dtype=p.grad_dtype)
    optimizer.step()
    return optimizer


def _report_layers(model: models.Transformer, on_progress: OnProgress) -> None:
    """Report each layer's forward and backward pass."""
    layers = len(model.blocks)

    def report(way: str, done: int, before: int, *_: object) -> None:
        fraction = (before + done) / (2 * layers + 1)
        on_progress(MeasurementProgress(fraction, f"{way}, {done} of {layers} layers."))

    for number, block in enumerate(model.blocks):
        block.register_forward_hook(partial(report, "Forward", number + 1, 0))
        weight = block.norm1.weight  # the last of its layer on the way back
        weight.register_post_accumulate_grad_hook(
            partial(report, "Backward", layers - number, layers)
        )
