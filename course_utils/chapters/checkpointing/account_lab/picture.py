"""The account in one picture: its numbers, a step's memory, the run's days, and one formula."""

from collections.abc import Iterator, Sequence

from course_utils.chapters.checkpointing.account_lab.asked import Asked
from course_utils.chapters.checkpointing.counted import (
    ABOUT,
    ASSUMED,
    AT_LEAST,
    AT_MOST,
    COUNTED,
    SHEET,
    Counted,
    counted,
    plain,
)
from course_utils.chapters.gradients.step_over_time import COLUMNS, Step
from course_utils.core import accountant
from course_utils.core.say import Number, three_digits
from course_utils.core.say import decimal_bytes_text as short
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.labs.draw.lettering import fitted, key, scale_words, width_of
from course_utils.engine.labs.draw.svg import button, picture, polyline, rect, text
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 370
# The list of numbers at the left.
LIST_TOP = 16
ROW = 21
VALUE_AT = 300  # where a value ends
HOW_AT = 310  # where the words begin on how sure it is
LIST_RIGHT = 436
# The plot of the memory at the right, and the days below it.
LEFT = 480
MEMORY_TOP = 40
MEMORY_BOTTOM = 164
SCALE_LEFT = 850
DAYS_TOP = 206
DAYS_LEFT = 640  # where the bars begin
DAYS_RIGHT = 900  # where the longest bar ends
BAR = 15
FORMULA_TOP = 326
HEADROOM = 1.06  # the plot is so many times as high as what is drawn in it
NOTEBOOKS = {
    1: template("Floats"),
    2: template("Tensors"),
    3: template("Einsum"),
    4: template("FLOPs"),
    5: template("Gradients"),
    6: template("Optimizers"),
    7: template("Mixed precision"),
    8: template("Checkpointing"),
}


def view(asked: Asked, found: object) -> View:
    """Draw the account. `found` is what the method `view` of every lab is given."""
    numbers = counted(asked)
    opened = next((one for one in numbers if one.key == asked.opened), numbers[0])
    drawn = [
        *_list(numbers, opened),
        *_memory(asked),
        *_days(asked),
        *_formula(opened),
    ]
    return View(picture(WIDTH, HEIGHT, *drawn), _meaning(asked), _table(numbers))


def _list(numbers: Sequence[Counted], opened: Counted) -> Iterator[str]:
    """Draw a button for each number, with its value and how sure it is."""
    for place, one in enumerate(numbers):
        y = LIST_TOP + ROW * place
        parts = []
        # A click counts anywhere in the row.
        class_ = "opened" if one is opened else "closed"
        parts.append(rect(0, y - 16, LIST_RIGHT, ROW - 1, class_=class_))
        value_left = VALUE_AT - width_of(one.text, "strong")
        parts.append(fitted(6, y, one.name, value_left - 8))
        parts.append(text(VALUE_AT, y, one.text, class_="strong end"))
        how = translated(one.how)
        parts.append(fitted(HOW_AT, y, how, LIST_RIGHT - 4, "small faint"))
        label = f"{one.name}: {one.text}, {how}"
        yield button(*parts, key=one.key, row=one.key, label=label)


# The memory of one GPU.


def _memory(asked: Asked) -> Iterator[str]:
    """Draw a step's memory over its time; or if that is not predicted, what is known of it."""
    memory = asked.sheet.bytes
    step = asked.step
    if step:
        state = min(moment.held.total for moment in step.columns)
        most = step.most
    else:
        state = sum(asked.lines[f"bytes of {part}"] for part in asked.parts)
        most = state + _added(asked)
    full = HEADROOM * (memory if most <= memory <= 1.5 * most else most)
    yield text(LEFT, 14, translated("One GPU's memory over a step"), class_="strong")
    scale = translated("scale: 0 to {most}", most=short(full))
    yield scale_words(SCALE_LEFT, 14, scale, WIDTH, "bytes")
    if step:
        yield _area(step, full)
        yield from _phases(step)
    elif most > state:
        yield _at_one_moment(state, most, full)
    state_y = _y(state, full)
    yield rect(LEFT, state_y, WIDTH - LEFT, MEMORY_BOTTOM - state_y, class_="part optimizer")
    if memory <= full:
        y = _y(memory, full)
        for class_ in ("cut", "capacity"):  # a wide line in the page's colour, a thin one on it
            yield polyline([(LEFT, y), (WIDTH, y)], class_=class_)
    frame = [(LEFT, MEMORY_TOP), (LEFT, MEMORY_BOTTOM), (WIDTH, MEMORY_BOTTOM)]
    yield polyline(frame, class_="axis")
    yield _memory_key(asked)


ADDED = (  # lines of the account: at the fullest moment of a step, or at its loss
    "bytes that the step adds then",
    "bytes gathered then",
    "bytes of the rest",
    "bytes kept for the backward pass",
    "bytes of the loss",
)


def _added(asked: Asked) -> int:
    """Return what a step adds to the state at the one moment that is known; 0 if none is."""
    return sum(asked.lines.get(line, 0) for line in ADDED)


def _memory_key(asked: Asked) -> str:
    """Draw the key of the memory's plot below its heading."""
    for_a_while = translated("for a while") if asked.step else _known_of_a_step(asked)
    items = [
        ("part optimizer", translated("all the time")),
        ("part activations", for_a_while),
        ("memory", translated("the GPU has {memory}", memory=short(asked.sheet.bytes))),
    ]
    return key(items, LEFT, MEMORY_TOP - 6)


def _known_of_a_step(asked: Asked) -> str:
    """Return what the bar in the middle shows, where no step is drawn over time."""
    if "bytes together" in asked.lines:
        return translated("at the fullest moment, at most")
    return translated("at the loss, at least" if _added(asked) else "for a while: not known")


def _phases(step: Step) -> Iterator[str]:
    """Write below the plot where each phase of the step begins, if there is space."""
    names = list(step.phases)
    ends = [*(step.phases[name] for name in names[1:]), 1]
    for name, end in zip(names, ends, strict=True):
        begin = step.phases[name]
        x = LEFT + (WIDTH - LEFT) * begin
        words = translated(name)
        if width_of(words, "small") + 8 <= (WIDTH - LEFT) * (end - begin):
            yield text(x + 4, MEMORY_BOTTOM + 16, words, class_="small faint")


def _y(nbytes: Number, full: Number) -> Number:
    return MEMORY_BOTTOM - (MEMORY_BOTTOM - MEMORY_TOP) * nbytes / full


def _area(step: Step, full: Number) -> str:
    """Draw all that is held as one area, in steps from column to column."""
    width = (WIDTH - LEFT) / COLUMNS
    corners = [(LEFT, MEMORY_BOTTOM)]
    for column, moment in enumerate(step.columns):
        y = _y(moment.held.total, full)
        corners.append((LEFT + width * column, y))
        corners.append((LEFT + width * (column + 1), y))
    corners.append((WIDTH, MEMORY_BOTTOM))
    return polyline(corners, class_="part activations")


def _at_one_moment(state: int, most: int, full: Number) -> str:
    """Draw what is held at one moment as a bar in the middle. No others are known or drawn."""
    middle = (LEFT + WIDTH) / 2
    top = _y(most, full)
    return rect(middle - 40, top, 80, _y(state, full) - top, class_="part activations")


# The days of the run.


def _days(asked: Asked) -> Iterator[str]:
    """Draw the days as bars: at the peak, at the MFU that is assumed, with what failures take."""
    yield text(LEFT, DAYS_TOP, translated("Days, from the data sheet to the run"), class_="strong")
    bars = days_of(asked)
    longest = max(days for _, days, _, _ in bars)
    for place, (name, days, how, class_) in enumerate(bars):
        y = DAYS_TOP + 26 + 28 * place
        length = (DAYS_RIGHT - DAYS_LEFT) * days / longest
        yield fitted(LEFT, y, name, DAYS_LEFT - 8, "small")
        yield rect(DAYS_LEFT, y - BAR + 3, length, BAR, class_=class_)
        words = three_digits(days)
        yield text(DAYS_LEFT + length + 6, y, words, class_="small strong")
        behind = DAYS_LEFT + length + 12 + width_of(words, "small strong")
        yield fitted(behind, y, how, WIDTH, "small faint")


def days_of(asked: Asked) -> list[tuple[str, Number, str, str]]:
    """Return a bar for each step from the data sheet to the run: name, days, how sure, class."""
    at_mfu = asked.lines["days without saves and failures"]
    at_peak = at_mfu * asked.percent / 100
    at_a_share = translated("at {percent} % of it", percent=f"{asked.percent}")
    bars = [
        (translated("at the peak"), at_peak, translated(SHEET), "predicted"),
        (at_a_share, at_mfu, translated("assumed"), "measured"),
    ]
    lost = asked.lines["share that is lost, at most"]
    if lost < 1:
        with_failures = at_mfu / (1 - lost)
        bars.append(
            (translated("and with failures"), with_failures, translated("assumed"), "limit")
        )
    return bars


# One formula, and the words.


HOW_SURE = {
    COUNTED: template("Counted exactly from the model's shape and your choices."),
    SHEET: template("What the data sheet promises, and nobody reaches."),
    ASSUMED: template("As sure as what is assumed: the MFU, failures, the watts, the price."),
    AT_MOST: template("An upper bound on what is counted."),
    AT_LEAST: template("It is at least this much."),
    ABOUT: template("It is about this much."),
}


def _formula(opened: Counted) -> Iterator[str]:
    """Write the opened number's formula with its numbers, what they are, and who teaches it."""
    yield polyline([(0, FORMULA_TOP - 20), (WIDTH, FORMULA_TOP - 20)], class_="grid")
    words = f"{opened.name} = {opened.formula} = {plain(opened.number)}"
    yield fitted(0, FORMULA_TOP, words, WIDTH, "formula")
    yield fitted(0, FORMULA_TOP + 20, translated("that is: {words}", words=opened.words), WIDTH)
    teaches = translated(
        "Notebook {number}, {title}, teaches it.",
        number=f"{opened.notebook}",
        title=translated(NOTEBOOKS[opened.notebook]),
    )
    yield fitted(0, FORMULA_TOP + 40, in_a_row(_how_sure(opened), teaches), WIDTH, "faint")


def _how_sure(opened: Counted) -> str:
    """Return a sentence on how sure the number is."""
    return translated(HOW_SURE[opened.how])


# By what the account's line "fits" says.
FITS = {
    "yes": template("Fits into the {memory} of one {machine}."),
    "no": template("Does not fit into the {memory} of one {machine}."),
}
NOT_KNOWN = template("Whether it fits is not known, because not all that a step adds is predicted.")


def _meaning(asked: Asked) -> str:
    """Return the text below the picture: whether it fits, how long it takes, what is not known."""
    fits = translated(
        FITS.get(asked.lines["fits"], NOT_KNOWN),
        memory=short(asked.sheet.bytes),
        machine=asked.machine,
    )
    run = translated(
        "The run takes {days} days if {percent} % of the peak is reached.",
        days=three_digits(asked.lines["days without saves and failures"]),
        percent=f"{asked.percent}",
    )
    return in_a_row(fits, run, *_what_is_left_out(asked))


def _what_is_left_out(asked: Asked) -> Iterator[str]:
    """Yield sentences on what the account does not know of this model, or has changed."""
    if asked.length < asked.sequence:
        yield translated(
            "A sequence has {length} tokens, as many as the model has positions.",
            length=f"{asked.length:,}",
        )
    if asked.recomputed and not asked.recomputed_layers:
        yield translated("What recomputing costs is not counted for such a model, so nothing is.")
    if asked.m.window_layers:
        yield translated("Its windows are in the FLOPs and the cache.")
    if asked.m.mtp_layers:
        yield translated("Its layers for a second token ahead are left out.")
    if not accountant.kept_is_counted(asked.m):
        yield translated("What its attention keeps for the backward pass is not counted.")


def _table(numbers: Sequence[Counted]) -> list[list[str]]:
    """Return a row for each number, under a head."""
    rows = [["what", "how much", "how sure", "formula", "that is", "taught in"]]
    for one in numbers:
        formula = f"{one.formula} = {plain(one.number)}"
        notebook = f"{one.notebook} · {NOTEBOOKS[one.notebook]}"
        rows.append([one.name, one.text, one.how, formula, one.words, notebook])
    return rows
