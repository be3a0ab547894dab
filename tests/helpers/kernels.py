"""A kernel as JupyterLab starts one, without a page."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager


@contextmanager
def kernel_in(
    folder: Path, *command: object, **environment: str
) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    """Run a kernel in that folder, and end it at the latest with the `with` block.

    Without a command it is started as this Python environment starts its kernels.
    """
    manager = KernelManager(kernel_name="python3")
    if command:
        words = [str(word) for word in command]
        manager._kernel_spec = KernelSpec(argv=[*words, "-f", "{connection_file}"])
    manager.start_kernel(cwd=str(folder), env=os.environ | environment)
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def printed(client: BlockingKernelClient, code: str) -> str:
    """Run the code, and return what the kernel prints and its errors' messages.

    Warnings go to stderr, and are left out.
    """
    shown: list[str] = []

    def hear(message: dict) -> None:
        content = message["content"]
        if content.get("name") == "stderr":
            return
        for key in ("text", "evalue"):
            if key in content:
                shown.append(str(content[key]))

    client.execute_interactive(code, timeout=60, output_hook=hear)
    return "".join(shown).strip()
