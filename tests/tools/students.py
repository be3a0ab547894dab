"""Twenty students at once on a real JupyterHub: each with a server and a kernel, all notebooks in turn.

`make students`; `make students ARGS="6 05"` lets six run the fifth. Says which cells failed, and what a student takes of
memory.
"""

import secrets
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from urllib.parse import quote

import psutil
import requests
from requests.cookies import get_cookie_header
from websocket import create_connection

from course_utils.stage.workspace import copies
from tests.helpers.browser import answers
from tests.helpers.hub import running_hub
from tests.helpers.notebooks import code
from tests.helpers.waiting import wait_until
from tests.tools.remote import reply

PATIENCE_S = 600  # twenty kernels that start on two cores take turns


@dataclass
class Student:
    """One who has logged in, and the notebook that this one runs."""

    name: str
    address: str
    notebook: Path
    session: requests.Session = field(default_factory=requests.Session)
    kernel: str = ""
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

    def start_kernel(self) -> None:
        """Start a kernel for the student's copy."""
        asked = {"path": f"{copies.MINE.name}/{self.notebook.name}", "name": "", "type": "notebook"}
        answer = self.session.post(
            f"{self._server}/api/sessions",
            json=asked | {"kernel": {"name": "python3"}},
            headers={"X-XSRFToken": self._token(f"/user/{self.name}/")},
        )
        self.kernel = answer.json()["kernel"]["id"]

    def run(self, first: int, last: int | None = None) -> None:
        """These code cells, one after the other, on the way to the kernel that a page would take."""
        token = quote(self._token(f"/user/{self.name}/"))
        channels = f"{self._server}/api/kernels/{self.kernel}/channels?_xsrf={token}"
        cookies = get_cookie_header(self.session.cookies, requests.Request(url=channels))
        way = create_connection(channels.replace("http", "ws", 1), PATIENCE_S, cookie=cookies)
        with closing(way) as channel:
            for cell in code(self.notebook)[first:last]:
                said = reply(channel, cell.source)
                if said["status"] != "ok":
                    what = f"{self.notebook.name}, {cell.source[:60]!r}"
                    self.failed.append(f"{what}: {said.get('evalue', said)}")

    @property
    def _server(self) -> str:
        return f"{self.address}/user/{self.name}"

    def _token(self, path: str) -> str:
        return self.session.cookies.get("_xsrf", path=path)


def memory_bytes(homes: Path) -> dict[str, list[int]]:
    """Of each student's server and kernel, what is its alone plus its share of what several hold (Linux: PSS)."""
    found = defaultdict(list)
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # gone meanwhile, or another's
            command = " ".join(process.cmdline())
            if Path(process.cwd()).is_relative_to(homes):
                kind = (
                    "kernel"
                    if "ipykernel" in command
                    else "server"
                    if "singleuser" in command
                    else "worker"
                )
                memory = process.memory_full_info()
                found[kind].append(getattr(memory, "pss", memory.uss))
    return found


def told(when: str, taken: dict[str, list[int]]) -> str:
    """A line on the memory at that moment."""
    parts = [
        f"{fmean(taken[kind]) / 1e6:.0f} MB a {kind}"
        for kind in ("server", "kernel")
        if taken[kind]
    ]
    return (
        f"{when:<28}{', '.join(parts)}; all together {sum(map(sum, taken.values())) / 1e9:.2f} GB"
    )


def most_while(homes: Path, work: Sequence[Future]) -> tuple[int, int]:
    """The most bytes of all students together, and of one kernel, until the work is done."""
    most = largest = 0
    is_done = False
    while not is_done:
        is_done = not wait(work, timeout=0.5).not_done  # before it is looked at once more
        taken = memory_bytes(homes)
        most, largest = max(most, sum(map(sum, taken.values()))), max(largest, *taken["kernel"])
    for each in work:
        each.result()
    return most, largest


def run_all(students: list[Student], homes: Path) -> None:
    """First what every notebook begins with, then all the rest; what it took of memory."""
    with ThreadPoolExecutor(len(students)) as at_once:
        list(at_once.map(Student.start_kernel, students))
        list(at_once.map(lambda each: each.run(0, 1), students))
        print(told("after the first cell", memory_bytes(homes)), flush=True)
        most, largest = most_while(homes, [at_once.submit(each.run, 1) for each in students])
    print(told("after the last cell", memory_bytes(homes)))
    print(f"{'at most':<28}{largest / 1e6:.0f} MB a kernel; all together {most / 1e9:.2f} GB")


def main(number: str = "20", *names: str) -> int:
    notebooks, number = copies.chosen(names), int(number)
    password, begun = secrets.token_hex(8), time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_hub(Path(folder), password, "") as (address, homes),
    ):
        students = [
            Student(f"student{n}", address, notebooks[n % len(notebooks)]) for n in range(number)
        ]
        wait_until(lambda: answers(f"{address}/hub/api"), "the hub answers")
        for each in students:
            each.log_in(password)
        for each in students:
            wait_until(each.has_contents, f"{each.name} has a page", seconds=PATIENCE_S)
        print(told("after opening the contents", memory_bytes(homes())), flush=True)
        run_all(students, homes())
    failed = [line for each in students for line in each.failed]
    took_s = time.monotonic() - begun
    print(
        f"{number} students at once: {took_s:.0f} s, {len(failed)} cells failed.", *failed, sep="\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
