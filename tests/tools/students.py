"""Twenty students at once on a real JupyterHub, each with a server, a kernel and a notebook.

`make students`; `make students ARGS="6 05"` lets six run the fifth notebook. It prints which cells
failed, and how much memory a student takes.
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
    """A student of the hub, and the notebook that this one runs."""

    name: str
    address: str
    notebook: Path
    session: requests.Session = field(default_factory=requests.Session)
    kernel: str = ""
    failed: list[str] = field(default_factory=list)

    def log_in(self, password: str) -> None:
        """Log in, which also asks for a server; the server has not started when this returns."""
        page = f"{self.address}/hub/login"
        self.session.get(page).raise_for_status()
        form = {"username": self.name, "password": password, "_xsrf": self._token("/hub/")}
        self.session.post(page, form).raise_for_status()

    def has_contents(self) -> bool:
        """Whether the server is there and shows its page."""
        return "What is yours" in self.session.get(f"{self._server}/contents").text

    def start_kernel(self) -> None:
        """Start a kernel for the student's copy."""
        session = {
            "path": f"{copies.MINE.name}/{self.notebook.name}",
            "name": "",
            "type": "notebook",
            "kernel": {"name": "python3"},
        }
        answer = self.session.post(
            f"{self._server}/api/sessions",
            json=session,
            headers={"X-XSRFToken": self._token(f"/user/{self.name}/")},
        )
        self.kernel = answer.json()["kernel"]["id"]

    def run(self, first: int, last: int | None = None) -> None:
        """Run these code cells one by one, through the websocket that a page would use."""
        token = quote(self._token(f"/user/{self.name}/"))
        channels = f"{self._server}/api/kernels/{self.kernel}/channels?_xsrf={token}"
        cookies = get_cookie_header(self.session.cookies, requests.Request(url=channels))
        address = channels.replace("http", "ws", 1)
        with closing(create_connection(address, PATIENCE_S, cookie=cookies)) as channel:
            for cell in code(self.notebook)[first:last]:
                said = reply(channel, cell.source)
                if said["status"] != "ok":
                    where = f"{self.notebook.name}, {cell.source[:60]!r}"
                    self.failed.append(f"{where}: {said.get('evalue', said)}")

    @property
    def _server(self) -> str:
        """The address of the student's server."""
        return f"{self.address}/user/{self.name}"

    def _token(self, path: str) -> str:
        """Return the token against forged requests, from the cookie for this path."""
        return self.session.cookies.get("_xsrf", path=path)


def memory_bytes(homes: Path) -> dict[str, list[int]]:
    """Return the memory of each student's server and kernel.

    On Linux it is the proportional set size: what the process has alone, and its share of what
    several processes have together. Elsewhere it is only what the process has alone.
    """
    found = defaultdict(list)
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # the process has ended, or is another user's
            if Path(process.cwd()).is_relative_to(homes):
                memory = process.memory_full_info()
                found[_kind_of(process)].append(getattr(memory, "pss", memory.uss))
    return found


def _kind_of(process: psutil.Process) -> str:
    """Return "kernel", "server" or, for a process that a kernel has started, "worker"."""
    command = " ".join(process.cmdline())
    if "ipykernel" in command:
        return "kernel"
    if "singleuser" in command:
        return "server"
    return "worker"


def together(taken: dict[str, list[int]]) -> int:
    """Return the bytes of all processes together."""
    return sum(sum(nbytes) for nbytes in taken.values())


def told(when: str, taken: dict[str, list[int]]) -> str:
    """Return a line on the memory at that moment."""
    parts = []
    for kind in ("server", "kernel"):
        if taken[kind]:
            parts.append(f"{fmean(taken[kind]) / 1e6:.0f} MB a {kind}")
    return f"{when:<28}{', '.join(parts)}; all together {together(taken) / 1e9:.2f} GB"


def most_while(homes: Path, work: Sequence[Future]) -> tuple[int, int]:
    """Return the most bytes of all students together, and of one kernel, until the work is done."""
    most = 0
    largest_kernel = 0
    is_done = False
    while not is_done:
        waited = wait(work, timeout=0.5)
        is_done = not waited.not_done  # the memory is looked at once more after the end
        taken = memory_bytes(homes)
        most = max(most, together(taken))
        largest_kernel = max([largest_kernel, *taken["kernel"]])  # perhaps none is alive
    for future in work:
        future.result()  # raises what the work has raised
    return most, largest_kernel


def run_all(students: list[Student], homes: Path) -> None:
    """Run all first cells, which import, then all others; print how much memory they took."""
    with ThreadPoolExecutor(len(students)) as at_once:
        list(at_once.map(Student.start_kernel, students))  # a list waits for all of them
        list(at_once.map(lambda student: student.run(0, 1), students))
        print(told("after the first cell", memory_bytes(homes)), flush=True)
        work = [at_once.submit(student.run, 1) for student in students]
        most, largest = most_while(homes, work)
    print(told("after the last cell", memory_bytes(homes)))
    print(f"{'at most':<28}{largest / 1e6:.0f} MB a kernel; all together {most / 1e9:.2f} GB")


def main(number: str = "20", *names: str) -> int:
    """Let so many students run these notebooks, in turn, or all; return the exit status."""
    notebooks = copies.chosen(names)
    password = secrets.token_hex(8)
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_hub(Path(folder), password, "") as (address, homes),
    ):
        students = []
        for n in range(int(number)):
            notebook = notebooks[n % len(notebooks)]
            students.append(Student(f"student{n}", address, notebook))
        wait_until(lambda: answers(f"{address}/hub/api"), "the hub answers")
        for student in students:
            student.log_in(password)
        for student in students:
            wait_until(student.has_contents, f"{student.name} has a page", seconds=PATIENCE_S)
        print(told("after opening the contents", memory_bytes(homes())), flush=True)
        run_all(students, homes())
    failed = [line for student in students for line in student.failed]
    took_s = time.monotonic() - begun
    summary = f"{number} students at once: {took_s:.0f} s, {len(failed)} cells failed."
    print(summary, *failed, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
