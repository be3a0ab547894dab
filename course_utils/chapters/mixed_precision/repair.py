"""The repair shop of notebook 7: what the loops call, and what can be seen of a loop that runs."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from types import CodeType
from unittest import mock

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from course_utils.core.measure import cpu_threads
from course_utils.core.say import Number
from course_utils.core.say.language import template
from course_utils.subjects import models
from course_utils.subjects.training import generator_for, precision

Loop = Callable[..., Iterator[Number]]  # takes (model, pairs, sums); yields the loss of each step
STEPS = 200
MICRO_BATCHES = 16_384  # in a batch; the loops add up their gradients
MAX_NORM = 0.2  # to which the loops clip the norm of the gradients
FAULTS = {
    "A": "no scale",
    "B": "bf16 weights",
    "C": "clips before unscale_",
    "D": "sums in bf16",
    "E": "no update",
}
NAMES = list(FAULTS.values())
NO_LOSSES = template("It yields no losses: the last line, yield, is missing.")


def loop(letter: str = "") -> Loop:
    """Return the loop with the fault of this letter in FAULTS; without a letter, the right loop."""
    # Imported late, because that module imports this one.
    from course_utils.chapters.mixed_precision import loops

    return loops.BY_LETTER[letter]


def is_untouched(answer: Loop) -> bool:
    """Whether the answer is still one of the broken loops, as the notebook shows them."""
    # An answer that is no function has no code.
    code = getattr(answer, "__code__", None)
    return code is not None and _essence(code) in _broken_ones()


@cache
def _broken_ones() -> list[tuple]:
    """Return each broken loop's code as `_essence` has it, to compare a reader's loop with."""
    essences = []
    for letter in FAULTS:
        # Each loop is compiled alone, as a cell is. Below its imports, Python would compile a call
        # such as torch.f() otherwise, because there it knows that torch is a module.
        module = compile(inspect.getsource(loop(letter)), "a cell", "exec")
        # The code of a function is among the constants of the module that defines it.
        functions = [constant for constant in module.co_consts if isinstance(constant, CodeType)]
        essences += [_essence(function) for function in functions]
    return essences


def _essence(code: CodeType) -> tuple:
    """Return what the code does, without its name and its line numbers.

    A reader's loop, in a cell, may have another name, and has other line numbers than in the file.
    """
    return code.co_code, code.co_consts, code.co_names


def add_up(model: nn.Module, parts: int, *, dtype: torch.dtype) -> None:
    """Replace each gradient by the sum of `parts` copies of the gradient, computed in `dtype`.

    In fp16 and bf16 the copies are added one by one, rounded after each addition. In fp32 and fp64
    the gradient is multiplied by `parts`, because `parts` additions lose next to nothing there.
    Raises ValueError for any other dtype.
    """
    for parameter in model.parameters():
        gradient = parameter.grad
        if dtype in (torch.float32, torch.float64):
            gradient *= parts
        elif dtype in (torch.float16, torch.bfloat16):
            # The sum of each gradient's copies is looked up in the table `_sums`, by the gradient's
            # bits. As an index, the bits of a negative number count from the end.
            bits = gradient.to(dtype).view(torch.int16).int()
            gradient.copy_(_sums(parts, dtype)[bits])
        else:
            raise ValueError(
                f"add_up adds in float64, float32, float16 or bfloat16, and not in {dtype}."
            )


@cache
def _sums(parts: int, dtype: torch.dtype) -> torch.Tensor:
    """Return, for each of the 65,536 numbers of a 16-bit dtype, the sum of `parts` copies of it.

    A number's bits, as an int16, are its index; a negative index counts from the end. All sums are
    computed once, because thousands of additions in each step would take minutes.
    """
    numbers = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(dtype)
    total = torch.zeros_like(numbers)
    for n in range(1, parts + 1):
        before = total
        total = total + numbers
        # Bits are compared, because NaN is not equal to itself; and only after each 64th addition,
        # because comparing takes time, too.
        if n % 64 == 0 and total.view(torch.int16).equal(before.view(torch.int16)):
            break  # from here on, no addition changes anything
    return total


@dataclass
class Seen:
    """What was seen of a loop: its losses, and the gradients and updates of its optimizer."""

    losses: list[Number] = field(default_factory=list)
    # Three lists with a number for each step of the optimizer: the share of the gradients that are
    # 0, the norm of the gradients, and the share of the weights that did not move, though their
    # gradient is not 0.
    zeros: list[Number] = field(default_factory=list)
    norms: list[Number] = field(default_factory=list)
    lost: list[Number] = field(default_factory=list)
    products: set[torch.dtype] = field(default_factory=set)  # the dtypes of products' results
    # Each enabled scaler that made a step, once.
    scalers: list[torch.amp.GradScaler] = field(default_factory=list)
    error: RuntimeError | None = None
    # The first norm if the first scale is four times as large, unless the step is skipped then.
    norms_at_larger_scale: list[Number] = field(default_factory=list)

    @property
    def symptoms(self) -> dict[str, str]:
        """The name and value of four symptoms, as the lines of a table."""
        return {
            f"loss after {STEPS} steps": self._how_it_ended,
            "gradients that are 0, first step": percent(self.zeros[0]),
            "norm of the gradients, first step": f"{self.norms[0]:.2g}",
            "updates lost, last step": percent(self.lost[-1]),
        }

    @property
    def _how_it_ended(self) -> str:
        """The last loss, or the step in which the loop stopped with an error."""
        if self.error:
            return f"stopped in step {len(self.losses) + 1}"
        last_loss = self.losses[-1]
        if last_loss > 1:
            return f"{last_loss:.2g}"
        return f"{last_loss:.1g}"


def percent(share: Number) -> str:
    """Return a share in whole percent; below 1 % with two digits, so that it differs from 0 %.

    >>> percent(0.34), percent(0.0015), percent(0)
    ('34 %', '0.15 %', '0 %')
    """
    if 0 < share < 0.01:
        return f"{100 * share:.2g} %"
    return f"{100 * share:.0f} %"


def seen(answer: Loop) -> Seen:
    """Run a loop on a new model, and return what was seen of its optimizers and its products.

    An error that stops the loop is noted in the result. Raise a ValueError if calling the loop
    gives no iterator of losses.
    """
    found = _seen(answer, steps=STEPS)
    if found.error is None:
        with _larger_scales():
            found.norms_at_larger_scale = _seen(answer, steps=1).norms
    return found


def _seen(answer: Loop, *, steps: int) -> Seen:
    """Return what was seen of the first steps of a loop."""
    found = Seen()
    weights = generator_for("weights", seed=0)
    model = models.MLP(precision.WIDTHS, nonlinearity="gelu", generator=weights)
    with cpu_threads(1), _watched(found):
        losses = answer(model, *precision.digit_pairs())  # nothing runs before `islice` asks
        if not isinstance(losses, Iterator):
            raise ValueError(NO_LOSSES)
        try:
            for loss in islice(losses, steps):
                found.losses.append(float(loss))
        # Loop E raises one: without `update`, its scaler refuses the next step's `unscale_`.
        except RuntimeError as error:
            found.error = error
    return found


class _Watch:
    """Hooks that note in `found` what optimizers get and lose, and the format of products.

    torch calls them before and after each step of any optimizer, and after each forward pass of any
    module. Between the two calls of a step, the gradients and the old weights are kept here.
    """

    def __init__(self, found: Seen) -> None:
        self.found = found
        self.gradients = torch.empty(0)
        self.weights = torch.empty(0)

    def before_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        """Note the share of gradients that are 0, and the norm; keep gradients and weights."""
        self.gradients = _flat(parameter.grad for parameter in _parameters(optimizer))
        self.weights = _flat(_parameters(optimizer))
        self.found.zeros.append(_share(self.gradients == 0))
        self.found.norms.append(self.gradients.double().norm().item())

    def after_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        """Note the share of the weights that did not move, though their gradient is not 0."""
        stayed = _flat(_parameters(optimizer)) == self.weights
        self.found.lost.append(_share(stayed & (self.gradients != 0)))

    def after_forward(self, module: nn.Module, given: object, out: object) -> None:
        """Note the dtype of the whole model's result, which its last product has made.

        torch calls this for each layer, too; only the whole model is a `models.MLP`.
        """
        if isinstance(module, models.MLP):
            self.found.products.add(out.dtype)


def _parameters(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    """Return the parameters of the first group, which is the loops' only one."""
    return optimizer.param_groups[0]["params"]


def _flat(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """Return a copy of the tensors' numbers, all in one vector."""
    return torch.cat([tensor.detach().flatten().clone() for tensor in tensors])


def _share(chosen: torch.Tensor) -> Number:
    """Return the share of True in a tensor of booleans."""
    return chosen.double().mean().item()


@contextmanager
def _watched(found: Seen) -> Iterator[None]:
    """Note in `found` what optimizers, models and scalers do inside the `with` block."""
    watch = _Watch(found)
    with ExitStack() as hooks:
        # Each call registers a hook, and returns what can remove it at the end of the block.
        for hook in (
            register_optimizer_step_pre_hook(watch.before_step),
            register_optimizer_step_post_hook(watch.after_step),
            register_module_forward_hook(watch.after_forward),
        ):
            hooks.callback(hook.remove)
        hooks.enter_context(_scalers_noted(found))
        yield


@contextmanager
def _scalers_noted(found: Seen) -> Iterator[None]:
    """Note every enabled scaler that makes a step. Scalers have no hooks, so `step` is patched."""
    scaler_step = torch.amp.GradScaler.step

    def noting_step(scaler: torch.amp.GradScaler, *given: object, **options: object) -> object:
        """Make the scaler's step, and note the scaler if it is enabled and not known yet."""
        is_known = any(scaler is known for known in found.scalers)
        if scaler.is_enabled() and not is_known:
            found.scalers.append(scaler)
        return scaler_step(scaler, *given, **options)

    with mock.patch.object(torch.amp.GradScaler, "step", noting_step):
        yield


@contextmanager
def _larger_scales() -> Iterator[None]:
    """Let every scaler begin with four times its first scale inside the `with` block."""
    begin = torch.amp.GradScaler.__init__

    def begin_larger(scaler: torch.amp.GradScaler, *given: object, **options: object) -> None:
        begin(scaler, *given, **options)
        if scaler.is_enabled():
            state = scaler.state_dict()
            scaler.load_state_dict(state | {"scale": 4 * state["scale"]})

    with mock.patch.object(torch.amp.GradScaler, "__init__", begin_larger):
        yield
