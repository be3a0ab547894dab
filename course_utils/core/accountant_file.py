"""The text of an `accountant.py`: which terms the reader has written, and how one more is put in.

The file is a complete program at any time. A term that the reader has not written yet is a stub,
which calls the course's term; a line of the stub ends in MARK. As long as there are stubs, the file
has the statements of WHILE_MISSING. They are removed with the last stub, and then the file needs
nothing but Python. The functions in GENERAL are stubs, too, each until its term is the reader's,
because they would give the term away. The terms that 2026 adds are no stubs, so that this does not
wait for them: until the reader writes one, it is the course's function, with MARK behind it. This
module never runs the file, because the workspace's server uses it, too.
"""

import ast
import re
from pathlib import Path

NAME = "accountant.py"
OURS = Path(__file__).with_name(NAME)  # the course's file, with all terms written
TERMS = (  # in the order of the notebooks
    "tensor_bytes",
    "storage_bytes",
    "matrices",
    "parameters",
    "forward_flops",
    "days",
    "layer_bytes",
    "state_bytes",
    "recipe",
    "step_bytes",
    "step_flops",
    "interval",
    "lost_share",
)
ADDED = (  # what 2026 adds, in the order of the notebooks
    "window_pairs",
    "latent_cache_bytes",
    "newton_schulz_flops",
    "bytes_in_blocks",
    "data_parallel_bytes",
)
# The course's functions that count any model, each with the term that counts the usual ones.
GENERAL = {
    "stored_parameters": "parameters",
    "active_forward_flops": "forward_flops",
    "any_step_flops": "step_flops",
}
# Before this function was a term, files had it with these arguments and without a mark.
BEFORE_ADDED = "def data_parallel_bytes(numbers, dtype, gradient_dtype, gpus, stage):"
# Ends a line of each stub, and so tells the course's terms from the reader's. Readers' files have
# this text, so it must never change. Files that are older than the stubs have the course's terms
# themselves, each with this text at the end of its first line.
MARK = "# the course's, until yours is right"
# While there are stubs, this call follows `main()` at the end of a file.
SAY = "\n    say_what_is_missing()"
MOST_COLUMNS = 100  # of a line in a stub
WHILE_MISSING = '''

# Until you have written all thirteen terms, the course stands in for those that are missing, if it
# is here. The lines that end in "the course's, until yours is right" call it. With your last term,
# all from here to the first term goes away, and the file needs nothing but Python.

WRITTEN_IN = {
    "1, Floats": ("tensor_bytes",),
    "2, Tensors": ("storage_bytes",),
    "3, Einsum": ("matrices",),
    "4, FLOPs": ("days", "parameters", "forward_flops"),
    "5, Gradients": ("layer_bytes",),
    "6, Optimizers": ("state_bytes",),
    "7, Mixed precision": ("recipe",),
    "8, Checkpointing": ("interval", "lost_share", "step_bytes", "step_flops"),
}


def course(name):
    """The course's term of that name. ValueError if the course is not here."""
    import importlib.util
    import sys
    from pathlib import Path

    if importlib.util.find_spec("course_utils") is None:
        sys.path.append(str(Path(__file__).parent.parent))  # in a clone, the course lies there
    try:
        terms = importlib.import_module("course_utils.core.accountant")
    except ImportError as error:
        raise ValueError(
            "The course is not here, and has to stand in for terms that you have not written: "
            f"{'; '.join(missing())}. Run this beside the course, or write them in its notebooks."
        ) from error
    return getattr(terms, name)


def missing():
    """For each notebook, the terms that are not written yet."""
    found = []
    for notebook, names in WRITTEN_IN.items():
        stubs = []
        for name in names:
            code = getattr(globals().get(name), "__code__", None)
            if code and "course" in code.co_names:  # it calls `course`
                stubs.append(name)
        if stubs:
            found.append(f"{', '.join(stubs)} (notebook {notebook})")
    return found


def say_what_is_missing():
    if missing():
        print("\\nThe course stands in for terms that you have not written yet:")
    for stubs in missing():
        print(f"  {stubs}")
'''


def ours() -> str:
    """Return the file as a workspace gets it at first, with a stub for each of the thirteen terms.

    A stub calls the course's term, until the reader's term is put in its place. What 2026 adds is
    there whole, with MARK at its end.
    """
    text_by_name = {}  # of each statement of the new file
    for name, text in statements(OURS.read_text(encoding="utf-8")).items():
        if name == TERMS[0]:  # before the first stub stand the helpers that all stubs need
            text_by_name |= statements(WHILE_MISSING.rstrip("\n"))
            del text_by_name[""]  # the text after its last statement, which is empty
        text_by_name[name] = text
        if name in TERMS:
            text_by_name[name] = _stub(text, MARK)
        elif name in GENERAL:
            text_by_name[name] = _stub(text, _mark_of(name))
        if name in ADDED:
            text_by_name[name] += f"  {MARK}"
    last_statement = [name for name in text_by_name if name][-1]  # the one that calls `main()`
    text_by_name[last_statement] += SAY
    return together(text_by_name)


def _mark_of(name: str) -> str:
    """Return what ends a line of the stub of that name in GENERAL."""
    return f"# the course's, until your {GENERAL[name]} is right"


def _stub(term: str, mark: str) -> str:
    """Return the term's text up to its docstring, and a call of the course's term.

    `term` is the text of the course's function. The stub of "days" ends in the line
    `return course("days")(flops, gpus, peak, share)` with the mark behind it.
    """
    (function,) = ast.parse(term).body
    docstring = function.body[0]  # each term has one
    head = term.split("\n")[: docstring.end_lineno]
    arguments = ", ".join(argument.arg for argument in function.args.args)
    course_term = f'course("{function.name}")'
    call = f"    return {course_term}({arguments})  {mark}"
    if len(call) > MOST_COLUMNS:
        call = f"    return {course_term}(  {mark}\n        {arguments}\n    )"
    return "\n".join([*head, call])


def together(written: dict[str, str]) -> str:
    """Return a file's text from its statements: the text of each, by its name, in their order.

    `written` is what `statements` has returned, perhaps with some texts changed. Where a term is
    the reader's, its general version is no stub any more. If no term is a stub, the statements of
    WHILE_MISSING are left out, because only stubs need them.
    """
    written = _with_general(written)
    if any(MARK in written.get(name, "") for name in TERMS):
        return "\n".join(written.values())
    # `statements` puts what follows a text's last statement under the name "". WHILE_MISSING has
    # that name, too, but in `written` it is the end of the reader's file, which has to stay.
    only_for_stubs = statements(WHILE_MISSING).keys() - {""}
    stays = []
    for name, text in written.items():
        if name not in only_for_stubs:
            stays.append(text.removesuffix(SAY))  # the file's last statement has this call
    return "\n".join(stays)


def _with_general(written: dict[str, str]) -> dict[str, str]:
    """Return the statements, with the course's text of a stub in GENERAL whose term is theirs."""
    courses = statements(OURS.read_text(encoding="utf-8"))
    result = dict(written)
    for name, term in GENERAL.items():
        is_stub = _mark_of(name) in written.get(name, "")
        if is_stub and is_theirs(written.get(term, MARK)):
            result[name] = courses[name]
    return result


def program_text(path: Path) -> str:
    """Return the text of the file; ValueError, with the reason, if it is unreadable or no Python.

    The caller shows the reason to the reader, behind the file's name.
    """
    try:
        # utf-8-sig also reads a file that an editor has begun with a byte order mark.
        text = path.read_text(encoding="utf-8-sig")
        statements(text)  # raises an error if the text is no Python
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} is no Python, {error.msg}") from error
    except (OSError, ValueError, RecursionError, MemoryError) as error:  # such as a folder
        why = getattr(error, "strerror", None)  # only an OSError has one
        raise ValueError(why or "it cannot be read as Python") from error
    return text


def statements(text: str) -> dict[str, str]:
    """Return each statement's text, with the blank lines and comments above it, by a name.

    The name is that of the function or class, or else the statement's text up to the first "= ",
    such as the left side of an assignment. Names are only compared with each other, so they need
    not look well. A name that is there already has " again" behind it. The text after the last
    statement is under "".
    """
    lines = text.split("\n")
    text_by_name = {}
    begin = 0  # the line, counted from 0, after the statement before
    for node in ast.parse(text).body:
        name = getattr(node, "name", None)
        if not name:  # no function and no class
            name, _, _ = ast.unparse(node).partition("= ")  # up to the first "= ", or all
        while name in text_by_name:
            name += " again"
        if node.end_lineno > begin:  # otherwise it is on the last line of the one before
            text_by_name[name] = "\n".join(lines[begin : node.end_lineno])
            begin = node.end_lineno
    text_by_name[""] = "\n".join(lines[begin:])
    return text_by_name


def theirs(text: str) -> list[str]:
    """Return the names of the terms that the reader has written, the thirteen first."""
    written = statements(text)
    return [name for name in (*TERMS, *ADDED) if is_theirs(written.get(name, MARK))]


def is_theirs(term: str) -> bool:
    """Return whether the reader has written the term of this text: it lacks the course's mark."""
    return MARK not in term and BEFORE_ADDED not in term


def with_term(text: str, name: str, function: str) -> str:
    """Return the file's text, with the text `function` in place of the function of that name.

    ValueError if the file has no such function, or if the new one is called something else.
    """
    written = statements(text)
    former = written.get(name, "")
    begins = re.search(rf"^def {name}\b", former, re.MULTILINE)
    if not begins or BEFORE_ADDED in former:
        raise ValueError(
            f"it has no term {name}. `make lab` brings an old file up to date; or delete it to "
            "begin it anew"
        )
    comments_above = former[: begins.start()]
    written[name] = comments_above + function
    result = together(written)
    if name not in theirs(result):  # the text `function` defines another name
        raise ValueError(f"write it as def {name}(...)")
    return result
