"""The decks in a real browser without a network.

They are whole and readable, and turned by keys, clicks and addresses.
"""

import re
from pathlib import Path

import nbformat
import pytest

from course_utils.stage.slides.deck import deck_of_cut, decks
from tests import NOTEBOOKS
from tests.helpers.browser import skip_without_browser
from tests.helpers.thorough import SOME_NOTEBOOKS, few
from tests.tools.slide_sheets import SIZES, blank_page, open_deck

skip_without_browser()

# On every slide, the current one or not: what does not fit, what is too small, and what is empty.
FAULTS = """() => [...document.querySelectorAll(".slide")].flatMap((slide, place) => {
  const sheet = slide.getBoundingClientRect();
  const scale = sheet.width / 1280;
  const faults = [];
  const say = (what) => faults.push(`slide ${place + 1}: ${what}`);
  const body = slide.querySelector(".body");
  const fits = body.scrollHeight <= body.clientHeight && body.scrollWidth <= body.clientWidth;
  if (!body.textContent.trim() && !body.querySelector("img")) say("empty");
  if (!fits) say("does not fit");
  if (slide.querySelector(".guess + :not(.guess)")) say("the answer stands below the guess");
  if (slide.querySelector(".guess:first-child")) say("a guess without its question");

  const asked = slide.previousElementSibling?.querySelector(".guess:last-child");
  const isSolution = slide.querySelector("h3")?.textContent === "Solution";
  const isTurn = asked?.textContent === "Your answer?";
  if (isTurn && !isSolution) say("does not answer the turn before it");

  const space = body.getBoundingClientRect();
  const filled = (body.lastElementChild?.getBoundingClientRect().bottom - space.top) / space.height;
  const isTitle = slide.classList.contains("title");
  const mayBeSparse = isTitle || asked || slide.querySelector(".guess");
  if (filled < 1 / 3 && !mayBeSparse) say("less than a third full");

  for (const node of slide.querySelectorAll("*")) {
    const box = node.getBoundingClientRect();
    const isWide = box.right > sheet.right + 1 || box.left < sheet.left - 1;
    const isHigh = box.bottom > sheet.bottom + 1 || box.top < sheet.top - 1;
    if (isWide || isHigh) say(`${node.localName} is cut off`);
    // A picture that fills the width cannot be larger.
    const isSmall = box.height < 200 * scale && box.width < 0.9 * space.width;
    if (node.localName === "img" && isSmall) say("a picture is too small");
    const texts = [...node.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE);
    const hasText = texts.some(({ data }) => data.trim());
    const size = parseFloat(getComputedStyle(node).fontSize);
    if (hasText && size < 15.9) say(`${node.textContent.slice(0, 20)} is too small`);
  }
  return faults;
})"""
HEADINGS = """() => {
  const headings = [...document.querySelectorAll(".slide :is(h1, h2, h3)")];
  return headings.map((heading) => heading.textContent);
}"""
# Whether each slide ends with what the room is asked.
ASKS = """() => [...document.querySelectorAll(".slide")].map((slide) => {
  const last = slide.querySelector(".body").lastElementChild;
  return last?.classList.contains("guess") ?? false;
})"""
SIGHT = tuple[int, list[str], list[str]]  # how many slides, their faults and their headings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("slides")


def deck_in(folder: Path, path: Path, end: str = "") -> Path:
    """One of the notebook's decks; all of them are written at its first use."""
    wanted = folder / f"{path.stem}{end}.html"
    if not wanted.exists():
        for name, text in (decks(path) | deck_of_cut(path, "25")).items():
            (folder / name).write_text(text, encoding="utf-8")
    return wanted


@pytest.fixture(scope="module")
def page(chromium):
    with blank_page(chromium) as page:
        page.said = []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("requestfailed", lambda request: page.said.append(request.url))
        yield page


@pytest.fixture(scope="module", params=few(NOTEBOOKS, SOME_NOTEBOOKS), ids=lambda path: path.stem)
def seen(request, page, folder):
    """A notebook, and what is seen of each of its decks at each size."""
    path = request.param

    def sight(end: str, size: tuple[int, int]) -> SIGHT:
        count = open_deck(page, deck_in(folder, path, end), size)
        return count, page.evaluate(FAULTS), page.evaluate(HEADINGS)

    ends = ("", "_beyond", "_25")
    return path, {end: [sight(end, size) for size in SIZES] for end in ends}


def test_every_slide_is_whole_and_readable_at_both_sizes(page, seen):
    _, shown = seen
    for end, sheets in shown.items():
        assert [faults for _, faults, _ in sheets] == [[]] * len(SIZES), end
        assert len({count for count, *_ in sheets}) == 1
    assert page.said == []


def test_every_heading_of_the_notebook_is_on_a_slide(seen):
    path, shown = seen
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    wanted = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    assert len(wanted) > 5
    plain = [heading.replace("`", "").replace("*", "") for heading in wanted]
    for (*_, main), (*_, beyond) in zip(shown[""], shown["_beyond"], strict=True):
        assert [heading for heading in plain if heading not in main + beyond] == []


def test_keys_clicks_and_addresses_turn_the_slides(page, folder):
    count = open_deck(page, deck_in(folder, NOTEBOOKS[0]))
    number = page.locator("output")
    for key, place in (
        ("ArrowRight", 2),
        ("Space", 3),
        ("PageDown", 4),
        ("ArrowLeft", 3),
        ("PageUp", 2),
        ("Shift+Space", 1),
        ("ArrowLeft", 1),
        ("End", count),
        ("ArrowRight", count),
        ("Home", 1),
    ):
        page.keyboard.press(key)
        assert number.inner_text() == f"{place} / {count}", key
    page.mouse.click(1000, 700)
    assert number.inner_text() == f"2 / {count}"
    page.mouse.click(50, 700)
    assert number.inner_text() == f"1 / {count}"
    page.evaluate("location.hash = '#5'")
    page.wait_for_function(f"document.querySelector('output').textContent === '5 / {count}'")
    assert page.locator(".slide").nth(4).is_visible()
    assert not page.locator(".slide").nth(3).is_visible()
    link = page.locator(".slide a").first
    link.evaluate("(a) => a.addEventListener('click', (event) => event.preventDefault())")
    link.evaluate("(a) => a.click()")
    assert number.inner_text() == f"5 / {count}"  # a click on a link is the link's


def test_an_overview_a_dark_room_and_the_presenters_notes_are_one_key_away(page, folder):
    count = open_deck(page, deck_in(folder, NOTEBOOKS[3]))
    page.keyboard.press("o")
    page.keyboard.press("End")
    last = page.locator(".slide").last
    assert last.bounding_box()["y"] < 720  # the keys lead there, too
    last.click()
    assert page.locator("output").inner_text() == f"{count} / {count}"
    assert last.bounding_box()["width"] == 1280
    page.keyboard.press("d")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 20, 20)"
    page.keyboard.press("Home")
    with page.expect_popup() as opened:
        page.keyboard.press("n")
    notes = opened.value
    assert "Guesses aloud" in notes.inner_text("body")
    assert re.search(r"\d?\d:\d\d", notes.inner_text("time"))
    notes.keyboard.press("ArrowRight")  # the presenter looks at the notes
    assert page.locator("output").inner_text() == f"2 / {count}"
    assert notes.inner_text("output").startswith(
        f"2 / {count} · since 0 min · next: What a product costs"
    )
    assert re.fullmatch(r"What a product costs: 0 of \d+ min", notes.inner_text(".section"))
    for place in (2, count - 1):  # the next slide stands beside the notes, as it will be
        page.evaluate(f"location.hash = '#{place}'")
        notes.wait_for_function(
            f"document.querySelector('output').textContent.startsWith('{place} /')"
        )
        following = page.locator(".slide").nth(place).evaluate("(slide) => slide.textContent")
        assert notes.locator(".next .slide").evaluate("(slide) => slide.textContent") == following
        box = notes.locator(".next .slide").bounding_box()
        assert 500 < box["width"] < 620
        assert box["height"] == pytest.approx(box["width"] * 9 / 16, rel=0.02)
    page.evaluate("location.hash = '#2'")
    notes.wait_for_function("document.querySelector('output').textContent.startsWith('2 /')")
    here = notes.locator("li:not(.elsewhere) .here")
    assert "What a product costs" in here.all_inner_texts()
    assert "What training costs" not in notes.locator(".here").all_inner_texts()
    notes.keyboard.press("ArrowRight")
    assert "Guesses aloud:" in here.all_inner_texts()
    for _ in range(9):  # to the slide that asks for it
        if "your turn 1" not in here.all_inner_texts():
            notes.keyboard.press("ArrowRight")
    assert "your turn 1" in here.all_inner_texts()
    notes.close()


@pytest.mark.parametrize("end", ["", "_beyond"])
def test_on_paper_two_slides_share_a_sheet_unless_one_answers_the_other(page, folder, end):
    open_deck(page, deck_in(folder, NOTEBOOKS[3], end))
    asks = page.evaluate(ASKS)
    assert any(asks)
    sheets = 0
    free = 0  # slides that there is space for on the last sheet
    for is_question in asks:
        if free == 0:
            sheets += 1
            free = 2
        free = 0 if is_question else free - 1
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.count(b"/Type /Page\n") == sheets < len(asks)
