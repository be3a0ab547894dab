"""What the memory lab draws: one machine's bytes against its memory, every sharding stage, and every other machine."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from course_utils.datasheets import machine_named
from course_utils.labs import memory_words as words
from course_utils.labs.lettering import fitted
from course_utils.labs.memory_plan import PARTS, Plan, most_parameters
from course_utils.labs.memory_words import short, verdict
from course_utils.labs.panel import View
from course_utils.labs.svg import dot, picture, polyline, rect, text
from course_utils.predict.training import SHARDED_IN_STAGE
from course_utils.quantities import Ledger, Number

WIDTH, LEFT, LENGTH, RIGHT = 940, 172, 428, 614  # the bars lie between LEFT and LEFT + LENGTH
MACHINES = ("T4", "L4", "A100 SXM 40GB", "A100 SXM", "H100 SXM", "H200 SXM", "B200", "MI300X")
STAGES = ("0 · nothing split", "1 · the optimizer", "2 · and gradients", "3 · and parameters")


def view(plan: Plan, counted: Ledger | None) -> View:
    """The whole picture; `counted` is what was counted for it on one machine."""
    full = 1.04 * max(plan.held.total, plan.machine.bytes)  # bytes that the bars' length stands for
    drawn = [*_formulas(plan, counted), *_bar(plan, full), *_stages(plan, full), *_machines(plan, full)]
    return View(picture(WIDTH, 722, *drawn), words.meaning(plan), words.table(plan, counted))


def _formulas(plan: Plan, counted: Ledger | None) -> Iterator[str]:
    shape = plan.shape
    sizes = f"{shape.layers:,} layers, width {shape.width:,}, {shape.heads:,} heads, vocabulary {shape.vocabulary:,}"
    yield text(0, 18, f"{words.name_of(shape)}: {shape.parameters:,} parameters", class_="strong large")
    yield text(WIDTH, 18, sizes, class_="end faint small")
    classes = {"together": "formula", "counted": "measured-words" if counted else "faint"}
    for row, (name, said) in enumerate(words.formulas(plan, counted)):
        y = 45 + 23 * row
        yield text(0, y, name, class_="faint")
        yield fitted(100, y, said, WIDTH, classes.get(name, ""))
        if name == "counted" and counted:
            yield dot(88, y - 5, class_="measured")


def _bar(plan: Plan, full: Number) -> Iterator[str]:
    """The chosen machine's bar, with its parts named below."""
    top, height = 206, 46
    limit = LEFT + LENGTH * plan.machine.bytes / full
    end = LEFT + LENGTH * plan.held.total / full
    who = "each of them holds" if plan.machines > 1 else "it holds"
    count = f"{plan.machines:,} × " if plan.machines > 1 else ""
    yield text(0, top + 19, f"{count}{plan.machine_name}", class_="strong")
    yield text(0, top + 38, who, class_="faint")
    yield rect(LEFT, top, limit - LEFT, height, class_="room")
    yield stacked(plan.held, top, height, full)
    said = f"{short(plan.machine.bytes)}: the data sheet's memory, GB = 10^9"
    yield text(limit, top - 12, said, class_="end small" if limit > LEFT + LENGTH / 2 else "small")
    if not plan.fits:
        yield polyline([(limit, top - 4), (end, top - 4)], class_="over")
    yield text(RIGHT, top + 19, short(plan.held.total), class_="strong large")
    yield text(RIGHT, top + 40, verdict(plan), class_="formula" if plan.fits else "alarm")
    yield from _names(plan.held, top + height, full)
    yield polyline([(limit, top - 8), (limit, top + height + 3)], class_="line")


def stacked(held: Mapping[str, Number], top: Number, height: Number, full: Number) -> str:
    """The parts side by side, as long as they have bytes; beyond the picture's edge it is cut off."""
    parts, begin = [], 0
    for part in PARTS:
        x, end = (min(LENGTH, LENGTH * n / full) for n in (begin, begin + held[part]))
        if end > x:
            edge = "part " if end - x > 5 else ""
            parts.append(rect(LEFT + x, top, end - x, height, class_=f"{edge}{part}"))
        begin += held[part]
    return "".join(parts) + (_cut(top, height) if begin > full else "")


def _cut(top: Number, height: Number) -> str:
    x = LEFT + LENGTH - 12
    return polyline([(x + 6, top - 2), (x, top + height / 2), (x + 6, top + height + 2)], class_="cut")


def _names(held: Mapping[str, int], top: Number, full: Number) -> Iterator[str]:
    """What each colour is, with its bytes, and a thin line from each part of the bar to its name."""
    width, begin = WIDTH / len(PARTS), 0
    for place, part in enumerate(PARTS):
        x, y = place * width, top + 34
        middle = LEFT + LENGTH * (begin + held[part] / 2) / full
        begin += held[part]
        if held[part]:
            yield polyline([(middle, top + 2), (x + 9, y - 14)], class_="leader")
        yield rect(x, y - 13, 18, 18, class_=f"part {part}")
        yield text(x + 26, y + 1, part, class_="strong")
        yield text(x + 26, y + 20, short(held[part]) if held[part] else "none", class_="")


def _stages(plan: Plan, full: Number) -> Iterator[str]:
    """The same in each sharding stage, and the largest model that its state alone would allow."""
    top = 340
    yield text(0, top, "sharding stages (ZeRO)", class_="strong")
    yield text(RIGHT, top, "on each machine", class_="faint small")
    yield text(WIDTH, top, "state alone: most parameters", class_="faint small end")
    for stage in range(len(SHARDED_IN_STAGE)):
        other, y = replace(plan, stage=stage), top + 8 + 27 * stage
        chosen = "strong" if stage == plan.stage else ""
        most = most_parameters(plan.machine, plan.machines, plan.recipe, stage)
        yield text(0, y + 15, STAGES[stage], class_=chosen)
        yield stacked(other.held, y, 20, full)
        yield text(RIGHT, y + 15, f"{short(other.held.total)}, {verdict(other)}", class_=chosen)
        yield text(WIDTH, y + 15, words.parameters_text(most), class_=f"end {chosen}")
    limit = LEFT + LENGTH * plan.machine.bytes / full
    yield polyline([(limit, top + 4), (limit, y + 24)], class_="line")


def _machines(plan: Plan, full: Number) -> Iterator[str]:
    """The memory of every machine, and the line that it would have to reach."""
    top = 486
    need = LEFT + LENGTH * plan.held.total / full
    yield text(0, top, "other machines", class_="strong")
    side, class_ = (-6, "formula end") if need > LEFT + LENGTH / 2 else (6, "formula")
    yield text(need + side, top, f"needed: {short(plan.held.total)}", class_=class_)
    for row, machine in enumerate(map(machine_named, MACHINES)):
        y = top + 8 + 19 * row
        chosen = "small strong" if machine.name == plan.machine_name else "small"
        yield text(0, y + 12, machine.name, class_=chosen)
        yield rect(LEFT, y, min(LENGTH, LENGTH * machine.bytes / full), 13, class_="memory")
        if machine.bytes > full:
            yield _cut(y, 13)
        there = replace(plan, machine_name=machine.name)
        yield text(RIGHT, y + 12, f"{short(machine.bytes)}, {verdict(there)}", class_=chosen)
        if plan.dtype not in machine.peak_flop_per_sec:
            yield text(WIDTH, y + 12, f"its data sheet has no {plan.dtype}", class_="end faint small")
    yield polyline([(need, top - 12), (need, top + 160)], class_="line predicted")
    for row, said in enumerate(words.remarks(plan)):
        yield text(0, top + 184 + 16 * row, said, class_="faint small")
