"""Real steps, run in a process that can be killed, and counted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial

import torch
from torch import nn

from course_utils import measure, models
from course_utils.labs.jobs import as_progress
from course_utils.labs.lab import Change, Progress
from course_utils.labs.recompute.asked import Cost, Plan
from course_utils.labs.recompute.words import again_text
from course_utils.measure import Step
from course_utils.measure.results import OnStep
from course_utils.quantities import bytes_text, seconds_text
from course_utils.workers import process

PATIENCE_S = 180.0  # twice what a measurement may be expected to take
# Few machines are slower than this, and nothing that should take longer is begun.
FLOP_PER_SEC, BYTES_PER_SEC, LONGEST_S = 5e10, 2.5e8, 90.0
A_PROCESS_BYTES = 2**29


def measured(plans: Sequence[Plan]) -> Iterator[Progress]:
    """Run a real step of each plan. All plans have the same blocks."""
    check_that_it_can_run(plans)
    order = {"plans": [asdict(plan) for plan in plans]}
    steps = process.steps_of(counted, order, at_most_s=PATIENCE_S)
    results = yield from as_progress(steps, at_most_s=PATIENCE_S)
    costs = {plan: Cost(**counts) for plan, counts in zip(plans, results["counts"], strict=True)}
    alike = sum(cost == plan.predicted for plan, cost in costs.items())
    said = f"Measured bytes and FLOPs of steps: {alike} of {len(costs)} exactly as predicted."
    yield Progress(1, said, Change(found=lambda known: {**known, **costs}))


def check_that_it_can_run(plans: Sequence[Plan]) -> None:
    """A sentence on why these steps of the same blocks can't be measured here, if they can't."""
    costs, stack = [plan.predicted for plan in plans], plans[0].all_kept.stack
    flops = sum(cost.flops for cost in costs) * 4 / 3  # a forward more, to look at its bytes
    seconds = flops / FLOP_PER_SEC + len(costs) * stack.layers * stack.block_bytes / BYTES_PER_SEC
    temporary = 4 * stack.block_bytes  # gradients inside a block, and copies that products make
    weights = 8 * stack.layers * stack.parameters
    need = A_PROCESS_BYTES + weights + max(cost.peak for cost in costs) + temporary
    free, why = measure.free_bytes("cpu"), ""
    if seconds > LONGEST_S:
        why = f"it could take {seconds_text(seconds)}, and this lab waits for {LONGEST_S:.0f} s"
    elif need > free:
        why = f"it would hold up to {bytes_text(need)}, and {bytes_text(free)} are free"
    if why:
        raise ValueError(f"Not measured: {why}. Take fewer blocks, or a smaller batch, sequence or width.")


# What runs in the process.


def counted(on_step: OnStep, *, plans: Sequence[Mapping[str, object]]) -> dict[str, list[dict[str, int]]]:
    """Runs a forward pass and a whole step of each plan, and counts them. All plans have the same blocks.

    >>> plan = Plan("MLP", layers=4, segment=2, batch=1, sequence=8, width=16)
    >>> Cost(**counted(lambda step: None, plans=[asdict(plan)])["counts"][0]) == plan.predicted
    True
    """
    choices, counts = [Plan(**values) for values in plans], []
    x = torch.randn(choices[0].batch, choices[0].sequence, choices[0].width).requires_grad_()
    blocks = blocks_of(choices[0])
    for number, plan in enumerate(choices):
        on_step(Step(number / len(choices), f"{again_text(plan).capitalize()}: forward and backward."))
        counts.append(_counts(plan, blocks, x))
        blocks.zero_grad()
        x.grad = None
    return {"counts": counts}


def _counts(plan: Plan, blocks: nn.ModuleList, x: torch.Tensor) -> dict[str, int]:
    again = partial(models.recomputed_attention, early_stop=plan.early_stop)
    for block in blocks if plan.kind == "GPT" else ():
        block.attention.mix = again if plan.scores_again else models.attention
    forward = partial(models.recomputed, blocks, x, plan.segment, early_stop=plan.early_stop)
    weights = list(blocks.parameters())

    def step() -> None:
        forward().sum().backward()

    # One after the other: a counter of FLOPs around a step holds tensors longer than the step would.
    return {
        "kept": measure.saved_bytes(forward, exclude=weights),
        "peak": measure.peak_saved_bytes(step, exclude=weights),
        "flops": measure.flops(step).total,
    }


def blocks_of(plan: Plan) -> nn.ModuleList:
    """The blocks themselves, in fp32."""
    make = {
        "x W": partial(models.Linear, plan.width, plan.width, biases=False),
        "MLP": partial(models.MLPBlock, plan.width),
        "GPT": partial(models.Block, plan.width, plan.heads),
        "GPT, fused attention": partial(models.Block, plan.width, plan.heads, fused=True),
    }
    return nn.ModuleList(make[plan.kind]() for _ in range(plan.layers))
