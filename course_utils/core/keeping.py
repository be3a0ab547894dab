"""How a right answer becomes a term of the reader's accountant.

The reader's file is run in a kernel only. In the workspace's hidden folder, the file JUDGED has the
text of accountant.py whose terms were judged last, and the verdicts, so that an import need not
judge these terms again.
"""

import ast
import fcntl
import inspect
import json
import os
import re
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import course_utils.core.accountant_file as files
from course_utils.core import record
from course_utils.core.record import HIDDEN, write_whole
from course_utils.core.say.language import translated

JUDGED = f"{HIDDEN}/accountant.json"
LOCK = f"{HIDDEN}/accountant.lock"  # locked while a notebook keeps a term
Space = dict[str, object]  # what a file defines, by name


def keep(name: str, answer: object, check: Callable[[object], object]) -> str:
    """Write a right answer into the workspace's accountant.py, as the reader's term `name`.

    A notebook's cell `check.days(my_days).kept` calls this if the answer is right. `check` judges
    the answer once more, as the file defines it, and returns a Verdict. Return a sentence for the
    reader on what happened; without a workspace, nothing happens and the sentence is empty.
    """
    workspace = record.workspace()
    if workspace is None:
        return ""
    where = f"{workspace.name}/{files.NAME}"
    try:
        with (workspace / LOCK).open("w") as lock:
            # Another notebook may be keeping another term. There are file systems without locks.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            written_terms = _keep_in(workspace, name, answer, check)  # by the reader, with this one
    except (OSError, ValueError, SyntaxError) as error:
        why = getattr(error, "strerror", None) or str(error)  # only an OSError has a strerror
        why = why.rstrip(".")
        return translated("But not kept in {file}: {why}.", file=where, why=why)
    return _kept(name, where, written_terms)


def _kept(name: str, where: str, written_terms: list[str]) -> str:
    """Return the sentence on a term that is kept, and on how many are the reader's now."""
    added = len({*written_terms} & {*files.ADDED})
    to_add = len(files.ADDED)
    own = len(written_terms) - added  # of the thirteen
    count = len(files.TERMS)
    is_of_2026 = name in files.ADDED
    if own == count and is_of_2026:
        return translated(
            "It is kept in {file}. All terms are yours: it needs the course no more, "
            "and {added} of {to_add} that 2026 adds.",
            file=where,
            added=added,
            to_add=to_add,
        )
    if own == count:
        return translated(
            "It is kept in {file}. All terms are yours: it needs the course no more.", file=where
        )
    if is_of_2026:
        return translated(
            "It is kept in {file}. Yours now: {own} of {count} terms, "
            "and {added} of {to_add} that 2026 adds.",
            file=where,
            own=own,
            count=count,
            added=added,
            to_add=to_add,
        )
    return translated(
        "It is kept in {file}. Yours now: {own} of {count} terms.",
        file=where,
        own=own,
        count=count,
    )


def _keep_in(
    workspace: Path, name: str, answer: object, check: Callable[[object], object]
) -> list[str]:
    """Write the answer into the workspace's file as its term `name`.

    Return the names of the terms that are the reader's now. ValueError, and the file stays as it
    is, if the check does not find the term right as the file defines it.
    """
    path = workspace / files.NAME
    if not os.path.lexists(path):  # the reader has deleted it, to begin anew
        # The copy in the hidden folder is what an update of the course compares the file with.
        write_whole(workspace / HIDDEN / files.NAME, files.ours().encode())
        write_whole(path, files.ours().encode())
    former = files.program_text(path)  # the file's text, without the new term
    text = files.with_term(former, name, _text_of(answer, name))
    defined = run(text, path)
    # The term may need something that the notebook has and the file lacks, so it is judged again.
    verdict = check(defined.get(name))
    if not verdict.right:
        raise ValueError(
            translated(
                "it works in the notebook, but not in the file. {verdict} "
                "Put what it takes from the notebook, as imports and helpers, inside the function",
                verdict=verdict.words,
            )
        )
    write_whole(path, text.encode())
    other_terms = {*files.theirs(former)} - {name}  # that the reader has written before
    # This term is right now. The whole file is known to be right if all other terms were judged
    # right in it before, or if there are none. If so, the next import need not judge the file.
    nothing_wrong = {}  # the verdict's words for each wrong term, of which there is none
    # `remembered` returns the text that was judged last, and what was wrong in it.
    all_were_right = remembered(workspace) == (former, nothing_wrong)
    if all_were_right or not other_terms:
        remember(workspace, text, nothing_wrong)
    return files.theirs(text)


def _text_of(answer: object, name: str) -> str:
    """Return the source of the reader's function, with the term's name in place of its own.

    The reader may have called the function that answers the term "days" by another name, such as
    mine. ValueError if the answer is not a single function without a decorator.
    """
    try:
        source = textwrap.dedent(inspect.getsource(answer))
        (node,) = ast.parse(source).body  # a ValueError if it is not one statement
    except (OSError, TypeError, ValueError, SyntaxError):
        node = None
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        raise ValueError(
            translated(
                "write it in a cell as one function, def {name}(...), without a decorator",
                name=name,
            )
        )
    text = "\n".join(source.split("\n")[: node.end_lineno])  # without comments below the function
    # A function that was copied from the file has the mark, and would count as the course's.
    text = re.sub(f" *{files.MARK}", "", text)
    # Replaces the name in `def mine(x)` and `def mine[T](x)`, and where the function calls itself,
    # as `mine(x)`, but not in `a.mine(x)`.
    return re.sub(rf"(?<![.\w]){node.name}\s*(?=[\[(])", name, text)


def run(text: str, path: Path) -> Space:
    """Run a file of that text, and return what it defines, by name. ValueError if it fails."""
    space: Space = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(compile(text, path, "exec"), space)
    except (Exception, SystemExit) as error:  # SystemExit is raised by exit()
        raise ValueError(
            translated(
                "the file stops with {kind}: {error}", kind=type(error).__name__, error=error
            )
        ) from error
    return space


def remembered(workspace: Path) -> tuple[str, dict[str, str]]:
    """Return the text that was judged last, and the verdict's words for each of its wrong terms.

    The words are by the term's name; a text without a wrong term has none. The text is empty if
    none is remembered, or if the file with it cannot be read.
    """
    with suppress(OSError, ValueError, TypeError):
        text, wrong = json.loads((workspace / JUDGED).read_text(encoding="utf-8"))
        return text, dict(wrong)
    return "", {}


def remember(workspace: Path, text: str, wrong: dict[str, str]) -> None:
    """Remember that `text` was judged, with the verdict's words for each of its wrong terms."""
    with suppress(OSError):  # if it cannot be remembered, the next import judges the text again
        write_whole(workspace / JUDGED, json.dumps([text, wrong]).encode())
