"""What the recompute lab says: its formulas with the numbers filled in, one line of meaning, a table."""

from dataclasses import astuple

from course_utils.labs.recompute.asked import SCORES, STATE_BYTES, Cost, Plan
from course_utils.quantities import bytes_text, count_text, decimal_bytes_text, flops_text

MOST_IN_FULL = 10**13  # bytes
MUCH = 20  # times: from so much state on, what is computed again hardly matters
BLOCKS = {"x W": "x W", "MLP": "x + gelu(x W1) W2, 4H wide before and after GELU,"}  # and GPTs' layers
NAMES = ("bytes kept after the forward pass", "most bytes kept at one time", "FLOPs of a step")


def formulas(plan: Plan, measured: Cost | None) -> dict[str, str]:
    """What a block keeps, the most that is kept, the FLOPs, the best length, and what was measured."""
    found = "not yet: press Measure"
    if measured:
        said = "both exactly as predicted" if measured == plan.predicted else "see the table"
        found = f"{measured.peak:,} bytes and {measured.flops:,} FLOPs, {said}"
    return {
        "a block": _block(plan),
        "at most": _peak(plan),
        "FLOPs": _flops(plan),
        "best s": _best(plan),
        "measured": found,
    }


def full(nbytes: int) -> str:
    """In full, as long as that can be read.

    >>> full(131072), full(2**60)
    ('131,072 B', '1.15 EB')
    """
    return f"{nbytes:,} B" if nbytes < MOST_IN_FULL else decimal_bytes_text(nbytes)


def _block(plan: Plan) -> str:
    """Its bytes, and of them its input's."""
    kept, of_input = plan.stack.block_bytes, plan.stack.input_bytes
    said = f"{BLOCKS.get(plan.kind, 'a layer')} keeps {full(kept)}, {kept / of_input:.3g} × its input, "
    said += f"B·S·H·4 = {full(of_input)}"
    if plan.kind == "GPT":
        scores = 4 * plan.batch * plan.heads * plan.sequence**2
        said += f", {'without' if plan.scores_again else 'of them'} scores, B·A·S²·4 = {full(scores)}"
    return said


def _peak(plan: Plan) -> str:
    """The most bytes at one time."""
    stack, before = plan.stack, plan.fullest
    rule, terms = "L × block", f"{plan.layers} × {full(stack.block_bytes)}"
    if plan.segment:
        even = plan.layers % plan.segment == 0
        rule = "(L / s - 1) × input + s × block" if even else "inputs + one segment"
        length = stack.segments(plan.segment)[before]
        terms = f"{before} × {full(stack.input_bytes)} + {length} × {full(stack.block_bytes)}"
    elif stack.again_bytes:
        rule, terms = f"{rule} + scores again - freed", f"{terms} + {full(stack.again_bytes)}"
    return f"{rule} = {terms} = {bytes_text(plan.predicted.peak)}"


def _flops(plan: Plan) -> str:
    """Forward, backward and again."""
    flops = plan.stack.step_flops(plan.segment, early_stop=plan.early_stop)
    terms = f"forward {flops_text(flops['forward'])} + backward {flops_text(flops['backward'])}"
    if plan.again != "0":
        terms += f" + again {flops_text(flops['recompute'])}"
        if plan.early_stop:
            count = len(plan.stack.segments(plan.segment)) or plan.layers
            terms += f" (without {count_text(count, 'last product')})"
    return f"{terms} = {plan.ratio:.4g} × a step with all kept"


def _best(plan: Plan) -> str:
    """The rule, and what trying every length finds."""
    stack = plan.all_kept.stack
    times, best = stack.block_bytes / stack.input_bytes, stack.best_segments
    inside = f"√({plan.layers} / {times:.4g})" if times != 1 else f"√{plan.layers}"
    said = f"s = {', '.join(map(str, best[:6]))}{', …' * (len(best) > 6)}" if best[0] else "none helps"
    rule = f"√(L × input / block) = {inside} = {stack.root_segment:.3g}"
    return f"{rule}; of all lengths tried, least bytes: {said}"


def state_text(plan: Plan) -> str:
    """What is held besides, whatever is computed again."""
    formula = f"{STATE_BYTES} × {plan.layers * plan.stack.parameters:,}"
    held = decimal_bytes_text(plan.state_bytes)
    return f"Besides: parameters, gradients and AdamW's state, {formula} = {held}"


def again_text(again: str) -> str:
    """What is computed again, in words.

    >>> again_text("0"), again_text("1"), again_text("4"), again_text("scores")
    ('nothing again', 'segments of 1 block', 'segments of 4 blocks', 'only the scores computed again')
    """
    if again == SCORES:
        return "only the scores computed again"
    return f"segments of {count_text(int(again), 'block')}" if int(again) else "nothing again"


def meaning(plan: Plan) -> str:
    """What it saves for what; and whether something else would save more, or nothing would help."""
    best, kept = plan.choosing(plan.least), plan.all_kept.predicted.peak
    whole, most, least = map(decimal_bytes_text, (kept, plan.predicted.peak, best.predicted.peak))
    if plan.least == "0":
        return f"Here computing again saves nothing: all kept is {whole}, and no choice gets below that."
    said = f"Nothing is computed again, and {whole} are kept."
    if plan.again != "0":
        said = (
            f"With {again_text(plan.again)}: at most {most} kept at one time, "
            f"{100 * plan.predicted.peak / kept:.3g} % of {whole}, for {plan.ratio:.4g} times the FLOPs."
        )
    price = f" for {best.ratio:.4g} times the FLOPs" if best.ratio != plan.ratio else ""
    better = f"{again_text(plan.least).capitalize()} would keep least: {least}{price}."
    if plan.predicted.peak == best.predicted.peak:
        better = "Nothing else here keeps less."
    if plan.state_bytes > MUCH * kept:
        helps = "helps" if plan.again != "0" else "would help"
        better = (
            f"But parameters, gradients and AdamW's state hold {decimal_bytes_text(plan.state_bytes)}, "
            f"{plan.state_bytes / kept:,.0f} times the {whole}: computing again {helps} little."
        )
    elif not plan.early_stop and 6 * plan.predicted.flops == 8 * plan.all_kept.predicted.flops:
        said += " That is 8/6: without early stop each segment is run again to its end."
    return f"{said} {better}"


def table(plan: Plan, measured: Cost | None) -> list[list[str]]:
    """Predicted and measured, once the chosen step has been."""
    if measured is None:
        return []
    rows = [[again_text(plan.again), "predicted", "measured", "measured / predicted"]]
    for name, p, m in zip(NAMES, astuple(plan.predicted), astuple(measured), strict=True):
        rows.append([name, f"{p:,}", f"{m:,}", "1 exactly" if m == p else f"{m / p:.6g}"])
    return rows
