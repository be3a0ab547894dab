"""The memory of this machine: how much is free, and whether an error means that it ran out."""

import re

import torch

from course_utils.core.measure import cgroups

# What torch's errors say on Linux, on Windows, and on a GPU.
WORDS = re.compile(r"can't allocate memory|not enough memory|out of memory")


def free_bytes(device: str = "cpu") -> int:
    """Bytes that can still be allocated; on a CPU, as far as a container's limit allows it."""
    if torch.device(device).type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        # torch keeps what was freed, for tensors to come, so the GPU does not count it as free.
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + cached
    _, free = cgroups.memory_bytes()
    return free


def memory_ran_out(error: BaseException) -> str:
    """A sentence if the error means that memory ran out; otherwise an empty string.

    >>> words = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has ..."
    >>> memory_ran_out(torch.OutOfMemoryError(words))
    'Memory ran out: another 20.00 GiB could not be had.'
    """
    words = str(error)
    is_of_memory = isinstance(error, torch.OutOfMemoryError | MemoryError)
    if not is_of_memory and not WORDS.search(words):
        return ""
    # NumPy's MemoryError says how much it could not allocate. torch's errors are shortened below.
    if isinstance(error, MemoryError) and words:
        return f"Memory ran out: {words.rstrip('.')}."
    # Such as "Tried to allocate 20.00 GiB", or "you tried to allocate 4000 bytes".
    amount = re.search(r"[Tt]ried to allocate ([\d.]+ ?\w+)", words)
    if not amount:
        return "Memory ran out."
    return f"Memory ran out: another {amount[1]} could not be had."
