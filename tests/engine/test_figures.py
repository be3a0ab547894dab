"""Figures draw the data they are given, and are closed, so that a notebook shows them once."""

import base64
import io
import re
import warnings
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from IPython.core.pylabtools import print_figure, retina_figure
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from matplotlib.patches import Rectangle
from PIL import Image

from course_utils.chapters import by_torch, figures
from course_utils.chapters.flops.figures import _BOXES as BOXES_OF_A_LAYER
from course_utils.chapters.gradients.figures import _BOXES as BOXES_OF_TENSORS
from course_utils.chapters.small_models import GPT, LLAMA, QWEN
from course_utils.core import floats
from course_utils.core.accountant import BYTES
from course_utils.core.colours import COLOURS
from course_utils.engine.figures import chinese, letters
from course_utils.engine.figures.boxes import keywords_of
from course_utils.engine.figures.style import CURVES, FORMATS, PNG_WIDTH_PX, axes_with, label
from course_utils.engine.labs.draw.still import still_png
from tests.tools import chinese_font

TITLE = "A title that says what to see"
RANGES = figures.range_and_gap(floats.FORMATS)
SHAPES = figures.shapes_to_scale(
    ["A[i d] · B[d j] = C[i j]", "B[d j]"], {"i": 2, "j": 3, "d": 1}, TITLE
)
MIXES = figures.losses_by_mix(
    {"fp32": [3.0, 0.1], "bf16": [3.0, 0.1], "fp16": [3.0, 1.0]},
    title="One loss is behind the others",
)
CLIMBING = figures.weights_by_step([1.0] * 3, [1.0, 1.0, 1.5], [1.0, 1.25, 1.5])
EVENING_OUT = figures.singular_values({"before": [0.9, 0.1], "after": [1.0, 0.7]})
FOUND = figures.scales_by_step([8.0, 4.0], [8.0, 4.0], limits=[5.0, 5.0])
WASTED = figures.wasted_shares([60.0, 600.0], [0.5, 0.2], {60: 0.51, 600: 0.19}, best_s=1160)
ON_GPU = figures.steps_on_a_gpu(
    {"all kept": [1.0, 5.0, 2.0], "recomputed": [1.0, 3.0]},
    {"all kept": [1.0, 5.5, 2.0], "recomputed": [1.0, 3.0]},
)
BOXES = figures.product_boxes(
    {"": (4, 8, 5), "flat: ": (1, 2, 3)}, "Every small cube is one multiply-add"
)
FIELDS = figures.bit_fields(0b1_0110_101, exponent_bits=4, fraction_bits=3)
LAYER = figures.layer_boxes(query=802_816, last_norm=896)
TENSORS = figures.tensor_boxes(input=768)
LAYER_AT_FIRST = figures.layer_boxes()
MATRICES = figures.layer_matrices(query=("m.width", "m.heads * m.head_width"))
MATRICES_FILLED = figures.layer_matrices(
    key=("m.width", "m.kv_heads * m.head_width"),
    out=("m.heads * m.head_width", "m.width"),
    gate=("m.width", "m.inner"),
)
STAGES = figures.state_by_stage({"optimizer": 1, "gradients": 2, "parameters": 3})
STEP_PARTS = figures.step_parts(inputs="recomputed × hidden")
WATERFALL = figures.waterfall(
    {"at the peak": 10, "sending": 0, "the rest": 45},
    {"at the peak": 10, "sending": 30, "the rest": 15},
    ["exact", "assumed", "unknown"],
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
def test_every_figure_is_as_wide_as_a_labs_picture_and_at_most_450_px_high_on_a_page(name):
    _, metadata = ALL[name]._repr_mimebundle_()
    drawn = shown_as(ALL[name], "png")
    assert drawn.width == PNG_WIDTH_PX
    on_page_px = metadata["image/png"]["width"]
    assert on_page_px == 1000
    assert drawn.height * on_page_px / drawn.width <= 450


@pytest.mark.parametrize("name", ALL)
def test_no_two_curves_of_a_figure_have_the_same_colour_and_each_is_named_in_its_own(name):
    (axes,) = ALL[name].axes
    curves = [line for line in axes.lines if line.get_linestyle() != "None"]
    colours = [line.get_color() for line in curves if len({*line.get_xdata()}) > 1]
    assert len(set(colours)) == len(colours)
    assert set(colours) <= {text.get_color() for text in axes.texts}


def test_curves_of_many_names_have_as_many_colours():
    (axes,) = figures.losses_by_mix(
        {f"mix {n}": [3.0, 1 / n] for n in range(1, 9)}, title="Eight losses"
    ).axes
    assert len({line.get_color() for line in axes.lines}) == 8
    assert set(FORMATS) == set(floats.FORMATS)
    assert set(FORMATS.values()) == set(CURVES)


def full_boxes(figure: Figure) -> int:
    """The boxes of a drawing that are filled with a colour."""
    return sum(patch.get_facecolor() != (0, 0, 0, 0) for patch in figure.axes[0].patches)


def test_of_each_part_a_gpu_holds_one_box_in_each_stage_and_the_others_pieces_are_open():
    assert full_boxes(STAGES) == 3 * 4
    sharded = (
        3 + 2 + 1
    )  # the optimizer in three stages, the gradients in two, the parameters in one
    assert len(STAGES.axes[0].patches) == 3 * 4 + sharded * 7  # of the eight GPUs in the text


def test_of_a_steps_parts_only_the_given_one_says_its_size():
    assert written(STEP_PARTS).count("?") == 3
    assert "recomputed × hidden" in written(STEP_PARTS)
    with pytest.raises(ValueError, match="There is no part 'layers'"):
        figures.step_parts(layers="all")


@pytest.mark.parametrize("name", ALL)
def test_nothing_of_a_figure_lies_beyond_its_frame(name):
    width, height = ALL[name].get_size_inches()
    print_figure(ALL[name], "png")
    drawn = ALL[name].get_tightbbox()
    assert min(drawn.x0, drawn.y0, width - drawn.x1, height - drawn.y1) > 0


@pytest.mark.parametrize(
    ("figure", "expected"),
    [  # the points of each line
        (
            MIXES,
            [
                [[0, 3], [1, 1]],
                [[0, 3], [1, 0.1]],
                [[0, 3], [1, 0.1]],
            ],
        ),
        (
            CLIMBING,
            [
                [[0, 1], [1, 1.25], [2, 1.5]],
                [[0, 1], [1, 1], [2, 1.5]],
                [[0, 1], [1, 1], [2, 1]],
            ],
        ),
        (
            EVENING_OUT,
            [
                [[1, 0.9], [2, 0.1]],
                [[1, 1], [2, 0.7]],
            ],
        ),
        (
            FOUND,
            [
                [[0, 5], [1, 5]],
                [[0, 8], [1, 4]],
                [[0, 8], [1, 4]],
            ],
        ),
        (
            WASTED,
            [
                [[60, 0.5], [600, 0.2]],
                [[60, 0.51], [600, 0.19]],
                None,  # a line that is given no points
            ],
        ),
    ],
)
def test_a_figure_draws_what_it_is_given(figure, expected):
    for line, points in zip(drawn_lines(figure), expected, strict=True):
        assert points is None or line.tolist() == points


def test_a_dotted_line_stands_at_what_it_names():
    assert set(drawn_lines(WASTED)[2][:, 0]) == {1160}
    assert "√(2CM): 19.3 minutes" in written(WASTED)


def test_range_and_gap_ends_each_line_at_the_formats_largest_number():
    ends = [tuple(line[-1]) for line in drawn_lines(RANGES)]
    for fmt in floats.FORMATS.values():
        assert (fmt.max, fmt.epsilon) in ends


def test_each_curve_has_a_colour_and_its_name_in_it_beside_its_end():
    (axes,) = MIXES.axes
    assert written(MIXES) == ["fp16", "fp32", "bf16"]
    colours = [text.get_color() for text in axes.texts]
    assert colours == [line.get_color() for line in axes.lines]
    assert len(set(colours)) == 3
    MIXES.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_bits_are_drawn_in_three_fields_each_with_its_width_and_its_integer_and_no_value():
    colours = [patch.get_facecolor() for patch in FIELDS.axes[0].patches]
    assert colours == [
        to_rgba(COLOURS[field])
        for field, bits in (("sign", 1), ("exponent", 4), ("fraction", 3))
        for _ in range(bits)
    ]
    words = written(FIELDS)
    assert "".join(word for word in words if word in "01") == "10110101"
    assert {"S = 1", "E = 6", "F = 5", "exponent: exponent_bits = 4"} <= set(words)
    value = -(1 + 5 / 8) * 2.0 ** (6 - 7)
    assert not any(f"{abs(value):g}" in word for word in words)


def test_a_layers_boxes_are_filled_where_a_count_is_given_and_another_name_is_refused():
    filled = [patch for patch in LAYER.axes[0].patches if patch.get_facecolor()[:3] != (1, 1, 1)]
    blue = to_rgba(COLOURS["parameters"])
    assert [patch.get_facecolor() for patch in filled].count(blue) == 2
    assert {"query: 802,816", "last norm: 896", "key"} <= set(written(LAYER))
    with pytest.raises(ValueError, match=r"There is no box 'bias'\. There are: norm, query,"):
        figures.layer_boxes(bias=1)


def test_of_a_layers_matrices_one_is_filled_in_and_the_others_are_left_to_the_reader():
    blue = to_rgba(COLOURS["parameters"])
    colours = [patch.get_facecolor() for patch in MATRICES.axes[0].patches]
    assert colours.count(blue) == 1
    words = written(MATRICES)
    assert "m.width × m.heads * m.head_width" in words
    assert [size for size in words if "?" in size] == [
        *["? × ?"] * 2,  # of key and value
        *["?\n× ?"] * 2,  # of out and up
        "?\n× ?\nif m.gated",
        "?\n× ?",
    ]
    assert "m.heads * m.head_width\n× m.width" in written(MATRICES_FILLED)
    with pytest.raises(ValueError, match=r"There is no box 'norm'\. There are: query, key, value,"):
        figures.layer_matrices(norm=("m.width", "m.width"))


@pytest.mark.parametrize("m", [GPT, LLAMA, QWEN])
def test_the_boxes_of_a_layers_tensors_are_those_that_autograd_keeps_and_two_more(m):
    boxes = [box for box in BOXES_OF_TENSORS if eval_of(box.condition.removeprefix("if "), m)]
    not_kept = [box for box in boxes if box.name in ("out", "down")]
    assert [eval_of(box.size, m) for box in not_kept] == [m.width, m.width]
    nbytes = 0
    for box in boxes:
        size, _, in_fp32 = box.size.partition(", in ")
        bytes_each = BYTES[in_fp32 or "bf16"]
        nbytes += 2 * 64 * bytes_each * eval_of(size, m) * (box not in not_kept)
    # Without LayerNorm's statistics, which the term leaves out.
    assert nbytes == pytest.approx(by_torch.layer_bytes(m, 2, 64, "bf16"), rel=0.001)


def eval_of(words, m):
    """The value of an expression with fields of m, as a box has it; of no words, True."""
    return eval(words.replace("·", "*") or "True", {"m": m})


def test_a_tensors_box_is_filled_where_it_has_a_number():
    (filled,) = [
        patch
        for patch in TENSORS.axes[0].patches
        if patch.get_facecolor() == to_rgba(COLOURS["activations"])
    ]
    assert (filled.get_x(), filled.get_width()) == (1, 11)
    assert {"input: 768", "m.width", "row sums", "m.heads, in fp32"} <= set(written(TENSORS))
    with pytest.raises(ValueError, match=r"There is no box 'scores'\. There are: input,"):
        figures.tensor_boxes(scores=1)


def test_a_tensor_that_is_not_kept_looks_otherwise_where_it_is_filled_in():
    filled = figures.tensor_boxes(input=768, out=768, down=768)
    hatched = [patch.get_x() for patch in filled.axes[0].patches if patch.get_hatch()]
    assert hatched == [110, 110]
    assert written(filled).count("m.width\n768\nnot kept") == 2
    assert not [patch for patch in TENSORS.axes[0].patches if patch.get_hatch()]


@pytest.mark.parametrize("count", [768, 61_440, 4_358_144])
@pytest.mark.parametrize(
    ("draw", "boxes"),
    [(figures.layer_boxes, BOXES_OF_A_LAYER), (figures.tensor_boxes, BOXES_OF_TENSORS)],
)
def test_a_count_that_is_filled_in_lies_inside_its_box(draw, boxes, count):
    filled = draw(**dict.fromkeys(keywords_of(boxes), count))
    filled.draw_without_rendering()  # so that everything is laid out as in the notebook
    (axes,) = filled.axes
    drawn = [patch.get_window_extent() for patch in axes.patches if isinstance(patch, Rectangle)]
    counts = [words.get_window_extent() for words in axes.texts if f"{count:,}" in words.get_text()]
    assert len(counts) == len(boxes)
    for words in counts:
        middle = (words.x0 + words.x1) / 2, (words.y0 + words.y1) / 2
        around = [box for box in drawn if box.contains(*middle)]
        smallest = min(around, key=lambda box: box.width)  # not the frame around several boxes
        assert smallest.x0 <= words.x0
        assert words.x1 <= smallest.x1


@pytest.mark.parametrize(
    ("draw", "arguments", "named", "said"),
    [
        (
            figures.tensor_boxes,
            (768,),
            {},
            "named here, as in input=768. Put a name and = before 768.",
        ),
        (figures.tensor_boxes, (), {"input": "gpt2.width"}, "is text: leave out the quotes"),
        (figures.tensor_boxes, (), {"input": None}, "wants a number, as in input=768, and None"),
        (figures.layer_boxes, (1, 2), {}, "as in last_norm=896. Put a name and = before 1."),
        (figures.layer_boxes, (), {"query": "768"}, "query wants a number, as in last_norm=896"),
        (figures.forward_boxes, (9,), {}, "as in output=1024. Put a name and = before 9."),
        (figures.forward_boxes, (), {"output": (1, 2)}, "and (1, 2) is none."),
        (figures.layer_matrices, (("a", "b"),), {}, "Put a name and = before ('a', 'b')."),
        (figures.layer_matrices, (), {"key": "m.width"}, "key wants a pair"),
        (figures.layer_matrices, (), {"key": 768 * 768}, "589824 is none."),
        (figures.layer_matrices, (), {"key": (768, ...)}, "Ellipsis is neither."),
        (figures.step_parts, ("S · H",), {}, "Put a name and = before 'S · H'."),
        (figures.step_parts, (), {"loss": ["a"]}, "loss wants a size as text in quotes"),
        (figures.state_by_stage, ([1, 2, 3],), {}, "[1, 2, 3] is none."),
        (figures.state_by_stage, ({"gradients": "2"},), {}, "gradients wants its first stage"),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence(draw, arguments, named, said):
    with pytest.raises(ValueError, match=re.escape(said)) as refused:
        draw(*arguments, **named)
    assert refused.value._render_traceback_() == [str(refused.value)]


def test_a_matrix_takes_numbers_as_well_as_words():
    assert "768\n× 3,072" in written(figures.layer_matrices(up=(768, 3072)))


@pytest.mark.parametrize("figure", [LAYER, TENSORS, figures.tensor_boxes(out=768, down=768)])
def test_no_words_run_beyond_their_box(figure):
    """Every text whose middle is in a box lies in it as a whole."""
    axes = figure.axes[0]
    figure.canvas.draw()
    frames = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    boxes = [patch.get_window_extent() for patch in frames if patch.get_width() < 60]
    inside = 0
    for text in axes.texts:
        words = text.get_window_extent()
        middle = ((words.x0 + words.x1) / 2, (words.y0 + words.y1) / 2)
        for box in boxes:
            if box.contains(*middle):
                inside += 1
                assert box.x0 <= words.x0 <= words.x1 <= box.x1
    assert inside == 2 * len(boxes)


def test_a_figure_of_few_fills_is_stored_in_few_colours():
    assert len(shown_as(LAYER, "png").convert("RGB").getcolors()) <= 16
    assert len(shown_as(WATERFALL, "png").convert("RGB").getcolors()) > 16


def test_a_box_has_a_square_for_each_number_of_both_operands_and_the_result():
    squares = [patch.get_xy() for patch in BOXES.axes[0].patches]
    of_both_boxes = [4 * 5, 8 * 5, 4 * 8, 1 * 3, 2 * 3, 1 * 2]
    assert len(squares) == sum(of_both_boxes)
    different = {str(corners.round(6)) for corners in squares}
    assert len(different) == len(squares)
    assert written(BOXES) == [*"ywx", "4 × 8 times 8 × 5", *"ywx", "flat: 1 × 2 times 2 × 3"]


def test_a_waterfall_ends_at_what_was_reported_and_each_certainty_has_a_look_of_its_own():
    patches = WATERFALL.axes[0].patches
    bars = [bar for bar in patches if bar.get_height() > 0.5]
    (guessed,) = [bar for bar in patches if bar.get_height() < 0.5]
    assert (guessed.get_x(), guessed.get_width()) == (10, 20)
    assert "you: 20, spot on" in written(WATERFALL)
    extents = [(bar.get_x(), bar.get_width()) for bar in bars]
    assert extents == [(0, 10), (10, 30), (40, 15), (55, 45)]
    words = [one for one in written(WATERFALL) if not one.startswith("you: ")]
    assert words[:4] == [
        "10 days, exact",
        "0 to 30 days, assumed",
        "15 to 45 days, unknown",
        "45 days, unknown",
    ]
    title = WATERFALL.axes[0].get_title(loc="left")
    least_unexplained = 100 - 10 - 30
    most_unexplained = 100 - 10 - 0
    assert title.startswith(f"{least_unexplained} to {most_unexplained} of 100 days")
    (reported,) = drawn_lines(WATERFALL)
    assert reported[0][0] == 100
    looks = set()
    for bar in bars:
        is_light = sum(bar.get_facecolor()[:3]) > 1.5
        looks.add((bar.get_hatch(), bar.get_linestyle(), is_light))
    assert len(looks) == 3  # whatever a projector makes of their colours


def test_in_a_waterfall_no_words_touch_a_bar_or_other_words():
    days = {"at the peak": 82, "below it": 32, "attention": 7, "sending": 28, "pauses": 22}
    guesses = {"at the peak": 30, "below it": 40, "attention": 18, "sending": 60, "pauses": 66}
    figure = figures.waterfall(days, days, ["exact"] * 5, 260, guesses)
    figure.canvas.draw()
    (axes,) = figure.axes
    words = [text.get_window_extent() for text in axes.texts]
    bars = [bar.get_window_extent() for bar in axes.patches]
    assert sum("right power of ten" in one for one in written(figure)) == 4
    for here, box in enumerate(words):
        assert not any(box.overlaps(other) for other in [*words[here + 1 :], *bars])
        assert box.x0 > axes.bbox.x0
        assert box.x1 < axes.bbox.x1


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
    saved = io.BytesIO()
    MIXES.savefig(saved, format="png", dpi=MIXES.dpi / 2)
    ours = MIXES.canvas
    bare = FigureCanvasAgg(MIXES)  # it takes the figure for itself
    try:
        bare.draw()
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
    encoded = print_figure(figure, fmt, base64=True)
    return Image.open(io.BytesIO(base64.b64decode(encoded)))


def test_on_a_screen_of_twice_the_pixels_it_is_as_large_and_sharper():
    _, size = retina_figure(MIXES)
    assert (size["width"], size["height"]) == shown_as(MIXES, "png").size
    assert shown_as(MIXES, "retina").size == (2 * size["width"], 2 * size["height"])


def test_words_that_find_no_room_are_shown_all_the_same():
    long = figures.product_boxes({"": (1, 1, 1)}, "A layer of " * 15)
    assert shown_as(long, "png").width > 1.2 * PNG_WIDTH_PX


def test_shapes_are_as_large_as_their_dimensions_and_named_by_them():
    boxes = SHAPES.axes[0].patches
    sizes = [(box.get_width(), box.get_height()) for box in boxes]
    assert sizes == [(1, 2), (3, 1), (3, 2), (3, 1)]
    assert len({box.get_facecolor() for box in boxes}) == 3
    assert written(SHAPES) == [*"Adi", "·", *"Bjd", "=", *"Cji", *"Bjd"]


def in_chinese() -> Figure:
    """Return a figure whose title, axes, labels and names at an axis are Chinese."""
    letters = "".join(sorted(letters_of_the_font()))
    with axes_with(f"{letters[:8]}：8 GB", letters[8:12], letters[12:16]) as axes:
        axes.plot([1, 2], [3, 4])
        axes.set_yticks([3, 4], [letters[16:20], "B"])
        label(axes, letters[20:24], 1, 3, CURVES[0], (4, 4))
    return axes.figure


def letters_of_the_font() -> set[str]:
    return {chr(code) for code in FT2Font(str(chinese.FONT)).get_charmap()}


def test_a_figure_in_chinese_has_all_its_letters(caplog):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of each letter that no font has
        print_figure(in_chinese(), "png")
    assert not caplog.records  # nor does it look for a font in vain


def test_a_letter_that_the_font_lacks_would_be_noticed():
    with axes_with("\u9f98", "", "") as axes:
        axes.plot([1, 2], [3, 4])
    with pytest.warns(UserWarning, match="missing from font"):
        print_figure(axes.figure, "png")


def test_the_chinese_font_is_not_read_for_a_figure_in_english(monkeypatch):
    monkeypatch.setattr(letters, "_families", lambda: pytest.fail("it is looked for"))
    with axes_with("In plain English", "time", "loss") as axes:
        axes.set_yticks([3, 4], ["A", "B"])
    assert print_figure(axes.figure, "png")


def test_a_still_picture_in_chinese_has_its_letters():
    letter, other = sorted(letters_of_the_font())[10:12]
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 40"><text y="20">{}</text></svg>'
    )
    missing = still_png(drawing.format("\u9f98"))
    assert len({missing, still_png(drawing.format(letter)), still_png(drawing.format(other))}) == 3


def test_the_font_has_each_chinese_letter_of_the_sentences():
    """`python -m tests.tools.chinese_font` makes it again when there is a new one."""
    assert letters_of_the_font() >= set(chinese_font.letters())
    assert chinese.FONT.stat().st_size < 400_000
