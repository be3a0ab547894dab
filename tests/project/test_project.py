"""The ground that everything stands on: who imports whom, what is pinned, what `make` says."""

import json
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
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import course_utils
from tests import NOTEBOOKS, ROOT
from tests.helpers.browser import BROWSERS

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DIRECT = [Requirement(line) for line in PYPROJECT["project"]["dependencies"]]
FOR_TESTS, FOR_A_HUB = (
    [Requirement(line) for line in PYPROJECT["project"]["optional-dependencies"][extra]]
    for extra in ("test", "hub")
)
CONSTRAINTS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line
]
CHOSEN_BY_THE_USER = {
    "jupyterlab",
    "torch",
    "einops",
    "jaxtyping",
    "matplotlib",
    "ipywidgets",
    "nbval",
}

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
ENVIRONMENT = (ROOT / "environment.yml").read_text(encoding="utf-8")

_SUPPORTED = SpecifierSet(PYPROJECT["project"]["requires-python"])
PYTHONS = [version for version in (f"3.{minor}" for minor in range(100)) if version in _SUPPORTED]
INDEX_OF_TORCH = "https://download.pytorch.org/whl"

# What is installed.


def test_direct_dependencies_are_pinned_and_the_users_are_among_them():
    assert {r.name for r in (*DIRECT, *FOR_TESTS)} >= CHOSEN_BY_THE_USER
    assert [
        str(r)
        for r in (*DIRECT, *FOR_TESTS, *FOR_A_HUB)
        if not re.fullmatch(r"==[\d.]+", str(r.specifier))
    ] == []
    assert "torch==2.13.0" in map(str, DIRECT)


def what_a_reader_installs() -> set[str]:
    """The packages of pyproject's own list, and all that these bring along here."""
    needs_of = {canonicalize_name(one.name): one.requires or [] for one in distributions()}
    found, new = set(), {canonicalize_name(one.name) for one in DIRECT}
    while new:
        found |= new
        needed = [Requirement(line) for name in new for line in needs_of.get(name, [])]
        here = [one for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
        new = {canonicalize_name(one.name) for one in here} - found
    return found


def test_a_reader_installs_no_browser_driver_no_test_tool_and_no_linter():
    """Nothing of the two extras is among it, nor among what it brings along."""
    installed = what_a_reader_installs()
    assert {"tornado", "ipykernel"} < installed, "what is brought along was looked at, too"
    assert installed & {canonicalize_name(one.name) for one in (*FOR_TESTS, *FOR_A_HUB)} == set()
    for command in (
        "lab",
        "present",
        "anew",
        "results",
        "assignment",
        "key",
        "slides",
        "grade",
        "site",
    ):
        assert f"\n{command}: $(READY)\n" in MAKEFILE
    assert "\ntest: $(TESTS) $(HUB)\n" in MAKEFILE


def test_this_environment_is_the_pinned_one_to_the_last_package():
    applying = {
        canonicalize_name(r.name): r for r in CONSTRAINTS if r.marker is None or r.marker.evaluate()
    }
    # Not all of sys.path: once imported, setuptools puts its own copies of packages there.
    here = distributions(path=[sysconfig.get_path("purelib")])
    installed = {canonicalize_name(d.name): d.version for d in here}
    for r in (*DIRECT, *FOR_TESTS, *FOR_A_HUB):
        assert str(applying[canonicalize_name(r.name)].specifier) == str(r.specifier)
    needed = set(applying) & set(installed)
    assert needed >= {canonicalize_name(r.name) for r in (*DIRECT, *FOR_TESTS)}
    loose = {
        name: installed[name] for name in needed if installed[name] not in applying[name].specifier
    }
    assert loose == {}
    tools_of_the_venv = {"pip", "setuptools", "course-utils", "uv"}
    assert set(installed) - set(applying) - tools_of_the_venv == set()


def test_conda_gets_what_make_lab_installs_from_the_same_two_files():
    conda = yaml.safe_load(ENVIRONMENT)
    python, *from_conda, from_pip = conda["dependencies"]
    assert python in [f"python ={version}" for version in PYTHONS]  # of `>=`, Binder reads nothing
    assert from_conda == ["pip"]
    cpu = f"--extra-index-url {INDEX_OF_TORCH}/cpu"
    assert from_pip == {"pip": ["--constraint constraints.txt", cpu, "--editable ."]}
    assert conda["channels"] == ["conda-forge"]
    assert "--constraint constraints.txt --editable '$(1)'" in MAKEFILE
    assert "$(READY): pyproject.toml constraints.txt" in MAKEFILE


def test_conda_gets_torch_for_the_cpu_and_with_cuda_where_it_is_asked_for():
    (toolkit,) = (str(r.specifier) for r in CONSTRAINTS if r.name == "cuda-toolkit")
    (pinned,) = (str(r.specifier).removeprefix("==") for r in DIRECT if r.name == "torch")
    cuda = "cu" + "".join(re.findall(r"\d+", toolkit)[:2])
    assert f"takes {pinned}+{cuda} before {pinned}+cpu" in ENVIRONMENT  # the newest that it finds
    assert Version(f"{pinned}+{cuda}") > Version(f"{pinned}+cpu") > Version(pinned)
    elsewhere = (ROOT / "notebooks" / "ELSEWHERE.md").read_text(encoding="utf-8")
    for text in (ENVIRONMENT, README + elsewhere):
        assert set(re.findall(rf"{INDEX_OF_TORCH}/(\w+)", text)) == {"cpu", cuda}


# What those have who fork it.


def steps_of(job: dict) -> list[str]:
    """What a job of GitHub's runs, actions without their settings."""
    return [step.get("uses") or step["run"] for step in job["steps"]]


def test_github_runs_what_ci_runs_on_each_supported_python_and_a_mac_what_needs_no_browser():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    assert set(workflow[True]) >= {"push", "pull_request"}  # `on` is a yes to YAML
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is True
    ubuntu, mac = workflow["jobs"]["ubuntu"], workflow["jobs"]["mac"]
    assert ubuntu["strategy"]["matrix"] == {"python": PYTHONS}
    assert ubuntu["env"] == {"PIP_EXTRA_INDEX_URL": f"{INDEX_OF_TORCH}/cpu"}
    *actions, tests = steps_of(ubuntu)
    assert tests == ".ci/run"
    *same_actions, tests_without_browser = steps_of(mac)
    assert same_actions == actions
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", action) for action in actions)
    left_out = re.findall(r"--ignore(?:-glob)?='?(tests/[\w*./]+)", tests_without_browser)
    skips = re.compile(r"^(browser\.)?skip_without_browser\(\)", re.MULTILINE)
    need_one = {
        path for path in ROOT.glob("tests/**/test_*.py") if skips.search(path.read_text("utf-8"))
    }
    named = {path for pattern in left_out for path in ROOT.glob(pattern) if path.suffix == ".py"}
    assert named == need_one
    assert all(0 < job["timeout-minutes"] <= 60 for job in (ubuntu, mac))


UPDATE, INSTALL = "apt-get update -qq", "apt-get install -y -qq"
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
    programs = dict.fromkeys(("sudo", "apt-get", "make", *there), log) | {"id": f"echo {user}"}
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
    container = json.loads(
        (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    )
    assert container["image"] in [
        f"mcr.microsoft.com/devcontainers/python:{version}" for version in PYTHONS
    ]
    assert container["containerEnv"] == {"PIP_EXTRA_INDEX_URL": f"{INDEX_OF_TORCH}/cpu"}
    assert container["postCreateCommand"] == "make .venv/ready"
    assert container["forwardPorts"] == [8888]
    start, *otherwise = container["postAttachCommand"]["contents page"].split(" || ")
    assert otherwise == [
        ".venv/bin/jupyter server list"
    ]  # whoever comes back is told its address again
    here = for_make(
        CODESPACE_NAME="a-name", GITHUB_CODESPACES_PORT_FORWARDING_DOMAIN="app.github.dev"
    )
    run = {"cwd": bare, "env": here, "capture_output": True, "text": True, "check": True}
    said = subprocess.run(
        ["sh", "-c", start.replace("make lab", "make -n lab READY=")], **run
    ).stdout
    assert "--ip=127.0.0.1" in said
    assert "--port=8888 --ServerApp.port_retries=0" in said
    # From this address the page comes, as the reader sees it, and from no other may it talk to a kernel.
    assert "--ServerApp.allow_origin=https://a-name-8888.app.github.dev\n" in said
    assert "token" not in said


# What lies at the top, and what the README says of it.


def test_nothing_lies_at_the_top_that_no_tool_needs():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tracked.returncode:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in tracked.stdout.splitlines()}
    files = {"environment.yml", "README.md", "CONTRIBUTING.md", "pyproject.toml", "constraints.txt"}
    folders = {"notebooks", "course_utils", "tests", ".ci", ".github", ".devcontainer"}
    assert top <= files | folders | {"Makefile", "LICENSE", ".gitignore"}


def test_the_readme_has_a_row_for_each_notebook_and_begins_with_both_commands():
    rows = re.findall(r"^\| (\d) \| \[[^]]+\]\(notebooks/(.+?)\) \|", README, re.MULTILINE)
    assert rows == [(str(n), path.name) for n, path in enumerate(NOTEBOOKS, 1)]
    assert {"make lab", "make test"} <= set(re.findall(r"^make \w+", README, re.MULTILINE))


def test_the_readme_can_be_read_in_a_few_minutes():
    """What else there is to say has a page of its own, for instructors, other places or those who change the course."""
    assert len(README.split()) <= 1000
    sections = re.findall(r"^## (.+)$", README, re.MULTILINE)
    assert sections[:5] == ["Start", "The notebooks", "For students", "For instructors", "For CI"]
    assert {"notebooks/INSTRUCTORS.md", "notebooks/ELSEWHERE.md", "CONTRIBUTING.md"} <= {
        *re.findall(r"\]\((.+?)\)", README)
    }


def test_it_works_in_a_path_with_spaces_and_many_scripts_where_the_system_speaks_ascii(tmp_path):
    strange = tmp_path / "Mein Kurs – Ümläut, 北京 & 'so' 100% $HOME"
    shutil.copytree(
        ROOT / "course_utils", strange / "course_utils", ignore=shutil.ignore_patterns("__py*")
    )
    code = (
        "import sys; from course_utils import checkpoints; from course_utils.subjects.child_processes import process;"
        "order = {'b': 1, 'd': 1, 'k': 1, 'dtype': 'fp32', 'at_most_s': 0.01};"
        "found = process.result_of('course_utils.subjects.child_processes.products.timing_steps', order);"
        "checkpoints.save(sys.argv[1], {}); print(found.seconds > 0, process.__file__)"
    )
    ascii_only = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONPATH": str(strange),
    }
    command = [sys.executable, "-c", code, str(strange / "läufe 1")]
    said = subprocess.run(
        command,
        cwd=strange,
        env=os.environ | ascii_only | {"PYTHONIOENCODING": "utf-8:surrogateescape"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    assert said.strip() == f"True {strange / 'course_utils/subjects/child_processes/process.py'}"
    assert (strange / "läufe 1").is_file()


# What `make` says.


def for_make(**environment: str) -> dict[str, str]:
    """The environment for another `make` than the one that runs these tests."""
    ours = ("MAKE", "MFLAGS", "PIP_")
    return {
        name: value for name, value in os.environ.items() if not name.startswith(ours)
    } | environment


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    run = {"cwd": folder, "env": for_make(**environment), "capture_output": True, "text": True}
    return subprocess.run(["make", *arguments], check=False, **run)


@pytest.fixture
def bare(tmp_path):
    """The project's root without an environment."""
    for name in (
        "Makefile",
        "pyproject.toml",
        "constraints.txt",
        "README.md",
        "CONTRIBUTING.md",
        "LICENSE",
    ):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "course_utils").mkdir()
    shutil.copy(ROOT / "course_utils" / "__init__.py", tmp_path / "course_utils")
    return tmp_path


def test_make_alone_says_what_there_is(bare):
    """Ten commands for those who read and teach; the others have one place, which is CONTRIBUTING's table."""
    said = make(bare).stdout
    for_most = re.findall(r"^make ([a-z-]+) ", said, re.MULTILINE)
    assert len(for_most) <= 10
    assert for_most[0] == "lab"
    assert not (bare / ".venv").exists()
    for_maintainers = re.findall(
        r"^make ([a-z-]+) +\S", make(bare, "maintain").stdout, re.MULTILINE
    )
    targets = {
        name
        for line in re.findall(r"^([a-z- ]+):(?!=)", MAKEFILE, re.MULTILINE)
        for name in line.split()
    }
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
    """What names a notebook goes by way of the environment."""
    assert make(bare, "-n", "ALLOW_ROOT=--allow-root", *typed).stdout.rstrip().endswith(command)


NO_VENV = "case \"$*\" in *'-m venv'*) mkdir .venv; exit 1;; esac"
DISK_FULL = "echo Filesystem; echo disk 100 99 1000 99% /"
# To root nothing is forbidden: the answer is put into the shell's mouth.
NO_WRITING = """exec /bin/sh -c "$(printf %s "$2" | sed 's/test -w [.]/false/')\""""


@pytest.mark.parametrize(
    ("program", "script", "option", "told"),
    [
        ("python", "exit 1", "PYTHON={}/python", "needs Python 3.11, 3.12, 3.13 or 3.14"),
        ("python", NO_VENV, "PYTHON={}/python", "sudo apt install python3-venv"),
        (
            "df",
            DISK_FULL,
            f"PATH={{}}:{os.environ['PATH']}",
            "disk is too full: the course needs 3 GB",
        ),
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
    this = f'exec "{sys.executable}" "$@"'
    python = bare / "python"  # which makes its environments of itself, as a real one takes seconds
    python.write_text(
        f"#!/bin/sh\ncase $2 in venv) mkdir -p .venv/bin; cp $0 .venv/bin/python;; *) {this};; esac"
    )
    python.chmod(0o755)
    run = make(bare, "lab", f"PYTHON={python}", **nowhere)
    assert run.returncode
    assert "does not reach the package index" in run.stderr
    assert not (bare / ".venv" / "ready").exists()


@pytest.mark.parametrize("command", ["lab", "test"])
def test_a_home_that_cannot_hold_what_jupyter_keeps_is_told_how_to_go_on(bare, command):
    installed = "READY=", "TESTS=", "HUB=", "RUN=echo ran"
    run = make(bare, command, *installed, HOME=f"{bare / 'Makefile'}/no/folder")
    assert run.returncode
    assert f"make {command} HOME=/tmp/home" in run.stderr
    assert "ran" not in run.stdout
    assert make(bare, command, *installed, HOME=f"{bare / 'another home'}").stdout.count("ran") >= 1
    assert list((bare / "another home").iterdir()) == []


def test_clean_keeps_notebooks_and_the_backups_of_answers(bare):
    kept = [bare / "notebooks" / "01.ipynb", bare / "notebooks" / ".ipynb_checkpoints" / "01.ipynb"]
    kept += [
        bare / "my_notebooks" / name for name in ("01.ipynb", "record.txt", ".course/01.ipynb")
    ]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("answers")
    (bare / "tests").mkdir()
    (bare / ".venv").mkdir()
    assert make(bare, "clean").returncode == 0
    assert not (bare / ".venv").exists()
    assert all(path.read_text() == "answers" for path in kept)


# What material beside this project relies on, by module.
PUBLIC = {
    "floats": "FORMATS encode decode",
    "layout": "address can_view",
    "predict": "tensor_bytes matmul_flops matmul_bytes einsum_flops mlp_flops training_flops training_days RECIPES "
    "training_bytes largest_model mfu Transformer MODELS product_seconds timeline",
    "machines": "MACHINES this_machine",
    "measure": "time_call flops saved_bytes optimizer_bytes account",
    "checkpoints": "save load",
}


@pytest.mark.parametrize("name", PUBLIC)
def test_the_names_that_other_material_relies_on_are_there(name):
    module = getattr(course_utils, name)
    assert [one for one in PUBLIC[name].split() if not hasattr(module, one)] == []


def test_jupyterlab_finds_the_very_keys_of_this_course_in_the_environment():
    """They are read from there, so a change in the project would not be seen until `make` has installed it."""
    here = ROOT / "course_utils" / "stage" / "workspace" / "keys"
    there = Path(sysconfig.get_path("data"), "share", "jupyter", "labextensions", "course-keys")
    files = [path.relative_to(here) for path in here.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert [(there / path).read_bytes() for path in files] == [
        (here / path).read_bytes() for path in files
    ]
