"""The head of each column as a line, and below it what each head gets."""

from collections.abc import Iterator, Sequence
from operator import eq

from course_utils.chapters.einsum.heads_lab.asked import COLUMNS, HEADS, RIGHT, Split, guesses
from course_utils.core.say import Number
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.lab import View

WIDTH, HEIGHT = 1000, 290
LEFT, COLUMN, TOP, STEP = 76, 76, 44, 36  # of the plot, whose rows are heads
BOTTOM = TOP + STEP * (max(HEADS) - 1)
BOX, COLUMNS_AT, HEADS_AT = 26, BOTTOM + 32, BOTTOM + 106


def view(asked: Split, found: object) -> View:
    """Draw where each column belongs, and the reader's marks. Where it arrives is drawn after *Show*."""
    tracks = [marks.Track((x, BOTTOM), (x, TOP)) for x in map(_x, range(COLUMNS))]
    drawn = [svg.text(0, 18, _title(asked), class_="strong")]
    for head in range(asked.heads):
        drawn += [svg.text(LEFT - 12, _y(head) + 5, f"head {head}", class_="end")]
        drawn += [svg.polyline([(LEFT, _y(head)), (_x(COLUMNS - 0.5), _y(head))], class_="grid")]
    stairs = [
        (_x(c + side), _y(head)) for c, head in enumerate(asked.belongs) for side in (-0.5, 0.5)
    ]
    drawn += [
        svg.polyline(stairs, class_="line dashed"),
        *_row("column", range(COLUMNS), asked, COLUMNS_AT),
    ]
    lines = [marks.drawn("guess", asked, tracks, through=True)]
    if asked.shown:
        sawtooth = [(_x(column), _y(head)) for column, head in enumerate(asked.arrives)]
        lines += [svg.polyline(sawtooth, class_="line measured")]
        lines += [svg.dot(*place, class_="measured") for place in sawtooth]
        order = sorted(range(COLUMNS), key=lambda column: asked.arrives[column])
        drawn += _row("gets", order, asked, HEADS_AT)
        for head in range(asked.heads):
            middle = _x((head + 0.5) * asked.places - 0.5)
            drawn += [svg.text(middle, HEADS_AT - 8, f"head {head}", class_="middle small")]
    return View(svg.picture(WIDTH, HEIGHT, *drawn, *lines), _meaning(asked))


def _x(column: Number) -> Number:
    return LEFT + COLUMN * (column + 0.5)


def _y(head: Number) -> Number:
    return BOTTOM - STEP * head


def _row(name: str, columns: Sequence[int], asked: Split, y: Number) -> Iterator[str]:
    """A box for each column, in the shade of the head that it belongs to."""
    yield svg.text(LEFT - 12, y + 18, name, class_="end faint")
    for place, column in enumerate(columns):
        shade = (svg.SHADES - 1) * asked.belongs[column] // (asked.heads - 1)
        box = svg.rect(_x(place) - COLUMN / 2 + 2, y, COLUMN - 4, BOX)
        words = svg.text(_x(place), y + 18, str(column), class_="middle")
        ink = "on-dark" if shade < svg.SHADES / 2 else "on-light"
        yield svg.element("g", box, words, class_=f"shade-{shade} {ink}")


def _title(asked: Split) -> str:
    belongs = f"Column c belongs to head c // {asked.places}"
    if not asked.shown:
        return f"{belongs} (dashed). To which head does {asked.pattern} send it?"
    arrives = f"c // {asked.places}" if asked.pattern == RIGHT else f"c % {asked.heads}"
    return f"{belongs} (dashed). By {asked.pattern} it goes to head {arrives}"


def _meaning(asked: Split) -> str:
    if not asked.shown:
        return f"{COLUMNS} columns, for {asked.heads} heads. Set a mark for each column, then press Show."
    kept = sum(map(eq, asked.belongs, asked.arrives))
    said = f"By {asked.pattern}, {kept} of {COLUMNS} columns reach the head that they belong to."
    given = guesses(asked)
    right = sum(guess.is_right for guess in given)
    return f"{said} {right} of your {len(given)} marks are right." if given else said
