"""The room's process over real HTTP: what a class does, and what a hostile network may try."""

import asyncio
import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from course_utils.core.say import OpenGuess, typed
from course_utils.core.say.answer_units import HOW
from course_utils.stage.poll import __main__ as process
from course_utils.stage.poll import apps, gate
from course_utils.stage.poll.rounds import (
    ANSWER,
    CROWD,
    HERE_S,
    MANY_ADDRESSES,
    MOST_PHONES,
    Question,
    Room,
)
from course_utils.stage.present.bands import bands
from tests import ROOT
from tests.helpers.phones import (
    PAGES,
    Phone,
    Reply,
    Running,
    all_guess,
    request,
    running_room,
    send,
    together,
)

TYPED = json.loads((ROOT / "tests" / "stage" / "typed_on_phones.json").read_text(encoding="utf-8"))
EMPTY = dict.fromkeys(ANSWER)
ALONE = {"crowd": 0, "left_out": 0}  # what is said of one address


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    with running_room(tmp_path_factory.mktemp("room")) as running:
        yield running


@pytest.fixture
def own_room(tmp_path):
    with running_room(tmp_path) as running:
        yield running


def guessed(room: Running, *texts: str) -> list[Phone]:
    """New phones, one for each guess."""
    phones = [Phone(room.phones) for _ in texts]
    for reply in together(all_guess(phones, texts)):
        assert reply.status == 200
    return phones


def moved(room: Running, key: str, *moves: str) -> list[int]:
    """The status of the reply to each move."""
    return [room.post("move", key, move=move).status for move in moves]


def test_a_number_is_read_as_people_type_it_on_phones_and_what_is_none_gets_a_sentence():
    for text, number in TYPED["numbers"].items():
        assert typed.read(text, "percent of the peak") == number, text
    with_unit = re.compile(
        r"(.*?) (days|hours|minutes|seconds|s|ms|bytes|GB|tokens a second|tokens|steps"
        r"|billions of parameters|times S · H|times)"
    )
    for text, number in TYPED["in other units"].items():
        said, unit = with_unit.fullmatch(text).groups()
        assert typed.read(said, unit) == pytest.approx(number), text
    for text in TYPED["no numbers"]:
        with pytest.raises(ValueError, match=re.escape(HOW["days"])) as told:
            typed.read(text, "days")
        assert len(str(told.value)) < 140


@pytest.mark.parametrize("unit", ["times", "share", "of 64", "GB", ""])
def test_a_phone_is_told_what_a_field_in_the_notebook_says(unit):
    phone = Question({"unit": unit, "choices": []})

    def in_a_field(text: str) -> object:
        guess = OpenGuess(("a",), unit)
        guess.say("a", text)
        return guess.said["a"]

    for text in TYPED["tried in each unit"]:
        assert said_by(phone.read, text) == said_by(in_a_field, text)


def said_by(read: Callable[[str], object], text: str) -> object:
    """The number that is read there, or the sentences on what is wrong."""
    try:
        return read(text)
    except ValueError as error:
        return str(error)


# What a class does.


def test_two_rounds_are_guessed_shown_and_set_beside_the_answer(own_room):
    room = own_room
    key = "04.my_days"
    ask = {"key": key, "words": "How many?", "unit": "days", "choices": []}
    assert send(f"{room.wall}state?key={key}").status == 404
    assert together(Phone(room.phones).question()) == {"key": None}
    first_round = {"round": 1, "phase": "asking", "count": 0, "phones": 1, "rounds": []}
    beginning = ask | first_round | EMPTY | ALONE
    assert room.post("ask", key).said == beginning
    assert room.state(key) == beginning

    phones = guessed(room, "10", "1,5", "10.0", "1e3")
    assert room.state(key) == beginning | {"count": 4, "phones": 5}
    assert moved(room, key, "again", "show", "show", "again", "again") == [400, 200, 400, 200, 400]
    first = [[1.5, 1], [10, 2], [1000, 1]]
    assert room.state(key) == beginning | {"round": 2, "phones": 5, "rounds": [first]}
    assert together(phones[0].question()) == ask | {"round": 2, "phase": "asking", "mine": None}
    together(all_guess(phones[:2], ["11", "11"]))
    assert room.post("ask", key).said["count"] == 2, "asked again, it keeps its guesses"
    assert moved(room, key, "show", "again", "dance", "") == [200, 400, 400, 400]

    answer = {
        "measured": 11.0,
        "shown": "11 days",
        "tempting": [[1.5, "Days, not weeks."]],
        "how": "reported",
        "bands": [[11, 11, "Exactly 11"]],
    }
    second_round = {"round": 2, "phase": "revealed", "count": 2, "phones": 5}
    end = ask | second_round | {"rounds": [first, [[11, 2]]]} | answer | ALONE
    assert room.post("reveal", key, **answer).said == end
    assert room.state(key) == end
    assert send(f"{room.wall}all").said == [end]
    assert moved(room, key, "show", "again") == [400, 400]
    never_asked = room.post("reveal", "04.my_other", **answer).said
    assert never_asked["rounds"] == []
    assert never_asked["measured"] == 11
    assert send(f"{room.wall}state?key=04.my_other").status == 404
    assert together(phones[0].question()) == ask | {"round": 2, "phase": "revealed", "mine": 11}


def test_a_guess_can_be_changed_until_it_is_shown_and_counts_once(room):
    room.post("ask", "k.change")
    (phone,) = guessed(room, "5")
    for text, mine in (("6", 6), ("what?", None), ("7 days", 7)):
        assert together(phone.guess(text)).said.get("mine") == mine
    assert together(phone.question())["mine"] == 7
    with_old_cookie = Phone(room.phones, "phone=yesterdays")
    assert together(with_old_cookie.guess("7")).said == {"mine": 7}, "it gets another cookie"
    assert moved(room, "k.change", "show") == [200]
    refused = {"error": "It is shown now, and takes no more guesses."}
    assert together(phone.guess("8")).said == refused
    assert room.state("k.change")["rounds"] == [[[7, 2]]]


def test_what_is_forged_is_refused_a_choice_another_question_another_round_a_move(room):
    room.post("ask", "k.before")
    room.post("ask", "k.choice", choices=["fp16", "bf16"])
    (phone,) = guessed(room, "bf16")
    assert together(phone.guess("fp8")).said == {"error": "Choose one of these: fp16, bf16."}
    forged = [("k.before", 1), ("k.choice", 2), ("k.choice", "1"), (None, None), ({}, [])]
    for key, number in forged:
        guess = {"key": key, "round": number, "guess": "fp16"}
        reply = send(f"{room.phones}guess", guess, Cookie=phone.cookie)
        assert reply.status == 400, key
        assert reply.said["error"].startswith("The wall asks something "), key
    assert moved(room, "k.none", "show") == [400]
    assert moved(room, [], {}) == [400]
    assert moved(room, "k.none", None) == [400]
    assert room.state("k.before")["count"] == 0
    assert room.state("k.choice")["count"] == 1
    with_other_choices = room.post("ask", "k.choice", choices=["fp16", "tf32"]).said
    assert with_other_choices["count"] == 0, "another question"


def test_sixty_phones_of_one_address_are_all_counted_at_once_and_exactly(own_room):
    own_room.post("ask", "k.many")
    guessed(own_room, *(str(n % 7 + 1) for n in range(60)))
    assert own_room.state("k.many")["count"] == 60
    shown = own_room.post("move", "k.many", move="show").said
    first_round = [[1, 9], [2, 9], [3, 9], [4, 9], [5, 8], [6, 8], [7, 8]]
    assert shown["rounds"] == [first_round]


class Clock:
    """Seconds, as a test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def came_in(arrivals: dict[str, list[float]], until_s: float) -> dict[str, dict[float, int]]:
    """Of each address, how many phones are in at each half second.

    Each phone asks every two seconds until it is.
    """
    clock = Clock()
    newcomers = gate.Newcomers(clock)
    counts = dict.fromkeys(arrivals, 0)
    inside: dict[str, dict[float, int]] = {address: {} for address in arrivals}
    waiting = []  # when each phone asks next, and from which address
    for address, times_s in arrivals.items():
        waiting.extend((time_s, address) for time_s in times_s)
    while clock.now <= until_s:
        waiting.sort()
        asking = [phone for phone in waiting if phone[0] <= clock.now]
        waiting = waiting[len(asking) :]
        for asked_s, address in asking:
            if newcomers.admits(address):
                counts[address] += 1
            else:
                waiting.append((asked_s + 2, address))
        for address, count in counts.items():
            inside[address][clock.now] = count
        clock.now += 0.5
    return inside


def test_a_class_behind_one_router_comes_in_whole_and_soon_alone_or_beside_others():
    all_at_once = came_in({"router": [0] * 300}, 60)["router"]
    assert all_at_once[0] == 60
    assert all_at_once[50] == 300
    within_a_minute = came_in({"router": [n / 5 for n in range(300)]}, 65)["router"]
    assert within_a_minute[60] == 300, "nobody waits where they come one after another"
    half_alone = {f"10.0.0.{n}": [n / 3] for n in range(150)}
    half_together = {"router": [n / 3 for n in range(150)]}
    assert came_in(half_alone | half_together, 160)["router"][160] == 150


def test_a_script_that_makes_up_phones_brings_few_where_many_have_an_address_of_their_own():
    others = {f"10.0.0.{n}": [0] for n in range(30)}
    joker = came_in(others | {"joker": [1.0] * 700}, 6)["joker"]
    assert joker[6] <= 30 // 3 + 6


def test_the_instructors_page_says_the_bounds_that_there_are():
    page = (ROOT / "notebooks" / "INSTRUCTORS.md").read_text(encoding="utf-8")
    sentences = (
        f"bring {gate.NEW_AT_ONCE} phones at once and {gate.NEW_PER_SEC} in each second",
        f"it leads to port {process.PORT} of your machine",
        f"{process.PORT} was taken",
        "a share may be 5 points off",
    )
    for said in sentences:
        assert said in page
    assert (MANY_ADDRESSES, gate.FEW_PER_SEC, CROWD, HERE_S) == (8, 1, 4, 60), "said there in words"
    assert bands(50, "percent", predicted=50) == [(45, 55, "Within 5 points")]


def test_where_many_have_their_own_address_a_crowd_at_one_is_named_and_can_be_left_out():
    room = Room()
    room.ask({"key": "k", "unit": "days"})
    honest = [f"honest{n}" for n in range(MANY_ADDRESSES)]
    made_up = [f"made up {n}" for n in range(20)]
    homes = {one: one for one in honest} | dict.fromkeys(made_up, "joker")
    for phone, address in homes.items():
        assert room.admit(phone, address)
        room.guess(phone, {"key": "k", "round": 1, "guess": "1000" if phone in made_up else "2"})
    room.move({"key": "k", "move": "show"})
    state = room.state("k")
    assert state["crowd"] == 20
    assert state["left_out"] == 0
    assert state["count"] == 28
    without = room.move({"key": "k", "move": "leave out"})
    assert without["rounds"] == [[[2, 8]]]
    assert without["count"] == 8
    assert without["left_out"] == 20
    assert room.ask({"key": "k", "unit": "days"})["left_out"] == 20, "asked again, it stays so"
    assert room.move({"key": "k", "move": "count all"})["count"] == 28


def test_behind_one_router_nobody_is_a_crowd():
    room = Room()
    room.ask({"key": "k", "unit": "days"})
    for n in range(40):
        room.admit(str(n), "router")
        room.guess(str(n), {"key": "k", "round": 1, "guess": "1"})
    assert room.state("k")["crowd"] == 0
    assert room.move({"key": "k", "move": "leave out"})["count"] == 40


def test_a_question_begins_anew_and_asks_every_phone_again(own_room):
    room = own_room
    room.post("ask", "k.anew")
    phones = guessed(room, "1", "2", "3")
    assert moved(room, "k.anew", "show", "again", "show") == [200] * 3
    room.post("reveal", "k.anew", measured=2, shown="2 days")
    begun = room.post("move", "k.anew", move="anew").said
    assert begun["phase"] == "asking"
    assert begun["round"] == 1
    assert begun["count"] == 0
    assert begun["rounds"] == []
    assert begun["measured"] is None
    assert together(phones[0].question())["mine"] is None
    together(all_guess(phones[:1], ["7"]))
    assert room.post("move", "k.anew", move="show").said["rounds"] == [[[7, 1]]]


def test_phones_that_have_left_are_no_longer_counted_unless_they_guessed():
    clock = Clock()
    room = Room(clock)
    room.ask({"key": "k", "unit": "days"})
    for phone in "abc":
        room.admit(phone, phone)
    room.guess("a", {"key": "k", "round": 1, "guess": "1"})
    assert room.here() == 3
    assert room.state("k")["phones"] == 3
    clock.now += HERE_S + 1
    room.admit("b", "b")
    assert room.here() == 1
    assert room.state("k")["phones"] == 2


def test_a_phone_that_has_to_wait_is_told_so_and_comes_in_by_asking_again(monkeypatch):
    monkeypatch.setattr(gate, "NEW_AT_ONCE", 1)
    monkeypatch.setattr(gate, "NEW_PER_SEC", 1000)

    async def asked() -> list[dict]:
        async with gate_of(patience_s=60) as (url, _, _):
            first = Phone(url)
            second = Phone(url)
            to_first = await first.question()
            monkeypatch.setattr(gate, "NEW_PER_SEC", 0)
            to_second = await second.question()
            monkeypatch.setattr(gate, "NEW_PER_SEC", 1000)
            await asyncio.sleep(0.05)
            return [to_first, to_second, await second.question()]

    assert together(asked()) == [{"key": None}, {"key": None, "waits": True}, {"key": None}]


def test_what_was_guessed_is_a_table_that_no_spreadsheet_takes_for_formulas(own_room):
    room = own_room
    room.post("ask", "04.my_days", words="=1+1, or how\nmany?")
    guessed(room, *["11"] * 3, "12", "40")
    moved(room, "04.my_days", "show")
    bands = [[11, 12, "Within 1"], [5, 22, "Within a factor of two"]]
    room.post("reveal", "04.my_days", measured=11.5, shown="11.5 days", how="reported", bands=bands)
    room.post("ask", "04.my_few")
    guessed(room, "1")
    moved(room, "04.my_few", "show")
    reply = send(f"{room.wall}kept.csv")
    assert reply.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert reply.body.startswith("\ufeff")
    head, *rows = csv.reader(io.StringIO(reply.body.removeprefix("\ufeff")))
    assert head[:4] == ["question", "words", "unit", "round"]
    begin = ["04.my_days", "'=1+1, or how many?"]
    end = ["11.5", "reported"]
    assert rows == [
        [*begin, "days", "1", "11", "3", "yes", *end],
        [*begin, "days", "1", "12", "1", "yes", *end],
        [*begin, "days", "1", "40", "1", "no", *end],
    ]


def test_the_wall_has_its_five_pages_and_each_page_runs_only_its_own_scripts(room):
    for name, kind in (("wall.html", "html"), ("wall.js", "javascript"), ("wall.css", "css")):
        page = send(room.wall + name)
        assert page.body == PAGES[name]
        assert page.headers["Content-Type"] == f"text/{kind}; charset=utf-8"
    start = send(f"{room.wall}start.html")
    phone = send(room.phones)
    kept = send(f"{room.wall}kept.html")
    address = room.phones.removeprefix("http://").removesuffix("/")
    assert f"<p>{address}</p><svg" in start.body.replace("<wbr>", "")
    without_last_slash = send(room.phones[:-1])
    assert without_last_slash.headers["Location"] == room.phones[-8:]
    local = "http://127.0.0.1:* http://localhost:*"
    for page, scripts, framed in ((start, 0, local), (phone, 1, "'none'"), (kept, 2, local)):
        policy = page.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; base-uri 'none';")
        assert policy.count("'sha256-") == scripts
        assert policy.rpartition("frame-ancestors ")[2] == framed
    markup_or_links = r"innerHTML|insertAdjacent|document\.write|\b(src|href)=\"(?!data:)"
    assert not re.search(markup_or_links, phone.body)


def test_phones_of_other_networks_come_through_a_tunnel_and_under_no_third_name(tmp_path):
    with running_room(tmp_path, tunnel="https://guess.example.org/") as running:
        code = running.phones.removeprefix("https://guess.example.org")
        inside = f"http://{running.inside}{code}"
        assert "guess.example.org/" in send(f"{running.wall}start.html").body.replace("<wbr>", "")
        running.post("ask", "k.far")
        through = {"Host": "guess.example.org"}
        asked = send(f"{inside}question", **through)
        cookie = asked.headers["Set-Cookie"].partition(";")[0]
        guess = {"key": "k.far", "round": 1, "guess": "5"}
        origin = {"Origin": "https://guess.example.org", "Sec_Fetch_Site": "same-origin"}
        assert send(f"{inside}guess", guess, Cookie=cookie, **through, **origin).said == {"mine": 5}
        assert send(f"{inside}question").status == 200, "in this network it is there as well"
        assert send(f"{inside}question", Host="evil.org").status == 404


def without_input(command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, input="", check=False)


@pytest.mark.parametrize(
    "tunnel", ["guess.example.org", "ftp://a.b", "https://", "https://a.b/c", "x"]
)
def test_what_is_no_tunnel_gets_a_sentence(tunnel):
    command = [sys.executable, "-m", "course_utils.stage.poll", "127.0.0.1", tunnel]
    run = without_input(command)
    assert run.returncode == 1
    assert run.stdout == ""
    assert "Name it as in TUNNEL=https://guess.example.org" in run.stderr


# What a hostile network may try.


def origin_of(url: str) -> str:
    """The URL's scheme, host and port."""
    return url[: url.index("/", len("http://"))]


def test_without_code_secret_or_name_there_is_nothing_and_no_file_can_be_reached(room):
    wall = origin_of(room.wall)
    phones = origin_of(room.phones)
    code = room.phones.removeprefix(phones)
    secret = room.wall.removeprefix(wall)
    urls = [
        f"{wall}/",
        f"{phones}/",
        f"{phones}/question",
        f"{phones}/aaaaaa/question",
        f"{wall}/wall.html",
        f"{room.phones}all",
        f"{wall}{code}question",
        f"{phones}{secret}wall.html",
    ]
    urls += [room.wall + path for path in TYPED["paths"]]
    urls += [room.phones + path for path in TYPED["paths"][1:]]
    for url in urls:
        assert_nothing_is_there(send(url))
    for url in (room.phones, f"{room.wall}all"):
        assert_nothing_is_there(send(url, Host="evil.org"))
    for method in ("DELETE", "PUT", "POST", "OPTIONS"):
        assert_nothing_is_there(send(room.phones, "{}", method))


def assert_nothing_is_there(reply: Reply) -> None:
    assert reply.status == 404
    assert reply.body == ""


def test_another_page_in_the_presenters_browser_can_neither_move_the_wall_nor_guess(room):
    room.post("ask", "k.cross")
    move = {"key": "k.cross", "move": "show"}
    for url in (f"{room.wall}move", f"{room.phones}guess"):
        for headers in TYPED["origins"]:
            reply = send(url, move, **headers)
            assert reply.status == 403, headers
            assert reply.body == "", headers
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""):
            assert send(url, move, Content_Type=kind).status == 415
    assert room.state("k.cross")["phase"] == "asking"
    from_ours = {"Origin": origin_of(room.wall), "Sec_Fetch_Site": "same-origin"}
    assert send(f"{room.wall}move", move, **from_ours).status == 200


def test_what_is_too_long_or_no_json_is_refused_and_the_room_goes_on(room):
    for body in TYPED["bodies"]:
        reply = send(f"{room.phones}guess", body, "POST")
        assert reply.status == 400, body[:9]
        assert reply.said == {"error": "A JSON object was expected."}, body[:9]
    assert send(f"{room.phones}guess", {"guess": "9" * 20_000}).body == "", "it was not read"
    assert send(room.phones, X_Long="a" * 20_000).status in (0, 400, 431)
    assert send(room.phones, "x", "POST", Content_Length="-1").status in (0, 400)
    room.post("ask", "k.long")
    guessed(room, "1")


def test_markup_stays_text_and_cannot_end_the_script_of_the_kept_page(room):
    markup = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    room.post("ask", "k.markup", words=markup, unit=markup, choices=[markup, "b"])
    guessed(room, *[markup] * 5)
    assert room.post("move", "k.markup", move="show").said["rounds"] == [[[markup, 5]]]
    page = send(f"{room.wall}kept.html").body
    (data,) = re.findall('json">(.*?)</script>', page)
    assert room.state("k.markup") in json.loads(data)
    assert page.count("<script") == 2
    headers = send(f"{room.phones}question").headers
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_thousand_forged_phones_neither_stop_the_wall_nor_fill_the_room(own_room):
    own_room.post("ask", "k.flood")
    guessed(own_room, "3")

    async def flood() -> list[int]:
        body = {"key": "k.flood", "round": 1, "guess": "1e9"}
        work = []
        for n in range(1000):
            forged = Phone(own_room.phones, f"phone=forged{n}")
            work.append(request(f"{forged.address}guess", body, Cookie=forged.cookie))
            work.append(forged.guess("1e9"))
        attack = asyncio.gather(*work, return_exceptions=True)
        counts = []
        while not attack.done():
            state = await request(f"{own_room.wall}state?key=k.flood")
            counts.append(state.said["count"])
        return counts

    counts = together(flood())
    assert len(counts) >= 1
    assert counts == sorted(counts)
    state = own_room.state("k.flood")
    assert 1 <= state["count"] <= state["phones"] < 200, "most of them still wait"
    assert own_room.post("move", "k.flood", move="show").said["rounds"][0][0] == [3, 1]


def test_a_full_room_takes_no_other_phone_and_says_so():
    full = Room()
    guess = {"key": "k", "round": 1, "guess": "1"}
    assert sum(full.admit(str(n)) for n in range(MOST_PHONES + 10)) == MOST_PHONES
    full.ask({"key": "k"})
    assert full.guess("0", guess) == 1
    with pytest.raises(ValueError, match="This phone is not known yet"):
        full.guess(str(MOST_PHONES), guess)


@asynccontextmanager
async def gate_of(patience_s: float) -> AsyncIterator[tuple[str, list[str], Room]]:
    """A gate in this process, with bounds that a test can reach.

    Yields its URL, the host and port where it listens, and the room behind it.
    """
    room = Room()
    (listening,) = bind_sockets(0, "127.0.0.1")
    host, port = listening.getsockname()
    door = apps.Door(process.by_cookie(room, "/abc/"))
    server = gate.Gate(apps.application(("/abc/", door, apps.phones(room))), patience_s)
    server.add_socket(listening)
    yield f"http://{host}:{port}/abc/", (host, port), room
    server.stop()


def test_a_path_without_its_slash_leads_to_its_part_even_below_another_part():
    """On a hub, the wall's path lies below that of the phones."""

    async def asked() -> list[tuple[int, str]]:
        door = apps.Door(process.by_cookie(Room(), "/room/"))
        app = apps.application(("/room/wall/", door, {}), ("/room/", door, {}))
        (listening,) = bind_sockets(0, "127.0.0.1")
        host, port = listening.getsockname()
        server = HTTPServer(app)
        server.add_socket(listening)
        client = AsyncHTTPClient()
        replies = []
        for path in ("/room/wall", "/room"):
            url = f"http://{host}:{port}{path}"
            reply = await client.fetch(url, follow_redirects=False, raise_error=False)
            replies.append((reply.code, reply.headers.get("Location", "")))
        server.stop()
        return replies

    assert together(asked()) == [(302, "/room/wall/"), (302, "/room/")]


def test_who_sends_slowly_is_cut_off():
    async def attacked() -> list[bytes]:
        async with gate_of(patience_s=0.2) as (_, where, _):
            opened = [await asyncio.open_connection(*where) for _ in range(4)]
            for n, (_, writer) in enumerate(opened):
                begun = "POST /abc/guess HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"
                writer.write((begun + "\r\n{" * (n % 2)).encode())
            return [await asyncio.wait_for(reader.read(), 60) for reader, _ in opened]

    assert together(attacked()) == [b""] * 4


def test_one_address_has_its_share_of_connections_of_requests_and_of_phones(monkeypatch):
    monkeypatch.setattr(gate, "MOST_OPEN_OF_ONE", 5)
    monkeypatch.setattr(gate, "REQUESTS_AT_ONCE", 15)
    monkeypatch.setattr(gate, "REQUESTS_PER_SEC", 0)
    monkeypatch.setattr(gate, "NEW_AT_ONCE", 3)
    monkeypatch.setattr(gate, "NEW_PER_SEC", 0)

    async def attacked() -> tuple[list[int], int]:
        async with gate_of(patience_s=60) as (url, where, room):
            opened = [await asyncio.open_connection(*where) for _ in range(5)]
            statuses = [(await request(url)).status]
            for _, writer in opened:
                writer.close()
            while statuses[-1] != 200:  # until it has noticed
                statuses.append((await request(url)).status)
            statuses = statuses[:1] + [(await request(f"{url}question")).status for _ in range(12)]
            return statuses, len(room.phones)

    assert together(attacked()) == ([0, *[200] * 9, *[0] * 3], 3)


def test_nothing_that_is_kept_or_printed_tells_who_guessed_what(own_room):
    room = own_room
    refused = {"error": "Nothing was asked yet, so there is nothing to keep."}
    assert room.post("keep").said == refused
    asked = room.post("ask", "04.my_days").said
    phones = guessed(room, "11", "11", "12", "11", "13")
    moved(room, "04.my_days", "show", "again")
    together(all_guess(phones[:4], ["17"] * 4))
    moved(room, "04.my_days", "show")
    room.post("ask", "04.my_few")
    together(phones[0].guess("19"))
    moved(room, "04.my_few", "show")
    name = room.post("keep").said["saved"]
    room.process.stdin.close()
    assert room.process.stdout.read() + room.process.stderr.read() == "", "after its one line"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-04-\d{6}\.html", name)
    table = name.replace(".html", ".csv")
    assert sorted(path.name for path in room.kept.iterdir()) == [table, name]
    assert "19" not in (room.kept / table).read_text(encoding="utf-8").partition("\n")[2]
    text = (room.kept / name).read_text(encoding="utf-8")
    days, few = json.loads(re.search('json">(.*?)</script>', text)[1])
    assert days["rounds"] == [[[11, 3], [12, 1], [13, 1]], []], "four could know each other"
    assert few["rounds"] == [[]]
    assert set(days) == set(asked)
    assert PAGES["wall.css"] in text
    assert PAGES["wall.js"] in text
    assert "{{" not in text
    cookies = [phone.cookie.removeprefix("phone=") for phone in phones]
    for told in ("127.0.0.1", *cookies):
        assert told
        assert told not in text


def test_it_ends_with_its_input_leaves_a_taken_port_and_says_what_address_is_wrong(room, own_room):
    assert room.phones.split("/")[2] != own_room.phones.split("/")[2]
    own_room.process.send_signal(2)  # Ctrl+C is for whoever presents
    assert send(own_room.phones).status == 200
    own_room.process.stdin.close()
    assert own_room.process.wait(60) == 0
    assert send(own_room.phones).status == 0
    for ip in ("203.0.113.5", "0.0.0.0", "0", "", "::", "localhost"):
        command = [sys.executable, "-m", "course_utils.stage.poll", ip]
        run = without_input(command)
        assert run.returncode == 1
        assert run.stdout == ""
        said = f"The phones' page cannot be at {ip}. Name an address of this machine"
        assert run.stderr.startswith(said)
