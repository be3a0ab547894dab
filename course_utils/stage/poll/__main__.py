"""The room's process: `python -m course_utils.stage.poll 192.168.1.5`.

It runs until its standard input is closed. The phones' page is at the given address, with a code in
the path; the wall's pages are on loopback, with a secret in the path. The process prints one line
of JSON with the addresses of both, and with the host and port to which a tunnel has to lead. A
second argument is the address at which a tunnel shows the phones' page, and a third names another
folder of the wall's pages.
"""

import asyncio
import json
import logging
import os
import resource
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from course_utils.stage.poll import apps
from course_utils.stage.poll.gate import BOUNDS, Gate, Newcomers
from course_utils.stage.poll.rounds import Room

ROOMS = Path(os.environ.get("COURSE_ROOMS") or Path(__file__).parents[3] / "rooms")
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # without those that look like another: i, l, o, 0, 1
LETTERS_OF_CODE = 6
BYTES_OF_SECRET = 16
PORT = 8090  # for phones; if it is taken, any other
ANY_PORT = 0  # the system chooses a free one
LOCAL = "127.0.0.1"
MOST_FILES = 4_096  # open at once, connections among them; some systems begin with 256


async def main(ip: str = LOCAL, tunnel: str = "", pages: str | Path = apps.PAGES) -> None:
    """Serve the pages of phones and wall, and print where they are, until the input is closed."""
    room = Room()
    code = "".join(secrets.choice(LETTERS) for _ in range(LETTERS_OF_CODE))  # people may type it
    token = secrets.token_urlsafe(BYTES_OF_SECRET)  # whoever knows it may use the wall
    phones_path = f"/{code}/"
    wall_path = f"/{token}/"
    # The hosts that `listening` returns have a port, as in "192.168.1.5:8090".
    phones_sockets, phones_host = listening(ip, PORT, ANY_PORT)
    wall_sockets, wall_host = listening(LOCAL, ANY_PORT)
    outer_url = f"http://{phones_host}"  # where phones find their page; through a tunnel elsewhere
    phones_hosts = [phones_host]
    if tunnel:
        outer_url, outer_host = seen_through(tunnel)
        phones_hosts.append(outer_host)
    phones_url = f"{outer_url}{phones_path}"
    wall_url = f"http://{wall_host}{wall_path}"

    phones_door = apps.Door(by_cookie(room, phones_path), phones_hosts)
    phones = apps.application((phones_path, phones_door, apps.phones(room)))
    Gate(phones).add_sockets(phones_sockets)
    # JupyterLab, on any port of this machine, shows the wall in a frame.
    wall_door = apps.Door(presenter, [wall_host], framed=f"http://{LOCAL}:* http://localhost:*")
    wall_answers = apps.wall(room, Path(pages), ROOMS, phones_url)
    wall = apps.application((wall_path, wall_door, wall_answers))
    HTTPServer(wall, **BOUNDS).add_sockets(wall_sockets)
    # A tunnel has to lead to "inside".
    urls = {"phones": phones_url, "wall": wall_url, "inside": phones_host}
    print(json.dumps(urls), flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the input is closed


def listening(ip: str, *ports: int) -> tuple[list[socket.socket], str]:
    """Return sockets at the first free one of these ports, and their host and port as in a URL.

    If no port is free, or `ip` is not an address of this machine, the program exits with a
    sentence.
    """
    if is_one_address(ip):
        for port in ports:
            with suppress(OSError):  # the port is taken: the next one is tried
                sockets = bind_sockets(port, ip, backlog=1024)  # a class connects at once
                _, bound_port = sockets[0].getsockname()
                return sockets, f"{ip}:{bound_port}"
    sys.exit(
        f"The phones' page cannot be at {ip}. Name an address of this machine, such as 192.168.1.5."
    )


def seen_through(tunnel: str) -> tuple[str, str]:
    """Return the tunnel's URL without a path, and the host that requests through the tunnel name.

    For "https://guess.example.org/" they are "https://guess.example.org" and "guess.example.org".
    If the text is no such URL, the program exits with a sentence.
    """
    with suppress(ValueError):
        parts = urlsplit(tunnel)
        is_web = parts.scheme in ("http", "https")
        has_path = parts.path.strip("/") != ""
        if is_web and parts.hostname and not has_path:
            return f"{parts.scheme}://{parts.netloc}", parts.netloc
    sys.exit(
        f"TUNNEL={tunnel} is no tunnel's address. Name it as in TUNNEL=https://guess.example.org"
    )


def is_one_address(ip: str) -> bool:
    """Whether the text is a single IPv4 address: no name, and not 0.0.0.0, which means all."""
    with suppress(ValueError):
        return not IPv4Address(ip).is_unspecified
    return False


def by_cookie(room: Room, path: str) -> Callable[[apps.Handler], Awaitable[str | None]]:
    """Return the function by which the phones' Door recognises who sends a request.

    It returns the phone's random cookie, or None if the phone is not let in yet. A phone gets
    its cookie when it first asks for the question, unless its address brings new phones too fast.
    """
    newcomers = Newcomers()

    async def who(handler: apps.Handler) -> str | None:
        """Return the phone's cookie, an old or a new one; None if a new phone is not admitted."""
        phone = handler.get_cookie("phone")
        address = handler.request.remote_ip
        asks_for_question = handler.request.path.endswith("question")
        if not asks_for_question:
            return phone  # `Room.guess` refuses a phone that is not in the room
        if phone in room.phones:
            room.admit(phone, address)  # notes that the phone is still here
            return phone
        phone = secrets.token_urlsafe(BYTES_OF_SECRET)
        if not newcomers.admits(address) or not room.admit(phone, address):
            return None  # the address brings phones too fast, or the room is full
        handler.set_cookie("phone", phone, path=path, httponly=True, samesite="Strict")
        return phone

    return who


async def presenter(_: apps.Handler) -> str:
    """Return who sends a request to the wall: the secret in the path shows that they may."""
    return "whoever knows the secret in the address"


def allow_many_files() -> None:
    """Let this process have MOST_FILES open, or as many as the system lets it have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # a process may raise soft up to hard
    most = max(soft, min(MOST_FILES, hard))  # never fewer than it has
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


if __name__ == "__main__":
    logging.disable()  # so that no log has the phones' addresses
    if not sys.stdin.isatty():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl+C the parent process ends this one
    allow_many_files()
    asyncio.run(main(*sys.argv[1:]))
