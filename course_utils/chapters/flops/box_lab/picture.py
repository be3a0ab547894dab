"""The box with its three visible faces, and beside it their numbers and the count of its cubes."""

from collections.abc import Iterator
from typing import NamedTuple

from course_utils.chapters.flops.box_lab.asked import Sizes
from course_utils.core import predict
from course_utils.core.say import Number, number_text
from course_utils.core.say.language import translated
from course_utils.engine.labs.draw.lettering import labelled_lines
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.svg import element, picture, text
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 340
SIDE = 22  # of a cube
# One step down, to the right, or into the depth of the box, as (x, y). In a picture y grows
# downwards, so a step into the depth goes to the right and up.
DOWN = (0, SIDE)
ACROSS = (SIDE, 0)
INTO = (0.55 * SIDE, -0.35 * SIDE)
# The front face's upper left corner, and where the words beside the box begin.
LEFT = 76
TOP = 88
WORDS_AT = 450
ROW = 32  # from one line of words to the next
LEAST_WITH_A_LETTER = 2  # squares along each side of a face


class Face(NamedTuple):
    """A visible face: its letter, the class of its colour, its first corner, and its squares.

    The face has `rows` × `columns` squares; `down` and `across` lead from one to the next.
    """

    letter: str
    colour: str
    corner: Point
    rows: int
    columns: int
    down: Point
    across: Point

    def at(self, row: Number, column: Number) -> Point:
        """Return the point `row` rows and `column` columns away from the first corner."""
        x, y = self.corner
        x += row * self.down[0] + column * self.across[0]
        y += row * self.down[1] + column * self.across[1]
        return x, y


def view(asked: Sizes) -> View:
    """Draw the box at these sizes, and beside it the FLOPs, by the formula and counted."""
    drawn = []
    for face in _faces(asked):
        drawn += _squares(face)
    drawn += _names_of_sizes(asked)
    drawn += _words(asked)
    return View(picture(WIDTH, HEIGHT, *drawn), _meaning(asked))


def _faces(asked: Sizes) -> Iterator[Face]:
    """Yield the front, the top and the side of the box."""
    corner = (LEFT, TOP)
    right_corner = (LEFT + SIDE * asked.k, TOP)
    # y holds no operand, so its squares have edges and no colour.
    yield Face("y", "axis", corner, asked.b, asked.k, DOWN, ACROSS)
    yield Face("w", "part parameters", corner, asked.d, asked.k, INTO, ACROSS)
    yield Face("x", "part activations", right_corner, asked.b, asked.d, DOWN, INTO)


def _squares(face: Face) -> Iterator[str]:
    """Draw the face, and its letter in the middle if there is room for it."""
    for row in range(face.rows):
        for column in range(face.columns):
            around = ((row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column))
            corners = [face.at(*place) for place in around]
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
            yield element("polygon", points=points, class_=face.colour)
    if min(face.rows, face.columns) >= LEAST_WITH_A_LETTER:
        x, y = face.at(face.rows / 2, face.columns / 2)
        letter = text(x, y + 5, face.letter, class_="middle strong large")
        if face.colour != "axis":  # on a coloured face the letter is always dark
            letter = element("g", letter, class_="on-light")
        yield letter


def _names_of_sizes(asked: Sizes) -> Iterator[str]:
    """Write B, D and K, each beside an edge of the box that is so long."""
    bottom = TOP + SIDE * asked.b
    right = LEFT + SIDE * asked.k
    yield text(LEFT - 10, (TOP + bottom) / 2 + 5, f"B = {asked.b}", class_="end")
    yield text(LEFT, bottom + 20, f"K = {asked.k}")
    # D stands beside the edge that leads from the front's lower right corner into the depth.
    into_x, into_y = INTO
    middle_x = right + into_x * asked.d / 2
    middle_y = bottom + into_y * asked.d / 2
    yield text(middle_x + 12, middle_y + 12, f"D = {asked.d}")


def _words(asked: Sizes) -> Iterator[str]:
    """Write what each face and the cubes stand for, and the FLOPs in two ways."""
    b, d, k = asked.b, asked.d, asked.k
    flops = predict.matmul_flops(b, d, k)
    predicted = f"2BDK = 2 · {b} · {d} · {k} = {number_text(flops)}"
    by_cube = translated("{count}, cube by cube", count=number_text(asked.counted_flops()))
    # Each row is a name, the words behind it, and the class of the words.
    rows = [
        ("x", f"B × D = {b} × {d} = {_numbers(b * d)}", ""),
        ("w", f"D × K = {d} × {k} = {_parameters(d * k)}", ""),
        ("y", f"B × K = {b} × {k} = {_numbers(b * k)}", ""),
        (translated("cubes"), f"B × D × K = {b} × {d} × {k} = {number_text(b * d * k)}", ""),
        (translated("FLOPs, predicted"), predicted, "formula"),
        (translated("FLOPs, counted"), by_cube, "measured-words"),
    ]
    # The words begin at x = 150, behind the names; the first line is at y = 16.
    lines = labelled_lines(rows, 150, 16, WIDTH - WORDS_AT, step=ROW)
    # scale(1) changes nothing. It is there because the tests, which look for words that overlap,
    # expect a scale behind each translation.
    yield element("g", *lines, transform=f"translate({WORDS_AT} 60) scale(1)")


def _numbers(count: int) -> str:
    if count == 1:
        return translated("1 number")
    return translated("{count} numbers", count=number_text(count))


def _parameters(count: int) -> str:
    if count == 1:
        return translated("1 parameter")
    return translated("{count} parameters", count=number_text(count))


def _meaning(asked: Sizes) -> str:
    """Return the text below the picture: the cubes in all, and those of one data point."""
    cubes = number_text(asked.b * asked.d * asked.k)
    in_layer = number_text(asked.d * asked.k)
    if cubes == "1":
        return translated(
            "1 cube, two FLOPs in each. One more data point is another layer of 1 cube, "
            "one for each parameter."
        )
    if in_layer == "1":
        return translated(
            "{cubes} cubes, two FLOPs in each. One more data point is another layer of 1 cube, "
            "one for each parameter.",
            cubes=cubes,
        )
    return translated(
        "{cubes} cubes, two FLOPs in each. One more data point is another layer of {in_layer} "
        "cubes, one for each parameter.",
        cubes=cubes,
        in_layer=in_layer,
    )
