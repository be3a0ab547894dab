"""A transformer's training step, run and counted, on fake tensors or real ones.

The step runs in this process, or in another one by `process.steps_of`. In a thread it could not be
stopped, and it would slow this process down.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import cycle

import torch

from course_utils.core import measure
from course_utils.core.accountant import Mixture, Model
from course_utils.core.measure import MeasurementProgress, Moment, Watch, internals
from course_utils.core.measure.internals import FakeTensorMode
from course_utils.core.measure.results import OnProgress
from course_utils.core.predict.step_config import even_tokens
from course_utils.core.predict.training import optimizer_of, recipe_named
from course_utils.core.say.language import template
from course_utils.subjects import models

FORWARD = template("Forward, {done} of {layers} layers.")
BACKWARD = template("Backward, {done} of {layers} layers.")
_BUILDING = MeasurementProgress(0, template("Building the model without its memory."))
# A fused step makes no temporary tensors, which `predict` does not count either.
_OPTIMIZERS: Mapping[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": partial(torch.optim.SGD, fused=True),
    "momentum": partial(torch.optim.SGD, momentum=0.9, fused=True),
    "adagrad": partial(torch.optim.Adagrad, fused=True),
    "rmsprop": torch.optim.RMSprop,  # torch has no fused one
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
    even: bool = True,
    **ways: bool | int,
) -> list[Moment]:
    """Run a training step, and return a moment for each operation, with all bytes held then.

    `predict.timeline` predicts these moments for one machine. The loss is computed in that many
    `pieces`. With `accumulate`, gradients of an earlier micro-batch are there from the start.
    Of a mixture, all experts get as many tokens, or one more, whatever the routers pick; without
    `even`, which needs real tensors, each gets those that are picked.
    `ways` are the options fused, recompute and segment of a Transformer. Each normalisation is one
    kernel, and the optimizer's step counts as one operation. The step runs on fake tensors, unless
    `real` is set.

    >>> from course_utils.core import predict
    >>> moments = step_moments(predict.Transformer(1, 8, 2, 11, 4), "fp32 adamw", 2, 4)
    >>> max(moments, key=lambda moment: moment.during)
    Moment(name='mm', during=19416, after=18392)
    """
    on_progress(_BUILDING)
    kind = recipe_named(recipe)
    dtype = measure.DTYPES[kind.parameters]
    gradient_dtype = measure.DTYPES[kind.gradients[0]]  # a second one is the master copy's
    with nullcontext() if real else FakeTensorMode():
        model = models.Transformer(shape, **ways, fused_norm=True, dtype=dtype)
        for parameter in model.parameters():
            parameter.grad_dtype = gradient_dtype
        optimizer = _with_state(model, recipe)
        if not accumulate:
            optimizer.zero_grad()  # takes away the gradients that `_with_state` has left
        _report_layers(model, on_progress)
        # Different tokens, so that routers do not send all of them to the same experts.
        ids = torch.arange(batch * sequence).view(batch, sequence) % shape.vocabulary
        targets = torch.zeros(batch * sequence, dtype=torch.int64)
        spread = nullcontext()
        if shape.mixture and even:
            spread = SpreadEvenly(shape.mixture, batch * sequence)
        with spread, Watch(_state_of(model, optimizer)) as watch:
            model.loss(ids, targets, pieces).backward()
            with watch.as_one(optimizer_of(recipe)):  # one operation, named "adamw" for example
                optimizer.step()
            with watch.as_one("zero_grad"):
                optimizer.zero_grad()
        return watch.moments


class SpreadEvenly(internals.Mode):
    """Gives each expert as many tokens as another, or one more, whatever the router picks.

    `models.mixture.Experts` asks with one `nonzero` for each expert, in their order, which tokens
    it gets. Fake tensors cannot answer that, because they have no numbers.
    """

    def __init__(self, mixture: Mixture, tokens: int) -> None:
        super().__init__()
        self.tokens_of_experts = cycle(even_tokens(mixture, tokens))

    def run(self, func: Callable[..., object], args: tuple, kwargs: dict[str, object]) -> object:
        """Run an operation; but of `nonzero`, give the rows of the first tokens, in column 0."""
        if func is not torch.ops.aten.nonzero.default:
            return func(*args, **kwargs)
        (picked,) = args
        rows = torch.arange(next(self.tokens_of_experts), device=picked.device)
        return torch.stack([rows, torch.zeros_like(rows)], 1)


def _state_of(
    model: models.Transformer, optimizer: torch.optim.Optimizer
) -> Iterator[torch.Tensor]:
    """Return all tensors that are held before the step, one by one.

    The caller must not keep the tensors, because gradients would then be held longer than the step
    holds them.
    """
    parameters = list(model.parameters())
    gradients = [parameter.grad for parameter in parameters]
    master = getattr(optimizer, "master", ())  # only a WithMaster has a master copy
    return measure.tensors_in(parameters, gradients, optimizer.state, master)


def _with_state(model: models.Transformer, recipe: str) -> torch.optim.Optimizer:
    """Return the recipe's optimizer after its first step, which makes the optimizer's state.

    The gradients of that step, all zeros, are still there.
    """
    kind = recipe_named(recipe)
    make_optimizer = _OPTIMIZERS[optimizer_of(recipe)]
    if kind.master:
        has_second_gradients = len(kind.gradients) > 1  # those of the master copy
        optimizer = models.WithMaster(
            model.parameters(), make_optimizer, keep_gradients=has_second_gradients
        )
    else:
        optimizer = make_optimizer(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter, dtype=parameter.grad_dtype)
    optimizer.step()
    return optimizer


def _report_layers(model: models.Transformer, on_progress: OnProgress) -> None:
    """Let the model report each layer's forward and backward pass as soon as it is done."""
    layers = len(model.blocks)

    def report(sentence: str, done: int, before: int, *_: object) -> None:
        """Report that `done` layers of a pass are done; `before` were done in an earlier pass.

        `sentence` is FORWARD or BACKWARD. torch passes its hooks more arguments, which are not
        used.
        """
        fraction = (before + done) / (2 * layers + 1)  # below 1, since the result is still to come
        gaps = {"done": f"{done}", "layers": f"{layers}"}
        on_progress(MeasurementProgress(fraction, sentence, gaps=gaps))

    for number, block in enumerate(model.blocks):
        # The layers go forward from 0 on. They go backward from the last one on, and `layers` of
        # them have gone forward by then.
        block.register_forward_hook(partial(report, FORWARD, number + 1, 0))
        weight = block.norm1.weight  # the last of its layer in the backward pass
        weight.register_post_accumulate_grad_hook(
            partial(report, BACKWARD, layers - number, layers)
        )
