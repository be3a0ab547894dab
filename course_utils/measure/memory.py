"""Bytes: what autograd keeps, what an optimizer keeps, what a call allocates, what is free."""

import os
import re
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial

import psutil
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_leaves

from course_utils.measure.modes import Uncompiled
from course_utils.quantities import Ledger

Storage = torch.UntypedStorage


def saved_bytes(fn: Callable[[], object], *, exclude: Iterable[torch.Tensor] = ()) -> int:
    """Bytes of the distinct storages that autograd keeps for the backward pass of what fn computes.

    Leave out what is kept anyway, such as the parameters, with `exclude`.

    >>> x = torch.ones(4, 8, requires_grad=True)
    >>> saved_bytes(lambda: x.exp())  # its own result, 32 numbers of 4 bytes
    128
    """
    kept: dict[int, Storage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage  # on the meta device every data_ptr() is 0
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        result = fn()
    left_out = {tensor.untyped_storage()._cdata for tensor in exclude}
    del result
    return sum(storage.nbytes() for cdata, storage in kept.items() if cdata not in left_out)


def saved_bytes_by_part(module: nn.Module, *inputs: torch.Tensor) -> Ledger:
    """saved_bytes of module(*inputs), by the part of the module in which a storage was kept first; parameters aside.

    >>> saved_bytes_by_part(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2)), torch.ones(1, 8))
           bytes
    0         32
    1         16
    total     48
    """
    known = {p.untyped_storage()._cdata for p in module.parameters()}
    kept: list[Storage] = []  # until the end, so that no address is given twice
    by_part: dict[str, int] = {}
    running = [""]

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in known:
            known.add(storage._cdata)
            kept.append(storage)
            by_part[running[-1]] = by_part.get(running[-1], 0) + storage.nbytes()
        return tensor

    def leave(*_: object) -> None:
        running.pop()

    with ExitStack() as hooks:
        for name, part in list(module.named_modules())[1:]:
            begin = part.register_forward_pre_hook(lambda *_, name=name: running.append(name))
            end = part.register_forward_hook(leave, always_call=True)
            hooks.callback(begin.remove)
            hooks.callback(end.remove)
        with saved_tensors_hooks(pack, lambda tensor: tensor):
            result = module(*inputs)
        del result
    return Ledger({name or "itself": nbytes for name, nbytes in by_part.items()}, unit="bytes")


def peak_saved_bytes(fn: Callable[[], object], *, exclude: Iterable[torch.Tensor] = ()) -> int:
    """The most bytes that autograd keeps at one time while fn runs a forward pass and its backward pass.

    Counted as saved_bytes counts, but over time: a storage from the moment when it is kept until it is freed,
    also what activation checkpointing rebuilds on the way back. Gradients, temporaries and what `exclude`
    names are not in it, nor the states of generators that checkpointing keeps; peak_bytes counts all of that.

    >>> x = torch.ones(4, 8, requires_grad=True)
    >>> peak_saved_bytes(lambda: x.exp().exp().sum().backward())
    256
    """
    with _Kept(exclude) as kept:
        fn()
    return kept.peak


_one_watches = threading.RLock()  # as it puts itself in the place of what all threads call


class _Kept:
    """Adds up the storages that any pack hook keeps, those of checkpointing too, which hide from a hook around them."""

    def __init__(self, exclude: Iterable[torch.Tensor]) -> None:
        self.held = self.peak = 0
        self._known = {tensor.untyped_storage()._cdata for tensor in exclude}

    def __enter__(self) -> "_Kept":
        _one_watches.acquire()
        self._enter = enter = saved_tensors_hooks.__enter__

        def watched(hooks: saved_tensors_hooks) -> None:
            enter(saved_tensors_hooks(partial(self._packed, hooks.pack_hook), hooks.unpack_hook))

        saved_tensors_hooks.__enter__ = watched
        self._ours = saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)
        self._ours.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.__exit__()
        saved_tensors_hooks.__enter__ = self._enter
        _one_watches.release()

    def _packed(self, pack: Callable[[torch.Tensor], object], tensor: torch.Tensor) -> object:
        kept: object = tensor
        try:
            kept = pack(tensor)  # recomputing ends early by an exception, after it has kept the tensor
        finally:
            for each in tree_leaves(kept):
                if isinstance(each, torch.Tensor):
                    self._see(each.untyped_storage())
        return kept

    def _see(self, storage: Storage) -> None:
        if storage._cdata in self._known:
            return
        self._known.add(storage._cdata)
        self.held += storage.nbytes()
        self.peak = max(self.peak, self.held)
        weakref.finalize(storage, self._freed, storage._cdata, storage.nbytes())

    def _freed(self, cdata: int, nbytes: int) -> None:
        self._known.discard(cdata)
        self.held -= nbytes


def optimizer_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of everything that an optimizer keeps from step to step; 0 before its first."""
    leaves = (leaf for state in optimizer.state.values() for leaf in tree_leaves(state))
    return storage_bytes(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))


def storage_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of the distinct storages behind tensors: whole ones, and what several share once.

    >>> x = torch.zeros(1000)
    >>> storage_bytes([x, x[:1]])
    4000
    """
    storages = {t.untyped_storage()._cdata: t.untyped_storage() for t in tensors}
    return sum(storage.nbytes() for storage in storages.values())


def allocated_bytes(fn: Callable[[], object], *, device: str = "cpu") -> int:
    """Bytes of everything that a call allocates, kept or not.

    On a GPU by the caching allocator's own count: multiples of 512 bytes; above 1 MiB a block may be up to 1 MiB
    larger than what was asked for, and the first product also takes its library's workspace. On a CPU
    by watching the tensors that operations hand out: scratch space inside a kernel is not seen.

    >>> allocated_bytes(lambda: torch.ones(32, 32) * 2)
    8192
    """
    if torch.device(device).type == "cuda":
        torch.cuda.init()  # before that there are no statistics
        before = torch.cuda.memory_stats(device)["allocated_bytes.all.allocated"]
        fn()
        return torch.cuda.memory_stats(device)["allocated_bytes.all.allocated"] - before
    with _Allocations() as seen:
        fn()
    return seen.allocated


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
    with _Allocations() as seen:
        fn()
    return seen.peak


class _Allocations(Uncompiled):
    """Adds up the storages that appear, and takes off those that are freed."""

    def __init__(self) -> None:
        super().__init__()
        self.allocated = self.held = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: object,
        args: tuple = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        for tensor in tree_leaves((args, kwargs)):  # what comes in was there before
            if isinstance(tensor, torch.Tensor):
                self._see(tensor.untyped_storage(), 0)
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self._see(tensor.untyped_storage(), tensor.untyped_storage().nbytes())
        return result

    def _see(self, storage: Storage, nbytes: int) -> None:
        """Known until it is freed, as its address may then be given to another."""
        if storage._cdata in self._known:
            return
        self._known.add(storage._cdata)
        self.allocated += nbytes
        self.held += nbytes
        self.peak = max(self.peak, self.held)
        weakref.finalize(storage, self._freed, storage._cdata, nbytes)

    def _freed(self, cdata: int, nbytes: int) -> None:
        self._known.discard(cdata)
        self.held -= nbytes


def resident_bytes(path: str | os.PathLike) -> int | None:
    """Bytes of a memory-mapped file that this process has in memory; None where the system does not say."""
    wanted = os.path.realpath(path)
    try:
        maps = psutil.Process().memory_maps(grouped=True)
    except (AttributeError, psutil.Error):  # macOS does not tell
        return None
    return sum(one.rss for one in maps if one.path == wanted)


def free_bytes(device: str = "cpu") -> int:
    """Bytes that can still be allocated; for a CPU what the system can give without swapping."""
    if torch.device(device).type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    return psutil.virtual_memory().available


def memory_ran_out(error: BaseException) -> str:
    """A sentence, if that is what the error says; nothing if it says something else.

    >>> memory_ran_out(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has ..."))
    'Memory ran out: another 20.00 GiB could not be had.'
    """
    words = str(error)
    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    if not known and not re.search(r"can't allocate memory|not enough memory|out of memory", words):
        return ""
    if isinstance(error, MemoryError) and words:
        return f"Memory ran out: {words.rstrip('.')}."
    asked = re.search(r"[Tt]ried to allocate ([\d.]+ ?\w+)", words)
    return f"Memory ran out: another {asked[1]} could not be had." if asked else "Memory ran out."
