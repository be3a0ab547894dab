"""The terms in the reader's file: which of them are right, and what a notebook gets instead."""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path

import course_utils.core.accountant as course
import course_utils.core.accountant_file as files
from course_utils.chapters.accountant import CHAPTER_OF
from course_utils.core import keeping
from course_utils.core.say.language import in_a_row, translated


def term_in(workspace: Path, name: str) -> object:
    """Return the term `name` of the reader's file in the folder `workspace`, if it is right.

    If not, or if the file cannot be read, return the course's, and say so below the cell.
    """
    try:
        text = files.program_text(workspace / files.NAME)
        space, wrong = _space(workspace, text)
    except ValueError as error:
        _show_once(
            translated(
                "{file}: {error}. Mend it, or delete it to begin it anew.",
                file=f"{workspace.name}/{files.NAME}",
                error=error,
            )
        )
        return getattr(course, name)
    if name in wrong:
        where = f"{workspace.name}/{files.NAME}"
        is_wrong = translated(
            "{name} in {file} is not right as it stands there.", name=name, file=where
        )
        _show_once(in_a_row(is_wrong, wrong[name]))
    # Of a wrong term, `space` has the course's version, which calls the reader's right terms.
    return space[name]


# An import of several names from the file runs and judges it only once.
@lru_cache(1)
def _space(workspace: Path, text: str) -> tuple[keeping.Space, dict[str, str]]:
    """Return the names that the course's file defines, with the reader's right terms put in.

    So the course's functions, such as `account`, call the reader's terms. The second result has
    the verdict's words for each wrong term, by the term's name.
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
    names = files.theirs(text)  # the terms that the reader has written
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
