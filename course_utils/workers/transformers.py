"""A transformer's training step, counted on fake tensors: here, or in a process by `process.steps_of`.

In a thread it could not be stopped, and would hold this process up.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from course_utils import measure, models, predict
from course_utils.measure import Step
from course_utils.measure.results import OnStep
from course_utils.predict.training import recipe_named
from course_utils.quantities import Ledger

_BUILDING = Step(0, "Building the model without its memory.")
_OPTIMIZERS: Mapping[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "momentum": partial(torch.optim.SGD, momentum=0.9),
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
    "adamw": torch.optim.AdamW,
    "amsgrad": partial(torch.optim.AdamW, amsgrad=True),
}


def counted_bytes(
    shape: predict.Transformer,
    recipe: str,
    batch: int,
    sequence: int,
    *,
    on_step: OnStep = lambda step: None,
    accumulate: bool = False,
    **ways: bool,
) -> Ledger:
    """`predict.held_bytes` on one machine, counted on fake tensors; `ways` are fused, fused_norm and recompute.

    >>> counted_bytes(predict.Transformer(1, 8, 2, 11, 4), "bf16+master adamw", 2, 4)
                  bytes
    parameters    2,016
    gradients        48
    optimizer     8,144
    master        4,032
    activations   3,576
    total        17,816
    """
    on_step(_BUILDING)
    kind = recipe_named(recipe)
    make = _OPTIMIZERS[recipe.split(",")[0].split()[-1]]
    dtype, gradients = (measure.DTYPES[name] for name in (kind.parameters, kind.gradients[0]))
    optimizers: list[torch.optim.Optimizer] = []
    targets: list[Tensor] = []  # made before the step, and so no part of it

    def model(half: int) -> models.Transformer:
        made = models.Transformer(**vars(shape), **ways, dtype=dtype)
        for p in made.parameters():
            p.grad_dtype = gradients
        _report_layers(made, on_step, of=(half, 2))
        targets[:] = [torch.zeros(batch * sequence, dtype=torch.int64)]
        return made

    def optimizer(parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        wrapped = partial(models.WithMaster, make_optimizer=make, keep_gradients=len(kind.gradients) > 1)
        optimizers.append((wrapped if kind.master else make)(parameters))
        return optimizers[0]

    loss, tokens = partial(_cross_entropy, targets), partial(torch.zeros, batch, sequence, dtype=torch.int64)
    found = measure.account(partial(model, 0), tokens, loss=loss, optimizer=optimizer).bytes
    peak = measure.step_peak_bytes(partial(model, 1), tokens, loss=loss, accumulate=accumulate)
    master = getattr(optimizers[0], "master", [])
    # The optimizer's step can be the moment at which most is held.
    made = found["gradients"] + measure.storage_bytes(copy.grad for copy in master if copy.grad is not None)
    most = {**peak} if peak.total >= made else {"gradients": made, "activations": 0}
    held = {part: found[part] for part in ("parameters", "gradients", "optimizer")}
    return Ledger({**held, "master": measure.storage_bytes(master), **most}, unit="bytes")


def _cross_entropy(targets: list[Tensor], logits: Tensor) -> Tensor:
    return functional.cross_entropy(logits.flatten(0, 1).float(), targets[0])


def step_flops(shape: predict.Transformer, sequence: int, *, on_step: OnStep = lambda step: None) -> Ledger:
    """Forward and backward FLOPs of one step on one sequence, as the counter sees them on fake tensors.

    >>> step_flops(predict.Transformer(1, 8, 2, 11, 4), 4)
               FLOPs
    forward    7,360
    backward  14,720
    total     22,080
    """
    on_step(_BUILDING)
    sizes = vars(shape) | {"context": max(shape.context, sequence)}

    def model() -> models.Transformer:
        made = models.Transformer(**sizes, dtype=torch.bfloat16)
        _report_layers(made, on_step)
        return made

    return measure.account(model, partial(torch.zeros, 1, sequence, dtype=torch.int64)).flops


def _report_layers(model: models.Transformer, on_step: OnStep, *, of: tuple[int, int] = (0, 1)) -> None:
    """Report each layer's forward and backward pass, in one of several steps."""
    layers, (step, steps) = len(model.blocks), of

    def report(way: str, done: int, before: int, *_: object) -> None:
        fraction = (before + done) / (2 * layers + 1)
        on_step(Step((step + fraction) / steps, f"{way}, {done} of {layers} layers."))

    for number, block in enumerate(model.blocks):
        block.register_forward_hook(partial(report, "Forward", number + 1, 0))
        weight = block.norm1.weight  # the last of its layer on the way back
        weight.register_post_accumulate_grad_hook(partial(report, "Backward", layers - number, layers))
