"""The house: which part may import which, what a notebook loads, and how long a thing may be."""

import ast
import importlib.metadata
import re
import subprocess
import sys
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
# Each may import those before it, but the engine no subjects: how something is judged or drawn has nothing to do with
# what it is. Nothing imports the stage.
ROOMS = ("core", "subjects", "engine", "chapters", "stage")

# What each part imports: of the course, and from outside (the standard library is free to all). A part is a module or a
# folder of a room. What is not imported any more is not allowed any more.
MAY_IMPORT = {
    "core.accountant": set(),
    "core.accountant_file": set(),
    "core.datasheets": {"core.say"},
    "core.einsums": set(),
    "core.floats": set(),
    "core.keeping": {"core.accountant_file", "core.record"},
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
    "core.say": set(),
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
    "engine.figures": {"PIL", "matplotlib", "core.say"},
    "engine.judging": {
        "IPython",
        "numpy",
        "torch",
        "core.accountant",
        "core.keeping",
        "core.record",
        "core.say",
        "engine.figures",
    },
    "engine.labs": {
        "anywidget",
        "ipywidgets",
        "matplotlib",
        "resvg_py",
        "traitlets",
        "core.measure",
        "core.record",
        "core.say",
        "engine.figures",
    },
    "chapters.accountant": {
        "IPython",
        "core.accountant",
        "core.accountant_file",
        "core.keeping",
        "core.record",
        "engine.judging",
    },
    "chapters.by_torch": {
        "torch",
        "core.accountant",
        "core.measure",
        "core.say",
        "subjects.models",
    },
    "chapters.figures": set(),
    "chapters.labs": {"engine.labs"},
    "chapters.small_models": {"core.accountant"},
    "chapters.floats": {
        "matplotlib",
        "torch",
        "core.accountant",
        "core.floats",
        "core.measure",
        "core.say",
        "engine.figures",
        "engine.judging",
        "engine.labs",
    },
    "chapters.tensors": {"torch", "core.say", "engine.judging", "engine.labs"},
    "chapters.einsum": {
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
        "torch",
        "core.accountant",
        "core.measure",
        "core.predict",
        "core.say",
        "subjects.models",
        "subjects.training",
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
        "jaxtyping",
        "matplotlib",
        "torch",
        "core.accountant",
        "core.accountant_file",
        "core.datasheets",
        "core.predict",
        "core.say",
        "subjects.models",
        "subjects.training",
        "engine.figures",
        "engine.judging",
        "engine.labs",
        "chapters.accountant",
        "chapters.by_torch",
        "chapters.small_models",
    },
    "stage.colab": {"google", "core.accountant_file", "core.record"},
    "stage.grading": {
        "jinja2",
        "numpy",
        "psutil",
        "torch",
        "core.accountant",
        "core.measure",
        "core.record",
        "core.say",
        "engine.figures",
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
    "stage.kernel": {"IPython"},
    "stage.notebook": {"core.record", "core.say"},
    "stage.pages": {
        "nbconvert",
        "nbformat",
        "pygments",
        "core.say",
        "engine.labs",
        "chapters.labs",
        "chapters.flops",
        "chapters.mixed_precision",
        "stage.notebook",
        "stage.slides",
        "stage.workspace",
    },
    "stage.poll": {"segno", "tornado"},
    "stage.present": {
        "IPython",
        "jupyterlab",
        "jupyterlab_server",
        "nbformat",
        "core.say",
        "stage.notebook",
        "stage.workspace",
    },
    "stage.slides": {
        "matplotlib",
        "nbconvert",
        "nbformat",
        "pygments",
        "engine.labs",
        "chapters.labs",
        "stage.notebook",
        "stage.present",
        "stage.workspace",
    },
    "stage.workspace": {
        "jinja2",
        "jupyter_core",
        "jupyter_server",
        "jupyterlab",
        "markupsafe",
        "tornado",
        "core.accountant_file",
        "core.record",
        "core.say",
        "stage.notebook",
    },
}


def test_the_rooms_are_these_and_the_table_has_each_of_their_parts():
    # A folder that is left of an earlier course has no Python in it.
    tops = {path.relative_to(COURSE).parts[0] for path in COURSE.rglob("*.py")}
    assert tops == {"__init__.py", *ROOMS}
    parts = {part_of(path) for room in ROOMS for path in (COURSE / room).rglob("*.py")} - {*ROOMS}
    assert parts == set(MAY_IMPORT)


def test_each_part_has_its_row_in_contributing_in_the_order_of_the_rooms():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[`(\w+\.\w+)`\]\(course_utils/(\S+)\) \| \S", page, re.MULTILINE)
    assert sorted(part for part, _ in rows) == sorted(MAY_IMPORT)
    assert [part for part, path in rows if part != path.partition(".")[0].replace("/", ".")] == []
    places = [ROOMS.index(part.partition(".")[0]) for part, _ in rows]
    assert places == sorted(places)


def part_of(path: Path) -> str:
    """The part to which a file belongs: "core.floats"; of a room's own `__init__`, the room."""
    room, *rest = path.relative_to(COURSE).with_suffix("").parts
    return room if rest[0] == "__init__" else f"{room}.{rest[0]}"


def imported(path: Path) -> set[str]:
    """The course's parts, and the packages from outside, that a file imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute here"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in found]
    return {
        ".".join(p[1:3]) if p[0] == "course_utils" else p[0] for p in parts
    } - sys.stdlib_module_names


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_a_part_imports_what_the_table_says_and_nothing_in_it_is_stale(part):
    folder = COURSE / part.replace(".", "/")
    paths = folder.rglob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]
    assert set().union(*map(imported, paths)) - {part} == MAY_IMPORT[part]


def test_no_part_needs_itself_and_each_room_only_those_before_it():
    ours = {
        part: {one for one in needs if one.partition(".")[0] in ROOMS}
        for part, needs in MAY_IMPORT.items()
    }
    list(TopologicalSorter(ours).static_order())  # a circle would stop it
    for part, needs in ours.items():
        room = part.partition(".")[0]
        allowed = {*ROOMS[: ROOMS.index(room) + 1]}
        if room == "engine":
            allowed.remove("subjects")
        assert {one.partition(".")[0] for one in needs} <= allowed, part


# What is loaded.


def loaded_after(code: str) -> set[str]:
    """All modules that a fresh Python has loaded when it has run that."""
    code = f"import sys; {code}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_what_is_computed_from_shapes_alone_loads_nothing_heavy():
    names = ("say", "floats", "datasheets", "einsums", "predict", "accountant")
    names = [*(f"course_utils.core.{name}" for name in names), "course_utils.subjects.reported"]
    loaded = loaded_after(f"import {', '.join(names)}")
    assert {*names} <= loaded
    assert not {"torch", "numpy", "matplotlib", "ipywidgets"} & loaded


def test_labs_checks_and_counts_wait_with_what_they_may_never_need():
    checks = [f"course_utils.chapters.{chapter}.check" for chapter in {*CHAPTER_OF.values()}]
    named = f"import {', '.join(checks)}; from course_utils import figures, labs, measure, training"
    counted = (
        "import torch; layer = torch.nn.Linear(2, 2); count = lambda: layer(torch.ones(2, 2)).sum()"
    )
    used = f"{counted}; measure.flops(count); measure.allocated_bytes(count); measure.saved_bytes(count)"
    loaded = loaded_after(f"{named}; {used}; labs.float_lab()")
    assert {"torch", "course_utils.chapters.labs", "course_utils.chapters.figures"} <= loaded
    compiler = {"torch._dynamo", "torch._inductor", "sympy"}  # as long again as torch itself
    processes = {"torch.distributed.checkpoint"}
    stage = {name for name in loaded if name.startswith("course_utils.stage")}
    assert (
        {"matplotlib.pyplot", "pandas", "scipy"} | compiler | processes | stage
    ) & loaded == set()


# Sizes are counted in tokens. A ceiling in lines would be paid for with density, as one was: these ceilings were set
# when a line of ours had eleven tokens, and a plain line has fewer than nine.
TOKENS_OF_A_LINE = 11


def test_the_core_that_all_notebooks_load_is_small_and_what_notebook_2_loads_is_little_more():
    loaded = loaded_by(NOTEBOOKS)
    by_all = set.intersection(*loaded.values())
    assert 10_000 < sum(map(tokens, by_all)) <= 2600 * TOKENS_OF_A_LINE
    assert sum(map(tokens, loaded[NOTEBOOKS[1]])) <= 2900 * TOKENS_OF_A_LINE


def test_what_parts_and_notebooks_import_is_what_a_reader_installs():
    """All but a hub's own, which has JupyterHub, and Colab's, which has a module of Google's."""
    used = set().union(*(needs for part, needs in MAY_IMPORT.items() if part != "stage.hub"))
    outside = {name for name in used if name.partition(".")[0] not in ROOMS} - {"google"}
    cells = [cell for path in NOTEBOOKS for cell in cells_with_code(path)]
    lines = [line for cell in cells for line in cell.source.splitlines()]
    named = re.findall(r"^(?:import|from) (\w+)", "\n".join(lines), re.MULTILINE)
    outside |= {*named} - sys.stdlib_module_names - {"course_utils"}
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
    """In one process; `make without-stage` runs the notebooks themselves, from a wheel without it."""
    cells = [cell for path in NOTEBOOKS for cell in cells_with_code(path)]
    lines = {line: None for cell in cells for line in IMPORTS.findall(cell.source)}
    assert len(lines) > 20
    no_stage = (
        "import sys",
        "sys.modules['course_utils.stage'] = None",
    )  # so that importing it fails
    code = "\n".join([*no_stage, *lines, "from course_utils import figures, labs", WITHOUT_STAGE])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_annotations_are_enforced_in_every_module_that_sees_tensors():
    from course_utils.core import layout
    from course_utils.subjects import models

    with pytest.raises(Exception, match="violates type hint"):
        layout.owned_bytes(3)
    with pytest.raises(Exception, match="Type-check error"):
        models.Linear(2, 3)(torch.ones(2, dtype=torch.int64))
    (option,) = [
        one for one in PYPROJECT["tool"]["pytest"]["ini_options"]["addopts"] if "jaxtyping" in one
    ]
    checked = [name.replace(".", "/") for name in option.partition("=")[2].split(",")]
    unchecked = []
    for path in COURSE.rglob("*.py"):
        name = path.relative_to(ROOT).with_suffix("").as_posix()
        in_a_lab = "_lab/" in name or name.startswith(
            "course_utils/engine/labs"
        )  # see tests/engine/test_labs_contract.py
        if (
            "torch" in imported(path)
            and not in_a_lab
            and not any(f"{name}/".startswith(f"{one}/") for one in checked)
        ):
            unchecked.append(name)
    assert unchecked == []


# How long it is.


ONE_FILE = (
    "core/accountant.py"  # what the course shows: a whole program, as long as plainness needs
)
MOST_OF_A_FUNCTION = 40  # lines
MOST_OF_A_MODULE = 400  # lines
MOST_OF_A_CHECK = 45 * TOKENS_OF_A_LINE
MOST_OF_A_LAB = 350 * 12  # the densest lab had lines of twelve
LONGER_FUNCTIONS = {
    "core/accountant.py: model_from": "it reads all fields of a config, one after the other",
    "core/predict/timeline.py: timeline": "half of it are the options of a step and what they mean",
    "core/predict/training.py: days_by_part": "half of it says what each part of the estimate assumes",
    "subjects/child_processes/transformers.py: step_moments": "half of it are the options of a step and what they mean",
}


def test_a_function_and_a_module_can_be_read_in_one_sitting():
    longer, too_long = set(), {}
    for path in sorted(COURSE.rglob("*.py")):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(COURSE).as_posix()
        for one in ast.walk(ast.parse(text)):
            is_function = isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and one.end_lineno - one.lineno + 1 > MOST_OF_A_FUNCTION:
                longer.add(f"{name}: {one.name}")
        if len(text.splitlines()) > MOST_OF_A_MODULE and name != ONE_FILE:
            too_long[name] = len(text.splitlines())
    assert longer == {*LONGER_FUNCTIONS}
    assert too_long == {}


LONGER_CHECKS = {
    "checkpointing.write_whole": "it watches the folder at each moment of a save, with an error at each place",
    "gradients.accumulated": "it judges gradients, and what is kept at one time, in four ways to part a batch",
    "optimizers.adamw_step": "fourteen tempting ways to write seven arguments into one step",
}


def checks_of(path: Path) -> dict[str, int]:
    """The tokens of each check of a module, with the functions that it alone uses."""
    lines = tokens_of(path)
    nodes = {name: node for name, node in defined_in(path).items() if name in lines}
    checks = {
        name
        for name, node in nodes.items()
        if {"value", "function", "objection"} & decorators(node)
    }
    uses = {name: names_used(ast.unparse(node)) & {*nodes} - {name} for name, node in nodes.items()}
    reached = {name: reach(name, uses) for name in checks}
    found = {}
    for name, needs in reached.items():
        of_others = set().union(*(more for other, more in reached.items() if other != name))
        found[name] = lines[name] + sum(lines[one] for one in needs - of_others - checks)
    return found


def decorators(node: ast.stmt) -> set[str]:
    """The names of the functions that decorate it."""
    calls = [one.func for one in getattr(node, "decorator_list", ()) if isinstance(one, ast.Call)]
    return {one.id for one in calls if isinstance(one, ast.Name)}


def reach(name: str, uses: dict[str, set[str]]) -> set[str]:
    """All that it uses, and what these use."""
    found, to_look_at = set(), [name]
    while to_look_at:
        new = uses[to_look_at.pop()] - found
        found |= new
        to_look_at += new
    return found


def test_a_check_is_short_with_all_that_it_alone_needs():
    lines = {
        f"{path.parent.name}.{name}": many
        for path in (COURSE / "chapters").rglob("*check.py")
        for name, many in checks_of(path).items()
    }
    assert len(lines) > 20
    assert {name for name, many in lines.items() if many > MOST_OF_A_CHECK} == {*LONGER_CHECKS}


def test_a_lab_says_one_thing_and_its_folder_is_as_short():
    lines = {f"{chapter}/{name}_lab": 0 for name, chapter in CHAPTER_OF.items()}
    for folder in lines:
        lines[folder] = sum(map(tokens, (COURSE / "chapters" / folder).rglob("*.py")))
    assert all(lines.values())
    assert {folder: many for folder, many in lines.items() if many > MOST_OF_A_LAB} == {}
