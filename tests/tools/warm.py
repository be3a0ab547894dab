"""Kernels that start warm, for `make seconds`: a plugin of pytest, and the process from which it forks them.

Every notebook still has a kernel of its own, in which its cells import what they name. But what they import from
outside the course, torch above all, was read from disk once, in a process that does nothing else and that each
kernel begins as a copy of. It has one thread and has computed nothing, or forking it would not be safe. Elsewhere
than on Linux, kernels start as usual; so do those of `make test` and `make outputs`, whose results these show, too.
"""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import psutil
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

from tests import ROOT

# torch._dynamo: the first optimizer imports it, and the first count of FLOPs.
IMPORTED = """torch torch._dynamo ipykernel.kernelapp ipykernel.ipkernel matplotlib.pyplot ipywidgets anywidget
matplotlib_inline.backend_inline PIL.Image resvg_py ml_dtypes einops jaxtyping beartype opt_einsum psutil"""


def pytest_configure() -> None:
    """Whoever asks for a kernel in this process gets a warm one."""
    if sys.platform == "linux":
        factory = KernelProvisionerFactory.instance()
        where = f"{__name__}:{WarmProvisioner.__name__}"
        factory.provisioners["warm"] = EntryPoint("warm", where, KernelProvisionerFactory.GROUP_NAME)
        factory.default_provisioner_name = "warm"


class _Kernel(psutil.Process):
    """What LocalProvisioner asks of a subprocess.Popen."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        return None if self.is_running() else 0


class WarmProvisioner(LocalProvisioner):
    """Forks a kernel where LocalProvisioner starts one."""

    _source: ClassVar[subprocess.Popen | None] = None

    async def launch_kernel(self, cmd: list[str], **options: Any) -> dict[str, object]:
        """A copy of that process, told what the command would have told a new one."""
        if WarmProvisioner._source is None:
            WarmProvisioner._source = subprocess.Popen(
                [sys.executable, "-m", __name__],
                cwd=ROOT,
                stdin=subprocess.PIPE,  # closed when we end, however that comes
                stdout=subprocess.PIPE,
                text=True,
            )
        source = WarmProvisioner._source
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        folder = str(options.get("cwd") or os.getcwd())
        order = {"arguments": arguments, "folder": folder, "env": options["env"]}
        print(json.dumps(order), file=source.stdin, flush=True)
        self.pid = self.pgid = int(source.stdout.readline())
        self.process = _Kernel(self.pid)
        return self.connection_info


def _fork_on_demand() -> None:
    """A kernel for each line that comes in, until there are no more."""
    for name in IMPORTED.split():
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    for line in sys.stdin:
        if os.fork() == 0:
            _become_kernel(**json.loads(line))


def _become_kernel(arguments: list[str], folder: str, env: dict[str, str]) -> None:
    source = os.getppid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # so that all that it starts can be ended with it
    print(os.getpid(), flush=True)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env, JPY_PARENT_PID=str(source))  # with which it ends
    sys.argv[1:] = arguments
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance()
    os._exit(0)


if __name__ == "__main__":
    del sys.path[0]  # the folder, where a kernel has the notebook's
    _fork_on_demand()
