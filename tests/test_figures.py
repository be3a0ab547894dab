"""Figures draw the data they are given, and are closed, so that a notebook shows them once."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from course_utils import figures, floats

ROOFLINE = figures.roofline({"a": (9.0, 3.0)}, {}, {"b": (1.0, 2.0)}, "A title that says what to see")
SHARES = figures.attention_shares([256, 512], {"H": [0.1, 0.2]}, {"H": [(256, 0.1)]})


def drawn_lines(figure: Figure) -> list[np.ndarray]:
    return [line.get_xydata() for line in figure.axes[0].get_lines()]


def test_reach_and_step_ends_each_line_at_the_formats_largest_number():
    figure = figures.reach_and_step(floats.FORMATS)
    ends = {(line[-1][0], line[-1][1]) for line in drawn_lines(figure)}
    assert {(f.max, f.epsilon) for f in floats.FORMATS.values()} <= ends
    assert plt.get_fignums() == []


def test_running_sums_draws_prediction_and_measurement():
    figure = figures.running_sums({"bf16": [1, 256, 512]}, {"bf16": [1.0, 256.0, 256.0]}, {"bf16": 256.0})
    ceiling, measured, _ = drawn_lines(figure)
    assert set(ceiling[:, 1]) == {256}
    assert measured.tolist() == [[1, 1], [256, 256], [512, 256]]
    assert plt.get_fignums() == []


def test_the_roofline_rises_to_its_ridge_and_stays_at_the_peak():
    figure = figures.roofline(
        {"a core": (100.0, 25.0)}, {"cloud": [(1.0, 20.0)]}, {"product": (8.0, 90.0)}, "t"
    )
    roof, cloud, product = drawn_lines(figure)
    assert roof[1].tolist() == [4, 100]
    assert roof[0][1] == 25 * roof[0][0]
    assert roof[2][1] == 100
    assert cloud.tolist() == [[1, 20]]
    assert product.tolist() == [[8, 90]]


def test_timing_samples_draws_every_sample_its_best_and_its_mean():
    samples, best, mean = drawn_lines(figures.timing_samples([2e-6, 1e-6, 6e-6]))
    assert samples[:, 1].tolist() == [2, 1, 6]
    assert (best[0][1], mean[0][1]) == (1, 3)


def test_every_figure_names_its_axes_and_says_its_message():
    for figure in (
        figures.reach_and_step(floats.FORMATS),
        figures.running_sums({}, {}, {}),
        ROOFLINE,
        SHARES,
    ):
        axes = figure.axes[0]
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert len(axes.get_title(loc="left").split()) > 4
