"""What torch keeps to itself is named in one module, and was read in the version that is installed."""

import ast

import torch

from course_utils.core.measure import internals
from tests import ROOT

HERE = ROOT / "course_utils" / "core" / "measure" / "internals.py"


def private_names(path):
    """Names with one underscore in front that no file of the course defines, and modules of that kind that are imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = f"{getattr(node, 'module', None) or ''}."
            names = [part for alias in node.names for part in f"{origin}{alias.name}".split(".")]
            yield from (name for name in names if name.startswith("_") and name != "__future__")
        elif (
            isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.endswith("__")
        ):
            yield node.attr


def defined(path):
    """What this file itself calls so: functions, classes, variables and attributes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def test_no_other_module_names_what_torch_keeps_to_itself():
    paths = sorted((ROOT / "course_utils").rglob("*.py"))
    ours = {name for path in paths for name in defined(path)}
    others = {
        "_exit",
        "_getframe",
        "_asdict",
        "_fields",
        "_make",
        "_replace",
    }  # of os, sys and NamedTuple
    named = {path: set(private_names(path)) - ours - others for path in paths}
    # The reader's file, which imports nothing, tells storages apart by it. So do its check, what draws models anew, and
    # what writes an answer down for its judge: views of one storage have to be views of one again.
    apart = (
        "core/accountant.py",
        "chapters/tensors/check.py",
        "engine/judging/drawing.py",
        "stage/grading/wire.py",
    )
    for name in apart:
        named[ROOT / "course_utils" / name].remove("_cdata")
    assert named.pop(HERE) >= {
        "_subclasses",
        "_python_dispatch",
        "_top_saved_tensors_default_hooks",
    }
    assert {name: found for name, found in named.items() if found} == {}
    assert not any("_should_skip_dynamo" in defined(path) for path in paths if path != HERE)


def test_what_torch_keeps_to_itself_was_read_in_the_version_that_is_installed():
    installed = torch.__version__.split("+")[0]
    assert installed == internals.READ_IN, (
        f"course_utils/core/measure/internals.py was read in torch {internals.READ_IN}, and {installed} is installed: read these "
        "names again in its source, and in the list of its operations what counting._PRODUCT refuses; then "
        "change READ_IN."
    )
