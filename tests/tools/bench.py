"""All benchmarks in one run, each beside a baseline: `make bench`.

The time from slider to picture is measured in a real browser, as `make latency` measures it for
every lab. Its baseline is the usual way, `interact` with `plt.show()`, on the same page.
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
# The first lab, a lab with curves, and the lab that computes most.
LABS = ("float", "optimizer", "plan")


def slider_to_picture() -> None:
    """Print how soon each lab's picture follows its slider, and how many times as soon as usual."""
    with tempfile.TemporaryDirectory() as folder:
        lab_cells = [f"labs.{name}_lab()" for name in LABS]
        sources = [BASELINE.strip(), browser.IMPORT, *lab_cells]
        path = browser.notebook_of(Path(folder) / "bench.ipynb", sources)
        with browser.opened(path, height=1600) as page:
            browser.run_all(page, path)
            usual = page.locator(".widget-interact")
            rows = {"interact": latency(usual, [Slider(usual.locator(".noUi-handle"))])}
            for name in LABS:
                lab = browser.lab_of(page, name)
                rows[f"{name} lab"] = latency(lab.locator(".course-picture"), sliders_of(lab))
    print(HEAD)
    for name, latency_here in rows.items():
        print(row(name, latency_here))
    usual_s = rows.pop("interact").median_s
    for name, latency_here in rows.items():
        times = usual_s / latency_here.median_s
        print(f"The {name}'s picture is in the page {times:.1f} times as soon.")


if __name__ == "__main__":
    if browser.browser_path() is None:
        sys.exit(f"No browser found to measure in; looked for {', '.join(browser.BROWSERS)}.")
    slider_to_picture()
    bench_room.report()
    bench_gpu.report()
