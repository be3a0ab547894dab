"""The bytes and days of a training plan on many GPUs, by the accountant's terms, and the best plan.

It is no forecast, and no bound: real products may reach more than half of the peak, which is
assumed here. Of each pass, only the longer counts: its products, or what it sends meanwhile.
Nothing is said of tensor, pipeline and expert parallelism, fp8, stragglers, saves that go on beside
the run, the allocator's gaps, an optimizer's copies, and the rounding of sums between GPUs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from types import SimpleNamespace

import course_utils.core.accountant as ours
from course_utils.core.datasheets import MACHINES
from course_utils.core.say import Number
from course_utils.core.say.language import template

NODE = 8  # GPUs that NVLink connects
# From and to a GPU, in each direction. Data sheets print the sum of both directions.
NVLINK_BYTES_PER_SEC = {"A100 SXM": 300e9, "H100 SXM": 450e9}
SHARE = 0.5  # the share of the peak that products reach: assumed
RECIPES = ("fp32 adamw", "bf16+master adamw", "bf16+master adamw, fp32 gradients")
BATCHES = (1, 2, 4, 8, 16, 32)
BEFORE_GRADIENTS = (ours.AT_LOSS, ours.AT_OUTPUT)  # moments before which a step makes no gradient
# The intervals between saves that a plan may have.
MINUTES = (5, 10, 20, 30, 60, 90, 120, 180, 240, 360, 480, 720, 1440)


@dataclass(frozen=True)
class Task:
    """A model to train, the tokens to train it on, and the GPUs, in nodes of eight."""

    name: str
    model: ours.Model
    sequence: int
    tokens: Number
    sequences: int  # how many each GPU trains on in a step
    gpus: int
    machine: str
    gbit_per_sec: Number  # of a node's network, in each direction

    def micro_batches(self, batch: int) -> int:
        """Return how many micro-batches of that size a step has on each GPU."""
        return self.sequences // batch

    @property
    def step_tokens(self) -> int:
        """The tokens of a step, on all GPUs together."""
        return self.sequence * self.sequences * self.gpus

    @property
    def memory(self) -> int:
        """The bytes of a GPU's memory."""
        return MACHINES[self.machine].bytes


@dataclass(frozen=True)
class Plan:
    """How to train the model. Each field is a control of the plan lab, under the same name."""

    recipe: str
    stage: int  # of ZeRO
    over_node: bool  # whether the state is split over a node's GPUs, or else over all GPUs
    batch: int  # sequences on a GPU at a time
    recomputed: int  # how many layers are recomputed
    minutes: int  # between two saves


@dataclass(frozen=True)
class Pass:
    """A kind of pass: how many of them a step has, and the seconds that each of them takes."""

    name: str
    count: int
    compute_s: Number
    sent_s: Number

    @property
    def overlapping_s(self) -> Number:
        """The seconds of all these passes, if they send while they multiply."""
        return self.count * max(self.compute_s, self.sent_s)

    @property
    def in_turn_s(self) -> Number:
        """The seconds of all these passes, if they first multiply and then send."""
        return self.count * (self.compute_s + self.sent_s)


@dataclass(frozen=True)
class Cost:
    """The bytes that a plan takes on each GPU, and its time."""

    held: dict[str, int]  # bytes of each part on each GPU, at the fullest moment
    fits: bool
    sums_in_bf16: bool  # whether gradients are added up in bf16, where each sum is rounded
    passes: tuple[Pass, ...]
    step_s: Number  # if all sending overlaps with products
    lost: Number  # the share of the time that saves and failures take
    days: Number  # if all sending overlaps with products
    most_days: Number  # if no sending overlaps with products


@dataclass(frozen=True)
class Outcome:
    """The cost of a plan, beside the best plan for the same task and the cost of the best plan."""

    cost: Cost
    best: Plan
    best_cost: Cost

    @property
    def score(self) -> Number:
        """The best plan's days over this plan's.

        The score is 0 if this plan does not fit, or sums gradients in bf16.
        """
        if not self.cost.fits or self.cost.sums_in_bf16:
            return 0
        return self.best_cost.days / self.cost.days


@dataclass(frozen=True)
class Planner:
    """Computes what plans for a task take, and finds the best one."""

    task: Task
    # Has the accountant's functions, such as `state_bytes`: the course's module, or an object with
    # the terms that the reader wrote.
    terms: object = ours

    @cached_property
    def counts(self) -> object:
        """The functions that count the model: the terms, unless it is a mixture of experts.

        The terms that a reader writes know no experts. So of a mixture, the course's accountant
        counts what they would.
        """
        if self.task.model.mixture is None:
            return self.terms
        return SimpleNamespace(
            parameters=ours.stored_parameters,
            forward_flops=ours.active_forward_flops,
            step_flops=ours.any_step_flops,
            moments=ours.any_moments,
            gathered_bytes=ours.any_gathered_bytes,
            rest_bytes=ours.any_rest_bytes,
        )

    def check(self, plan: Plan) -> None:
        """Raise ValueError, with the most that is possible, if the plan does not suit the task."""
        layers = self.task.model.layers
        if plan.recomputed > layers:
            raise ValueError(f"{self.task.name} has {layers} layers: recompute at most that many.")
        if plan.batch > self.task.sequences:
            raise ValueError(
                f"A step has {self.task.sequences} sequences for each GPU: "
                "take a micro-batch of at most that many."
            )

    def cost(self, plan: Plan) -> Cost:
        """Compute what the plan takes. ValueError if the plan does not suit the task."""
        self.check(plan)
        held = self._held(plan)
        passes = self._passes(plan)
        lost = self._lost(plan.minutes)
        step_s = sum(kind.overlapping_s for kind in passes)
        most_step_s = sum(kind.in_turn_s for kind in passes)
        return Cost(
            held=held,
            fits=sum(held.values()) <= self.task.memory,
            sums_in_bf16=self._sums_in_bf16(plan),
            passes=passes,
            step_s=step_s,
            lost=lost,
            days=self._days(step_s, lost),
            most_days=self._days(most_step_s, lost),
        )

    def outcome(self, plan: Plan) -> Outcome:
        """Return the plan's cost, beside the best plan and its cost."""
        return Outcome(self.cost(plan), self.best, self.best_cost)

    @cached_property
    def best_cost(self) -> Cost:
        """The cost of the best plan."""
        return self.cost(self.best)

    @cached_property
    def best(self) -> Plan:
        """The plan with the fewest days among those that fit.

        Recomputing a layer takes time and saves memory. So it is best to recompute the fewest
        layers with which a plan fits. The best interval between saves is the same for all plans,
        because what is lost depends on nothing else that a plan decides.
        """
        minutes = min(MINUTES, key=self._lost)
        fitting = []
        for choice in self.choices():
            plan = self._fewest_recomputed(replace(choice, minutes=minutes))
            if plan is not None:
                fitting.append(plan)
        return min(fitting, key=lambda plan: self.cost(plan).days)

    def choices(self) -> Iterator[Plan]:
        """Yield every plan that sums no gradients in bf16, without recomputing.

        The interval between saves is the same for all: `best` puts another one in its place.
        """
        for recipe, stage, over_node, batch in product(RECIPES, range(4), (False, True), BATCHES):
            plan = Plan(recipe, stage, over_node, batch, recomputed=0, minutes=MINUTES[0])
            has_sequences = batch <= self.task.sequences
            # Stage 0 splits nothing, so there is only one plan and not two.
            is_no_repetition = stage > 0 or not over_node
            if has_sequences and is_no_repetition and not self._sums_in_bf16(plan):
                yield plan

    def _fewest_recomputed(self, plan: Plan) -> Plan | None:
        """Return the plan with the fewest recomputed layers that fits; None if it never fits.

        The number is found by bisection, because each recomputed layer saves bytes.
        """
        fewest = 0
        enough = self.task.model.layers
        if not self._fits(replace(plan, recomputed=enough)):
            return None
        while fewest < enough:
            middle = (fewest + enough) // 2
            if self._fits(replace(plan, recomputed=middle)):
                enough = middle
            else:
                fewest = middle + 1
        return replace(plan, recomputed=fewest)

    def _fits(self, plan: Plan) -> bool:
        """Whether what a GPU holds at the fullest moment fits in its memory."""
        return sum(self._held(plan).values()) <= self.task.memory

    def _accumulates(self, plan: Plan) -> bool:
        """Whether a step has several micro-batches, whose gradients are added up."""
        return self.task.micro_batches(plan.batch) > 1

    def _sums_in_bf16(self, plan: Plan) -> bool:
        """Whether gradients are added up in bf16: each sum is rounded, and a long one stops."""
        return self._accumulates(plan) and self._dtype(plan, "gradients") == "bf16"

    def _dtype(self, plan: Plan, part: str) -> str:
        """Return the dtype of a part that has a single one: "parameters" or "gradients"."""
        (dtype,) = self.terms.recipe(plan.recipe)[part]
        return dtype

    def _held(self, plan: Plan) -> dict[str, int]:
        """Return the bytes of each part on a GPU, at the fullest moment of a step.

        The parts are those of the state, such as "optimizer", and "activations" and "gathered".
        """
        m = self.task.model
        terms = self.terms
        counts = self.counts
        sequence = self.task.sequence
        sharers = self._sharers(plan)
        dtype = self._dtype(plan, "parameters")
        gradient_dtype = self._dtype(plan, "gradients")
        recipe = terms.recipe(plan.recipe)
        state = terms.state_bytes(counts.parameters(m), recipe, sharers, plan.stage)
        # By moment, such as ours.AT_LOSS, the bytes that the step adds: activations, and gradients
        # that are not yet added to those of the state.
        added = counts.moments(m, plan.batch, sequence, dtype, gradient_dtype, plan.recomputed)
        # Small things that no other term counts, such as LayerNorm's statistics.
        rest = counts.rest_bytes(m, plan.batch, sequence, dtype)

        fullest: dict[str, int] = {}
        for moment, added_bytes in added.items():
            held = dict(state)
            if moment in BEFORE_GRADIENTS and not self._accumulates(plan):
                held["gradients"] = 0  # no earlier micro-batch has left any
            held["activations"] = added_bytes + rest
            held["gathered"] = counts.gathered_bytes(m, dtype, sharers, plan.stage, moment)
            if sum(held.values()) > sum(fullest.values()):
                fullest = held
        return fullest

    def _passes(self, plan: Plan) -> tuple[Pass, ...]:
        """Return the passes of a step. ZeRO's stage decides what each pass sends.

        A step has a forward and a backward pass for each micro-batch. The first forward pass and
        the last backward pass may send more than the others, so they are kinds of their own.
        """
        forward_s, backward_s = self._compute_s(plan)
        gather_s = self._collective_s(self._part_bytes(plan, "parameters"), plan)
        reduce_s = self._collective_s(self._part_bytes(plan, "gradients"), plan)

        # From stage 1 on, each GPU has updated only its share of the parameters, so the first
        # forward pass gathers all of them. With stage 3, every pass does.
        first_sent_s = gather_s if plan.stage >= 1 else 0.0
        forward_sent_s = gather_s if plan.stage == 3 else 0.0
        backward_sent_s = forward_sent_s
        if plan.stage >= 2:
            backward_sent_s += reduce_s
        last_reduce_s = reduce_s
        if plan.stage == 0:
            last_reduce_s = 2 * reduce_s  # the sums are reduced, and gathered again
        if plan.over_node:
            last_reduce_s += self._between_nodes_s(self._part_bytes(plan, "gradients"))
        last_sent_s = forward_sent_s + last_reduce_s  # what stage 3 gathers, and the gradients

        others = self.task.micro_batches(plan.batch) - 1
        return (
            Pass(template("first forward"), 1, forward_s, first_sent_s),
            Pass(template("forward"), others, forward_s, forward_sent_s),
            Pass(template("backward"), others, backward_s, backward_sent_s),
            Pass(template("last backward"), 1, backward_s, last_sent_s),
        )

    def _compute_s(self, plan: Plan) -> tuple[Number, Number]:
        """Return the seconds of the products of one forward pass, and of one backward pass."""
        m = self.task.model
        sequence = self.task.sequence
        # Tensor cores take fp32 numbers as tf32.
        fmt = "tf32" if self._dtype(plan, "parameters") == "fp32" else "bf16"
        peak = MACHINES[self.task.machine].peak(fmt)
        # The term `days` gives the days of one FLOP on one GPU.
        flop_s = self.terms.days(1, 1, peak, SHARE) * ours.SECONDS_PER_DAY
        forward = self.counts.forward_flops(m, plan.batch, sequence)
        step = self.counts.step_flops(m, plan.batch, sequence, plan.recomputed)
        return forward * flop_s, (step - forward) * flop_s

    def _part_bytes(self, plan: Plan, part: str) -> int:
        """Return the bytes of the whole model's parameters or gradients, before they are split."""
        numbers = self.counts.parameters(self.task.model)
        return self.terms.tensor_bytes((numbers,), self._dtype(plan, part))

    def _sharers(self, plan: Plan) -> int:
        """Return over how many GPUs the parts that the stage shards are split."""
        return NODE if plan.over_node else self.task.gpus

    def _collective_s(self, nbytes: int, plan: Plan) -> Number:
        """Return the seconds in which the sharers gather `nbytes`, or reduce and scatter them.

        The GPUs form a ring, and through each link goes everything but one GPU's share.
        """
        sharers = self._sharers(plan)
        speed = NVLINK_BYTES_PER_SEC[self.task.machine]
        if sharers > NODE:  # then the ring leaves the node, and its slowest link decides
            speed = min(speed, self._node_bytes_per_sec)
        return nbytes * (sharers - 1) / sharers / speed

    def _between_nodes_s(self, nbytes: int) -> Number:
        """Return the seconds in which nodes add up their gradients.

        Through each link of a ring of nodes, everything but one node's share goes twice: when the
        gradients are added up, and when the sums are sent to all nodes.
        """
        nodes = self.task.gpus // NODE
        return 2 * nbytes * (nodes - 1) / nodes / self._node_bytes_per_sec

    @property
    def _node_bytes_per_sec(self) -> Number:
        return self.task.gbit_per_sec * 1e9 / 8  # a byte has 8 bits

    def _lost(self, minutes: int) -> Number:
        """Return the share of the time that is lost, with a save every `minutes` minutes."""
        failure_s = ours.GPU_DAYS_PER_FAILURE * ours.SECONDS_PER_DAY / self.task.gpus
        return self.terms.lost_share(60 * minutes, ours.SAVE_S, failure_s, ours.RESTART_S)

    def _days(self, step_s: Number, lost: Number) -> Number:
        """Return the days of the run; `lost` is the share of them that makes no steps.

        The steps' own time is the share 1 - lost of all the time.
        """
        steps = self.task.tokens / self.task.step_tokens
        return steps * step_s / ours.SECONDS_PER_DAY / (1 - lost)
