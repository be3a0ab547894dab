"""Bytes over time: each operation that torch runs, what is held during it, and what after it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import torch

from course_utils.core.measure import internals
from course_utils.core.measure.memory import Held, storages, tensors_in


class Moment(NamedTuple):
    """An operation, as torch calls it, and the bytes held while it runs and once all that can go is gone."""

    name: str
    during: int
    after: int


class Watch(internals.Mode):
    """Writes down each operation that makes or changes a tensor while it is entered. A view is not written down.

    What was there before counts only if it is named. On a CPU; scratch space inside a kernel is not seen, nor the tensor
    that torch makes of a list between square brackets.

    >>> x = torch.ones(32, 32)
    >>> with Watch([x]) as watch:
    ...     y = (x * 2).t() + 1
    >>> watch.moments
    [Moment(name='mul', during=8192, after=8192), Moment(name='add', during=12288, after=8192)]
    """

    def __init__(self, there: Iterable[torch.Tensor] = ()) -> None:
        super().__init__()
        self.held = Held()
        self.held.add(storages(there))
        self._written: list[tuple[str, int, int]] = []  # and what is held before and during it
        self._within = False  # operations that count as one

    @property
    def moments(self) -> list[Moment]:
        """All operations so far, in their order."""
        afters = [*(before for _, before, _ in self._written[1:]), self.held.now]
        rows = zip(self._written, afters, strict=False)
        return [Moment(name, during, after) for (name, _, during), after in rows]

    @contextmanager
    def as_one(self, name: str) -> Iterator[None]:
        """What runs within counts as one operation of that name."""
        self._within, first = True, len(self.held.over_time) - 1
        before = self.held.now
        yield
        self._written.append((name, before, max(self.held.over_time[first:])))
        self._within = False

    def run(self, func: Callable[..., object], args: tuple, kwargs: dict[str, object]) -> object:
        """Run an operation, and write it down."""
        given = storages(tensors_in(args, kwargs))
        self.held.known.update(given)
        before = self.held.now
        result = func(*args, **kwargs)
        made = storages(tensors_in(result)) - given
        self.held.add(made)
        if not self._within and (made or internals.changes(func)):
            self._written.append((_name(func), before, self.held.now))
        return result


def _name(func: Callable[..., object]) -> str:
    """Without the device, where attention's kernels have one."""
    for kernels, end in ((internals.ATTENTION, ""), (internals.ATTENTION_BACKWARD, "_backward")):
        if func.overloadpacket in kernels:
            return f"scaled_dot_product_attention{end}"
    return func.overloadpacket.__name__


def allocated_bytes(fn: Callable[[], object], *, device: str = "cpu") -> int:
    """Bytes of everything that a call allocates, kept or not.

    On a GPU by the caching allocator's own count: multiples of 512 bytes; above 1 MiB a block may be up to 1 MiB
    larger than what was asked for, and the first product also takes its library's workspace. On a CPU
    by watching the tensors that operations hand out: scratch space inside a kernel is not seen, nor the tensor
    that torch makes of a list between square brackets.

    >>> allocated_bytes(lambda: torch.ones(32, 32) * 2)
    8192
    """
    if torch.device(device).type == "cuda":
        torch.cuda.init()  # before that there are no statistics
        before = torch.cuda.memory_stats(device)["allocated_bytes.all.allocated"]
        fn()
        return torch.cuda.memory_stats(device)["allocated_bytes.all.allocated"] - before
    with Watch() as watch:
        fn()
    return sum(max(0, then - before) for before, then in pairwise(watch.held.over_time))


def peak_bytes(fn: Callable[[], object], *, device: str = "cpu") -> int:
    """The most bytes, beyond those held before, that a call holds at one time; seen as allocated_bytes sees them.

    >>> peak_bytes(lambda: torch.ones(32, 32).exp().sum().item())
    8192
    """
    if torch.device(device).type == "cuda":
        torch.cuda.init()
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        fn()
        return torch.cuda.max_memory_allocated(device) - before
    with Watch() as watch:
        fn()
    return max(watch.held.over_time)
