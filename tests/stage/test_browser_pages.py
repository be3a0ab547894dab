"""The pages in a real browser, without another host.

Their labs come to life and are moved, and keep their pictures where they cannot.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from course_utils.stage.pages import __main__
from tests.engine.test_labs_contract import states
from tests.helpers.browser import skip_without_browser
from tests.helpers.pages import ALIVE, bring_or_skip, precomputed_for, served
from tests.stage.test_browser_access import assert_the_tab_key_comes_everywhere, faults

skip_without_browser()

LAPTOP = {"width": 1366, "height": 768}
PHONE = {"width": 390, "height": 844}
BITS = ".course-picture [data-key]"
# As whoever only reads does.
UNFOLD = "for (const fold of document.querySelectorAll('details.fold')) fold.open = true"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("site")
    bring_or_skip(folder / "pyodide")
    __main__.write(folder, {name: precomputed_for(name, states(name, 0)) for name in ALIVE})
    with served(folder) as address:
        yield address


@contextmanager
def opened(
    chromium: Browser, site: str, name: str, hold: str = "", refuse: str = "", **options: object
) -> Iterator[Page]:
    """A page, which at the end must have asked nothing of another host, and had no error.

    `hold` is the end of an address whose answer waits in `page.held`; an address that ends with
    `refuse` gets none.
    """
    context = chromium.new_context(**{"viewport": LAPTOP} | options)
    page = context.new_page()
    page.wrong = []  # errors, and addresses of other hosts
    page.held = []  # routes

    def answer(route):
        if hold and route.request.url.endswith(hold):
            page.held.append(route)
        elif refuse and route.request.url.endswith(refuse):
            route.abort()
        elif route.request.url.startswith(site):
            route.continue_()
        else:
            page.wrong.append(route.request.url)
            route.abort()

    context.route("**/*", answer)
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.goto(f"{site}/{name}.html")
    page.evaluate(UNFOLD)
    yield page
    assert refuse or page.wrong == []
    context.close()


def lab_of(page: Page, name: str) -> Locator:
    """The lab; a figure that is this lab, too, stands above it."""
    lab = page.get_by_role("group", name=f"{name} lab", exact=True).last
    lab.scroll_into_view_if_needed()
    return lab


def expect_alive(page: Page) -> None:
    for lab in page.locator("[data-lab]").all():
        expect(lab).to_have_attribute("data-alive", "true")


@pytest.fixture(scope="module")
def flops(chromium, site) -> Iterator[Page]:
    with opened(chromium, site, "04_flops") as page:
        expect_alive(page)
        yield page


def test_a_lab_is_moved_by_keys_by_the_mouse_and_by_typing(flops):
    lab = lab_of(flops, "Matmul")
    b = lab.get_by_role("slider", name="B", exact=True)
    typed = lab.get_by_role("textbox", name="B, typed")
    b.focus()
    flops.keyboard.press("ArrowRight")
    expect(typed).to_have_value("1218")  # 2^10.25
    expect(lab.locator(".course-picture")).to_contain_text("1,218")
    box = b.bounding_box()
    flops.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    flops.mouse.down()
    flops.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2, steps=8)
    flops.mouse.up()
    expect(typed).to_have_value("1048576")
    typed.fill("2^14")
    expect(lab.locator(".course-picture")).to_contain_text("16,384")
    expect(b).to_have_js_property("value", "14")
    tf32 = lab.get_by_role("button", name="tf32", exact=True)
    tf32.click()
    expect(tf32).to_have_attribute("aria-pressed", "true")


def test_nonsense_gets_a_sentence_and_the_next_sensible_answer_recovers(flops):
    lab = lab_of(flops, "Matmul")
    typed = lab.get_by_role("textbox", name="D, typed")
    mistake = lab.locator(".course-mistake")
    typed.fill('<img src=x onerror="window.wasHere=1">')
    expect(mistake).to_contain_text("D is a size: a whole number from 1")
    assert flops.evaluate("window.wasHere") is None
    typed.fill("512")
    expect(mistake).to_have_text("")
    lab.get_by_label("machine").select_option("this machine")
    expect(mistake).to_contain_text("has no machine of its own")
    lab.get_by_label("machine").select_option("H100 SXM, by OpenXLA")
    expect(mistake).to_have_text("")


def test_a_recorded_machine_is_timed_and_swept_and_the_rest_says_what_it_needs(flops):
    lab = lab_of(flops, "Matmul")
    lab.get_by_role("button", name="bf16", exact=True).click()
    lab.get_by_role("button", name="Sweep").click()
    expect(lab.locator(".course-report")).to_contain_text("recorded along K")
    lab.get_by_role("button", name="Time it").click()
    expect(lab.locator(".course-report")).to_contain_text("Recorded by OpenXLA")


def test_axe_finds_no_fault_and_the_tab_key_comes_everywhere(flops, chromium, site):
    with opened(chromium, site, "02_tensors") as page:  # text, code, results
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            flops.emulate_media(color_scheme=scheme)
            assert faults(page, "body") == []
            assert faults(flops, ".course-lab") == []
    assert_the_tab_key_comes_everywhere(flops)


def test_what_is_done_before_a_lab_is_alive_is_played_then(chromium, site):
    with opened(chromium, site, "01_floats", hold="course.zip") as page:
        lab = lab_of(page, "Float")
        assert lab.locator(BITS).count() > 100  # the picture is there
        lab.get_by_role("button", name="1e-8?", exact=True).click()
        tick = lab.get_by_role("checkbox", name="saturating casts")
        tick.check()
        assert not lab.get_attribute("data-alive")
        expect(lab.locator(".course-note")).to_contain_text("Move it already")
        while not page.held:
            page.wait_for_timeout(50)
        page.held.pop().continue_()
        expect_alive(page)
        number = lab.get_by_role("textbox", name="number")
        expect(number).to_have_value("1e-8")
        expect(lab.locator(".course-meaning")).to_contain_text("The number 1e-8")
        expect(tick).to_be_checked()
        # A bit of the picture, by the mouse and by the keyboard.
        bit = lab.locator(BITS).nth(3)
        bit.click()
        expect(number).not_to_have_value("1e-8")
        flipped = number.input_value()
        page.keyboard.press("Space")
        expect(number).not_to_have_value(flipped)


@pytest.mark.parametrize(
    "options", [{"refuse": "pyodide.asm.wasm"}, {"java_script_enabled": False}]
)
def test_a_lab_that_cannot_be_alive_keeps_its_picture_and_says_so(chromium, site, options):
    says_so = re.compile("could not come to life|A still picture")
    with opened(chromium, site, "08_checkpointing", **options) as page:
        for lab in page.locator("[data-lab]").all():
            expect(lab.locator(".course-note")).to_have_text(says_so)
            expect(lab.locator(".course-picture svg")).to_be_visible()
            expect(lab.locator(".rows")).to_be_hidden()


def test_on_a_phone_a_page_is_read_without_moving_it_sideways(chromium, site, tmp_path: Path):
    with opened(chromium, site, "06_optimizers", viewport=PHONE) as page:
        expect(page.locator(".rows").last).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        for picture in page.locator(".course-lab .course-picture").all():
            shown, whole = picture.evaluate("(part) => [part.clientWidth, part.scrollWidth]")
            is_drawn_in = picture.locator("[data-mark]").count() > 0
            assert shown < whole
            assert whole >= (480 if is_drawn_in else 720)
        page.goto(f"{site}/glossary.html#AdamW")
        expect(page.locator("h2", has_text="AdamW").first).to_be_in_viewport()
