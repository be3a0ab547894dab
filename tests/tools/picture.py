"""Take the README's picture anew: the float lab as it stands in JupyterLab. Called by `make picture`."""

import sys
import tempfile
from pathlib import Path

from tests import ROOT, browser

TARGET = ROOT / "notebooks" / "pictures" / "float_lab.png"


def take() -> None:
    """Bring the lab into a state worth seeing in a browser, and photograph it."""
    with tempfile.TemporaryDirectory() as folder, browser.opened_labs(Path(folder), "float") as page:
        page.set_viewport_size({"width": 1600, "height": 1200})
        lab = browser.lab_of(page, "float")
        browser.press(lab, "1e-8?")
        lab.locator(".course-meaning", has_text="1e-8").wait_for()
        page.mouse.move(0, 0)
        lab.screenshot(path=TARGET)


if __name__ == "__main__":
    if browser.browser_path() is None:
        sys.exit(f"No browser found to take it with; looked for {', '.join(browser.BROWSERS)}.")
    take()
