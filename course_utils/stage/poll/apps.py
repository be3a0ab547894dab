"""The web applications for phones and for the wall.

They serve no folder, and no file that a request names. A `Door` decides which phone sends a
request, and whether somebody may see the wall: here by a cookie and by a secret in the address, on
a hub by its log-in.
"""

import base64
import hashlib
import json
import re
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import urljoin

import segno
from tornado.web import Application, HTTPError, RedirectHandler, RequestHandler

from course_utils.stage.poll.rounds import FEW, Json, Room
from course_utils.stage.poll.table import as_csv

PHONE = Path(__file__).with_name("phone.html")
PAGES = Path(__file__).with_name("wall")
# The type of a page's text, by the ending of the name that was asked for. Any other is HTML.
KINDS = {"js": "javascript", "css": "css", "csv": "csv"}
HEADERS = {
    "Server": "room",  # in place of Tornado's name and version
    "Content-Type": "application/json",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
# The Content-Security-Policy of each page; `_policy_for` adds what differs between pages.
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; connect-src 'self'; img-src data:; "
    "style-src 'self' 'unsafe-inline'; script-src 'self'"
)


@dataclass(frozen=True)
class Door:
    """Who may send requests, and under which names of the host.

    `who` returns a string for whoever sends a request, the same one for each of their requests, or
    None if they are not let in yet. `who` may also answer the request itself, as by a redirect.
    `hosts` are the only hosts that a request may name, so that no other site can pass our pages off
    as its own (DNS rebinding); None leaves that to a proxy. `framed` lists the sites that may show
    the pages in a frame, as a Content-Security-Policy has them.
    """

    who: Callable[["Handler"], Awaitable[str | None]]
    hosts: Collection[str] | None = None
    framed: str = "'none'"


# By a method and a name, as in "GET question", a function that makes the answer: an object that
# becomes JSON, the text of a page, or None if there is nothing, which becomes a 404.
Answers = dict[str, Callable[["Handler"], Json | list[Json] | str | None]]
Part = tuple[str, Door, Answers]  # a path, who may send requests to it, and the answers below it


def application(*parts: Part, more: Sequence[tuple] = (), **settings: object) -> Application:
    """Return an application with each part below its path, which ends in a slash.

    A request for the path without that slash is redirected. The first route that matches counts, so
    redirects come first: a part's path may lie below another one's, as the wall's does on a hub.
    `more` are Tornado's routes that come before those of the parts, and `settings` are Tornado's.
    """
    routes = []
    redirects = []
    for path, door, answers in parts:
        arguments = {"door": door, "answers": answers}  # of `Handler.initialize`
        # The group `name` is what stands behind the path, such as "question".
        routes.append((f"{path}(?P<name>.*)", Handler, arguments))
        redirects.append((path[:-1], RedirectHandler, {"url": path, "permanent": False}))
    _, first_door, _ = parts[0]
    # Any other path leads to a Handler without answers, which sends a 404 with our own headers.
    return Application(
        [*more, *redirects, *routes],
        default_handler_class=Handler,
        default_handler_args={"door": first_door, "answers": {}},
        **settings,
    )


class Handler(RequestHandler):
    """Checks each request, and sends its answer.

    The response to a request that fails has no more than its status, or a sentence if the sender
    can do better.
    """

    def initialize(self, door: Door, answers: Answers) -> None:
        """Tornado calls this in place of __init__."""
        self.door = door
        self.answers = answers

    def set_default_headers(self) -> None:
        """Tornado calls this, too."""
        for name, value in HEADERS.items():
            self.set_header(name, value)

    async def prepare(self) -> None:
        """Find the answer, or refuse the request. Tornado calls this before `get` or `post`."""
        name = self.path_kwargs.get("name")
        # The answer is a function, which `get` calls.
        self.answer = self.answers.get(f"{self.request.method} {name}")
        names_our_host = self.door.hosts is None or self.request.host in self.door.hosts
        if self.answer is None or not names_our_host:
            raise HTTPError(404)
        if self.request.method == "POST":
            self._refuse_other_pages_and_bodies()
        # If `who` answers the request itself, Tornado does not call `get` any more.
        self.who = await self.door.who(self)

    def _refuse_other_pages_and_bodies(self) -> None:
        """Refuse what another page in the same browser sends, and bodies that are not JSON."""
        # A browser sends Origin and Sec-Fetch-Site. What sends neither is no page in a browser.
        headers = self.request.headers
        host = self.request.host
        origin = headers.get("Origin")  # such as https://the.host
        is_elsewhere = origin is not None and origin.partition("//")[2] != host
        site = headers.get("Sec-Fetch-Site", "none")
        if is_elsewhere or site not in ("same-origin", "none"):
            raise HTTPError(403)
        # A form on another site can send a request, too, but none of this type.
        kind = headers.get("Content-Type", "").partition(";")[0]
        if kind != "application/json":
            raise HTTPError(415)

    def get(self, name: str) -> None:
        """Call the answer that `prepare` has found, and send an object as JSON, or a page's text.

        `name` is that of the request, as in "GET wall.css". A ValueError or OSError of the answer
        is sent as a sentence with the status 400.
        """
        try:
            answer = self.answer(self)
        except (ValueError, OSError) as error:
            self.set_status(400)
            answer = {"error": str(error)}
        if answer is None:
            raise HTTPError(404)
        if not isinstance(answer, str):
            self.finish(json.dumps(answer))
            return
        kind = KINDS.get(name.rpartition(".")[2], "html")
        self.set_header("Content-Security-Policy", self._policy_for(answer))
        self.set_header("Content-Type", f"text/{kind}; charset=utf-8")
        self.finish(answer)

    post = get  # `prepare` has already chosen by the method

    @property
    def given(self) -> Json:
        """The JSON object in the request's body; ValueError if the body has none."""
        with suppress(ValueError, RecursionError):
            given = json.loads(self.request.body)
            if isinstance(given, dict):
                return given
        raise ValueError("A JSON object was expected.")

    def _policy_for(self, page: str) -> str:
        """Return the Content-Security-Policy: a browser runs only the page's own scripts.

        It knows them by the hashes of their texts, which the policy lists.
        """
        scripts = re.findall("<script[^>]*>(.*?)</script>", page, re.DOTALL)
        own = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
        return f"{POLICY} {own}; frame-ancestors {self.door.framed}"

    def write_error(self, status_code: int, **_: object) -> None:
        """Tornado calls this for an error: the response has the status, and no text."""
        self.finish()

    def log_exception(self, kind: type, error: BaseException, where: object) -> None:
        """Tornado calls this: print an error of ours, without who has sent which request."""
        if not isinstance(error, HTTPError):
            traceback.print_exception(kind, error, where)


def _hash(script: str) -> str:
    """Return the script's hash, which stands behind "sha256-" in a Content-Security-Policy."""
    digest = hashlib.sha256(script.encode()).digest()
    return base64.b64encode(digest).decode()


def phones(room: Room) -> Answers:
    """Return the answers to the phones' requests. `Handler.who` is the phone, or None."""
    return {
        "GET ": lambda _: PHONE.read_text(encoding="utf-8"),  # the page itself has no name
        "GET question": lambda handler: room.question(handler.who),
        "POST guess": lambda handler: {"mine": room.guess(handler.who, handler.given)},
    }


def wall(room: Room, pages: Path, kept: Path, phones: str) -> Answers:
    """Return the answers to the wall's requests.

    The wall's pages are in the folder `pages`, and pages that are kept go to the folder `kept`.
    `phones` is the address of the phones' page; it may be relative to the wall's.
    """

    def with_address(handler: Handler) -> str:
        """Return the page, with the address of the phones' page in letters and as a QR code."""
        url = urljoin(handler.request.full_url(), phones)
        # Of level m: it can be read with 15 % of it hidden.
        code = segno.make(url, error="m", micro=False).svg_inline(omitsize=True, light="#fff")
        # Without http://, and with places where a browser may break the line.
        _, _, host_and_path = url.partition("://")
        letters = escape(host_and_path.removesuffix("/"))
        address = letters.replace("/", "/<wbr>")  # as in 192.168.1.5:8090/<wbr>k7mq2x
        return _page(pages, handler.path_kwargs["name"], address=address, qr=code)

    return {
        "GET wall.js": lambda _: _page(pages, "wall.js"),
        "GET wall.css": lambda _: _page(pages, "wall.css"),
        "GET wall.html": with_address,
        "GET start.html": with_address,
        "GET kept.html": lambda _: _kept_page(pages, room.states()),
        "GET kept.csv": lambda _: as_csv(room.states(at_least=FEW)),
        "GET state": lambda handler: room.state(handler.get_query_argument("key")),
        "GET all": lambda _: room.states(),
        "GET phones": lambda _: {"phones": room.here()},
        "POST ask": lambda handler: room.ask(handler.given),
        "POST reveal": lambda handler: room.reveal(handler.given),
        "POST move": lambda handler: room.move(handler.given),
        "POST keep": lambda _: {"saved": _keep(room, pages, kept)},
    }


def _keep(room: Room, pages: Path, folder: Path) -> str:
    """Write the counts of all guesses as a page and as a table; return the page's file name."""
    states = room.states(at_least=FEW)
    if not states:
        raise ValueError("Nothing was asked yet, so there is nothing to keep.")
    # The notebook's number, which the key 04.my_days begins with. Whatever else the key has, no
    # character comes through that means something in a path.
    notebook = re.match(r"\w*", states[0]["key"], re.ASCII)[0]
    path = folder / time.strftime(f"%Y-%m-%d-{notebook}-%H%M%S.html")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(_kept_page(pages, states), encoding="utf-8")
    path.with_suffix(".csv").write_text(as_csv(states), encoding="utf-8", newline="")
    return path.name


def _kept_page(pages: Path, states: list[Json]) -> str:
    """Return the page for after the lecture, with the counts in `states`; it needs no other file.

    `states` are those that `Room.states` returns.
    """
    data = json.dumps(states).replace("<", "\\u003c")  # no text in it can end its script
    css = _page(pages, "wall.css")
    js = _page(pages, "wall.js")
    return _page(pages, "kept.html", css=css, js=js, data=data)


def _page(pages: Path, name: str, **parts: str) -> str:
    """Return the text of that file, in which {{qr}} is replaced by the part named qr, and so on."""

    def filled(match: re.Match) -> str:
        """Return the part of that name; where there is none, the text stays as it is."""
        return parts.get(match[1], match[0])

    text = (pages / name).read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", filled, text)
