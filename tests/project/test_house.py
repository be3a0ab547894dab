"""The house: which part may import which, what a notebook loads, and how long a thing may be."""

import ast
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import torch
from packaging.utils import canonicalize_name

from course_utils.chapters.labs import CHAPTER_OF
from tests import NOTEBOOKS, ROOT
from tests.helpers.lines import IMPORTS, loaded_by, tokens, tokens_of
from tests.helpers.names import defined_in, names_used
from tests.helpers.notebooks import code as cells_with_code
from tests.project.test_project import PYPROJECT, what_a_reader_installs

COURSE = ROOT / "course_utils"
# Each room may import those before it, with one exception: the engine imports no subjects, because
# how something is judged or drawn does not depend on what it is. Nothing imports the stage.
ROOMS = ("core", "subjects", "engine", "chapters", "stage")

# What each part imports of the course and from outside; the standard library is free to all. A part
# is a module or a folder of a room. An import that a part no longer needs has to leave the table.
MAY_IMPORT = {
    "core.accountant": set(),
    "core.accountant_file": set(),
    "core.colours": set(),
    "core.datasheets": {"core.say"},
    "core.einsums": {"core.say"},
    "core.floats": set(),
    "core.keeping": {"core.accountant_file", "core.record", "core.say"},
    "core.layout": {"torch"},
    "core.measure": {"ml_dtypes", "numpy", "psutil", "torch", "core.say"},
    "core.predict": {
        "core.accountant",
        "core.datasheets",
        "core.einsums",
        "core.floats",
        "core.say",
    },
    "core.record": {"core.say"},
    "core.say": {"core.colours"},
    "subjects.checkpoints": {"torch", "core.say"},
    "subjects.child_processes": {
        "torch",
        "core.accountant",
        "core.einsums",
        "core.measure",
        "core.predict",
        "core.say",
        "subjects.models",
    },
    "subjects.machines": {
        "torch",
        "core.accountant",
        "core.datasheets",
        "core.measure",
        "core.predict",
        "core.record",
        "core.say",
        "subjects.child_processes",
    },
    "subjects.models": {"einops", "jaxtyping", "torch", "core.accountant", "core.predict"},
    "subjects.reported": {"core.datasheets", "core.predict", "core.say"},
    "subjects.training": {
        "jaxtyping",
        "numpy",
        "torch",
        "core.floats",
        "core.measure",
        "core.predict",
        "core.say",
        "subjects.models",
    },
    "engine.figures": {"PIL", "matplotlib", "core.colours", "core.say"},
    "engine.guessing": {
        "IPython",
        "anywidget",
        "traitlets",
        "core.colours",
        "core.record",
        "core.say",
    },
    "engine.judging": {
        "IPython",
        "numpy",
        "torch",
        "core.accountant",
        "core.colours",
        "core.keeping",
        "core.record",
        "core.say",
    },
    "engine.labs": {
        "anywidget",
        "ipywidgets",
        "matplotlib",
        "resvg_py",
        "traitlets",
        "core.colours",
        "core.measure",
        "core.record",
        "core.say",
        "engine.figures",
    },
    "chapters.accountant": {
        "IPython",
        "torch",
        "core.accountant",
        "core.accountant_file",
        "core.keeping",
        "core.record",
        "core.say",
        "engine.judging",
    },
    "chapters.by_torch": {
        "torch",
        "core.accountant",
        "core.measure",
        "core.predict",
        "core.say",
        "subjects.models",
    },
    "chapters.figures": set(),
    "chapters.labs": {"engine.labs"},
    "chapters.small_models": {"core.accountant", "core.predict", "core.say"},
    "chapters.floats": {
        "matplotlib",
        "torch",
        "core.accountant",
        "core.floats",
        "core.measure",
        "core.record",
        "core.say",
        "engine.figures",
        "engine.guessing",
        "engine.judging",
        "engine.labs",
    },
    "chapters.tensors": {"torch", "core.say", "engine.judging", "engine.labs"},
    "chapters.einsum": {
        "einops",
        "jaxtyping",
        "matplotlib",
        "torch",
        "core.accountant",
        "core.einsums",
        "core.measure",
        "core.predict",
        "core.say",
        "subjects.child_processes",
        "subjects.machines",
        "engine.figures",
        "engine.judging",
        "engine.labs",
        "chapters.by_torch",
        "chapters.small_models",
    },
    "chapters.flops": {
        "matplotlib",
        "torch",
        "core.accountant",
        "core.datasheets",
        "core.measure",
        "core.predict",
        "core.record",
        "core.say",
        "subjects.child_processes",
        "subjects.machines",
        "subjects.models",
        "engine.figures",
        "engine.judging",
        "engine.labs",
        "chapters.by_torch",
        "chapters.small_models",
    },
    "chapters.gradients": {
        "einops",
        "matplotlib",
        "torch",
        "core.accountant",
        "core.colours",
        "core.datasheets",
        "core.measure",
        "core.predict",
        "core.say",
        "subjects.child_processes",
        "engine.figures",
        "engine.judging",
        "engine.labs",
        "chapters.by_torch",
        "chapters.small_models",
    },
    "chapters.optimizers": {
        "matplotlib",
        "torch",
        "core.accountant",
        "core.measure",
        "core.predict",
        "core.say",
        "subjects.models",
        "subjects.training",
        "engine.figures",
        "engine.judging",
        "engine.labs",
    },
    "chapters.mixed_precision": {
        "matplotlib",
        "torch",
        "core.floats",
        "core.measure",
        "core.predict",
        "core.say",
        "subjects.models",
        "subjects.training",
        "engine.figures",
        "engine.judging",
        "engine.labs",
    },
    "chapters.checkpointing": {
        "einops",
        "jaxtyping",
        "matplotlib",
        "torch",
        "core.accountant",
        "core.accountant_file",
        "core.datasheets",
        "core.predict",
        "core.record",
        "core.say",
        "subjects.models",
        "subjects.training",
        "engine.figures",
        "engine.judging",
        "engine.labs",
        "chapters.accountant",
        "chapters.by_torch",
        "chapters.gradients",
        "chapters.small_models",
    },
    "stage.colab": {"google", "core.accountant_file", "core.record"},
    "stage.front": {
        "jinja2",
        "markupsafe",
        "core.accountant_file",
        "core.colours",
        "core.predict",
        "core.say",
        "chapters.gradients",
    },
    "stage.grading": {
        "jinja2",
        "numpy",
        "psutil",
        "torch",
        "core.accountant",
        "core.colours",
        "core.measure",
        "core.record",
        "core.say",
        "engine.judging",
        "chapters",
        "chapters.mixed_precision",
        "stage.notebook",
        "stage.workspace",
    },
    "stage.hub": {
        "jupyterhub",
        "tornado",
        "traitlets",
        "stage.poll",
        "stage.present",
        "stage.workspace",
    },
    "stage.kernel": {"IPython", "core.say", "engine.judging"},
    "stage.notebook": {"core.record", "core.say"},
    "stage.pages": {
        "nbconvert",
        "nbformat",
        "pygments",
        "core.say",
        "engine.guessing",
        "engine.labs",
        "chapters.labs",
        "chapters.flops",
        "chapters.mixed_precision",
        "stage.front",
        "stage.notebook",
        "stage.recall",
        "stage.slides",
        "stage.translations",
        "stage.workspace",
    },
    "stage.poll": {"segno", "tornado", "core.say"},
    "stage.recall": {
        "genanki",
        "jinja2",
        "markupsafe",
        "core.accountant",
        "core.floats",
        "core.predict",
        "core.record",
        "core.say",
        "stage.notebook",
        "stage.translations",
    },
    "stage.present": {
        "IPython",
        "jupyterlab",
        "jupyterlab_server",
        "nbformat",
        "core.say",
        "engine.guessing",
        "stage.notebook",
        "stage.recall",
        "stage.translations",
        "stage.workspace",
    },
    "stage.slides": {
        "matplotlib",
        "nbconvert",
        "nbformat",
        "pygments",
        "core.say",
        "engine.labs",
        "chapters.labs",
        "stage.notebook",
        "stage.present",
        "stage.translations",
        "stage.workspace",
    },
    "stage.translations": {
        "IPython",
        "jinja2",
        "polib",
        "core.record",
        "core.say",
        "chapters.labs",
        "stage.notebook",
    },
    "stage.workspace": {
        "jinja2",
        "jupyter_core",
        "jupyter_server",
        "jupyterlab",
        "markupsafe",
        "nbformat",
        "tornado",
        "core.accountant_file",
        "core.keeping",
        "core.record",
        "core.say",
        "engine.guessing",
        "stage.front",
        "stage.notebook",
        "stage.recall",
        "stage.translations",
    },
}


def test_the_rooms_are_these_and_the_table_has_each_of_their_parts():
    # Only Python files count, since an older version of the course can leave empty folders behind.
    tops = {path.relative_to(COURSE).parts[0] for path in COURSE.rglob("*.py")}
    assert tops == {"__init__.py", *ROOMS}
    parts = set()
    for room in ROOMS:
        parts.update(part_of(path) for path in (COURSE / room).rglob("*.py"))
    assert parts - set(ROOMS) == set(MAY_IMPORT)


def test_each_part_has_its_row_in_contributing_in_the_order_of_the_rooms():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[`(\w+\.\w+)`\]\(course_utils/(\S+)\) \| \S", page, re.MULTILINE)
    assert sorted(part for part, _ in rows) == sorted(MAY_IMPORT)
    for part, path in rows:
        without_suffix, _, _ = path.partition(".")
        assert part == without_suffix.replace("/", ".")
    places = [ROOMS.index(part.partition(".")[0]) for part, _ in rows]
    assert places == sorted(places)


def part_of(path: Path) -> str:
    """The part to which a file belongs, like "core.floats"; a room's `__init__` is the room's."""
    room, name, *_ = path.relative_to(COURSE).with_suffix("").parts
    if name == "__init__":
        return room
    return f"{room}.{name}"


def imported(path: Path) -> set[str]:
    """The course's parts, and the packages from outside, that a file imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(part_or_package(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(part_or_package(f"{node.module}.{alias.name}") for alias in node.names)
    return found - sys.stdlib_module_names


def part_or_package(name: str) -> str:
    """What a dotted name is imported from: "core.floats", or "torch"."""
    package, *inside = name.split(".")
    if package == "course_utils":
        return ".".join(inside[:2])
    return package


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_a_part_imports_what_the_table_says_and_nothing_in_it_is_stale(part):
    folder = COURSE / part.replace(".", "/")
    paths = folder.rglob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]
    found = set().union(*(imported(path) for path in paths))
    assert found - {part} == MAY_IMPORT[part]


def test_no_part_needs_itself_and_each_room_only_those_before_it():
    ours = {}
    for part, needs in MAY_IMPORT.items():
        ours[part] = {needed for needed in needs if room_of(needed) in ROOMS}
    list(TopologicalSorter(ours).static_order())  # it raises an error if there is a circle
    for part, needs in ours.items():
        room = room_of(part)
        allowed = set(ROOMS[: ROOMS.index(room) + 1])
        if room == "engine":
            allowed.remove("subjects")
        assert {room_of(needed) for needed in needs} <= allowed, part


def room_of(part: str) -> str:
    room, _, _ = part.partition(".")
    return room


# What is loaded.


def loaded_after(code: str) -> set[str]:
    """All modules that a new Python process has loaded once it has run this code."""
    code = f"import sys; {code}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_what_is_computed_from_shapes_alone_loads_nothing_heavy():
    core = ("say", "floats", "datasheets", "einsums", "predict", "accountant")
    names = [f"course_utils.core.{name}" for name in core]
    names.append("course_utils.subjects.reported")
    loaded = loaded_after(f"import {', '.join(names)}")
    assert set(names) <= loaded
    assert not {"torch", "numpy", "matplotlib", "ipywidgets"} & loaded


def test_labs_checks_and_counts_wait_with_what_they_may_never_need():
    checks = [f"course_utils.chapters.{chapter}.check" for chapter in set(CHAPTER_OF.values())]
    lines = [
        f"import {', '.join(checks)}",
        "from course_utils import figures, labs, measure, training",
        "import torch",
        "layer = torch.nn.Linear(2, 2)",
        "count = lambda: layer(torch.ones(2, 2)).sum()",
        "measure.flops(count)",
        "measure.allocated_bytes(count)",
        "measure.saved_bytes(count)",
        "labs.float_lab()",
    ]
    loaded = loaded_after("; ".join(lines))
    assert {"torch", "course_utils.chapters.labs", "course_utils.chapters.figures"} <= loaded
    compiler = {"torch._dynamo", "torch._inductor", "sympy"}  # takes as long again as torch itself
    not_needed = {"matplotlib.pyplot", "pandas", "scipy", "torch.distributed.checkpoint"}
    assert loaded & (compiler | not_needed) == set()
    assert [name for name in loaded if name.startswith("course_utils.stage")] == []


# Sizes are counted in tokens, because a ceiling in lines once led to dense lines. These ceilings
# were set when a line of ours had eleven tokens; a plain line has fewer than nine. The accountant
# is not counted: it is what readers write and take along, and grows with what people train.
TOKENS_OF_A_LINE = 11
ACCOUNTANT = COURSE / "core/accountant.py"
ACCOUNTANT_ONCE = 4637  # its tokens while the ceilings below still included it


def test_the_core_that_all_notebooks_load_is_small_and_what_notebook_2_loads_is_little_more():
    loaded = loaded_by(NOTEBOOKS)
    by_all = set.intersection(*loaded.values())
    assert ACCOUNTANT in by_all
    size_of_core = tokens_together(by_all - {ACCOUNTANT})
    assert 10_000 < size_of_core <= 2745 * TOKENS_OF_A_LINE - ACCOUNTANT_ONCE
    by_notebook_2 = tokens_together(loaded[NOTEBOOKS[1]] - {ACCOUNTANT})
    assert by_notebook_2 <= 3100 * TOKENS_OF_A_LINE - ACCOUNTANT_ONCE


def tokens_together(modules: Iterable[Path]) -> int:
    return sum(tokens(path) for path in modules)


def sources_of_all_cells() -> list[str]:
    return [cell.source for path in NOTEBOOKS for cell in cells_with_code(path)]


def test_what_parts_and_notebooks_import_is_what_a_reader_installs():
    """Only a hub has JupyterHub, only Colab the module `google`, and only `make cards` genanki."""
    used = set().union(*(needs for part, needs in MAY_IMPORT.items() if part != "stage.hub"))
    outside = {name for name in used if room_of(name) not in ROOMS} - {"google", "genanki"}
    cells = "\n".join(sources_of_all_cells())
    named = re.findall(r"^(?:import|from) (\w+)", cells, re.MULTILINE)
    outside |= set(named) - sys.stdlib_module_names - {"course_utils"}
    assert {"torch", "beartype", "anywidget"} < outside
    packages = importlib.metadata.packages_distributions()
    installed = what_a_reader_installs()
    missing = {name for name in outside if canonicalize_name(packages[name][0]) not in installed}
    assert missing == set(), (
        "Add it to `dependencies` in pyproject.toml; a test's own goes to the extra `test`."
    )


WITHOUT_STAGE = """
for name in labs.NAMES:
    lab = labs.lab_named(name)
    asked = lab.asks()
    assert "<" in lab.view(asked, lab.known(asked, lab.found)).picture
for name in figures.__all__:
    getattr(figures, name)
"""


def test_without_the_stage_every_notebooks_imports_all_figures_and_all_labs_load():
    """Here one process imports all; `make without-stage` also runs the notebooks, from a wheel."""
    imports = []
    for source in sources_of_all_cells():
        imports += IMPORTS.findall(source)
    each_once = list(dict.fromkeys(imports))
    assert len(each_once) > 20
    no_stage = [
        "import sys",
        "sys.modules['course_utils.stage'] = None",  # importing it fails after this line
    ]
    labs_too = "from course_utils import figures, labs"
    code = "\n".join([*no_stage, *each_once, labs_too, WITHOUT_STAGE])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_annotations_are_enforced_in_every_module_that_sees_tensors():
    from course_utils.core import layout
    from course_utils.subjects import models

    with pytest.raises(Exception, match="violates type hint"):
        layout.owned_bytes(3)
    with pytest.raises(Exception, match="Type-check error"):
        models.Linear(2, 3)(torch.ones(2, dtype=torch.int64))
    options = PYPROJECT["tool"]["pytest"]["ini_options"]["addopts"]
    (option,) = (option for option in options if "jaxtyping" in option)
    _, _, packages = option.partition("=")
    checked = [package.replace(".", "/") for package in packages.split(",")]
    unchecked = []
    for path in COURSE.rglob("*.py"):
        name = path.relative_to(ROOT).with_suffix("").as_posix()
        if "torch" not in imported(path) or is_of_labs(name):
            continue
        if not any(f"{name}/".startswith(f"{package}/") for package in checked):
            unchecked.append(name)
    assert unchecked == []


def is_of_labs(module: str) -> bool:
    """Labs are checked by tests/engine/test_labs_contract.py."""
    return "_lab/" in module or module.startswith("course_utils/engine/labs")


# How long it is.

# The course shows this file as a whole program, so it is as long as plainness needs.
ONE_FILE = "core/accountant.py"
MOST_OF_A_FUNCTION = 40  # lines
MOST_OF_A_MODULE = 400  # lines
MOST_OF_A_CHECK = 45 * TOKENS_OF_A_LINE
# When it was set, the densest lab had twelve tokens a line. The last 50 lines are for sentences,
# which are whole templates with named gaps.
MOST_OF_A_LAB = 400 * 12
LONGER_FUNCTIONS = {
    "core/accountant.py: parser": "it has one call for each option, and their help",
    "core/predict/timeline.py: timeline": "half of it are the options of a step and what they mean",
    "core/predict/training.py: days_by_part": (
        "half of it says what each part of the estimate assumes"
    ),
    "subjects/child_processes/transformers.py: step_moments": (
        "half of it are the options of a step and what they mean"
    ),
}


def test_a_function_and_a_module_can_be_read_in_one_sitting():
    longer_functions = set()
    longer_modules = []
    for path in sorted(COURSE.rglob("*.py")):
        name = path.relative_to(COURSE).as_posix()
        text = path.read_text(encoding="utf-8")
        for function in functions_in(text):
            lines = function.end_lineno - function.lineno + 1
            if lines > MOST_OF_A_FUNCTION:
                longer_functions.add(f"{name}: {function.name}")
        if len(text.splitlines()) > MOST_OF_A_MODULE:
            longer_modules.append(name)
    assert longer_functions == set(LONGER_FUNCTIONS)
    assert [name for name in longer_modules if name != ONE_FILE] == []


def functions_in(text: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


LONGER_CHECKS = {
    "checkpointing.write_whole": (
        "it watches the folder at each moment of a save, with an error at each place"
    ),
    "gradients.accumulated": (
        "it judges gradients, and what is kept at one time, in four ways to part a batch"
    ),
    "optimizers.adamw_step": "fourteen tempting ways to write seven arguments into one step",
}


def checks_of(path: Path) -> dict[str, int]:
    """The tokens of each check of a module, including functions that no other check uses."""
    sizes = tokens_of(path)
    nodes = {name: node for name, node in defined_in(path).items() if name in sizes}
    checks = {name for name, node in nodes.items() if is_check(node)}
    uses = {}
    for name, node in nodes.items():
        uses[name] = names_used(ast.unparse(node)) & nodes.keys() - {name}
    needs = {name: reach(name, uses) for name in checks}
    found = {}
    for name in checks:
        of_others = set().union(*(needs[other] for other in checks - {name}))
        its_own = needs[name] - of_others - checks
        found[name] = sizes[name] + sum(sizes[helper] for helper in its_own)
    return found


def is_check(node: ast.stmt) -> bool:
    """Whether one of the decorators that make a check is called above it."""
    for decorator in getattr(node, "decorator_list", ()):
        called = getattr(decorator, "func", None)
        if isinstance(called, ast.Name) and called.id in ("value", "function", "objection"):
            return True
    return False


def reach(name: str, uses: dict[str, set[str]]) -> set[str]:
    """All functions that this one uses, directly or by others."""
    found = set()
    to_look_at = [name]
    while to_look_at:
        new = uses[to_look_at.pop()] - found
        found |= new
        to_look_at += new
    return found


def test_a_check_is_short_with_all_that_it_alone_needs():
    sizes = {}
    for path in (COURSE / "chapters").rglob("*check.py"):
        for name, size in checks_of(path).items():
            sizes[f"{path.parent.name}.{name}"] = size
    assert len(sizes) > 20
    longer = {name for name, size in sizes.items() if size > MOST_OF_A_CHECK}
    assert longer == set(LONGER_CHECKS)


def test_a_lab_says_one_thing_and_its_folder_is_as_short():
    for name, chapter in CHAPTER_OF.items():
        folder = COURSE / "chapters" / chapter / f"{name}_lab"
        size = tokens_together(folder.rglob("*.py"))
        assert 0 < size <= MOST_OF_A_LAB, folder
