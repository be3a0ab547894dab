"""A kernel as JupyterLab starts one, without a page."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel


@contextmanager
def kernel_in(folder: Path, **environment: str) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    """In that folder; it ends here, if it has not ended before."""
    env = os.environ | environment
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder), env=env)
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def printed(client: BlockingKernelClient, code: str) -> str:
    """What the kernel prints, or says of an error; warnings are neither."""
    shown: list[str] = []

    def hear(message: dict) -> None:
        content = message["content"]
        if content.get("name") != "stderr":
            shown.extend(str(content[key]) for key in ("text", "evalue") if key in content)

    client.execute_interactive(code, timeout=60, output_hook=hear)
    return "".join(shown).strip()
