"""Take the README's picture anew: the float lab as it stands in JupyterLab. Called by `make picture`."""

import sys
import tempfile
from pathlib import Path

from tests import ROOT, browser

TARGET = ROOT / "notebooks" / "pictures" / "float_lab.png"


def take() -> None:
    """Run notebook 01 in a browser, bring the lab into a state worth seeing, and photograph it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = browser.without_outputs(
            ROOT / "notebooks" / "01_floats.ipynb", Path(folder) / "01_floats.ipynb"
        )
        with browser.opened(copy, width=1600, height=1200) as page:
            browser.run_all(page, copy)
            lab = page.locator(".course-lab")
            lab.get_by_role("button", name="1e-8?", exact=True).click()
            lab.locator(".course-meaning", has_text="1e-8").wait_for()
            page.mouse.move(0, 0)
            TARGET.parent.mkdir(exist_ok=True)
            lab.screenshot(path=TARGET)


if __name__ == "__main__":
    if browser.browser_path() is None:
        sys.exit(f"No browser found to take it with; looked for {', '.join(browser.BROWSERS)}.")
    take()
