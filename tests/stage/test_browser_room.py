"""The room guesses by phone: a presenter's JupyterLab, the wall in it, and three phones."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import nbformat
import pytest
from playwright.sync_api import Browser, FrameLocator, Locator, Page, expect

from course_utils.stage import poll
from course_utils.stage.present.bands import bands
from tests.helpers.browser import HAS_KERNEL, launched, notebook_of, skip_without_browser
from tests.helpers.phones import Phone, Running, running_room, send, together
from tests.helpers.phones import all_guess as all_send
from tests.helpers.thorough import few
from tests.helpers.waiting import wait_until
from tests.stage.test_browser_access import faults
from tests.stage.test_present import presented

skip_without_browser()
WORDS = "# A talk\n\nHow many **days** does it [take](GLOSSARY.md#x)?"
IMPORTS = (
    "from course_utils import ask, reveal\n"
    "from course_utils.chapters.flops import check\n"
    "from course_utils.core.say import Comparison"
)
COMPARISON = "Comparison({'days': 40, 'more': 1}, {'days': 42.5, 'more': 1}, guess=my_days)"
CELLS = (
    IMPORTS,
    'my_days = ask("days", "days")',
    "# a long cell\n" * 12 + COMPARISON,
    'my_format = ask("finer steps", among=("fp16", "bf16"))',
    "reveal(my_format, measured='fp16')",
    "really = ...",
    "check.name_of_f32(really)",
)
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
WALL = Path(poll.__file__).parent / "wall"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in WALL.iterdir()}
ASKS = {
    "key": "04.my_days",
    "words": "How many days does it take?",
    "unit": "days",
    "item": "",
}
CHANGE_THEME = "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
SCREEN = {"width": 1366, "height": 768}


@pytest.fixture(scope="module")
def screen(chromium: Browser) -> Iterator[Browser]:
    """A browser that draws: a wall is a picture."""
    screen = launched(chromium.browser_type)
    yield screen
    screen.close()


@pytest.fixture
def browser(screen: Browser) -> Iterator[Browser]:
    """The same for each test, which leaves no page behind."""
    yield screen
    for context in screen.contexts:
        context.close()


def phones(browser: Browser, address: str, count: int) -> list[Page]:
    pages = []
    for _ in range(count):
        page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
        page.on("dialog", lambda dialog: pytest.fail(f"markup ran: {dialog.message}"))
        page.goto(f"http://{address}/")
        pages.append(page)
    return pages


def phones_of(browser: Browser, running: Running, count: int) -> list[Page]:
    """Phones in a room without JupyterLab."""
    return phones(browser, running.phones.removeprefix("http://").rstrip("/"), count)


def all_guess(frame: FrameLocator, phones: list[Page], *texts: str) -> None:
    """Each phone types its text, or chooses it, and sends it; and the wall counts it."""
    guesses = zip(phones, texts, strict=True)
    for count, (phone, text) in enumerate(guesses, start=1):
        radio = phone.get_by_role("radio", name=text, exact=True)
        expect(radio.or_(phone.locator("#number:visible")).first).to_be_visible()
        if radio.count():
            radio.check()
        else:
            phone.locator("#number").fill(text)
        phone.locator("#send").click()
        expect(frame.locator("#count")).to_have_text(str(count))


def type_and_send(phone: Page, text: str) -> None:
    phone.locator("#number").fill(text)
    phone.locator("#send").click()


def press(wall: Page | FrameLocator, button: str) -> None:
    wall.get_by_role("button", name=button).click()


def run_next(page: Page, number: int) -> FrameLocator:
    """Go on, by the key of a remote control; the wall below the cell that has run."""
    page.wait_for_function("() => document.activeElement?.matches('.jp-Notebook .jp-Cell')")
    page.keyboard.press("PageDown")
    cell = page.locator(".jp-Cell").nth(number)
    if number:  # the first is a text
        expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\d"))
    return cell.frame_locator("iframe.course-wall")


@pytest.mark.parametrize("theme", few(["Light", "Dark"], ["Light"]))
def test_a_room_guesses_talks_guesses_again_and_sees_how_far_off_it_was(tmp_path, browser, theme):
    (tmp_path / "notebooks").mkdir()
    chosen = notebook_of(tmp_path / "notebooks" / "04_talk.ipynb", CELLS, WORDS)
    kept = tmp_path / "rooms"
    before = chosen.read_bytes()
    with presented(chosen, ROOM="127.0.0.1", COURSE_ROOMS=str(kept)) as (address, token):
        page = browser.new_page(viewport=SCREEN)
        page.goto(f"{address}/?token={token}")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        page.wait_for_function(HAS_KERNEL)
        page.evaluate(CHANGE_THEME, f"JupyterLab {theme}")

        # A number: the count follows what phones send, and nothing else is seen before Show.
        page.locator(".jp-Cell").first.click()
        for number in range(3):
            frame = run_next(page, number)
        ground = "rgb(255, 255, 255)" if theme == "Light" else "rgb(17, 17, 17)"
        expect(frame.locator("body")).to_have_css("background-color", ground)
        phones_at = frame.locator("footer b").text_content()
        with page.context.expect_page() as opened:
            frame.get_by_role("link", name="start page").click()
        expect(opened.value.locator("#phones")).to_have_text("Nobody here yet")
        three = phones(browser, phones_at, 3)
        expect(opened.value.locator("#phones")).to_have_text("3 phones here")
        page.bring_to_front()
        expect(three[0].locator("#words")).to_have_text("How many days does it take?")
        type_and_send(three[0], HOSTILE)
        expect(three[0].locator("#said")).to_contain_text("<img src=x oner")
        all_guess(frame, three, "10", "30", "1e9")
        type_and_send(three[2], "50")
        expect(three[2].locator("#said")).to_contain_text("50 days")
        expect(frame.locator("#picture svg")).to_have_count(0)
        press(frame, "Show")
        expect(frame.locator("#picture svg rect.second")).to_have_count(3)
        expect(frame.locator("#item")).to_have_text("How many days does it take?")
        expect(page.locator(".jp-Cell").nth(3)).to_be_focused()
        expect(page.locator(".jp-Cell").nth(3)).not_to_be_in_viewport()
        press(frame, "Guess again")
        for phone in three:
            expect(phone.locator("#round")).to_have_text("Guess again")
        all_guess(frame, three, "40", "0", "45")
        frame.get_by_role("button", name="Show").focus()
        page.keyboard.press("Enter")
        expect(frame.locator("#picture svg rect.first")).to_have_count(3)
        expect(frame.locator("#picture svg").get_by_text("0 or less")).to_be_visible()

        # The measurement stands in the same picture. Escape, or a click, gives the keys back to the
        # presentation.
        page.keyboard.press("Escape")
        frame = run_next(page, 3)
        expect(frame.locator("#said")).to_have_text(
            "Within 1 %: 0 % of the room, then 0 % · Within a factor of two: 67 %, then 67 %"
        )
        expect(frame.locator("#picture svg").get_by_text("measured: 42.5 days")).to_be_visible()
        expect(page.locator("iframe.course-wall").last).to_be_in_viewport(ratio=0.99)
        expect(three[0].locator("#said")).to_contain_text("The answer is on the wall")
        frame = run_next(page, 4)
        all_guess(frame, three, "fp16", "bf16", "fp16")
        press(frame, "Show")
        expect(frame.locator("#picture svg rect")).to_have_count(2)
        expect(run_next(page, 5).locator("#said")).to_have_text("Right: 67 % of the room")

        # A value that is checked: afterwards one sees how many were tempted, if at least five
        # guessed.
        five = [*three, *phones(browser, phones_at, 2)]
        frame = run_next(page, 6)
        all_guess(frame, five, *["fp32"] * 4, "tf32")
        press(frame, "Show")
        expect(frame.locator("#picture svg")).to_be_visible()
        expect(run_next(page, 7).locator("#said")).to_have_text("Right: 20 % of the room")
        after = browser.new_page()
        after.goto(opened.value.url.replace("start", "kept"))
        expect(after.locator("section")).to_contain_text(
            ["fewer than five", "fewer than five", "tempting"]
        )
        tempting = after.locator("section").last.locator("tr", has_text="six times as fast")
        expect(tempting.locator("td").nth(1)).to_have_text("4")
        press(after, "Keep")
        expect(after.get_by_role("status")).to_contain_text("Saved: rooms/")
        after.emulate_media(media="print")
        expect(after.get_by_role("button", name="Keep")).to_be_hidden()
        saved, table = sorted(kept.iterdir(), key=lambda path: path.suffix == ".csv")
        assert "fp32,4,no,tf32,answer" in table.read_text(encoding="utf-8")
        after.goto(saved.as_uri())
        after.emulate_media(media="screen")
        expect(after.locator("section")).to_have_count(3)
        expect(after.get_by_role("button", name="Keep")).to_be_hidden()
        data = json.loads(after.locator("#data").text_content())
        days, formats = data[:2]
        assert days["rounds"] == [[], []], "of three phones, nothing is kept"
        assert formats["rounds"] == [[]]
    assert [path.name for path in chosen.parent.iterdir()] == [chosen.name], "no record"
    assert chosen.read_bytes() == before


def item_of(number: int, item: str) -> dict[str, str]:
    """The question on one item of several."""
    return {
        "key": f"04.my_days.{number}",
        "words": f"How many days?\n\n{item}",
        "unit": "days",
        "item": item,
    }


def test_items_are_named_on_phones_all_their_answers_told_at_once_and_a_joker_leaves_the_axis(
    tmp_path, browser
):
    asks = [
        item_of(1, "sending"),
        item_of(2, "pauses"),
        item_of(3, "the rest"),
    ]
    with running_room(tmp_path, PAGES) as running:
        page = browser.new_page(viewport={"width": 1366, "height": 450})

        def wall(more: dict[str, object]) -> None:
            shown = [ask | more for ask in asks]
            page.goto("about:blank")
            page.goto(f"{running.wall}wall.html#{quote(json.dumps(shown))}")

        wall({"run": 1})
        three = phones_of(browser, running, 3)
        expect(three[0].locator("#words strong")).to_have_text("sending")
        expect(three[0].locator(".sizes")).to_be_hidden()
        all_guess(page, three, "2", "3", "1e300")
        press(page, "Show")
        expect(page.locator("#picture svg")).to_contain_text("days  (at the edge: 1 further right)")
        expect(page.locator("#picture svg")).not_to_contain_text("10³")
        press(page, "Next question")
        expect(three[0].locator("#words strong")).to_have_text("pauses")
        press(page, "Show")
        expect(page.locator("#said")).to_have_text("Nobody guessed.")
        expect(page.locator("#picture svg")).to_have_count(0)

        # The third was never asked, and needs no answer.
        answer = {
            "measured": 2.5,
            "shown": "2.5 days",
            "bands": [[1.25, 5, "Within a factor of two"]],
        }
        wall({"run": 2} | answer)
        expect(page.locator("#item")).to_have_text("1 of 2: sending")
        expect(page.locator("#said")).to_have_text("Within a factor of two: 67 % of the room")
        states = send(f"{running.wall}all").said
        assert [state["measured"] for state in states] == [2.5, 2.5]
        press(page, "Next question")
        expect(page.locator("#item")).to_have_text("2 of 2: pauses")
        expect(page.get_by_role("button", name="Next question")).to_be_hidden()


def wall_of(browser: Browser, address: str, *asks: dict) -> Page:
    page = browser.new_page(viewport={"width": 1366, "height": 700})
    page.goto(f"{address}wall.html#{quote(json.dumps(asks))}")
    return page


def test_a_room_that_is_wrong_is_called_wrong_on_the_wall_and_on_the_page_that_is_kept(
    tmp_path, browser
):
    asks = ASKS | {"key": "04.my_backward", "unit": "times the forward pass"}
    right = bands(2, asks["unit"])
    with running_room(tmp_path, PAGES) as running:
        page = wall_of(browser, running.wall, asks | {"run": 1})
        expect(page.locator("#count")).to_have_text("0")
        six = [Phone(running.phones) for _ in range(6)]
        together(all_send(six, ["1"] * 5 + ["1.2"]))
        press(page, "Show")
        expect(page.locator("#picture svg")).to_be_visible()
        assert faults(page, "body") == []
        answer = {"measured": 2, "shown": "2 times", "how": "counted", "bands": right}
        reveal = wall_of(browser, running.wall, asks | {"run": 2} | answer)
        expect(reveal.locator("#said")).to_have_text("Exactly 2: 0 % of the room")
        expect(reveal.locator("#picture svg").get_by_text("counted: 2 times")).to_be_visible()
        assert faults(reveal, "body") == []
        reveal.goto(f"{running.wall}kept.html")
        expect(reveal.locator("th", has_text="exactly 2")).to_be_visible()
        expect(reveal.locator("tr", has_text="first round")).to_contain_text("0 %")
        assert faults(reveal, "body") == []
        with reveal.expect_download() as downloaded:
            reveal.get_by_role("link", name="as a table (CSV)").click()
        assert "1.2,1,no,2,counted" in downloaded.value.path().read_text(encoding="utf-8")


def test_the_bar_of_those_who_are_right_stands_over_the_line(tmp_path, browser):
    asks = ASKS | {"run": 1}
    answer = {"measured": 143.927, "shown": "143.927 days", "bands": bands(143.927, "days")}
    with running_room(tmp_path, PAGES) as running:
        page = wall_of(browser, running.wall, asks)
        expect(page.locator("#count")).to_have_text("0")
        six = [Phone(running.phones) for _ in range(6)]
        together(all_send(six, ["144"] * 4 + ["50", "900"]))
        press(page, "Show")
        reveal = wall_of(browser, running.wall, asks | {"run": 2} | answer)
        picture = reveal.locator("#picture svg")
        line = picture.locator("line.measured")
        expect(line).to_have_count(1)  # the picture is there
        bars = picture.locator("rect.second").all()
        tallest = max(bars, key=height_of)
        assert abs(middle_of(tallest) - middle_of(line)) < 2

        # And all who said one number stand over that number.
        fifty = middle_of(picture.locator("text", has_text=re.compile("^50$")))
        assert min(abs(middle_of(bar) - fifty) for bar in bars) < 3


def height_of(shape: Locator) -> float:
    return shape.bounding_box()["height"]


def middle_of(shape: Locator) -> float:
    """From the window's left edge, in pixels."""
    box = shape.bounding_box()
    return box["x"] + box["width"] / 2


def test_one_address_that_brings_a_crowd_is_named_and_left_out_and_a_question_begins_anew(
    tmp_path, browser
):
    with running_room(tmp_path, PAGES) as running:
        page = wall_of(browser, running.wall, ASKS | {"run": 1})
        expect(page.locator("#count")).to_have_text("0")
        apart = [Phone(running.phones, home=f"127.0.0.{n}") for n in range(10, 20)]
        joker = [Phone(running.phones, home="127.0.0.99") for _ in range(6)]
        together(all_send([*apart, *joker], ["3"] * 10 + ["999"] * 6))
        expect(page.locator("#crowd")).to_contain_text("6 of 16 guesses came from one address.")
        press(page, "Leave them out")
        expect(page.locator("#count")).to_have_text("10")
        press(page, "Show")
        expect(page.locator("#picture svg rect.second")).to_have_count(1)
        press(page, "Count them again")
        expect(page.locator("#picture svg rect.second")).to_have_count(2)

        # It asks once more before it drops what all have guessed.
        press(page, "Begin anew")
        expect(page.locator("#count")).to_have_text("16")
        press(page, "Drop all guesses?")
        expect(page.locator("#count")).to_have_text("0")
        expect(page.locator("#picture svg rect.second")).to_have_count(0)


def test_a_phone_says_after_a_refusal_that_its_former_guess_counts(tmp_path, browser):
    with running_room(tmp_path, PAGES) as running:
        page = wall_of(browser, running.wall, ASKS | {"run": 1})
        expect(page.locator("#count")).to_have_text("0")
        (phone,) = phones_of(browser, running, 1)
        said = phone.locator("#said")
        type_and_send(phone, "2 weeks")
        expect(said).to_contain_text("Sent: 14 days.")
        type_and_send(phone, "many")
        expect(said).to_contain_text("Your former guess, 14 days, still counts.")
        assert phone.evaluate("() => document.documentElement.scrollWidth") <= 390
        for scheme in ("light", "dark"):
            phone.emulate_media(color_scheme=scheme)
            assert faults(phone, "body") == [], scheme


FILLS_WINDOW = """(height) => {
  const frame = document.querySelector('iframe.course-wall');
  const { top, bottom } = frame.getBoundingClientRect();
  return top < 120 && bottom > height - 40 && bottom <= height;
}"""
FONT_SIZE = "(element) => parseFloat(getComputedStyle(element).fontSize)"
JUMP = (
    "from course_utils import ask, reveal",
    'my_days = ask("days", "days")',
    "reveal(my_days, predicted=40, measured=42.5)",
    "import time; time.sleep(0.5); print('\\n'.join(map(str, range(60))))",
)


def test_the_wall_takes_the_window_a_reload_keeps_it_and_a_jump_arrives_and_asks_nobody(
    tmp_path, browser
):
    (tmp_path / "notebooks").mkdir()
    chosen = notebook_of(tmp_path / "notebooks" / "04_talk.ipynb", JUMP, WORDS)
    stored = nbformat.read(chosen, as_version=4)
    heading = nbformat.v4.new_markdown_cell("# Where one jumps to\n\nHow many days?")
    stored.cells.append(heading)
    for code in JUMP:
        stored.cells.append(nbformat.v4.new_code_cell(code))
    nbformat.write(stored, chosen)
    with presented(chosen, ROOM="127.0.0.1") as (address, token):
        page = browser.new_page(viewport=SCREEN)
        page.on("dialog", lambda dialog: dialog.accept())

        def opened() -> None:
            page.wait_for_selector(".jp-Notebook .jp-Cell")
            page.wait_for_function(HAS_KERNEL)

        page.goto(f"{address}/?token={token}")
        opened()
        page.evaluate(CHANGE_THEME, "JupyterLab Dark")
        page.locator(".jp-Cell").first.click()
        for number in range(3):
            frame = run_next(page, number)
        expect(frame.locator("body")).to_have_css("background-color", "rgb(17, 17, 17)")
        expect(frame.locator("#count")).to_have_text("0")
        for width, height in ((1366, 768), (1920, 1080)):
            page.set_viewport_size({"width": width, "height": height})
            wall = page.locator("iframe.course-wall")
            page.wait_for_function(FILLS_WINDOW, arg=height)
            assert wall.bounding_box()["width"] > 0.9 * width
            letters = frame.locator("#join .address").evaluate(FONT_SIZE)
            assert letters >= 0.028 * width, "the last row reads the address"
            assert frame.locator("#join svg").bounding_box()["height"] > 0.4 * height
            expect(page.locator(".jp-Cell").nth(3)).not_to_be_in_viewport()

        # The page is loaded again, as after a slip of the finger: the question still stands there.
        saved = "() => !window.jupyterapp.shell.currentWidget.context.model.dirty"
        page.wait_for_function(saved)
        page.reload()
        opened()
        frame = page.locator(".jp-Cell").nth(2).frame_locator("iframe.course-wall")
        expect(frame.locator("#count")).to_have_text("0")
        phones_at = f"http://{frame.locator('footer b').text_content()}/"

        # Who jumps arrives where the cursor was; what was skipped is neither asked nor answered.
        all_cells = page.locator(".jp-Cell")
        heading = all_cells.nth(5)
        heading.locator("h1").click()
        asked_before = together(Phone(phones_at).question())["key"]
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.locator("[data-command='notebook:run-all-above']").click()
        skipped = page.get_by_text("Skipped by the jump. Run this cell again to ask it.")
        expect(skipped).to_have_count(1)
        expect(page.locator("iframe.course-wall")).to_have_count(0)
        expect(all_cells.nth(4).locator(".jp-InputPrompt")).to_have_text(re.compile(r"\d"))
        wait_until(lambda: 0 <= heading.bounding_box()["y"] < 60, "the heading is at the top")
        page.wait_for_timeout(1800)
        assert 0 <= heading.bounding_box()["y"] < 60, "and stays there"
        expect(all_cells.nth(3).locator(".jp-OutputArea-output")).to_have_count(0)
        assert together(Phone(phones_at).question())["key"] == asked_before
