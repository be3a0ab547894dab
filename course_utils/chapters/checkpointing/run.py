"""A run and what serves its model, as the accountant sees them: all that an account needs."""

from collections.abc import Mapping
from functools import cached_property

from course_utils.chapters.gradients.step_over_time import Step, rate_for, step_on
from course_utils.core import accountant, predict
from course_utils.core.datasheets import Machine, machine_named
from course_utils.core.say import Number

MOST_EXPERTS = 16  # of a layer


class Run:
    """A model, the GPUs and the recipe that train it, and the users whom it serves.

    A subclass has these as its fields: the lab asks for them, one by one.
    """

    m: accountant.Model
    machine: str  # the name of the GPU's data sheet
    gpus: int
    tokens: float
    recipe: str
    stage: int  # of ZeRO
    batch: int  # sequences on each GPU at a time
    sequence: int  # tokens
    recomputed: bool  # whether all layers are recomputed
    percent: int  # of the peak that the counted FLOPs reach: the MFU
    users: int
    cached: int  # tokens in the cache of each user
    serving: int  # GPUs that serve one copy of the model
    watts: int  # of a GPU
    price: float  # dollars for a GPU hour

    @property
    def sheet(self) -> Machine:
        """The GPU's data sheet."""
        return machine_named(self.machine)

    @property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """The dtypes of each part of the state."""
        return accountant.recipe(self.recipe)

    @property
    def dtype(self) -> str:
        """The dtype of the parameters in the matrix products."""
        (dtype,) = self.parts["parameters"]
        return dtype

    @property
    def peak(self) -> Number:
        """The GPU's dense FLOP/s, by its data sheet, in the recipe's dtype, or the nearest one."""
        return self.sheet.peak(rate_for(self.sheet, self.dtype))

    @property
    def serving_peak(self) -> Number:
        """The same in the format in which the model is served."""
        return self.sheet.peak(rate_for(self.sheet, accountant.SERVED_IN))

    @property
    def length(self) -> int:
        """The tokens of a sequence: at most as many as the model has positions for."""
        return min(self.sequence, self.m.context)

    @property
    def cached_length(self) -> int:
        """The tokens in a user's cache: at most as many as the model has positions for."""
        return min(self.cached, self.m.context)

    @property
    def recomputed_layers(self) -> int:
        """All layers, or none, if it is not counted what a recomputed layer of the model costs."""
        is_counted = accountant.recomputing_is_counted(self.m)
        return self.m.layers if self.recomputed and is_counted else 0

    @cached_property
    def lines(self) -> dict[str, object]:
        """The account of the run, line by line, as `python accountant.py --exact` has it."""
        return accountant.account(
            self.m,
            gpus=self.gpus,
            tokens=self.tokens,
            recipe_name=self.recipe,
            stage=self.stage,
            batch=self.batch,
            sequence=self.length,
            recomputed=self.recomputed_layers,
            memory=self.sheet.bytes,
            peak=self.peak,
            share=self.percent / 100,
        )

    @cached_property
    def serving_lines(self) -> dict[str, object]:
        """The account of a step of decoding, line by line."""
        return accountant.serving_lines(
            self.m,
            users=self.users,
            cached=self.cached_length,
            gpus=self.serving,
            bandwidth=self.sheet.bytes_per_sec,
            peak=self.serving_peak,
        )

    @cached_property
    def step(self) -> Step | None:
        """The memory of a step over its time; None if it is not predicted for such a model.

        Nor is it for a mixture of more than MOST_EXPERTS, whose operations are too many to be run
        while a slider moves.
        """
        mixture = self.m.mixture
        if not accountant.step_is_counted(self.m):
            return None
        if mixture and mixture.experts > MOST_EXPERTS:
            return None
        timeline = predict.timeline(
            self.m,
            self.batch,
            self.length,
            recipe=self.recipe,
            machines=self.gpus,
            stage=self.stage,
            recompute=self.recomputed,
            accumulate=True,
            gathered=True,
        )
        return step_on(self.machine, self.dtype, timeline)
