"""Bytes over time: each operation that torch runs, and what is held during and after it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import torch

from course_utils.core.measure import internals
from course_utils.core.measure.memory import Held, storages, tensors_in


class Moment(NamedTuple):
    """An operation, and the bytes that are held."""

    name: str  # as torch calls the operation
    during: int  # while the operation runs
    after: int  # once all that is no longer needed has been freed


class _Written(NamedTuple):
    """An operation that has run. What is freed after it is known only when the next one begins."""

    name: str
    before: int  # the bytes that are held before the operation runs
    during: int  # the bytes that are held while the operation runs


class Watch(internals.Mode):
    """Writes down each operation on a CPU that makes or changes a tensor, but no views.

    Tensors from before the context count only if `there` names them. Scratch memory inside a kernel
    is not seen, nor the tensor of positions that torch makes of a list, as in x[[0, 2]].

    >>> x = torch.ones(32, 32)
    >>> with Watch([x]) as watch:
    ...     y = (x * 2).t() + 1
    >>> watch.moments
    [Moment(name='mul', during=8192, after=8192), Moment(name='add', during=12288, after=8192)]
    """

    def __init__(self, there: Iterable[torch.Tensor] = ()) -> None:
        """Count the storages of the tensors in `there` as held from the beginning."""
        super().__init__()
        self.held = Held()
        self.held.add(storages(there))
        self._written: list[_Written] = []
        self._inside_as_one = False  # whether a context of `as_one` is open

    @property
    def moments(self) -> list[Moment]:
        """All operations so far, in their order."""
        # What is held after an operation is what is held before the next one.
        held_at_borders = [written.before for written in self._written]
        held_at_borders.append(self.held.now)
        moments = []
        for written, after in zip(self._written, held_at_borders[1:], strict=True):
            moments.append(Moment(written.name, written.during, after))
        return moments

    @contextmanager
    def as_one(self, name: str) -> Iterator[None]:
        """A context in which all operations together count as one, of that name.

        An optimizer's step is one operation in this way, whatever operations it is made of.
        """
        self._inside_as_one = True
        before = self.held.now
        changes_before = len(self.held.over_time)  # one entry for each change so far
        yield
        # `max` takes `before` too, because without a change `within` is empty.
        within = self.held.over_time[changes_before:]
        self._written.append(_Written(name, before, max([before, *within])))
        self._inside_as_one = False

    def run(self, func: Callable[..., object], args: tuple, kwargs: dict[str, object]) -> object:
        """Run an operation, and write it down if it makes or changes a tensor.

        An operation inside `as_one` is not written down by itself.
        """
        given = storages(tensors_in(args, kwargs))
        # Arguments that are not known yet were there before, unnamed: they are never counted.
        self.held.known.update(given)
        before = self.held.now
        result = func(*args, **kwargs)
        made = storages(tensors_in(result)) - given  # a view's storage was given, not made
        self.held.add(made)
        writes = made or internals.changes(func)
        if writes and not self._inside_as_one:
            self._written.append(_Written(_name(func), before, self.held.now))
        return result


def _name(func: Callable[..., object]) -> str:
    """torch's name for the operation, or for attention one name in place of each device's own."""
    operation = func.overloadpacket
    if operation in internals.ATTENTION:
        return "scaled_dot_product_attention"
    if operation in internals.ATTENTION_BACKWARD:
        return "scaled_dot_product_attention_backward"
    return operation.__name__


def allocated_bytes(fn: Callable[[], object], *, device: str = "cpu") -> int:
    """Bytes of everything that a call allocates, kept or not.

    On a GPU, torch's caching allocator counts them: in multiples of 512 bytes; above 1 MiB, a block
    may be up to 1 MiB larger than the tensor; and the first product also takes its library's
    workspace. On a CPU, the tensors that operations make are counted: scratch memory inside a
    kernel is not seen, nor the tensor of positions that torch makes of a list, as in x[[0, 2]].

    >>> allocated_bytes(lambda: torch.ones(32, 32) * 2)
    8192
    """
    if torch.device(device).type == "cuda":
        torch.cuda.init()  # before that there are no statistics
        count = "allocated_bytes.all.allocated"  # all bytes so far, freed or not
        before = torch.cuda.memory_stats(device)[count]
        fn()
        return torch.cuda.memory_stats(device)[count] - before
    with Watch() as watch:
        fn()
    allocated = 0
    # The bytes held fall where a storage is freed; only what they rise by was allocated.
    for before, after in pairwise(watch.held.over_time):
        allocated += max(0, after - before)
    return allocated


def peak_bytes(fn: Callable[[], object], *, device: str = "cpu") -> int:
    """The most bytes, beyond those held before, that a call holds at one time.

    The bytes are counted as by `allocated_bytes`.

    >>> peak_bytes(lambda: torch.ones(32, 32).exp().sum().item())
    8192
    """
    if torch.device(device).type == "cuda":
        torch.cuda.init()  # before that there are no statistics
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        fn()
        return torch.cuda.max_memory_allocated(device) - before
    with Watch() as watch:
        fn()
    return max(watch.held.over_time)
