"""What has no place in an answer's text: the checks, the accountant's functions, ways to the judge.

The text is looked at before any of it runs. An answer with such a thing earns nothing until a
person has looked at it.
"""

import ast
from collections.abc import Collection, Sequence

from course_utils.stage.grading.slicing import Statement

SOLVED = (  # modules that have the right answers, and packages of such modules
    "course_utils.chapters",
    "course_utils.accountant",
    "course_utils.core.accountant",
    "course_utils.engine.judging",
    "course_utils.stage.grading",
)
BY_TORCH = "by_torch"  # a module of a chapter: it has what the accountant's terms are judged by
TERMS_OF = "course_utils.chapters.accountant"
SOLVED_BY_REPAIR = ("loop", "FAULTS", "seen")  # attributes of `repair` that have the answers
# They run a text, or find names by their text: this module sees neither.
REFUSED_CALLS = ("exec", "eval", "compile", "globals")
# By these names, code finds objects that it was not given. No exercise needs one.
REACHING = {
    "_getframe",
    "_current_frames",
    "settrace",
    "setprofile",
    "addaudithook",
    "f_back",
    "f_globals",
    "f_locals",
    "tb_frame",
    "gi_frame",
    "cr_frame",
    "ag_frame",
    "__globals__",
    "__builtins__",
    "__subclasses__",
    "__closure__",
    "__code__",
    "get_objects",
    "get_referrers",
    "get_referents",
    "__import__",
    "import_module",
    "_exit",
    "meta_path",
    "path_hooks",
    "__self__",
    "__wrapped__",
    "__mro__",
    "__bases__",
    "currentframe",
}
REACHING_MODULES = {
    "ctypes",
    "gc",
    "inspect",
    "importlib",
    "builtins",
    "_posixsubprocess",
    "subprocess",
    "multiprocessing",
    "socket",
    "signal",
    "resource",
    "pty",
    "mmap",
    "faulthandler",
    "atexit",
    "runpy",
    "pkgutil",
    "imp",
    "_ctypes",
    "_thread",
    "threading",
    "asyncio",
    "concurrent",
    "cffi",
    "_socket",
    "_signal",
    "posix",
    "fcntl",
    "unittest",
    "dis",
}
MOST = 3  # sentences on one answer
LONGEST_NAME = 60  # characters of a name in such a sentence


def found(
    nodes: Sequence[ast.AST | str], slice_: Sequence[Statement], allowed: Collection[str]
) -> list[str]:
    """Return at most MOST sentences on what has no place in the student's own statements.

    `nodes` are these statements, each as a syntax tree or, if a cell is no Python, as the cell's
    text. `slice_` has all statements that the answer needs, with the course's. The answer may use
    the names in `allowed`.
    """
    forbidden = _of_accountant(slice_) - set(allowed)
    sentences: dict[str, None] = {}  # each sentence once, in order
    for node in nodes:
        if isinstance(node, str):
            continue  # the text is no Python, so it does not run
        for part in ast.walk(node):
            sentence = _sentence(part, forbidden, allowed)
            if sentence:
                sentences[sentence] = None
    return list(sentences)[:MOST]


def may_import(names: Sequence[str], allowed: Collection[str]) -> bool:
    """Whether an answer may import all of these from the accountant.

    A name in capitals is a constant, which every answer may import.
    """
    # Without names, the whole module is imported.
    return bool(names) and all(name in allowed or name.isupper() for name in names)


def _of_accountant(slice_: Sequence[Statement]) -> set[str]:
    """Return the names that the notebook gives to the accountant's functions and to `by_torch`."""
    names = set()
    for statement in slice_:
        if not isinstance(statement.code, ast.ImportFrom):
            continue
        for alias in statement.code.names:
            if statement.code.module == TERMS_OF or alias.name == BY_TORCH:
                names.add(alias.asname or alias.name)
    # Functions alone: not constants, which are in capitals, nor the class Model.
    return {name for name in names if name.islower()}


def _sentence(node: ast.AST, forbidden: Collection[str], allowed: Collection[str]) -> str:
    """Return the sentence on a node of the syntax tree; an empty string if it is allowed."""
    match node:
        case ast.Import(names=names):
            return _on_import([alias.name for alias in names])
        case ast.ImportFrom(module=str(module), names=names):
            return _on_import_from(module, [alias.name for alias in names], allowed)
        case ast.Name(id=name):
            return _on_name(name, forbidden)
        case ast.Attribute():
            return _on_attribute(node)
        case ast.Call(func=ast.Name(id=name)) if name in REFUSED_CALLS:
            return f"It calls {name}."
        case ast.Constant(value=str(text)) if _names_a_solution(text):
            return f"It names {text[:LONGEST_NAME]!r}."
    return ""


def _on_import(names: Sequence[str]) -> str:
    """Return the sentence on an import of these modules; an empty string if all are allowed."""
    for name in names:
        # With dots behind them, so that "course_utils.chapters_of_mine" is none of them.
        is_solved = any(f"{name}.".startswith(f"{solved}.") for solved in SOLVED)
        if is_solved or name.partition(".")[0] in REACHING_MODULES:
            return f"It imports {name[:LONGEST_NAME]}."
    return ""


def _on_import_from(module: str, names: Sequence[str], allowed: Collection[str]) -> str:
    """Return the sentence on an import from a module; an empty string if it is allowed."""
    if module == TERMS_OF and may_import(names, allowed):
        return ""
    # A name that is imported from a package may be a module.
    return _on_import([module, *(f"{module}.{name}" for name in names)])


def _on_name(name: str, forbidden: Collection[str]) -> str:
    """Return the sentence on the use of a name; an empty string if the name is allowed."""
    if name in forbidden:
        return f"It uses {name} of the accountant, or of what judges it."
    if name in REACHING:
        return f"It uses {name}."
    return ""


def _on_attribute(node: ast.Attribute) -> str:
    """Return the sentence on an attribute such as sys.modules; an empty string if it is allowed."""
    name = node.attr
    owner = node.value.id if isinstance(node.value, ast.Name) else ""
    if name in REACHING:
        return f"It uses {name}."
    if owner == "sys" and name == "modules":
        return "It uses sys.modules."
    if owner == "repair" and name in SOLVED_BY_REPAIR:
        return f"It uses repair.{name}, which has the answer."
    if name in ("chapters", "accountant"):  # of any object: the package can have another name
        return f"It uses course_utils.{name}."
    return ""


def _names_a_solution(text: str) -> bool:
    """Whether the text names a module with answers: code could import it, or read it as a file."""
    return any(solved in text for solved in SOLVED) or "accountant.py" in text
