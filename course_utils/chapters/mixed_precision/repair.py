"""The repair shop of notebook 7: what its loops call, and what can be seen of a loop from outside."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from types import CodeType

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from course_utils.core.measure import cpu_threads
from course_utils.core.say import Number
from course_utils.subjects import models
from course_utils.subjects.training import generator_for, precision

Loop = Callable[..., Iterator[Number]]
STEPS = 200
MICRO_BATCHES = 16_384  # of which the loops add the gradients up
MAX_NORM = 0.2
FAULTS = {
    "A": "no scale",
    "B": "bf16 weights",
    "C": "clips before unscale_",
    "D": "sums in bf16",
    "E": "no update",
}
NAMES = [*FAULTS.values()]


def loop(letter: str = "") -> Loop:
    """The loop with that fault, or without a letter the right one."""
    from course_utils.chapters.mixed_precision import (
        loops,
    )  # here, since the loops call this module

    return loops.BY_LETTER[letter]


def is_untouched(answer: Loop) -> bool:
    """Whether it is one of the broken loops, as the notebook shows them."""
    code = getattr(answer, "__code__", None)
    return code is not None and _essence(code) in _broken_ones()


@cache
def _broken_ones() -> list[tuple]:
    # Each is compiled alone, as a cell is: beside its imports Python makes other code of the same text.
    modules = [compile(inspect.getsource(loop(letter)), "a cell", "exec") for letter in FAULTS]
    return [
        _essence(one) for module in modules for one in module.co_consts if isinstance(one, CodeType)
    ]


def _essence(code: CodeType) -> tuple:
    """What it does, without its name and its lines."""
    return code.co_code, code.co_consts, code.co_names


def add_up(model: nn.Module, parts: int, *, dtype: torch.dtype) -> None:
    """Each gradient becomes the sum of `parts` of its kind, added one by one in that format.

    In fp32 and fp64 it is multiplied, since there so many additions lose next to nothing.
    """
    for parameter in model.parameters():
        gradient = parameter.grad
        if dtype in (torch.float32, torch.float64):
            gradient *= parts
        elif dtype in (torch.float16, torch.bfloat16):
            bits = gradient.to(dtype).view(torch.int16).int()
            gradient.copy_(_sums(parts, dtype)[bits])
        else:
            raise ValueError(
                f"add_up adds in float64, float32, float16 or bfloat16, and not in {dtype}."
            )


@cache
def _sums(parts: int, dtype: torch.dtype) -> torch.Tensor:
    """What each of the format's 65,536 numbers becomes, by its bits as an int16, which may be negative.

    All of them are added up once, because thousands of additions in each step would take minutes.
    """
    one = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(dtype)
    total = torch.zeros_like(one)
    for n in range(1, parts + 1):
        before = total
        total = total + one
        if n % 64 == 0 and total.view(torch.int16).equal(before.view(torch.int16)):
            break  # from here on, no addition changes anything
    return total


@dataclass
class Seen:
    """What was seen of a loop: its losses, what each step of its optimizer got and lost, and the scalers that made one."""

    losses: list[Number] = field(default_factory=list)
    zeros: list[Number] = field(default_factory=list)  # shares
    norms: list[Number] = field(default_factory=list)
    lost: list[Number] = field(
        default_factory=list
    )  # shares of the weights whose gradient is not 0
    products: set[torch.dtype] = field(default_factory=set)
    scalers: list[torch.amp.GradScaler] = field(
        default_factory=list
    )  # those that were at work, each once
    error: RuntimeError | None = None

    @property
    def symptoms(self) -> dict[str, str]:
        """Four lines for a table."""
        stopped = f"stopped in step {len(self.losses) + 1}" if self.error else ""
        return {
            f"loss after {STEPS} steps": stopped
            or f"{self.losses[-1]:.{1 + (self.losses[-1] > 1)}g}",
            "gradients that are 0, first step": percent(self.zeros[0]),
            "norm of the gradients, first step": f"{self.norms[0]:.2g}",
            "updates lost, last step": percent(self.lost[-1]),
        }


def percent(share: Number) -> str:
    """A share in whole percent; one below 1 % with the digits that tell it from none.

    >>> percent(0.34), percent(0.0015), percent(0)
    ('34 %', '0.15 %', '0 %')
    """
    return f"{100 * share:.2g} %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def seen(run: Loop) -> Seen:
    """Run the loop on a new model, and watch every optimizer and every product from outside."""
    found, weights = Seen(), generator_for("weights", seed=0)
    model = models.MLP(precision.WIDTHS, nonlinearity="gelu", generator=weights)
    with cpu_threads(1), _watched(found):
        steps = run(model, *precision.digit_pairs())
        if not isinstance(steps, Iterator):
            raise ValueError("It is no loop that yields its losses. Keep its last line.")
        try:
            for loss in islice(steps, STEPS):
                found.losses.append(float(loss))
        except RuntimeError as error:
            found.error = error
    return found


@contextmanager
def _watched(found: Seen) -> Iterator[None]:
    before: list[torch.Tensor] = []

    def flat(
        optimizer: torch.optim.Optimizer, part: Callable[[nn.Parameter], torch.Tensor]
    ) -> torch.Tensor:
        return torch.cat(
            [part(p).detach().flatten().clone() for p in optimizer.param_groups[0]["params"]]
        )

    def starts(optimizer: torch.optim.Optimizer, *_: object) -> None:
        gradients = flat(optimizer, lambda p: p.grad)
        before[:] = gradients, flat(optimizer, lambda p: p)
        found.zeros.append((gradients == 0).double().mean().item())
        found.norms.append(gradients.double().norm().item())

    def ends(optimizer: torch.optim.Optimizer, *_: object) -> None:
        gradients, weights = before
        still = (flat(optimizer, lambda p: p) == weights) & (gradients != 0)
        found.lost.append(still.double().mean().item())

    def goes_forward(module: nn.Module, given: object, out: object) -> None:
        if isinstance(module, models.MLP):
            found.products.add(out.dtype)

    scaler_step = torch.amp.GradScaler.step

    def scales(scaler: torch.amp.GradScaler, *given: object, **more: object) -> object:
        if scaler.is_enabled() and not any(scaler is one for one in found.scalers):
            found.scalers.append(scaler)
        return scaler_step(scaler, *given, **more)

    torch.amp.GradScaler.step = scales  # it has no hooks
    with ExitStack() as hooks:
        hooks.callback(setattr, torch.amp.GradScaler, "step", scaler_step)
        for watch in (
            register_optimizer_step_pre_hook(starts),
            register_optimizer_step_post_hook(ends),
            register_module_forward_hook(goes_forward),
        ):
            hooks.callback(watch.remove)
        yield
