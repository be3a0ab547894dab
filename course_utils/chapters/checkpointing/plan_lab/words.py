"""The plan lab's sentences on the task, a step's seconds, the days, and the best plan."""

from collections.abc import Iterator

from course_utils.chapters.checkpointing.plan_lab.asked import LEVELS, Asked, Found, is_best
from course_utils.chapters.checkpointing.plans import NODE, SHARE, Cost, Outcome, Pass, Task
from course_utils.core.accountant import (
    GPU_DAYS_PER_FAILURE,
    RESTART_S,
    SAVE_S,
    SECONDS_PER_DAY,
    active_parameters,
    stored_parameters,
)
from course_utils.core.accountant import count_text as billions
from course_utils.core.say import decimal_bytes_text as short
from course_utils.core.say import three_digits
from course_utils.core.say.language import in_a_row, template, translated

NO_BOUND = template(
    "No forecast, and no bound: real matrix products may reach more than half of the peak."
)
LEFT_OUT = template(
    "Left out: tensor, pipeline and expert parallelism, fp8, slower GPUs, background saves, "
    "the allocator's gaps, an optimizer's copies, the rounding of sums between GPUs."
)
# Rows of the table: what is assumed, how much it is, and a note.
ASSUMED = (
    (
        template("matrix products reach"),
        template("{share} of the data sheet's peak"),
        template("assumed"),
    ),
    (template("a save, a restart"), template("{save} s, {restart} s"), template("assumed")),
    (
        template("a failure"),
        template("one in {days} GPU-days"),
        template("as in Meta's run of 405B"),
    ),
    (
        template("at the network's speed"),
        template("everything that is sent"),
        template("a ring reaches less"),
    ),
)
# Rows of the table: a stage of ZeRO, and what a step sends with it.
SENT = (
    (
        template("stage 0"),
        template(
            "in the last backward pass, an all-reduce adds up the gradients: twice their bytes"
        ),
    ),
    (
        template("stage 1"),
        template(
            "the last backward pass sends gradients once, the first forward pass gathers parameters"
        ),
    ),
    (template("stage 2"), template("the same, and each backward pass sends its gradients")),
    (
        template("stage 3"),
        template("each pass gathers the parameters, each backward pass sends its gradients"),
    ),
    (
        template("over a node"),
        template("NVLink sends that; the last backward pass adds up gradients between nodes"),
    ),
)
# By whether the plan fits, and whether it adds up gradients in bf16.
NO_SCORE = {
    (False, False): template("none: it does not fit"),
    (True, True): template("none: it adds up gradients in bf16"),
    (False, True): template("none: it does not fit, and it adds up gradients in bf16"),
}


def headline(task: Task) -> str:
    """Return the headline: the model, the GPUs, and their network."""
    return translated(
        "{model} on {gpus} {machine}s: {nodes} nodes of {node}, {rate} Gb/s in and out of each",
        model=task.name,
        gpus=f"{task.gpus}",
        machine=task.machine.removesuffix(" SXM"),
        nodes=f"{task.gpus // NODE}",
        node=f"{NODE}",
        rate=f"{task.gbit_per_sec:g}",
    )


def solved(found: Found) -> str:
    """Return how many levels the reader has solved, in words; an empty string if there is none."""
    if not found.solved:
        return ""
    return translated(
        "{solved} of {count} levels solved",
        solved=f"{len(found.solved)}",
        count=f"{len(LEVELS)}",
    )


def a_step(task: Task) -> str:
    """Return two sentences: how many tokens a step has, and how many steps there are."""
    steps = task.tokens / task.step_tokens
    each = translated(
        "A step takes {sequences} sequences of {length} tokens on each GPU, "
        "{millions} million in all.",
        sequences=f"{task.sequences}",
        length=f"{task.sequence:,}",
        millions=f"{task.step_tokens / 1e6:.1f}",
    )
    whole = translated(
        "{billions} billion tokens are {steps} steps.",
        billions=f"{task.tokens / 1e9:,.0f}",
        steps=f"{steps:,.0f}",
    )
    return in_a_row(each, whole, _used(task))


def _used(task: Task) -> str:
    """Return a sentence on how many of a mixture's parameters a token uses; else nothing."""
    if task.model.mixture is None:
        return ""
    return translated(
        "Of {stored} parameters, a token uses {used}.",
        stored=billions(stored_parameters(task.model)),
        used=billions(active_parameters(task.model)),
    )


def a_pass(kind: Pass) -> str:
    """Return how many passes of this kind a step has, and the seconds of one, as a formula."""
    if not kind.count:
        return translated("none")
    return f"{kind.count} × max({kind.compute_s:.3g} s, {kind.sent_s:.3g} s)"


def together(outcome: Outcome) -> str:
    """Return the seconds of a step, beside the seconds of the best plan's step."""
    return translated(
        "{seconds} s; line: {best} s, the best plan",
        seconds=f"{outcome.cost.step_s:.3g}",
        best=f"{outcome.best_cost.step_s:.3g}",
    )


def formulas(asked: Asked, task: Task, outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    """Yield formulas with their numbers: for a step, what is lost, the days, and the score.

    A formula is (its name, its text, the class of the SVG element that shows it).
    """
    cost = outcome.cost
    yield translated("a step"), _step_formula(cost), ""
    yield translated("lost"), _lost_formula(asked, task, cost), ""
    yield translated("days"), _days_formula(task, cost), "formula"
    if outcome.score:
        score = translated(
            "the best plan's days over yours: {best} / {yours} = {score} %",
            best=three_digits(outcome.best_cost.days),
            yours=three_digits(cost.days),
            score=f"{100 * outcome.score:.3g}",
        )
        yield translated("score"), score, "strong"
    else:
        yield translated("score"), _why_no_score(cost), "alarm"


def _step_formula(cost: Cost) -> str:
    """Return the seconds of a step as a sum, such as "1 × 2.5 + 7 × 2.1 = 17.2 s".

    A pass takes the longer of its computing and its sending time.
    """
    terms = []
    for kind in cost.passes:
        if kind.count:
            longer_s = max(kind.compute_s, kind.sent_s)
            terms.append(f"{kind.count} × {longer_s:.3g}")
    return f"{' + '.join(terms)} = {cost.step_s:.3g} s"


def _lost_formula(asked: Asked, task: Task, cost: Cost) -> str:
    """Return the share of time lost as a sum: to saving, to work done again, and to restarts.

    Work done again is half of the time between two saves, on average: hence the 2.
    """
    save_every_s = 60 * asked.minutes
    failure_s = GPU_DAYS_PER_FAILURE * SECONDS_PER_DAY / task.gpus
    saves = f"{SAVE_S} / {save_every_s:,}"
    lost_work = f"{save_every_s:,} / (2 × {failure_s:,.0f})"
    restarts = f"{RESTART_S} / {failure_s:,.0f}"
    return translated(
        "{sum} = {percent} % to saves and failures",
        sum=f"{saves} + {lost_work} + {restarts}",
        percent=f"{100 * cost.lost:.2f}",
    )


def _days_formula(task: Task, cost: Cost) -> str:
    """Return the days of the training as a formula, and the most days, if no sending overlaps."""
    steps = task.tokens / task.step_tokens
    product = f"{steps:,.0f} × {cost.step_s:.3g} s / 86,400 / (1 - {cost.lost:.3g})"
    return translated(
        "{product} = {days} if all sending overlaps; {most} if none does",
        product=product,
        days=_days_text(cost),
        most=three_digits(cost.most_days),
    )


def _why_no_score(cost: Cost) -> str:
    """Return that the plan has no score, and the reasons."""
    return translated(NO_SCORE[cost.fits, cost.sums_in_bf16])


def meaning(asked: Asked, task: Task, outcome: Outcome, found: Found) -> str:
    """Return the text below the picture.

    The text says whether the plan fits, how long it takes, and how far from the best plan it is.
    """
    cost = outcome.cost
    if cost.sums_in_bf16:
        return translated(
            "This plan adds up the gradients of {count} micro-batches in bf16, where each sum is "
            "rounded (and a long one stops: notebooks 1 and 7). The lab does not allow that. "
            "Take fp32 gradients, or all {sequences} sequences at a time.",
            count=f"{task.micro_batches(asked.plan.batch)}",
            sequences=f"{task.sequences}",
        )
    capped = ""
    if asked.batch > task.sequences:
        capped = translated(
            "A step has {sequences} sequences for each GPU, so a micro-batch has at most as many.",
            sequences=f"{task.sequences}",
        )
    if not cost.fits:
        does_not_fit = translated(
            "Does not fit: each GPU would hold {held}, and has {memory}.",
            held=short(sum(cost.held.values())),
            memory=short(task.memory),
        )
        return in_a_row(capped, does_not_fit)
    fits = translated(
        "Fits, and takes {days} days with matrix products at half of the peak.",
        days=_days_text(cost),
    )
    return in_a_row(capped, fits, *_beside_the_best(asked, outcome, found))


def _beside_the_best(asked: Asked, outcome: Outcome, found: Found) -> Iterator[str]:
    """Yield sentences that set a plan which fits beside the best one."""
    if is_best(outcome):
        yield translated("No plan takes noticeably fewer.")
        if asked.level in found.solved:
            yield translated("You have solved this level.")
    else:
        yield translated(
            "The best plan takes {days}: your score is {score}.",
            days=three_digits(outcome.best_cost.days),
            score=f"{100 * outcome.score:.3g} %",
        )


def table(outcome: Outcome) -> list[list[str]]:
    """Return a table of three columns: the bytes, what each stage sends, and what is assumed."""
    rows = [["", "", ""]]  # a table's first row is its head, and this one has none
    for part, nbytes in outcome.cost.held.items():
        name = translated("bytes of {part}", part=part)
        rows.append([name, f"{nbytes:,}", translated("on each GPU")])
    for stage, sent in SENT:
        rows.append([translated(stage), translated(sent), ""])
    for name, how_much, note in ASSUMED:
        amount = translated(
            how_much,
            share=f"{SHARE:g}",
            save=f"{SAVE_S}",
            restart=f"{RESTART_S}",
            days=f"{GPU_DAYS_PER_FAILURE:,.0f}",
        )
        rows.append([translated(name), amount, translated(note)])
    return rows


def _days_text(cost: Cost) -> str:
    return three_digits(cost.days)
