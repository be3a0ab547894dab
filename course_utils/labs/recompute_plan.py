"""What the recompute lab's controls ask for: a stack of blocks, its frontier, and a real step that is measured."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import nn

from course_utils import apart, measure, models, predict
from course_utils.labs.size_control import size_of
from course_utils.measure import Step
from course_utils.predict import BlockStack
from course_utils.quantities import Number, bytes_text, count_text, seconds_text

KINDS = ("x W", "MLP", "GPT", "GPT, fused attention")
HEAD_WIDTH = 64  # as in every GPT, where the width is a multiple of it
STATE_BYTES = 16  # for each parameter: itself, its gradient and AdamW's two, in fp32
SCORES = "scores"  # what is computed again, where it is not a segment of so many blocks

# Of a measurement: few machines are slower than this, and nothing that should take longer is begun.
FLOP_PER_SEC, BYTES_PER_SEC, LONGEST_S = 5e10, 2.5e8, 90.0
A_PROCESS_BYTES = 2**29
Found = dict[str, dict[str, int]]  # by what is computed again: a segment's length in digits, or SCORES


@dataclass(frozen=True)
class Plan:
    """One state of the controls."""

    kind: str
    layers: int
    segment: int
    batch: int
    sequence: int
    width: int
    early_stop: bool
    scores_again: bool

    @property
    def again(self) -> str:
        """What is computed again: a segment of so many blocks, in digits, or the scores."""
        return SCORES if self.scores_again else f"{self.segment}"

    @property
    def with_everything_kept(self) -> "Plan":
        """The same blocks with nothing computed again: what the frontier, and measurements of it, depend on."""
        return replace(self, segment=0, scores_again=False)

    @property
    def heads(self) -> int:
        """The width is cut into heads of 64, or of its largest part that divides 64."""
        return self.width // math.gcd(self.width, HEAD_WIDTH)

    @cached_property
    def stack(self) -> BlockStack:
        """What `predict` says of these blocks."""
        rows = self.batch * self.sequence
        if self.kind == "x W":
            return predict.linear_stack(self.layers, rows, self.width)
        if self.kind == "MLP":
            return predict.mlp_stack(self.layers, rows, self.width)
        shape = predict.Transformer(self.layers, self.width, self.heads, 1, self.sequence)
        return predict.transformer_stack(
            shape,
            self.batch,
            self.sequence,
            fused=self.kind == "GPT, fused attention",
            scores_again=self.scores_again,
        )

    @property
    def choices(self) -> list[str]:
        """All that can be computed again: nothing, a segment of each length, the scores where they are kept."""
        return [f"{segment}" for segment in range(self.layers + 1)] + ([SCORES] if self.kind == "GPT" else [])

    def choosing(self, again: str) -> "Plan":
        """The same with that computed again."""
        segment = 0 if again == SCORES else int(again)
        return replace(self, segment=segment, scores_again=again == SCORES)

    @cached_property
    def predicted(self) -> dict[str, int]:
        """Bytes kept after the forward pass, the most at one time, and FLOPs of a step."""
        return {
            "kept": self.stack.kept_bytes(self.segment),
            "peak": self.stack.peak_bytes(self.segment).total,
            "flops": self.stack.step_flops(self.segment, early_stop=self.early_stop).total,
        }

    @property
    def ratio(self) -> Number:
        """FLOPs of a step over those with everything kept."""
        return self.stack.flops_ratio(self.segment, early_stop=self.early_stop)

    @property
    def state_bytes(self) -> int:
        """Parameters, gradients and AdamW's state: there whatever is computed again."""
        return STATE_BYTES * self.layers * self.stack.parameters


def plan_of(
    kind: str, layers: int, segment: int, early_stop: bool, scores_again: bool, **sizes: object
) -> Plan:
    """What the controls ask for, or a sentence on what they cannot mean."""
    of = {name: size_of(name, size) for name, size in sizes.items()}
    scores = scores_again and kind == "GPT"
    return Plan(
        kind, layers, 0 if scores else min(segment, layers), **of, early_stop=early_stop, scores_again=scores
    )


# The real thing.


def check_that_it_can_run(plan: Plan, choices: Sequence[str]) -> None:
    """A sentence on why these steps can't be measured here, if they can't."""
    stacks = {again: plan.choosing(again) for again in choices}
    flops = sum(
        each.predicted["flops"] * 4 / 3 for each in stacks.values()
    )  # a forward more, to look at its bytes
    kept = plan.layers * plan.stack.block_bytes
    seconds = flops / FLOP_PER_SEC + len(stacks) * kept / BYTES_PER_SEC
    if seconds > LONGEST_S:
        what = "this step" if len(stacks) == 1 else f"these {len(stacks)} steps"
        raise ValueError(
            f"Not measured: {what} could take {seconds_text(seconds)}, and this lab waits for "
            f"{seconds_text(LONGEST_S)}. Take fewer blocks, or a smaller batch, sequence or width."
        )
    most = max(each.predicted["peak"] for each in stacks.values())
    temporary = 4 * plan.stack.block_bytes  # gradients inside a block, and copies that products make
    need = A_PROCESS_BYTES + 8 * plan.layers * plan.stack.parameters + most + temporary
    free = measure.free_bytes("cpu")
    if need > free:
        raise ValueError(
            f"Not measured: it would hold up to {bytes_text(need)}, and {bytes_text(free)} are free. "
            "Take fewer blocks, or a smaller batch, sequence or width."
        )


def order_of(plan: Plan, choices: Sequence[str]) -> dict[str, object]:
    """What `found` needs to know of a plan, as JSON can hold it."""
    return {"choices": list(choices), **vars(plan.with_everything_kept)}


def found(say: apart.Say, *, choices: Sequence[str], **values: object) -> Mapping[str, dict[str, int]]:
    """For each choice of what is computed again, a forward pass and a whole step, run and counted.

    >>> plan = Plan("MLP", 4, 2, 1, 8, 16, early_stop=True, scores_again=False)
    >>> found(lambda step: None, **order_of(plan, ["2"]))["2"] == plan.predicted
    True
    """
    plan, results = Plan(**values), {}
    x = torch.randn(plan.batch, plan.sequence, plan.width).requires_grad_()
    blocks = blocks_of(plan)
    for number, again in enumerate(choices):
        say(Step(number / len(choices), f"{again_text(again)}: forward and backward."))
        results[again] = _counted(plan.choosing(again), blocks, x)
        blocks.zero_grad()
        x.grad = None
    return results


def _counted(plan: Plan, blocks: nn.ModuleList, x: torch.Tensor) -> dict[str, int]:
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


def again_text(again: str) -> str:
    """What is computed again, in words.

    >>> again_text("0"), again_text("1"), again_text("4"), again_text("scores")
    ('nothing again', 'segments of 1 block', 'segments of 4 blocks', 'only the scores computed again')
    """
    if again == SCORES:
        return "only the scores computed again"
    return f"segments of {count_text(int(again), 'block')}" if int(again) else "nothing again"
