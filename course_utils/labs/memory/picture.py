"""One machine's bytes against its memory, the formulas with their numbers, and every sharding stage."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from course_utils import predict
from course_utils.labs.draw.lettering import account, fitted
from course_utils.labs.draw.svg import picture, polyline, rect, text
from course_utils.labs.lab import View
from course_utils.labs.memory import words
from course_utils.labs.memory.asked import STAGES, Asked, Found
from course_utils.labs.memory.words import short, verdict
from course_utils.predict import TrainingPlan
from course_utils.quantities import Number

WIDTH, HEIGHT = 1000, 368
LEFT, LENGTH, RIGHT = 150, 500, 666  # the bars lie between LEFT and LEFT + LENGTH
BAR, BAR_HEIGHT, FORMULAS, STAGES_TOP = 44, 40, 164, 255  # how far down each begins
SPLIT_IN = ("nothing split", "the optimizer", "and gradients", "and parameters")
NOT_COUNTED = (
    "Not counted: scratch memory of operations and optimizer, gaps between allocations, torch itself, "
    "and what several machines gather and send each other."
)


def view(asked: Asked, found: Found) -> View:
    """The bar with its parts named, where they come from, and what sharding would make of them."""
    plan, counted = asked.plan, found.get(asked.plan.step)
    full = 1.04 * max(plan.held.total, plan.machine.bytes)  # bytes that the bars' length stands for
    formulas = account(words.formulas(plan, counted), 100, FORMULAS, WIDTH, step=20)
    drawn = [*_bar(plan, full), *_names(plan.held, full), *formulas, *_stages(plan, full)]
    remark = fitted(0, HEIGHT - 6, NOT_COUNTED, WIDTH, "faint small")
    drawing = picture(WIDTH, HEIGHT, *drawn, remark)
    return View(drawing, words.meaning(plan), words.table(plan, counted))


def _bar(plan: TrainingPlan, full: Number) -> Iterator[str]:
    """What each machine holds, and where its memory ends."""
    limit = LEFT + LENGTH * plan.machine.bytes / full
    known = {shape: name for name, shape in predict.MODELS.items()}
    name = known.get(plan.shape, "A model of these sizes")
    yield fitted(0, 16, f"{name}: {plan.shape.parameters:,} parameters", WIDTH, "strong large")
    yield fitted(0, BAR + 17, f"{plan.machines:,} × {plan.machine_name}", LEFT - 8, "strong")
    yield text(0, BAR + 34, "each holds", class_="faint")
    yield rect(LEFT, BAR, limit - LEFT, BAR_HEIGHT, class_="room")
    yield from _stacked(plan.held, BAR, BAR_HEIGHT, full)
    said = f"{short(plan.machine.bytes)}: the data sheet's memory, GB = 10^9"
    yield text(limit, BAR - 11, said, class_="end small" if limit > LEFT + LENGTH / 2 else "small")
    yield polyline([(limit, BAR - 8), (limit, BAR + BAR_HEIGHT + 3)], class_="line")
    yield fitted(RIGHT, BAR + 17, short(plan.held.total), WIDTH, "strong large")
    yield fitted(RIGHT, BAR + 36, verdict(plan), WIDTH, "formula" if plan.fits else "alarm")


def _spans(held: Mapping[str, Number], full: Number) -> Iterator[tuple[str, Number, Number]]:
    """Each part with its two ends in the bar: one after the other, each as long as its bytes."""
    begin = LEFT
    for part, nbytes in held.items():
        yield part, begin, begin + LENGTH * nbytes / full
        begin += LENGTH * nbytes / full


def _stacked(held: Mapping[str, Number], top: Number, height: Number, full: Number) -> Iterator[str]:
    """The parts side by side; beyond the bars' length they are cut off."""
    right = LEFT + LENGTH
    for part, begin, end in _spans(held, full):
        if min(end, right) > begin:
            yield rect(begin, top, min(end, right) - begin, height, class_=f"part {part}")
    if end > right:
        x = right - 12
        edge = [(x + 6, top - 2), (x, top + height / 2), (x + 6, top + height + 2)]
        yield polyline(edge, class_="cut")


def _names(held: Mapping[str, int], full: Number) -> Iterator[str]:
    """What each colour is, with its bytes, and a thin line from each part of the bar to its name."""
    step, top = WIDTH / len(held), BAR + BAR_HEIGHT
    for place, (part, begin, end) in enumerate(_spans(held, full)):
        x, y = 1 + place * step, top + 34
        if end > begin:
            yield polyline([((begin + end) / 2, top + 2), (x + 9, y - 14)], class_="leader")
        yield rect(x, y - 13, 18, 18, class_=f"part {part}")
        yield text(x + 26, y + 1, part, class_="strong")
        yield fitted(x + 26, y + 19, short(held[part]), x + step - 8)


def _stages(plan: TrainingPlan, full: Number) -> Iterator[str]:
    """The bar of each sharding stage up to the chosen one, and the largest model whose state alone would fit."""
    yield text(0, STAGES_TOP, "sharding stages (ZeRO)", class_="strong small")
    yield text(RIGHT, STAGES_TOP, "on each machine", class_="faint small")
    yield text(WIDTH, STAGES_TOP, "largest model, by state alone", class_="faint small end")
    for stage, split in zip(STAGES.values(), SPLIT_IN, strict=True):
        other, y = replace(plan, stage=stage), STAGES_TOP + 8 + 22 * stage
        class_ = "small strong" if stage == plan.stage else "small"
        most = predict.largest_model(plan.machine, plan.machines, plan.recipe, stage=stage)
        yield text(0, y + 13, f"{stage} · {split}", class_=class_)
        if stage > plan.stage:
            yield text(LEFT, y + 13, "choose it: what do you expect?", class_="faint small")
            continue
        yield from _stacked(other.held, y, 16, full)
        yield fitted(RIGHT, y + 13, f"{short(other.held.total)}, {verdict(other)}", WIDTH - 160, class_)
        yield text(WIDTH, y + 13, f"{most / 1e9:,.1f} billion", class_=f"end {class_}")
    limit = LEFT + LENGTH * plan.machine.bytes / full
    yield polyline([(limit, STAGES_TOP + 4), (limit, STAGES_TOP + 94)], class_="line")
