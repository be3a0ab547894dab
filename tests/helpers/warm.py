"""A plugin of pytest that starts kernels in half of the usual time, by forking a warm process.

Every notebook still has a kernel of its own, in which its cells import what they name. But what
they import from outside the course, torch above all, has been imported once, in a process that
does nothing else, and each kernel begins as a copy of that process. The process has one thread and
has computed nothing, because otherwise forking it would not be safe. One such process serves all
workers and their JupyterLabs, and it starts while they start.

Kernels start as usual on other systems than Linux, on the hub, and for `make outputs`. The tests
show that warm kernels give the same results as that command stored.
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

# torch._dynamo is here because the first optimizer imports it, and the first count of FLOPs.
# matplotlib.pyplot is not, because it shows its figures in the notebook only if imported there.
IMPORTED = """
torch torch._dynamo ipykernel.kernelapp ipykernel.ipkernel
matplotlib.figure matplotlib.backends.backend_agg ipywidgets anywidget PIL.Image resvg_py
ml_dtypes einops jaxtyping beartype opt_einsum psutil
"""

WHERE = "WARM_KERNELS"  # the variable that names where that process listens


def pytest_configure() -> None:
    """Give a warm kernel to whatever asks for one in this process or its children."""
    if sys.platform != "linux":
        return
    if not os.environ.get(WHERE):
        try:
            WarmProvisioner.source = _begin()
        except OSError:  # no space for the folder, or a path that is too long for a socket
            return  # kernels start as usual
    factory = KernelProvisionerFactory.instance()
    where = f"{__name__}:{WarmProvisioner.__name__}"
    factory.provisioners["warm"] = EntryPoint("warm", where, KernelProvisionerFactory.GROUP_NAME)
    factory.default_provisioner_name = "warm"


def configure_server(settings: Path) -> None:
    """Let the Jupyter server whose settings lie in that folder start warm kernels, too."""
    settings.mkdir(parents=True, exist_ok=True)
    lines = [
        f"import sys; sys.path.append({str(ROOT)!r})",
        "from tests.helpers import warm; warm.pytest_configure()",
    ]
    (settings / "jupyter_server_config.py").write_text("\n".join(lines), encoding="utf-8")


def _begin() -> subprocess.Popen:
    """Start the process that forks. It ends with its standard input, so at the latest with us."""
    folder = tempfile.mkdtemp(prefix="warm-kernels-")  # readable for this user alone
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
    """A forked kernel, with the methods of subprocess.Popen that LocalProvisioner calls."""

    stdin = stdout = stderr = None  # Popen's attributes, of which a forked kernel has none

    def send_signal(self, number: int) -> None:
        """Do nothing if the kernel has ended, as Popen does."""
        with suppress(psutil.NoSuchProcess):
            super().send_signal(number)

    def poll(self) -> int | None:
        """Return None while the kernel runs. Its exit status is not known, so 0 stands for it."""
        return None if self.is_running() else 0


class WarmProvisioner(LocalProvisioner):
    """Forks a kernel where LocalProvisioner starts one."""

    source: ClassVar[subprocess.Popen | None] = None

    async def launch_kernel(self, cmd: list[str], **options: Any) -> dict[str, object]:
        """Ask for a fork that starts a kernel with the arguments of that command."""
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
    """Fork a kernel for each connection to the socket, until the standard input ends."""
    # ipykernel would set this, but only after matplotlib has read it.
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    for name in IMPORTED.split():
        importlib.import_module(name)
    gc.freeze()  # the collector leaves alone what is shared with the kernels
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system reaps the kernels
    with selectors.DefaultSelector() as heard:
        heard.register(door, selectors.EVENT_READ)
        heard.register(sys.stdin, selectors.EVENT_READ)
        # Standard input becomes readable only when it ends.
        while all(key.fileobj is door for key, _ in heard.select()):
            caller, _ = door.accept()
            with caller, caller.makefile("rw") as wire:
                line = wire.readline()
                if not line:  # the caller has hung up
                    continue
                order = json.loads(line)
                is_kernel = os.fork() == 0
                if is_kernel:
                    print(os.getpid(), file=wire, flush=True)
            if is_kernel:
                heard.close()
                door.close()
                _become_kernel(**order)


def _become_kernel(arguments: list[str], folder: str, env: dict[str, str]) -> None:
    """Run as a kernel until it ends; in a forked process, which has to look freshly started."""
    source = os.getppid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # so that the processes that it starts can be ended with it
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    folders = env.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [folder for folder in folders if folder]
    sys.argv[1:] = arguments
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance(parent_handle=source)  # it ends with that process
    sys.exit()  # runs what was registered for the end, as in any kernel


if __name__ == "__main__":
    del sys.path[0]  # this command's folder; a kernel has the notebook's there
    file_number = int(sys.argv.pop())
    _fork_on_demand(socket.socket(fileno=file_number))
