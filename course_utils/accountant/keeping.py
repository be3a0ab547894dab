"""How a term becomes the reader's, and how the next notebook gets it: only a kernel runs the reader's file.

What is right is judged as it stands in the file. The desk's hidden folder remembers for which text that was done, so
that an import need not do it again: the checks need torch.
"""

import ast
import fcntl
import inspect
import json
import os
import re
import textwrap
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path

import course_utils.accountant.accountant as course  # by `from` it would be asked of __getattr__
import course_utils.accountant.file as files
from course_utils import record
from course_utils.record import HIDDEN, write_whole

JUDGED, LOCK = f"{HIDDEN}/accountant.json", f"{HIDDEN}/accountant.lock"
INSIDE = "Put what it takes from the notebook, as imports and helpers, inside the function"
Space = dict[str, object]


def keep(name: str, answer: object) -> str:
    """Put a right answer into the file as the reader's term of that name; returns a sentence, and without a desk none."""
    desk = record.desk()
    if desk is None:
        return ""
    path = desk / files.NAME
    where = f"{desk.name}/{files.NAME}"
    try:
        with (desk / LOCK).open("w") as lock:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)  # another notebook may be keeping another term
            if not os.path.lexists(path):  # deleted: it begins anew
                write_whole(desk / HIDDEN / files.NAME, files.ours().encode())
                write_whole(path, files.ours().encode())
            former = files.program_text(path)
            text = files.with_term(former, name, _text_of(answer, name))
            if words := _wrong(desk, text, name, former).get(name):
                raise ValueError(f"it works in the notebook, but not in the file. {words} {INSIDE}")
            write_whole(path, text.encode())
    except (OSError, ValueError, SyntaxError) as error:
        why = f"{getattr(error, 'strerror', None) or error}".rstrip(".")
        return f"But not kept in {where}: {why}."
    return f"It is kept in {where}."


def _text_of(answer: object, name: str) -> str:
    """The text of the reader's function under the term's name; ValueError if it cannot stand in the file."""
    try:
        source = textwrap.dedent(inspect.getsource(answer))
        (node,) = ast.parse(source).body
    except (OSError, TypeError, ValueError, SyntaxError):
        node = None
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        raise ValueError(f"write it in a cell as one function, def {name}(...), without a decorator")
    text = "\n".join(source.split("\n")[: node.end_lineno])
    text = re.sub(f" *{files.MARK}", "", text)
    return re.sub(rf"(?<![.\w]){node.name}\s*(?=[\[(])", name, text)  # where it calls itself, too


def _run(text: str, path: Path) -> Space:
    """What the file of that text defines; ValueError if it stops."""
    space: Space = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(compile(text, path, "exec"), space)
    except (Exception, SystemExit) as error:
        raise ValueError(f"the file stops with {type(error).__name__}: {error}") from error
    return space


def _wrong(desk: Path, text: str, name: str = "", former: str = "") -> dict[str, str]:
    """The reader's terms that are not right in a file of that text, each with its check's words.

    Where all were right in the former text, and the term of that name is what has changed, it alone is judged.
    """
    if not (names := files.theirs(text)):
        return {}
    with suppress(OSError, ValueError, TypeError):
        judged, wrong = json.loads((desk / JUDGED).read_text(encoding="utf-8"))
        if judged == text:
            return dict(wrong)
        names = [name] if (judged, wrong) == (former, {}) else names
    checks, space = import_module("course_utils.checks.accountant"), _run(text, desk / files.NAME)
    verdicts = {term: getattr(checks, term)(space.get(term)) for term in names}
    wrong = {term: verdict.words for term, verdict in verdicts.items() if not verdict.right}
    if name not in wrong:  # else the file keeps its former text
        with suppress(OSError):  # then it is judged again
            write_whole(desk / JUDGED, json.dumps([text, wrong]).encode())
    return wrong


def offered(name: str) -> object:
    """What a notebook imports under that name: the reader's term where it is right, else ours."""
    desk, ours = record.desk(), getattr(course, name)
    if desk is None or not os.path.lexists(desk / files.NAME):
        return ours
    try:
        space, wrong = _space(desk, files.program_text(desk / files.NAME))
    except ValueError as error:
        _tell(f"{desk.name}/{files.NAME}: {error}. Mend it, or delete it to begin it anew.")
        return ours
    if name in wrong:
        _tell(f"{name} in {desk.name}/{files.NAME} is not right as it stands there. {wrong[name]}")
    return space[name]


@lru_cache(1)
def _space(desk: Path, text: str) -> tuple[Space, dict[str, str]]:
    """Ours, with the reader's right terms in it, so that `account` counts by them; and what is wrong with the others."""
    wrong = _wrong(desk, text)
    space, file = _run(files.ours(), files.OURS), _run(text, desk / files.NAME)
    space |= {name: file[name] for name in files.theirs(text) if name not in wrong}
    space["Model"] = course.Model
    return space, wrong


def _tell(words: str) -> None:
    from IPython import get_ipython  # now, as only a notebook has a sentence to show

    _show(words, getattr(get_ipython(), "execution_count", 0))


@lru_cache(9)  # once in a cell: an import asks for each name twice
def _show(words: str, _: int) -> None:
    from course_utils.checks.judging.verdict import Verdict, display

    display(Verdict("not used", f"{words} What follows uses ours."))
