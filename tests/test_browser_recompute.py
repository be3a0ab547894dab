"""The recompute lab as a reader meets it: dragged, pressed, measured, and stopped."""

from playwright.sync_api import expect

from tests import browser

browser.skip_without_browser()


def test_the_segment_follows_the_keyboard_and_stays_within_the_stack(labs_page):
    lab = browser.lab_of(labs_page, "recompute")
    browser.press(lab, "is √L best?")
    meaning = lab.locator(".course-meaning")
    expect(meaning).to_contain_text("With segments of 4 blocks")
    handle = lab.locator(".noUi-handle").nth(1)
    handle.focus()
    for _ in range(3):
        labs_page.keyboard.press("ArrowLeft")
    expect(meaning).to_contain_text("With segments of 1 block: at most 3.15 MB kept")
    expect(meaning).to_contain_text("Nothing else here keeps less.")
    for _ in range(20):
        labs_page.keyboard.press("ArrowRight")
    expect(meaning).to_contain_text("With segments of 16 blocks")
    expect(lab.locator(".course-mistake")).to_be_empty()


def test_all_segments_are_measured_while_the_lab_stays_awake(labs_page):
    lab = browser.lab_of(labs_page, "recompute")
    browser.press(lab, "when is it 8/6?")
    browser.press(lab, "Measure all segments")
    expect(lab.get_by_role("button", name="Stop", exact=True)).to_be_enabled()
    lab.get_by_role("checkbox", name="early stop").uncheck()
    expect(lab.locator(".course-report")).to_contain_text("9 of 9 exactly as predicted")
    expect(lab.locator(".course-picture")).to_contain_text("all exactly as predicted")


def test_a_long_measurement_can_be_stopped(labs_page):
    lab = browser.lab_of(labs_page, "recompute")
    browser.press(lab, "what of GPT-2?")
    browser.press(lab, "Measure")
    browser.press(lab, "Stop")
    expect(lab.locator(".course-report")).to_contain_text("Stopped.")
    expect(lab.get_by_role("button", name="Measure", exact=True)).to_be_enabled()


def test_scores_alone_take_the_place_of_segments(labs_page):
    lab = browser.lab_of(labs_page, "recompute")
    browser.press(lab, "only the scores?")
    expect(lab.locator(".course-meaning")).to_contain_text(
        "With only the scores computed again: at most 53 MB kept"
    )
    expect(lab.get_by_text("segment s", exact=True)).to_be_hidden()
    lab.get_by_role("checkbox", name="only the scores again").uncheck()
    expect(lab.get_by_text("segment s", exact=True)).to_be_visible()


def test_nonsense_gets_a_sentence_and_a_preset_recovers(labs_page):
    lab = browser.lab_of(labs_page, "recompute")
    browser.press(lab, "with few tokens?")
    expect(lab.locator(".course-picture")).to_contain_text(
        "341 times all kept"
    )  # before the typing, which it would take back
    lab.get_by_title("width H, typed").fill("<img src=x>")
    expect(lab.locator(".course-mistake")).to_contain_text("width H is a size")
    assert lab.locator("img").count() == 0
    browser.press(lab, "is √L best?")
    expect(lab.locator(".course-mistake")).to_be_empty()
