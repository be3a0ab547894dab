"""The memory lab: its bars against the formulas' own ledgers, its advice against a search of everything, its count."""

import dataclasses
import itertools
import re
import sys
import xml.etree.ElementTree as ElementTree

import psutil
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from course_utils import apart, labs, predict, whole_models
from course_utils.datasheets import MACHINES
from course_utils.labs import memory_plan, memory_words
from course_utils.labs.memory_lab import PRESETS, plan_of, shape_of, sizes_of
from course_utils.labs.memory_picture import LEFT, LENGTH
from course_utils.labs.memory_plan import LARGEST, PARTS, Plan, changes_text, most_parameters, remedies
from course_utils.quantities import Ledger
from tests.test_labs import button, words
from tests.test_machines import timing_of
from tests.waiting import wait_until

untimed = settings(deadline=None)
GIGABYTE = 10**9
TINY = predict.Transformer(2, 32, 4, 50, 16)


@pytest.fixture
def memory():
    """The memory lab as it opens."""
    return labs.memory_lab()


ANY_LAB = labs.memory_lab()


# An independent way to the bytes: straight to the formulas.


def held_by(plan: Plan) -> dict[str, int]:
    state = predict.training_bytes(
        plan.shape.parameters,
        plan.recipe,
        tensors=plan.shape.tensors,
        machines=plan.machines,
        stage=plan.stage,
    )
    peak = predict.step_peak_bytes(
        plan.shape,
        plan.batch,
        plan.sequence,
        dtype="fp32" if plan.recipe.startswith("fp32") else "bf16",
        gradients="fp32" if "fp32" in plan.recipe.replace("+master", "") else "bf16",
        fused=plan.fused,
        fused_norm=plan.fused_norm,
        recompute=plan.recompute,
    )
    return {**state, "activations": peak.total}


def fits(plan: Plan) -> bool:
    return sum(held_by(plan).values()) <= MACHINES[plan.machine_name].bytes


plans = st.builds(
    Plan,
    shape=st.sampled_from(list(predict.MODELS.values())),
    recipe=st.sampled_from(list(predict.RECIPES)),
    batch=st.integers(1, 40),
    sequence=st.sampled_from([1, 2, 128, 1000, 1024]),
    machine_name=st.sampled_from(["T4", "A100 SXM 40GB", "H100 SXM", "MI300X"]),
    machines=st.sampled_from([1, 2, 8, 1000]),
    stage=st.integers(0, 3),
    fused=st.booleans(),
    fused_norm=st.booleans(),
    recompute=st.booleans(),
)


# What it shows.


def bars(lab, top):
    """The parts of the bar at that height: where each begins and ends, by part."""
    tree = ElementTree.fromstring(lab.screen.svg)
    found = {}
    for node in tree.iter():
        part = (node.get("class") or "").split()[-1:]
        if node.get("y") == f"{top}" and part and part[0] in PARTS:
            x, width = float(node.get("x")), float(node.get("width"))
            found[part[0]] = (x, x + width)
    return found


def column(lab, name):
    head, *rows = lab.screen.table
    return {row[0]: int(row[head.index(name)].replace(",", "")) for row in rows}


@untimed
@given(plans)
def test_the_table_is_what_the_formulas_say_to_the_byte(plan):
    _, *rows = memory_words.table(plan, None)
    shown = {row[0]: [int(cell.replace(",", "")) for cell in row[1:3]] for row in rows}
    here, alone = held_by(plan), held_by(dataclasses.replace(plan, machines=1))
    assert {part: shown[part] for part in PARTS} == {part: [here[part], alone[part]] for part in PARTS}
    assert shown["total"] == [sum(here.values()), sum(alone.values())]
    assert sum(n for name, (n, _) in shown.items() if re.match("(at|in) ", name)) == here["activations"]
    kept = sum(n for name, (n, _) in shown.items() if name.startswith("kept by autograd: "))
    ways = {"fused": plan.fused, "fused_norm": plan.fused_norm, "recompute": plan.recompute}
    each = {"batch": plan.batch, "sequence": plan.sequence, "dtype": plan.dtype}
    assert kept == plan.shape.activation_bytes(**each, **ways, loss=True).total


@pytest.mark.parametrize("recipe", ["fp32 sgd", "bf16+master adamw, gradients twice"])
def test_the_bar_is_as_long_as_its_bytes_and_its_limit_is_the_data_sheets(memory, recipe):
    memory.set(recipe=recipe, machine="H200 SXM", batch=2, machines=4, stage=2)
    drawn, held = bars(memory, 206), column(memory, "on each machine")
    per_byte = LENGTH / (1.04 * max(held["total"], 141 * GIGABYTE))
    assert list(drawn) == [part for part in PARTS if held[part]]
    end = LEFT
    for part, (begin, stop) in drawn.items():
        assert begin == pytest.approx(end, abs=0.01)
        assert stop - begin == pytest.approx(held[part] * per_byte, rel=1e-4, abs=0.01)
        end = stop
    tree = ElementTree.fromstring(memory.screen.svg)
    limits = [node.get("points").split(",")[0] for node in tree.iter() if node.get("class") == "line"]
    assert [float(x) for x in limits] == [pytest.approx(LEFT + 141 * GIGABYTE * per_byte, abs=0.06)] * 2
    assert "141 GB: the data sheet's memory, GB = 10^9" in words(memory)


def test_the_four_stages_stand_below_each_other_with_their_own_bytes(memory):
    memory.set(machines=8, stage=1)
    full = 1.04 * column(memory, "on each machine")["total"]
    for stage in range(4):
        held = held_by(dataclasses.replace(plan_of(**memory.values), stage=stage))
        drawn = bars(memory, 348 + 27 * stage)
        end = min(LENGTH, LENGTH * sum(held.values()) / full)
        assert max(stop for _, stop in drawn.values()) == pytest.approx(LEFT + end, abs=0.01)
        total = memory_words.short(sum(held.values()))
        left = memory_words.short(abs(80 * GIGABYTE - sum(held.values())))
        assert (
            f"{total}, {left} {'left' if fits(dataclasses.replace(plan_of(**memory.values), stage=stage)) else 'over'}"
            in words(memory)
        )


def test_the_formula_has_its_numbers_filled_in(memory):
    memory.preset("Llama 3 70B")
    memory.set(recipe="bf16+master adamw", machines=64, stage=3)
    assert (
        "70,553,706,496 × 16 bytes (2 parameters + 2 gradients + 8 optimizer + 4 master) / 64 machines = 17,638,426,624"
        in words(memory)
    )
    assert "4 bytes × 723 step counters = 2,892" in words(memory)
    assert (
        "in bf16, at the loss: activations 218 GB + log-probabilities and their two gradients 12.6 GB"
        in words(memory)
    )
    memory.set(machines=1000, stage=1)
    assert (
        "70,553,706,496 × 4 bytes (2 parameters + 2 gradients) + 4 bytes × 723 step counters = 282,214,828,876"
        in words(memory)
    )
    assert "× 12 bytes (8 optimizer + 4 master) / 1,000 machines, a share rounded up = 846,644,484" in words(
        memory
    )
    memory.set(machines=1, recipe="fp32 sgd")
    assert "70,553,706,496 × 8 bytes (4 parameters + 4 gradients) = 564,429,651,968" in words(memory)
    assert "nothing: it is one machine" in words(memory)
    assert "in fp32, at the loss: " in words(memory)


@untimed
@given(plans)
def test_the_two_formulas_of_the_state_add_up_to_it(plan):
    said = dict(memory_words.formulas(plan, None))
    ends = [re.search(r"= ([\d,]+)$", said[name]) for name in ("whole", "split")]
    assert sum(int(end[1].replace(",", "")) for end in ends if end) == plan.state.total


def test_the_opening_question_can_be_read_off(memory):
    memory.preset("the opening question")
    for recipe, between in (
        ("bf16+master adamw", ["14.5 billion", "21.3 billion"]),
        ("fp32 adamw", ["8.89 billion", "14.5 billion"]),
    ):
        memory.set(recipe=recipe)
        stages = re.findall(r"(?:left|over) ([\d.]+ billion)", words(memory))
        assert stages == ["5 billion", *between, "40 billion"]
        assert predict.largest_model(MACHINES["H100 SXM"], 8, recipe) == 40e9
        assert predict.largest_model(MACHINES["H100 SXM"], 8, recipe, sharded=False) == 5e9


@given(
    st.sampled_from(list(MACHINES.values())),
    st.integers(1, 5000),
    st.sampled_from(list(predict.RECIPES)),
    st.integers(0, 3),
)
def test_the_most_parameters_are_the_formulas_and_a_few_more_do_not_fit(machine, machines, recipe, stage):
    most = most_parameters(machine, machines, recipe, stage)
    if stage in (0, 3):
        assert most == predict.largest_model(machine, machines, recipe, sharded=stage == 3)

    def held(parameters):
        return predict.training_bytes(parameters, recipe, machines=machines, stage=stage).total

    assert held(most - machines) <= machine.bytes < held(most + machines)  # a share is rounded up


@pytest.mark.parametrize("name", predict.MODELS)
def test_every_preset_fills_the_fields_with_its_model(memory, name):
    memory.preset(name)
    assert memory.error is None
    shape = predict.MODELS[name]
    assert f"{name}: {shape.parameters:,} parameters" in words(memory)
    assert plan_of(**memory.values).shape == shape
    memory.set(layers="3")
    assert "A model of these sizes: " in words(memory)


def test_the_fields_are_those_of_the_kind_and_either_kind_can_be_switched_to(memory):
    for name in predict.MODELS:
        for kind, hidden in (("GPT", {"kv_heads", "feed_forward"}), ("Llama", {"positions"})):
            memory.preset(name)
            memory.set(kind=kind)
            assert memory.error is None
            assert {n for n, c in memory.controls.items() if c.layout.display == "none"} == hidden


def test_what_is_not_counted_is_said_where_it_matters(memory):
    memory.set(machines=1, stage=3, recipe="fp32 adamw")
    assert "the optimizer's own" in words(memory)
    assert "send each other" not in words(memory)
    memory.set(machines=2)
    assert "layers gathered for use" in words(memory)
    memory.set(stage=2)
    assert "gradients before they are split" in words(memory)
    assert "its data sheet has no fp32" in words(memory)  # the B200's
    memory.set(recipe="bf16 adamw")
    assert words(memory).count("its data sheet has no bf16") == 1  # the T4's
    assert "two copies in fp32" not in words(memory)
    memory.set(fused_norm=False)
    assert "an RMSNorm of single operations keeps two copies in fp32" in words(memory)


# What it advises.


def without(plan: Plan, fewer: int) -> bool:
    """Whether it fits with so many controls moved, wherever they are moved to."""
    weight = {name: kind.bytes_by_part.total for name, kind in predict.RECIPES.items()}
    choices = {
        "stage": range(plan.stage + 1, 4),
        "fused": [True],
        "fused_norm": [True],
        "recompute": [True],
        "batch": [1],
        "machines": [LARGEST],
        "recipe": [name for name in weight if weight[name] <= weight[plan.recipe]],
    }
    return any(
        fits(dataclasses.replace(plan, **dict(zip(levers, values, strict=True))))
        for levers in itertools.combinations(choices, fewer)
        for values in itertools.product(*(choices[lever] for lever in levers))
    )


@settings(untimed, max_examples=60)
@given(plans)
def test_advice_makes_it_fit_a_little_less_does_not_and_nor_do_fewer_controls(plan):
    found = [] if fits(plan) else list(remedies(plan))
    assert plan.fits == fits(plan)
    if fits(plan):
        return
    if not found:
        assert not any(without(plan, count) for count in range(8))
        return
    counts = {len(changes) for changes in found}
    assert len(counts) == 1
    assert not without(plan, counts.pop() - 1)
    for changes in found:
        assert fits(dataclasses.replace(plan, **changes))
        for lever, value in changes.items():
            milder = {**changes, lever: getattr(plan, lever)}
            assert not fits(dataclasses.replace(plan, **milder))
            if lever in ("stage", "machines", "batch"):
                milder[lever] = value + (1 if lever == "batch" else -1)
                almost = dataclasses.replace(plan, **milder)
                assert not fits(almost)
                assert {lever: value} in list(remedies(almost))


@settings(untimed, max_examples=60)
@given(plans)
def test_the_batch_that_is_called_the_largest_is(plan):
    if fits(plan):
        most = memory_plan.largest_batch(plan)
        assert fits(dataclasses.replace(plan, batch=most))
        assert not fits(dataclasses.replace(plan, batch=most + 1))


def test_a_recipe_that_is_advised_keeps_the_optimizer_and_as_many_bytes_as_it_can(memory):
    memory.preset("GPT-2 XL")
    memory.set(recipe="fp32 amsgrad", machines=1, machine="A100 SXM 40GB")
    recipes = [changes["recipe"] for changes in remedies(plan_of(**memory.values)) if "recipe" in changes]
    assert recipes == ["bf16+master adamw, gradients twice"]
    memory.set(recipe="bf16+master adamw", machine="L4")
    (changes,) = remedies(plan_of(**memory.values))
    assert changes == {"recipe": "bf16 adamw"}  # and not fp32 sgd, with as few bytes of a parameter


def test_the_meaning_says_by_how_much_and_what_would_help(memory):
    memory.preset("GPT-2 XL")
    memory.set(recipe="bf16+master adamw", machine="L4", machines=1)
    assert memory.screen.meaning == (
        "Runs over: one L4 would hold 28.1 GB and has 24 GB, 4.07 GB too little. "
        "One change is enough: the recipe bf16 adamw."
    )
    memory.set(machines=8)
    assert "each of the 8 machines would hold" in memory.screen.meaning
    assert "One change is enough: sharding stage 1; or the recipe bf16 adamw." in memory.screen.meaning
    memory.set(stage=1)
    assert memory.screen.meaning.startswith(
        "Fits: each of the 8 machines holds 11.7 GB of 24 GB, with 12.3 GB left."
    )
    assert "The largest batch that fits is 4." in memory.screen.meaning
    memory.preset("Llama 3.1 405B")
    memory.set(machine="T4", batch=8)
    end = re.search(
        r"machines and recipe makes it fit; a sequence of ([\d,]+) tokens would fit then\.$",
        memory.screen.meaning,
    )
    longest = int(end[1].replace(",", ""))
    strongest = {
        "stage": 3,
        "fused": True,
        "fused_norm": True,
        "recompute": True,
        "batch": 1,
        "machines": LARGEST,
        "recipe": "bf16 adamw",
    }
    plan = dataclasses.replace(plan_of(**memory.values), **strongest)
    assert fits(dataclasses.replace(plan, sequence=longest))
    assert not fits(dataclasses.replace(plan, sequence=longest + 1))


def test_make_it_fit_moves_the_controls_until_it_does(memory):
    for name in PRESETS:
        memory.preset(name)
        memory.set(machines=1, stage=0, fused=False, recompute=False, batch=8)
        before = memory.screen.meaning
        button(memory, "Make it fit").click()
        if before.startswith("Fits"):
            assert memory.screen.mistake == "It fits as it is."
        else:
            assert memory.screen.mistake == ""
            assert memory.screen.meaning.startswith("Fits: ")
    memory.preset("Llama 3.1 405B")
    memory.set(machine="T4", batch=8, recompute=True)
    memory.act("Make it fit")
    assert memory.screen.mistake.startswith("No setting of stage, attention")


def test_remedies_are_said_in_words():
    everything = {
        "stage": 3,
        "fused": True,
        "fused_norm": True,
        "recompute": True,
        "batch": 1,
        "machines": 2000,
        "recipe": "fp32 sgd",
    }
    assert changes_text(everything) == (
        "sharding stage 3, fused attention, norms in one kernel, recompute, a batch of at most 1, at least 2,000 machines "
        "and the recipe fp32 sgd"
    )


# What it counts.


@pytest.mark.parametrize("recipe", predict.RECIPES)
@settings(untimed, max_examples=2, phases=[Phase.generate])  # to make one smaller takes minutes
@given(
    kind=st.sampled_from(["GPT", "Llama"]),
    layers=st.integers(1, 2),
    heads=st.sampled_from([2, 4]),
    head_width=st.sampled_from([2, 4]),
    vocabulary=st.integers(64, 500),
    kv_heads=st.sampled_from([1, 2]),
    batch=st.integers(1, 2),
    sequence=st.integers(1, 8),
    ways=st.fixed_dictionaries({name: st.booleans() for name in ("fused", "fused_norm", "recompute")}),
)
def test_every_recipe_of_every_kind_is_counted_exactly_as_predicted(
    recipe, kind, layers, heads, head_width, vocabulary, kv_heads, batch, sequence, ways
):
    sizes = {"layers": layers, "heads": heads, "width": heads * head_width, "vocabulary": vocabulary}
    more = {"positions": 8, "kv_heads": kv_heads, "feed_forward": 40}
    shape = shape_of(kind, **{name: str(n) for name, n in (sizes | more).items()})
    counted = whole_models.held_bytes(shape, recipe, batch, sequence, **ways)
    assert counted == held_by(Plan(shape, recipe, batch, sequence, "T4", 1, 0, **ways))


def test_the_master_is_what_the_optimizer_moves_and_the_parameters_are_rounded_from_it():
    torch.manual_seed(0)
    begin = torch.randn(4, 3).bfloat16()
    p, reference = begin.clone().requires_grad_(), begin.float().requires_grad_()
    ours = whole_models.WithMaster([p], torch.optim.AdamW, keep_gradients=False)
    theirs = torch.optim.AdamW([reference])
    for _ in range(5):
        p.grad = torch.randn(4, 3).bfloat16()
        reference.grad = p.grad.float()
        ours.step()
        theirs.step()
    assert torch.equal(ours.master[0], reference.detach())
    assert torch.equal(p.detach(), reference.detach().bfloat16())
    assert not torch.equal(p.detach(), begin)


@pytest.mark.parametrize(
    ("shape", "recipe"),
    [
        (TINY, "fp32 adamw"),
        (
            dataclasses.replace(predict.MODELS["Llama 3 8B"], layers=2, width=64, heads=8, feed_forward=96),
            "bf16+master adamw, gradients twice",
        ),
    ],
)
def test_counting_sets_what_was_counted_beside_what_was_predicted(memory, shape, recipe):
    memory.set(**{**sizes_of(shape), "sequence": 16}, recipe=recipe, batch=3, machines=4, stage=3)
    assert "not yet: press Count it" in words(memory)
    memory.start("Count it")
    memory.wait()
    assert memory.screen.report.startswith("Counted in ")
    assert memory.screen.report.endswith(": 5 of 5 parts to the byte as predicted.")
    alone = held_by(dataclasses.replace(plan_of(**memory.values), machines=1))
    counted = column_of_parts(memory, "on one alone, counted")
    assert counted == alone == column_of_parts(memory, "on one alone, predicted")
    assert {row[-1] for row in memory.screen.table[1:7]} == {"exactly that"}
    total = f"{sum(alone.values()):,} bytes on one machine alone, every part exactly as predicted"
    assert total in words(memory)
    memory.set(stage=0, machines=9, machine="L4")  # no part of what was counted
    assert total in words(memory)
    memory.set(batch=2)
    assert "not yet: press Count it" in words(memory)


def column_of_parts(lab, name):
    return {
        row[0]: int(row[lab.screen.table[0].index(name)].replace(",", "")) for row in lab.screen.table[1:6]
    }


def test_a_difference_is_told_and_not_hidden(memory):
    memory.set(recipe="fp32 adamw")
    plan = plan_of(**memory.values)
    found = Ledger(
        {**plan.whole.held, "optimizer": plan.whole.held["optimizer"] + 8, "master": 0}, unit="bytes"
    )
    rows = {row[0]: row[-1] for row in memory_words.table(plan, found)}
    assert (rows["gradients"], rows["optimizer"], rows["total"]) == (
        "exactly that",
        "8 bytes more",
        "8 bytes more",
    )
    assert dict(memory_words.formulas(plan, found))["counted"].endswith("not as predicted: see the table")
    swapped = Ledger(
        {**plan.whole.held, "parameters": 1, "gradients": 2 * plan.whole.held["gradients"] - 1}, unit="bytes"
    )
    assert swapped.total == plan.whole.held.total
    assert "not as predicted" in dict(memory_words.formulas(plan, swapped))["counted"]


def test_stop_kills_the_process_that_counts(memory):
    before = set(psutil.Process().children())
    memory.preset("Llama 3.1 405B")
    memory.start("Count it")
    children = wait_until(lambda: set(psutil.Process().children()) - before, "a process counts")
    memory.stop()
    memory.wait()
    assert memory.screen.report.startswith("Stopped.")
    assert not any(child.is_running() for child in children)
    assert "not yet: press Count it" in words(memory)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"layers": "401"}, "401 would take minutes. Take 400 layers or fewer."),
        ({"batch": 2**20, "sequence": 2**20}, "more than torch can address"),
    ],
)
def test_what_cannot_be_counted_is_refused_before(memory, monkeypatch, values, sentence):
    monkeypatch.setattr(
        "course_utils.whole_models.held_bytes_apart", None
    )  # whoever calls it fails otherwise
    memory.set(**values)
    assert memory.screen.mistake == ""
    memory.start("Count it")
    with pytest.raises(ValueError, match=sentence):
        memory.wait()
    assert sentence in memory.screen.report


def test_a_count_needs_some_memory_and_not_too_long(memory, monkeypatch):
    memory.set(**{**sizes_of(TINY), "sequence": 16})
    monkeypatch.setattr("course_utils.measure.free_bytes", lambda device: 1000)
    memory.start("Count it")
    with pytest.raises(ValueError, match=r"a process that counts needs 536,870,912 bytes"):
        memory.wait()
    monkeypatch.undo()
    monkeypatch.setattr(sys.modules["course_utils.labs.memory_lab"], "LONGEST_S", 0.0)
    before = set(psutil.Process().children())
    memory.start("Count it")
    with pytest.raises(ValueError, match="which is the most that this lab waits"):
        memory.wait()
    assert set(psutil.Process().children()) == before


def test_a_count_reports_its_layers_and_what_fails_apart_comes_out_as_a_sentence():
    said, result = timing_of(whole_models.held_bytes_apart(TINY, "fp32 sgd", 1, 8))
    assert result == held_by(Plan(TINY, "fp32 sgd", 1, 8, "T4", 1, 0, False, False, False))
    assert {"Forward, 2 of 2 layers.", "Backward, 1 of 2 layers."} <= {step.report for step in said}
    assert sorted(step.fraction for step in said) == [step.fraction for step in said]
    with pytest.raises(ValueError, match=r"The model was built for 16 positions; got 17 tokens\."):
        list(whole_models.held_bytes_apart(TINY, "fp32 sgd", 1, 17))


def test_layers_are_told_in_order_forward_and_backward():
    said = []
    whole_models.held_bytes(TINY, "fp32 sgd", 1, 8, say=said.append)
    assert [(step.fraction, step.report) for step in said] == [
        (1 / 10, "Forward, 1 of 2 layers."),
        (2 / 10, "Forward, 2 of 2 layers."),
        (3 / 10, "Backward, 1 of 2 layers."),
        (4 / 10, "Backward, 2 of 2 layers."),
        (6 / 10, "Forward, 1 of 2 layers."),  # once more, for the peak
        (7 / 10, "Forward, 2 of 2 layers."),
        (8 / 10, "Backward, 1 of 2 layers."),
        (9 / 10, "Backward, 2 of 2 layers."),
    ]


def test_work_apart_ends_with_whoever_started_it():
    before = set(psutil.Process().children())
    steps = apart.steps_apart(whole_models.counted, {})
    next(steps)
    (child,) = set(psutil.Process().children()) - before
    steps.close()
    assert not child.is_running()


# What people type.


NONSENSE = ("", "0", "-8", "1.5", "2^21", "many", "1e3", "٣", "9" * 50, "<b>")


@pytest.mark.parametrize(
    ("control", "sensible"),
    [
        ("layers", "4"),
        ("width", "2^11"),
        ("heads", "16"),
        ("vocabulary", "1,000"),
        ("kv_heads", "4"),
        ("feed_forward", "9"),
        ("batch", "2"),
        ("sequence", "1"),
        ("machines", "1,024"),
    ],
)
def test_nonsense_gets_a_sentence_and_the_next_sensible_input_recovers(memory, control, sensible):
    picture = memory.screen.svg
    for typed in NONSENSE:
        memory.set(**{control: typed})
        assert memory.screen.mistake.startswith(f"{control.replace('_', ' ')} is a size")
        assert memory.screen.svg == picture
    memory.set(**{control: sensible})
    assert memory.screen.mistake == ""
    assert memory.screen.svg != picture


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"heads": "7"}, "The width has to be a multiple of the heads; 4096 is not one of 7."),
        (
            {"kv_heads": "5"},
            "The heads have to be a multiple of those for keys and values; 32 is not one of 5.",
        ),
        ({"heads": "4096", "kv_heads": "8"}, "Rotary positions turn pairs of numbers"),
        ({"kind": "GPT", "positions": "1,000", "sequence": 1001}, "has 1,000: no sequence of 1,001"),
    ],
)
def test_sizes_that_do_not_go_together_get_a_sentence(memory, values, sentence):
    memory.set(**values)
    assert sentence in memory.screen.mistake
    memory.act("Make it fit")
    assert sentence in memory.screen.mistake
    memory.preset("the opening question")
    assert memory.screen.mistake == ""


size = st.one_of(st.text(max_size=8), st.integers(-3, 2**20), st.sampled_from(["2^10", "64", "1,024"]))
sensible = st.sampled_from(["1", "2", "8", "64", "1024", "2^20"])


@settings(untimed, max_examples=50)
@given(
    st.sampled_from(list(predict.MODELS)),
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(
                ("layers", "width", "heads", "vocabulary", "positions", "kv_heads", "feed_forward"),
                st.one_of(sensible, size.map(str)),
            ),
            **dict.fromkeys(("batch", "sequence", "machines"), st.one_of(sensible, size)),
            "kind": st.sampled_from(["GPT", "Llama"]),
            "recipe": st.sampled_from(list(predict.RECIPES)),
            "machine": st.sampled_from(ANY_LAB.controls["machine"].options),
            "stage": st.integers(0, 3),
            "fused": st.booleans(),
            "fused_norm": st.booleans(),
            "recompute": st.booleans(),
        },
    ),
)
def test_any_state_of_the_controls_is_a_picture_or_a_sentence(name, values):
    lab = ANY_LAB
    lab.preset("the opening question")
    lab.preset(name)
    lab.set(**values)
    if lab.error is None:
        assert lab.screen.meaning.startswith(("Fits: ", "Runs over: "))
        assert lab.screen.meaning.startswith("Fits") == fits(plan_of(**lab.values))
    else:
        assert isinstance(lab.error, ValueError)
        assert str(lab.error).endswith(".")
    tree = ElementTree.fromstring(lab.screen.svg)
    assert not any("nan" in value or value == "inf" for node in tree.iter() for value in node.attrib.values())
    for node in tree.iter():
        if "width" in node.attrib and "x" in node.attrib:
            assert (
                float(node.get("x")) + float(node.get("width")) <= LEFT + LENGTH or node.get("width") == "18"
            )
