"""The project around the course: what is pinned, what CI does, what `make` and the README say."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import course_utils
from tests import NOTEBOOKS, ROOT
from tests.helpers.browser import BROWSERS

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
DIRECT = [Requirement(line) for line in PYPROJECT["project"]["dependencies"]]
FOR_TESTS = [Requirement(line) for line in EXTRAS["test"]]
FOR_A_HUB = [Requirement(line) for line in EXTRAS["hub"]]
FOR_CARDS = [Requirement(line) for line in EXTRAS["cards"]]
ALL_DIRECT = [*DIRECT, *FOR_TESTS, *FOR_A_HUB, *FOR_CARDS]
CONSTRAINT_LINES = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
CONSTRAINTS = [Requirement(line) for line in CONSTRAINT_LINES if line]
CHOSEN_BY_THE_USER = {
    "jupyterlab",
    "torch",
    "einops",
    "jaxtyping",
    "matplotlib",
    "ipywidgets",
    "nbval",
}

FOR_READERS_AND_TEACHERS = {
    "lab",
    "present",
    "anew",
    "results",
    "assignment",
    "key",
    "slides",
    "grade",
    "site",
    "napkin",
}
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
ENVIRONMENT = (ROOT / "environment.yml").read_text(encoding="utf-8")

_SUPPORTED = SpecifierSet(PYPROJECT["project"]["requires-python"])
PYTHONS = [version for version in (f"3.{minor}" for minor in range(100)) if version in _SUPPORTED]
INDEX_OF_TORCH = "https://download.pytorch.org/whl"

# What is installed.


def test_direct_dependencies_are_pinned_and_the_users_are_among_them():
    assert names_of([*DIRECT, *FOR_TESTS]) >= CHOSEN_BY_THE_USER
    for package in ALL_DIRECT:
        assert re.fullmatch(r"==[\d.]+", str(package.specifier)), package
    assert "torch==2.13.0" in [str(package) for package in DIRECT]


def names_of(packages: Iterable[Requirement | Distribution]) -> set[str]:
    return {canonicalize_name(package.name) for package in packages}


def what_a_reader_installs() -> set[str]:
    """The packages of pyproject's own list, and all that these bring along here."""
    needs_of = {}
    for package in distributions():
        needs_of[canonicalize_name(package.name)] = package.requires or []
    found = set()
    new = names_of(DIRECT)
    while new:
        found |= new
        needed = [Requirement(line) for name in new for line in needs_of.get(name, [])]
        new = names_of(package for package in needed if applies_without_extras(package)) - found
    return found


def applies_without_extras(package: Requirement) -> bool:
    return package.marker is None or package.marker.evaluate({"extra": ""})


def test_a_reader_installs_no_browser_driver_no_test_tool_and_no_linter():
    """What a reader installs, and what that brings along, has nothing of the two extras."""
    installed = what_a_reader_installs()
    assert {"tornado", "ipykernel"} < installed, "what is brought along was not looked at"
    assert installed & names_of([*FOR_TESTS, *FOR_A_HUB, *FOR_CARDS]) == set()
    for command in FOR_READERS_AND_TEACHERS:
        assert f"\n{command}: $(READY)\n" in MAKEFILE
    assert "\ntest: $(TESTS) $(HUB) $(CARDS)\n" in MAKEFILE


def test_this_environment_is_the_pinned_one_to_the_last_package():
    allowed = {}
    for constraint in CONSTRAINTS:
        if constraint.marker is None or constraint.marker.evaluate():
            allowed[canonicalize_name(constraint.name)] = constraint.specifier
    for package in ALL_DIRECT:
        assert str(allowed[canonicalize_name(package.name)]) == str(package.specifier)

    # Only this folder is searched, because setuptools, once imported, adds a folder with its own
    # copies of packages to sys.path.
    here = distributions(path=[sysconfig.get_path("purelib")])
    installed = {canonicalize_name(package.name): package.version for package in here}
    assert installed.keys() >= names_of([*DIRECT, *FOR_TESTS])
    for name, version in installed.items():
        if name in allowed:
            assert version in allowed[name], name
    tools_of_the_venv = {"pip", "setuptools", "course-utils", "uv"}
    assert installed.keys() - allowed.keys() - tools_of_the_venv == set()


def test_conda_gets_what_make_lab_installs_from_the_same_two_files():
    conda = yaml.safe_load(ENVIRONMENT)
    python, *from_conda, from_pip = conda["dependencies"]
    assert python in [f"python ={version}" for version in PYTHONS]  # Binder does not read `>=`
    assert from_conda == ["pip"]
    cpu = f"--extra-index-url {INDEX_OF_TORCH}/cpu"
    assert from_pip == {"pip": ["--constraint constraints.txt", cpu, "--editable ."]}
    assert conda["channels"] == ["conda-forge"]
    assert "--constraint constraints.txt --editable '$(1)'" in MAKEFILE
    assert "$(READY): pyproject.toml constraints.txt" in MAKEFILE


def test_conda_gets_torch_for_the_cpu_and_with_cuda_where_it_is_asked_for():
    (toolkit,) = (package for package in CONSTRAINTS if package.name == "cuda-toolkit")
    (torch,) = (package for package in DIRECT if package.name == "torch")
    pinned = str(torch.specifier).removeprefix("==")
    major, minor, *_ = re.findall(r"\d+", str(toolkit.specifier))
    cuda = f"cu{major}{minor}"
    assert f"takes {pinned}+{cuda} before {pinned}+cpu" in ENVIRONMENT  # pip takes the newest
    assert Version(f"{pinned}+{cuda}") > Version(f"{pinned}+cpu") > Version(pinned)
    elsewhere = (ROOT / "notebooks" / "ELSEWHERE.md").read_text(encoding="utf-8")
    for text in (ENVIRONMENT, README + elsewhere):
        assert set(re.findall(rf"{INDEX_OF_TORCH}/(\w+)", text)) == {"cpu", cuda}


# What a fork of the project gets with it.


def steps_of(job: dict) -> list[str]:
    """The actions and commands that a job on GitHub runs; of actions, the names alone."""
    return [step.get("uses") or step["run"] for step in job["steps"]]


def test_github_runs_what_ci_runs_on_each_supported_python_and_a_mac_what_needs_no_browser():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    assert set(workflow[True]) >= {"push", "pull_request"}  # YAML reads `on` as True
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is True
    ubuntu = workflow["jobs"]["ubuntu"]
    mac = workflow["jobs"]["mac"]
    assert ubuntu["strategy"]["matrix"] == {"python": PYTHONS}
    assert ubuntu["env"] == {"PIP_EXTRA_INDEX_URL": f"{INDEX_OF_TORCH}/cpu"}
    *actions, tests = steps_of(ubuntu)
    assert tests == ".ci/run"
    *same_actions, tests_without_browser = steps_of(mac)
    assert same_actions == actions
    for action in actions:
        assert re.fullmatch(r"actions/[\w-]+@v\d+", action)
    assert ignored_by(tests_without_browser) == need_a_browser()
    for job in (ubuntu, mac):
        assert 0 < job["timeout-minutes"] <= 60


def ignored_by(command: str) -> set[Path]:
    """The test modules that options of pytest leave out of this command."""
    found = set()
    for pattern in re.findall(r"--ignore(?:-glob)?='?(tests/[\w*./]+)", command):
        found.update(path for path in ROOT.glob(pattern) if path.suffix == ".py")
    return found


def need_a_browser() -> set[Path]:
    """The test modules that skip themselves without a browser."""
    skips = re.compile(r"^(browser\.)?skip_without_browser\(\)", re.MULTILINE)
    modules = ROOT.glob("tests/**/test_*.py")
    return {path for path in modules if skips.search(path.read_text("utf-8"))}


UPDATE = "apt-get update -qq"
INSTALL = "apt-get install -y -qq"
AS_ROOT = [UPDATE, f"{INSTALL} chromium bubblewrap"]
BY_SUDO = [
    f"sudo {UPDATE}",
    f"sudo env DEBIAN_FRONTEND=noninteractive {INSTALL} chromium bubblewrap",
]


@pytest.mark.parametrize(
    ("user", "there", "done"),
    [
        (0, (), AS_ROOT),
        (1000, (), BY_SUDO),
        (0, ("bwrap",), [UPDATE, f"{INSTALL} chromium"]),
        (0, ("chromium",), [UPDATE, f"{INSTALL} bubblewrap"]),
        *((1000, (name, "bwrap"), []) for name in BROWSERS),
    ],
)
def test_ci_installs_a_browser_and_bubblewrap_where_there_are_none_and_asks_for_the_right_to(
    tmp_path, user, there, done
):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    log = f'echo "${{0##*/}} $*" >> "{tmp_path}/done"'
    programs = dict.fromkeys(("sudo", "apt-get", "make", *there), log)
    programs["id"] = f"echo {user}"
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("dirname", "env"):
        (tmp_path / name).symlink_to(shutil.which(name))
    subprocess.run(
        [shutil.which("bash"), tmp_path / ".ci" / "run"], env={"PATH": str(tmp_path)}, check=True
    )
    assert (tmp_path / "done").read_text().splitlines() == [*done, "make lint", "make test"]


def test_a_codespace_opens_the_contents_page_at_a_port_that_keeps_its_token(bare):
    settings = ROOT / ".devcontainer" / "devcontainer.json"
    container = json.loads(settings.read_text(encoding="utf-8"))
    image, _, version = container["image"].partition(":")
    assert image == "mcr.microsoft.com/devcontainers/python"
    assert version in PYTHONS
    assert container["containerEnv"] == {"PIP_EXTRA_INDEX_URL": f"{INDEX_OF_TORCH}/cpu"}
    assert container["postCreateCommand"] == "make .venv/ready"
    assert container["forwardPorts"] == [8888]
    start, *otherwise = container["postAttachCommand"]["contents page"].split(" || ")
    # If a server already runs, whoever comes back is told its address again.
    assert otherwise == [".venv/bin/jupyter server list"]
    without_running = start.replace("make lab", "make -n lab READY=")
    run = subprocess.run(
        ["sh", "-c", without_running],
        cwd=bare,
        env=for_make(
            CODESPACE_NAME="a-name",
            GITHUB_CODESPACES_PORT_FORWARDING_DOMAIN="app.github.dev",
        ),
        capture_output=True,
        text=True,
        check=True,
    )
    said = run.stdout
    assert "--ip=127.0.0.1" in said
    assert "--port=8888 --ServerApp.port_retries=0" in said
    # The reader's browser sees the page at this address; only pages from there may use a kernel.
    assert "--ServerApp.allow_origin=https://a-name-8888.app.github.dev\n" in said
    assert "token" not in said


# What lies in the top folder, and what the README says of it.


def test_nothing_lies_at_the_top_that_no_tool_needs():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tracked.returncode:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in tracked.stdout.splitlines()}
    files = {"environment.yml", "README.md", "CONTRIBUTING.md", "pyproject.toml", "constraints.txt"}
    folders = {"notebooks", "course_utils", "tests", ".ci", ".github", ".devcontainer"}
    translated = {name for name in top if re.fullmatch(r"README\.\w+\.md", name)}
    assert top <= files | folders | translated | {"Makefile", "LICENSE", ".gitignore"}


def test_the_readme_has_a_row_for_each_notebook_and_begins_with_both_commands():
    rows = re.findall(r"^\| (\d) \| \[[^]]+\]\(notebooks/(.+?)\) \|", README, re.MULTILINE)
    assert rows == [(str(n), path.name) for n, path in enumerate(NOTEBOOKS, 1)]
    assert {"make lab", "make test"} <= set(re.findall(r"^make \w+", README, re.MULTILINE))


def test_the_readme_can_be_read_in_a_few_minutes():
    """All else is on pages for instructors, other places, and those who change the course."""
    assert len(README.split()) <= 1000
    sections = re.findall(r"^## (.+)$", README, re.MULTILINE)
    assert sections[:5] == ["Start", "The notebooks", "For students", "For instructors", "For CI"]
    links = re.findall(r"\]\((.+?)\)", README)
    for page in ("notebooks/INSTRUCTORS.md", "notebooks/ELSEWHERE.md", "CONTRIBUTING.md"):
        assert page in links


TIME_AND_SAVE = """
import sys
from course_utils import checkpoints
from course_utils.subjects.child_processes import process

order = {"b": 1, "d": 1, "k": 1, "dtype": "fp32", "at_most_s": 0.01}
steps = "course_utils.subjects.child_processes.products.timing_steps"
found = process.result_of(steps, order)
checkpoints.save(sys.argv[1], {})
print(found.seconds > 0, process.__file__)
"""


def test_it_works_in_a_path_with_spaces_and_many_scripts_where_the_system_speaks_ascii(tmp_path):
    strange = tmp_path / "Mein Kurs – Ümläut, 北京 & 'so' 100% $HOME"
    no_caches = shutil.ignore_patterns("__py*")
    shutil.copytree(ROOT / "course_utils", strange / "course_utils", ignore=no_caches)
    ascii_only = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONPATH": str(strange),
        "PYTHONIOENCODING": "utf-8:surrogateescape",
    }
    run = subprocess.run(
        [sys.executable, "-c", TIME_AND_SAVE, str(strange / "läufe 1")],
        cwd=strange,
        env=os.environ | ascii_only,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    module = strange / "course_utils/subjects/child_processes/process.py"
    assert run.stdout.strip() == f"True {module}"
    assert (strange / "läufe 1").is_file()


# What `make` says.


def for_make(**environment: str) -> dict[str, str]:
    """The environment for a `make` that has nothing of the one that runs these tests."""
    ours = ("MAKE", "MFLAGS", "PIP_")
    others = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return others | environment


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=for_make(**environment),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def bare(tmp_path):
    """A copy of the project's top folder in which nothing is installed yet."""
    files = "Makefile pyproject.toml constraints.txt README.md CONTRIBUTING.md LICENSE"
    for name in files.split():
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "course_utils").mkdir()
    shutil.copy(ROOT / "course_utils" / "__init__.py", tmp_path / "course_utils")
    return tmp_path


def test_make_alone_says_what_there_is(bare):
    """It lists ten commands for readers and teachers; `make maintain` lists all others."""
    said = make(bare).stdout
    for_most = re.findall(r"^make ([a-z-]+) ", said, re.MULTILINE)
    assert len(for_most) <= 10
    assert for_most[0] == "lab"
    assert not (bare / ".venv").exists()
    said_to_maintainers = make(bare, "maintain").stdout
    for_maintainers = re.findall(r"^make ([a-z-]+) +\S", said_to_maintainers, re.MULTILINE)
    targets = set()
    for names in re.findall(r"^([a-z- ]+):(?!=)", MAKEFILE, re.MULTILINE):
        targets.update(names.split())
    assert {"lab", "test", "lint", "outputs", "bench", "clean", "colab-proof"} <= targets
    assert sorted(for_most + for_maintainers) == sorted(targets - {"help", "space-at-home"})


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        (
            ["lab", "ARGS=--no-browser"],
            "-m course_utils.stage.workspace --ip=127.0.0.1 --allow-root --no-browser",
        ),
        (
            ["present", "NB=04; ls", "ARGS=--no-browser"],
            '-m course_utils.stage.present "$NB" --allow-root --no-browser',
        ),
        (
            ["anew", "NB=04", "EXERCISE=2; ls"],
            '-m course_utils.stage.workspace.commands anew "$NB" "$EXERCISE"',
        ),
        (["results", "NB=04; ls"], '-m course_utils.stage.workspace.commands results "$NB"'),
    ],
)
def test_make_passes_on_what_was_typed_with_no_shell_reading_it_and_keeps_the_token(
    bare, typed, command
):
    """The words that choose a notebook are passed as variables, so the shell never reads them."""
    said = make(bare, "-n", "ALLOW_ROOT=--allow-root", *typed).stdout
    assert said.rstrip().endswith(command)


PATH = os.environ["PATH"]
NO_VENV = "case \"$*\" in *'-m venv'*) mkdir .venv; exit 1;; esac"
DISK_FULL = "echo Filesystem; echo disk 100 99 1000 99% /"
# Root may write everywhere, so this shell answers "no" to the question whether it may.
NO_WRITING = """exec /bin/sh -c "$(printf %s "$2" | sed 's/test -w [.]/false/')\""""


@pytest.mark.parametrize(
    ("program", "script", "option", "told"),
    [
        ("python", "exit 1", "PYTHON={}/python", "needs Python 3.11, 3.12, 3.13 or 3.14"),
        ("python", NO_VENV, "PYTHON={}/python", "sudo apt install python3-venv"),
        ("df", DISK_FULL, f"PATH={{}}:{PATH}", "disk is too full: the course needs 3 GB"),
        ("sh", NO_WRITING, "SHELL={}/sh", "Copy the folder to a place of your own"),
    ],
    ids=["an old Python", "no venv", "a full disk", "a folder that cannot be written to"],
)
def test_what_is_missing_is_told_before_anything_is_installed(bare, program, script, option, told):
    (bare / "bin").mkdir()
    (bare / "bin" / program).write_text(f"#!/bin/sh\n{script}\n")
    (bare / "bin" / program).chmod(0o755)
    run = make(bare, "lab", option.format(bare / "bin"))
    assert run.returncode
    assert told in run.stderr
    assert not (bare / ".venv").exists()


def test_without_a_network_it_says_so_and_the_next_try_starts_again(bare):
    nowhere = {
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_RETRIES": "0",
        "PIP_CONFIG_FILE": os.devnull,
    }
    # This Python copies itself into the environments that it makes, since a real one takes seconds.
    python = bare / "python"
    lines = [
        "#!/bin/sh",
        "case $2 in",
        "venv) mkdir -p .venv/bin; cp $0 .venv/bin/python;;",
        f'*) exec "{sys.executable}" "$@";;',
        "esac",
    ]
    python.write_text("\n".join(lines))
    python.chmod(0o755)
    run = make(bare, "lab", f"PYTHON={python}", **nowhere)
    assert run.returncode
    assert "does not reach the package index" in run.stderr
    assert not (bare / ".venv" / "ready").exists()


@pytest.mark.parametrize("command", ["lab", "test"])
def test_a_home_that_cannot_hold_what_jupyter_keeps_is_told_how_to_go_on(bare, command):
    installed = "READY=", "TESTS=", "HUB=", "CARDS=", "RUN=echo ran"
    run = make(bare, command, *installed, HOME=f"{bare / 'Makefile'}/no/folder")
    assert run.returncode
    assert f"make {command} HOME=/tmp/home" in run.stderr
    assert "ran" not in run.stdout
    other_home = bare / "another home"
    assert "ran" in make(bare, command, *installed, HOME=str(other_home)).stdout
    assert list(other_home.iterdir()) == []


def test_clean_keeps_notebooks_and_the_backups_of_answers(bare):
    kept = [
        bare / "notebooks/01.ipynb",
        bare / "notebooks/.ipynb_checkpoints/01.ipynb",
        bare / "my_notebooks/01.ipynb",
        bare / "my_notebooks/record.txt",
        bare / "my_notebooks/.course/01.ipynb",
    ]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("answers")
    (bare / "tests").mkdir()
    (bare / ".venv").mkdir()
    assert make(bare, "clean").returncode == 0
    assert not (bare / ".venv").exists()
    for path in kept:
        assert path.read_text() == "answers"


# The names that material outside this project relies on, by module.
PUBLIC = {
    "floats": "FORMATS encode decode",
    "layout": "address can_view",
    "predict": "tensor_bytes matmul_flops matmul_bytes einsum_flops mlp_flops training_flops "
    "training_days RECIPES training_bytes largest_model mfu Transformer MODELS product_seconds "
    "timeline",
    "machines": "MACHINES this_machine",
    "measure": "time_call flops saved_bytes optimizer_bytes account",
    "checkpoints": "save load",
}


@pytest.mark.parametrize("name", PUBLIC)
def test_the_names_that_other_material_relies_on_are_there(name):
    module = getattr(course_utils, name)
    for relied_on in PUBLIC[name].split():
        assert hasattr(module, relied_on), relied_on


def test_jupyterlab_finds_the_very_keys_of_this_course_in_the_environment():
    """JupyterLab reads the environment's copy, so a change here has to be installed by `make`."""
    here = ROOT / "course_utils" / "stage" / "workspace" / "keys"
    there = Path(sysconfig.get_path("data"), "share", "jupyter", "labextensions", "course-keys")
    files = [path.relative_to(here) for path in here.rglob("*") if path.is_file()]
    assert len(files) == 2
    for path in files:
        assert (there / path).read_bytes() == (here / path).read_bytes()
