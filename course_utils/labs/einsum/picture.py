"""The pattern by the roles of its names, its loops, their cost, and the cost of the orders."""

from collections.abc import Iterator, Sequence

from course_utils import einsums, predict
from course_utils.einsums import Order, operand_name
from course_utils.labs.draw.lettering import fitted, width_of
from course_utils.labs.draw.svg import picture, rect, scaled, text
from course_utils.labs.einsum.asked import AGREEMENT, Asked, Found
from course_utils.labs.lab import View
from course_utils.quantities import Number, count_text, number_text, rate_text, seconds_text, times_text

WIDTH, ROW, CHIP = 1000, 18, 26
TOP, COSTS, LOOPS_WIDTH, LOOPS_HEIGHT = 60, 610, 580, 144  # COSTS is where their column begins
BARS, LONGEST, MOST_BARS = 160, 300, 5
ROLES = ("batch", "kept", "summed")


def view(asked: Asked, found: Found) -> View:
    """The pattern, its loops beside what they cost, and below them the orders, if there are several."""
    loops, loops_height = _loops(asked)
    costs = _costs(asked, found)
    key, _ = _chips([(role, role) for role in ROLES], WIDTH - 194, TOP - 18)
    drawn = [
        _pattern(asked),
        text(0, TOP, "as loops", class_="strong"),
        text(COSTS, TOP, "costs", class_="strong"),
        *(key, loops),
    ]
    for row, (words, class_) in enumerate(costs):
        drawn.append(fitted(COSTS, TOP + 26 + ROW * row, words, WIDTH, class_))
    height = TOP + 18 + max(loops_height, ROW * len(costs))
    if len(asked.orders) > 1:
        drawn += _bars(asked, found, height + 14)
        height += 24 + ROW * min(MOST_BARS, len(asked.orders))
    return View(picture(WIDTH, height, *drawn), _meaning(asked, found))


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
        chips, end = _chips([(einsum.role(name), f"{name} {asked.size[name]:,}") for name in names], begin, 6)
        parts += [text(x, 24, label, class_="strong"), chips]
        x = end + 18
    return scaled(0, 0, WIDTH / x, *parts)


def _loops(asked: Asked) -> tuple[str, Number]:
    """The loops, drawn smaller if they are too many for their place or too long, and their height."""
    lines = einsums.loop_nest(asked.einsum, asked.size).splitlines()
    parts = []
    for row, line in enumerate(lines):
        code = line.lstrip()
        parts.append(text(width_of(line, "code") - width_of(code, "code"), ROW * row, code, class_="code"))
    widest = max(width_of(line, "code") for line in lines)
    scale = min(1, LOOPS_WIDTH / widest, LOOPS_HEIGHT / (ROW * len(lines)))
    return scaled(0, TOP + 24, scale, *parts), ROW * len(lines) * scale


# What it costs.


def _costs(asked: Asked, found: Found) -> list[tuple[str, str]]:
    nbytes = sum(predict.tensor_bytes(shape, asked.dtype) for shape in asked.shapes)
    intensity = number_text(round(predict.intensity(asked.flops, nbytes), 3))
    rows = [
        (f"result {asked.shapes[-1]}", ""),
        (f"{count_text(asked.einsum.steps(asked.size), 'step')} of the loops", ""),
        (_flops_formula(asked), "formula"),
        (f"{count_text(nbytes, 'byte')} in {asked.dtype}, each once", ""),
        (f"{intensity} FLOPs per byte", ""),
    ]
    seconds = found.get(asked.key(asked.orders[0]))
    if seconds:
        rate = f", {rate_text(asked.flops / seconds)}" if asked.flops else ""
        rows.append((f"measured: {seconds_text(seconds)}{rate}", "measured-words"))
    return rows


def _flops_formula(asked: Asked) -> str:
    """FLOPs, and how they come about where that is one product."""
    flops = count_text(asked.flops, "FLOP")
    if len(asked.orders) > 1:
        return f"{flops} in the cheapest order"
    return f"{' × '.join(map(str, [_flops_per_step(asked), *asked.size.values()]))} = {flops}"


def _flops_per_step(asked: Asked) -> int:
    return 1 + bool(asked.einsum.summed) if len(asked.einsum.operands) > 1 else 0


def _bars(asked: Asked, found: Found, y: Number) -> Iterator[str]:
    """A bar for each order that there is room for: the cheapest, the dearest, those that were timed, and others."""
    orders = asked.orders
    timed = [order for order in orders if asked.key(order) in found]
    wanted = dict.fromkeys([orders[0], orders[-1], *timed, *orders])
    shown = sorted([*wanted][:MOST_BARS], key=orders.index)
    yield text(0, y, f"{len(shown)} of {len(orders)} orders of multiplying in pairs", class_="strong")
    for row, order in enumerate(shown, 1):
        strong, at = "strong" * (order.flops == asked.flops), y + 4 + ROW * row
        length = max(2, LONGEST * order.flops / orders[-1].flops)
        said = f"{count_text(order.flops, 'FLOP')} · {'cheapest' if strong else _times(asked, order)}"
        if order in timed:
            said += f" · measured {seconds_text(found[asked.key(order)])}"
        yield text(0, at, order.text, class_=f"code {strong}")
        yield rect(BARS, at - 12, length, ROW - 5, class_="predicted" if strong else "limit")
        yield fitted(BARS + length + 8, at, said, WIDTH, strong)


def _times(asked: Asked, order: Order) -> str:
    ratio = order.flops / asked.flops
    return times_text(ratio) if ratio >= 1.005 else "hardly more"


# In words.


def _meaning(asked: Asked, found: Found) -> str:
    einsum = asked.einsum
    said = []
    for role in ROLES:
        names = [name for name in einsum.names if einsum.role(name) == role]
        said += [f"{role.capitalize()}: {', '.join(names)}."] if names else []
    return " ".join([*said, _cost(asked), found.get(AGREEMENT, "")]).strip()


def _cost(asked: Asked) -> str:
    flops, cheapest, dearest = count_text(asked.flops, "FLOP"), asked.orders[0], asked.orders[-1]
    if dearest.flops > cheapest.flops:
        return f"{flops} as {cheapest.text}; {dearest.text}: {_times(asked, dearest)}."
    if len(asked.orders) > 1:
        return f"{flops} in every order."
    if len(asked.einsum.operands) == 1:
        return f"{flops} by convention, as nothing is multiplied."
    if not asked.einsum.summed:
        return f"{flops}, 1 for each step: nothing is summed."
    return f"{flops}, 2 for each step: a product and an addition."
