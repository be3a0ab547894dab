"""Real steps, run in a process that can be killed, and counted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial

import torch
from torch import nn

from course_utils import apart, measure, models
from course_utils.labs.jobs import as_progress
from course_utils.labs.lab import Change, Progress
from course_utils.labs.recompute.asked import Cost, Found, Plan
from course_utils.labs.recompute.words import again_text
from course_utils.measure import Step
from course_utils.quantities import bytes_text, count_text, seconds_text

PATIENCE_S = 180.0  # twice what a measurement may be expected to take
# Few machines are slower than this, and nothing that should take longer is begun.
FLOP_PER_SEC, BYTES_PER_SEC, LONGEST_S = 5e10, 2.5e8, 90.0
A_PROCESS_BYTES = 2**29


def measure_chosen(plan: Plan, found: Found) -> Iterator[Progress]:
    """A real step as it is chosen, and a plain one to compare it with."""
    return _measured(plan, list(dict.fromkeys(["0", plan.again])))


def measure_all(plan: Plan, found: Found) -> Iterator[Progress]:
    """A real step for every point of the frontier."""
    return _measured(plan, list(plan.frontier))


def _measured(plan: Plan, choices: Sequence[str]) -> Iterator[Progress]:
    check_that_it_can_run(plan, choices)
    order = {"choices": choices, **asdict(plan)}
    steps = apart.steps_apart(counted, order, at_most_s=PATIENCE_S)
    results = yield from as_progress(steps, at_most_s=PATIENCE_S)
    costs = {plan.choosing(again): Cost(**counts) for again, counts in results.items()}
    alike = sum(cost == one.predicted for one, cost in costs.items())
    said = f"bytes and FLOPs of {alike} of {len(costs)} exactly as predicted."
    said = f"Measured {count_text(len(costs), 'step')}: {said}"
    yield Progress(1, said, Change(found=lambda known: Found({**known.counted, **costs})))


def check_that_it_can_run(plan: Plan, choices: Sequence[str]) -> None:
    """A sentence on why these steps can't be measured here, if they can't."""
    costs, stack = [plan.frontier[again] for again in choices], plan.all_kept.stack
    flops = sum(cost.flops for cost in costs) * 4 / 3  # a forward more, to look at its bytes
    seconds = flops / FLOP_PER_SEC + len(costs) * plan.layers * stack.block_bytes / BYTES_PER_SEC
    temporary = 4 * stack.block_bytes  # gradients inside a block, and copies that products make
    weights = 8 * plan.layers * stack.parameters
    need = A_PROCESS_BYTES + weights + max(cost.peak for cost in costs) + temporary
    free, why = measure.free_bytes("cpu"), ""
    if seconds > LONGEST_S:
        what, longest = count_text(len(costs), "step"), seconds_text(LONGEST_S)
        why = f"{what} could take {seconds_text(seconds)}, and this lab waits for {longest}"
    elif need > free:
        why = f"it would hold up to {bytes_text(need)}, and {bytes_text(free)} are free"
    if why:
        raise ValueError(f"Not measured: {why}. Take fewer blocks, or a smaller batch, sequence or width.")


# What runs in the process.


def counted(say: apart.Say, *, choices: Sequence[str], **values: object) -> Mapping[str, dict[str, int]]:
    """For each choice of what is computed again, a forward pass and a whole step, run and counted.

    >>> plan = Plan("MLP", layers=4, segment=2, batch=1, sequence=8, width=16)
    >>> Cost(**counted(lambda step: None, choices=["2"], **asdict(plan))["2"]) == plan.predicted
    True
    """
    plan, results = Plan(**values), {}
    x = torch.randn(plan.batch, plan.sequence, plan.width).requires_grad_()
    blocks = blocks_of(plan)
    for number, again in enumerate(choices):
        say(Step(number / len(choices), f"{again_text(again)}: forward and backward."))
        results[again] = _counts(plan.choosing(again), blocks, x)
        blocks.zero_grad()
        x.grad = None
    return results


def _counts(plan: Plan, blocks: nn.ModuleList, x: torch.Tensor) -> dict[str, int]:
    for block in blocks if plan.kind == "GPT" else ():
        again = partial(models.recomputed_attention, early_stop=plan.early_stop)
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
