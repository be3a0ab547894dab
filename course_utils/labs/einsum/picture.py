"""The pattern by the roles of its names, its loops, their cost, and the cost of the orders."""

from collections.abc import Iterator, Sequence

from course_utils import einsums, predict
from course_utils.einsums import Order, operand_name
from course_utils.labs.draw.lettering import fitted, width_of
from course_utils.labs.draw.svg import picture, rect, scaled, text
from course_utils.labs.einsum.asked import Asked, Found
from course_utils.labs.lab import View
from course_utils.quantities import Number, count_text, number_text, rate_text, seconds_text, times_text

WIDTH, ROW, CHIP = 1000, 18, 26
TOP, COSTS, LOOPS_WIDTH, LOOPS_HEIGHT = 60, 610, 580, 144  # COSTS is where their column begins
BARS, LONGEST, MOST_BARS = 160, 300, 5
HEAD = ("order", "cost", "of the cheapest", "measured")
ROLES = ("batch", "kept", "summed")


def view(asked: Asked, found: Found) -> View:
    """The pattern, its loops beside what they cost, and below them the orders, if there are several."""
    loops, loops_height = _loops(asked)
    costs = [*_costs(asked, found)]
    key, _ = _chips([(role, role) for role in ROLES], WIDTH - 194, TOP - 18)
    drawn = [
        _pattern(asked),
        text(0, TOP, "as loops", class_="strong"),
        text(COSTS, TOP, "costs", class_="strong"),
        *(key, loops),
        *(
            fitted(COSTS, TOP + 26 + ROW * row, words, WIDTH, class_)
            for row, (words, class_) in enumerate(costs)
        ),
    ]
    height, table = TOP + 18 + max(loops_height, ROW * len(costs)), []
    if len(asked.orders) > 1:
        drawn += _bars(asked, found, height + 14)
        height += 24 + ROW * min(MOST_BARS, len(asked.orders))
        table = [HEAD, *(_row(asked, found, order) for order in asked.orders)]
    return View(picture(WIDTH, height, *drawn), _meaning(asked, found), table)


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


def _costs(asked: Asked, found: Found) -> Iterator[tuple[str, str]]:
    seconds = found.seconds(asked, asked.orders[0])
    yield f"result {asked.shapes[-1]}", ""
    yield f"{count_text(asked.steps, 'step')} of the loops", ""
    yield _flops_formula(asked), "formula"
    yield f"{count_text(asked.nbytes, 'byte')} in {asked.dtype}, each once", ""
    yield _intensity(asked), ""
    if seconds:
        rate = f", {rate_text(asked.flops / seconds)}" if asked.flops else ""
        yield f"measured: {seconds_text(seconds)}{rate}", "measured-words"


def _intensity(asked: Asked) -> str:
    return f"{number_text(round(predict.intensity(asked.flops, asked.nbytes), 3))} FLOPs per byte"


def _flops_formula(asked: Asked) -> str:
    """FLOPs, and how they come about where that is one product."""
    flops = count_text(asked.flops, "FLOP")
    if len(asked.orders) > 1:
        return f"{flops} in the cheapest order"
    factors = [2] * bool(asked.einsum.summed) + [*asked.size.values()]
    return f"{' × '.join(map(str, factors)) or 1} = {flops}" if len(asked.einsum.operands) == 2 else flops


def _bars(asked: Asked, found: Found, y: Number) -> Iterator[str]:
    """A bar for each order that is shown, the cheapest and torch's own choice marked."""
    shown = _shown(asked, found)
    some = f"; here are {len(shown)}" if len(shown) < len(asked.orders) else ""
    yield text(0, y, f"{len(asked.orders)} orders of multiplying in pairs{some}", class_="strong")
    for row, order in enumerate(shown, 1):
        strong, at = "strong" * (order.flops == asked.flops), y + 4 + ROW * row
        length = max(2, LONGEST * order.flops / asked.orders[-1].flops)
        _, flops, times, seconds = _row(asked, found, order)
        said = [flops, "cheapest" if strong else times]
        said += ["torch's choice"] if order.tree == found.torchs else []
        said += [f"measured {seconds}"] if seconds else []
        yield text(0, at, order.text, class_=f"code {strong}")
        yield rect(BARS, at - 12, length, ROW - 5, class_="predicted" if strong else "limit")
        yield fitted(BARS + length + 8, at, " · ".join(said), WIDTH, strong)


def _shown(asked: Asked, found: Found) -> list[Order]:
    """The cheapest order and the dearest, torch's choice, those that were timed, and as many more as there is room for."""
    orders = asked.orders
    marked = [one for one in orders if one.tree == found.torchs or found.seconds(asked, one)]
    wanted = dict.fromkeys([orders[0], orders[-1], *marked, *orders])
    return sorted([*wanted][:MOST_BARS], key=orders.index)


def _row(asked: Asked, found: Found, order: Order) -> list[str]:
    flops, seconds = count_text(order.flops, "FLOP"), found.seconds(asked, order)
    return [order.text, flops, _times(asked, order), seconds_text(seconds) if seconds else ""]


def _times(asked: Asked, order: Order) -> str:
    """How many times the cheapest order's FLOPs; with more decimals where it is almost as cheap."""
    ratio = order.flops / asked.flops
    return f"{ratio:.3f} times" if 1 < ratio < 1.1 else times_text(ratio)


# In words.


def _meaning(asked: Asked, found: Found) -> str:
    einsum = asked.einsum
    said = []
    for role in ROLES:
        names = [name for name in einsum.names if einsum.role(name) == role]
        said += [f"{role.capitalize()}: {', '.join(names)}."] if names else []
    return " ".join([*said, f"{_cost(asked, found)}.", found.agreement]).strip()


def _cost(asked: Asked, found: Found) -> str:
    cost, dearest = count_text(asked.flops, "FLOP"), asked.orders[-1]
    if len(asked.einsum.operands) == 1:
        return "Nothing is multiplied, so 0 FLOPs by convention"
    if len(asked.orders) == 1:
        if not asked.einsum.summed:
            return f"{cost}: nothing is summed, so 1 for each step, the product"
        said = f"{cost}, 2 for each step, a product and an addition"
        return said if asked.einsum.output else f"{said}; {_intensity(asked)}"
    if dearest.flops == asked.flops:
        return f"{cost} in every order"
    said = f"{cost} as {asked.orders[0].text}; {dearest.text} takes {_times(asked, dearest)} as many"
    theirs = next((order.flops for order in asked.orders if order.tree == found.torchs), asked.flops)
    if theirs > asked.flops:
        said += f"; torch's choice, searched by another count, takes {count_text(theirs, 'FLOP')}"
    return said
