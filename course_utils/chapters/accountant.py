"""What training takes, by the reader's own terms.

`from course_utils.chapters.accountant import parameters` gives the reader's own, if it is kept in their file and right,
and the course's if not. `course_utils/core/accountant.py` is the course's version of the file.
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
    """What a notebook imports under that name: the reader's term where it is right, else ours."""
    workspace, ours = record.workspace(), getattr(course, name)
    if workspace is None or not os.path.lexists(workspace / files.NAME):
        return ours
    try:
        space, wrong = _space(workspace, files.program_text(workspace / files.NAME))
    except ValueError as error:
        _tell(f"{workspace.name}/{files.NAME}: {error}. Mend it, or delete it to begin it anew.")
        return ours
    if name in wrong:
        _tell(
            f"{name} in {workspace.name}/{files.NAME} is not right as it stands there. {wrong[name]}"
        )
    return space[name]


@lru_cache(1)
def _space(workspace: Path, text: str) -> tuple[keeping.Space, dict[str, str]]:
    """Ours, with the reader's right terms in it, so that `account` counts by them; and what is wrong with the others."""
    wrong = _wrong(workspace, text)
    space, file = keeping.run(files.ours(), files.OURS), keeping.run(text, workspace / files.NAME)
    space |= {name: file[name] for name in files.theirs(text) if name not in wrong}
    space["Model"] = course.Model
    return space, wrong


def _wrong(workspace: Path, text: str) -> dict[str, str]:
    """The reader's terms that are not right in a file of that text, each with its check's words."""
    names = files.theirs(text)
    if not names:
        return {}
    judged, wrong = keeping.remembered(workspace)
    if judged == text:
        return wrong
    space = keeping.run(text, workspace / files.NAME)
    verdicts = {name: term_check(name)(space.get(name)) for name in names}
    wrong = {name: verdict.words for name, verdict in verdicts.items() if not verdict.right}
    keeping.remember(workspace, text, wrong)
    return wrong


def term_check(name: str) -> Callable[[object], object]:
    """The check of that term, from its chapter. It needs torch, so it is imported only when something is judged."""
    return getattr(import_module(f"course_utils.chapters.{CHAPTER_OF[name]}.check"), name)


def _tell(words: str) -> None:
    from IPython import get_ipython  # now, as only a notebook has a sentence to show

    _show(words, getattr(get_ipython(), "execution_count", 0))


@lru_cache(9)  # once in a cell: an import asks for each name twice
def _show(words: str, _: int) -> None:
    from course_utils.engine.judging.verdict import Verdict, display

    display(Verdict("not used", f"{words} What follows uses ours."))
