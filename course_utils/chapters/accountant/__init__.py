"""The accountant's terms for notebooks: the reader's own term where it is right, else the course's.

`from course_utils.chapters.accountant import parameters` gives the reader's own term, if their
`accountant.py` has one and it is right, and the course's term if not. The course's version of that
file is `course_utils/core/accountant.py`.
"""

import os
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path

import course_utils.core.accountant as course
import course_utils.core.accountant_file as files
from course_utils.core import keeping, record

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
}


def __getattr__(name: str) -> object:
    """Return the term `name`. Python calls this for each name that is imported from this module."""
    if name.startswith("_"):  # a name that Python looks for in every module
        raise AttributeError(name)
    return offered(name)


def so_far(*, notebook: int) -> object:
    """Return the table of what the accountant says of Llama 3 8B with that notebook's terms.

    >>> so_far(notebook=8)
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
    ours = getattr(course, name)
    # A link that leads nowhere exists by `lexists`, so that it is reported as unreadable below.
    if workspace is None or not os.path.lexists(workspace / files.NAME):
        return ours
    try:
        text = files.program_text(workspace / files.NAME)
        space, wrong = _space(workspace, text)
    except ValueError as error:
        _show_once(
            f"{workspace.name}/{files.NAME}: {error}. Mend it, or delete it to begin it anew."
        )
        return ours
    if name in wrong:
        where = f"{workspace.name}/{files.NAME}"
        _show_once(f"{name} in {where} is not right as it stands there. {wrong[name]}")
    # Of a wrong term, `space` has the course's version, which calls the reader's right terms.
    return space[name]


@lru_cache(1)
def _space(workspace: Path, text: str) -> tuple[keeping.Space, dict[str, str]]:
    """Return the names that the course's file defines, with the reader's right terms put in.

    So the course's `account` counts by the reader's terms. The second result has the verdict's
    words for each wrong term, by the term's name.
    """
    wrong = _wrong(workspace, text)
    space = keeping.run(files.OURS.read_text(encoding="utf-8"), files.OURS)
    readers = keeping.run(text, workspace / files.NAME)
    for name in files.theirs(text):
        if name not in wrong:
            space[name] = readers[name]
    space["Model"] = course.Model  # the class that checks use, and not the one just defined again
    return space, wrong


def _wrong(workspace: Path, text: str) -> dict[str, str]:
    """Return the verdict's words for each wrong term, by the term's name.

    `text` is the content of the reader's file. If it is the text that was judged last, the
    remembered result is returned.
    """
    names = files.theirs(text)
    if not names:
        return {}
    judged_text, wrong = keeping.remembered(workspace)
    if judged_text == text:
        return wrong
    space = keeping.run(text, workspace / files.NAME)
    wrong = {}
    for name in names:
        check = term_check(name)
        verdict = check(space.get(name))
        if not verdict.right:
            wrong[name] = verdict.words
    keeping.remember(workspace, text, wrong)
    return wrong


def judge(workspace: Path) -> None:
    """Judge the terms of the reader's file in the folder `workspace`, and remember the verdicts.

    Raise a ValueError, with the reason, if the file cannot be read or fails when it runs.
    """
    _wrong(workspace, files.program_text(workspace / files.NAME))


def term_check(name: str) -> Callable[[object], object]:
    """Return the check of the term `name`, which lies in the term's chapter.

    Checks need torch, so a check is imported only when a term is judged.
    """
    checks = import_module(f"course_utils.chapters.{CHAPTER_OF[name]}.check")
    return getattr(checks, name)


def _show_once(words: str) -> None:
    """Show these words below the cell that is running, but only once."""
    from IPython import get_ipython  # imported here, because it is needed only for a wrong term

    cell_number = getattr(get_ipython(), "execution_count", 0)  # 0 outside of a notebook
    _show(words, cell_number)


# One cell may import several names from a file that cannot be read, and each name leads to a call
# with the same words. Only the first is carried out; for the others the cache has the result, None.
# It needs few places, because such calls follow each other at once.
@lru_cache(9)
def _show(words: str, _cell_number: int) -> None:
    """Show the words below the cell. `_cell_number` makes calls from two cells different."""
    # Imported late, because it is needed only for a wrong term.
    from course_utils.engine.judging.verdict import Verdict, display

    display(Verdict("not used", f"{words} What follows uses ours."))
