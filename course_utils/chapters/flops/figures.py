"""The figures of notebook 4."""

from collections.abc import Iterator, Mapping, Sequence

from matplotlib.figure import Figure

from course_utils.core.say import Number
from course_utils.engine.figures.style import COLOURS, axes_with, label

# How sure a number is: told apart without colours, from a pattern and an edge that fade with what is known.
CERTAINTY = {
    "exact": {"facecolor": "#1a1a1a"},
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
    """Days of a run by part, each bar from where the last one ends; how sure it is; and what is unexplained.

    A bar is drawn as in `most`, where all estimates are at their longest, which leaves the least for
    the unknown ones; beside it stands the range from `least`.
    """
    parts, shortest = (
        {**one, "unexplained": reported - sum(one.values())} for one in (most, least)
    )
    sure, ink = [*certainty, "unknown"], "#1a1a1a"
    unknown = [
        sum(days for days, how in zip(one.values(), sure, strict=True) if how == "unknown")
        for one in (parts, shortest)
    ]
    title = f"{_range(*unknown)} of {reported:.0f} days have no explanation"
    with axes_with(title, "days", "the parts, from top to bottom", height=5.6) as axes:
        done = 0
        for row, (part, days) in enumerate(parts.items()):
            axes.barh(
                row, days, left=done, height=0.7, edgecolor=ink, zorder=2, **CERTAINTY[sure[row]]
            )
            words = f"{_range(shortest[part], days)} days, {sure[row]}"
            late = done > reported / 2
            offset, ha = ((-8, -5), "right") if late else ((8, -5), "left")
            label(axes, words, done if late else done + days, row, ink, offset, ha)
            guess = guesses.get(part) if isinstance(guesses, Mapping) else None
            if isinstance(guess, int | float):
                axes.plot(done + guess, row + 0.47, "^", color=ink, markersize=9)
            done += days
        if len(axes.lines):
            label(axes, "▲ your guesses", 0, len(parts) - 1, ink, (4, -5))
        axes.axvline(reported, color=ink, linestyle=":", zorder=1)
        label(axes, f"reported: {reported:.0f}", reported, -0.75, ink, (-6, -5), ha="right")
        axes.set(xlim=(0, 1.04 * reported), ylim=(len(parts) - 0.4, -1.2))
        axes.set_yticks(range(len(parts)), parts)
        axes.grid(visible=False, axis="y")
    return axes.figure


def _range(one: Number, other: Number) -> str:
    """Both in whole numbers, the smaller first, or one of them if they are the same."""
    ends = [f"{n:.0f}".replace("-", "−") for n in sorted((one, other))]
    return " to ".join(dict.fromkeys(ends))


def product_boxes(sizes: Mapping[str, tuple[int, int, int]], title: str) -> Figure:
    """Each product (B, D) @ (D, K) as a box of B × D × K cubes, whose faces are its two operands and its result."""
    with axes_with(title, "K to the right, D into the depth", "B, downwards") as axes:
        left = 0.0
        for name, (b, d, k) in sizes.items():
            for corners, word, colour in _faces(b, d, k, left):
                for square in corners:
                    axes.fill(
                        *zip(*square, strict=True),
                        facecolor=colour,
                        edgecolor=COLOURS["limit"],
                        lw=1,
                    )
                xs, ys = zip(*(corner for square in corners for corner in square), strict=True)
                behind = {"facecolor": colour, "edgecolor": "none", "pad": 2}
                place = {
                    "ha": "center",
                    "va": "center",
                    "weight": "bold",
                    "fontsize": 17,
                    "bbox": behind,
                }
                axes.text((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2, word, **place)
            size = f"{name}{b} × {d} times {d} × {k}"
            axes.text(left + k / 2, -b - 0.35, size, ha="center", va="top", weight="bold")
            left += k + _SLANT[0] * d + 2.5
        axes.set(aspect="equal", anchor="W", xticks=[], yticks=[])
        axes.set_ylim(-1.5 - max(b for b, *_ in sizes.values()), None)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    return axes.figure


_SLANT = (0.55, 0.35)  # one step into the depth, to the right and upwards
Corner = tuple[Number, Number]


def _faces(b: int, d: int, k: int, left: Number) -> Iterator[tuple[list[list[Corner]], str, str]]:
    """The three visible faces of a box: the squares, the name and the colour of each."""

    def corner(row: int, depth: int, column: int) -> Corner:
        return left + column + _SLANT[0] * depth, _SLANT[1] * depth - row

    def square(*corners: tuple[int, int, int]) -> list[Corner]:
        return [corner(*one) for one in corners]

    ring = ((0, 0), (0, 1), (1, 1), (1, 0))
    front = [square(*((i + p, 0, j + q) for p, q in ring)) for i in range(b) for j in range(k)]
    top = [square(*((0, i + p, j + q) for p, q in ring)) for i in range(d) for j in range(k)]
    side = [square(*((i + p, j + q, k) for p, q in ring)) for i in range(b) for j in range(d)]
    yield front, "y", "white"
    yield top, "w", COLOURS["parameters"]
    yield side, "x", COLOURS["activations"]
