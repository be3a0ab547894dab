"""The repair shop of notebook 7: a loop in mixed precision, five faults, and what can be seen of a loop from outside.

The batch has PARTS micro-batches, all of the same 100 pairs of digits: one is computed, and `add_up` adds its
gradient that many times.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from course_utils.core.measure import cpu_threads
from course_utils.core.say import Number
from course_utils.subjects import models
from course_utils.subjects.training import generator_for, precision

Loop = Callable[..., Iterator[Number]]
STEPS = 200
PARTS = 16_384
MAX_NORM = 0.2
RIGHT = f"""\
def my_loop(model, pairs, sums):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range({STEPS}):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(pairs), sums)
        scaler.scale(loss / {PARTS:_}).backward()
        repair.add_up(model, {PARTS:_}, dtype=torch.float32)
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm={MAX_NORM})
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()
"""
_HEAD, _UNSCALE, _CLIP, _STEP, _UPDATE = (RIGHT.splitlines(keepends=True)[n] for n in (0, 9, 10, 11, 12))
# By letter: what is wrong, the right lines, and what stands in their place.
FAULTS = {
    "A": ("no scale", '("cpu")', '("cpu", enabled=False)'),
    "B": ("bf16 weights", _HEAD, f"{_HEAD}    model.bfloat16()\n"),
    "C": ("clips before unscale_", _UNSCALE + _CLIP, _CLIP + _UNSCALE),
    "D": ("sums in bf16", "dtype=torch.float32", "dtype=torch.bfloat16"),
    "E": ("no update", _UPDATE, ""),
}
NAMES = [name for name, _, _ in FAULTS.values()]


def broken(letter: str) -> str:
    """The text of the loop with that fault, named after its letter."""
    _, right, wrong = FAULTS[letter]
    return _named(letter, RIGHT.replace(right, wrong))


def solution(letter: str) -> str:
    """The text of that loop as it should be."""
    return _named(letter, RIGHT)


def _named(letter: str, text: str) -> str:
    return text.replace("my_loop", f"my_loop_{letter.lower()}")


@cache
def loop(letter: str = "") -> Loop:
    """The loop with that fault, or without a letter the right one."""
    from course_utils.chapters.mixed_precision import repair

    names = {"torch": torch, "nn": nn, "F": functional, "repair": repair}
    exec(compile(broken(letter) if letter else RIGHT, "<the loop>", "exec"), names)
    return list(names.values())[-1]


def is_untouched(answer: Loop) -> bool:
    """Whether it is one of the broken loops, as the notebook shows them."""
    codes = [getattr(one, "__code__", None) for one in (answer, *map(loop, FAULTS))]
    mine, *theirs = [code and (code.co_code, code.co_consts, code.co_names) for code in codes]
    return mine in theirs


def add_up(model: nn.Module, parts: int, *, dtype: torch.dtype) -> None:
    """Each gradient becomes the sum of `parts` of its kind, added one by one in that format.

    In fp32 and fp64 it is multiplied, since there so many additions lose next to nothing, and would take seconds.
    """
    gradients = [p.grad for p in model.parameters()]
    if dtype in (torch.float32, torch.float64):
        for gradient in gradients:
            gradient *= parts
        return
    one = torch.cat([g.flatten() for g in gradients]).to(dtype)
    total = torch.zeros_like(one)
    for n in range(1, parts + 1):
        before, total = total, total + one
        if n % 64 == 0 and total.equal(before):
            break  # from here on, no addition changes anything
    for gradient, part in zip(gradients, total.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


@dataclass
class Seen:
    """What was seen of a loop: its losses, what each step of its optimizer got and lost, and the scalers that made one."""

    losses: list[Number] = field(default_factory=list)
    zeros: list[Number] = field(default_factory=list)  # shares
    norms: list[Number] = field(default_factory=list)
    lost: list[Number] = field(default_factory=list)  # shares of the weights whose gradient is not 0
    products: set[torch.dtype] = field(default_factory=set)
    scalers: list[torch.amp.GradScaler] = field(default_factory=list)  # those that were at work, each once
    error: RuntimeError | None = None

    @property
    def symptoms(self) -> dict[str, str]:
        """Four lines for a table."""
        stopped = f"stopped in step {len(self.losses) + 1}" if self.error else ""
        return {
            f"loss after {STEPS} steps": stopped or f"{self.losses[-1]:.{1 + (self.losses[-1] > 1)}g}",
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

    def flat(optimizer: torch.optim.Optimizer, part: Callable[[nn.Parameter], torch.Tensor]) -> torch.Tensor:
        return torch.cat([part(p).detach().flatten().clone() for p in optimizer.param_groups[0]["params"]])

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
