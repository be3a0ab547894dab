"""Twenty students at once on a real JupyterHub: each with a server and a kernel, all notebooks in turn.

`make twenty`; `make twenty ARGS="6 05"` lets six run the fifth. Says which cells failed, and what a student takes of
memory.
"""

import asyncio
import json
import secrets
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from urllib.parse import quote
from uuid import uuid4

import nbformat
import psutil
import requests
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from course_utils.desk import copies
from tests.browser import answers
from tests.hub import running_hub
from tests.waiting import wait_until

LARGEST_MESSAGE_BYTES = 2**28
PATIENCE_S = 600  # twenty kernels that start on two cores take turns


@dataclass
class Student:
    """One who has logged in, and the notebook that this one runs."""

    name: str
    address: str
    notebook: Path
    session: requests.Session = field(default_factory=requests.Session)
    channel: WebSocketClientConnection | None = None
    failed: list[str] = field(default_factory=list)

    def log_in(self, password: str) -> None:
        """Which asks for a server, too; it has not started when this returns."""
        page = f"{self.address}/hub/login"
        self.session.get(page).raise_for_status()
        form = {"username": self.name, "password": password, "_xsrf": self._token("/hub/")}
        self.session.post(page, form).raise_for_status()

    def has_contents(self) -> bool:
        """Whether the server is there and shows its page."""
        return "What is yours" in self.session.get(f"{self._server}/contents").text

    async def start_kernel(self) -> None:
        """Of the copy, and the way to it that a page would take."""
        asked = {"path": f"{copies.MINE.name}/{self.notebook.name}", "name": "", "type": "notebook"}
        token = self._token(f"/user/{self.name}/")
        answer = self.session.post(
            f"{self._server}/api/sessions",
            json=asked | {"kernel": {"name": "python3"}},
            headers={"X-XSRFToken": token},
        )
        channels = f"{self._server}/api/kernels/{answer.json()['kernel']['id']}/channels?_xsrf={quote(token)}"
        cookies = "; ".join(
            f"{each.name}={each.value}" for each in self.session.cookies if each.path != "/hub/"
        )
        patience = {"connect_timeout": PATIENCE_S, "request_timeout": PATIENCE_S}
        request = HTTPRequest(channels.replace("http", "ws", 1), headers={"Cookie": cookies}, **patience)
        self.channel = await websocket_connect(request, max_message_size=LARGEST_MESSAGE_BYTES)

    async def run(self, first: int, last: int | None = None) -> None:
        """These code cells, one after the other."""
        cells = [
            each for each in nbformat.read(self.notebook, as_version=4).cells if each.cell_type == "code"
        ]
        for cell in cells[first:last]:
            header = {
                "msg_id": uuid4().hex,
                "msg_type": "execute_request",
                "session": self.name,
                "username": "",
            }
            content = {"code": cell.source, "silent": False, "store_history": True, "stop_on_error": False}
            message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
            await self.channel.write_message(json.dumps(message | {"channel": "shell"}))
            reply = await self._reply(header["msg_id"])
            if reply["status"] != "ok":
                self.failed.append(
                    f"{self.notebook.name}, {cell.source[:60]!r}: {reply.get('evalue', reply)}"
                )

    async def _reply(self, to: str) -> dict[str, object]:
        while (text := await self.channel.read_message()) is not None:
            message = json.loads(text) if isinstance(text, str) else {"parent_header": {}}
            if message["parent_header"].get("msg_id") == to and message["msg_type"] == "execute_reply":
                return message["content"]
        return {"status": "the kernel is gone"}

    @property
    def _server(self) -> str:
        return f"{self.address}/user/{self.name}"

    def _token(self, path: str) -> str:
        return next(each.value for each in self.session.cookies if each.name == "_xsrf" and each.path == path)


def memory_bytes(homes: Path) -> dict[str, list[int]]:
    """Of each student's server and kernel, what is its alone plus its share of what several hold (Linux: PSS)."""
    found = defaultdict(list)
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # gone meanwhile, or another's
            command = " ".join(process.cmdline())
            if Path(process.cwd()).is_relative_to(homes):
                kind = (
                    "kernel" if "ipykernel" in command else "server" if "singleuser" in command else "worker"
                )
                memory = process.memory_full_info()
                found[kind].append(getattr(memory, "pss", memory.uss))
    return found


def told(when: str, taken: dict[str, list[int]]) -> str:
    """Of the memory at that moment, a line."""
    parts = [f"{fmean(taken[kind]) / 1e6:.0f} MB a {kind}" for kind in ("server", "kernel") if taken[kind]]
    return f"{when:<28}{', '.join(parts)}; all together {sum(map(sum, taken.values())) / 1e9:.2f} GB"


async def most_while(homes: Path, work: asyncio.Future) -> tuple[int, int]:
    """The most bytes of all students together, and of one kernel, until the work is done."""
    most = largest = 0
    is_done = False
    while not is_done:
        is_done = work.done()  # before it is looked at once more
        taken = await asyncio.to_thread(memory_bytes, homes)
        most, largest = max(most, sum(map(sum, taken.values()))), max(largest, *taken["kernel"])
        await asyncio.sleep(0.5)
    await work
    return most, largest


async def run_all(students: list[Student], homes: Path) -> None:
    """First what every notebook begins with, then all the rest; what it took of memory."""
    await asyncio.gather(*(each.start_kernel() for each in students))
    await asyncio.gather(*(each.run(0, 1) for each in students))
    print(told("after the first cell", memory_bytes(homes)), flush=True)
    most, largest = await most_while(homes, asyncio.gather(*(each.run(1) for each in students)))
    print(told("after the last cell", memory_bytes(homes)))
    print(f"{'at most':<28}{largest / 1e6:.0f} MB a kernel; all together {most / 1e9:.2f} GB")


def main(number: str = "20", *names: str) -> int:
    """Print the table."""
    notebooks, number = copies.chosen(names), int(number)
    password, begun = secrets.token_hex(8), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, running_hub(Path(folder), password) as (address, homes):
        students = [Student(f"student{n}", address, notebooks[n % len(notebooks)]) for n in range(number)]
        wait_until(lambda: answers(f"{address}/hub/api"), "the hub answers")
        for each in students:
            each.log_in(password)
        for each in students:
            wait_until(each.has_contents, f"{each.name} has a page", seconds=PATIENCE_S)
        print(told("after opening the contents", memory_bytes(homes())), flush=True)
        asyncio.run(run_all(students, homes()))
    failed = [line for each in students for line in each.failed]
    print(
        f"{number} students at once: {time.monotonic() - begun:.0f} s, {len(failed)} cells failed.",
        *failed,
        sep="\n",
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
