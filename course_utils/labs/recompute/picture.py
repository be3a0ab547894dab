"""What the recompute lab draws: the frontier of bytes and FLOPs, and what each block keeps at three moments."""

from collections.abc import Iterator, Mapping, Sequence

from course_utils.labs.draw.lettering import fitted, key, width_of
from course_utils.labs.draw.lines import Point
from course_utils.labs.draw.plot import Axis, Plot
from course_utils.labs.draw.svg import dot, picture, polyline, rect, text
from course_utils.labs.lab import View
from course_utils.labs.recompute import words
from course_utils.labs.recompute.asked import SCORES, Cost, Found, Plan
from course_utils.quantities import Number, decimal_bytes_text

WIDTH, HEIGHT = 1000, 396
ROW, FORMULAS_AT = 19, 92
FRONTIER = (78, 136, 380, 214)  # left, top, width, height
STRIPS_AT, STRIPS_TOP, STRIP, STEP, TALL = 556, 140, 444, 72, 42  # a block is TALL that keeps everything
NAME = 12  # its height


def view(plan: Plan, found: Found) -> View:
    """The formulas with their numbers, the frontier with the chosen point on it, and the blocks."""
    measured = found.counted.get(plan)
    drawn = [*_formulas(plan, measured), *_frontier(plan, found), *_blocks(plan)]
    return View(picture(WIDTH, HEIGHT, *drawn), words.meaning(plan), words.table(plan, measured))


def _formulas(plan: Plan, measured: Cost | None) -> Iterator[str]:
    classes = {"at most": "formula", "measured": "measured-words" if measured else "faint"}
    for row, (name, formula) in enumerate(words.formulas(plan, measured).items()):
        y = 16 + ROW * row
        yield text(0, y, name, class_="faint")
        yield fitted(FORMULAS_AT, y, formula, WIDTH, classes.get(name, ""))
    yield dot(FORMULAS_AT - 10, 11 + ROW, class_="predicted")
    if measured:
        yield dot(FORMULAS_AT - 10, 11 + ROW * 4, class_="measured")


# The frontier.


def frontier_plot(plan: Plan) -> Plot:
    """FLOPs over those of the plain step across, most bytes at one time upwards, with room for names below 0."""
    most = plan.all_kept.predicted.peak
    said, marks = "FLOPs of a step, over those with all kept", (6 / 6, 7 / 6, 8 / 6)
    across = Axis(0.98, 1.395, said, lambda ratio: f"{6 * ratio:.0f}/6", linear=True, marks=marks)
    quarters = [round(most * quarter / 4) for quarter in range(5)]
    upwards = Axis(-0.13 * most, 1.1 * most, words=decimal_bytes_text, linear=True, marks=quarters)
    return Plot(*FRONTIER, across, upwards)


def _frontier(plan: Plan, found: Found) -> Iterator[str]:
    plot, plain = frontier_plot(plan), plan.frontier["0"].flops
    at = {again: plot.at(cost.flops / plain, cost.peak) for again, cost in plan.frontier.items()}
    yield plot.frame("Most bytes kept at one time")
    yield polyline([at[again] for again in at if again not in ("0", SCORES)], class_="line predicted thin")
    size = 4.5 if plan.layers <= 24 else 3
    for place in at.values():
        yield dot(*place, size, class_="predicted")
    for one, cost in found.counted.items():
        if one.all_kept == plan.all_kept:
            yield dot(*plot.at(cost.flops / plain, cost.peak), size - 1.5, class_="measured")
    yield dot(*at[plan.least], 8, class_="ring")
    yield dot(*at[plan.again], 12, class_="start")
    yield from _names(plan, at)


def _names(plan: Plan, at: Mapping[str, Point]) -> Iterator[str]:
    """At the right of their points as far as there is room, the most important first."""
    radii = {plan.least: 8, plan.again: 12}
    taken = [(x - r, y - r, x + r, y + r) for x, y, r in ((*at[one], radii.get(one, 4)) for one in at)]
    powers = [f"{2**power}" for power in range(7)]
    for again in dict.fromkeys([plan.again, plan.least, "0", SCORES, f"{plan.layers}", *powers]):
        if again not in at:
            continue
        words = {"0": "all kept", SCORES: "scores"}.get(again, f"s = {again}")
        words += ", least" * (again == plan.least)
        left, right = at[again][0] + 15, at[again][0] + 15 + width_of(words, "small")
        boxes = [(left, at[again][1] + down, right, at[again][1] + down + NAME) for down in (-6, 5, -17)]
        free = [box for box in boxes if not any(_overlap(box, other) for other in taken)]
        taken += free[:1]
        yield from (text(left, box[1] + NAME - 2, words, class_="small") for box in free[:1])


def _overlap(a: Sequence[Number], b: Sequence[Number]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


# The blocks.


def _blocks(plan: Plan) -> Iterator[str]:
    """Each as tall as what it keeps: with everything kept, behind the forward pass, and when most is kept."""
    yield text(STRIPS_AT, FRONTIER[1] - 8, "Kept of each block", class_="strong")
    yield key([("stored", "its input"), ("rebuilt", "its inside")], STRIPS_AT + 270, FRONTIER[1] - 8)
    for number, (name, nbytes, shares) in enumerate(moments(plan)):
        y = STRIPS_TOP + STEP * number
        yield text(STRIPS_AT, y + 12, name, class_="faint")
        yield text(WIDTH, y + 12, decimal_bytes_text(nbytes), class_="end strong")
        yield from _strip(plan, y + 18, shares)
    yield fitted(STRIPS_AT, STRIPS_TOP + 3 * STEP + 14, words.state_text(plan), WIDTH, "faint small")


def moments(plan: Plan) -> Iterator[tuple[str, int, list[tuple[Number, Number]]]]:
    """What is kept at up to three moments: bytes, and each block's input and inside as shares of a whole block."""
    stack, cost, count = plan.stack, plan.predicted, plan.layers
    parts = (stack.input_bytes, stack.block_bytes - stack.input_bytes, stack.again_bytes)
    of_input, inside, again = (nbytes / plan.all_kept.stack.block_bytes for nbytes in parts)
    whole = plan.all_kept.predicted.kept
    yield "after the forward: nothing computed again", whole, [(of_input, 1 - of_input)] * count
    if plan.scores_again:
        yield "after the forward: without the scores", cost.kept, [(of_input, inside)] * count
        last = "the last block's scores" if again else "never more than that"
        at_peak = [*[(of_input, inside)] * (count - 1), (of_input, inside + again)]
        yield f"on the way back: {last}", cost.peak, at_peak
    elif plan.segment:
        segments, before = stack.segments(plan.segment), plan.fullest
        inputs = [(0 if block % plan.segment else of_input, 0) for block in range(count)]
        yield "after the forward: each segment's input", cost.kept, inputs
        at_peak = [*inputs[: before * plan.segment], (of_input, inside), *[(0, 1)] * (segments[before] - 1)]
        yield f"on the way back: segment {before + 1} of {len(segments)} rebuilt", cost.peak, at_peak


def _strip(plan: Plan, top: Number, shares: Sequence[tuple[Number, Number]]) -> Iterator[str]:
    """An outline for each segment, and in it each block's input below its inside."""
    slot, bottom, begin = STRIP / plan.layers, top + 1 + TALL, 0
    edge = min(3, slot / 5)
    for length in plan.stack.segments(plan.segment) or [plan.layers]:
        yield rect(STRIPS_AT + begin * slot, top, length * slot - edge, TALL + 2, class_="segment")
        begin += length
    for number, (of_input, inside) in enumerate(shares):
        for below, share, class_ in ((0, of_input, "stored"), (of_input, inside, "rebuilt")):
            if share:
                height = max(1.5, TALL * share)
                y = min(bottom - height, bottom - TALL * (below + share))
                yield rect(STRIPS_AT + number * slot, y, slot - edge, height, class_=class_)
