"""Kernels that are forked: each as fresh as one that is started."""

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from jupyter_client.manager import KernelManager, start_new_kernel
from jupyter_client.provisioning import KernelProvisionerFactory

from tests.browser import wait_until
from tests.tools.warm import WarmProvisioner, pytest_configure

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")
FIRST = (
    "import os, sys; seen = 'torch' in sys.modules, any(n.startswith('course_utils') for n in sys.modules)"
)


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels are forked, as in `make seconds`, and the process that forks them ends with the test."""
    factory = KernelProvisionerFactory.instance()
    monkeypatch.setattr(factory, "provisioners", dict(factory.provisioners))
    monkeypatch.setattr(factory, "default_provisioner_name", factory.default_provisioner_name)
    pytest_configure()
    yield
    source, WarmProvisioner._source = WarmProvisioner._source, None
    source.communicate()


@pytest.fixture
def kernels(warm: None, tmp_path: Path) -> Iterator[list[tuple[KernelManager, object]]]:
    pair = [start_new_kernel(kernel_name="python3", cwd=str(tmp_path)) for _ in range(2)]
    yield pair
    for manager, client in pair:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def said(client: object, code: str) -> str:
    shown: list[str] = []

    def hear(message: dict) -> None:
        shown.extend(str(message["content"][key]) for key in ("text", "evalue") if key in message["content"])

    client.execute_interactive(code, timeout=60, output_hook=hear)
    return "".join(shown).strip()


def test_a_warm_kernel_knows_torch_nothing_of_the_course_and_nothing_of_its_neighbour(kernels, tmp_path):
    (manager, one), (_, other) = kernels
    assert isinstance(manager.provisioner, WarmProvisioner)
    assert said(one, f"{FIRST}; mine = 1; print(*seen, os.getcwd())") == f"True False {tmp_path}"
    assert said(other, "print(mine)") == "name 'mine' is not defined"
    pids = {int(said(client, "import os; print(os.getpid())")) for client in (one, other)}
    assert pids == {manager.provisioner.pid for manager, _ in kernels}
    assert len(pids) == 2


def test_what_a_warm_kernel_starts_is_waited_for_and_ends_with_it(kernels):
    manager, client = kernels[0]
    assert said(client, "import subprocess; print(subprocess.run(['false']).returncode)") == "1"
    pid = int(said(client, "child = subprocess.Popen(['sleep', '600']); print(child.pid)"))
    child = psutil.Process(pid)
    manager.shutdown_kernel(now=True)
    wait_until(lambda: ended(child), "it has ended")


def ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
