"""Programs that act as phones and as the wall's page, over HTTP, and the room's process."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests import ROOT

# The wall's pages, reduced to the places that the room's process fills in.
PAGES = {
    "wall.html": "<script src=wall.js></script>",
    "start.html": "<p>{{address}}</p>{{qr}}",
    "kept.html": (
        "<style>{{css}}</style>"
        '<script type="application/json">{{data}}</script>'
        "<script>{{js}}</script>"
    ),
    "wall.js": "document.title = 'kept'",
    "wall.css": "p { color: red }",
}


@dataclass(frozen=True)
class Reply:
    """What came back; the status is 0 if the connection was closed without a reply."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""

    @property
    def said(self) -> object:
        """The body, read as JSON."""
        return json.loads(self.body)


async def request(
    url: str, body: object = None, method: str = "", home: str | None = None, **headers: str
) -> Reply:
    """Send one request, from the address `home` if one is given.

    A body that is no text is sent as JSON. A header's name is written with _ in place of -.
    """
    host = urlsplit(url).netloc
    with suppress(OSError):
        own_address = (home, 0) if home else None
        reader, writer = await asyncio.open_connection(*host.split(":"), local_addr=own_address)
        writer.write(_request_text(url, body, method, headers).encode())
        received = (await reader.read()).decode()
        writer.close()
        if received:
            return _reply_in(received)
    return Reply()


def _request_text(url: str, body: object, method: str, headers: dict[str, str]) -> str:
    """Return the request as HTTP writes it: a line, the headers, an empty line, and the body."""
    _, host, path, query, _ = urlsplit(url)
    text = ""
    if isinstance(body, str):
        text = body
    elif body is not None:
        text = json.dumps(body)
    sent = {
        "Host": host,
        "Content-Type": "application/json",
        "Content-Length": str(len(text.encode())),
    }
    for name, value in headers.items():
        sent[name.replace("_", "-")] = value

    usual_method = "GET" if body is None else "POST"
    lines = [f"{method or usual_method} {path}?{query} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in sent.items()]
    return "\r\n".join([*lines, "", text])


def _reply_in(received: str) -> Reply:
    """Return the reply in a text that came over HTTP."""
    head, _, body = received.partition("\r\n\r\n")
    first_line, *lines = head.split("\r\n")
    status = first_line.split()[1]
    headers = dict(line.split(": ", 1) for line in lines)
    return Reply(int(status), headers, body)


def together(work: Coroutine) -> object:
    """Run the coroutine in another thread, because in this one a browser's loop may be running."""
    with ThreadPoolExecutor() as other_thread:
        return other_thread.submit(asyncio.run, work).result()


def send(url: str, body: object = None, method: str = "", **headers: str) -> Reply:
    return together(request(url, body, method, **headers))


@dataclass
class Phone:
    """A phone in the room. It has the cookie with which the room's process knows it again."""

    address: str
    cookie: str = ""
    home: str | None = None  # its own address; every one that begins with 127. is this machine's

    async def question(self) -> dict:
        """Ask for the question that is open now, and keep the cookie that comes with it."""
        reply = await request(f"{self.address}question", home=self.home, Cookie=self.cookie)
        self.cookie = reply.headers.get("Set-Cookie", self.cookie).partition(";")[0]
        return reply.said

    async def guess(self, text: str) -> Reply:
        """Look at the question and answer it, as a person would."""
        asked = await self.question()
        body = {"key": asked["key"], "round": asked.get("round"), "guess": text}
        return await request(f"{self.address}guess", body, home=self.home, Cookie=self.cookie)


async def all_guess(phones: Sequence[Phone], texts: Sequence[str]) -> list[Reply]:
    """Let all phones guess at the same time, each its own text; return the replies."""
    guesses = [phone.guess(text) for phone, text in zip(phones, texts, strict=True)]
    return await asyncio.gather(*guesses)


@dataclass(frozen=True)
class Running:
    """A room's process and its addresses; `post` does what the wall's page does, with its key."""

    phones: str
    wall: str
    inside: str
    process: subprocess.Popen
    kept: Path

    def post(self, what: str, key: str = "", **given: object) -> Reply:
        body = {"key": key, "words": "How many?", "unit": "days", "choices": [], **given}
        return send(self.wall + what, body)

    def state(self, key: str) -> dict:
        return send(f"{self.wall}state?key={key}").said


@contextmanager
def running_room(
    folder: Path, pages: dict[str, str] = PAGES, tunnel: str = ""
) -> Iterator[Running]:
    """Run the room's process with these pages; at the end its input is closed, which ends it."""
    kept = folder / "rooms"
    for name, text in pages.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "course_utils.stage.poll", "127.0.0.1", tunnel, str(folder)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"COURSE_ROOMS": str(kept)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            addresses = json.loads(process.stdout.readline())
            yield Running(**addresses, process=process, kept=kept)
        finally:
            process.stdin.close()
