"""Whether a run fits, against the formulas' own ledgers; what would make it fit, against a search of everything."""

import dataclasses
import functools
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import predict
from course_utils.datasheets import MACHINES
from course_utils.predict import TrainingPlan, longest_sequence, remedy
from course_utils.predict.fitting import MOST


@functools.cache  # asked for the same again and again
def step_of(plan: TrainingPlan) -> predict.Timeline:
    ways = {name: getattr(plan, name) for name in ("fused", "recompute", "accumulate")}
    where = {"recipe": plan.recipe, "machines": plan.machines, "stage": plan.stage}
    return predict.timeline(plan.shape, plan.batch, plan.sequence, **where, **ways)


def held_by(plan: TrainingPlan) -> dict[str, int]:
    most = step_of(plan).fullest.during
    state = {part: getattr(most, part) for part in ("parameters", "gradients", "optimizer", "master")}
    return state | {"activations": sum(most) - sum(state.values())}


def fits(plan: TrainingPlan) -> bool:
    return step_of(plan).peak <= MACHINES[plan.machine_name].bytes


plans = st.builds(
    TrainingPlan,
    shape=st.sampled_from(list(predict.MODELS.values())),
    recipe=st.sampled_from(list(predict.RECIPES)),
    batch=st.integers(1, 40),
    sequence=st.sampled_from([1, 2, 128, 1000, 1024]),
    machine_name=st.sampled_from(["T4", "A100 SXM 40GB", "H100 SXM", "MI300X"]),
    machines=st.sampled_from([1, 2, 8, 1000]),
    stage=st.integers(0, 3),
    fused=st.booleans(),
    recompute=st.booleans(),
    accumulate=st.booleans(),
)
WEIGHT = {name: kind.bytes_by_part.total for name, kind in predict.RECIPES.items()}


def furthest(plan: TrainingPlan) -> dict[str, list[object]]:
    """Wherever each control can be moved to."""
    return {
        "stage": [1, 2, 3],
        "fused": [True],
        "recompute": [True],
        "batch": [1],
        "machines": [MOST],
        "recipe": [name for name in WEIGHT if WEIGHT[name] <= WEIGHT[plan.recipe]],
    }


def can_fit(plan: TrainingPlan) -> bool:
    choices = furthest(plan)
    every = itertools.product(*choices.values())
    return any(fits(dataclasses.replace(plan, **dict(zip(choices, values, strict=True)))) for values in every)


@given(plans)
def test_what_is_held_and_left_is_what_the_formulas_say(plan):
    assert plan.held == held_by(plan)
    assert plan.left == MACHINES[plan.machine_name].bytes - sum(held_by(plan).values())
    assert plan.fits == fits(plan)


@settings(max_examples=100)
@given(plans)
def test_advice_makes_it_fit_and_a_little_less_does_not(plan):
    changes = remedy(plan)
    if fits(plan) or not changes:
        assert not changes
        assert fits(plan) or not can_fit(plan)
        return
    assert fits(dataclasses.replace(plan, **changes))
    for name, value in changes.items():
        milder = [getattr(plan, name)]
        if name in ("stage", "machines", "batch"):
            milder.append(value + (1 if name == "batch" else -1))
        for less in milder:
            assert not fits(dataclasses.replace(plan, **changes | {name: less}))


def test_advice_begins_with_what_costs_least():
    model = predict.MODELS["Llama 3 8B"]
    plan = TrainingPlan(model, "bf16+master adamw", 1, 8192, "H100 SXM", 8, fused=True)
    assert remedy(plan) == {"stage": 3}
    assert [*remedy(dataclasses.replace(plan, machines=1))] == ["stage", "machines"]


def test_the_longest_sequence_fits_and_one_token_more_does_not():
    plan = TrainingPlan(predict.MODELS["Llama 3.1 405B"], "bf16+master adamw", 8, 8192, "T4", 8)
    assert remedy(plan) == {}
    strongest = {name: values[-1] for name, values in furthest(plan).items()} | {"recipe": "bf16 adamw"}
    longest = longest_sequence(plan)
    assert fits(dataclasses.replace(plan, **strongest, sequence=longest))
    assert not fits(dataclasses.replace(plan, **strongest, sequence=longest + 1))
    hopeless = dataclasses.replace(plan, shape=dataclasses.replace(plan.shape, layers=2**20))
    assert longest_sequence(hopeless) == 0


def test_a_recipe_that_is_advised_keeps_the_optimizer_and_as_many_bytes_as_it_can():
    plan = TrainingPlan(predict.MODELS["GPT-2 XL"], "fp32 adamw", 1, 2**20, "T4", 1)
    too_long = dataclasses.replace(
        plan, sequence=longest_sequence(plan) * 9 // 10
    )  # in fp32, on any machines
    assert remedy(too_long)["recipe"] == "bf16+master adamw"


@given(
    st.sampled_from(list(MACHINES.values())),
    st.integers(1, 5000),
    st.sampled_from(list(predict.RECIPES)),
    st.integers(0, 3),
)
def test_the_largest_model_of_a_stage_fits_and_one_a_little_larger_does_not(machine, machines, recipe, stage):
    most = predict.largest_model(machine, machines, recipe, stage=stage)

    def held(parameters):
        return predict.training_bytes(parameters, recipe, machines=machines, stage=stage).total

    assert held(most - machines) <= machine.bytes < held(most + machines)  # a share is rounded up
