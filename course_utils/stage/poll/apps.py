"""What phones and the wall reach by HTTP. Nothing else is there: no folder, and no file that a request could name.

Who a phone is, and whether somebody may see the wall, is up to a `Door`: here a cookie and a secret in the address,
and on a hub its log-in.
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
from functools import partial
from html import escape
from pathlib import Path
from urllib.parse import urljoin

import segno
from tornado.web import Application, HTTPError, RedirectHandler, RequestHandler

from course_utils.stage.poll.rounds import FEW, Json, Room
from course_utils.stage.poll.table import as_csv

PHONE = Path(__file__).with_name("phone.html")
PAGES = Path(__file__).with_name("wall")
KINDS = {"js": "javascript", "css": "css", "csv": "csv"}
PLAIN = {"Server": "room", "Content-Type": "application/json", "Referrer-Policy": "same-origin"}
HEADERS = PLAIN | {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; connect-src 'self'; img-src data:; "
    "style-src 'self' 'unsafe-inline'; script-src 'self'"
)


@dataclass(frozen=True)
class Door:
    """`who` says who asks, by a string that tells it from others, or None; it may answer in place of the handler.

    `hosts` are the only names under which it is open, so that no other page can make a browser believe it is its own.
    None leaves that to a proxy. `framed` lists who may show its pages in a frame.
    """

    who: Callable[["Handler"], Awaitable[str | None]]
    hosts: Collection[str] | None = None
    framed: str = "'none'"


Answers = dict[str, Callable[["Handler"], Json | list[Json] | str | None]]
"""For "GET question" and the like: what becomes JSON, the text of a page, or None for what is not there."""
Part = tuple[str, Door, Answers]


def application(*parts: Part, more: Sequence[tuple] = (), **settings: object) -> Application:
    """Each part is below a path; whoever forgets its last slash is sent on."""
    routes = [(f"{path}(?P<name>.*)", Handler, {"door": d, "answers": a}) for path, d, a in parts]
    sent_on = [
        (path[:-1], RedirectHandler, {"url": path, "permanent": False}) for path, *_ in parts
    ]
    otherwise = {
        "default_handler_class": Handler,
        "default_handler_args": {"door": parts[0][1], "answers": {}},
    }
    return Application([*more, *routes, *sent_on], **otherwise, **settings)


class Handler(RequestHandler):
    """Checks who asks for what. What fails says nothing but its number, or a sentence where one may mend it."""

    def initialize(self, door: Door, answers: Answers) -> None:
        """Tornado calls this in place of __init__."""
        self.door, self.answers = door, answers

    def set_default_headers(self) -> None:
        """Tornado calls this, too."""
        for name, value in HEADERS.items():
            self.set_header(name, value)

    async def prepare(self) -> None:
        asked, given = self.request, self.request.headers
        self.answer = self.answers.get(f"{asked.method} {self.path_kwargs.get('name')}")
        is_open = self.door.hosts is None or asked.host in self.door.hosts
        if self.answer is None or not is_open:
            raise HTTPError(404)
        if asked.method == "POST":
            is_ours = given.get("Origin", f"//{asked.host}").partition("//")[2] == asked.host
            if not is_ours or given.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
                raise HTTPError(403)
            if given.get("Content-Type", "").partition(";")[0] != "application/json":
                raise HTTPError(415)
        self.who = await self.door.who(self)

    def get(self, name: str) -> None:
        """Answer."""
        try:
            answer = self.answer(self)
        except (ValueError, OSError) as error:
            self.set_status(400)
            answer = {"error": str(error)}
        if answer is None:
            raise HTTPError(404)
        if isinstance(answer, str):
            self._only_its_own_scripts_run(answer)
            kind = KINDS.get(name.rpartition(".")[2], "html")
            self.set_header("Content-Type", f"text/{kind}; charset=utf-8")
        self.finish(answer if isinstance(answer, str) else json.dumps(answer))

    post = get

    @property
    def given(self) -> Json:
        """What was posted."""
        with suppress(ValueError, RecursionError):
            if isinstance(given := json.loads(self.request.body), dict):
                return given
        raise ValueError("A JSON object was expected.")

    def _only_its_own_scripts_run(self, page: str) -> None:
        scripts = re.findall("<script[^>]*>(.*?)</script>", page, re.DOTALL)
        hashes = [
            base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts
        ]
        own = " ".join(f"'sha256-{one}'" for one in hashes)
        self.set_header(
            "Content-Security-Policy", f"{POLICY} {own}; frame-ancestors {self.door.framed}"
        )

    def write_error(self, status_code: int, **_: object) -> None:
        """Say no more than the number."""
        self.finish()

    def log_exception(self, kind: type, error: BaseException, where: object) -> None:
        """Print a mistake of ours, without who asked for what."""
        if not isinstance(error, HTTPError):
            traceback.print_exception(kind, error, where)


def phones(room: Room) -> Answers:
    return {
        "GET ": lambda _: PHONE.read_text(encoding="utf-8"),
        "GET question": lambda asking: room.question(asking.who),
        "POST guess": lambda asking: {"mine": room.guess(asking.who, asking.given)},
    }


def wall(room: Room, pages: Path, kept: Path, phones: str) -> Answers:
    """The wall's pages are in one folder, those that are kept go to another. `phones` is their address, seen from here."""
    page = partial(_page, pages)

    def with_address(asking: Handler) -> str:
        url = urljoin(asking.request.full_url(), phones)
        code = segno.make(url, error="m", micro=False).svg_inline(omitsize=True, light="#fff")
        address = escape(url.partition("://")[2].removesuffix("/")).replace("/", "/<wbr>")
        return page(asking.path_kwargs["name"], address=address, qr=code)

    def afterwards(states: list[Json]) -> str:
        data = json.dumps(states).replace("<", "\\u003c")  # no text in it can end its script
        return page("kept.html", css=page("wall.css"), js=page("wall.js"), data=data)

    def keep(_: Handler) -> Json:
        states = room.states(at_least=FEW)
        if not states:
            raise ValueError("Nothing was asked yet, so there is nothing to keep.")
        notebook = re.match(r"\w*", states[0]["key"], re.ASCII)[0]
        path = kept / time.strftime(f"%Y-%m-%d-{notebook}-%H%M%S.html")
        kept.mkdir(parents=True, exist_ok=True)
        path.write_text(afterwards(states), encoding="utf-8")
        path.with_suffix(".csv").write_text(as_csv(states), encoding="utf-8", newline="")
        return {"saved": path.name}

    return {
        **{f"GET {name}": lambda _, name=name: page(name) for name in ("wall.js", "wall.css")},
        "GET wall.html": with_address,
        "GET start.html": with_address,
        "GET kept.html": lambda _: afterwards(room.states()),
        "GET kept.csv": lambda _: as_csv(room.states(at_least=FEW)),
        "GET state": lambda asking: room.state(asking.get_query_argument("key")),
        "GET all": lambda _: room.states(),
        "GET phones": lambda _: {"phones": room.here()},
        "POST ask": lambda asking: room.ask(asking.given),
        "POST reveal": lambda asking: room.reveal(asking.given),
        "POST move": lambda asking: room.move(asking.given),
        "POST keep": keep,
    }


def _page(pages: Path, name: str, **parts: str) -> str:
    """The file of that name, with the parts in the places that it leaves for them."""
    text = (pages / name).read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts.get(found[1], found[0]), text)
