"""What training takes, by the reader's own terms.

`from course_utils.chapters.accountant import parameters` gives the reader's own term, if their file
keeps one and it is right, and the course's term if not. The course's version of that file is
`course_utils/core/accountant.py`.
"""

import os
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path

import course_utils.core.accountant as course
import course_utils.core.accountant_file as files
from course_utils.core import keeping, record

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
    if name.startswith("_"):
        raise AttributeError(name)
    return offered(name)


def offered(name: str) -> object:
    """Return the term that a notebook imports: the reader's if it is right, else ours."""
    workspace = record.workspace()
    ours = getattr(course, name)
    if workspace is None or not os.path.lexists(workspace / files.NAME):
        return ours
    try:
        text = files.program_text(workspace / files.NAME)
        space, wrong = _space(workspace, text)
    except ValueError as error:
        _tell(f"{workspace.name}/{files.NAME}: {error}. Mend it, or delete it to begin it anew.")
        return ours
    if name in wrong:
        where = f"{workspace.name}/{files.NAME}"
        _tell(f"{name} in {where} is not right as it stands there. {wrong[name]}")
    return space[name]


@lru_cache(1)
def _space(workspace: Path, text: str) -> tuple[keeping.Space, dict[str, str]]:
    """Run our file and put the reader's right terms into it, so that our `account` counts by them.

    The second result is what is wrong with the reader's other terms, by name.
    """
    wrong = _wrong(workspace, text)
    space = keeping.run(files.ours(), files.OURS)
    readers = keeping.run(text, workspace / files.NAME)
    for name in files.theirs(text):
        if name not in wrong:
            space[name] = readers[name]
    space["Model"] = course.Model
    return space, wrong


def _wrong(workspace: Path, text: str) -> dict[str, str]:
    """Return what is wrong with the reader's terms in a file of that text, by name.

    A text that was judged before is not judged again.
    """
    names = files.theirs(text)
    if not names:
        return {}
    judged, wrong = keeping.remembered(workspace)
    if judged == text:
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


def term_check(name: str) -> Callable[[object], object]:
    """Return the check of that term, from the term's chapter.

    Checks need torch, so one is imported only when something is judged.
    """
    checks = import_module(f"course_utils.chapters.{CHAPTER_OF[name]}.check")
    return getattr(checks, name)


def _tell(words: str) -> None:
    """Show these words below the cell that runs."""
    from IPython import get_ipython  # imported here, because only a notebook has words to show

    cell_number = getattr(get_ipython(), "execution_count", 0)
    _show(words, cell_number)


@lru_cache(9)  # so that words are shown once in a cell: an import asks for each name twice
def _show(words: str, _cell_number: int) -> None:
    from course_utils.engine.judging.verdict import Verdict, display

    display(Verdict("not used", f"{words} What follows uses ours."))
