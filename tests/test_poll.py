"""The room's process over real HTTP: what a class does with it, and what a hostile network may try."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tornado.netutil import bind_sockets

from course_utils.room.poll import __main__ as process
from course_utils.room.poll import apps, gate, typed
from course_utils.room.poll.rounds import MOST_PHONES, Room
from tests import ROOT
from tests.phones import PAGES, Phone, Running, all_guess, request, running_room, send, together

TYPED = json.loads((ROOT / "tests" / "typed_on_phones.json").read_text(encoding="utf-8"))
EMPTY = {"measured": None, "shown": None, "tempting": None}


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
    assert {reply.status for reply in together(all_guess(phones, texts))} <= {200}
    return phones


def moved(room: Running, key: str, *moves: str) -> list[int]:
    return [room.post("move", key, move=move).status for move in moves]


def test_a_number_is_read_as_people_type_it_on_phones_and_what_is_none_gets_a_sentence():
    assert {text: typed.read(text, "percent of the peak") for text in TYPED["numbers"]} == TYPED["numbers"]
    for text in TYPED["no numbers"]:
        with pytest.raises(ValueError, match=re.escape(typed.HOW)) as told:
            typed.read(text, "days")
        assert len(str(told.value)) < 140


# What a class does.


def test_two_rounds_are_guessed_shown_and_set_beside_the_answer(own_room):
    room, key = own_room, "04.my_days"
    ask = {"key": key, "words": "How many?", "unit": "days", "choices": []}
    assert send(f"{room.wall}state?key={key}").status == 404
    assert together(Phone(room.phones).question()) == {"key": None}
    beginning = ask | {"round": 1, "phase": "asking", "count": 0, "phones": 1, "rounds": []} | EMPTY
    assert room.post("ask", key).said == room.state(key) == beginning
    phones = guessed(room, "10", "1,5", "10.0", "1e3")
    assert room.state(key) == beginning | {"count": 4, "phones": 5}
    assert moved(room, key, "again", "show", "show", "again", "again") == [400, 200, 400, 200, 400]
    first = [[1.5, 1], [10, 2], [1000, 1]]
    assert room.state(key) == beginning | {"round": 2, "phones": 5, "rounds": [first]}
    assert together(phones[0].question()) == ask | {"round": 2, "phase": "asking", "mine": None}
    together(all_guess(phones[:2], ["11", "11"]))
    assert room.post("ask", key).said["count"] == 2, "asked again, it keeps its guesses"
    assert moved(room, key, "show", "again", "dance", "") == [200, 400, 400, 400]

    answer = {"measured": 11.0, "shown": "11 days", "tempting": [[1.5, "Days, not weeks."]]}
    both = {"round": 2, "phase": "revealed", "count": 2, "phones": 5, "rounds": [first, [[11, 2]]]}
    assert room.post("reveal", key, **answer).said == room.state(key) == ask | both | answer
    assert send(f"{room.wall}all").said == [room.state(key)]
    assert moved(room, key, "show", "again") == [400, 400]
    other = room.post("reveal", "04.my_other", **answer).said
    assert (other["rounds"], other["measured"]) == ([], 11)
    assert send(f"{room.wall}state?key=04.my_other").status == 404
    assert together(phones[0].question()) == ask | {"round": 2, "phase": "revealed", "mine": 11}


def test_a_guess_can_be_changed_until_it_is_shown_and_counts_once(room):
    room.post("ask", "k.change")
    (phone,) = guessed(room, "5")
    for text, mine in (("6", 6), ("what?", None), ("7 days", 7)):
        assert together(phone.guess(text)).said.get("mine") == mine
    assert together(phone.question())["mine"] == 7
    assert together(Phone(room.phones, "phone=yesterdays").guess("7")).said == {"mine": 7}, (
        "it gets another cookie"
    )
    assert moved(room, "k.change", "show") == [200]
    assert together(phone.guess("8")).said == {"error": "It is shown now, and takes no more guesses."}
    assert room.state("k.change")["rounds"] == [[[7, 2]]]


def test_what_is_forged_is_refused_a_choice_another_question_another_round_a_move(room):
    room.post("ask", "k.before")
    room.post("ask", "k.choice", choices=["fp16", "bf16"])
    (phone,) = guessed(room, "bf16")
    assert together(phone.guess("fp8")).said == {"error": "Choose one of these: fp16, bf16."}
    for key, number in (("k.before", 1), ("k.choice", 2), ("k.choice", "1"), (None, None), ({}, [])):
        forged = send(
            f"{room.phones}guess", {"key": key, "round": number, "guess": "fp16"}, Cookie=phone.cookie
        )
        assert (forged.status, forged.said["error"][:24]) == (400, "The wall asks something "), key
    assert moved(room, "k.none", "show") == moved(room, [], {}) == moved(room, "k.none", None) == [400]
    assert (room.state("k.before")["count"], room.state("k.choice")["count"]) == (0, 1)
    assert room.post("ask", "k.choice", choices=["fp16", "tf32"]).said["count"] == 0, "another question"


def test_three_hundred_phones_behind_one_address_are_all_counted_and_exactly(own_room):
    own_room.post("ask", "k.many")
    guessed(own_room, *(str(n % 7 + 1) for n in range(300)))
    assert own_room.state("k.many")["count"] == 300
    shown = own_room.post("move", "k.many", move="show").said
    assert shown["rounds"] == [[[n, 43 if n < 7 else 42] for n in range(1, 8)]]


def test_the_wall_has_its_five_pages_and_each_page_runs_only_its_own_scripts(room):
    for name, kind in (("wall.html", "html"), ("wall.js", "javascript"), ("wall.css", "css")):
        page = send(room.wall + name)
        assert (page.body, page.headers["Content-Type"]) == (PAGES[name], f"text/{kind}; charset=utf-8")
    pages = start, phone, _ = [
        send(url) for url in (f"{room.wall}start.html", room.phones, f"{room.wall}kept.html")
    ]
    assert f"<p>{room.phones.removeprefix('http://').removesuffix('/')}</p><svg" in start.body
    assert send(room.phones[:-1]).headers["Location"] == room.phones[-8:], "without the last slash"
    policies = [page.headers["Content-Security-Policy"] for page in pages]
    assert [policy.count("'sha256-") for policy in policies] == [0, 1, 2]
    assert all(policy.startswith("default-src 'none'; base-uri 'none';") for policy in policies)
    desk = "http://127.0.0.1:* http://localhost:*"
    assert [policy.rpartition("frame-ancestors ")[2] for policy in policies] == [desk, "'none'", desk]
    assert not re.search(r"innerHTML|insertAdjacent|document\.write|\b(src|href)=\"(?!data:)", phone.body)


# What a hostile network may try.


def test_without_code_secret_or_name_there_is_nothing_and_no_file_can_be_reached(room):
    wall, phones = (url[: url.index("/", 7) + 1] for url in (room.wall, room.phones))
    urls = [
        wall,
        phones,
        f"{phones}question",
        f"{phones}aaaaaa/question",
        f"{wall}wall.html",
        f"{room.phones}all",
    ]
    urls += [f"{wall}{room.phones[-7:]}question", f"{phones}{room.wall[-23:]}wall.html"]
    urls += [room.wall + path for path in TYPED["paths"]] + [
        room.phones + path for path in TYPED["paths"][1:]
    ]
    replies = {url: send(url) for url in urls}
    replies |= {f"other {url}": send(url, Host="evil.org") for url in (room.phones, f"{room.wall}all")}
    replies |= {method: send(room.phones, "{}", method) for method in ("DELETE", "PUT", "POST", "OPTIONS")}
    assert {url: reply for url, reply in replies.items() if (reply.status, reply.body) != (404, "")} == {}


def test_another_page_in_the_presenters_browser_can_neither_move_the_wall_nor_guess(room):
    room.post("ask", "k.cross")
    move = {"key": "k.cross", "move": "show"}
    for url in (f"{room.wall}move", f"{room.phones}guess"):
        for headers in TYPED["origins"]:
            assert (send(url, move, **headers).status, send(url, move, **headers).body) == (403, ""), headers
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""):
            assert send(url, move, Content_Type=kind).status == 415
    assert room.state("k.cross")["phase"] == "asking"
    ours = room.wall[: room.wall.index("/", 7)]
    assert send(f"{room.wall}move", move, Origin=ours, Sec_Fetch_Site="same-origin").status == 200


def test_what_is_too_long_or_no_json_is_refused_and_the_room_goes_on(room):
    for body in TYPED["bodies"]:
        reply = send(f"{room.phones}guess", body, "POST")
        assert (reply.status, reply.said) == (400, {"error": "A JSON object was expected."}), body[:9]
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
    assert (headers["Content-Type"], headers["X-Content-Type-Options"]) == ("application/json", "nosniff")


def test_a_thousand_forged_phones_neither_stop_the_wall_nor_fill_the_room(own_room):
    own_room.post("ask", "k.flood")
    guessed(own_room, "3")

    async def flood() -> list[int]:
        body, counts = {"key": "k.flood", "round": 1, "guess": "1e9"}, []
        forged = [Phone(own_room.phones, f"phone=forged{n}") for n in range(1000)]
        guesses = [request(f"{one.address}guess", body, Cookie=one.cookie) for one in forged]
        work = asyncio.gather(*guesses, *(one.guess("1e9") for one in forged), return_exceptions=True)
        while not work.done():
            counts.append((await request(f"{own_room.wall}state?key=k.flood")).said["count"])
        return counts

    assert len(counts := together(flood())) >= 1
    assert counts == sorted(counts)
    state = own_room.state("k.flood")
    assert 1 <= state["count"] <= state["phones"] <= MOST_PHONES // 2
    assert own_room.post("move", "k.flood", move="show").said["rounds"][0][0] == [3, 1]


def test_a_full_room_takes_no_other_phone_and_says_so():
    full, guess = Room(), {"key": "k", "round": 1, "guess": "1"}
    assert sum(full.admit(str(n)) for n in range(MOST_PHONES + 10)) == MOST_PHONES
    full.ask({"key": "k"})
    assert full.guess("0", guess) == 1
    with pytest.raises(ValueError, match="This phone is not known yet"):
        full.guess(str(MOST_PHONES), guess)


@asynccontextmanager
async def gate_of(patience_s: float) -> AsyncIterator[tuple[str, list[str], Room]]:
    """A gate in this process, with bounds that a test can reach: its address, where it listens, and the room behind."""
    room, (listening,) = Room(), bind_sockets(0, "127.0.0.1")
    door = apps.Door(process.by_cookie(room, "/abc/"))
    server = gate.Gate(apps.application(("/abc/", door, apps.phones(room))), patience_s)
    server.add_socket(listening)
    yield "http://{}:{}/abc/".format(*listening.getsockname()), listening.getsockname(), room
    server.stop()


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
    monkeypatch.setattr(process, "MOST_PHONES", 6)

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
    assert room.post("keep").said == {"error": "Nothing was asked yet, so there is nothing to keep."}
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
    assert [path.name for path in room.kept.iterdir()] == [name]
    text = (room.kept / name).read_text(encoding="utf-8")
    days, few = json.loads(re.search('json">(.*?)</script>', text)[1])
    assert days["rounds"] == [[[11, 3], [12, 1], [13, 1]], []], "four could know each other"
    assert (few["rounds"], set(days)) == ([[]], set(asked))
    assert (PAGES["wall.css"] in text, PAGES["wall.js"] in text, "{{" in text) == (True, True, False)
    told = ["127.0.0.1", *(phone.cookie.removeprefix("phone=") for phone in phones)]
    assert [one for one in told if not one or one in text] == []


def test_it_ends_with_its_input_leaves_a_taken_port_and_says_what_address_is_wrong(room, own_room):
    assert room.phones.split("/")[2] != own_room.phones.split("/")[2]
    own_room.process.send_signal(2)  # Ctrl+C is for whoever presents
    assert send(own_room.phones).status == 200
    own_room.process.stdin.close()
    assert own_room.process.wait(60) == 0
    assert send(own_room.phones).status == 0
    for ip in ("203.0.113.5", "0.0.0.0", "0", "", "::", "localhost"):
        command = [sys.executable, "-m", "course_utils.room.poll", ip]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, input="", check=False)
        assert (run.returncode, run.stdout) == (1, "")
        assert run.stderr.startswith(f"The phones' page cannot be at {ip}. Name an address of this machine")
