"""The memory of this machine: what is free, and what an error says when it ran out."""

import re

import torch

from course_utils.core.measure import cgroups


def free_bytes(device: str = "cpu") -> int:
    """Bytes that can still be allocated; for a CPU what the system, or this container's limit, leaves."""
    if torch.device(device).type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    return cgroups.memory_bytes()[1]


def memory_ran_out(error: BaseException) -> str:
    """A sentence if the error says that memory ran out; else an empty string.

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
