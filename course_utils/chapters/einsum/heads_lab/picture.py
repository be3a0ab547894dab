"""The head of each column as a line, and below it the columns that each head gets."""

from collections.abc import Iterator, Sequence

from course_utils.chapters.einsum.heads_lab.asked import COLUMNS, HEADS, RIGHT, Split, guesses
from course_utils.core.say import Number
from course_utils.core.say.language import in_a_row, translated
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 290

# The plot, whose rows are heads.
LEFT = 76
COLUMN = 76  # wide
TOP = 44
STEP = 36  # from one head to the next
BOTTOM = TOP + STEP * (max(HEADS) - 1)

# The boxes below it.
BOX = 26  # high
COLUMNS_AT = BOTTOM + 32
HEADS_AT = BOTTOM + 106


def _x(column: Number) -> Number:
    """Return where the middle of a column is; half a column less is the column's left edge."""
    return LEFT + COLUMN * (column + 0.5)


def _y(head: Number) -> Number:
    """Return the height of a head's line; head 0 is at the bottom."""
    return BOTTOM - STEP * head


def view(asked: Split, found: object) -> View:
    """Draw the head to which each column belongs, and the reader's marks.

    After *Show*, the head to which the pattern sends each column is drawn, too. `found` is what
    every lab's view is given; this lab needs nothing beyond the answers.
    """
    drawn = [
        svg.text(0, 18, _title(asked), class_="strong"),
        *_grid(asked),
        svg.polyline(_stairs(asked), class_="line dashed"),
        *_row(translated("column"), range(COLUMNS), asked, COLUMNS_AT),
    ]
    if asked.shown:
        drawn += _columns_of_heads(asked)
    # With `through`, a line connects the marks that are set.
    drawn.append(marks.drawn("guess", asked, _tracks(asked.heads), through=True))
    if asked.shown:
        sawtooth = [(_x(column), _y(head)) for column, head in enumerate(asked.arrives)]
        drawn.append(svg.polyline(sawtooth, class_="line measured"))
        drawn += [svg.dot(x, y, class_="measured") for x, y in sawtooth]
    return View(svg.picture(WIDTH, HEIGHT, *drawn), _meaning(asked))


def _tracks(heads: int) -> list[marks.Track]:
    """Return each column's vertical line, on which the reader moves a mark from head to head."""
    top = _y(heads - 1)
    return [marks.Track((_x(column), BOTTOM), (_x(column), top)) for column in range(COLUMNS)]


def _grid(asked: Split) -> Iterator[str]:
    """Draw a line for each head."""
    right = _x(COLUMNS - 0.5)  # the right edge of the last column, whose number is COLUMNS - 1
    for head in range(asked.heads):
        y = _y(head)
        yield svg.text(LEFT - 12, y + 5, translated("head {head}", head=head), class_="end")
        yield svg.polyline([(LEFT, y), (right, y)], class_="grid")


def _stairs(asked: Split) -> list[tuple[Number, Number]]:
    """Return the points of a stepped line: over each column's width, at the head it belongs to."""
    points = []
    for column, head in enumerate(asked.belongs):
        y = _y(head)
        points.append((_x(column - 0.5), y))
        points.append((_x(column + 0.5), y))
    return points


def _columns_of_heads(asked: Split) -> Iterator[str]:
    """Draw the columns that each head gets, in the order of the heads."""
    by_head = sorted(range(COLUMNS), key=lambda column: asked.arrives[column])
    yield from _row(translated("gets"), by_head, asked, HEADS_AT)
    for head in range(asked.heads):
        # Of the head's boxes in the row, the places of the first and of the last one.
        first = head * asked.places
        last = first + asked.places - 1
        middle = _x((first + last) / 2)
        name = translated("head {head}", head=head)
        yield svg.text(middle, HEADS_AT - 8, name, class_="middle small")


def _row(name: str, columns: Sequence[int], asked: Split, y: Number) -> Iterator[str]:
    """Draw a row of boxes, one for each column, in the shade of the head that it belongs to.

    `name`, in front of the row, is what the row shows.
    """
    yield svg.text(LEFT - 12, y + 18, name, class_="end faint")
    for place, column in enumerate(columns):
        middle = _x(place)
        left = middle - COLUMN / 2 + 2
        box = svg.rect(left, y, COLUMN - 4, BOX)
        label = svg.text(middle, y + 18, str(column), class_="middle")
        colour = _shade(asked.belongs[column], asked.heads)
        yield svg.element("g", box, label, class_=colour)


def _shade(head: int, heads: int) -> str:
    """Return the CSS classes of a head's colour and of letters that can be read on it."""
    last = svg.SHADES - 1
    shade = last * head // (heads - 1)  # the heads' shades are spread over all that there are
    ink = "on-dark" if shade < svg.SHADES / 2 else "on-light"
    return f"shade-{shade} {ink}"


def _title(asked: Split) -> str:
    """Return the headline: where each column belongs, and after Show where it goes."""
    if not asked.shown:
        return translated(
            "Column c belongs to head c // {places} (dashed). "
            "To which head does {pattern} send it?",
            places=asked.places,
            pattern=asked.pattern,
        )
    arrives = f"c // {asked.places}" if asked.pattern == RIGHT else f"c % {asked.heads}"
    return translated(
        "Column c belongs to head c // {places} (dashed). By {pattern} it goes to head {arrives}",
        places=asked.places,
        pattern=asked.pattern,
        arrives=arrives,
    )


def _meaning(asked: Split) -> str:
    """Return the text below the picture: what to do, or after Show how many are right."""
    if not asked.shown:
        return translated(
            "{columns} columns, for {heads} heads. Set a mark for each column, then press Show.",
            columns=COLUMNS,
            heads=asked.heads,
        )
    pairs = zip(asked.belongs, asked.arrives, strict=True)
    right_columns = sum(belongs == arrives for belongs, arrives in pairs)
    sentence = translated(
        "By {pattern}, {right} of {columns} columns reach the head that they belong to.",
        pattern=asked.pattern,
        right=right_columns,
        columns=COLUMNS,
    )
    set_marks = guesses(asked)
    if not set_marks:
        return sentence
    right_marks = sum(guess.is_right for guess in set_marks)
    on_marks = translated(
        "Your marks: {right} of {marks} right.", right=right_marks, marks=len(set_marks)
    )
    return in_a_row(sentence, on_marks)
