"""Phones and a wall's page as programs, over real HTTP, and the room's process that they talk to."""

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

# The wall's pages in small: what is filled in, and nothing else.
PAGES = {
    "wall.html": "<script src=wall.js></script>",
    "start.html": "<p>{{address}}</p>{{qr}}",
    "kept.html": '<style>{{css}}</style><script type="application/json">{{data}}</script><script>{{js}}</script>',
    "wall.js": "document.title = 'kept'",
    "wall.css": "p { color: red }",
}


@dataclass(frozen=True)
class Reply:
    """Its status is 0 where the connection was closed instead."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""

    @property
    def said(self) -> object:
        return json.loads(self.body)


async def request(
    url: str, body: object = None, method: str = "", home: str | None = None, **headers: str
) -> Reply:
    """One request, perhaps from another address. A body that is no text becomes JSON; a header's name has _ for -."""
    _, host, path, query, _ = urlsplit(url)
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    given = {
        "Host": host,
        "Content-Type": "application/json",
        "Content-Length": str(len(text.encode())),
    }
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method or ('GET' if body is None else 'POST')} {path}?{query} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in given.items()]
    with suppress(OSError):
        own = (home, 0) if home else None
        reader, writer = await asyncio.open_connection(*host.split(":"), local_addr=own)
        writer.write("\r\n".join([*lines, "", text]).encode())
        head, _, said = (await reader.read()).decode().partition("\r\n\r\n")
        writer.close()
        first, *lines = head.split("\r\n")
        if first:
            return Reply(int(first.split()[1]), dict(line.split(": ", 1) for line in lines), said)
    return Reply()


def together(work: Coroutine) -> object:
    """What it returns, aside: here a browser's loop may be running."""
    with ThreadPoolExecutor() as aside:
        return aside.submit(asyncio.run, work).result()


def send(url: str, body: object = None, method: str = "", **headers: str) -> Reply:
    return together(request(url, body, method, **headers))


@dataclass
class Phone:
    address: str
    cookie: str = ""
    home: str | None = None  # its own address: one that begins with 127. is this machine's, too

    async def question(self) -> dict:
        reply = await request(f"{self.address}question", home=self.home, Cookie=self.cookie)
        self.cookie = reply.headers.get("Set-Cookie", self.cookie).partition(";")[0]
        return reply.said

    async def guess(self, text: str) -> Reply:
        """As a person would: look at the question, and answer it."""
        asked = await self.question()
        body = {"key": asked["key"], "round": asked.get("round"), "guess": text}
        return await request(f"{self.address}guess", body, home=self.home, Cookie=self.cookie)


async def all_guess(phones: Sequence[Phone], texts: Sequence[str]) -> list[Reply]:
    return await asyncio.gather(*map(Phone.guess, phones, texts))


@dataclass(frozen=True)
class Running:
    """`post` is what the wall's page does, with one key."""

    phones: str
    wall: str
    inside: str
    process: subprocess.Popen
    kept: Path

    def post(self, what: str, key: str = "", **given: object) -> Reply:
        return send(
            self.wall + what,
            {"key": key, "words": "How many?", "unit": "days", "choices": []} | given,
        )

    def state(self, key: str) -> dict:
        return send(f"{self.wall}state?key={key}").said


@contextmanager
def running_room(
    folder: Path, pages: dict[str, str] = PAGES, tunnel: str = ""
) -> Iterator[Running]:
    """The room's process, with pages of its own; its input is closed in the end."""
    kept = folder / "rooms"
    for name, text in pages.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "course_utils.stage.poll", "127.0.0.1", tunnel, str(folder)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | {"text": True}
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"COURSE_ROOMS": str(kept)}, **pipes
    ) as process:
        try:
            yield Running(**json.loads(process.stdout.readline()), process=process, kept=kept)
        finally:
            process.stdin.close()
