"""Kernels that start warm: a plugin of pytest, and the process from which it forks them.

Every notebook still has a kernel of its own, in which its cells import what they name. But what they import from
outside the course, torch above all, was read from disk once, in a process that does nothing else and that each
kernel begins as a copy of: that takes half of the time. It has one thread and has computed nothing, or forking it would
not be safe. There is one for all workers and their JupyterLabs, and it begins while they begin. Elsewhere than on Linux,
kernels start as usual; so do those of the hub, and those of `make outputs`, whose results these show, too.
"""

import atexit
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import psutil
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

from tests import ROOT

# torch._dynamo: the first optimizer imports it, and the first count of FLOPs.
# Not matplotlib.pyplot, which shows its figures in the notebook only if it is imported there.
IMPORTED = """torch torch._dynamo ipykernel.kernelapp ipykernel.ipkernel matplotlib.figure matplotlib.backends.backend_agg
ipywidgets anywidget PIL.Image resvg_py ml_dtypes einops jaxtyping beartype opt_einsum psutil"""


WHERE = "WARM_KERNELS"  # the variable that names where that process listens


def pytest_configure() -> None:
    """Whoever asks for a kernel in this process, or in one that it starts, gets a warm one."""
    if sys.platform != "linux":
        return
    if not os.environ.get(WHERE):
        try:
            WarmProvisioner.source = _begin()
        except (
            OSError
        ):  # no space for the folder, or too long a path for a socket: kernels start as usual
            return
    factory = KernelProvisionerFactory.instance()
    where = f"{__name__}:{WarmProvisioner.__name__}"
    factory.provisioners["warm"] = EntryPoint("warm", where, KernelProvisionerFactory.GROUP_NAME)
    factory.default_provisioner_name = "warm"


def configure_server(settings: Path) -> None:
    """A Jupyter server that finds its settings in that folder asks there, too."""
    settings.mkdir(parents=True, exist_ok=True)
    code = f"import sys; sys.path.append({str(ROOT)!r}); from tests.helpers import warm; warm.pytest_configure()"
    (settings / "jupyter_server_config.py").write_text(code, encoding="utf-8")


def _begin() -> subprocess.Popen:
    """The process that forks; it ends with its standard input, and so with this one."""
    folder = tempfile.mkdtemp(prefix="warm-kernels-")  # into which nobody else may look
    atexit.register(shutil.rmtree, folder)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{folder}/door")
        door.listen()
        command = [sys.executable, "-m", __name__, str(door.fileno())]
        source = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, pass_fds=[door.fileno()]
        )
    os.environ[WHERE] = f"{folder}/door"
    return source


class _Kernel(psutil.Process):
    """What LocalProvisioner asks of a subprocess.Popen."""

    stdin = stdout = stderr = None

    def send_signal(self, number: int) -> None:
        """As there, to one that has ended it does nothing."""
        with suppress(psutil.NoSuchProcess):
            super().send_signal(number)

    def poll(self) -> int | None:
        return None if self.is_running() else 0


class WarmProvisioner(LocalProvisioner):
    """Forks a kernel where LocalProvisioner starts one."""

    source: ClassVar[subprocess.Popen | None] = None

    async def launch_kernel(self, cmd: list[str], **options: Any) -> dict[str, object]:
        """A copy of that process, told what the command would have told a new one."""
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        folder = str(options.get("cwd") or os.getcwd())
        order = {"arguments": arguments, "folder": folder, "env": options["env"]}
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(os.environ[WHERE])
            with door.makefile("rw") as wire:
                print(json.dumps(order), file=wire, flush=True)
                self.pid = self.pgid = int(wire.readline())
        self.process = _Kernel(self.pid)
        return self.connection_info


def _fork_on_demand(door: socket.socket) -> None:
    """A kernel for each who comes to the door, until the standard input ends."""
    # As ipykernel does, before matplotlib reads it.
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    for name in IMPORTED.split():
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with selectors.DefaultSelector() as heard:
        heard.register(door, selectors.EVENT_READ)
        heard.register(sys.stdin, selectors.EVENT_READ)
        while all(key.fileobj is door for key, _ in heard.select()):
            caller, _ = door.accept()
            with caller, caller.makefile("rw") as wire:
                if not (line := wire.readline()):  # who came is gone
                    continue
                order = json.loads(line)
                if forked := os.fork() == 0:
                    print(os.getpid(), file=wire, flush=True)
            if forked:
                heard.close()
                door.close()
                _become_kernel(**order)


def _become_kernel(arguments: list[str], folder: str, env: dict[str, str]) -> None:
    source = os.getppid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # so that all that it starts can be ended with it
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv[1:] = arguments
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance(parent_handle=source)  # with which it ends
    sys.exit()  # what was registered for the end is done, as in any kernel


if __name__ == "__main__":
    del sys.path[0]  # the folder, where a kernel has the notebook's
    _fork_on_demand(socket.socket(fileno=int(sys.argv.pop())))
