"""What the memory lab says: whether a plan fits, and its bytes in formulas and in a table."""

from collections.abc import Iterator

from course_utils import predict, reported
from course_utils.predict import TrainingPlan
from course_utils.predict.training import STEP_COUNTER_BYTES
from course_utils.quantities import Ledger, bytes_text, count_text
from course_utils.quantities import decimal_bytes_text as short

UNKNOWN_PEAK = " The vocabulary is small beside the width, so a step can hold more: count it."


def verdict(plan: TrainingPlan) -> str:
    """How much is left, or missing."""
    return f"{short(plan.left)} left" if plan.fits else f"{short(-plan.left)} over"


def meaning(plan: TrainingPlan) -> str:
    """Whether it fits, and whether that is certain. How to make it fit is left to the reader."""
    return f"{_fit(plan)}{'' if plan.has_known_peak else UNKNOWN_PEAK}"


def _fit(plan: TrainingPlan) -> str:
    who = f"each of the {plan.machines:,} machines" if plan.machines > 1 else f"one {plan.machine_name}"
    total, memory = short(plan.held.total), short(plan.machine.bytes)
    if not plan.fits:
        hopeless = "" if predict.remedy(plan) else f" {hopeless_as(plan)}"
        return f"Does not fit: {who} would hold {total} and has {memory}, {verdict(plan)}.{hopeless}"
    batch = f"A batch of up to {predict.largest_batch(plan):,} fits."
    return f"Fits: {who} holds {total} of {memory}, with {short(plan.left)} left. {batch}"


def hopeless_as(plan: TrainingPlan) -> str:
    """The sentence on a plan that only a shorter sequence makes fit, if anything does."""
    longest = predict.longest_sequence(plan)
    end = f". At most {count_text(longest, 'token')} fit" if longest else ", whatever the sequence"
    return f"No setting of stage, attention, norms, recompute, batch, machines and recipe makes it fit{end}."


# In formulas, with the numbers filled in.


def formulas(plan: TrainingPlan, counted: Ledger | None) -> Iterator[tuple[str, str, str]]:
    """What each machine holds and why, and what was counted: for each a name, the formula, and its class."""
    state, step = plan.state.total - plan.state["gradients"], plan.peak[1].total
    total = f"{bytes_text(state + step)} on each machine"
    yield "state", _state_formula(plan), ""
    yield "step", _step_formula(plan), ""
    yield "together", f"{state:,} + {step:,} = {total}", "formula"
    if counted is None:
        yield "counted", "not yet", "faint"
        return
    exact = counted == plan.alone.held
    said = "every part exactly as predicted" if exact else "not as predicted: see the table"
    yield "counted", f"{counted.total:,} bytes on one machine alone, {said}", "measured-words"


def _state_formula(plan: TrainingPlan) -> str:
    """P × bytes, first of what each machine holds whole, then of what is split. Gradients count in the step."""
    recipe, p, n = predict.RECIPES[plan.recipe], plan.shape.parameters, plan.machines
    share = f"{p:,} / {n:,}" if p % n == 0 else f"({p:,} / {n:,}, rounded up)"
    each = {part: nbytes for part, nbytes in recipe.bytes_by_part.items() if nbytes and part != "gradients"}
    terms = []
    for count, split in ((f"{p:,}", False), (share, True)):
        parts = [f"{nbytes} {part}" for part, nbytes in each.items() if (part in plan.split) == split]
        terms += [f"{count} × ({' + '.join(parts)})"] if parts else []
    if recipe.counts_steps:
        terms.append(f"{STEP_COUNTER_BYTES} × {plan.shape.tensors:,} step counters")
    return f"{' + '.join(terms)} = {plan.state.total - plan.state['gradients']:,}"


def _step_formula(plan: TrainingPlan) -> str:
    """The step's tokens, dtype, fullest moment, and what is held then."""
    moment, held = plan.peak
    terms = [f"{name} {short(n)}" for name, n in held.items() if n > held.total / 1000]
    tokens = f"{plan.batch:,} × {plan.sequence:,} tokens in {plan.dtype}"
    return f"{tokens}, at the {moment}: {' + '.join(terms)} = {held.total:,}"


# In a table, which is folded.


def table(plan: TrainingPlan, counted: Ledger | None) -> list[list[str]]:
    """Every byte: on each machine, and on one machine alone predicted beside counted; what autograd keeps; and a run of others."""
    here, alone = plan.held, plan.alone.held
    rows = [(part, n, alone[part], counted and counted[part]) for part, n in here.items()]
    rows.append(("total", here.total, alone.total, counted and counted.total))
    rows += [(f"kept by autograd: {item}", n, n, None) for item, n in plan.kept.items() if n]
    run = reported.nearest(plan)
    rows.append(
        (f"{run.name}, nearest run that others reported: as predicted", reported.held_bytes(run), None, None)
    )
    rows.append(
        (
            f"{run.memory_kind} there, as reported",
            round(run.reported["memory_gib"] * reported.GIB),
            None,
            None,
        )
    )
    head = ["bytes", "on each machine", "on one alone, predicted", "on one alone, counted"]
    return [head, *([part, *("" if n is None else f"{n:,}" for n in sides)] for part, *sides in rows)]
