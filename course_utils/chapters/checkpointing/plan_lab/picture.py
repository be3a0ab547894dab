"""A GPU's bytes against its memory, a step pass by pass, and the days with their formula."""

from collections.abc import Iterator, Mapping

from course_utils.chapters.checkpointing.plan_lab import words
from course_utils.chapters.checkpointing.plan_lab.asked import LEVELS, Asked, Found, outcome_of
from course_utils.chapters.checkpointing.plans import Cost, Outcome, Task
from course_utils.core.say import Number
from course_utils.core.say import decimal_bytes_text as short
from course_utils.engine.labs.draw.lettering import fitted, key, labelled_lines
from course_utils.engine.labs.draw.svg import picture, polyline, rect, text
from course_utils.engine.labs.lab import View

WIDTH, HEIGHT = 1000, 398
LEFT, LENGTH, RIGHT = 150, 500, 666  # bars lie between LEFT and LEFT + LENGTH, words begin at RIGHT
BAR, BAR_HEIGHT, NAMES, PASSES, FORMULAS = 54, 26, 104, 138, 312  # how far down each begins
SOLVED = 190  # how much space the solved levels have, at the right of the headline
STEP, HALF = 28, 9  # from pass to pass, and the height of each of its two bars


def view(asked: Asked, found: Found) -> View:
    """What the plan holds, where its time goes, and how far from the best it is."""
    task = LEVELS[asked.level]
    outcome = outcome_of(asked, found)
    formulas = labelled_lines(words.formulas(asked, task, outcome), 100, FORMULAS, WIDTH, step=20)
    drawn = [*_task(task, found), *_memory(task, outcome.cost), *_passes(outcome), *formulas]
    remark = fitted(0, HEIGHT - 6, words.LEFT_OUT, WIDTH, "faint small")
    return View(
        picture(WIDTH, HEIGHT, *drawn, remark),
        words.meaning(asked, task, outcome, found),
        words.table(outcome),
    )


def _task(task: Task, found: Found) -> Iterator[str]:
    solved = words.solved(found)
    yield fitted(0, 16, words.headline(task), WIDTH - SOLVED, "strong large")
    yield text(WIDTH, 16, solved, class_="end strong")
    yield fitted(0, 35, words.a_step(task), WIDTH, "faint")


def _memory(task: Task, cost: Cost) -> Iterator[str]:
    """The parts side by side, where the memory ends, and what each colour is."""
    held = sum(cost.held.values())
    full = 1.04 * max(held, task.memory)
    yield text(0, BAR + 17, "each GPU holds", class_="faint")
    for part, begin, end in _spans(cost.held, full):
        if end > begin:
            yield rect(begin, BAR, end - begin, BAR_HEIGHT, class_=f"part {part}")
    limit = LEFT + LENGTH * task.memory / full
    yield rect(LEFT, BAR, limit - LEFT, BAR_HEIGHT, class_="capacity")
    yield polyline([(limit, BAR - 5), (limit, BAR + BAR_HEIGHT + 5)], class_="line")
    verdict = f"{short(held)} of {short(task.memory)}: {'fits' if cost.fits else 'too much'}"
    yield fitted(RIGHT, BAR + 18, verdict, WIDTH, "formula" if cost.fits else "alarm")
    yield key(
        [(f"part {part}", f"{part} {short(nbytes)}") for part, nbytes in cost.held.items()],
        0,
        NAMES,
    )


def _spans(held: Mapping[str, Number], full: Number) -> Iterator[tuple[str, Number, Number]]:
    begin = LEFT
    for part, nbytes in held.items():
        yield part, begin, begin + LENGTH * nbytes / full
        begin += LENGTH * nbytes / full


def _passes(outcome: Outcome) -> Iterator[str]:
    """The seconds that each kind of pass takes in a step: products above, sending below. The longer one counts.

    The scale is the best plan's step, doubled until this step fits: so two plans of a level can be compared.
    """
    cost, best_s = outcome.cost, outcome.least.step_s
    full_s = full_scale(outcome)
    yield text(0, PASSES, "A step, pass by pass", class_="strong")
    yield key([("predicted", "products"), ("limit", "sending")], LEFT + 40, PASSES)
    yield text(LEFT + LENGTH, PASSES, f"{full_s:.3g} s", class_="end small")
    yield text(RIGHT, PASSES, "times the longer of both", class_="faint small")
    bottom = PASSES + 8 + STEP * (len(cost.passes) + 1)
    for place in (LEFT, LEFT + LENGTH):
        yield polyline([(place, PASSES + 6), (place, bottom)], class_="grid")
    for number, one in enumerate(cost.passes):
        y = PASSES + 12 + STEP * number
        there_are = "" if one.count else "faint"
        yield text(0, y + 14, one.name, class_=there_are)
        if one.count:
            compute_s, sent_s = one.count * one.compute_s, one.count * one.sent_s
            yield rect(LEFT, y, LENGTH * min(1, compute_s / full_s), HALF, class_="predicted")
            yield rect(LEFT, y + HALF + 2, LENGTH * min(1, sent_s / full_s), HALF, class_="limit")
        yield fitted(RIGHT, y + 14, words.a_pass(one), WIDTH, there_are)
    y = PASSES + 12 + STEP * len(cost.passes)
    yield text(0, y + 14, "together", class_="strong")
    yield rect(LEFT, y + 5, LENGTH * cost.step_s / full_s, HALF, class_="part passing")
    best = LEFT + LENGTH * best_s / full_s
    yield polyline([(best, y), (best, y + 20)], class_="line")
    yield fitted(RIGHT, y + 14, words.together(outcome), WIDTH, "strong")


def full_scale(outcome: Outcome) -> Number:
    """The seconds that a bar of the whole width stands for."""
    full_s = 2 * outcome.least.step_s
    while full_s < outcome.cost.step_s:
        full_s *= 2
    return full_s
