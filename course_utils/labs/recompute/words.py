"""What the recompute lab says: its formulas with the numbers filled in, and one line of meaning."""

from collections.abc import Iterator

from course_utils.labs.recompute.asked import Cost, Plan
from course_utils.quantities import bytes_text, count_text, decimal_bytes_text, flops_text, listed, times_text

STATE_BYTES = 16  # for each parameter: itself, its gradient and AdamW's two, in fp32
BLOCKS = {"x W": "x W", "MLP": "x + gelu(x W1) W2, 4H wide before and after GELU,"}  # and GPTs' layers


def formulas(plan: Plan, measured: Cost | None) -> Iterator[tuple[str, str, str]]:
    """What a block keeps, the most that is kept, the FLOPs, the best length, what is held besides, what was measured."""
    yield "a block", _block(plan), ""
    yield "at most", _peak(plan), "formula"
    yield "FLOPs", _flops(plan), ""
    yield "best s", _best(plan), ""
    yield "besides", _state(plan), ""
    if measured is None:
        yield "measured", "not yet", "faint"
        return
    exact = measured == plan.predicted
    beside = "all exactly as predicted" if exact else f"predicted {_counts(plan.predicted)}"
    yield "measured", f"{_counts(measured)}: {beside}", "measured-words"


def _block(plan: Plan) -> str:
    """What a block keeps, and how much of that is its input."""
    kept, of_input = plan.stack.block_bytes, plan.stack.input_bytes
    said = f"{BLOCKS.get(plan.kind, 'a layer')} keeps {kept:,} B, {kept / of_input:.3g} × its input, "
    said += f"B·S·H·4 = {of_input:,} B"
    if plan.kind == "GPT":
        scores = 4 * plan.batch * plan.heads * plan.sequence**2
        said += f", {'without' if plan.scores_again else 'of them'} scores, B·A·S²·4 = {scores:,} B"
    return said


def _peak(plan: Plan) -> str:
    """The most bytes at one time."""
    stack, before = plan.stack, plan.fullest
    rule, terms = "L × block", f"{plan.layers} × {stack.block_bytes:,} B"
    if plan.segment:
        even = plan.layers % plan.segment == 0
        rule = "(L / s - 1) × input + s × block" if even else "inputs + one segment"
        length = stack.segments(plan.segment)[before]
        terms = f"{before} × {stack.input_bytes:,} B + {length} × {stack.block_bytes:,} B"
    elif stack.again_bytes:
        rule, terms = f"{rule} + scores again - freed", f"{terms} + {stack.again_bytes:,} B"
    return f"{rule} = {terms} = {bytes_text(plan.predicted.peak)}"


def _flops(plan: Plan) -> str:
    """FLOPs forward, backward and computed again."""
    flops = plan.stack.step_flops(plan.segment, early_stop=plan.early_stop)
    terms = " + ".join(f"{part} {flops_text(count)}" for part, count in flops.items())
    if plan.early_stop and plan != plan.all_kept:
        count = len(plan.stack.segments(plan.segment)) or plan.layers
        terms += f" (without {count_text(count, 'last product')})"
    return f"{terms} = {6 * plan.ratio:.4g}/6 × a step with all kept"


def _best(plan: Plan) -> str:
    """The rule, and what trying every length finds."""
    stack = plan.all_kept.stack
    rule = f"√(L × input / block) = √({plan.layers} / {stack.block_bytes / stack.input_bytes:.4g})"
    best = f"s = {listed(stack.best_segments)}" if stack.best_segments[0] else "none helps"
    return f"{rule} = {stack.root_segment:.3g}; of all lengths tried, least bytes: {best}"


def _counts(cost: Cost) -> str:
    return f"{cost.kept:,} bytes after the forward, at most {cost.peak:,}, and {cost.flops:,} FLOPs"


def _state(plan: Plan) -> str:
    """What is held besides, whatever is computed again."""
    count = plan.layers * plan.stack.parameters
    held, kept = STATE_BYTES * count, plan.all_kept.predicted.peak
    said = f"parameters, gradients and AdamW's state, {STATE_BYTES} × {count:,} = {decimal_bytes_text(held)}"
    return f"{said}, {times_text(held / kept)} all kept"


def again_text(plan: Plan) -> str:
    """What is computed again, in words.

    >>> again_text(Plan(segment=0)), again_text(Plan(segment=1)), again_text(Plan("GPT", scores_again=True))
    ('nothing computed again', 'segments of 1 block', 'only the scores computed again')
    """
    if plan.scores_again:
        return "only the scores computed again"
    return f"segments of {count_text(plan.segment, 'block')}" if plan.segment else "nothing computed again"


def meaning(plan: Plan) -> str:
    """How many bytes are saved for how many FLOPs, and whether another choice keeps less."""
    peaks = [one.predicted.peak for one in (plan, plan.all_kept, plan.least)]
    most, whole, least = map(decimal_bytes_text, peaks)
    of_all = f"{100 * peaks[0] / peaks[1]:.3g} % of {whole}, for {plan.ratio:.4g} times the FLOPs"
    said = f"With {again_text(plan)}: at most {most} kept at one time, {of_all}."
    better = f"{again_text(plan.least).capitalize()} would keep least: {least}"
    if peaks[0] == peaks[2]:
        return f"{said} Nothing else here keeps less."
    return f"{said} {better} for {plan.least.ratio:.4g} times the FLOPs."
