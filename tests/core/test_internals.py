"""Private names of torch are in one module, and were read in the version that is installed."""

import ast

import torch

from course_utils.core.measure import internals
from tests import ROOT

HERE = ROOT / "course_utils" / "core" / "measure" / "internals.py"


def private_names(path):
    """The attributes and imported modules in a file whose name begins with an underscore."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for name in names_of(node):
            if name.startswith("_") and not name.endswith("__"):
                yield name


def names_of(node):
    """The name of an attribute, or each part of the names that are imported."""
    if isinstance(node, ast.Attribute):
        yield node.attr
    if isinstance(node, ast.ImportFrom) and node.module:
        yield from node.module.split(".")
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield from alias.name.split(".")


def defined(path):
    """The functions, classes, variables and attributes that a file defines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


# Methods of os, sys and NamedTuple.
NOT_TORCHS = {"_exit", "_getframe", "_asdict", "_fields", "_make", "_replace"}
# The reader's file, which imports nothing, tells storages apart by `_cdata`. So do its check, what
# draws models anew, and what writes an answer down for its judge: views of one storage have to be
# views of one again.
TELL_STORAGES_APART = (
    "core/accountant.py",
    "chapters/tensors/check.py",
    "chapters/tensors/slips_check.py",
    "engine/judging/drawing.py",
    "stage/grading/wire.py",
)


def test_no_other_module_names_what_torch_keeps_to_itself():
    paths = sorted((ROOT / "course_utils").rglob("*.py"))
    ours = set()
    for path in paths:
        ours.update(defined(path))
    named = {path: set(private_names(path)) - ours - NOT_TORCHS for path in paths}
    for name in TELL_STORAGES_APART:
        named[ROOT / "course_utils" / name].remove("_cdata")
    assert named.pop(HERE) >= {
        "_subclasses",
        "_python_dispatch",
        "_top_saved_tensors_default_hooks",
    }
    assert {path: names for path, names in named.items() if names} == {}
    paths.remove(HERE)
    for path in paths:
        assert "_should_skip_dynamo" not in defined(path)


def test_what_torch_keeps_to_itself_was_read_in_the_version_that_is_installed():
    installed = torch.__version__.split("+")[0]
    assert installed == internals.READ_IN, (
        f"course_utils/core/measure/internals.py was read in torch {internals.READ_IN}, and "
        f"{installed} is installed: read these names again in its source, and in the list of its "
        "operations what counting._PRODUCT refuses; then change READ_IN."
    )
