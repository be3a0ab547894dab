"""The figures of notebook 4."""

from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from course_utils.chapters.flops.forward import forward_boxes  # noqa: F401  a figure, too
from course_utils.core.say import Guess, Number, three_digits
from course_utils.core.say.guesses import nearest_between
from course_utils.engine.figures.boxes import (
    Box,
    draw_arrow,
    draw_boxes,
    hide_scales,
    keywords_of,
)
from course_utils.engine.figures.filling import refuse_names, refuse_other_than_numbers
from course_utils.engine.figures.style import COLOURS, INK, SMALL, axes_with, label, points

# How a bar looks, by how sure its number is. The less is known, the fainter are its pattern and
# edge, so that bars can be told apart without colours, too.
CERTAINTY = {
    "exact": {"facecolor": INK},
    "recorded": {"facecolor": COLOURS["limit"]},
    "calculated": {"facecolor": "white", "hatch": "////"},
    "assumed": {"facecolor": "white", "hatch": ".."},
    "unknown": {"facecolor": "white", "linestyle": "--"},
}


def waterfall(
    least: Mapping[str, Number],
    most: Mapping[str, Number],
    certainty: Sequence[str],
    reported: Number,
    guesses: object,
) -> Figure:
    """Draw a training run's days by part, each bar from where the one above it ends.

    `least` and `most` have each part's days by the shortest and by the longest estimates. A bar is
    as long as in `most`, so the last one, the unexplained rest, is at its shortest. `certainty` has
    a key of CERTAINTY for each part. Words beside a bar say the range and the certainty. `guesses`
    is as `_guessed_days` takes it: a guess is a narrow bar below the part's, with a word on it.
    """
    by_longest = _with_unexplained(most, reported)  # the longest leave the fewest unexplained
    by_shortest = _with_unexplained(least, reported)
    certainties = [*certainty, "unknown"]
    fewest_unknown = _unknown_days(by_longest, certainties)
    unknown = _range(fewest_unknown, _unknown_days(by_shortest, certainties))
    title = f"{unknown} of {reported:.0f} days have no explanation"
    guessed = _guessed_days(guesses)
    with axes_with(title, "days", "the parts, from top to bottom") as axes:
        begin = 0
        axes.set(xlim=(0, 1.04 * reported), ylim=(len(by_longest) - 0.4, -1.2))  # row 0 at the top
        for row, (part, days) in enumerate(by_longest.items()):
            words = f"{_days(by_shortest[part], days)} days, {certainties[row]}"
            is_late = begin > reported / 2  # then there is more space to the left of the bar
            _bar(axes, row, begin, days, certainties[row])
            label_of_bar = _label_of_bar(axes, row, begin, days, words, to_the_left=is_late)
            if isinstance(guessed.get(part), int | float):  # a part may have no guess yet
                guess = _judged(part, guessed[part], by_shortest[part], days)
                _bar_of_guess(axes, row, begin, guess)
                _label_of_guess(axes, row, begin, guess, label_of_bar)
            begin += days
        axes.axvline(reported, color=INK, linestyle=":", zorder=1)
        label(axes, f"reported: {reported:.0f}", reported, -0.75, INK, (-6, -5), ha="right")
        axes.set_yticks(range(len(by_longest)), by_longest)
        axes.grid(visible=False, axis="y")
    return axes.figure


def _guessed_days(guesses: object) -> Mapping[str, object]:
    """Return the reader's days by part; empty as long as nothing is guessed.

    `guesses` is such a Mapping, or what `ask` has returned, which has the Mapping as `said`. In a
    Mapping that a reader types, `...` stands for a guess to come.
    """
    said = getattr(guesses, "said", guesses)
    return said if isinstance(said, Mapping) else {}


def _judged(part: str, said: Number, one: Number, other: Number) -> Guess:
    """Return the guess, which is spot on between two estimates, or judged by the nearer one."""
    return Guess(part, said, nearest_between(said, one, other), unit="days")


def _with_unexplained(days_by_part: Mapping[str, Number], reported: Number) -> dict[str, Number]:
    """Return the parts, and after them the reported days that they do not explain."""
    explained = sum(days_by_part.values())
    return {**days_by_part, "unexplained": reported - explained}


def _unknown_days(days_by_part: Mapping[str, Number], certainty: Sequence[str]) -> Number:
    """Return the days of all parts whose certainty is "unknown", together."""
    pairs = zip(days_by_part.values(), certainty, strict=True)
    return sum(days for days, how_sure in pairs if how_sure == "unknown")


def _bar(axes: Axes, row: int, begin: Number, days: Number, certainty: str) -> None:
    """Draw a bar from `begin` over that many days, in the look of its certainty."""
    look = CERTAINTY[certainty]
    axes.barh(row, days, left=begin, height=0.6, edgecolor=INK, zorder=2, **look)


def _label_of_bar(
    axes: Axes, row: int, begin: Number, days: Number, words: str, *, to_the_left: bool
) -> Annotation:
    """Write the words at the bar's left end, or at its right end, and return them."""
    if to_the_left:
        return label(axes, words, begin, row, INK, (-8, -5), ha="right")
    return label(axes, words, begin + days, row, INK, (8, -5), ha="left")


def _bar_of_guess(axes: Axes, row: int, begin: Number, guess: Guess) -> None:
    """Draw the reader's days as a narrow bar below the part's own."""
    below = row + 0.4
    axes.barh(below, guess.said, left=begin, height=0.14, color=COLOURS["predicted"], zorder=3)


def _label_of_guess(
    axes: Axes, row: int, begin: Number, guess: Guess, label_of_bar: Annotation
) -> None:
    """Write the reader's guess and how close it is, on the line of `label_of_bar`.

    `label_of_bar` has the words on the part. Above or below a bar there is no space for words.
    """
    words = f"you: {guess.said:g}, {guess.word}"
    colour = COLOURS["predicted"]
    # With `of`, x and y are in units of that label's box: (0, 0) is its left end, (1, 0) its right.
    if label_of_bar.get_ha() == "right":  # the part's words end at the bar, the guess's before them
        label(axes, words, 0, 0, colour, (-14, 0), ha="right", of=label_of_bar)
    elif begin > axes.get_xlim()[1] / 4:  # there is space to the left of the bar
        label(axes, words, begin, row, colour, (-8, -5), ha="right")
    else:
        label(axes, words, 1, 0, colour, (14, 0), of=label_of_bar)


def _days(one: Number, other: Number) -> str:
    """Return both as `_range` does; one exact number, as the text does: 82.5."""
    return three_digits(one) if one == other >= 10 else _range(one, other)


def _range(one: Number, other: Number) -> str:
    """Return both numbers, rounded, the smaller first, as in "3 to 5"; one of them if equal."""
    least = _whole(min(one, other))
    most = _whole(max(one, other))
    if least == most:
        return least
    return f"{least} to {most}"


def _whole(number: Number) -> str:
    """Return the number rounded to a whole one, with a true minus sign if it is below 0."""
    return f"{number:.0f}".replace("-", "−")


def product_boxes(sizes: Mapping[str, tuple[int, int, int]], title: str) -> Figure:
    """Draw each product (B, D) @ (D, K) as a box of B × D × K cubes, one beside the other.

    The visible faces of a box are its two operands and its result. `sizes` has (B, D, K) by the
    words before them, such as "one token: ".
    """
    with axes_with(title, "K to the right, D into the depth", "B, downwards") as axes:
        left = 0.0
        for name, (b, d, k) in sizes.items():
            for squares, letter, colour in _faces(b, d, k, left):
                _face(axes, squares, letter, colour)
            words = f"{name}{b} × {d} times {d} × {k}"
            axes.text(left + k / 2, -b - 0.35, words, ha="center", va="top", weight="bold")
            left += k + RIGHTWARDS * d + 2.5  # with 2.5 of space before the next box
        most_rows = max(b for b, _, _ in sizes.values())
        axes.set(aspect="equal", anchor="W", xticks=[], yticks=[])
        axes.set_ylim(-1.5 - most_rows, None)  # with 1.5 for the words below the boxes
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    return axes.figure


# The unit is the side of a cube: one step into the depth leads so far to the right and upwards.
RIGHTWARDS = 0.55
UPWARDS = 0.35
Corner = tuple[Number, Number]
Square = list[Corner]


def _faces(b: int, d: int, k: int, left: Number) -> Iterator[tuple[list[Square], str, str]]:
    """Yield the three visible faces of a box, each as its squares, its letter and its colour.

    The upper left corner of the front face is at (left, 0), and the rows go downwards from there.
    """

    def corner(row: int, depth: int, column: int) -> Corner:
        """Return where the corner of a cube lies in the drawing."""
        x = left + column + RIGHTWARDS * depth
        y = UPWARDS * depth - row
        return x, y

    front = []
    top = []
    side = []
    for i in range(b):
        for j in range(k):
            front.append([corner(row, 0, column) for row, column in _around(i, j)])
    for i in range(d):
        for j in range(k):
            top.append([corner(0, depth, column) for depth, column in _around(i, j)])
    for i in range(b):
        for j in range(d):
            side.append([corner(row, depth, k) for row, depth in _around(i, j)])
    yield front, "y", "white"
    yield top, "w", COLOURS["parameters"]
    yield side, "x", COLOURS["activations"]


def _around(i: int, j: int) -> list[tuple[int, int]]:
    """Return the corners of the square in row i and column j of a face, in order around it."""
    return [(i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j)]


def _face(axes: Axes, squares: Sequence[Square], letter: str, colour: str) -> None:
    """Fill the squares, and write the letter in the middle of them."""
    xs = []
    ys = []
    for square in squares:
        square_xs = [x for x, _ in square]
        square_ys = [y for _, y in square]
        axes.fill(square_xs, square_ys, facecolor=colour, edgecolor=COLOURS["limit"], lw=1)
        xs += square_xs
        ys += square_ys
    axes.text(
        (min(xs) + max(xs)) / 2,
        (min(ys) + max(ys)) / 2,
        letter,
        ha="center",
        va="center",
        weight="bold",
        fontsize=points(20),
        bbox={"facecolor": colour, "edgecolor": "none", "pad": 2},
    )


# Above, a layer in the order in which a token passes it; below, what comes once. The numbers are
# the left edge, the middle of the height, and the width.
_BOXES = (
    Box("norm", "m.norm_vectors\n× m.width", 1, 47, 16),
    Box("query", "m.width × m.heads · m.head_width", 21, 62.5, 32),
    Box("key", "m.width × m.kv_heads · m.head_width", 21, 52, 32),
    Box("value", "m.width × m.kv_heads · m.head_width", 21, 41.5, 32),
    Box("head norms", "2 × m.head_width", 21, 28.5, 32, "if m.head_norms"),
    Box("out", "m.heads ·\nm.head_width\n× m.width", 56, 47, 14),
    Box("second norm", "m.norm_vectors\n× m.width", 73, 47, 16),
    Box("gate", "m.width\n× m.inner", 92, 57, 12, "if m.gated"),
    Box("up", "m.width\n× m.inner", 92, 36, 12),
    Box("down", "m.inner\n× m.width", 107, 47, 12),
    Box("embedding", "m.vocabulary × m.width", 1, 9, 25),
    Box("positions", "m.context × m.width", 32, 9, 25, "if m.learned_positions"),
    Box("last norm", "m.norm_vectors × m.width", 63, 9, 25),
    Box("output", "m.vocabulary × m.width", 94, 9, 25, "unless m.tied"),
)
# Between the boxes of a layer: where each arrow begins and ends, from left to right.
_ARROWS = ((17, 21), (53, 56), (70, 73), (89, 92), (104, 107))


def layer_boxes(*unnamed: object, **counts: int) -> Figure:
    """Draw the parts of a transformer as boxes: those of a layer, and below them what comes once.

    Each box says its size by the fields of an accountant's `Model`. A box in `counts`, such as
    `last_norm=896`, is filled, and says that it has so many parameters. A name without a
    box is refused, and so is what is no number or has no name.
    """
    refuse_names(keywords_of(_BOXES), unnamed, counts, "last_norm=896")
    refuse_other_than_numbers(counts, "last_norm=896")
    title = "The boxes of a layer come m.layers times, the others once"
    with axes_with(title, "as a token passes", "once, and in each layer", height=430) as axes:
        _frame(axes)
        draw_boxes(axes, _BOXES, counts, COLOURS["parameters"])
        hide_scales(axes, 121, 76)
        for axis in (axes.xaxis, axes.yaxis):  # their names are said, but not drawn
            axis.label.set_visible(False)
    axes.figure.colours = 16  # one fill, and otherwise words and lines
    return axes.figure


def _frame(axes: Axes) -> None:
    """Draw the frame around the layer's boxes, the arrows inside, and words on the biases."""
    corner = (0, 18.5)
    frame = Rectangle(corner, 120, 56, facecolor="none", edgecolor=COLOURS["limit"], lw=1)
    axes.add_patch(frame)
    axes.text(1.5, 71, "m.layers times", weight="bold", va="center")
    biases = "A matrix that m.biases names has a bias, too: one number for each output."
    axes.text(21, 71, biases, va="center", fontsize=SMALL)
    for begin, end in _ARROWS:
        draw_arrow(axes, (begin, 47), (end, 47))
