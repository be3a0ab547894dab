"""The einsum lab as a reader meets it: typed into, dragged, timed, given nonsense."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.helpers import browser
from tests.helpers.waiting import wait_until

browser.skip_without_browser()


@pytest.fixture
def einsum(labs_page: Page) -> Locator:
    """The einsum lab with a matrix product of 16 by 8 and 8 by 4."""
    lab = browser.lab_of(labs_page, "einsum")
    lab.get_by_role("button", name="what is A times B?", exact=True).click()
    expect(lab.locator(".course-picture")).to_contain_text("2 × 16 × 8 × 4 = 1,024 FLOPs")
    return lab


def field(lab: Locator, name: str) -> Locator:
    return lab.get_by_role("textbox", name=name, exact=True)


def sliders(lab: Locator) -> list[str]:
    """The names of the size sliders that can be seen, as a screen reader would say them."""
    # All names at once: a slider may be hidden between two questions.
    read = 'handles => handles.map((handle) => handle.getAttribute("aria-label"))'
    return lab.locator(".noUi-handle:visible").evaluate_all(read)


def typed_size(lab: Locator, name: str) -> Locator:
    return lab.get_by_title(f"{name}, typed", exact=True).filter(visible=True)


def test_dragging_a_size_changes_the_flops_while_the_mouse_moves(labs_page, einsum):
    handle = einsum.get_by_role("slider", name="d", exact=True)
    box = handle.bounding_box()
    x = box["x"] + box["width"] / 2
    y = box["y"] + box["height"] / 2
    picture = einsum.locator(".course-picture")
    labs_page.mouse.move(x, y)
    labs_page.mouse.down()
    labs_page.mouse.move(box["x"] + 40, y, steps=6)
    # The mouse button is still down.
    expect(picture).not_to_contain_text("= 1,024 FLOPs")
    labs_page.mouse.up()

    def field_and_picture_agree() -> bool:
        size = int(typed_size(einsum, "d").input_value())
        flops = 2 * 16 * size * 4
        expected = f"2 × 16 × {size} × 4 = {flops:,} FLOPs"
        return size > 16 and expected in picture.text_content()

    # The last of the movements may still be on its way.
    wait_until(field_and_picture_agree, "field and picture agree on a larger size")


def test_a_size_can_be_moved_by_the_keyboard_and_typed(labs_page, einsum):
    einsum.get_by_role("slider", name="k", exact=True).focus()
    for _ in range(4):  # a quarter of a power each
        labs_page.keyboard.press("ArrowRight")
    expect(typed_size(einsum, "k")).to_have_value("8")
    expect(einsum.locator(".course-picture")).to_contain_text("2 × 16 × 8 × 8 = 2,048 FLOPs")
    typed_size(einsum, "b").fill("2^10")
    expect(einsum.locator(".course-picture")).to_contain_text("2 × 1024 × 8 × 8 = 131,072 FLOPs")


def test_what_a_job_reports_comes_into_the_window_below_the_picture(einsum):
    picture = einsum.locator(".course-picture")
    picture.evaluate("(picture) => picture.scrollIntoView({ block: 'end' })")
    report = einsum.locator(".course-report")
    expect(report).not_to_be_in_viewport()
    einsum.get_by_role("button", name="Time it", exact=True).evaluate("(button) => button.click()")
    expect(report).to_contain_text("Measured: (A B)")
    expect(report).to_be_in_viewport(ratio=1)
    expect(picture).to_be_in_viewport(ratio=1)


def test_new_names_rename_the_sliders_for_screen_readers_too(einsum):
    assert sliders(einsum) == ["b", "d", "k"]
    field(einsum, "einsum").fill("batch query d, batch key d -> batch query key")
    expect(einsum.locator(".course-picture")).to_contain_text("for query in range(4):")
    # Sliders are shown, hidden and renamed in messages of their own.
    new_names = ["batch", "query", "d", "key"]
    wait_until(lambda: sliders(einsum) == new_names, "the sliders have their new names")
    for name in sliders(einsum):
        expect(typed_size(einsum, name)).to_have_value("8" if name == "d" else "4")
    field(einsum, "einsum").fill("d -> ")
    # A slider is hidden and renamed in two messages.
    wait_until(lambda: sliders(einsum) == ["d"], "the one slider left is named d")
