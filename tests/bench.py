"""Everything that is a time, measured in one run and set beside a baseline. Called by `make bench`.

Slider to picture, in a real browser: how long after a key press on the slider the new picture is
there to be painted, and how far the picture is behind when a fast drag ends. The baseline is the
usual way, `interact` with `plt.show()`, on the same page.
"""

import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import nbformat
from playwright.sync_api import Locator, Page

from course_utils.quantities import seconds_text
from tests import browser
from tests.bench_timing import timing_methods
from tests.outputs import normalise

BASELINE = """
import matplotlib.pyplot as plt
import numpy as np
from ipywidgets import IntSlider, interact

def plot(k):
    x = np.linspace(0, 10, 200)
    plt.plot(x, np.sin(x * 2.0 ** (k / 20)))
    plt.show()

_ = interact(plot, k=IntSlider(0, -170, 140))
"""
LAB = """
from course_utils import labs

labs.float_lab()
"""
# A new picture is whatever changes below the controls; it counts once the page may paint it.
WATCH = """(place) => {
  window.seen = { keys: [], pictures: [], moves: [] };
  const stamp = (name) => () => window.seen[name].push(performance.now());
  document.addEventListener("keydown", stamp("keys"), true);
  document.addEventListener("pointermove", stamp("moves"), true);
  const isPicture = (node) => node.nodeName === "svg" || node.nodeName === "IMG" || node.querySelector?.("img, svg");
  window.watching = new MutationObserver((changes) => {
    if (changes.some((change) => [...change.addedNodes].some(isPicture))) requestAnimationFrame(stamp("pictures"));
  });
  window.watching.observe(place, { childList: true, subtree: true });
}"""


@dataclass(frozen=True)
class Latency:
    """What one lab took: seconds from key to picture, and what a fast drag of 40 moves gave."""

    key_to_picture: list[float]
    drag_pictures: int
    drag_behind: float


def latency(page: Page, place: Locator, handle: Locator) -> Latency:
    """Forty key presses one by one, then one drag of 1.1 s."""
    place.evaluate(WATCH)
    handle.focus()
    waits = []
    for _ in range(40):
        count = page.evaluate("window.seen.pictures.length")
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"window.seen.pictures.length > {count}")
        page.wait_for_timeout(150)
        seen = page.evaluate("window.seen")
        waits.append((seen["pictures"][count] - seen["keys"][-1]) / 1000)
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    count = page.evaluate("window.seen.pictures.length")
    for step in range(40):
        page.mouse.move(x - 1.5 * (step + 1), y)
        page.wait_for_timeout(1100 / 40)
    page.mouse.up()
    page.wait_for_timeout(1500)
    seen = page.evaluate("window.seen")
    page.evaluate("window.watching.disconnect()")
    return Latency(waits, len(seen["pictures"]) - count, (seen["pictures"][-1] - seen["moves"][-1]) / 1000)


def slider_to_picture() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.ipynb"
        cells = [nbformat.v4.new_code_cell(source.strip()) for source in (BASELINE, LAB)]
        notebook = nbformat.v4.new_notebook(cells=cells)
        normalise(notebook)
        nbformat.write(notebook, path)
        with browser.opened(path, height=1600) as page:
            browser.run_all(page, path)
            page.wait_for_timeout(1000)
            usual = page.locator(".widget-interact")
            lab = page.locator(".course-lab")
            rows = {
                "interact + plt.show()": latency(page, usual, usual.locator(".noUi-handle")),
                "float lab": latency(page, lab.locator(".course-picture"), lab.locator(".noUi-handle")),
            }
    print("slider to picture        median   worst of 40   pictures in a drag of 40   behind when it ends")
    for name, row in rows.items():
        median, worst = statistics.median(row.key_to_picture), max(row.key_to_picture)
        print(
            f"{name:<22} {seconds_text(median):>8} {seconds_text(worst):>13} "
            f"{row.drag_pictures:>26} {seconds_text(row.drag_behind):>21}"
        )
    usual, ours = (statistics.median(row.key_to_picture) for row in rows.values())
    print(f"The float lab's picture comes {usual / ours:.1f} times as soon.")


if __name__ == "__main__":
    if browser.browser_path() is None:
        sys.exit(f"No browser found to measure in; looked for {', '.join(browser.BROWSERS)}.")
    slider_to_picture()
    timing_methods()
