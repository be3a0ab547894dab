"""What the plan lab says: the task, a step's seconds, the days, and how far from the best they are."""

from collections.abc import Iterator

from course_utils.chapters.checkpointing.plan_lab.asked import LEVELS, Asked, Found, is_best
from course_utils.chapters.checkpointing.plans import NODE, SHARE, Cost, Outcome, Pass, Task
from course_utils.core.accountant import GPU_DAYS_PER_FAILURE, RESTART_S, SAVE_S
from course_utils.core.say import count_text, three_digits
from course_utils.core.say import decimal_bytes_text as short

LEFT_OUT = (
    "A bound, and no forecast. Left out: tensor and pipeline parallelism, fp8, GPUs that are slower than others, saves "
    "beside the run, the allocator's gaps."
)
ASSUMED = (
    ("products reach", f"{SHARE:g} of the data sheet's peak", "assumed"),
    ("a save, a restart", f"{SAVE_S} s, {RESTART_S} s", "assumed"),
    ("a failure", f"one in {GPU_DAYS_PER_FAILURE:,.0f} GPU-days", "as in Meta's run of 405B"),
    ("at the network's speed", "everything that is sent", "a ring reaches less"),
)
SENT = (
    (
        "stage 0",
        "after the last backward pass, gradients are added up over all GPUs: twice their bytes",
    ),
    (
        "stage 1",
        "the last backward pass sends gradients once, the first forward pass gathers parameters",
    ),
    ("stage 2", "the same, and each backward pass sends its gradients"),
    ("stage 3", "each pass gathers the parameters, each backward pass sends its gradients"),
    ("over a node", "NVLink sends that; the last backward pass adds up gradients between nodes"),
)


def headline(task: Task) -> str:
    """The model and the GPUs."""
    nodes = count_text(task.gpus // NODE, "node")
    network = f"{task.gbit_per_sec:g} Gb/s in and out of each"
    return f"{task.name} on {task.gpus} {task.machine.removesuffix(' SXM')}s: {nodes} of {NODE}, {network}"


def solved(found: Found) -> str:
    """How many levels the reader has solved, once there is one."""
    return f"{len(found.solved)} of {len(LEVELS)} levels solved" if found.solved else ""


def a_step(task: Task) -> str:
    """How many tokens a step has, and how many steps there are."""
    steps = task.tokens / task.step_tokens
    each = f"{task.sequences} sequences of {task.sequence:,} tokens on each GPU"
    whole = f"{task.tokens / 1e9:,.0f} billion tokens are {steps:,.0f} steps"
    return f"A step takes {each}, {task.step_tokens / 1e6:.1f} million in all. {whole}."


def a_pass(one: Pass) -> str:
    """How often a pass comes, and its seconds."""
    if not one.count:
        return "none"
    return f"{one.count} × max({one.compute_s:.3g} s, {one.sent_s:.3g} s)"


def together(outcome: Outcome) -> str:
    """A step's seconds, beside those of the best plan's."""
    return f"{outcome.cost.step_s:.3g} s; line: {outcome.least.step_s:.3g} s, the best plan"


def formulas(asked: Asked, task: Task, outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    """A step, what is lost, the days, and the score."""
    cost, failure_s = outcome.cost, GPU_DAYS_PER_FAILURE * 86_400 / task.gpus
    terms = " + ".join(
        f"{one.count} × {max(one.compute_s, one.sent_s):.3g}" for one in cost.passes if one.count
    )
    yield "a step", f"{terms} = {cost.step_s:.3g} s", ""
    save = f"{SAVE_S} / {60 * asked.minutes:,} + {60 * asked.minutes:,} / (2 × {failure_s:,.0f})"
    yield (
        "lost",
        f"{save} + {RESTART_S} / {failure_s:,.0f} = {100 * cost.lost:.2f} % to saves and failures",
        "",
    )
    steps = f"{task.tokens / task.step_tokens:,.0f} × {cost.step_s:.3g} s / 86,400 / (1 - {cost.lost:.3g})"
    yield (
        "days",
        f"{steps} = {_days(cost)} if all sending overlaps; {three_digits(cost.most_days)} if none does",
        "formula",
    )
    if outcome.score:
        score = f"{three_digits(outcome.least.days)} / {three_digits(cost.days)} = {100 * outcome.score:.3g} %"
        yield "score", f"the best plan's days over yours: {score}", "strong"
    else:
        why = [] if cost.fits else ["it does not fit"]
        if cost.loses_gradients:
            why.append("it loses gradients")
        yield "score", f"none: {', and '.join(why)}", "alarm"


def meaning(asked: Asked, task: Task, outcome: Outcome, found: Found) -> str:
    """Whether it fits, how long it takes, and how far that is from the best."""
    cost, said = outcome.cost, ""
    if asked.batch > task.sequences:
        said = f"A step has {task.sequences} sequences for each GPU, so a micro-batch has at most as many. "
    if cost.loses_gradients:
        return (
            f"This plan loses gradients: a step adds up those of {task.micro_batches(asked.plan.batch)} micro-batches "
            f"in bf16, where each sum is rounded and a long one stops (notebooks 1 and 7). Take fp32 gradients, or all "
            f"{task.sequences} sequences at a time."
        )
    held, memory = short(sum(cost.held.values())), short(task.memory)
    if not cost.fits:
        return f"{said}Does not fit: each GPU would hold {held}, and has {memory}."
    said += f"Fits, and takes {_days(cost)} days with products at half of the peak."
    if is_best(outcome):
        solved = " You have solved this level." if asked.level in found.solved else ""
        return f"{said} No plan takes fewer.{solved}"
    return f"{said} The best plan takes {three_digits(outcome.least.days)}: your score is {100 * outcome.score:.3g} %."


def table(outcome: Outcome) -> list[list[str]]:
    """The bytes, what each stage sends, and what is assumed."""
    held = [
        (f"bytes of {part}", f"{nbytes:,}", "on each GPU")
        for part, nbytes in outcome.cost.held.items()
    ]
    sent = [(stage, said, "") for stage, said in SENT]
    return [["", "", ""], *map(list, (*held, *sent, *ASSUMED))]


def _days(cost: Cost) -> str:
    return three_digits(cost.days)
