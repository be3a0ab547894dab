"""The pages on which questions come back, in a browser and by keyboard alone."""

from datetime import date, timedelta

from playwright.sync_api import expect

from course_utils.core import record
from course_utils.stage.recall import lines
from tests.helpers.browser import EXPOSED, served, skip_without_browser
from tests.helpers.workspace import course_with_a_short_notebook
from tests.stage.test_browser_access import faults

skip_without_browser()

WIDTHS_PX = (1366, 1024, 390)
CHECKS = ("floats.tensor_bytes", "tensors.steps_that_fit", "checkpointing.best_segment")
IS_TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


def assert_everybody_can_use_it(page):
    """In both themes and at each width, axe finds nothing and nothing is cut off."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in WIDTHS_PX:
            page.set_viewport_size({"width": width, "height": 800})
            assert not page.evaluate(IS_TOO_WIDE)
        assert faults(page, "html") == []


def test_three_are_answered_by_keyboard_and_a_napkin_follows(tmp_path, chromium):
    course_with_a_short_notebook(tmp_path)
    mine = tmp_path / "my_notebooks"
    mine.mkdir()
    a_year_ago = (date.today() - timedelta(365)).isoformat()
    (mine / record.RECORD).write_text("".join(f"{a_year_ago} {check} tried\n" for check in CHECKS))
    make_lab = ["-m", "course_utils.stage.workspace", "--ip=127.0.0.1", EXPOSED]
    with served(make_lab, tmp_path, cwd=tmp_path, PYTHONPATH=str(tmp_path)) as (address, token):
        page = chromium.new_context().new_page()
        page.goto(f"{address}/contents?token={token}")
        page.get_by_role("link", name="Three to recall, two minutes").press("Enter")
        field = page.get_by_role("textbox")
        expect(field).to_be_focused()
        expect(page.locator("main")).to_contain_text("1 of 3")

        page.keyboard.type("some")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("'some' is not a number here.")
        assert_everybody_can_use_it(page)

        field.fill("1e12")
        page.keyboard.press("Enter")
        expect(page.locator(".reply")).to_have_count(1)
        expect(field).to_be_focused()
        for answered in (2, 3):
            page.keyboard.press("Tab")
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")  # on "I don't know"
            expect(page.locator(".reply")).to_have_count(answered)
        expect(page.get_by_role("status")).to_contain_text("That is all for today.")
        links = page.locator(".reply a").evaluate_all("(all) => all.map((one) => one.href)")
        assert f"{address}/lab/tree/my_notebooks/02_tensors.ipynb#cell-id=c90a2e201" in links
        assert_everybody_can_use_it(page)
        assert [one.is_right for one in lines.recalled(mine)] == [False] * 3

        page.get_by_role("link", name="The napkin").press("Enter")
        expect(page.get_by_role("textbox")).to_have_count(10)
        assert_everybody_can_use_it(page)
        page.get_by_role("button", name="Show what was right").press("Enter")
        expect(page.get_by_role("status")).to_contain_text("0 of 10 right.")
        assert_everybody_can_use_it(page)
