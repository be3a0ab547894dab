"""The stride lab and the einsum lab as a reader meets them: pointed at, typed into, dragged, timed, given nonsense."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests import browser
from tests.waiting import wait_until

browser.skip_without_browser()


@pytest.fixture
def stride(labs_page: Page) -> Locator:
    """The stride lab with a matrix of 4 by 6, and the mouse elsewhere."""
    lab = browser.lab_of(labs_page, "stride")
    labs_page.mouse.move(0, 0)
    lab.get_by_role("button", name="where does a matrix lie?", exact=True).click()
    expect(field(lab, "operations")).to_have_value("")
    expect(lab.locator(".course-picture")).to_contain_text("torch's own pointer: 23")
    return lab


@pytest.fixture
def einsum(labs_page: Page) -> Locator:
    """The einsum lab with a matrix product of 16 by 8 and 8 by 4."""
    lab = browser.lab_of(labs_page, "einsum")
    lab.get_by_role("button", name="what is A times B?", exact=True).click()
    expect(lab.locator(".course-picture")).to_contain_text("2 × 16 × 8 × 4 = 1,024 FLOPs")
    return lab


def field(lab: Locator, name: str) -> Locator:
    return lab.get_by_role("textbox", name=name, exact=True)


def pointed_at(lab: Locator, key: str, formula: str) -> None:
    """The lab shows that element, in every place where it does."""
    expect(lab.locator(".formula")).to_have_text(f"[{key}] lies at {formula}")
    expect(field(lab, "element")).to_have_value(key)
    expect(lab.locator(f"[data-key='{key}'] .pointed")).to_have_count(1)
    expect(lab.locator(".pointed")).to_have_count(2)  # and in the storage
    expect(lab.locator(".measured-words")).to_have_text(f"torch's own pointer: {formula.split(' = ')[1]}")


# The stride lab.


def test_hovering_an_element_shows_its_address(stride):
    stride.locator("[data-key='1, 2']").hover()
    pointed_at(stride, "1, 2", "0 + 1 × 6 + 2 × 1 = 8")
    stride.locator("[data-key='2, 0']").hover()
    pointed_at(stride, "2, 0", "0 + 2 × 6 + 0 × 1 = 12")


def test_a_sweep_asks_for_one_element_at_a_time_and_ends_at_the_last(labs_page, stride):
    """Eighteen elements, with no answer of the kernel between them, make two questions."""
    sent = """() => {
      window.coursePicks = 0;
      const send = WebSocket.prototype.send;
      WebSocket.prototype.send = function (data) {
        const words = typeof data === "string" ? data : new TextDecoder().decode(data);
        if (words.includes('"pick"')) window.coursePicks += 1;
        return send.call(this, data);
      };
    }"""
    labs_page.evaluate(sent)
    sweep = """(lab) => {
      for (const part of [...lab.querySelectorAll(".course-picture [data-key]")].slice(-18))
        part.dispatchEvent(new PointerEvent("pointermove", { pointerType: "mouse", bubbles: true }));
    }"""
    stride.evaluate(sweep)  # in one go: no answer comes between
    pointed_at(stride, "3, 5", "0 + 3 × 6 + 5 × 1 = 23")
    expect(stride.locator(".course-mistake")).to_be_empty()
    assert labs_page.evaluate("window.coursePicks") == 2


def test_coming_back_to_an_element_points_at_it_anew(labs_page, stride):
    stride.locator("[data-key='1, 2']").hover()
    pointed_at(stride, "1, 2", "0 + 1 × 6 + 2 × 1 = 8")
    stride.get_by_role("button", name="what does t() move?", exact=True).click()
    expect(stride.locator(".formula")).to_have_text("[5, 3] lies at 0 + 5 × 1 + 3 × 6 = 23")
    box = stride.locator("[data-key='1, 2']").bounding_box()
    labs_page.mouse.move(box["x"] + 5, box["y"] + 5)  # at once, over nothing else
    pointed_at(stride, "1, 2", "0 + 1 × 1 + 2 × 6 = 13")


def test_arrow_keys_move_the_element_keep_the_focus_and_a_resting_mouse_takes_nothing_back(labs_page, stride):
    stride.locator("[data-key='1, 1']").click()  # where the mouse stays
    pointed_at(stride, "1, 1", "0 + 1 × 6 + 1 × 1 = 7")
    for key, to, formula in [
        ("ArrowRight", "1, 2", "0 + 1 × 6 + 2 × 1 = 8"),
        ("ArrowDown", "2, 2", "0 + 2 × 6 + 2 × 1 = 14"),
        ("ArrowLeft", "2, 1", "0 + 2 × 6 + 1 × 1 = 13"),
        ("ArrowUp", "1, 1", "0 + 1 × 6 + 1 × 1 = 7"),
        ("ArrowUp", "0, 1", "0 + 0 × 6 + 1 × 1 = 1"),
        ("ArrowUp", "0, 1", "0 + 0 × 6 + 1 × 1 = 1"),  # there is no row above
    ]:
        labs_page.keyboard.press(key)
        pointed_at(stride, to, formula)
        expect(labs_page.locator(":focus")).to_have_attribute("data-key", to)
    for event in (
        "pointerover",
        "mouseover",
    ):  # as the browser tells a picture that is new under a resting mouse
        stride.locator("[data-key='1, 1']").dispatch_event(event, {"bubbles": True})
    browser.wait_for_kernel(labs_page)
    pointed_at(stride, "0, 1", "0 + 0 × 6 + 1 × 1 = 1")


def test_a_quick_run_of_arrow_keys_ends_where_it_should(labs_page, stride):
    stride.locator("[data-key='0, 0']").click()
    for key in ["ArrowRight"] * 4 + ["ArrowDown"] * 2 + ["ArrowLeft"]:
        labs_page.keyboard.press(key)
    pointed_at(stride, "2, 3", "0 + 2 × 6 + 3 × 1 = 15")
    expect(labs_page.locator(":focus")).to_have_attribute("data-key", "2, 3")


def test_jupyterlab_takes_no_key_that_is_typed_into_the_picture(labs_page, stride):
    cells = labs_page.locator(".jp-Cell").count()
    stride.locator("[data-key='0, 0']").click()
    for key in ["d", "d", "b", "a", "x", "0", "0", "Space", "Enter"]:
        labs_page.keyboard.press(key)
    pointed_at(stride, "0, 0", "0 + 0 × 6 + 0 × 1 = 0")
    labs_page.keyboard.press("ArrowRight")
    pointed_at(stride, "0, 1", "0 + 0 × 6 + 1 × 1 = 1")  # so the keys before it have been heard
    assert labs_page.locator(".jp-Cell").count() == cells
    expect(labs_page.locator(".jp-Dialog")).to_have_count(0)


def test_the_tab_key_reaches_one_element_of_the_grid(labs_page, stride):
    stride.get_by_role("button", name="undo").focus()
    labs_page.keyboard.press("Tab")
    expect(labs_page.locator(":focus")).to_have_attribute("data-row", re.compile(r"\(\) \d"))
    labs_page.keyboard.press("Tab")
    expect(labs_page.locator(":focus")).to_have_text("All numbers")
    assert stride.locator("[data-key][tabindex='0']").count() == 1


# The einsum lab.


def sliders(lab: Locator) -> list[str]:
    """The names of the size sliders that can be seen, as a screen reader would say them."""
    return [handle.get_attribute("aria-label") for handle in lab.locator(".noUi-handle:visible").all()]


def typed_size(lab: Locator, name: str) -> Locator:
    return lab.get_by_title(f"{name}, typed", exact=True).filter(visible=True)


def test_dragging_a_size_changes_the_flops_while_the_mouse_moves(labs_page, einsum):
    handle = einsum.get_by_role("slider", name="d", exact=True)
    box = handle.bounding_box()
    labs_page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    labs_page.mouse.down()
    labs_page.mouse.move(box["x"] + 40, box["y"] + box["height"] / 2, steps=6)
    expect(einsum.locator(".course-picture")).not_to_contain_text("= 1,024 FLOPs")  # the button is still down
    labs_page.mouse.up()
    picture = einsum.locator(".course-picture")

    def settled() -> bool:  # the last of the movements may still be on its way
        size = int(typed_size(einsum, "d").input_value())
        return size > 16 and f"2 × 16 × {size} × 4 = {2 * 16 * size * 4:,} FLOPs" in picture.text_content()

    wait_until(settled, "field and picture agree on a larger size")


def test_a_size_can_be_moved_by_the_keyboard_and_typed(labs_page, einsum):
    einsum.get_by_role("slider", name="k", exact=True).focus()
    for _ in range(4):  # a quarter of a power each
        labs_page.keyboard.press("ArrowRight")
    expect(typed_size(einsum, "k")).to_have_value("8")
    expect(einsum.locator(".course-picture")).to_contain_text("2 × 16 × 8 × 8 = 2,048 FLOPs")
    typed_size(einsum, "b").fill("2^10")
    expect(einsum.locator(".course-picture")).to_contain_text("2 × 1024 × 8 × 8 = 131,072 FLOPs")


def test_new_names_rename_the_sliders_for_screen_readers_too(einsum):
    assert sliders(einsum) == ["b", "d", "k"]
    field(einsum, "einsum").fill("batch query d, batch key d -> batch query key")
    expect(einsum.locator(".course-picture")).to_contain_text("for query in range(4):")
    expect(einsum.locator(".noUi-handle:visible")).to_have_count(4)
    assert sliders(einsum) == ["batch", "query", "d", "key"]
    for name in sliders(einsum):
        expect(typed_size(einsum, name)).to_have_value("8" if name == "d" else "4")
    field(einsum, "einsum").fill("d -> ")
    expect(einsum.locator(".noUi-handle:visible")).to_have_count(1)
    assert sliders(einsum) == ["d"]
