"""Figures draw the data they are given, and are closed, so that a notebook shows them once."""

import base64
import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from IPython.core.pylabtools import print_figure, retina_figure
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from PIL import Image

from course_utils import figures, floats

TITLE = "A title that says what to see"
REACH = figures.reach_and_step(floats.FORMATS)
SIZES = figures.sizes_over_reach([2.0**-30, 1.5 * 2.0**-30, 2.0**-3], {"fp16": floats.FORMATS["fp16"]})
HEADS = figures.split_into_heads(
    [[0, 1, 2, 3], [10, 11, 12, 13]],
    {"right": [[[0, 1], [10, 11]], [[2, 3], [12, 13]]], "wrong": [[[0, 2], [10, 12]], [[1, 3], [11, 13]]]},
)
FIELDS = figures.bit_fields({"e4m3": "00111000", "e5m2": "00111100"}, floats.FORMATS)
AROUND = figures.numbers_around({"bf16": [255, 256, 258], "fp16": [255, 255.5, 256]}, 256, 1)
GRIDS = figures.strip_and_grids([10, 11, 12, 13], {"t": [[10, 12], [11, 13]], "row": [[10, 11]]})
WALKS = figures.walks({"even": [0, 2, 4], "back": [0, 3, 1]})
ROOFLINE = figures.roofline(
    {"one core of Intel(R) Xeon(R) Processor with AVX-512, bf16, fp16, fp32": (100.0, 25.0)},
    {"cloud": [(1.0, 20.0)]},
    {"product": (8.0, 90.0)},
    TITLE,
)
TIMES = figures.timing_samples([2e-6, 1e-6, 6e-6])
SHARES = figures.attention_shares([256, 512], {"H": [0.1, 0.2]}, {"H": [(256, 0.1)]})
WAYS = {"SGD": [(-1, 1), (-0.5, -1)], "AdamW": [(-1, 1), (0, 0)]}
RAVINE = figures.ravine(WAYS, [[(-1, 0), (1, 0)]], TITLE)
BY_RATE = figures.loss_over_rate([0.01, 0.1, 1], {"SGD": [1.0, 0.1, 90.0], "AdamW": [9.0, 1e-30, 5.0]}, TITLE)
BILLS = figures.optimizer_bills(
    {"SGD": {"parameters": 4, "gradients": 4}, "AdamW": {"parameters": 4, "optimizer": 8}},
    {"SGD": "80 billion", "AdamW": "40 billion"},
)
MIXES = figures.losses_by_mix({"fp32": [3.0, 0.1], "bf16": [3.0, 0.1], "fp16": [3.0, 1.0]})
CLIMBING = figures.weights_by_step([1.0] * 3, [1.0, 1.0, 1.5], [1.0, 1.25, 1.5])
FOUND = figures.scales_by_step([8.0, 4.0], [8.0, 4.0], limits=[5.0, 5.0])
WASTED = figures.wasted_shares([60.0, 600.0], [0.5, 0.2], {60: 0.51, 600: 0.19}, best_s=1160)
OVER_A_STEP = figures.kept_over_a_step({"all": (2, [0, 10, 30, 5]), "s = 1": (1, [0, 10, 20, 10])})
BOXES = figures.product_boxes({"": (4, 8, 5), "flat: ": (1, 2, 3)}, "Every small cube is one multiply-add")
CHAIN = figures.gradient_chain({"x": (8, 4), "h1": (8, 2)}, {"w1": (4, 2)})
WITHOUT = figures.gradient_chain({"x": (8, 4), "h1": (8, 2)}, {"w1": (4, 2)}, missing=["x.grad"])
PARTS = figures.kept_by_part("A layer", {"norm": 1.0, "attention": 19, "gate": 2.375})
WATERFALL = figures.waterfall(
    {"at the peak": 10, "sending": 0},
    {"at the peak": 10, "sending": 30},
    ["exact", "assumed"],
    100,
    {"sending": 20, "at the peak": ...},
)
ALL = {name: figure for name, figure in globals().items() if isinstance(figure, Figure)}


def drawn_lines(figure: Figure) -> list[np.ndarray]:
    return [line.get_xydata() for line in figure.axes[0].get_lines()]


def written(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.parametrize("name", ALL)
def test_every_figure_is_closed_names_its_axes_and_says_its_message(name):
    axes = ALL[name].axes[0]
    assert plt.get_fignums() == []
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert len(axes.get_title(loc="left").split()) > 4


@pytest.mark.parametrize("name", ALL)
def test_nothing_of_a_figure_lies_beyond_its_frame(name):
    width, height = ALL[name].get_size_inches()
    print_figure(ALL[name], "png")
    drawn = ALL[name].get_tightbbox()
    assert min(drawn.x0, drawn.y0, width - drawn.x1, height - drawn.y1) > 0


@pytest.mark.parametrize(
    ("figure", "expected"),
    [  # of each line, its points
        (WALKS, [[[0, 0], [1, 2], [2, 4]], [[0, 0], [1, 3], [2, 1]]]),
        (ROOFLINE, [[[0.125, 3.125], [4, 100], [48, 100]], [[1, 20]], [[8, 90]]]),
        (TIMES, [[[0, 2], [1, 1], [2, 6]], None, None]),
        (SHARES, [None, [[256, 0.1], [512, 0.2]], [[256, 0.1]]]),
        (RAVINE, [[[-1, 0], [1, 0]], [[-1, 1], [0, 0]], [[-1, 1], [-0.5, -1]], [[0, 0]]]),
        (
            BY_RATE,
            [
                [[0.01, 1], [0.1, 0.1], [1, 90]],
                [[0.1, 0.1]],
                [[0.01, 9], [0.1, 1e-9], [1, 5]],
                [[0.1, 1e-9]],
            ],
        ),
        (MIXES, [[[0, 3], [1, end]] for end in (1, 0.1, 0.1)]),
        (CLIMBING, [[[0, 1], [1, end], [2, 1.5]] for end in (1.25, 1)] + [[[0, 1], [1, 1], [2, 1]]]),
        (FOUND, [[[0, 5], [1, 5]], *[[[0, 8], [1, 4]]] * 2]),
        (WASTED, [[[60, 0.5], [600, 0.2]], [[60, 0.51], [600, 0.19]], None]),
        (OVER_A_STEP, [None, [[-2, 0], [-1, 10], [0, 30], [1, 5]], [[-1, 0], [0, 10], [1, 20], [2, 10]]]),
    ],
)
def test_a_figure_draws_what_it_is_given(figure, expected):
    lines = [line.tolist() for line in drawn_lines(figure)]
    drawn = [line for line, points in zip(lines, expected, strict=True) if points]
    assert drawn == [points for points in expected if points]


def test_dotted_lines_stand_at_what_they_name():
    assert set(drawn_lines(SHARES)[0][:, 1]) == {1}
    assert [set(line[:, 1]) for line in drawn_lines(TIMES)[1:]] == [{1}, {3}]  # the best, the mean
    assert written(TIMES) == ["best: 1", "mean: 3"]
    assert set(drawn_lines(WASTED)[2][:, 0]) == {1160}
    assert "√(2CM): 19.3 minutes" in written(WASTED)


def test_reach_and_step_ends_each_line_at_the_formats_largest_number():
    ends = {(line[-1][0], line[-1][1]) for line in drawn_lines(REACH)}
    assert {(f.max, f.epsilon) for f in floats.FORMATS.values()} <= ends


def test_sizes_are_counted_by_powers_of_two_below_what_a_format_reaches():
    bars = {bar.get_x(): bar.get_height() for bar in SIZES.axes[0].patches}
    assert bars == {2.0**-30: 2, 2.0**-3: 1}
    assert written(SIZES) == [f"{floats.FORMATS['fp16'].label}: everything up to 2^-25 becomes 0"]


def test_fields_are_as_wide_as_the_format_has_bits_for_them_and_hold_the_bits():
    bars = [bar.get_facecolor() for bar in FIELDS.axes[0].patches]
    assert [bars.count(colour) for colour in dict.fromkeys(bars)] == [2, 4 + 5, 3 + 2]
    zeros, ones, *_ = drawn_lines(FIELDS)
    assert {x for x, _ in zeros} == {0.5, 1.5, 5.5, 6.5, 7.5}
    assert {x for x, _ in ones} == {2.5, 3.5, 4.5}
    words = ["E4M3", "sign", "exponent, 4", "fraction, 3", "E5M2", "sign", "exponent, 5", "fraction, 2"]
    assert written(FIELDS) == words


def test_numbers_around_a_sum_are_those_that_are_there():
    ticks = [line[:, 0].tolist() for line in drawn_lines(AROUND)]
    assert ticks[1::2][:2] == [[255, 256, 258], [255, 255.5, 256]]
    assert ticks[-1] == [257]
    assert AROUND.axes[0].get_title(loc="left") == "1 more is half a step: 256 + 1 falls back to 256"


def test_a_strip_and_its_grids_give_each_number_the_colour_of_its_place():
    boxes = [(*box.get_xy(), box.get_facecolor()) for box in GRIDS.axes[0].patches]
    strip, (t, row) = boxes[:4], (boxes[4:8], boxes[8:])
    assert [(x, y) for x, y, _ in strip] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    colours = [colour for *_, colour in strip]
    assert len(set(colours)) == 4
    assert [colour for *_, colour in t] == [colours[place] for place in (0, 2, 1, 3)]
    assert [colour for *_, colour in row] == colours[:2]
    assert [x for x, *_ in t] == [0, 1, 0, 1]
    assert [y - t[0][1] for _, y, _ in t] == [0, 0, 1, 1]
    assert written(GRIDS)[:5] == ["10", "11", "12", "13", "t"]


def test_a_walks_dots_have_the_colours_of_their_places():
    even, back = (dots.get_array().tolist() for dots in WALKS.axes[0].collections)
    assert (even, back) == ([0, 2, 4], [0, 3, 1])
    assert {dots.get_clim() for dots in WALKS.axes[0].collections} == {(0, 4)}


def test_curves_that_end_together_share_a_label():
    assert written(MIXES) == ["fp16", "fp32\nbf16"]


def test_the_best_of_each_optimizer_is_named_with_its_rate_even_below_what_is_drawn():
    assert written(BY_RATE) == ["SGD: 1e-01 at 0.1", "AdamW: 1e-30 at 0.1"]
    diverged = figures.loss_over_rate([0.1, 1, 10], {"SGD": [0.5, 1e9, float("nan")]}, TITLE)
    assert np.isnan(drawn_lines(diverged)[0][1:, 1]).all()
    assert written(diverged) == ["SGD: 5e-01 at 0.1"]


def test_a_bill_is_stacked_and_says_what_fits_beside_it():
    bars = [(bar.get_x(), bar.get_width()) for bar in BILLS.axes[0].patches]
    assert bars == [(0, 4), (4, 4), (0, 4), (4, 8)]
    assert written(BILLS) == ["80 billion", "parameters", "optimizer", "40 billion"]


def test_a_box_has_a_square_for_each_number_of_both_operands_and_the_result():
    squares = [patch.get_xy() for patch in BOXES.axes[0].patches]
    of_both = [4 * 5, 8 * 5, 4 * 8, 1 * 3, 2 * 3, 1 * 2]
    assert len(squares) == sum(of_both)
    assert len({tuple(map(tuple, corners.round(6))) for corners in squares}) == len(squares)
    assert written(BOXES) == [*"ywx", "4 × 8 times 8 × 5", *"ywx", "flat: 1 × 2 times 2 × 3"]


def test_what_is_kept_over_a_step_is_named_at_its_most_and_turns_where_forward_ends():
    assert written(OVER_A_STEP) == ["forward", "backward", "all: 30 bytes", "s = 1: 20 bytes"]
    assert [text.xy for text in OVER_A_STEP.axes[0].texts[2:]] == [(0, 30), (1, 20)]


def test_in_a_chain_what_a_product_makes_is_coloured_and_what_is_missing_is_dashed():
    def boxes(figure):
        patches = {text.get_text().split()[0]: text.get_bbox_patch() for text in figure.axes[0].texts}
        plain = to_rgba("white")
        coloured = {name for name, box in patches.items() if box.get_facecolor() != plain}
        return coloured, {name for name, box in patches.items() if box.get_linestyle() == "--"}

    assert boxes(CHAIN) == ({"h1", "w1.grad", "x.grad"}, set())
    assert boxes(WITHOUT) == ({"h1", "w1.grad"}, {"x.grad"})
    assert CHAIN.axes[0].get_title(loc="left").endswith("1 on the way there, 2 on the way back")
    assert WITHOUT.axes[0].get_title(loc="left").endswith("1 on the way there, 1 on the way back")
    assert "w1.grad\n4 × 2" in written(CHAIN)
    ways = {(arrow._posA_posB[0], arrow._posA_posB[1]) for arrow in CHAIN.axes[0].patches}
    assert {((0, 2), (2, 2)), ((2, 1), (0, 1)), ((1, 1), (1, 0))} <= ways


def test_what_each_part_keeps_begins_where_the_last_one_ends():
    bars = [(bar.get_x(), bar.get_width()) for bar in PARTS.axes[0].patches]
    assert bars == [(0, 1), (1, 19), (20, 2.375)]
    assert written(PARTS) == ["+ 1", "+ 19", "+ 2.38"]
    assert PARTS.axes[0].get_title(loc="left") == "A layer keeps 22.4 numbers for each one that enters"
    assert [tick.get_text() for tick in PARTS.axes[0].get_yticklabels()] == ["norm", "attention", "gate"]


def test_a_waterfall_ends_at_what_was_reported_and_each_certainty_has_a_look_of_its_own():
    bars = WATERFALL.axes[0].patches
    assert [(bar.get_x(), bar.get_width()) for bar in bars] == [(0, 10), (10, 30), (40, 60)]
    assert written(WATERFALL)[:3] == ["10 days, exact", "0 to 30 days, assumed", "60 days, unknown"]
    guess, reported = drawn_lines(WATERFALL)
    assert (guess[0][0], reported[0][0]) == (30, 100)
    looks = {(bar.get_hatch(), bar.get_linestyle(), sum(bar.get_facecolor()[:3]) > 1.5) for bar in bars}
    assert len(looks) == 3  # whatever a projector makes of their colours


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
    carried = shown_as(MIXES, "png")
    MIXES.savefig(saved := io.BytesIO(), format="png", dpi=55)
    ours = MIXES.canvas
    try:
        (bare := FigureCanvasAgg(MIXES)).draw()
    finally:
        MIXES.set_canvas(ours)
    drawn = Image.fromarray(np.asarray(bare.buffer_rgba())).convert("RGB")
    apart = np.abs(np.subtract(carried.convert("RGB"), drawn, dtype=int))  # in few colours
    assert apart.max() <= 24
    small = Image.open(saved)
    assert (small.width, small.height) == (carried.width // 2, carried.height // 2)
    for picture in (carried, small):
        assert picture.text["Description"] == MIXES.words


def shown_as(figure, fmt):
    """The picture that a notebook gets, by IPython."""
    return Image.open(io.BytesIO(base64.b64decode(print_figure(figure, fmt, base64=True))))


def test_on_a_screen_of_twice_the_pixels_it_is_as_large_and_sharper():
    _, size = retina_figure(MIXES)
    assert (size["width"], size["height"]) == shown_as(MIXES, "png").size
    assert shown_as(MIXES, "retina").size == (2 * size["width"], 2 * size["height"])


def test_words_that_find_no_room_are_shown_all_the_same():
    usual, long = (figures.kept_by_part(layer, {"a": 1}) for layer in ("A layer", "A layer of " * 12))
    assert shown_as(usual, "png").width == round(9.5 * 110)
    assert shown_as(long, "png").width > 1.2 * shown_as(usual, "png").width


def test_each_number_is_in_the_shade_of_the_head_that_gets_it():
    *cells, pale, dark = [(box.get_xy(), to_hex(box.get_facecolor())) for box in HEADS.axes[0].patches]
    shades = [shade for _, shade in cells]
    assert len({pale[1], dark[1]}) == 2
    assert [shade == dark[1] for shade in shades] == [False, False, True, True] * 2 + [False, True] * 4
    assert set(shades) == {pale[1], dark[1]}
    assert [place for place, _ in cells[:5]] == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1)]
    assert written(HEADS) == ["right", "wrong", "head 0", "head 1"]
