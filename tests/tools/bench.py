"""Everything that is a time, measured in one run and set beside a baseline. Called by `make bench`.

Slider to picture, in a real browser, as `make latency` measures it for every lab. The baseline is the
usual way, `interact` with `plt.show()`, on the same page.
"""

import sys
import tempfile
from pathlib import Path

from tests.helpers import browser
from tests.tools import bench_gpu, bench_room
from tests.tools.latency import HEAD, Slider, latency, row, sliders_of

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
# Beside the first, one with curves, and the one that computes most.
LABS = ("float", "optimizer", "plan")


def slider_to_picture() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sources = [BASELINE.strip(), browser.IMPORT, *(f"labs.{name}_lab()" for name in LABS)]
        path = browser.notebook_of(Path(folder) / "bench.ipynb", sources)
        with browser.opened(path, height=1600) as page:
            browser.run_all(page, path)
            usual = page.locator(".widget-interact")
            rows = {"interact": latency(usual, [Slider(usual.locator(".noUi-handle"))])}
            for name in LABS:
                lab = browser.lab_of(page, name)
                rows[f"{name} lab"] = latency(lab.locator(".course-picture"), sliders_of(lab))
    print(HEAD)
    for name, one in rows.items():
        print(row(name, one))
    usual_s = rows.pop("interact").median_s
    for name, one in rows.items():
        print(f"The {name}'s picture is in the page {usual_s / one.median_s:.1f} times as soon.")


if __name__ == "__main__":
    if browser.browser_path() is None:
        sys.exit(f"No browser found to measure in; looked for {', '.join(browser.BROWSERS)}.")
    slider_to_picture()
    bench_room.report()
    bench_gpu.report()
