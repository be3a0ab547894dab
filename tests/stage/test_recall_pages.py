"""The pages on which questions come back, asked by a server in this process."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from jupyter_server.serverapp import ServerApp
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from course_utils.core import record
from course_utils.stage.recall import due, lines
from course_utils.stage.recall.bank import QUESTIONS
from course_utils.stage.recall.napkin import napkin
from course_utils.stage.workspace import copies
from tests import ROOT

OPTIONS = [
    "--ServerApp.jpserver_extensions=course_utils.stage.workspace=True",
    "--IdentityProvider.token=",
    "--ServerApp.disable_check_xsrf=True",
    "--ServerApp.load_other_extensions=False",
    "--ServerApp.open_browser=False",
    "--ServerApp.allow_root=True",
]


class Reader:
    """Somebody at a browser without JavaScript, whose copies are in a folder of the test's."""

    def __init__(self, root: Path) -> None:
        self.mine = root / copies.MINE.name
        self.app = ServerApp()
        self.app.initialize([*OPTIONS, f"--ServerApp.root_dir={root}"], new_httpserver=False)

    def write(self, *lines: str) -> None:
        """Write the record; {ago} in a line is a day of last week."""
        ago = date.today() - timedelta(7)
        text = "".join(f"{line.replace('{ago}', ago.isoformat())}\n" for line in lines)
        (self.mine / record.RECORD).write_text(text)

    def ask(self, path: str, **fields: str) -> str:
        """The text of the page; with fields, after the form was sent."""
        return main_of(self.html(path, **fields))

    def html(self, path: str, **fields: str) -> str:
        """The page itself."""
        # In a thread, because a browser test before may have left an event loop in this one.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._ask(path, fields)).result()

    async def _ask(self, path: str, fields: dict[str, str]) -> str:
        socket, port = bind_unused_port()
        server = HTTPServer(self.app.web_app)
        server.add_socket(socket)
        method = {"method": "POST", "body": urlencode(fields)} if fields else {}
        try:
            answer = await AsyncHTTPClient().fetch(f"http://127.0.0.1:{port}{path}", **method)
        finally:
            server.stop()
        return answer.body.decode()


def main_of(page: str) -> str:
    """What somebody reads on the page, on one line."""
    _, html = re.split("<main[^>]*>", page, maxsplit=1)
    return " ".join(unescape(re.sub("<[^>]+>", " ", html)).split())


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    return Reader(tmp_path_factory.mktemp("root"))


def now_asked(reader: Reader) -> dict[str, str]:
    """The hidden fields of the question that is asked next, as the page has them."""
    today = date.today()
    question = due.three(reader.mine, copies.COURSE, today)[0]
    return {"question": question.name, "seed": str(today.toordinal())}


def test_without_a_record_the_page_says_what_will_come_back(reader):
    reader.write()
    assert "a question about it comes back here on the next day" in reader.ask("/contents/recall")


def test_the_contents_page_leads_there_in_one_line(reader):
    assert "Three to recall" not in reader.ask("/contents"), "on day one, nothing has been met"
    reader.write("{ago} tensors.steps_that_fit right")
    assert reader.ask("/contents").count("Three to recall, two minutes") == 1


def test_a_right_answer_a_mistake_and_no_answer_are_noted_and_replied_to(reader):
    reader.write(
        "{ago} floats.tensor_bytes right",
        "{ago} tensors.steps_that_fit tried",
        "{ago} checkpointing.best_segment tried",
    )
    assert "1 of 3" in reader.ask("/contents/recall")
    sent = now_asked(reader)
    first = QUESTIONS["tensors.steps"].draw(date.today().toordinal())
    mistake = first.asked.mistakes[0]
    page = reader.ask("/contents/recall", typed=str(mistake.said), **sent)
    assert first.asked.text in page
    assert mistake.advice in page
    assert first.asked.derivation in page
    assert "notebook 2, After how many steps memory is full" in page
    assert "2 of 3" in page

    sent = now_asked(reader)
    second = QUESTIONS["checkpointing.segments"].draw(date.today().toordinal())
    page = reader.ask("/contents/recall", typed=f"{second.asked.answer} GB", **sent)
    assert f"Right. Spot on: {second.asked.answer:g}" in page

    page = reader.ask("/contents/recall", do="show", typed="", **now_asked(reader))
    assert "You gave no answer. It is" in page
    tomorrow = date.today() + timedelta(1)
    assert f"The next question comes on {tomorrow:%A}, {tomorrow.day} {tomorrow:%B}." in page
    noted = [(one.guess.asked, one.is_right) for one in lines.recalled(reader.mine)]
    assert noted == [
        ("tensors.steps", False),
        ("checkpointing.segments", True),
        ("floats.matrices", False),
    ]


def test_nonsense_gets_a_sentence_and_nothing_is_noted(reader):
    reader.write("{ago} tensors.steps_that_fit right")
    page = reader.ask("/contents/recall", typed="a few <b>", **now_asked(reader))
    assert "'a few <b>' is not a number here. Write it as 1500, 1.5" in page
    assert lines.recalled(reader.mine) == []


def test_a_form_that_is_sent_twice_or_by_hand_notes_nothing_more(reader):
    reader.write("{ago} tensors.steps_that_fit right")
    sent = now_asked(reader)
    reader.ask("/contents/recall", typed="7", **sent)
    reader.ask("/contents/recall", typed="7", **sent)
    for question, seed in (("tensors.gone", "1"), ("tensors.steps", "x"), ("", "")):
        reader.ask("/contents/recall", typed="7", question=question, seed=seed)
    assert len(lines.recalled(reader.mine)) == 1


@pytest.mark.parametrize("what", [b"", b"\xff\x00 damaged", b"2026-01-01 floats recalled {]\n"])
def test_an_empty_and_a_damaged_record_make_a_page(reader, what):
    (reader.mine / record.RECORD).write_bytes(what)
    assert "Three to recall" in reader.ask("/contents/recall")


def test_an_edited_answer_of_today_makes_a_page(reader):
    line = f"{date.today()} floats recalled " + '{"asked": "floats.stops", "said": %s, '
    line += '"measured": 8, "seed": 1, "right": false}'
    reader.write(line % '"<script>"', line % "1e400", line % "-1e308", line % "NaN")
    assert "Three to recall" in reader.ask("/contents/recall")


def test_a_napkin_says_what_was_right_what_to_read_again_and_one_line_to_keep(reader):
    drawn = napkin(5)
    typed = {f"typed-{n}": str(one.asked.answer) for n, one in enumerate(drawn, 1)}
    typed["typed-4"] = ""
    before = (reader.mine / record.RECORD).read_bytes()
    page = reader.ask("/contents/napkin", seed="5", **typed)
    assert "Napkin 5: 9 of 10 right. To read again: notebook 3." in page
    assert "3 · An einsum is a loop for each name" in page
    assert page.count("Right. Spot on") == 9
    assert (reader.mine / record.RECORD).read_bytes() == before


def test_a_napkin_asks_again_for_what_is_no_number_and_keeps_the_rest(reader):
    page = reader.ask("/contents/napkin", seed="5", **{"typed-1": "128", "typed-2": "many"})
    assert "'many' is not a number here." in page
    assert "One line to keep" not in page


def test_without_a_seed_a_napkin_is_drawn(reader):
    assert "10." in reader.ask("/contents/napkin")
    assert "1." in reader.ask("/contents/napkin", seed="none")


def test_the_course_of_the_page_is_the_one_that_the_tests_read():
    assert copies.COURSE == ROOT / "notebooks"


# More than three, and what comes after them.

MET = (
    "floats.tensor_bytes",
    "tensors.steps_that_fit",
    "checkpointing.best_segment",
    "floats.by_formula",
    "floats.ends",
)


def all_answered(reader: Reader, until: str = "") -> str:
    """Answer all that is asked by "I don't know"; returns the last page."""
    page = reader.ask(f"/contents/recall?until={until}")
    while "I don't know" in page:
        today = date.today()
        waiting = due.three(reader.mine, copies.COURSE, today)
        more = [standing.question for standing in due.more(reader.mine, copies.COURSE, today)]
        name = (waiting + more)[0].name
        seed = str(today.toordinal())
        page = reader.ask("/contents/recall", question=name, seed=seed, until=until, do="show")
    return page


def test_after_the_three_more_can_be_asked_until_nothing_is_left(reader):
    reader.write(*(f"{{ago}} {name} tried" for name in MET))
    page = all_answered(reader)
    assert "That is all for today." in page
    assert page.count("Read it again in") == 3
    assert "Three more" in page
    page = all_answered(reader, until="6")
    assert page.count("Read it again in") == 6
    assert "extra" not in page, "all six were due"
    assert "Three more" not in page, "nothing is left"


def test_what_is_not_due_yet_is_asked_as_an_extra_with_its_day(reader):
    reader.write()
    record.note(reader.mine, "tensors.steps_that_fit", "right")  # today, so it is due tomorrow
    page = reader.ask("/contents/recall")
    assert "Nothing is due today." in page
    assert "Ask three all the same" in page
    tomorrow = date.today() + timedelta(1)
    page = reader.ask("/contents/recall?until=3")
    assert f"1 of 1 · extra, due on {tomorrow:%A}, {tomorrow.day} {tomorrow:%B}" in page
    page = all_answered(reader, until="3")
    assert "1 of 1 · extra" in page
    assert "An extra that was right comes on the day" in page
    assert "Three more" not in page
    (noted,) = lines.recalled(reader.mine)
    assert noted.is_extra


@pytest.mark.parametrize("until", ["-1", "many", "9" * 5000, "²"])
def test_an_address_that_somebody_has_edited_asks_nothing_more(reader, until):
    reader.write()
    record.note(reader.mine, "tensors.steps_that_fit", "right")
    assert "Nothing is due today." in reader.ask(f"/contents/recall?until={quote(until)}")


def test_the_contents_page_says_how_many_are_due_and_after_them_the_notebook_goes_on(reader):
    reader.write("{ago} tensors.steps_that_fit tried", "{ago} floats.tensor_bytes tried")
    assert "2 questions are due today, before you go on." in reader.ask("/contents")
    goes_on = "Continue: 1, Floats"
    assert goes_on in reader.ask("/contents")
    assert goes_on not in reader.ask("/contents/recall")
    assert goes_on in all_answered(reader)
    assert "what you have met comes back, with new numbers" in reader.ask("/contents")


def test_the_contents_page_leads_to_the_lab_that_accounts_for_any_model(reader):
    assert "The lab at the end of notebook 8 says it of any model" in reader.ask("/contents")
