"""What a plan of training takes on many GPUs, by the accountant's terms: whether it fits, its days, and the best plan.

A bound and no forecast: of each pass, the longer of its products and of what it sends counts, or at most both. Left out
are tensor and pipeline parallelism, fp8, stragglers, saves that go on beside the run, and the allocator's gaps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import course_utils.core.accountant as ours
from course_utils.core.datasheets import MACHINES
from course_utils.core.say import Number

NODE = 8  # GPUs that NVLink connects
NVLINK_BYTES_PER_SEC = {
    "A100 SXM": 300e9,
    "H100 SXM": 450e9,
}  # each way: half of what the data sheets print
SHARE = 0.5  # of the peak, while a GPU multiplies: assumed
RECIPES = ("fp32 adamw", "bf16+master adamw", "bf16+master adamw, fp32 gradients")
BATCHES = (1, 2, 4, 8, 16, 32)
BEFORE_GRADIENTS = (
    "the loss",
    "the output's gradient",
)  # no other gradient is made before these moments
MINUTES = (5, 10, 20, 30, 60, 90, 120, 180, 240, 360, 480, 720, 1440)


@dataclass(frozen=True)
class Task:
    """A model, the tokens to train it on in steps of so many sequences for each GPU, and the GPUs, in nodes of eight."""

    name: str
    model: ours.Model
    sequence: int
    tokens: Number
    sequences: int
    gpus: int
    machine: str
    gbit_per_sec: Number  # that a node sends and receives

    def micro_batches(self, batch: int) -> int:
        """How many a step has on each GPU."""
        return self.sequences // batch

    @property
    def step_tokens(self) -> int:
        return self.sequence * self.sequences * self.gpus

    @property
    def memory(self) -> int:
        """Bytes of a GPU."""
        return MACHINES[self.machine].bytes


@dataclass(frozen=True)
class Plan:
    """How to train it. What the stage shards is split over all GPUs, or over a node, each of which then has all of it."""

    recipe: str
    stage: int
    over_node: bool
    batch: int  # sequences on a GPU at a time
    recomputed: int
    minutes: int  # between two saves


@dataclass(frozen=True)
class Pass:
    """Passes that are alike: how often a step has them, and of each the seconds of its products and of what it sends."""

    name: str
    count: int
    compute_s: Number
    sent_s: Number


@dataclass(frozen=True)
class Cost:
    """Bytes on each GPU by part, at the fullest moment; a step's passes and its seconds if all sending overlaps; days then, and if none does."""

    held: dict[str, int]
    fits: bool
    loses_gradients: bool  # a sum in bf16 stops
    passes: tuple[Pass, ...]
    step_s: Number
    lost: Number  # to saves and failures
    days: Number
    most_days: Number


@dataclass(frozen=True)
class Outcome:
    """What a plan takes; the best one, and what that takes."""

    cost: Cost
    best: Plan
    least: Cost

    @property
    def score(self) -> Number:
        """The best plan's days over this one's; 0 if it does not fit, or loses gradients."""
        if not self.cost.fits or self.cost.loses_gradients:
            return 0
        return self.least.days / self.cost.days


@dataclass(frozen=True)
class Planner:
    """A task, and the accountant whose terms count."""

    task: Task
    terms: object = ours

    def check(self, plan: Plan) -> None:
        """Raise a sentence if the task has no such plan."""
        if plan.recomputed > self.task.model.layers:
            raise ValueError(
                f"{self.task.name} has {self.task.model.layers} layers: recompute at most that many."
            )
        if plan.batch > self.task.sequences:
            raise ValueError(
                f"A step has {self.task.sequences} sequences for each GPU: take a micro-batch of at most that many."
            )

    def cost(self, plan: Plan) -> Cost:
        """What the plan takes; raises a sentence if the task has no such plan."""
        self.check(plan)
        held, passes, lost = self._held(plan), self._passes(plan), self._lost(plan.minutes)
        steps = self.task.tokens / self.task.step_tokens
        overlapping = sum(one.count * max(one.compute_s, one.sent_s) for one in passes)
        in_turn = sum(one.count * (one.compute_s + one.sent_s) for one in passes)
        days, most = (
            steps * step_s / ours.SECONDS_PER_DAY / (1 - lost) for step_s in (overlapping, in_turn)
        )
        fits = sum(held.values()) <= self.task.memory
        return Cost(held, fits, self._lossy(plan), passes, overlapping, lost, days, most)

    def outcome(self, plan: Plan) -> Outcome:
        """The plan beside the best one."""
        return Outcome(self.cost(plan), self.best, self.least)

    @cached_property
    def least(self) -> Cost:
        """What the best plan takes."""
        return self.cost(self.best)

    @cached_property
    def best(self) -> Plan:
        """The plan that fits with the fewest days.

        Each layer that is recomputed takes time and gives back space, so the fewest layers with which a plan fits are
        best. And how often to save depends on nothing else.
        """
        minutes = min(MINUTES, key=self._lost)
        fewest = (
            self._fewest_recomputed(replace(plan, minutes=minutes)) for plan in self.choices()
        )
        return min(filter(None, fewest), key=lambda plan: self.cost(plan).days)

    def choices(self) -> Iterator[Plan]:
        """Every plan that is allowed, with all activations kept and a save every few minutes."""
        for recipe, stage, over_node, batch in product(RECIPES, range(4), (False, True), BATCHES):
            plan = Plan(recipe, stage, over_node, batch, 0, MINUTES[0])
            if (
                batch <= self.task.sequences
                and not (over_node and stage == 0)
                and not self._lossy(plan)
            ):
                yield plan

    def _fewest_recomputed(self, plan: Plan) -> Plan | None:
        layers, low = self.task.model.layers, 0
        if not self._fits(replace(plan, recomputed=layers)):
            return None
        while low < layers:
            middle = (low + layers) // 2
            if self._fits(replace(plan, recomputed=middle)):
                layers = middle
            else:
                low = middle + 1
        return replace(plan, recomputed=low)

    def _fits(self, plan: Plan) -> bool:
        return sum(self._held(plan).values()) <= self.task.memory

    def _lossy(self, plan: Plan) -> bool:
        several = self.task.micro_batches(plan.batch) > 1
        return several and "bf16" in self.terms.recipe(plan.recipe)["gradients"]

    def _held(self, plan: Plan) -> dict[str, int]:
        """Bytes of each part at the fullest moment of a step."""
        m, terms, sequence = self.task.model, self.terms, self.task.sequence
        parts = terms.recipe(plan.recipe)
        (dtype,) = parts["parameters"]
        (gradient_dtype,) = parts["gradients"]
        sharers = self._sharers(plan)
        state = terms.state_bytes(terms.parameters(m), parts, sharers, plan.stage)
        added = terms.moments(m, plan.batch, sequence, dtype, gradient_dtype, plan.recomputed)
        rest = terms.rest_bytes(m, plan.batch, sequence, dtype)
        several = self.task.micro_batches(plan.batch) > 1

        def held(moment: str) -> dict[str, int]:
            first = not several and moment in BEFORE_GRADIENTS
            return state | {
                "gradients": 0 if first else state["gradients"],
                "activations": added[moment] + rest,
                "gathered": terms.gathered_bytes(m, dtype, sharers, plan.stage, moment),
            }

        return max(map(held, added), key=lambda parts: sum(parts.values()))

    def _passes(self, plan: Plan) -> tuple[Pass, ...]:
        m, terms, several = self.task.model, self.terms, self.task.micro_batches(plan.batch)
        parts, numbers = terms.recipe(plan.recipe), (terms.parameters(m),)
        peak = MACHINES[self.task.machine].peak("tf32" if "fp32" in parts["parameters"] else "bf16")
        sizes, flop_s = (
            (m, plan.batch, self.task.sequence),
            terms.days(1, 1, peak, SHARE) * ours.SECONDS_PER_DAY,
        )
        forward = terms.forward_flops(*sizes)
        forward_s, backward_s = (
            forward * flop_s,
            (terms.step_flops(*sizes, plan.recomputed) - forward) * flop_s,
        )
        gather, reduce = (
            self._collective_s(terms.tensor_bytes(numbers, *parts[part]), plan)
            for part in ("parameters", "gradients")
        )
        each, last = gather * (plan.stage == 3), reduce * (2 if plan.stage == 0 else 1)
        if plan.over_node:
            last += self._between_nodes_s(terms.tensor_bytes(numbers, *parts["gradients"]))
        return (
            Pass("first forward", 1, forward_s, gather * (plan.stage > 0)),
            Pass("forward", several - 1, forward_s, each),
            Pass("backward", several - 1, backward_s, each + reduce * (plan.stage >= 2)),
            Pass("last backward", 1, backward_s, each + last),
        )

    def _sharers(self, plan: Plan) -> int:
        return NODE if plan.over_node else self.task.gpus

    def _collective_s(self, nbytes: int, plan: Plan) -> Number:
        """Seconds to gather so many bytes, or to reduce and scatter them. In a ring, all but one share pass each link."""
        n, nvlink = self._sharers(plan), NVLINK_BYTES_PER_SEC[self.task.machine]
        speed = nvlink if n <= NODE else min(nvlink, self._node_bytes_per_sec)
        return nbytes * (n - 1) / n / speed

    def _between_nodes_s(self, nbytes: int) -> Number:
        """Seconds to add up the gradients of all nodes. Each node sends them once, and gets their sum."""
        nodes = self.task.gpus // NODE
        return 2 * nbytes * (nodes - 1) / nodes / self._node_bytes_per_sec

    @property
    def _node_bytes_per_sec(self) -> Number:
        return self.task.gbit_per_sec * 1e9 / 8

    def _lost(self, minutes: int) -> Number:
        failure_s = ours.GPU_DAYS_PER_FAILURE * ours.SECONDS_PER_DAY / self.task.gpus
        return self.terms.lost_share(60 * minutes, ours.SAVE_S, failure_s, ours.RESTART_S)
