"""What the memory lab says: whether a plan fits and what would make it, its bytes in formulas and in a table."""

from collections.abc import Iterator
from dataclasses import replace

from course_utils import predict
from course_utils.datasheets import machine_named
from course_utils.labs.fields import LARGEST
from course_utils.labs.memory.asked import MACHINES
from course_utils.predict import TrainingPlan
from course_utils.predict.fitting import Changes
from course_utils.predict.training import STEP_COUNTER_BYTES
from course_utils.quantities import Ledger, bytes_text, listed
from course_utils.quantities import decimal_bytes_text as short

MOST_CHANGES = 4  # that are said: three remedies of one change, two of two, or one of more
# When most is held, in words.
MOMENTS = {
    "loss": "at the loss",
    "output": "at the output",
    "feed-forward": "in a feed-forward",
    "scores": "at the scores",
    "embedding": "at the embedding",
}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven")


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


def verdict(plan: TrainingPlan) -> str:
    """How much is left, or missing."""
    return f"{short(plan.left)} left" if plan.fits else f"{short(-plan.left)} over"


def meaning(plan: TrainingPlan) -> str:
    """Whether it fits, and what would make it."""
    who = f"each of the {plan.machines:,} machines" if plan.machines > 1 else f"one {plan.machine_name}"
    total, memory = short(plan.held.total), short(plan.machine.bytes)
    if not plan.fits:
        return f"Does not fit: {who} would hold {total} and has {memory}. {advice(plan)}"
    most = predict.largest_batch(plan)
    more = f"The largest batch that fits is {most:,}" if most > plan.batch else "No larger batch would fit"
    if most >= LARGEST:
        more = f"A batch of {most:,} fits, and this lab asks for no more"
    return f"Fits: {who} holds {total} of {memory}, with {short(plan.left)} left. {more}."


def advice(plan: TrainingPlan) -> str:
    """The fewest changes with which it would fit."""
    found = predict.remedies(plan)
    if not found:
        longest = predict.longest_sequence(plan)
        end = f"a sequence of {longest:,} tokens would fit then" if longest else "not even one token would"
        return f"No setting of stage, attention, recompute, batch, machines and recipe makes it fit; {end}."
    count = len(found[0])
    shown = "; or ".join(map(changes_text, found[: max(1, MOST_CHANGES - count)]))
    lead = "One change is enough" if count == 1 else f"{NUMBERS[count].capitalize()} changes are needed"
    return f"{lead}: {shown}."


def changes_text(changes: Changes) -> str:
    """A remedy in words.

    >>> changes_text({"stage": 3, "recompute": True, "batch": 2})
    'sharding stage 3, recompute layers and a batch of at most 2'
    """
    said = {
        "stage": "sharding stage {}",
        "fused": "fused attention",
        "fused_norm": "fused norms",
        "recompute": "recompute layers",
        "batch": "a batch of at most {:,}",
        "machines": "at least {:,} machines",
        "recipe": "the recipe {}",
    }
    return listed([said[name].format(value) for name, value in changes.items()])


# In formulas, with the numbers filled in.


def formulas(plan: TrainingPlan, counted: Ledger | None) -> dict[str, str]:
    """What each machine holds and why, and what was counted."""
    state, activations = plan.state.total, plan.peak[1].total
    return {
        "state": _state_formula(plan),
        "activations": _activations_formula(plan),
        "together": f"{state:,} + {activations:,} = {bytes_text(plan.held.total)} on each machine",
        "counted": _counted_text(plan, counted),
    }


def _state_formula(plan: TrainingPlan) -> str:
    """P × bytes (what for), of what is whole and of what is split."""
    recipe, p, n = predict.RECIPES[plan.recipe], plan.shape.parameters, plan.machines
    share = f"{p:,} / {n:,}" if p % n == 0 else f"({p:,} / {n:,}, rounded up)"
    each = {part: nbytes for part, nbytes in recipe.bytes_by_part.items() if nbytes}
    terms = []
    for count, split in ((f"{p:,}", False), (share, True)):
        parts = [f"{nbytes} {part}" for part, nbytes in each.items() if (part in plan.split) == split]
        terms += [f"{count} × ({' + '.join(parts)})"] if parts else []
    if recipe.counts_steps:
        terms.append(f"{STEP_COUNTER_BYTES} × {plan.shape.tensors:,} step counters")
    return f"{' + '.join(terms)} = {plan.state.total:,}"


def _activations_formula(plan: TrainingPlan) -> str:
    """Of which tokens, in which dtype, at which moment of the step, and what is held then."""
    moment, held = plan.peak
    terms = [f"{name} {short(n)}" for name, n in held.items() if n > held.total / 1000]
    tokens = f"{plan.batch:,} × {plan.sequence:,} tokens in {plan.dtype}"
    return f"{tokens}, {MOMENTS[moment]}: {' + '.join(terms)} = {held.total:,}"


def _counted_text(plan: TrainingPlan, counted: Ledger | None) -> str:
    if counted is None:
        return "not yet: press Count it"
    said = (
        "every part exactly as predicted" if counted == plan.alone.held else "not as predicted: see the table"
    )
    return f"{counted.total:,} bytes on one machine{' alone' if plan.machines > 1 else ''}, {said}"


def not_counted(plan: TrainingPlan) -> str:
    """What a real machine holds besides."""
    missing = ["scratch memory of operations and optimizer", "gaps between allocations", "torch itself"]
    if plan.machines > 1:
        missing += ["what machines send each other"]
        missing += {2: ["gradients before they are split"], 3: ["layers gathered for use"]}.get(
            plan.stage, []
        )
    return f"Not counted: {', '.join(missing)}."


# In a table, which is folded.


def table(plan: TrainingPlan, counted: Ledger | None) -> list[list[str]]:
    """Every byte: on each machine, and on one machine alone predicted beside counted; and every other machine."""
    rows = [["bytes", "on each machine", "on one alone, predicted", "on one alone, counted", "counted is"]]
    here, alone = (Ledger({**held, "total": held.total}) for held in (plan.held, plan.alone.held))
    found = counted and Ledger({**counted, "total": counted.total})
    for part, n in here.items():
        ends = [f"{found[part]:,}", difference_text(found[part] - alone[part])] if found else ["", ""]
        rows.append([part, f"{n:,}", f"{alone[part]:,}", *ends])
    rows += [[name, f"{n:,}", f"{n:,}", "", remark] for name, n, remark in _details(plan) if n]
    rows.append(["other machines", "memory", "left, or over", "", ""])
    for name in MACHINES.values():
        there, machine = replace(plan, machine_name=name), machine_named(name)
        remark = "" if plan.dtype in machine.peak_flop_per_sec else f"its data sheet has no {plan.dtype}"
        rows.append([name, short(machine.bytes), verdict(there), "", remark])
    return rows


def difference_text(more: int) -> str:
    """What was counted, compared with what was predicted."""
    return f"{abs(more):,} bytes {'more' if more > 0 else 'less'}" if more else "exactly that"


def _details(plan: TrainingPlan) -> Iterator[tuple[str, int, str]]:
    """What the activations are when most is held, and what of them autograd keeps; perhaps with a remark."""
    moment, held = plan.peak
    for item, n in held.items():
        yield f"{MOMENTS[moment]}: {item}", n, ""
    copied = plan.shape.rms_norm and not plan.fused_norm and plan.dtype != "fp32"
    for item, n in plan.kept.items():
        why = "an RMSNorm of single operations keeps two copies in fp32"
        yield f"kept by autograd: {item}", n, why if copied and item == "normalisations" else ""
