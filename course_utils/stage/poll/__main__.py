"""The room's process: `python -m course_utils.stage.poll 192.168.1.5`. It ends when its input does.

Phones come to that one address, with a code in the path; the wall's pages are on loopback, behind a secret. One
line of JSON says where both are. A second argument is the address at which a tunnel shows the phones' page, and a
third names another folder of the wall's pages.
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
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that look like another
PORT = 8090  # or any, if it is taken
LOCAL = "127.0.0.1"
MOST_FILES = 4_096  # open at once, connections among them; some systems begin with 256


async def main(ip: str = LOCAL, tunnel: str = "", pages: str | Path = apps.PAGES) -> None:
    room, code, token = (
        Room(),
        "".join(secrets.choice(LETTERS) for _ in range(6)),
        secrets.token_urlsafe(16),
    )
    (outside, host), (inside, wall_host) = listening(ip, PORT, 0), listening(LOCAL, 0)
    outer, hosts = seen_through(tunnel) if tunnel else (f"http://{host}", [])
    urls = {"phones": f"{outer}/{code}/", "wall": f"http://{wall_host}/{token}/", "inside": host}
    who = by_cookie(room, f"/{code}/")
    phones = f"/{code}/", apps.Door(who, [host, *hosts]), apps.phones(room)
    wall_door = apps.Door(presenter, [wall_host], framed=f"http://{LOCAL}:* http://localhost:*")
    wall = f"/{token}/", wall_door, apps.wall(room, Path(pages), ROOMS, urls["phones"])
    Gate(apps.application(phones)).add_sockets(outside)
    HTTPServer(apps.application(wall), **BOUNDS).add_sockets(inside)
    print(json.dumps(urls), flush=True)
    await asyncio.to_thread(sys.stdin.read)


def listening(ip: str, *ports: int) -> tuple[list[socket.socket], str]:
    """At the first of these ports that is free, and its name in an address."""
    for port in ports if is_one_address(ip) else ():
        with suppress(OSError):
            sockets = bind_sockets(port, ip, backlog=1024)
            return sockets, f"{ip}:{sockets[0].getsockname()[1]}"
    sys.exit(
        f"The phones' page cannot be at {ip}. Name an address of this machine, such as 192.168.1.5."
    )


def seen_through(tunnel: str) -> tuple[str, list[str]]:
    """The tunnel's outer address, without a path, and the name under which requests come through it."""
    with suppress(ValueError):
        parts = urlsplit(tunnel)
        if parts.scheme in ("http", "https") and parts.hostname and not parts.path.strip("/"):
            return f"{parts.scheme}://{parts.netloc}", [parts.netloc]
    sys.exit(
        f"TUNNEL={tunnel} is no tunnel's address. Name it as in TUNNEL=https://guess.example.org"
    )


def is_one_address(ip: str) -> bool:
    """Not a name, and not 0.0.0.0, which stands for all addresses of this machine."""
    with suppress(ValueError):
        return not IPv4Address(ip).is_unspecified
    return False


def by_cookie(room: Room, path: str) -> Callable[[apps.Handler], Awaitable[str | None]]:
    """Who a phone is: a random cookie, given to it with its first question, as fast as its address may bring phones."""
    newcomers = Newcomers()

    async def who(asking: apps.Handler) -> str | None:
        phone, address = asking.get_cookie("phone"), asking.request.remote_ip
        asks = asking.request.path.endswith("question")
        if phone in room.phones:
            if asks:
                room.admit(phone, address)  # it is still here
            return phone
        if not asks:
            return phone
        phone = secrets.token_urlsafe(16)
        if not newcomers.admits(address) or not room.admit(phone, address):
            return None
        asking.set_cookie("phone", phone, path=path, httponly=True, samesite="Strict")
        return phone

    return who


async def presenter(_: apps.Handler) -> str:
    return "whoever knows the secret in the address"


if __name__ == "__main__":
    logging.disable()  # nobody reads who came
    if not sys.stdin.isatty():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for whoever started this
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(MOST_FILES, hard)), hard))
    asyncio.run(main(*sys.argv[1:]))
