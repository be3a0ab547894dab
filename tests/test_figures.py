"""Figures draw the data they are given, and are closed, so that a notebook shows them once."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from course_utils import figures, floats


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


def test_every_figure_names_its_axes_and_says_its_message():
    for figure in (figures.reach_and_step(floats.FORMATS), figures.running_sums({}, {}, {})):
        axes = figure.axes[0]
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert len(axes.get_title(loc="left").split()) > 4
