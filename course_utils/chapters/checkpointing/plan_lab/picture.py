"""A GPU's bytes against its memory, a step pass by pass, and the days with their formula."""

from collections.abc import Iterator, Mapping

from course_utils.chapters.checkpointing.plan_lab import words
from course_utils.chapters.checkpointing.plan_lab.asked import LEVELS, Asked, Found, outcome_of
from course_utils.chapters.checkpointing.plans import Cost, Outcome, Pass, Task
from course_utils.core.say import Number
from course_utils.core.say import decimal_bytes_text as short
from course_utils.core.say.language import translated
from course_utils.engine.labs.draw.lettering import (
    fitted,
    key,
    labelled_lines,
    scale_words,
    width_of,
)
from course_utils.engine.labs.draw.svg import picture, polyline, rect, text
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 396
# Bars lie between LEFT and LEFT + LENGTH, and words begin at RIGHT.
LEFT = 150
LENGTH = 500
RIGHT = 666
# How far down each part of the picture begins.
BAR = 54
NAMES = 103
PASSES = 136
FORMULAS = 296
BAR_HEIGHT = 26
SOLVED = 190  # the width at the right of the headline that is left for the solved levels
STEP = 26  # from one pass down to the next
HALF = 9  # the height of each of a pass's two bars


def view(asked: Asked, found: Found) -> View:
    """Draw a GPU's memory under the plan, the passes of a step, and the formulas of the days."""
    task = LEVELS[asked.level]
    outcome = outcome_of(asked, found)
    drawn = [*_task(task, found), *_memory(task, outcome.cost), *_passes(outcome)]
    formulas = words.formulas(asked, task, outcome)
    drawn += labelled_lines(formulas, 100, FORMULAS, WIDTH, step=20)
    drawn.append(fitted(0, HEIGHT - 20, translated(words.NO_BOUND), WIDTH, "faint small"))
    drawn.append(fitted(0, HEIGHT - 6, translated(words.LEFT_OUT), WIDTH, "faint small"))
    return View(
        picture(WIDTH, HEIGHT, *drawn),
        words.meaning(asked, task, outcome, found),
        words.table(outcome),
    )


def _task(task: Task, found: Found) -> Iterator[str]:
    """Draw the two lines of the head: the task, and how many levels are solved."""
    yield fitted(0, 16, words.headline(task), WIDTH - SOLVED, "strong large")
    yield text(WIDTH, 16, words.solved(found), class_="end strong")
    yield fitted(0, 35, words.a_step(task), WIDTH, "faint")


def _memory(task: Task, cost: Cost) -> Iterator[str]:
    """Draw the parts side by side, the end of the memory, and the meaning of each colour.

    `full` is the bytes that a bar of the whole length stands for.
    """
    held = sum(cost.held.values())
    # A little more than is drawn, so that the end is seen.
    full = 1.04 * max(held, task.memory)
    yield text(0, BAR + 17, translated("each GPU holds"), class_="faint")
    for part, begin, end in _spans(cost.held, full):
        if end > begin:
            yield rect(begin, BAR, end - begin, BAR_HEIGHT, class_=f"part {part}")
    limit = LEFT + LENGTH * task.memory / full
    yield rect(LEFT, BAR, limit - LEFT, BAR_HEIGHT, class_="capacity")
    yield polyline([(limit, BAR - 5), (limit, BAR + BAR_HEIGHT + 5)], class_="line")
    sizes = translated(
        "{held} of {memory}: fits" if cost.fits else "{held} of {memory}: too much",
        held=short(held),
        memory=short(task.memory),
    )
    yield fitted(RIGHT, BAR + 18, sizes, WIDTH, "formula" if cost.fits else "alarm")
    scale = translated("scale: 0 to {most}", most=short(full))
    yield scale_words(RIGHT, BAR - 2, scale, WIDTH, "bytes")
    names = [(f"part {part}", f"{part} {short(nbytes)}") for part, nbytes in cost.held.items()]
    yield key(names, 0, NAMES)


def _spans(held: Mapping[str, Number], full: Number) -> Iterator[tuple[str, Number, Number]]:
    """Yield each part's name, and where its bar begins and ends from left to right.

    A bar of the whole length, which is LENGTH, stands for `full` bytes.
    """
    begin = LEFT
    for part, nbytes in held.items():
        end = begin + LENGTH * nbytes / full
        yield part, begin, end
        begin = end


def _passes(outcome: Outcome) -> Iterator[str]:
    """Draw the seconds that each kind of pass takes in a step: products above, sending below.

    The longer of both counts. A bar of the whole length stands for `full_scale` seconds.
    """
    passes = outcome.cost.passes
    full_s = full_scale(outcome)
    yield text(0, PASSES, translated("A step, pass by pass"), class_="strong")
    bars = [("predicted", translated("matrix products")), ("limit", translated("sending"))]
    yield key(bars, LEFT + 40, PASSES)
    scale = translated("scale: 0 to {most}", most=f"{full_s:.3g} s")
    scale_left = LEFT + LENGTH - width_of(scale, "small strong")  # it ends where the bars may end
    yield scale_words(scale_left, PASSES, scale, RIGHT, "seconds")
    seconds = translated("count × the longer of the two")
    yield text(RIGHT, PASSES, seconds, class_="faint small")
    row_count = len(passes) + 1  # the last row is the whole step
    bottom = PASSES + 8 + STEP * row_count
    for x in (LEFT, LEFT + LENGTH):
        yield polyline([(x, PASSES + 6), (x, bottom)], class_="grid")
    top = PASSES + 12
    for kind in passes:
        yield from _pass(kind, top, full_s)
        top += STEP
    yield from _together(outcome, top, full_s)


def _pass(kind: Pass, top: Number, full_s: Number) -> Iterator[str]:
    """Draw a row for one kind of pass: its name, its two bars, and its seconds."""
    class_ = "" if kind.count else "faint"
    yield text(0, top + 14, translated(kind.name), class_=class_)
    if kind.count:
        # At most 1, because a pass is a part of the step, and the step fits into `full_s`.
        compute_share = kind.count * kind.compute_s / full_s
        sent_share = kind.count * kind.sent_s / full_s
        yield rect(LEFT, top, LENGTH * compute_share, HALF, class_="predicted")
        yield rect(LEFT, top + HALF + 2, LENGTH * sent_share, HALF, class_="limit")
    yield fitted(RIGHT, top + 14, words.a_pass(kind), WIDTH, class_)


def _together(outcome: Outcome, top: Number, full_s: Number) -> Iterator[str]:
    """Draw the whole step, and a line where the best plan's step ends."""
    yield text(0, top + 14, translated("together"), class_="strong")
    yield rect(LEFT, top + 5, LENGTH * outcome.cost.step_s / full_s, HALF, class_="part passing")
    best = LEFT + LENGTH * outcome.best_cost.step_s / full_s
    yield polyline([(best, top), (best, top + 20)], class_="line")
    yield fitted(RIGHT, top + 14, words.together(outcome), WIDTH, "strong")


def full_scale(outcome: Outcome) -> Number:
    """Return the seconds that a bar of the whole length stands for.

    They are twice the seconds of the best plan's step, and are doubled until this plan's step fits.
    So plans of a level are drawn to the same scale, unless they are much slower.
    """
    full_s = 2 * outcome.best_cost.step_s
    while full_s < outcome.cost.step_s:
        full_s *= 2
    return full_s
