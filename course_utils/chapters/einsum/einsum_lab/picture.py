"""The pattern by the roles of its names, its loops, their cost, and the cost of the orders."""

from collections.abc import Iterator, Sequence

from course_utils.chapters.einsum.einsum_lab.asked import Asked, Found
from course_utils.core import einsums, predict
from course_utils.core.einsums import operand_name
from course_utils.core.say import (
    Number,
    count_text,
    listed,
    number_text,
    rate_text,
    seconds_text,
    times_text,
)
from course_utils.engine.labs.draw.lettering import fitted, width_of
from course_utils.engine.labs.draw.svg import picture, rect, scaled, text
from course_utils.engine.labs.lab import View

WIDTH, ROW, CHIP = 1000, 18, 26
TOP, COSTS, LOOPS_WIDTH, LOOPS_HEIGHT = 60, 610, 580, 144  # COSTS is where their column begins
BARS, LONGEST, MOST_BARS = 160, 300, 5
ROLES = ("batch", "kept", "summed")
WHY = (  # so many FLOPs for each step of the loops
    " by convention, as nothing is multiplied",
    ", 1 for each step: nothing is summed",
    ", 2 for each step: a product and an addition",
)


def view(asked: Asked, found: Found) -> View:
    """The pattern, its loops beside what they cost, and below them the orders, if there are several."""
    loops, loops_height = _loops(asked)
    costs = list(_costs(asked, found))
    key, _ = _chips([(role, role) for role in ROLES], WIDTH - 194, TOP - 18)
    titles = [
        text(x, TOP, title, class_="strong") for x, title in ((0, "as loops"), (COSTS, "costs"))
    ]
    drawn = [_pattern(asked), key, *titles, loops]
    for row, (words, class_) in enumerate(costs):
        drawn.append(fitted(COSTS, TOP + 26 + ROW * row, words, WIDTH, class_))
    height = TOP + 18 + max(loops_height, ROW * len(costs))
    if len(asked.orders) > 1:
        drawn += _bars(asked, found, height + 14)
        height += 24 + ROW * min(MOST_BARS, len(asked.orders))
    return View(picture(WIDTH, height, *drawn), _meaning(asked))


# The pattern and its loops.


def _chips(chips: Sequence[tuple[str, str]], x: Number, y: Number) -> tuple[str, Number]:
    """Words in boxes, each in the colour of its role; and where the next one would begin."""
    parts = []
    for role, words in chips:
        width = width_of(words) + 14
        chip = rect(x, y, width, CHIP) + text(x + width / 2, y + 18, words, class_="middle")
        parts.append(f'<g class="{role}">{chip}</g>')
        x += width + 4
    return "".join(parts), x


def _pattern(asked: Asked) -> str:
    """Operands and result as rows of chips."""
    einsum, parts, x = asked.einsum, [], 0
    labels = [*map(operand_name, range(len(einsum.operands))), "→ result"]
    for label, names in zip(labels, (*einsum.operands, einsum.output), strict=True):
        begin = x + width_of(label, "strong") + 8
        chips, end = _chips(
            [(einsum.role(name), f"{name} {asked.size[name]:,}") for name in names], begin, 6
        )
        parts += [text(x, 24, label, class_="strong"), chips]
        x = end + 18
    return scaled(0, 0, WIDTH / x, *parts)


def _loops(asked: Asked) -> tuple[str, Number]:
    """The loops, drawn smaller if they are too many for their place or too long, and their height."""
    lines = einsums.loop_nest(asked.einsum, asked.size).splitlines()
    widths = [width_of(line, "code") for line in lines]
    parts = []
    for row, (line, width) in enumerate(zip(lines, widths, strict=True)):
        code = line.lstrip()
        parts.append(text(width - width_of(code, "code"), ROW * row, code, class_="code"))
    scale = min(1, LOOPS_WIDTH / max(widths), LOOPS_HEIGHT / (ROW * len(lines)))
    return scaled(0, TOP + 24, scale, *parts), ROW * len(lines) * scale


# What it costs.


def _costs(asked: Asked, found: Found) -> Iterator[tuple[str, str]]:
    nbytes = sum(predict.tensor_bytes(shape, asked.dtype) for shape in asked.shapes)
    flops, several = count_text(asked.flops, "FLOP"), len(asked.orders) > 1
    per_step = _flops_per_step(asked)
    gone = asked.einsum.summed_first if per_step else ()
    multiplied = [size for name, size in asked.size.items() if name not in gone]
    factors = " × ".join(map(str, [per_step, *multiplied]))
    yield f"{count_text(asked.einsum.steps(asked.size), 'step')} of the loops", ""
    yield f"{flops} in the cheapest order" if several else f"{factors} = {flops}", "formula"
    yield f"{count_text(nbytes, 'byte')} in {asked.dtype}, each once", ""
    yield f"{number_text(round(predict.intensity(asked.flops, nbytes), 3))} FLOPs per byte", ""
    seconds = found.get(asked.key(asked.orders[0]))
    if seconds:
        rate = f", {rate_text(asked.flops / seconds)}" if asked.flops else ""
        yield f"measured: {seconds_text(seconds)}{rate}", "measured-words"


def _flops_per_step(asked: Asked) -> int:
    """A multiplication, and an addition if something is summed that no operand has alone."""
    einsum = asked.einsum
    if len(einsum.operands) == 1:
        return 0
    return 2 if set(einsum.summed) - set(einsum.summed_first) else 1


def _bars(asked: Asked, found: Found, y: Number) -> Iterator[str]:
    """A bar for each order that there is space for: the cheapest ones, and the dearest."""
    orders = asked.orders
    shown = dict.fromkeys([*orders[: MOST_BARS - 1], orders[-1]])
    yield text(
        0, y, f"{len(shown)} of {len(orders)} orders of multiplying in pairs", class_="strong"
    )
    for row, order in enumerate(shown, 1):
        strong, at = "strong" * (order.flops == asked.flops), y + 4 + ROW * row
        length = max(2, LONGEST * order.flops / orders[-1].flops)
        said = f"{count_text(order.flops, 'FLOP')} · "
        said += "cheapest" if strong else times_text(order.flops / asked.flops)
        if asked.key(order) in found:
            said += f" · measured {seconds_text(found[asked.key(order)])}"
        yield text(0, at, order.text, class_=f"code {strong}")
        yield rect(BARS, at - 12, length, ROW - 5, class_="predicted" if strong else "limit")
        yield fitted(BARS + length + 8, at, said, WIDTH, strong)


# In words.


def _meaning(asked: Asked) -> str:
    einsum, said = asked.einsum, []
    for role in ROLES:
        names = [name for name in einsum.names if einsum.role(name) == role]
        said += [f"{role.capitalize()}: {', '.join(names)}."] if names else []
    return " ".join([*said, f"{count_text(asked.flops, 'FLOP')}{_why(asked)}."])


def _why(asked: Asked) -> str:
    per_step = _flops_per_step(asked)
    first = _first_words(asked) if per_step else ""
    if len(asked.orders) > 1:
        return f"{_compared(asked)}. {first}" if first else _compared(asked)
    if first:
        return f", {per_step} for each combination of the other names: {first}"
    return WHY[per_step]


def _compared(asked: Asked) -> str:
    cheapest, dearest = asked.orders[0], asked.orders[-1]
    if dearest.flops == cheapest.flops:
        return " in every order"
    return f" as {cheapest.text}; {dearest.text}: {times_text(dearest.flops / cheapest.flops)}"


def _first_words(asked: Asked) -> str:
    """Which names are summed before anything is multiplied, and why; empty if there are none."""
    names = asked.einsum.summed_first
    if not names:
        return ""
    verb = "is" if len(names) == 1 else "are each"
    return f"{listed(names)} {verb} in one operand alone and summed first, which counts 0"
