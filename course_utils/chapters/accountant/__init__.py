"""The accountant's terms for notebooks: the reader's own term where it is right, else the course's.

`from course_utils.chapters.accountant import parameters` gives the reader's own term, if their
`accountant.py` has one and it is right, and the course's term if not. The course's version of that
file is `course_utils/core/accountant.py`.
"""

import os

import course_utils.core.accountant as course
import course_utils.core.accountant_file as files
from course_utils.core import record

# Each term, with the chapter whose exercise it is.
CHAPTER_OF = {
    "tensor_bytes": "floats",
    "storage_bytes": "tensors",
    "matrices": "einsum",
    "parameters": "flops",
    "forward_flops": "flops",
    "days": "flops",
    "layer_bytes": "gradients",
    "state_bytes": "optimizers",
    "recipe": "mixed_precision",
    "step_bytes": "checkpointing",
    "step_flops": "checkpointing",
    "interval": "checkpointing",
    "lost_share": "checkpointing",
    # What 2026 adds.
    "window_pairs": "gradients",
    "latent_cache_bytes": "gradients",
    "newton_schulz_flops": "optimizers",
    "bytes_in_blocks": "mixed_precision",
    "data_parallel_bytes": "checkpointing",
}


def __getattr__(name: str) -> object:
    """Return the term `name`. Python calls this for each name that is imported from this module."""
    if name.startswith("_"):  # a name that Python looks for in every module
        raise AttributeError(name)
    return offered(name)


def so_far(*, notebook: int) -> object:
    """Return the table of what the accountant says of Llama 3 8B by the end of a notebook.

    `notebook` is its number, from 1 to 8. Lines with later notebooks' terms show "?".
    """
    # Imported here, because a notebook shows this table only once.
    from course_utils.chapters.accountant.account_of_llama import said_until

    return said_until(notebook)


def offered(name: str) -> object:
    """Return the term `name` for a notebook: the reader's if it is right, else the course's.

    Names that are no terms, such as the table BYTES, are the course's, too. If the reader's file
    cannot be read, or its version of the term is wrong, a message below the cell says so.
    """
    workspace = record.workspace()
    # A link that leads nowhere exists by `lexists`, so that it is reported as unreadable.
    if workspace is None or not os.path.lexists(workspace / files.NAME):
        return getattr(course, name)
    # Imported here, because most kernels, such as CI's, have no reader's file.
    from course_utils.chapters.accountant.readers_file import term_in

    return term_in(workspace, name)
