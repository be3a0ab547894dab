"""What the memory lab says: whether a plan fits and what would make it, its bytes in formulas and in a table."""

import textwrap

from course_utils import predict
from course_utils.labs.memory_plan import (
    PARTS,
    Plan,
    changes_text,
    largest_batch,
    longest_sequence,
    remedies,
    split_parts,
)
from course_utils.predict.training import STEP_COUNTER_BYTES
from course_utils.quantities import Ledger, Number, bytes_text

MOST_REMEDIES = 3
# When most is held, in words.
MOMENTS = {
    "loss": "at the loss",
    "output": "at the output",
    "feed-forward": "in a feed-forward",
    "scores": "at the scores",
    "embedding": "at the embedding",
}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def short(nbytes: Number) -> str:
    """Bytes in decimal units, as data sheets have them.

    >>> short(80_000_000_000), short(96)
    ('80 GB', '96 bytes')
    """
    return bytes_text(nbytes).split(" = ")[-1]


def parameters_text(count: int) -> str:
    """A number of parameters, as people say it.

    >>> parameters_text(40_000_000_000), parameters_text(2_000_000)
    ('40 billion', '2 million')
    """
    size, word = (10**9, "billion") if count >= 10**9 else (10**6, "million")
    return f"{count / size:,.0f} {word}" if count >= 999.5 * size else f"{count / size:.3g} {word}"


def name_of(shape: predict.Transformer) -> str:
    """Of the model with that shape."""
    names = (name for name, known in predict.MODELS.items() if known == shape)
    return next(names, "A model of these sizes")


def verdict(plan: Plan) -> str:
    """How much is left, or missing."""
    return f"{short(plan.left)} left" if plan.fits else f"{short(-plan.left)} over"


def meaning(plan: Plan) -> str:
    """Whether it fits, and what would make it."""
    who = f"each of the {plan.machines:,} machines" if plan.machines > 1 else f"one {plan.machine_name}"
    total, memory = short(plan.held.total), short(plan.machine.bytes)
    if plan.fits:
        most = largest_batch(plan)
        more = (
            f"The largest batch that fits is {most:,}" if most > plan.batch else "No larger batch would fit"
        )
        return f"Fits: {who} holds {total} of {memory}, with {short(plan.left)} left. {more}."
    return f"Runs over: {who} would hold {total} and has {memory}, {short(-plan.left)} too little. {advice(plan)}"


def advice(plan: Plan) -> str:
    """The fewest changes with which it would fit."""
    found = list(remedies(plan))
    if not found:
        longest = longest_sequence(plan)
        end = f"a sequence of {longest:,} tokens would fit then" if longest else "not even one token would"
        return f"No setting of stage, attention, recompute, batch, machines and recipe makes it fit; {end}."
    shown = "; or ".join(changes_text(changes) for changes in found[:MOST_REMEDIES])
    count = len(found[0])
    fewer = "single change" if count == 2 else f"{NUMBERS[count - 1]} changes"
    lead = "One change is enough" if count == 1 else f"No {fewer} would do, but {NUMBERS[count]} together"
    return f"{lead}: {shown}."


def table(plan: Plan, counted: Ledger | None) -> list[list[str]]:
    """Every byte: on each machine, and on one machine alone predicted beside counted."""
    whole = plan.whole.held
    rows = [["bytes", "on each machine", "on one alone, predicted", "on one alone, counted", "counted is"]]
    both = [(part, plan.held[part], whole[part], counted and counted[part]) for part in PARTS]
    both.append(("total", plan.held.total, whole.total, counted and counted.total))
    for name, here, alone, found in both:
        ends = ["", ""] if found is None else [f"{found:,}", difference_text(found - alone)]
        rows.append([name, f"{here:,}", f"{alone:,}", *ends])
    moment, held = plan.peak
    parts = [(f"{MOMENTS[moment]}: {item}", n) for item, n in held.items()]
    parts += [(f"kept by autograd: {item}", n) for item, n in plan.kept.items()]
    return rows + [[name, f"{n:,}", f"{n:,}", "", ""] for name, n in parts if n]


def difference_text(more: int) -> str:
    """What was counted, compared with what was predicted."""
    return f"{abs(more):,} bytes {'more' if more > 0 else 'less'}" if more else "exactly that"


# In formulas, with the numbers filled in.


def formulas(plan: Plan, counted: Ledger | None) -> list[tuple[str, str]]:
    """What is asked for, what each machine holds of it and why, and what was counted."""
    attention = f"{'fused' if plan.fused else 'explicit'} attention"
    norms = ", norms in one kernel" if plan.fused_norm and plan.shape.rms_norm else ""
    ways = f"{attention}{norms}, {'layers recomputed' if plan.recompute else 'nothing recomputed'}"
    return [
        ("run", f"{plan.recipe} · {plan.batch:,} × {plan.sequence:,} tokens on each machine · {ways}"),
        ("whole", _state_formula(plan, split=False)),
        ("split", _state_formula(plan, split=True)),
        ("activations", _activations_formula(plan)),
        ("together", f"{bytes_text(plan.held.total)} on each machine"),
        ("counted", _counted_text(plan, counted)),
    ]


def _state_formula(plan: Plan, *, split: bool) -> str:
    """P × bytes (what for) / machines, of what is split or of what is not."""
    each = predict.RECIPES[plan.recipe].bytes_by_part
    inside = split_parts(plan) if plan.machines > 1 else ()
    chosen = [part for part in each if each[part] and (part in inside) == split]
    p, n, width = plan.shape.parameters, plan.machines, sum(each[part] for part in chosen)
    what = " + ".join(f"{each[part]} {part}" for part in chosen)
    if split:
        if not width:
            return "nothing" if n > 1 else "nothing: it is one machine"
        share = f" / {n:,} machines" if p % n == 0 else f" / {n:,} machines, a share rounded up"
        return f"{p:,} × {width} bytes ({what}){share} = {-(-p // n) * width:,}"
    tensors = plan.shape.tensors if predict.RECIPES[plan.recipe].counts_steps else 0
    terms = [f"{p:,} × {width} bytes ({what})"] if width else []
    terms += [f"{STEP_COUNTER_BYTES} bytes × {tensors:,} step counters"] if tensors else []
    return f"{' + '.join(terms)} = {p * width + STEP_COUNTER_BYTES * tensors:,}" if terms else "nothing"


def _activations_formula(plan: Plan) -> str:
    """In which dtype, at which moment of the step, and what is held then."""
    moment, held = plan.peak
    terms = [f"{name} {short(n)}" for name, n in held.items() if n > held.total / 1000]
    return f"in {plan.dtype}, {MOMENTS[moment]}: {' + '.join(terms)} = {held.total:,}"


def _counted_text(plan: Plan, counted: Ledger | None) -> str:
    if counted is None:
        return "not yet: press Count it"
    alike = all(counted[part] == plan.whole.held[part] for part in PARTS)
    said = "every part exactly as predicted" if alike else "not as predicted: see the table"
    return f"{counted.total:,} bytes on one machine{' alone' if plan.machines > 1 else ''}, {said}"


def remarks(plan: Plan) -> list[str]:
    """What is counted, and what is not; in lines."""
    counted = "at the step's fullest moment: what autograd keeps, and what the backward pass has made of it"
    if plan.shape.rms_norm and not plan.fused_norm and plan.dtype != "fp32":
        counted += "; an RMSNorm of single operations keeps two copies in fp32"
    missing = ["scratch memory inside operations", "the optimizer's own", "gaps between allocations"]
    missing += ["what torch itself takes"]
    sharded = plan.stage if plan.machines > 1 else 0
    missing += ["buffers for what machines send each other"] if plan.machines > 1 else []
    missing += {2: ["gradients before they are split"], 3: ["layers gathered for use"]}.get(sharded, [])
    lines = (f"Activations: {counted}.", f"Not counted: {', '.join(missing)}.")
    return [part for line in lines for part in textwrap.wrap(line, 132)]
