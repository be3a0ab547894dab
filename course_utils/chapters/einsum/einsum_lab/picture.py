"""The picture: the pattern by the roles of its names, its loops, their cost, and the orders."""

from collections.abc import Iterator, Sequence

from course_utils.chapters.einsum.einsum_lab.asked import Asked, Found
from course_utils.core import einsums, predict
from course_utils.core.einsums import Order, operand_name
from course_utils.core.say import (
    Number,
    count_text,
    listed,
    number_text,
    rate_text,
    seconds_text,
    times_text,
)
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.core.say.wording import whole_text
from course_utils.engine.labs.draw.lettering import fitted, width_of
from course_utils.engine.labs.draw.svg import picture, rect, scaled, text
from course_utils.engine.labs.lab import View

WIDTH = 1000
ROW = 18
CHIP = 26  # high
TOP = 60
COSTS = 610  # where the column of costs begins
# The loops are made smaller if they need more than this.
LOOPS_WIDTH = 580
LOOPS_HEIGHT = 144
BARS = 160  # where the bars of the orders begin
LONGEST = 300  # the length of the dearest order's bar
MOST_BARS = 5
MOST_NAMED = 3  # of the cheapest orders, in the sentence on them
ROLES = ("batch", "kept", "summed")
ROLES_X = 806  # where the chips that explain the roles' colours begin
NAMES_OF = {
    "batch": template("Batch: {names}."),
    "kept": template("Kept: {names}."),
    "summed": template("Summed: {names}."),
}
WHY = (  # why an iteration of the loops takes 0, 1 or 2 FLOPs
    template("{flops} by convention, because nothing is multiplied."),
    template("{flops}, 1 for each iteration, because nothing is summed."),
    template("{flops}, 2 for each iteration: a multiplication and an addition."),
)
# Of one name, or of several, that are summed before anything is multiplied.
ONE_SUMMED_FIRST = template(
    "{flops}, {each} for each combination of the other names: "
    "{names} is in one operand alone and summed first, which counts 0."
)
SEVERAL_SUMMED_FIRST = template(
    "{flops}, {each} for each combination of the other names: "
    "{names} are each in one operand alone and summed first, which counts 0."
)
# On what the cheapest order takes, or on the cheapest ones if several take the same.
IN_ONE_ORDER = template("{flops} in the order {cheapest}; {dearest} takes {times} as many.")
IN_SEVERAL_ORDERS = template("{flops} in the orders {cheapest}; {dearest} takes {times} as many.")


def view(asked: Asked, found: Found) -> View:
    """Draw the pattern, its loops beside their cost, and below them the orders, if several."""
    loops, loops_height = _loops(asked)
    costs = list(_costs(asked, found))
    roles, _ = _chips([(role, role) for role in ROLES], ROLES_X, TOP - 18)
    drawn = [
        _pattern(asked),
        roles,
        text(0, TOP, translated("as loops"), class_="strong"),
        text(COSTS, TOP, translated("costs"), class_="strong"),
        loops,
    ]
    for row, (words, class_) in enumerate(costs):
        drawn.append(fitted(COSTS, TOP + 26 + ROW * row, words, WIDTH, class_))
    height = TOP + 18 + max(loops_height, ROW * len(costs))
    if len(asked.orders) > 1:
        drawn += _bars(asked, found, height + 14)
        height += 24 + ROW * min(MOST_BARS, len(asked.orders))
    return View(picture(WIDTH, height, *drawn), _meaning(asked))


# The pattern and its loops.


def _chips(chips: Sequence[tuple[str, str]], x: Number, y: Number) -> tuple[str, Number]:
    """Draw each (role, words) as a box in the role's colour.

    The first box begins at (x, y). Return the drawing, and the x at which another box would begin.
    """
    parts = []
    for role, words in chips:
        width = width_of(words) + 14
        box = rect(x, y, width, CHIP)
        label = text(x + width / 2, y + 18, words, class_="middle")
        parts.append(f'<g class="{role}">{box}{label}</g>')
        x += width + 4
    return "".join(parts), x


def _pattern(asked: Asked) -> str:
    """Draw the operands and the result as rows of chips, smaller if the picture is too narrow."""
    einsum = asked.einsum
    labelled = [(operand_name(number), names) for number, names in enumerate(einsum.operands)]
    labelled.append(("→ result", einsum.output))
    parts = []
    x = 0
    for label, names in labelled:
        begin = x + width_of(label, "strong") + 8
        roles_and_words = []  # such as ("batch", "b 16")
        for name in names:
            roles_and_words.append((einsum.role(name), f"{name} {asked.size[name]:,}"))
        chips, end = _chips(roles_and_words, begin, 6)
        parts.append(text(x, 24, label, class_="strong"))
        parts.append(chips)
        x = end + 18
    return scaled(0, 0, WIDTH / x, *parts)


def _loops(asked: Asked) -> tuple[str, Number]:
    """Draw the loops, smaller if there is no space for all; return the drawing and its height."""
    lines = einsums.loop_nest(asked.einsum, asked.size).splitlines()
    parts = []
    for row, line in enumerate(lines):
        code = line.lstrip()
        indent = width_of(line, "code") - width_of(code, "code")  # of the spaces in front
        parts.append(text(indent, ROW * row, code, class_="code"))
    width = max(width_of(line, "code") for line in lines)
    height = ROW * len(lines)
    scale = min(1, LOOPS_WIDTH / width, LOOPS_HEIGHT / height)
    return scaled(0, TOP + 24, scale, *parts), height * scale


# What the product costs.


def _costs(asked: Asked, found: Found) -> Iterator[tuple[str, str]]:
    """Yield lines on the costs, each as its words and their CSS class."""
    iterations = asked.einsum.steps(asked.size)
    if iterations == 1:
        yield translated("1 iteration of the loops"), ""
    else:
        yield translated("{count} iterations of the loops", count=whole_text(iterations)), ""
    yield _flops_in_words(asked), "formula"
    nbytes = sum(predict.tensor_bytes(shape, asked.dtype) for shape in asked.shapes)
    kept = translated(
        "{count} bytes in {dtype}, each once", count=whole_text(nbytes), dtype=asked.dtype
    )
    yield kept, ""
    intensity = round(predict.intensity(asked.flops, nbytes), 3)
    yield translated("{intensity} FLOPs per byte", intensity=number_text(intensity)), ""
    seconds = found.get(asked.key(asked.orders[0]))
    if seconds:
        # A sum or a transpose takes 0 FLOPs, so a rate would say nothing.
        rate = f", {rate_text(asked.flops / seconds)}" if asked.flops else ""
        time = f"{seconds_text(seconds)}{rate}"
        yield translated("measured: {time}", time=time), "measured-words"


def _flops_in_words(asked: Asked) -> str:
    """Return the FLOPs as a product of sizes; if there are several orders, as a number alone."""
    flops = count_text(asked.flops, "FLOP")
    if len(asked.orders) > 1:
        return translated("{flops} in the cheapest order", flops=flops)
    per_step = _flops_per_step(asked)
    factors = [str(per_step)]
    # A name that is summed before the product is no factor of it. With one operand there is no
    # product: the FLOPs are 0, and all sizes are written, as in 0 × 4 × 8 = 0 FLOPs.
    left_out = () if per_step == 0 else asked.einsum.summed_first
    for name, size in asked.size.items():
        if name not in left_out:
            factors.append(str(size))
    return f"{' × '.join(factors)} = {flops}"


def _flops_per_step(asked: Asked) -> int:
    """Return the FLOPs of one iteration of the loops.

    It is 0 with one operand, where nothing is multiplied. Otherwise a multiplication counts 1, and
    if products are summed, an addition counts 1 more.
    """
    einsum = asked.einsum
    if len(einsum.operands) == 1:
        return 0
    summed_with_products = set(einsum.summed) - set(einsum.summed_first)
    return 2 if summed_with_products else 1


def _bars(asked: Asked, found: Found, y: Number) -> Iterator[str]:
    """Draw a bar for each of the cheapest orders that there is space for, and for the dearest."""
    dearest = asked.orders[-1]  # they are sorted by their FLOPs
    shown = asked.orders[: MOST_BARS - 1]
    if dearest not in shown:
        shown = [*shown, dearest]
    title = translated(
        "{shown} of {all} orders of multiplying in pairs",
        shown=len(shown),
        all=len(asked.orders),
    )
    yield text(0, y, title, class_="strong")
    for row, order in enumerate(shown, start=1):
        is_cheapest = order.flops == asked.flops
        words_class = "strong" if is_cheapest else ""
        bar_class = "predicted" if is_cheapest else "limit"
        baseline = y + 4 + ROW * row
        length = max(2, LONGEST * order.flops / dearest.flops)  # a shorter bar could not be seen
        yield text(0, baseline, order.text, class_=f"code {words_class}")
        yield rect(BARS, baseline - 12, length, ROW - 5, class_=bar_class)
        words = _order_in_words(asked, order, found)
        yield fitted(BARS + length + 8, baseline, words, WIDTH, words_class)


def _order_in_words(asked: Asked, order: Order, found: Found) -> str:
    """Return the order's FLOPs in words, how many times the cheapest's, and its measured time."""
    words = [count_text(order.flops, "FLOP")]
    if order.flops == asked.flops:
        words.append(translated("cheapest"))
    else:
        words.append(times_text(order.flops / asked.flops))
    seconds = found.get(asked.key(order))
    if seconds is not None:
        words.append(translated("measured {time}", time=seconds_text(seconds)))
    return " · ".join(words)


# In words.


def _meaning(asked: Asked) -> str:
    """Return sentences on the role of each name, on the FLOPs, and on why there are so many."""
    einsum = asked.einsum
    sentences = []
    for role in ROLES:
        names = [name for name in einsum.names if einsum.role(name) == role]
        if names:
            sentences.append(translated(NAMES_OF[role], names=", ".join(names)))
    return in_a_row(*sentences, _on_flops(asked))


def _on_flops(asked: Asked) -> str:
    """Return sentences on the FLOPs, and on why there are so many."""
    flops = count_text(asked.flops, "FLOP")
    per_step = _flops_per_step(asked)
    summed_first = asked.einsum.summed_first if per_step else ()
    if len(asked.orders) > 1:
        return in_a_row(_compared(asked, flops), _on_summed_first(summed_first))
    if summed_first:
        sentence = ONE_SUMMED_FIRST if len(summed_first) == 1 else SEVERAL_SUMMED_FIRST
        return translated(sentence, flops=flops, each=per_step, names=listed(summed_first))
    return translated(WHY[per_step], flops=flops)


def _compared(asked: Asked, flops: str) -> str:
    """Return a sentence on how many times as many FLOPs the dearest order takes as the cheapest."""
    cheapest = [order.text for order in asked.cheapest]
    dearest = asked.orders[-1]
    if len(cheapest) == len(asked.orders):
        return translated("{flops} in every order.", flops=flops)
    sentence = IN_ONE_ORDER if len(cheapest) == 1 else IN_SEVERAL_ORDERS
    if len(cheapest) > MOST_NAMED:
        cheapest[MOST_NAMED - 1 :] = [
            translated("{count} others", count=len(cheapest) - MOST_NAMED + 1)
        ]
    return translated(
        sentence,
        flops=flops,
        cheapest=listed(cheapest),
        dearest=dearest.text,
        times=times_text(dearest.flops / asked.flops),
    )


def _on_summed_first(names: Sequence[str]) -> str:
    """Return a sentence on the names that are summed before anything is multiplied; "" without."""
    if not names:
        return ""
    if len(names) == 1:
        return translated(
            "{name} is in one operand alone and summed first, which counts 0.", name=names[0]
        )
    return translated(
        "{names} are each in one operand alone and summed first, which counts 0.",
        names=listed(names),
    )
