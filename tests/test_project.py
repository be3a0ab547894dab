"""The ground that everything stands on: who imports whom, what is pinned, what `make` says."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DIRECT = [Requirement(line) for line in PYPROJECT["project"]["dependencies"]]
CONSTRAINTS = [
    Requirement(line) for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line
]
CHOSEN_BY_THE_USER = {"jupyterlab", "torch", "einops", "jaxtyping", "matplotlib", "ipywidgets", "nbval"}

# Which module may import which: within the course, and from outside (the standard library is free to all).
MAY_IMPORT = {
    "quantities": set(),
    "floats": {"quantities"},
    "datasheets": {"quantities"},
    "einsums": {"quantities"},
    "chains": set(),
    "layout": {"torch", "quantities"},
    "predict": {"quantities", "floats", "datasheets", "einsums"},
    "measure": {"torch", "numpy", "ml_dtypes", "psutil", "quantities"},
    "models": {"torch", "einops", "jaxtyping"},
    "workers": {"torch", "quantities", "einsums", "predict", "measure", "models"},
    "checkpoints": {"torch", "quantities"},
    "training": {"torch", "numpy", "jaxtyping", "quantities", "floats", "measure", "predict", "models"}
    | {"workers", "checkpoints"},
    "machines": {"torch", "psutil", "quantities", "datasheets", "measure", "predict", "models", "workers"},
    "figures": {"matplotlib", "PIL", "quantities", "floats"},
    "desk": {"jupyter_server", "jupyterlab", "tornado"},
    "room": {"jupyterlab", "jupyterlab_server", "nbformat", "nbconvert", "pygments", "matplotlib", "desk"},
    "checks": {"torch", "numpy", "einops", "jaxtyping", "beartype", "desk", "machines"}
    | {"einsums", "floats", "layout", "quantities", "figures", "predict", "datasheets"},
    "labs": {"ipywidgets", "anywidget", "traitlets", "resvg_py", "matplotlib", "opt_einsum"}
    | {"torch", "quantities", "floats", "layout", "figures", "datasheets", "predict", "measure"}
    | {"workers", "machines", "einsums", "models", "training", "checkpoints", "chains"},
    "recorded": set(),
}


def modules(name: str) -> list[Path]:
    package = ROOT / "course_utils" / name
    return sorted(package.rglob("*.py")) if package.is_dir() else [package.with_suffix(".py")]


def imported(path: Path) -> set[str]:
    """The course's modules, and the packages from outside, that a file imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute here"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in found]
    return {p[1] if p[0] == "course_utils" else p[0] for p in parts} - sys.stdlib_module_names


def test_every_module_has_its_place_in_the_import_table():
    names = {
        path.stem
        for path in (ROOT / "course_utils").iterdir()
        if path.stem not in ("__init__", "__pycache__")
    }
    assert names == set(MAY_IMPORT)


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_a_module_imports_only_what_its_place_allows(name):
    for path in modules(name):
        assert imported(path) - {name} <= MAY_IMPORT[name], path.name


def loaded_after(code: str) -> set[str]:
    """All modules that a fresh Python has loaded when it has run that."""
    code = f"import sys; {code}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_what_is_computed_from_shapes_alone_loads_nothing_heavy():
    names = ("quantities", "floats", "datasheets", "einsums", "chains", "predict")
    loaded = loaded_after(f"from course_utils import {', '.join(names)}")
    assert {f"course_utils.{name}" for name in names} <= loaded
    assert not {"torch", "numpy", "matplotlib", "ipywidgets"} & loaded


def test_labs_checks_and_counts_wait_with_what_they_may_never_need():
    checks = ", ".join(path.stem for path in modules("checks") if path.stem != "__init__")
    named = (
        f"from course_utils import figures, labs, measure, training; from course_utils.checks import {checks}"
    )
    counted = (
        "import torch; x = torch.ones(2, 2); layer = torch.nn.Linear(2, 2); count = lambda: layer(x).sum()"
    )
    used = f"{counted}; measure.flops(count); measure.allocated_bytes(count); measure.saved_bytes(count)"
    loaded = loaded_after(f"{named}; {used}; labs.float_lab()")
    assert {"torch", "course_utils.labs", "course_utils.figures"} <= loaded
    compiler = {"torch._dynamo", "torch._inductor", "sympy"}  # as long again as torch itself
    processes = {"torch.distributed.checkpoint", "course_utils.training.sharded"}
    assert ({"matplotlib.pyplot", "pandas", "scipy"} | compiler | processes) & loaded == set()


def test_annotations_are_enforced_in_every_module_that_sees_tensors():
    option = next(
        line for line in PYPROJECT["tool"]["pytest"]["ini_options"]["addopts"] if "jaxtyping" in line
    )
    checked = set(re.findall(r"course_utils\.(\w+)", option))
    assert checked == set(MAY_IMPORT) - {"floats", "recorded"}  # which holds no code
    from course_utils import quantities

    with pytest.raises(Exception, match="Type-check error"):
        quantities.Ledger(3)


# What is installed.


def test_direct_dependencies_are_pinned_and_the_users_are_among_them():
    assert {r.name for r in DIRECT} >= CHOSEN_BY_THE_USER
    assert [str(r) for r in DIRECT if not re.fullmatch(r"==[\d.]+", str(r.specifier))] == []
    assert "torch==2.13.0" in map(str, DIRECT)


def test_this_environment_is_the_pinned_one_to_the_last_package():
    applying = {canonicalize_name(r.name): r for r in CONSTRAINTS if r.marker is None or r.marker.evaluate()}
    # Not all of sys.path: once imported, setuptools puts its own copies of packages there.
    here = distributions(path=[sysconfig.get_path("purelib")])
    installed = {canonicalize_name(d.name): d.version for d in here}
    for r in DIRECT:
        assert str(applying[canonicalize_name(r.name)].specifier) == str(r.specifier)
    needed = set(applying) & set(installed)
    assert needed >= {canonicalize_name(r.name) for r in DIRECT}
    loose = {name: installed[name] for name in needed if installed[name] not in applying[name].specifier}
    assert loose == {}
    tools_of_the_venv = {"pip", "setuptools", "course-utils", "uv"}
    assert set(installed) - set(applying) - tools_of_the_venv == set()


def test_conda_gets_the_same_environment_from_the_same_two_files():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    *from_conda, from_pip = conda["dependencies"]
    assert from_conda == [f"python {PYPROJECT['project']['requires-python']}", "pip"]
    assert from_pip == {"pip": ["--constraint constraints.txt", "--editable ."]}
    assert conda["channels"] == ["conda-forge"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--constraint constraints.txt --editable ." in makefile


# What lies at the top, and what the README says of it.


def test_nothing_lies_at_the_top_that_no_tool_needs():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in tracked.stdout.splitlines()}
    files = {"environment.yml", "README.md", "CONTRIBUTING.md", "pyproject.toml", "constraints.txt"}
    assert top <= files | {"Makefile", "LICENSE", ".ci", ".gitignore", "notebooks", "course_utils", "tests"}


def test_the_readme_names_all_eight_notebooks_and_both_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \|", readme, re.MULTILINE)
    assert rows == list("12345678")
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"(notebooks/{path.name})" in readme
    assert {"make lab", "make test"} <= set(re.findall(r"^make \w+", readme, re.MULTILINE))


def test_it_works_in_a_path_with_spaces_and_many_scripts_where_the_system_speaks_ascii(tmp_path):
    strange = tmp_path / "Mein Kurs – Ümläut, 北京 & 'so' 100% $HOME"
    shutil.copytree(ROOT / "course_utils", strange / "course_utils", ignore=shutil.ignore_patterns("__py*"))
    code = (
        "import sys; from course_utils.workers import process; order = {'folder': sys.argv[1], 'until': 1, 'every': 1};"
        "print(process.result_of('course_utils.training.long_run.train', order)['saved'], process.__file__)"
    )
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(strange)}
    command = [sys.executable, "-c", code, str(strange / "läufe 1")]
    said = subprocess.run(
        command,
        cwd=strange,
        env=os.environ | ascii_only | {"PYTHONIOENCODING": "utf-8:surrogateescape"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    assert said.strip() == f"1 {strange / 'course_utils' / 'workers' / 'process.py'}"
    assert [path.name for path in (strange / "läufe 1").iterdir()] == ["step-00000001.ckpt"]


# What `make` says.


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PIP_"))
    }
    command = ["make", *arguments]
    return subprocess.run(
        command, cwd=folder, env=clean | environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def bare(tmp_path):
    """The project's ground without an environment."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "course_utils").mkdir()
    shutil.copy(ROOT / "course_utils" / "__init__.py", tmp_path / "course_utils")
    return tmp_path


def executable(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_make_alone_says_what_there_is(bare):
    said = make(bare).stdout
    targets = re.findall(r"^([a-z]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"lab", "test", "lint", "outputs", "bench", "clean"} <= set(targets)
    assert [target for target in targets if target != "help" and f"make {target} " not in said] == []


def test_lab_is_bound_to_loopback_keeps_its_token_and_passes_options_on(bare):
    said = make(bare, "-n", "lab", "ARGS=--no-browser --port=9999").stdout
    assert "--ip=127.0.0.1" in said
    assert "token" not in said
    assert said.rstrip().endswith("--no-browser --port=9999")


def test_a_python_that_is_too_old_is_told_which_ones_are_not(bare):
    old = executable(bare / "python-old", "#!/bin/sh\nexit 1\n")
    run = make(bare, "lab", f"PYTHON={old}")
    assert run.returncode
    assert "needs Python 3.11, 3.12, 3.13 or 3.14" in run.stderr
    assert "brew install" in run.stderr
    assert not (bare / ".venv").exists()


def test_a_python_without_venv_is_told_how_to_get_it(bare):
    script = "#!/bin/sh\ncase \"$*\" in *'-m venv'*) mkdir .venv; exit 1;; esac\n"
    run = make(bare, "test", f"PYTHON={executable(bare / 'python-without-venv', script)}")
    assert run.returncode
    assert "sudo apt install python3-venv" in run.stderr
    assert not (bare / ".venv").exists()


def test_a_full_disk_is_named_before_anything_is_installed(bare):
    (bare / "bin").mkdir()
    executable(bare / "bin" / "df", "#!/bin/sh\necho Filesystem\necho disk 100 99 1000 99% /\n")
    run = make(bare, "lab", PATH=f"{bare / 'bin'}:{os.environ['PATH']}")
    assert run.returncode
    assert "disk is too full: the course needs 3 GB" in run.stderr
    assert not (bare / ".venv").exists()


def test_without_a_network_it_says_so_and_the_next_try_starts_again(bare):
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    run = make(bare, "lab", **nowhere)
    assert run.returncode
    assert "does not reach the package index" in run.stderr
    assert not (bare / ".venv" / "ready").exists()


@pytest.mark.parametrize("command", ["lab", "test"])
def test_a_home_that_cannot_hold_what_jupyter_keeps_is_told_how_to_go_on(bare, command):
    installed = "READY=", "RUN=echo ran"
    run = make(bare, command, *installed, HOME=f"{bare / 'Makefile'}/no/folder")
    assert run.returncode
    assert f"make {command} HOME=/tmp/home" in run.stderr
    assert "ran" not in run.stdout
    assert make(bare, command, *installed, HOME=f"{bare / 'another home'}").stdout.count("ran") >= 1
    assert list((bare / "another home").iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named_before_anything_is_installed(bare):
    # To root nothing is forbidden: the answer is put into the shell's mouth.
    said_no = """#!/bin/sh\nexec /bin/sh -c "$(printf %s "$2" | sed 's/test -w [.]/false/')"\n"""
    run = make(bare, "lab", f"SHELL={executable(bare / 'sh', said_no)}")
    assert run.returncode
    assert "Copy the folder to a place of your own" in run.stderr
    assert not (bare / ".venv").exists()


def test_clean_keeps_notebooks_and_the_backups_of_answers(bare):
    kept = [bare / "notebooks" / "01.ipynb", bare / "notebooks" / ".ipynb_checkpoints" / "01.ipynb"]
    kept += [bare / "my_notebooks" / name for name in ("01.ipynb", "record.txt", ".course/01.ipynb")]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("answers")
    (bare / "tests").mkdir()
    (bare / ".venv").mkdir()
    assert make(bare, "clean").returncode == 0
    assert not (bare / ".venv").exists()
    assert all(path.read_text() == "answers" for path in kept)
