"""The FLOPs and bytes of one training step, counted for a model that need not fit in memory.

Fake tensors have a shape, a dtype and a device, but no memory; operations on them find out the
shape of the result, and compute nothing. Their device is the CPU, so that torch runs the operations
that it runs on a CPU; on its "meta" device it would compute attention by others, which keep several
times the bytes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from course_utils.core.measure.counting import flops
from course_utils.core.measure.internals import (
    DataDependentOutputException,
    FakeTensor,
    FakeTensorMode,
)
from course_utils.core.measure.memory import optimizer_bytes, saved_bytes, storage_bytes
from course_utils.core.measure.moments import peak_bytes
from course_utils.core.say import Ledger, number_text

Inputs = Tensor | Sequence[Tensor]


@dataclass(frozen=True)
class Account:
    """The cost of one training step: FLOPs by pass, and bytes by what they are for."""

    parameters: int
    flops: Ledger
    bytes: Ledger

    def __repr__(self) -> str:
        return f"{number_text(self.parameters)} parameters\n\n{self.flops!r}\n\n{self.bytes!r}"

    def _repr_html_(self) -> str:
        """Return what Jupyter shows: the number of parameters, and a table of each Ledger."""
        tables = self.flops._repr_html_() + self.bytes._repr_html_()
        return f"<p>{number_text(self.parameters)} parameters</p>{tables}"


def account(
    model_factory: Callable[[], nn.Module],
    inputs: Callable[[], Inputs] | Inputs,
    *,
    loss: Callable[[Tensor], Tensor] = torch.sum,
    optimizer: Callable[[Iterable[Tensor]], torch.optim.Optimizer] = torch.optim.AdamW,
) -> Account:
    """Count a training step: loss(model(*inputs)), its backward pass, the optimizer's first step.

    Nothing is allocated: model_factory is called where all new tensors are fake, and so is
    `inputs` if it is a function. The operations counted are those that a CPU would run. Activations
    are what autograd keeps for the backward pass; inputs are among them, and parameters are not.

    >>> account(lambda: nn.Linear(10**6, 10**6), lambda: torch.empty(10**6, 10**6)).bytes
                              bytes
    parameters    4,000,004,000,000
    gradients     4,000,004,000,000
    optimizer     8,000,008,000,008
    activations   4,000,000,000,000
    total        20,000,016,000,008
    """
    with _faked(model_factory, inputs) as (model, given):
        parameters = list(model.parameters())
        # `forward` puts its loss here, since `flops` returns counts alone; backward takes it out.
        losses = []
        passes = {}

        def forward() -> None:
            losses.append(loss(model(*given)))

        def counted_forward() -> None:
            passes["forward"] = flops(forward).total

        activations = saved_bytes(counted_forward, exclude=parameters)  # counts the FLOPs, too
        passes["backward"] = flops(losses.pop().backward).total
        new_optimizer = optimizer(parameters)
        new_optimizer.step()  # most optimizers make what they keep in their first step
        held = _held_bytes(parameters, new_optimizer, activations)
        count = sum(p.numel() for p in parameters)
        return Account(count, Ledger(passes, unit="FLOPs"), Ledger(held, unit="bytes"))


def _held_bytes(
    parameters: Sequence[Tensor], optimizer: torch.optim.Optimizer, activations: int
) -> dict[str, int]:
    """Return the bytes that a step holds, by use; those of the activations are given."""
    return {
        "parameters": storage_bytes(parameters),
        "gradients": storage_bytes(p.grad for p in parameters if p.grad is not None),
        "optimizer": optimizer_bytes(optimizer),
        "activations": activations,
    }


def step_peak_bytes(
    model_factory: Callable[[], nn.Module],
    inputs: Callable[[], Inputs] | Inputs,
    *,
    loss: Callable[[Tensor], Tensor] = torch.sum,
    accumulate: bool = False,
) -> int:
    """The most bytes that loss(model(*inputs)) and its backward pass would hold at one time.

    Nothing is allocated. Parameters and inputs are not counted. Before the step there are no
    gradients, as after `zero_grad()`; with `accumulate` there are those of an earlier batch, which
    are not counted either. Scratch memory inside an operation is not seen.

    In the example 4 × 10^12 bytes are the weights' gradient, and 8 the loss and its gradient.

    >>> step_peak_bytes(lambda: nn.Linear(10**6, 10**6, bias=False), lambda: torch.empty(10, 10**6))
    4000000000008
    """
    with _faked(model_factory, inputs) as (model, given):
        if accumulate:
            for p in model.parameters():
                # grad_dtype is the dtype that torch asks of this parameter's gradient.
                p.grad = torch.zeros_like(p, dtype=p.grad_dtype)
        return peak_bytes(lambda: loss(model(*given)).backward())


@contextmanager
def _faked(
    model_factory: Callable[[], nn.Module], inputs: Callable[[], Inputs] | Inputs
) -> Iterator[tuple[nn.Module, list[Tensor]]]:
    """A context with the model and its inputs as fake tensors.

    What cannot be done with fake tensors raises a ValueError, also in the caller's block: an error
    there is raised again at the `yield`.
    """
    with FakeTensorMode() as mode:
        try:
            model = model_factory()
            if not all(isinstance(p, FakeTensor) for p in model.parameters()):
                raise ValueError(
                    "model_factory has to make the model; it gave one that was made before."
                )
            given = inputs() if callable(inputs) else inputs
            if isinstance(given, Tensor):
                given = [given]
            yield model, [mode.from_tensor(x) for x in given]  # real inputs become fake ones
        except DataDependentOutputException as error:
            raise ValueError(
                f"Something asks for a number ({error.func}), and here tensors have shapes and no "
                "numbers. Leave out what looks at values, such as a draw that is repeated until it "
                "is small enough."
            ) from error
        except RuntimeError as error:
            # torch says this where a module with fake parameters is moved or cast.
            if "Couldn't swap" not in str(error):
                raise
            raise ValueError(
                "A fake model cannot be moved or change its dtype: make it on its device and in "
                "its dtype at once, with dtype=torch.bfloat16 instead of .bfloat16()."
            ) from error
