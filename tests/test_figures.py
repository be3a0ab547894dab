"""Figures draw the data they are given, and are closed, so that a notebook shows them once."""

import base64
import io

import matplotlib.pyplot as plt
import numpy as np
from IPython.core.pylabtools import print_figure
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from course_utils import figures, floats

ROOFLINE = figures.roofline({"a": (9.0, 3.0)}, {}, {"b": (1.0, 2.0)}, "A title that says what to see")
STRIDED = figures.strided_reads([1, 2, 4], [1, 2, 4], [1, 3, 5])
KEPT = figures.activations_by_length([128, 256], {"explicit": [1e9, 4e9]}, limit=8e10)
SCALES = figures.scale_by_depth({"1 / inputs": [1.0, 0.5]}, {"1 / inputs": [1.1, 0.4]})
STEPS = figures.steps_under_constant_gradient({"SGD": [1.0] * 4}, {"SGD": [1.0, 1.0]}, every=3)
LOSSES = figures.loss_curve([5.0, 4.0, 3.0], even_guess=4.5)
MIXES = figures.losses_by_mix({"fp32": [3.0, 0.1], "bf16": [3.0, 0.1], "fp16": [3.0, 1.0]})
WASTED = figures.wasted_shares([60.0, 600.0], [0.5, 0.2], {60: 0.51, 600: 0.19}, best_s=1160)
FRONTIER = figures.recompute_frontier({0: (1.0, 900), 1: (1.2, 200)}, {0: (1.0, 900), 1: (1.2, 200)})
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
        STRIDED,
        KEPT,
        SCALES,
        STEPS,
        LOSSES,
        MIXES,
        WASTED,
        FRONTIER,
    ):
        axes = figure.axes[0]
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert len(axes.get_title(loc="left").split()) > 4


def test_the_newer_figures_draw_what_they_are_given():
    predicted, measured = drawn_lines(STRIDED)
    assert (predicted[:, 1].tolist(), measured[:, 1].tolist()) == ([1, 2, 4], [1, 3, 5])
    limit, kept = drawn_lines(KEPT)
    assert (set(limit[:, 1]), kept[:, 1].tolist()) == ({8e10}, [1e9, 4e9])
    predicted, measured = drawn_lines(SCALES)
    assert (predicted.tolist(), measured[:, 1].tolist()) == ([[1, 1], [2, 0.5]], [1.1, 0.4])
    predicted, measured = drawn_lines(STEPS)
    assert (len(predicted), measured[:, 0].tolist()) == (4, [1, 4])
    even_guess, losses = drawn_lines(LOSSES)
    assert (set(even_guess[:, 1]), losses[:, 1].tolist()) == ({4.5}, [5, 4, 3])


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_curves_that_end_together_share_a_label():
    assert [line[:, 1].tolist() for line in drawn_lines(MIXES)] == [[3.0, 1.0], [3.0, 0.1], [3.0, 0.1]]
    assert words(MIXES) == ["fp16", "fp32\nbf16"]


def test_lost_time_is_drawn_as_predicted_and_simulated_with_the_best_interval():
    predicted, simulated, best = drawn_lines(WASTED)
    assert predicted.tolist() == [[60, 0.5], [600, 0.2]]
    assert simulated.tolist() == [[60, 0.51], [600, 0.19]]
    assert set(best[:, 0]) == {1160}
    assert "√(2CM): 19.3 minutes" in words(WASTED)


def test_a_figure_says_in_words_what_it_shows_and_what_is_written_in_it():
    data, metadata = WASTED._repr_mimebundle_()
    words = data["text/plain"]
    assert words == metadata["image/png"]["alt"]
    assert words == (
        "Save too often or too rarely, and the run pays; in between there is room. "
        "From left to right: time between two saves. Upwards: share of the time that is lost. "
        "Written in it: √(2CM): 19.3 minutes; predicted; simulated."
    )


def test_its_png_carries_the_words_and_is_otherwise_the_one_that_matplotlib_draws():
    carried = Image.open(io.BytesIO(base64.b64decode(print_figure(MIXES, "png", base64=True))))
    assert carried.text["Description"] == MIXES.words
    bare = FigureCanvasAgg(MIXES)
    bare.draw()
    whole = Image.open(io.BytesIO(print_figure(MIXES, "png", bbox_inches=None)))
    assert np.array_equal(np.asarray(whole), np.asarray(bare.buffer_rgba()))
