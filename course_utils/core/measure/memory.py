"""Bytes: what autograd keeps, and what an optimizer keeps."""

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from torch.autograd.graph import saved_tensors_hooks

from course_utils.core.measure import internals

# torch has one object for each storage, as long as a tensor points into it.
Storage = torch.UntypedStorage


def saved_bytes(fn: Callable[[], object], *, exclude: Iterable[torch.Tensor] = ()) -> int:
    """Bytes of the distinct storages that autograd keeps for the backward pass of what fn computes.

    `exclude` names tensors that are kept anyway, such as the parameters; they are not counted.

    >>> x = torch.ones(4, 8, requires_grad=True)
    >>> saved_bytes(lambda: x.exp())  # its own result, 32 numbers of 4 bytes
    128
    """
    kept: set[Storage] = set()

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        """Note the storage; autograd calls this with each tensor that it keeps."""
        kept.add(tensor.untyped_storage())
        return tensor

    with saved_tensors_hooks(pack, _unchanged):
        fn()
    return sum(storage.nbytes() for storage in kept - storages(exclude))


def peak_saved_bytes(fn: Callable[[], object], *, exclude: Iterable[torch.Tensor] = ()) -> int:
    """The most bytes that autograd keeps at one time while fn runs forward and backward.

    Storages are counted as by saved_bytes, but over time: each from when it is kept until it is
    freed, also those that activation checkpointing computes again in the backward pass. Gradients,
    temporary tensors, what `exclude` names, and the states of random generators that checkpointing
    keeps are not counted; peak_bytes counts all of that.

    >>> x = torch.ones(4, 8, requires_grad=True)
    >>> peak_saved_bytes(lambda: x.exp().exp().sum().backward())
    256
    """
    return max(saved_bytes_over_time(fn, exclude=exclude))


def saved_bytes_over_time(
    fn: Callable[[], object], *, exclude: Iterable[torch.Tensor] = ()
) -> list[int]:
    """The bytes kept over time: 0, then a number each time that a storage is kept or freed.

    >>> x = torch.ones(4, 8, requires_grad=True)
    >>> saved_bytes_over_time(lambda: x.exp().exp().sum().backward())
    [0, 128, 256, 128, 0]
    """
    kept = Held(exclude)
    with _watched(lambda tensor: kept.add({tensor.untyped_storage()})):
        fn()
    return list(kept.over_time)  # a copy, because what is freed later is no part of the call


class _Watched(partial):
    """A pack hook that shows `_watched` what it keeps: `pack` with a hook as its first argument.

    `_watched` tells its hooks from all others by this class.
    """


# Held while `_watched` replaces a method of torch's for all threads, so that one thread at a time
# replaces it.
_one_watches = threading.RLock()


@contextmanager
def _watched(see: Callable[[torch.Tensor], None]) -> Iterator[None]:
    """Show `see` every tensor that a pack hook in this context keeps, also those of checkpointing.

    Checkpointing's hooks hide what they keep from a hook around them, and torch has no other way to
    see it: hooks that the context of checkpoint's `context_fn` sets would replace its own. So
    during this context, all `saved_tensors_hooks` are entered by `enter_watched`. It changes those
    that are entered within this context: in this thread, or in one of torch's threads that runs
    this thread's backward pass. All others remain as they are.
    """

    def pack(inner: Callable[[torch.Tensor], object], tensor: torch.Tensor) -> object:
        kept: object = tensor  # stays the tensor if `inner` raises
        try:
            # When checkpointing recomputes, it keeps the last tensor and then raises an exception.
            kept = inner(tensor)
        finally:
            for kept_tensor in tensors_in(kept):
                see(kept_tensor)
        return kept

    def enter_watched(hooks: saved_tensors_hooks) -> None:
        """Enter hooks, as `with hooks` does; within `_watched`, `see` gets what they keep, too.

        It stands in for `saved_tensors_hooks.__enter__`. Only the innermost hooks are called, so a
        caller's own would hide what is saved in them from `see`: hooks that call both take their
        place. Threads whose innermost hooks are no `_Watched` are not within this context.
        """
        around = internals.innermost_hooks(True)  # (pack, unpack), or None
        if around and isinstance(around[0], _Watched):
            hooks = saved_tensors_hooks(_Watched(pack, hooks.pack_hook), hooks.unpack_hook)
        enter(hooks)

    with _one_watches, ExitStack() as afterwards:
        enter = saved_tensors_hooks.__enter__  # torch's own method, put back at the end
        afterwards.callback(setattr, saved_tensors_hooks, "__enter__", enter)
        saved_tensors_hooks.__enter__ = enter_watched
        outermost = saved_tensors_hooks(_Watched(pack, _unchanged), _unchanged)
        enter(outermost)
        afterwards.callback(outermost.__exit__)
        yield


class Held:
    """Adds up the storages that are held, each from when it is added until it is freed.

    `over_time` has 0, and then the bytes held each time that a storage is added or freed. The
    storages of the tensors `before` are not counted.
    """

    def __init__(self, before: Iterable[torch.Tensor] = ()) -> None:
        self.over_time = [0]
        # The storages that are counted already, or that shall never be counted.
        self.known = weakref.WeakSet(storages(before))

    @property
    def now(self) -> int:
        """The bytes that are held now."""
        return self.over_time[-1]

    def add(self, made: set[Storage]) -> None:
        """Count the storages that are not known yet."""
        for storage in made:
            if storage in self.known:
                continue
            self.known.add(storage)
            self._change(storage.nbytes())
            # Python makes this call when the storage is freed.
            weakref.finalize(storage, self._change, -storage.nbytes())

    def _change(self, nbytes: int) -> None:
        """Note that `nbytes` more bytes are held; the number is below 0 if some were freed."""
        self.over_time.append(self.now + nbytes)


def _unchanged(tensor: torch.Tensor) -> torch.Tensor:
    """A hook that keeps, or gives back, the tensor itself."""
    return tensor


def storages(tensors: Iterable[torch.Tensor]) -> set[Storage]:
    """The distinct storages behind tensors."""
    return {tensor.untyped_storage() for tensor in tensors}


def tensors_in(*trees: object) -> Iterator[torch.Tensor]:
    """The tensors in nested lists, tuples and dictionaries."""
    for tree in trees:
        if isinstance(tree, torch.Tensor):
            yield tree
        elif isinstance(tree, list | tuple):
            yield from tensors_in(*tree)
        elif isinstance(tree, Mapping):
            yield from tensors_in(*tree.values())


def optimizer_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of what an optimizer keeps from step to step. Before the first, most keep nothing."""
    return storage_bytes(tensors_in(optimizer.state))


def storage_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of the distinct storages behind tensors: each counts whole, and once if it is shared.

    >>> x = torch.zeros(1000)
    >>> storage_bytes([x, x[:1]])
    4000
    """
    return sum(storage.nbytes() for storage in storages(tensors))
