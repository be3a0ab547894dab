"""What the recompute lab draws: what each block keeps at three moments, and the frontier of bytes and FLOPs."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from course_utils.labs import recompute_words as words
from course_utils.labs.lettering import fitted
from course_utils.labs.memory_words import short
from course_utils.labs.panel import View
from course_utils.labs.recompute_plan import SCORES, Found, Plan
from course_utils.labs.svg import dot, picture, polyline, rect, text
from course_utils.quantities import Number

WIDTH, HEIGHT = 940, 560
STRIP, TALL = 430, 46  # the blocks' strips: how long, and how tall a block is that keeps everything
PLOT_LEFT, PLOT_TOP, PLOT_WIDTH, PLOT_HEIGHT = 545, 182, 350, 250
LEAST_RATIO, MOST_RATIO = 0.985, 1.385
BELOW_ZERO = 24  # room for the names of points at the bottom
DIGIT = 7.7  # width of a small one


def view(plan: Plan, measured: Mapping[str, Mapping[str, int]]) -> View:
    """The whole picture; `measured` is what was counted of these blocks, by what was computed again."""
    drawn = [*_formulas(plan, measured), *_moments(plan), *_whole(plan), *_frontier(plan, measured)]
    svg = picture(WIDTH, HEIGHT, *drawn)
    return View(svg, words.meaning(plan, best_choice(plan)), words.table(plan, measured.get(plan.again)))


@lru_cache(maxsize=64)
def frontier(everything_kept: Plan) -> dict[str, tuple[Number, int]]:
    """For each choice of what is computed again: FLOPs of a step over those of the plain one, and its peak of bytes."""
    plans = {again: everything_kept.choosing(again) for again in everything_kept.choices}
    return {again: (plan.ratio, plan.predicted["peak"]) for again, plan in plans.items()}


def best_choice(plan: Plan) -> str:
    """The least peak; of equals the one with the fewest FLOPs."""
    points = frontier(plan.with_everything_kept)
    return min(points, key=lambda again: (points[again][1], points[again][0]))


def _formulas(plan: Plan, measured: Found) -> Iterator[str]:
    said, on_the_right = words.title(plan)
    yield text(0, 18, said, class_="strong large")
    yield text(WIDTH, 18, on_the_right, class_="end faint small")
    classes = {"measured": "measured-words" if plan.again in measured else "faint", "at most": "formula"}
    for row, (name, formula) in enumerate(words.formulas(plan, measured.get(plan.again))):
        y = 45 + 22 * row
        yield text(0, y, name, class_="faint")
        yield fitted(88, y, formula, WIDTH, classes.get(name, ""))


# The blocks.


def _moments(plan: Plan) -> Iterator[str]:
    """With everything kept, behind the forward pass, and when most is kept."""
    whole = plan.with_everything_kept.stack
    share = whole.input_bytes / whole.block_bytes
    everything = [(share, 1 - share)] * plan.layers
    y = 168
    yield text(0, y, "Kept of each block", class_="strong")
    for x, class_, said in ((STRIP - 155, "stored", "its input"), (STRIP - 66, "rebuilt", "its inside")):
        yield rect(x - 18, y - 11, 13, 13, class_=class_) + text(x, y, said, class_="small")
    yield from _strip(
        plan, y + 10, "after the forward: nothing computed again", whole.kept_bytes(0), everything
    )
    if plan.again == "0":
        yield text(0, y + 104, "Give segments a length s, or a layer's scores their tick,", class_="faint")
        yield text(0, y + 124, "to see what is kept instead, and when most is kept.", class_="faint")
        return
    kept, peak = plan.predicted["kept"], plan.predicted["peak"]
    if plan.scores_again:
        inside = plan.stack.block_bytes / whole.block_bytes - share
        after = [(share, inside)] * plan.layers
        added = plan.stack.again_bytes / whole.block_bytes
        yield from _strip(plan, y + 88, "after the forward: without the scores", kept, after)
        last = [*after[:-1], (share, inside + added)]
        where = (
            "on the way back: the last block's scores" if added else "on the way back: never more than that"
        )
        yield from _strip(plan, y + 166, where, peak, last)
        return
    segments = plan.stack.segments(plan.segment)
    inputs = [(share if block % plan.segment == 0 else 0, 0.0) for block in range(plan.layers)]
    yield from _strip(plan, y + 88, "after the forward: each segment's input", kept, inputs)
    waiting = plan.stack.peak_bytes(plan.segment)["inputs of earlier segments"] // plan.stack.input_bytes
    begin = waiting * plan.segment
    rebuilt = [
        (share, 1 - share) if n == begin else (0.0, 1.0) for n in range(begin, begin + segments[waiting])
    ]
    at_peak = [*inputs[:begin], *rebuilt]
    where = f"on the way back: segment {waiting + 1} of {len(segments)} rebuilt"
    yield from _strip(plan, y + 166, where, peak, at_peak)


def _strip(
    plan: Plan, y: Number, name: str, nbytes: int, shares: list[tuple[Number, Number]]
) -> Iterator[str]:
    """Each block as tall as what it keeps: its input below, what is inside it above."""
    yield from _frames(plan, y + 10, name)
    yield text(STRIP, y + 12, short(nbytes), class_="end strong")
    slot, bottom = STRIP / plan.layers, y + 22 + TALL
    width = slot - min(3, slot / 5)
    for number, (of_input, inside) in enumerate(shares):
        for below, share, class_ in ((0, of_input, "stored"), (of_input, inside, "rebuilt")):
            if share:
                height = max(1.5, TALL * share)
                top = min(bottom - height, bottom - TALL * (below + share))
                yield rect(number * slot, top, width, height, class_=class_)


def _frames(plan: Plan, y: Number, name: str) -> Iterator[str]:
    """What the strip shows, and an outline around each segment."""
    yield text(0, y + 2, name, class_="faint")
    slot = STRIP / plan.layers
    lengths = [plan.layers] if plan.again in ("0", SCORES) else plan.stack.segments(plan.segment)
    begin = 0
    for length in lengths:
        edge = min(3, slot / 5)
        yield rect(begin * slot, y + 11, length * slot - edge, TALL + 2, class_="segment")
        begin += length


def _whole(plan: Plan) -> Iterator[str]:
    """All that a step of training holds, of which only a part can be less."""
    top, whole = 440, plan.with_everything_kept.predicted["peak"]
    state, peak = plan.state_bytes, plan.predicted["peak"]
    full = state + whole
    yield text(0, top, "With parameters, gradients and AdamW's state", class_="strong")
    bars = {"all kept": whole, words.again_short(plan): peak}
    for row, (name, kept) in enumerate(bars.items()):
        y = top + 12 + 40 * row
        length = STRIP * state / full
        yield text(0, y + 12, name, class_="faint")
        yield text(STRIP, y + 12, f"{short(state)} + {short(kept)}", class_="end")
        yield rect(0, y + 18, length, 14, class_="state")
        yield rect(length, y + 18, STRIP * kept / full, 14, class_="stored")


# The frontier.


def place(ratio: Number, nbytes: Number, most: Number) -> tuple[Number, Number]:
    """Of a point in the plot."""
    x = PLOT_LEFT + PLOT_WIDTH * (ratio - LEAST_RATIO) / (MOST_RATIO - LEAST_RATIO)
    return x, PLOT_TOP + (PLOT_HEIGHT - BELOW_ZERO) * (1 - nbytes / (1.08 * most))


def _frontier(plan: Plan, measured: Found) -> Iterator[str]:
    points = frontier(plan.with_everything_kept)
    plain = plan.with_everything_kept.predicted
    most = plain["peak"]
    yield from _axes(most)
    at = {again: place(ratio, peak, most) for again, (ratio, peak) in points.items()}
    line = [at[again] for again in points if again not in ("0", SCORES)]
    yield polyline(line, class_="line predicted thin")
    size = 4.5 if plan.layers <= 24 else 3
    for spot in at.values():
        yield dot(*spot, size, class_="predicted")
    for found in measured.values():
        yield dot(*place(found["flops"] / plain["flops"], found["peak"], most), size - 2, class_="measured")
    best = best_choice(plan)
    yield dot(*at[best], 8, class_="ring")
    yield dot(*at[plan.again], 12, class_="start")
    yield from _names(plan, at, best)
    yield from _legend(plan, points, best, measured)


def _axes(most: int) -> Iterator[str]:
    right, bottom = PLOT_LEFT + PLOT_WIDTH, PLOT_TOP + PLOT_HEIGHT
    yield text(PLOT_LEFT - 62, PLOT_TOP - 14, "Most bytes kept at one time", class_="strong")
    yield text(right, bottom + 36, "FLOPs of a step, over those with all kept", class_="faint end")
    for quarter in range(5):
        y = place(1, most * quarter / 4, most)[1]
        yield polyline([(PLOT_LEFT, y), (right, y)], class_="grid")
        yield text(PLOT_LEFT - 6, y + 4, short(round(most * quarter / 4)), class_="end small")
    for sixths in (6, 7, 8):
        x = place(sixths / 6, 0, most)[0]
        yield polyline([(x, PLOT_TOP), (x, bottom)], class_="grid")
        yield text(x, bottom + 18, f"{sixths}/6" if sixths > 6 else "1", class_="middle small")


def _names(plan: Plan, at: Mapping[str, tuple[Number, Number]], best: str) -> Iterator[str]:
    """The points' lengths, as many as there is room for, the most important first."""
    taken: list[tuple[Number, Number, Number]] = []  # where a name begins and ends, and its height
    others = sorted((again for again in at if again not in ("0", SCORES)), key=_roundness)
    for again in dict.fromkeys(["0", SCORES, plan.again, best, *others]):
        if again not in at:
            continue
        said = {plan.again: f"s = {again}", "0": "all kept", SCORES: "scores"}.get(again, again)
        after = at.get(f"{int(again) + 1}") if again.isdigit() else None
        falls = after is not None and after[1] > at[again][1] + 4
        x, y = at[again][0] + 12, at[again][1] + 16
        if again == "0":
            x, y = x + 3, y - 23
        elif falls:
            x -= 24 + DIGIT * len(said)
        end = x + DIGIT * len(said)
        if not any(x < e + 3 and b < end + 3 and abs(y - h) < 15 for b, e, h in taken):
            taken.append((x, end, y))
            yield text(x, y, said, class_="small")


def _roundness(again: str) -> tuple[int, int]:
    """Powers of two first."""
    number = int(again)
    return number & (number - 1), number


def _legend(
    plan: Plan, points: Mapping[str, tuple[Number, Number]], best: str, measured: Found
) -> Iterator[str]:
    """What the rings are, with their numbers."""
    y, x = PLOT_TOP + PLOT_HEIGHT + 64, PLOT_LEFT - 50
    chosen, least = (
        f"{words.again_short(plan.choosing(again))}: {short(points[again][1])}, {points[again][0]:.4g} ×"
        for again in (plan.again, best)
    )
    yield dot(x, y - 5, 9, class_="start") + text(x + 18, y, f"chosen: {chosen}")
    yield dot(x, y + 19, 7, class_="ring") + text(x + 18, y + 24, f"least: {least}", class_="formula")
    yield dot(x, y + 43, 4, class_="predicted") + text(x + 18, y + 48, "predicted", class_="formula")
    count = f"measured: {len(measured)} of {len(points)}" if measured else "not measured yet"
    class_ = "measured-words" if measured else "faint"
    yield dot(x + 120, y + 43, 4, class_="measured") + text(x + 134, y + 48, count, class_=class_)
