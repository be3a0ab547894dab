"""What in an answer's text has no place in it: the checks, the accountant's terms, and ways to reach into the judge.

It is a look at the text, before any of it runs. An answer with such a thing earns nothing until a person has looked at it.
"""

import ast
from collections.abc import Collection, Iterator, Sequence

from course_utils.stage.grading.slicing import Statement

SOLVED = (
    "course_utils.chapters",
    "course_utils.accountant",
    "course_utils.core.accountant",
    "course_utils.engine.judging",
    "course_utils.stage.grading",
)
BY_TORCH = "by_torch"  # of the chapters: what the accountant's terms are judged by
TERMS_OF = "course_utils.chapters.accountant"
OF_THE_REPAIR_SHOP = ("loop", "FAULTS", "seen")  # attributes of `repair`
# By these, code finds what it was not given. No exercise needs one.
REACHING = {
    *(
        "_getframe",
        "_current_frames",
        "settrace",
        "setprofile",
        "addaudithook",
        "f_back",
        "f_globals",
        "f_locals",
    ),
    *(
        "tb_frame",
        "gi_frame",
        "cr_frame",
        "ag_frame",
        "__globals__",
        "__builtins__",
        "__subclasses__",
        "__closure__",
    ),
    *(
        "__code__",
        "get_objects",
        "get_referrers",
        "get_referents",
        "__import__",
        "import_module",
        "_exit",
    ),
    *("meta_path", "path_hooks", "__self__", "__wrapped__", "__mro__", "__bases__", "currentframe"),
}
REACHING_MODULES = {
    *(
        "ctypes",
        "gc",
        "inspect",
        "importlib",
        "builtins",
        "_posixsubprocess",
        "subprocess",
        "multiprocessing",
    ),
    *(
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
    ),
    *(
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
    ),
}
MOST = 3


def found(
    nodes: Sequence[ast.AST | str], slice_: Sequence[Statement], allowed: Collection[str]
) -> list[str]:
    """A sentence on each such thing in the student's own statements; the answer may use the names in `allowed`."""
    lent = _lent(slice_) - {*allowed}
    said: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, str):
            continue  # no Python: it does not run
        for part in ast.walk(node):
            said.update(dict.fromkeys(_sentences(part, lent, allowed)))
    return [*said][:MOST]


def are_lent(names: Sequence[str], allowed: Collection[str]) -> bool:
    """Whether an answer may import all of these from the accountant; what is in capitals is a number."""
    return bool(names) and all(name in allowed or name.isupper() for name in names)


def _lent(slice_: Sequence[Statement]) -> set[str]:
    """The names under which the notebook has the accountant's own functions."""
    imports = [one.code for one in slice_ if isinstance(one.code, ast.ImportFrom)]
    names = {
        alias.asname or alias.name
        for one in imports
        for alias in one.names
        if one.module == TERMS_OF or alias.name == BY_TORCH
    }
    return {name for name in names if name.islower()}  # what is in capitals is a number


def _sentences(node: ast.AST, lent: Collection[str], allowed: Collection[str]) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from _imports([alias.name for alias in names])
        case ast.ImportFrom(module=str(module), names=names):
            if module == TERMS_OF and are_lent([alias.name for alias in names], allowed):
                return
            yield from _imports([module, *(f"{module}.{alias.name}" for alias in names)])
        case ast.Name(id=name) if name in lent:
            yield f"It uses {name} of the accountant, or of what judges it."
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in REACHING:
            yield f"It uses {name}."
        case ast.Attribute(value=ast.Name(id="sys"), attr="modules"):
            yield "It uses sys.modules."
        case ast.Attribute(value=ast.Name(id="repair"), attr=name) if name in OF_THE_REPAIR_SHOP:
            yield f"It uses repair.{name}, which has the answer."
        case ast.Attribute(attr="chapters" | "accountant" as name):
            yield f"It uses course_utils.{name}."
        case ast.Call(func=ast.Name(id="exec" | "eval" | "compile" | "globals" as name)):
            yield f"It calls {name}."
        case ast.Constant(value=str(text)) if any(
            one in text for one in (*SOLVED, "accountant.py")
        ):
            yield f"It names {text[:60]!r}."


def _imports(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if f"{name}.".startswith(tuple(f"{one}." for one in SOLVED)):
            yield f"It imports {name[:60]}."
            return
        if name.partition(".")[0] in REACHING_MODULES:
            yield f"It imports {name[:60]}."
            return
