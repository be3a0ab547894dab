"""What the recompute lab says: its formulas with the numbers filled in, one line of meaning, a table."""

from collections.abc import Mapping

from course_utils.labs.memory_words import difference_text, short
from course_utils.labs.recompute_plan import SCORES, Plan, again_text
from course_utils.quantities import count_text, flops_text

MOST_IN_FULL = 10**13
MUCH = 20  # times: from so much state on, what is computed again hardly matters
NAMES = {
    "kept": "bytes kept after the forward pass",
    "peak": "most bytes kept at one time",
    "flops": "FLOPs of a step",
}


def title(plan: Plan) -> tuple[str, str]:
    """What it is, and its sizes."""
    blocks = {
        "x W": "x W, H → H",
        "MLP": "x + gelu(x W1) W2, H → 4H → H",
        "GPT": "a GPT's layer, explicit attention",
        "GPT, fused attention": "a GPT's layer, fused attention",
    }
    sizes = f"B = {plan.batch:,}, S = {plan.sequence:,}, H = {plan.width:,}"
    heads = f", A = {plan.heads:,}" if plan.kind.startswith("GPT") else ""
    return f"{count_text(plan.layers, 'block')}: {blocks[plan.kind]}", f"{sizes}{heads}, fp32"


def again_short(plan: Plan) -> str:
    """What is computed again, in few words."""
    return {"0": "all kept", SCORES: "scores again"}.get(plan.again, f"segments of {plan.again}")


def formulas(plan: Plan, measured: Mapping[str, int] | None) -> list[tuple[str, str]]:
    """What a block keeps, the most that is kept, the FLOPs, the best length, and what was measured."""
    return [
        ("a block", _block(plan)),
        ("at most", _peak(plan)),
        ("FLOPs", _flops(plan)),
        ("best s", _best(plan)),
        ("measured", _measured(plan, measured)),
    ]


def full(nbytes: int) -> str:
    """In full, as long as that can be read.

    >>> full(131072), full(2**60)
    ('131,072', '1.15 EB')
    """
    return f"{nbytes:,}" if nbytes < MOST_IN_FULL else short(nbytes)


def with_unit(nbytes: int) -> str:
    """The same with its unit."""
    return full(nbytes) if nbytes >= MOST_IN_FULL else f"{full(nbytes)} bytes"


def in_bytes(nbytes: int) -> str:
    """In full and in short."""
    return f"{with_unit(nbytes)} = {short(nbytes)}" if 1000 <= nbytes < MOST_IN_FULL else short(nbytes)


def _block(plan: Plan) -> str:
    """Bytes of a block, and its input's."""
    stack = plan.stack
    kept, i = stack.block_bytes, stack.input_bytes
    tokens = f"its input, B × S × H × 4 = {with_unit(i)}"
    if plan.kind == "x W":
        return f"keeps {tokens}, and nothing else"
    if plan.kind == "MLP":
        return f"keeps 9 inputs: 1, 4 before GELU and 4 after it; {tokens}; 9 × {full(i)} = {with_unit(kept)}"
    if plan.kind == "GPT":
        whole = with_unit(plan.with_everything_kept.stack.block_bytes)
        scores = full(4 * plan.batch * plan.heads * plan.sequence**2)
        much = f"{full(kept)} of {whole}" if plan.scores_again else whole
        return f"keeps {much}, of them scores B × A × S² × 4 = {scores}; {tokens}"
    return f"keeps {with_unit(kept)}, {kept / i:.3g} times {tokens}"


def _peak(plan: Plan) -> str:
    """The most bytes at one time."""
    stack, peak = plan.stack, plan.predicted["peak"]
    if not plan.segment:
        rule, terms = "L × block", f"{plan.layers} × {full(stack.block_bytes)}"
        if stack.again_bytes:
            rule += " + scores again - freed"
            terms += f" + {full(stack.again_bytes)}"
        return f"{rule} = {terms} = {in_bytes(peak)}"
    waiting = stack.peak_bytes(plan.segment)["inputs of earlier segments"] // stack.input_bytes
    length = (peak - waiting * stack.input_bytes) // stack.block_bytes
    rule = "(L / s - 1) × input + s × block" if plan.layers % plan.segment == 0 else "inputs + one segment"
    terms = f"{waiting} × {full(stack.input_bytes)} + {length} × {full(stack.block_bytes)}"
    return f"{rule} = {terms} = {in_bytes(peak)}"


def _flops(plan: Plan) -> str:
    """Forward, backward and again."""
    stack = plan.stack
    flops = stack.step_flops(plan.segment, early_stop=plan.early_stop)
    terms = f"forward {flops_text(flops['forward'])} + backward {flops_text(flops['backward'])}"
    if plan.again != "0":
        terms += f" + again {flops_text(flops['recompute'])}"
        if plan.early_stop:
            count = len(stack.segments(plan.segment)) or plan.layers
            terms += f" (without {count_text(count, 'last product')})"
    return f"{terms} = {plan.ratio:.4g} × a step with all kept"


def _best(plan: Plan) -> str:
    """The rule, and what trying every length finds."""
    stack = plan.with_everything_kept.stack
    times = stack.block_bytes / stack.input_bytes
    inside = f"√({plan.layers} / {times:.4g})" if times != 1 else f"√{plan.layers}"
    found = stack.best_segments
    said = f"s = {', '.join(map(str, found[:6]))}{', …' * (len(found) > 6)}" if found[0] else "none helps"
    return f"√(L × input / block) = {inside} = {stack.root_segment:.3g}; of all lengths tried, least bytes: {said}"


def _measured(plan: Plan, measured: Mapping[str, int] | None) -> str:
    if measured is None:
        return "not yet: press Measure"
    if measured == plan.predicted:
        return f"{measured['peak']:,} bytes and {measured['flops']:,} FLOPs, both exactly as predicted"
    return f"{measured['peak']:,} bytes and {measured['flops']:,} FLOPs: see the table"


def meaning(plan: Plan, best: str) -> str:
    """What it saves for what, and whether something else would save more."""
    whole, peak = plan.with_everything_kept.predicted["peak"], plan.predicted["peak"]
    least = plan.choosing(best)
    of_least = f"{short(least.predicted['peak'])} for {least.ratio:.4g} times the FLOPs"
    if best == "0":
        said = f"One block keeps {short(whole)} either way: computing it again saves nothing."
        if plan.layers > 1:
            said = f"Nothing keeps less than {short(whole)}, which is kept if nothing is computed again."
    elif plan.again == "0":
        share = least.predicted["peak"] / whole
        said = f"Nothing is computed again, and {short(whole)} are kept. {_sentence(best)} would keep least, {share:.3g} of it: {of_least}."
    else:
        said = (
            f"With {again_text(plan.again)} autograd keeps at most {short(peak)} at one time, {peak / whole:.3g} of "
            f"{short(whole)}, for {plan.ratio:.4g} times the FLOPs. "
        )
        if peak == least.predicted["peak"]:
            said += "Nothing else here keeps less."
        else:
            said += f"{_sentence(best)} would keep least: {of_least}."
    if plan.state_bytes > MUCH * whole:
        times = plan.state_bytes / whole
        said += (
            f" But parameters, gradients and AdamW's state hold {short(plan.state_bytes)}, {times:,.0f} times "
            "what the blocks keep: here computing again does not help."
        )
    return said


def _sentence(again: str) -> str:
    words = again_text(again)
    return words[0].upper() + words[1:]


def table(plan: Plan, measured: Mapping[str, int] | None) -> list[list[str]]:
    """Predicted and measured, of the chosen state."""
    rows = [[again_text(plan.again), "predicted", "measured", "measured / predicted", "measured is"]]
    for item, name in NAMES.items():
        predicted = plan.predicted[item]
        found = ["", "", ""]
        if measured is not None:
            ratio = "1 exactly" if measured[item] == predicted else f"{measured[item] / predicted:.6g}"
            found = [f"{measured[item]:,}", ratio, difference_text(measured[item] - predicted)]
        rows.append([name, f"{predicted:,}", *found])
    return rows
