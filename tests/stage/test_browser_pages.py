"""The pages in a real browser, without another host.

Their labs come to life and are moved, and keep their pictures where they cannot.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from course_utils.chapters.checkpointing.account_lab.asked import A_SMALL_ONE
from course_utils.core.say import Guess, OpenGuess, in_words
from course_utils.engine.guessing.field import CLOSED, CLOSED_WITHOUT, NO_ANSWER, as_read
from course_utils.stage.notebook.files import read
from course_utils.stage.notebook.outline import outline
from course_utils.stage.pages import __main__
from tests import NOTEBOOKS, ROOT
from tests.engine.test_labs_contract import states
from tests.helpers.browser import launched, skip_without_browser
from tests.helpers.pages import ALIVE, bring_or_skip, precomputed_for, served
from tests.helpers.phone_walk import PHONE, WIDER, walk
from tests.helpers.thorough import SOME_NOTEBOOKS, few
from tests.stage.test_browser_access import assert_the_tab_key_comes_everywhere, faults

skip_without_browser()

LAPTOP = {"width": 1366, "height": 768}
CHINESE = re.compile("[\u4e00-\u9fff]")
BITS = ".course-picture [data-key]"
TYPED = json.loads((ROOT / "tests" / "stage" / "typed_on_phones.json").read_text(encoding="utf-8"))
# The number that numbers.js reads, or its sentence.
READ = """async (asked) => {
  const { read } = await import("./numbers.js");
  return asked.map(([text, unit]) => {
    try {
      return read(text, unit);
    } catch (error) {
      return error.message;
    }
  });
}"""
WRITTEN = """async (asked) => {
  const { asRead, inWords, withUnit } = await import("./numbers.js");
  return asked.map(([n, unit]) => [inWords(n, unit), withUnit(n, unit), asRead(n, unit)]);
}"""
# A field as it is where Python does not answer for a while.
UNANSWERED = """async () => {
  const { default: field } = await import("./field.js");
  const { default: tables } = await import("./tables.js");
  const el = document.querySelector("main").appendChild(document.createElement("div"));
  el.id = "unanswered";
  const lines = [{ name: "a", options: [], said: "", typed: "", fault: "" }];
  const state = { lines, unit: "GB", labels: tables.labels };
  window.courseSent = [];
  const send = (message) => window.courseSent.push(Object.keys(message)[0]);
  field.render({ model: { get: (name) => state[name], on: () => {}, send }, el });
}"""
# As whoever only reads does; and all that is around a question.
UNFOLD_ABOVE = """(node) => {
  for (const fold of document.querySelectorAll("details.fold")) fold.open = fold.contains(node);
}"""
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


def test_show_is_named_hide_while_the_answer_is_shown(flops):
    button = flops.locator("[data-lab] button", has_text=re.compile("^(Show|Hide)$")).first
    picture = button.locator("xpath=ancestor::*[@data-lab]").locator(".course-picture")
    asked = picture.inner_html()
    expect(button).to_have_text("Show")
    button.click()
    expect(button).to_have_text("Hide")
    expect(picture.locator(".measured").first).to_be_visible()
    assert picture.inner_html() != asked
    button.click()
    expect(button).to_have_text("Show")
    expect(picture.locator(".measured")).to_have_count(0)


def test_nonsense_gets_a_sentence_and_the_next_sensible_answer_recovers(flops):
    lab = lab_of(flops, "Matmul")
    typed = lab.get_by_role("textbox", name="D, typed")
    mistake = lab.locator(".course-mistake")
    typed.fill('<img src=x onerror="window.wasHere=1">')
    expect(mistake).to_contain_text("D is a size: a whole number from 1")
    assert flops.evaluate("window.wasHere") is None
    picture = lab.locator(".course-picture")
    expect(picture).to_have_class(re.compile("stale"))
    typed.fill("512")
    expect(mistake).to_have_text("")
    expect(picture).not_to_have_class(re.compile("stale"))
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
        for figure in page.locator("main .picture").all():
            whole, shown = figure.evaluate("(part) => [part.scrollWidth, part.clientWidth]")
            assert shown < 700 <= whole, "its letters are as large as the text's"
        assert page.locator("main .picture").count() > 0
        page.goto(f"{site}/08_checkpointing.html")  # has a file's path, which is one long word
        page.evaluate(UNFOLD)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        page.goto(f"{site}/glossary.html#AdamW")
        expect(page.locator("h2", has_text="AdamW").first).to_be_in_viewport()


@pytest.mark.parametrize("path", few(NOTEBOOKS, SOME_NOTEBOOKS[:1]), ids=lambda path: path.stem)
def test_with_a_finger_on_a_phone_each_guess_and_lab_of_a_page_is_used_and_gives_nothing_away(
    chromium, site, path: Path
):
    touching = launched(chromium.browser_type)  # which a finger does not crash
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    with unread(touching, site, path.stem, **phone) as page:
        expect_alive(page)
        assert walk(page) == []
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert page.evaluate(WIDER) == []
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    touching.close()


def test_on_a_page_seldom_used_controls_unfold_by_a_button_or_by_a_preset_that_moves_one(
    chromium, site
):
    with opened(chromium, site, "06_optimizers", viewport=PHONE) as page:
        labs = page.get_by_role("group", name="Timeline lab", exact=True)
        lab = labs.first  # below it stands a figure with a few of its controls
        lab.scroll_into_view_if_needed()
        expect(lab).to_have_attribute("data-alive", "true")
        fused = lab.get_by_role("checkbox", name="fused attention")
        expect(fused).to_be_hidden()
        lab.get_by_role("button", name="More controls").press("Enter")
        expect(fused).to_be_visible()
        fewer = lab.get_by_role("button", name="Fewer controls")
        fewer.press("Enter")
        expect(fused).to_be_hidden()
        lab.get_by_role("button", name="do 8 H100s hold 8B?").click()
        expect(lab.get_by_label("machines", exact=True)).to_have_value("3")  # 2^3
        expect(fused).to_be_hidden()
        lab.get_by_role("button", name="what do scores take?").click()
        expect(fused).to_be_visible()
        expect(fused).not_to_be_checked()


# Guesses.


@pytest.fixture(scope="module")
def guessing(chromium, site) -> Iterator[Page]:
    with opened(chromium, site, "04_flops") as page:
        yield page


def ask_of(page: Page, guess: str) -> Locator:
    """The field of the guess, with a line for each question."""
    return page.locator(f'[data-ask*="{guess}"]')


def answer_to(page: Page, guess: str) -> Locator:
    return page.locator(f'[data-answers="{guess}"] .answer')


def say(page: Page, guess: str, *texts: str) -> None:
    """Type the texts into the lines of the field, and leave each."""
    inputs = ask_of(page, guess).locator("input[type=text]")
    for line, text in enumerate(texts):
        inputs.nth(line).fill(text)
        inputs.nth(line).blur()


def test_a_number_is_read_and_written_on_a_page_as_in_the_notebook(guessing):
    asked = [(text, unit) for text in TYPED["numbers"] for unit in ("", "percent of the peak")]
    for line in TYPED["in other units"]:
        text, unit = re.fullmatch(
            r"(.*?) (days|hours|minutes|seconds|s|ms|bytes|GB|tokens a second|tokens|steps"
            r"|billions of parameters|times S · H|times)",
            line,
        ).groups()
        asked.append((text, unit))
    asked += [(text, "days") for text in TYPED["no numbers"]]
    for unit in units_of_all_guesses():
        asked += [(text, unit) for text in TYPED["tried in each unit"]]
    asked += [(text, "share") for text in ("12 %", "1/3", "120 %", "-0.1", "0.5")]
    asked += [(text, "of 200") for text in ("200", "201", "1.5", "-1", "of 200", "3 of 200")]
    asked += [(text, "GB") for text in ("2.4", "2.4 GB", "2,400 MB", "3 million", "-2", "2 GiB")]
    asked += [("2^31", "bytes"), ("12 %", "percent"), ("3x", "times"), ("٣٫٥ GB", "bytes")]
    for (text, unit), found in zip(asked, guessing.evaluate(READ, asked), strict=True):
        assert found == said_in_python(text, unit), (text, unit)
    numbers = (
        0,
        1,
        2.416,
        16.001,
        999.7,
        0.00012,
        1e-7,
        123456.7,
        44_193_349_632,
        1.358e12,
        2e20,
        -3,
    )
    units = ("", "GB", "bytes", "FLOPs", "FLOP/s", "days", "share", "percent", "of 200", "elements")
    asked = [(n, unit) for n in numbers for unit in (*units, "billions of parameters")]
    for (n, unit), found in zip(asked, guessing.evaluate(WRITTEN, asked), strict=True):
        guess = OpenGuess(("a",), unit, said={"a": n})
        of_python = [in_words(n, unit), guess.in_words("a"), as_read(guess, "a")]
        assert found == of_python, (n, unit)


def units_of_all_guesses() -> list[str]:
    """The units in which the eight notebooks ask for numbers."""
    units = set()
    for path in NOTEBOOKS:
        for guess in outline(read(path)).guesses:
            for asked in guess.asked:
                units |= {question.unit for question in asked.questions if not question.choices}
    assert len(units) >= 18
    return sorted(units)


def said_in_python(text: str, unit: str) -> object:
    """The number that the notebook reads there, or its sentence."""
    guess = OpenGuess(("a",), unit)
    try:
        guess.say("a", text)
    except ValueError as error:
        return str(error)
    return pytest.approx(guess.said["a"], rel=1e-15)


@contextmanager
def unread(chromium: Browser, site: str, name: str, **options: object) -> Iterator[Page]:
    """A page as a reader finds it, with nothing unfolded."""
    with opened(chromium, site, name, **options) as page:
        page.reload()
        yield page


def test_a_guess_is_judged_when_its_field_is_left_and_show_unfolds_what_follows(chromium, site):
    with unread(chromium, site, "04_flops") as page:
        ask = ask_of(page, "my_backward")
        field = ask.get_by_role("textbox")
        following = answer_to(page, "my_backward")
        expect(ask).to_contain_text("times")
        expect(page.locator("main")).not_to_contain_text("ask(")
        field.focus()
        page.keyboard.type("many")
        expect(ask.get_by_role("status")).to_have_text("")
        page.keyboard.press("Enter")
        expect(ask.get_by_role("status")).to_contain_text("'many' is not a number here.")
        expect(field).to_be_focused()
        expect(field).to_have_attribute("aria-invalid", "true")
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type("3/2")
        page.keyboard.press("Enter")
        expect(ask.get_by_role("status")).to_have_text("= 1.5 times")
        expect(ask.get_by_role("button", name="Show")).to_be_focused()
        expect(following).to_be_hidden()
        ask.evaluate("(node) => node.scrollIntoView({ block: 'start', behavior: 'instant' })")
        top = ask.bounding_box()["y"]
        page.keyboard.press("Enter")
        expect(following).to_be_visible()
        expect(ask.get_by_role("button", name="Show")).to_be_hidden()
        assert ask.bounding_box()["y"] == top  # the page has not moved
        # Show has settled the guess, also when the page is loaded again.
        expect(field).to_be_disabled()
        expect(ask).to_contain_text(CLOSED)
        page.reload()
        expect(field).to_be_disabled()
        expect(field).to_have_value("3/2")
        expect(following).to_be_visible()
        expect(ask_of(page, "my_days_of_70b")).to_be_visible()
        expect(answer_to(page, "my_days_of_70b")).to_be_hidden()


def test_after_show_the_answer_is_whole_in_the_window_and_says_which_guess_was_kept(chromium, site):
    with unread(chromium, site, "02_tensors") as page:
        ask = ask_of(page, "my_kept")
        field = ask.get_by_role("textbox")
        field.fill("64 MiB")
        field.press("Enter")
        field.fill("many")
        field.press("Enter")
        expect(ask).to_contain_text("Your last guess is kept: 67.1 MB.")
        ask.evaluate("(node) => node.scrollIntoView({ block: 'center', behavior: 'instant' })")
        ask.get_by_role("button", name="Show").click()
        expect(field).to_have_value("many")
        expect(answer_to(page, "my_kept")).to_be_hidden()
        ask.get_by_role("button", name="Show").click()
        expect(ask).to_contain_text("Your last guess is kept: 67.1 MB.")
        expect(field).to_have_value("64 MiB")
        expect(answer_to(page, "my_kept").locator(".seen")).to_be_in_viewport(ratio=1)


def test_while_python_does_not_read_a_text_show_waits_unless_it_is_pressed_again(guessing):
    guessing.evaluate(UNANSWERED)
    ask = guessing.locator("#unanswered")
    ask.get_by_role("textbox").fill("lots")
    ask.get_by_role("button", name="Show").click()
    expect(ask).to_contain_text("Python is still busy.")
    expect(ask.get_by_role("textbox")).to_be_disabled()
    assert guessing.evaluate("window.courseSent") == ["say"]
    ask.get_by_role("button", name="Show").dblclick()
    assert guessing.evaluate("window.courseSent") == ["say", "show"]
    guessing.evaluate("document.querySelector('#unanswered').remove()")


@pytest.mark.parametrize("viewport", [LAPTOP, PHONE])
def test_show_with_a_text_that_is_no_answer_unfolds_what_follows_when_it_is_pressed_again(
    chromium, site, viewport
):
    with unread(chromium, site, "04_flops", viewport=viewport) as page:
        alone = ask_of(page, "my_backward")
        alone.get_by_role("textbox").fill("many")
        alone.get_by_role("button", name="Show").dblclick()  # is one press
        expect(alone).to_contain_text("press Show again")
        expect(answer_to(page, "my_backward")).to_be_hidden()
        alone.get_by_role("button", name="Show").click()
        expect(alone).to_contain_text(NO_ANSWER)
        expect(alone).not_to_contain_text(CLOSED_WITHOUT)

        ask = ask_of(page, "my_lost_days")
        ask.evaluate(UNFOLD_ABOVE)
        show = ask.get_by_role("button", name="Show")
        boxes = ask.get_by_role("textbox")
        notes = ask.locator(".course-ask-note")
        answer = answer_to(page, "my_lost_days")
        for at, typed in enumerate(("60", "lots", "1 M")):
            boxes.nth(at).fill(typed)
        show.click()
        expect(notes.nth(1)).to_contain_text("'lots' is not a number here.")
        expect(boxes.nth(1)).to_be_focused()
        expect(boxes.nth(1)).to_have_value("lots")
        expect(ask).to_contain_text("press Show again")
        expect(answer).to_be_hidden()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type("5")
        expect(ask).not_to_contain_text("press Show again")
        show.click()
        expect(boxes.nth(2)).to_be_focused()  # it was held for the other text, too
        expect(answer).to_be_hidden()
        show.click()
        expect(answer).to_be_visible()
        expect(notes.nth(2)).to_have_text(NO_ANSWER)
        expect(boxes.nth(2)).to_have_value("1 M")
        expect(ask).to_contain_text(CLOSED)
        assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]


def test_on_a_page_the_first_thing_to_touch_is_within_two_screens_of_a_laptop(chromium, site):
    with opened(chromium, site, NOTEBOOKS[0].stem, viewport=LAPTOP) as page:
        tops = {}
        for path in NOTEBOOKS:
            page.goto(f"{site}/{path.stem}.html")
            first = page.locator("main :is([data-ask], .course-lab)").first
            tops[path.stem] = first.bounding_box()["y"]
        assert {name: top for name, top in tops.items() if top >= 2 * LAPTOP["height"]} == {}


@pytest.mark.parametrize(
    ("guess", "typed", "said", "measured", "unit", "kind"),
    [
        ("my_backward", "1.5", 1.5, 2, "times", "measured"),
        ("my_backward", "2", 2, 2, "times", "measured"),
        ("my_days_of_70b", "1 year", 365.25, 143.927, "days", "counted"),
        ("my_mfu", "45", 45, 27.6, "percent", "reported"),
        ("my_mfu", "28 %", 28, 27.6, "percent", "reported"),
        ("my_doubling_b", "1e9", 1e9, 346, "tokens", "calculated"),
        ("my_doubling_b", "4e-8", 4e-8, 346, "tokens", "calculated"),
        ("my_doubling_b", "5", 5, 346, "tokens", "calculated"),
        ("my_doubling_b", "1e40", 1e40, 346, "tokens", "calculated"),
        ("my_attention", "0", 0, 178, "percent", "measured"),
    ],
)
def test_an_answer_has_the_word_and_the_mark_of_the_guess(
    guessing, guess, typed, said, measured, unit, kind
):
    say(guessing, guess, typed)
    answer = answer_to(guessing, guess)
    by_python = Guess("", said, measured, kind, unit=unit)
    expect(answer.locator("[data-guess=word]")).to_have_text(by_python.word)
    sentence = answer.locator(".seen > p")
    if said > 0 and by_python.word != "spot on":
        expect(sentence).to_have_text(f"{by_python.words}.")
    else:
        expect(sentence).to_contain_text(by_python.word.capitalize())
    label = answer.locator("[data-guess=label]")
    number = in_words(said, unit)
    expect(label).to_contain_text(number if len(number) <= 10 else in_words(said))
    picture = answer.locator("svg[role=img]")
    assert by_python.word in picture.get_attribute("aria-label").lower()
    mark = float(answer.locator("[data-guess=mark]").get_attribute("cx").removesuffix("%"))
    dot = answer.locator("svg > circle:not([data-guess])")
    beside = float(dot.get_attribute("cx").removesuffix("%"))
    assert 6 <= mark <= 94
    assert (mark > beside) == (said > measured)
    assert (mark == beside) == (said == measured)
    whole = picture.bounding_box()
    of_label = label.bounding_box()
    assert whole["x"] - 1 <= of_label["x"]
    assert of_label["x"] + of_label["width"] <= whole["x"] + whole["width"] + 1


def test_a_picture_on_a_page_has_the_unit_that_was_asked_for_as_in_the_notebook(chromium, site):
    with opened(chromium, site, "01_floats") as page:
        answer = answer_to(page, "my_gb")
        say(page, "my_gb", "0.6")
        expect(answer.locator("[data-guess=label]")).to_contain_text("0.6 GB")
        expect(answer.locator("svg[role=img]")).to_contain_text("2.42 GB")
        expect(answer.locator("svg[role=img]")).not_to_contain_text("MB")
        read_aloud = re.compile("your guess 0.6 GB, predicted 2.42 GB, measured 2.42 GB")
        expect(answer.locator("svg[role=img]")).to_have_attribute("aria-label", read_aloud)
        say(page, "my_gb", "4 kB")
        expect(answer.locator("[data-guess=label]")).to_contain_text("4 kB")


def test_of_a_small_count_a_page_says_how_many_are_too_few(chromium, site):
    with opened(chromium, site, "06_optimizers") as page:
        for typed, words in (
            ("12", "Right power of ten: 4 bytes too few."),
            ("17", "Close: 1 byte too many."),
            ("4", "Far: a factor of 4 too small."),
        ):
            say(page, "my_bytes", typed)
            expect(answer_to(page, "my_bytes").locator(".seen > p")).to_have_text(words)


def test_each_of_several_questions_has_its_line_and_what_is_left_out_is_not_judged(guessing):
    ask = ask_of(guessing, "my_lost_days")
    expect(ask.get_by_role("textbox", name="sending, days")).to_be_visible()
    bar = ask.get_by_role("slider", name="pauses, bar, days")
    expect(bar).to_have_attribute("aria-valuetext", "no guess")
    say(guessing, "my_lost_days", "60", "", "0.1", "40", "30 d")
    expect(bar).to_have_attribute("aria-valuetext", "30 days")
    expect(ask).to_contain_text("So far 212.6 of 260 days (reported), and 47.4 are left.")
    answer = answer_to(guessing, "my_lost_days")
    words = answer.locator("[data-guess=word]:visible")
    expect(words).to_have_text(["right power of ten", "far", "close", "close"])
    sending = "sending: 0 days to 27.7 days, your guess 40 days"
    expect(answer.locator(".seen")).to_contain_text(sending)
    expect(answer.locator("[data-guess=mark]:visible")).to_have_count(4)
    expect(answer.locator("[data-guess=how]:visible")).to_have_text(
        [
            "a factor of 1.89 too large",
            "a factor of 41.3 too small",
            "1.44 times the number by the longest estimates",
            "1.38 times the number by the longest estimates",
        ]
    )
    expect(answer.locator(".seen > p")).to_have_count(0)
    say(guessing, "my_lost_days", "20", "5", "4", "100", "")
    # Between the two estimates, or judged by the nearer of them.
    expect(words).to_have_text(["spot on", "spot on", "spot on", "far"])
    first_line = answer.locator("svg[role=img]").first
    expect(first_line).to_have_attribute("aria-label", re.compile("Spot on: 20 days$"))
    numbers = answer.locator("table")
    expect(numbers).to_be_hidden()
    answer.get_by_text("The numbers").click()
    expect(numbers).to_be_visible()
    say(guessing, "my_lost_days", "", "", "", "", "")
    expect(answer.locator(".seen")).to_be_hidden()
    expect(answer.get_by_text("The numbers")).to_be_hidden()
    expect(numbers).to_be_visible()


def test_rows_that_were_not_asked_for_stay_in_view_beside_the_picture_of_a_guess(guessing):
    answer = answer_to(guessing, "my_mfu")
    say(guessing, "my_mfu", "30")
    expect(answer.locator(".seen")).to_be_visible()
    expect(answer.get_by_text("days on 1,024 H100s")).to_be_visible()
    say(guessing, "my_mfu", "")


def test_an_option_is_chosen_by_keyboard_and_named_beside_the_measured_one(chromium, site):
    with opened(chromium, site, "05_gradients") as page:
        options = ask_of(page, "my_missing").get_by_role("radio")
        options.first.focus()
        for _ in range(2):
            page.keyboard.press("ArrowDown")
        expect(page.get_by_role("radio", name="w1.grad")).to_be_checked()
        seen = answer_to(page, "my_missing").locator(".seen")
        expect(seen).to_contain_text("Missed: you said w1.grad, and what was measured is x.grad.")
        expect(seen.get_by_role("img")).to_contain_text("w1.gradyour guess")


def test_a_guess_outlasts_the_page_and_what_was_kept_may_be_missing_or_spoilt(chromium, site):
    with opened(chromium, site, "04_flops") as page:
        say(page, "my_mfu", "45 %")
        say(page, "my_lost_days", "", "", "", "40")
        page.reload()
        field = ask_of(page, "my_mfu").locator("input")
        expect(field).to_have_value("45 %")
        page.evaluate(UNFOLD)
        expect(answer_to(page, "my_mfu").locator(".seen")).to_contain_text("17.4 points too high")
        expect(answer_to(page, "my_lost_days").locator("[data-guess=word]:visible")).to_have_text(
            "close"
        )
        for spoilt in (
            "no JSON",
            "7",
            "null",
            '{"my_mfu": 7}',
            '{"my_mfu": {"MFU of Llama 3 70B": "?"}}',
        ):
            page.evaluate("(text) => localStorage.setItem(localStorage.key(0), text)", spoilt)
            page.reload()
            expect(ask_of(page, "my_lost_days").locator("input[type=text]")).to_have_count(5)
        refused = "Object.defineProperty(window, 'localStorage', { get() { throw new Error(); } })"
        page.add_init_script(refused)
        page.reload()
        expect(field).to_have_value("")
        page.evaluate(UNFOLD)
        say(page, "my_mfu", "45 %")
        expect(answer_to(page, "my_mfu").locator(".seen")).to_contain_text("17.4 points too high")


@pytest.mark.parametrize("viewport", [LAPTOP, PHONE])
def test_axe_finds_no_fault_in_guesses_and_their_answers_and_nothing_is_cut(
    chromium, site, viewport
):
    with opened(chromium, site, "04_flops", viewport=viewport) as page:
        say(page, "my_backward", "many")
        say(page, "my_mfu", "45 %")
        say(page, "my_lost_days", "60", "", "0.1", "40", "30 d")
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            assert faults(page, "[data-ask]", ".answer") == []
        assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]


def test_without_scripts_a_sentence_asks_and_the_table_answers(chromium, site):
    with opened(chromium, site, "04_flops", java_script_enabled=False) as page:
        expect(ask_of(page, "my_mfu")).to_have_text("Your guess: MFU of Llama 3 70B, in percent")


# The page for everyone.


def says(page: Page, words: str) -> None:
    expect(page.locator(".course-picture")).to_contain_text(words)


def test_the_address_holds_what_was_asked_so_that_a_link_opens_the_same(chromium, site):
    with opened(chromium, site, "account", viewport=PHONE) as page:
        expect_alive(page)
        assert "#" not in page.url, "nothing was asked yet"
        page.get_by_role("button", name="64 users of Mixtral?").click()
        says(page, "tokens a second, each user = 1 / max(")
        page.locator("[data-key=energy]").click()
        says(page, "energy = ")
        link = page.url
        meaning = page.locator(".course-meaning").inner_text()
    with opened(chromium, site, "account") as page:
        page.goto("about:blank")
        page.goto(link)
        expect_alive(page)
        says(page, "energy = ")
        expect(page.locator(".course-meaning")).to_have_text(meaning)
        expect(page.get_by_label("model")).to_have_value("Mixtral 8x7B")


@pytest.mark.parametrize("hash_", ["#", "#%7B", "#3", "#[1]", "#%7B%22nobody%22%3A1%7D", "#h%C3"])
def test_an_address_that_makes_no_sense_leaves_the_page_at_work(chromium, site, hash_):
    with opened(chromium, site, "account") as page:
        page.goto("about:blank")
        page.goto(f"{site}/account.html{hash_}")
        expect_alive(page)
        page.get_by_role("button", name="70B on 8 GPUs?").click()
        says(page, "70.6 billion")
        expect(page.locator(".course-mistake")).to_be_hidden()


def test_a_config_is_pasted_and_a_number_opened_by_keyboard_alone_and_axe_finds_nothing(
    chromium, site
):
    with opened(chromium, site, "account") as page:
        expect_alive(page)
        page.get_by_label("model").focus()
        page.keyboard.type("a config")
        field = page.get_by_label("its text")
        field.fill('{"model_type": "bert"}')
        expect(page.locator(".course-mistake")).to_contain_text("its model_type is 'bert'")
        field.fill(A_SMALL_ONE)
        says(page, "1.24 billion")
        row = page.locator(".course-picture [data-key][tabindex='0']")
        row.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        says(page, "state on each GPU = ")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert faults(page) == []


def test_a_lab_on_a_chinese_page_speaks_chinese_before_and_after_a_move(chromium, site):
    with opened(chromium, site, "01_floats.zh_CN") as page:
        meaning = page.locator(".course-meaning").first
        expect(meaning).to_have_text(CHINESE)  # as the page was made
        expect_alive(page)
        page.locator("[data-lab] input[type=text]").first.fill("0.1")
        expect(meaning).to_contain_text("0.1 ")
        expect(meaning).to_have_text(CHINESE)  # as the browser's Python says it
        expect(page.locator("[data-lab] .course-numbers summary").first).to_have_text(CHINESE)
