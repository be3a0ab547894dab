"""What the recompute lab draws: the frontier of bytes and FLOPs, and what each block keeps at three moments."""

from collections.abc import Iterator, Sequence

from course_utils.labs.draw.lettering import account, key
from course_utils.labs.draw.plot import Axis, EndName, Plot, names_beside
from course_utils.labs.draw.svg import dot, picture, polyline, rect, text
from course_utils.labs.lab import View
from course_utils.labs.recompute import words
from course_utils.labs.recompute.asked import Found, Plan
from course_utils.quantities import Number, decimal_bytes_text

WIDTH, HEIGHT = 1000, 396
ROW, FORMULAS_AT = 19, 92
FRONTIER = (78, 148, 340, 202)  # left, top, width, height
NAMES_AT, NAMES_END = 428, 540
STRIPS_AT, STRIPS_TOP, STRIP, STEP, TALL = 556, 156, 444, 74, 42  # a block is TALL that keeps everything


def view(plan: Plan, found: Found) -> View:
    """The formulas with their numbers, the frontier with the chosen point on it, and the blocks."""
    formulas = account(words.formulas(plan, found.get(plan)), FORMULAS_AT, 16, WIDTH, step=ROW)
    drawn = [*formulas, *_frontier(plan, found), *_blocks(plan)]
    return View(picture(WIDTH, HEIGHT, *drawn), words.meaning(plan))


# The frontier.


def frontier_plot(plan: Plan) -> Plot:
    """FLOPs over those of the plain step across, most bytes at one time upwards."""
    most = plan.all_kept.predicted.peak
    said, marks = "FLOPs of a step, over those with all kept", (6 / 6, 7 / 6, 8 / 6)
    across = Axis(0.98, 1.35, said, lambda ratio: f"{6 * ratio:.0f}/6", linear=True, marks=marks)
    quarters = [round(most * quarter / 4) for quarter in range(5)]
    upwards = Axis(0, 1.1 * most, words=decimal_bytes_text, linear=True, marks=quarters)
    return Plot(*FRONTIER, across, upwards)


def _frontier(plan: Plan, found: Found) -> Iterator[str]:
    plot, plain = frontier_plot(plan), plan.all_kept.predicted.flops
    at = {one: plot.at(one.predicted.flops / plain, one.predicted.peak) for one in plan.frontier}
    yield plot.frame("Most bytes kept at one time")
    yield polyline([at[one] for one in at if one.segment], class_="line predicted thin")
    for one, place in at.items():
        yield dot(*place, 4, class_="predicted")
        if one in found:
            yield dot(*plot.at(found[one].flops / plain, found[one].peak), 2.5, class_="measured")
    yield dot(*at[plan.least], 8, class_="ring")
    yield dot(*at[plan], 12, class_="start")
    left, top = at.pop(plan.all_kept)
    yield text(left + 15, top + 4, "all kept", class_="small")
    names = []
    for one in at:
        if one in (plan, plan.least, plan.frontier[-1]):
            said = "scores" if one.scores_again else f"s = {one.segment}"
            names.append(
                EndName(
                    at[one], said + ", least" * (one.predicted.peak == plan.least.predicted.peak), "predicted"
                )
            )
    yield from names_beside(names, NAMES_AT, NAMES_END, plot.top + 8, plot.bottom)


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


def moments(plan: Plan) -> Iterator[tuple[str, int, list[tuple[Number, Number]]]]:
    """What is kept at three moments: bytes, and each block's input and inside as shares of a whole block."""
    stack, all_kept = plan.stack, plan.all_kept
    parts = (stack.input_bytes, stack.block_bytes, stack.again_bytes)
    of_input, of_block, again = (nbytes / all_kept.stack.block_bytes for nbytes in parts)
    whole = [(of_input, 1 - of_input)] * plan.layers
    kept = [(of_input, of_block - of_input)] * plan.layers
    at_peak = [*kept[1:], (of_input, of_block - of_input + again)]
    if plan.segment:
        length = stack.segments(plan.segment)[plan.fullest]
        kept = [(0 if block % plan.segment else of_input, 0) for block in range(plan.layers)]
        at_peak = [*kept[: plan.fullest * plan.segment], *whole[:length]]
    yield "after the forward, nothing computed again", all_kept.predicted.kept, whole
    yield "after the forward, as chosen", plan.predicted.kept, kept
    yield "on the way back, when most is kept", plan.predicted.peak, at_peak


def _strip(plan: Plan, top: Number, shares: Sequence[tuple[Number, Number]]) -> Iterator[str]:
    """An outline for each segment, and in it each block's input below its inside."""
    slot, bottom = STRIP / plan.layers, top + 1 + TALL
    edge = min(3, slot / 5)
    for number, length in enumerate(plan.stack.segments(plan.segment) or [plan.layers]):
        x = STRIPS_AT + number * plan.segment * slot
        yield rect(x, top, length * slot - edge, TALL + 2, class_="segment")
    for number, (of_input, inside) in enumerate(shares):
        for below, share, class_ in ((0, of_input, "stored"), (of_input, inside, "rebuilt")):
            if share:
                height = max(1.5, TALL * share)
                x, y = STRIPS_AT + number * slot, bottom - TALL * below - height
                yield rect(x, y, slot - edge, height, class_=class_)
