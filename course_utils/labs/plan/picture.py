"""A GPU's bytes against its memory, a step pass by pass, and the days with their formula."""

from collections.abc import Iterator, Mapping

from course_utils.accountant.plans import Cost, Pass, Task
from course_utils.labs.draw.lettering import account, fitted, key
from course_utils.labs.draw.svg import picture, polyline, rect, text
from course_utils.labs.lab import View
from course_utils.labs.plan import words
from course_utils.labs.plan.asked import LEVELS, Asked, Found, planner
from course_utils.quantities import Number
from course_utils.quantities import decimal_bytes_text as short

WIDTH, HEIGHT = 1000, 416
LEFT, LENGTH, RIGHT = 150, 500, 666  # bars lie between LEFT and LEFT + LENGTH, words begin at RIGHT
BAR, BAR_HEIGHT, NAMES, PASSES, FORMULAS = 54, 26, 106, 146, 316  # how far down each begins
STEP, HALF = 34, 11  # from pass to pass, and the height of each of its two bars


def view(asked: Asked, found: Found) -> View:
    """What the plan holds, where its time goes, and how far from the best it is."""
    task = LEVELS[asked.level]
    outcome = found.get(asked) or planner(asked.level).outcome(asked.plan)
    formulas = account(words.formulas(asked, task, outcome), 100, FORMULAS, WIDTH, step=20)
    drawn = [*_task(task), *_memory(task, outcome.cost), *_passes(outcome.cost.passes), *formulas]
    remark = fitted(0, HEIGHT - 6, words.LEFT_OUT, WIDTH, "faint small")
    return View(picture(WIDTH, HEIGHT, *drawn, remark), words.meaning(task, outcome), words.table(outcome))


def _task(task: Task) -> Iterator[str]:
    yield fitted(0, 16, words.headline(task), WIDTH, "strong large")
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
    yield rect(LEFT, BAR, limit - LEFT, BAR_HEIGHT, class_="room")
    yield polyline([(limit, BAR - 5), (limit, BAR + BAR_HEIGHT + 5)], class_="line")
    verdict = f"{short(held)} of {short(task.memory)}: {'fits' if cost.fits else 'too much'}"
    yield fitted(RIGHT, BAR + 18, verdict, WIDTH, "formula" if cost.fits else "alarm")
    yield key(
        [(f"part {part}", f"{part} {short(nbytes)}") for part, nbytes in cost.held.items()], LEFT, NAMES
    )


def _spans(held: Mapping[str, Number], full: Number) -> Iterator[tuple[str, Number, Number]]:
    begin = LEFT
    for part, nbytes in held.items():
        yield part, begin, begin + LENGTH * nbytes / full
        begin += LENGTH * nbytes / full


def _passes(passes: tuple[Pass, ...]) -> Iterator[str]:
    """For each pass, the seconds of its products above those of its sending; the longer one counts."""
    yield text(0, PASSES, "A step, pass by pass", class_="strong")
    yield key([("predicted", "products"), ("limit", "sending")], LEFT + 40, PASSES)
    yield text(RIGHT, PASSES, "times the longer of both", class_="faint small")
    longest = max(max(one.compute_s, one.sent_s) for one in passes if one.count)
    for number, one in enumerate(passes):
        y = PASSES + 12 + STEP * number
        yield text(0, y + 15, one.name, class_="" if one.count else "faint")
        if one.count:
            yield rect(LEFT, y, LENGTH * one.compute_s / longest, HALF, class_="predicted")
            yield rect(LEFT, y + HALF + 2, LENGTH * one.sent_s / longest, HALF, class_="limit")
        yield fitted(RIGHT, y + 15, words.a_pass(one), WIDTH, "" if one.count else "faint")
