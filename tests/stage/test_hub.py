"""What a hub is told about the course, on one machine and on Kubernetes.

These tests hold what can be held without a hub.
"""

import asyncio
import math
import re
import socket
import subprocess
import sys
from argparse import ArgumentTypeError
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import SimpleNamespace

import pytest
import yaml
from tornado.web import HTTPError
from traitlets.config import Config, PyFileConfigLoader

from tests import ROOT
from tests.helpers.hub import skip_without_hub
from tests.project.test_project import FOR_A_HUB, PYPROJECT

skip_without_hub()
Spawner = import_module("jupyterhub.spawner").Spawner
FOLDER = ROOT / "course_utils" / "stage" / "hub"
VALUES = yaml.safe_load((FOLDER / "values.yaml").read_text(encoding="utf-8"))
WITH_GPUS = yaml.safe_load((FOLDER / "gpu.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
STUDENT = VALUES["singleuser"]
# Settings that only the spawner for Kubernetes knows, so JupyterHub cannot check them: their types.
ON_KUBERNETES = {
    "image": str,
    "extra_resource_limits": dict,
    "extra_pod_config": dict,
    "tolerations": list,
}
PROFILES = WITH_GPUS["singleuser"]["profileList"]


class KubeSpawner(Spawner):
    """The spawner for Kubernetes as far as JupyterHub has it, which is where the hook is."""

    start = stop = poll = None


def on_one_machine() -> Config:
    return PyFileConfigLoader("jupyterhub_config.py", str(FOLDER)).load_config()


def test_the_kernels_of_those_who_are_named_alone_are_told_of_the_wall(monkeypatch):
    assert "services" not in on_one_machine().JupyterHub
    monkeypatch.setenv("COURSE_INSTRUCTORS", "cleo dan")
    told = on_one_machine()
    wall = told.Spawner.environment["COURSE_ROOM"]

    def spawner(user: str, name: str) -> SimpleNamespace:
        own = ["jupyterhub-singleuser", "--log-level=WARN"]
        return SimpleNamespace(user=SimpleNamespace(name=user), name=name, cmd=own, args=["--a"])

    presented = {user: wall(spawner(user, "04")) for user in ("cleo", "dan", "ada")}
    assert presented == {"cleo": "/services/room/wall/", "dan": "/services/room/wall/", "ada": ""}
    assert wall(spawner("cleo", "")) == "", "what an instructor tries alone asks nobody"

    # A server that is called after a notebook presents it. A student may not start one, and
    # nonsense gets a sentence.
    start = told.Spawner.pre_spawn_hook
    own = spawner("cleo", "")
    presents = spawner("cleo", "04")
    start(own)
    start(presents)
    assert (own.cmd[0], own.args) == ("jupyterhub-singleuser", ["--a"])
    assert presents.cmd[1:] == ["-m", "course_utils.stage.hub.presenting", "04", "--log-level=WARN"]
    for user, name, words in (
        ("ada", "04", "for instructors"),
        ("cleo", "9", "such as 04"),
        ("dan", "x", "04"),
    ):
        with pytest.raises(HTTPError) as refused:
            start(spawner(user, name))
        assert words in refused.value.jupyterhub_message
    accepted(import_module("jupyterhub.app").JupyterHub, dict(told.JupyterHub))


def accepted(traits: type, given: dict[str, object]) -> None:
    """Each is a setting of that class, and has a value that the class takes."""
    assert [name for name in given if not traits.class_traits(config=True).get(name)] == []
    traits(config=Config({traits.__name__: given}))


def test_the_image_the_chart_and_what_is_tried_here_have_one_version_of_jupyterhub():
    text = (FOLDER / "values.yaml").read_text(encoding="utf-8")
    (version,) = re.findall(r"Chart [\d.]+ runs JupyterHub ([\d.]+),", text)
    (jupyterhub,) = [package for package in FOR_A_HUB if package.name == "jupyterhub"]
    assert str(jupyterhub.specifier) == f"=={version}"
    assert re.findall(r"(?:--version|Chart) ([\d.]+) (?:--values|runs)", text) == ["4.4.0", "4.4.0"]
    assert "--constraint /course/constraints.txt /course jupyterhub" in DOCKERFILE


def test_one_machine_and_kubernetes_are_told_the_same_of_the_course():
    told = on_one_machine().Spawner
    assert told.default_url == STUDENT["defaultUrl"] == "/contents"
    assert told.environment == STUDENT["extraEnv"]
    assert told.http_timeout == VALUES["hub"]["config"]["KubeSpawner"]["http_timeout"]
    assert ["jupyterhub-singleuser", *told.args] == STUDENT["cmd"]


def test_jupyterhub_knows_each_setting_and_takes_its_value():
    accepted(Spawner, dict(on_one_machine().Spawner))
    for resource, short in (("memory", "mem"), ("cpu", "cpu")):
        for kind, value in STUDENT[resource].items():
            assert kind in ("limit", "guarantee")
            accepted(Spawner, {f"{short}_{kind}": value})
    for profile in PROFILES:
        assert_override_is_accepted(profile.get("kubespawner_override", {}))
    config = VALUES["hub"]["config"]
    shared = import_module("jupyterhub.authenticators.shared").SharedPasswordAuthenticator
    general = import_module("jupyterhub.auth").Authenticator
    # Until somebody has chosen a password, no hub starts.
    with pytest.raises(ValueError, match="must be at least 8 characters"):
        accepted(shared, config["SharedPasswordAuthenticator"])
    accepted(general, config["Authenticator"])
    assert config["JupyterHub"] == {"authenticator_class": "shared-password"}


def assert_override_is_accepted(override: dict[str, object]) -> None:
    general = {}
    for name, value in override.items():
        if name in ON_KUBERNETES:
            assert type(value) is ON_KUBERNETES[name], name
        else:
            general[name] = value
    accepted(Spawner, general)


def test_a_gpu_is_a_whole_one_for_a_while_and_whoever_waits_for_it_is_given_time():
    without, with_gpu = PROFILES
    assert without["default"] is True
    assert "kubespawner_override" not in without
    gpu = with_gpu["kubespawner_override"]
    assert gpu["extra_resource_limits"] == {"nvidia.com/gpu": "1"}
    minutes = gpu["extra_pod_config"]["activeDeadlineSeconds"] // 60
    assert with_gpu["display_name"].endswith(f"{minutes} minutes")
    assert "start_timeout" not in gpu, "the hub reads it before it reads the profile"
    config = Config()
    exec(WITH_GPUS["hub"]["extraConfig"]["patience"], {"c": config})
    for profile, patience_s in (("gpu", 1800), ("cpu", 300), (None, 300)):
        spawner = KubeSpawner(config=config, start_timeout=STUDENT["startTimeout"])
        asked = {"profile": profile} if profile else {}
        with ThreadPoolExecutor() as aside:  # in this thread, a browser's loop may be running
            aside.submit(asyncio.run, spawner._run_apply_user_options(asked)).result()
        assert spawner.start_timeout == patience_s, profile
    assert VALUES["hub"]["consecutiveFailureLimit"] == 0
    assert VALUES["hub"]["concurrentSpawnLimit"] == 0
    assert VALUES["cull"]["enabled"] is True


def test_what_the_image_copies_is_there_and_its_python_is_one_that_the_course_runs_on():
    for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.MULTILINE):
        *copied, _ = line.split()
        assert [name for name in copied if not (ROOT / name).exists()] == []
    (python,) = re.findall(r"^FROM python:3\.(\d+)-slim", DOCKERFILE, re.MULTILINE)
    low, high = re.findall(r"3\.(\d+)", PYPROJECT["project"]["requires-python"])
    assert int(low) <= int(python) < int(high)


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        ("long_enough", "short", "JupyterHub wants 8 characters or more"),
        (
            "free_port",
            "http",
            "http: there is no such port. Take another: make hub ARGS=--port=8001",
        ),
        ("free_port", "70000", "70000: there is no such port"),
        ("free_port", "-1", "-1: there is no such port"),
    ],
)
def test_make_hub_says_what_is_wrong_with_a_port_or_a_password(kind, given, told):
    hub = import_module("course_utils.stage.hub.__main__")
    with pytest.raises(ArgumentTypeError, match=re.escape(told)):
        getattr(hub, kind)(given)


def test_a_port_that_is_taken_is_a_sentence_and_no_traceback():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = f"--port={other.getsockname()[1]}"
        command = [sys.executable, "-m", "course_utils.stage.hub", port]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "Address already in use. Take another" in run.stderr
    assert "Traceback" not in run.stderr


def test_the_instructors_page_plans_with_what_the_values_promise():
    page = (ROOT / "notebooks" / "INSTRUCTORS.md").read_text(encoding="utf-8")
    students = 300
    gpus = 8
    memory = STUDENT["memory"]
    # M and G are MiB and GiB to JupyterHub.
    spawner = Spawner(mem_guarantee=memory["guarantee"], mem_limit=memory["limit"])
    gib_each = spawner.mem_guarantee / 2**30
    most_gib = spawner.mem_limit / 2**30
    bytes_of_all = students * spawner.mem_guarantee
    cores = STUDENT["cpu"]["guarantee"]
    *_, minutes, _ = PROFILES[1]["display_name"].split()
    rounds = math.ceil(students / gpus)
    hours = rounds * int(minutes) / 60
    for said in (
        f"each student is promised {gib_each:.0f} GiB and may take up to {most_gib:.0f} GiB",
        f"{bytes_of_all / 1e9:.0f} GB for {students}, or twelve machines of 32 GB",
        f"promised a tenth, {students * cores:.0f} in all, and may take two",
        f"Disk is {STUDENT['storage']['capacity'].replace('Gi', ' GiB')} each,",
        f"a whole one for {minutes} minutes",
        f"Eight of them give {students} students a turn each in {rounds} rounds, {hours:.1f} hours",
        "away for an hour loses the kernel",
    ):
        assert said in page
    usable = 0.9 * 32e9  # of a machine's bytes, because it keeps some for itself
    assert 11 * usable < bytes_of_all < 12 * usable
    assert cores == 0.1
    assert STUDENT["cpu"]["limit"] == 2
    assert VALUES["cull"]["timeout"] == 3600


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("ada", True), ("ünş-2.b", True), ("../ada", False), ("a/b", False), ("", False)],
)
def test_a_students_name_is_a_folder_inside_the_hubs_and_never_outside(tmp_path, name, is_one):
    config = import_module("course_utils.stage.hub.__main__").local(8000, "a password", tmp_path)
    shared = import_module("jupyterhub.authenticators.shared").SharedPasswordAuthenticator
    assert bool(shared(config=config).validate_username(name)) == is_one
