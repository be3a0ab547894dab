"""Everything that is a time, measured in one run and set beside a baseline. Called by `make bench`.

Slider to picture, in a real browser, as `make latency` measures it for every lab. The baseline is the
usual way, `interact` with `plt.show()`, on the same page.
"""

import sys
import tempfile
from pathlib import Path

import nbformat

from tests import bench_gpu, browser
from tests.bench_timing import timing_methods
from tests.latency import HEAD, Slider, latency, row, targets_of
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
            places = {
                "interact": (usual, [Slider(usual.locator(".noUi-handle"))]),
                "float lab": (lab.locator(".course-picture"), targets_of(lab)),
            }
            rows = {name: latency(*place) for name, place in places.items()}
    print(HEAD)
    for name, one in rows.items():
        print(row(name, one))
    usual, ours = (one.median_s for one in rows.values())
    print(f"The float lab's picture comes {usual / ours:.1f} times as soon.")


if __name__ == "__main__":
    if browser.browser_path() is None:
        sys.exit(f"No browser found to measure in; looked for {', '.join(browser.BROWSERS)}.")
    slider_to_picture()
    timing_methods()
    bench_gpu.report()
