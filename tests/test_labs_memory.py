"""The memory lab: its bars and formulas against the formulas' own ledgers, its advice, and its count."""

import dataclasses
import re
import xml.etree.ElementTree as ElementTree

import psutil
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from course_utils import labs, models, predict
from course_utils.labs.fields import LARGEST
from course_utils.labs.memory import jobs
from course_utils.labs.memory.asked import PRESETS, sizes_of
from course_utils.labs.memory.picture import BAR, LEFT, LENGTH, STAGES_TOP
from course_utils.labs.memory.words import changes_text, formulas, meaning, table
from course_utils.predict import TrainingPlan
from course_utils.quantities import Ledger, decimal_bytes_text
from course_utils.workers import process, transformers
from tests.hostile import button
from tests.test_fitting import fits, held_by, plans
from tests.test_labs_contract import states
from tests.test_machines import timing_of
from tests.words import words

untimed = settings(deadline=None)
GIGABYTE = 10**9
PARTS = ("parameters", "gradients", "optimizer", "master", "activations")
TINY = predict.Transformer(2, 32, 4, 50, 16)


@pytest.fixture
def memory():
    """The memory lab as it opens."""
    return labs.memory_lab()


def plan_of(lab) -> TrainingPlan:
    return lab.lab.read(lab.values).plan


# What it shows.


def bars(svg, top):
    """The parts of the bar at that height: where each begins and ends, by part."""
    found = {}
    for node in ElementTree.fromstring(svg).iter():
        part = (node.get("class") or "").split()[-1:]
        if node.get("y") == f"{top}" and part and part[0] in PARTS:
            x, width = float(node.get("x")), float(node.get("width"))
            found[part[0]] = (x, x + width)
    return found


def column(lab, name):
    """Of the table's parts, and of their total."""
    head, *rows = lab.screen.table
    return {row[0]: int(row[head.index(name)].replace(",", "")) for row in rows[: len(PARTS) + 1]}


@untimed
@given(plans)
def test_the_table_is_what_the_formulas_say_to_the_byte(plan):
    _, *rows = table(plan, None)
    shown = {row[0]: [int(cell.replace(",", "")) for cell in row[1:3]] for row in rows}
    here, alone = held_by(plan), held_by(dataclasses.replace(plan, machines=1))
    assert {part: shown[part] for part in PARTS} == {part: [here[part], alone[part]] for part in PARTS}
    assert shown["total"] == [sum(here.values()), sum(alone.values())]
    kept = sum(n for name, (n, _) in shown.items() if name.startswith("kept by autograd: "))
    ways = {"fused": plan.fused, "fused_norm": plan.fused_norm, "recompute": plan.recompute}
    each = {"batch": plan.batch, "sequence": plan.sequence, "dtype": plan.dtype}
    assert kept == plan.shape.activation_bytes(**each, **ways, loss=True).total


@pytest.mark.parametrize("recipe", ["fp32 sgd", "bf16+master adamw, gradients twice"])
def test_the_bar_is_as_long_as_its_bytes_and_its_limit_is_the_data_sheets(memory, recipe):
    memory.set(recipe=recipe, machine="H200 SXM", batch=2, machines=4, stage=2)
    drawn, held = bars(memory.screen.svg, BAR), column(memory, "on each machine")
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
        plan = dataclasses.replace(plan_of(memory), stage=stage)
        total = sum(held_by(plan).values())
        drawn = bars(memory.screen.svg, STAGES_TOP + 8 + 22 * stage)
        end = LEFT + min(LENGTH, LENGTH * total / full)
        assert max(stop for _, stop in drawn.values()) == pytest.approx(end, abs=0.01)
        left = f"{decimal_bytes_text(abs(80 * GIGABYTE - total))} {'left' if fits(plan) else 'over'}"
        assert f"{decimal_bytes_text(total)}, {left}" in words(memory)


def test_no_bar_is_longer_than_its_place_and_whether_it_fits_is_said(memory):
    drawn = 0
    for said in states("memory", 60):
        try:
            plan, view = memory.lab.read(said).plan, memory._show(**said)
        except ValueError:
            continue
        drawn += 1
        assert view.meaning.startswith("Fits: " if fits(plan) else "Does not fit: ")
        for top in (BAR, *(STAGES_TOP + 8 + 22 * stage for stage in range(4))):
            assert all(
                LEFT <= x <= end <= LEFT + LENGTH + 0.01 for x, end in bars(view.picture, top).values()
            )
    assert drawn > 15


def test_the_formula_has_its_numbers_filled_in(memory):
    memory.preset("Llama 3 70B?")
    memory.set(recipe="bf16+master adamw", machines=64, stage=3)
    assert (
        "70,553,706,496 / 64 × (2 parameters + 2 gradients + 8 optimizer + 4 master) + 4 × 723 step counters "
        "= 17,638,429,516"
    ) in words(memory)
    assert (
        "1 × 8,192 tokens in bf16, at the loss: activations 218 GB + log-probabilities and their two gradients 12.6 GB"
    ) in words(memory)
    assert "17,638,429,516 + 230,479,101,960 = 248,117,531,476 bytes = 231 GiB = 248 GB on each" in words(
        memory
    )
    memory.set(machines=1000, stage=1)
    assert (
        "70,553,706,496 × (2 parameters + 2 gradients) + (70,553,706,496 / 1,000, rounded up) × (8 optimizer + 4 master)"
    ) in words(memory)
    memory.set(machines=1, recipe="fp32 sgd")
    assert "70,553,706,496 × (4 parameters + 4 gradients) = 564,429,651,968" in words(memory)
    assert "tokens in fp32, at the loss: " in words(memory)


def worked_out(formula: str) -> int:
    """The left side of a formula, by Python."""
    left = formula.partition(" = ")[0].replace(",", "").replace("×", "*")
    rounded = re.sub(r"\((\d+) / (\d+) rounded up\)", lambda pair: f"-(-{pair[1]} // {pair[2]})", left)
    return eval(re.sub("[a-z ]+", "", rounded.replace(" / ", "//")))


@untimed
@given(plans)
def test_the_formulas_come_to_what_stands_behind_the_equals_sign(plan):
    said = {name: formula for name, formula, _ in formulas(plan, None)}
    assert worked_out(said["state"]) == plan.state.total
    assert said["state"].endswith(f"= {plan.state.total:,}")
    assert worked_out(said["together"]) == sum(held_by(plan).values())
    assert said["activations"].endswith(f"= {held_by(plan)['activations']:,}")


def test_the_opening_question_can_be_read_off(memory):
    memory.preset("do 8 H100s hold 8B?")
    for recipe, between in (
        ("bf16+master adamw", ["14.5 billion", "21.3 billion"]),
        ("fp32 adamw", ["8.9 billion", "14.5 billion"]),
    ):
        memory.set(recipe=recipe)
        stages = re.findall(r"(?:left|over) ([\d.]+ billion)", words(memory))
        assert stages == ["5.0 billion", *between, "40.0 billion"]


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_fills_the_fields_with_its_model(memory, preset):
    memory.preset(preset)
    assert memory.error is None
    name = "Llama 3 8B" if preset == "do 8 H100s hold 8B?" else preset.removesuffix("?")
    shape = predict.MODELS[name]
    assert f"{name}: {shape.parameters:,} parameters" in words(memory)
    assert plan_of(memory).shape == shape
    memory.set(layers="3")
    assert "A model of these sizes: " in words(memory)


def test_the_fields_are_those_of_the_kind_and_either_kind_can_be_switched_to(memory):
    for preset in PRESETS:
        for kind, hidden in (("GPT", {"kv_heads", "feed_forward"}), ("Llama", {"positions"})):
            memory.preset(preset)
            memory.set(kind=kind)
            assert memory.error is None
            assert {n for n, c in memory.controls.items() if c.layout.display == "none"} == hidden


# What it advises.


def test_the_meaning_says_by_how_much_and_what_would_help(memory):
    memory.preset("GPT-2 XL?")
    memory.set(recipe="bf16+master adamw", machine="L4", machines=1)
    assert memory.screen.meaning == (
        "Does not fit: one L4 would hold 28.1 GB and has 24 GB. It would with the recipe bf16 adamw."
    )
    memory.set(machines=8)
    assert "each of the 8 machines would hold" in memory.screen.meaning
    assert "It would with sharding stage 1; or with the recipe bf16 adamw." in memory.screen.meaning
    memory.set(stage=1)
    assert memory.screen.meaning == (
        "Fits: each of the 8 machines holds 11.7 GB of 24 GB, with 12.3 GB left. A batch of up to 4 fits."
    )
    memory.preset("Llama 3.1 405B?")
    memory.set(machine="T4", batch=8)
    longest = predict.longest_sequence(plan_of(memory))
    assert memory.screen.meaning.endswith(
        f"machines and recipe makes it fit; at most {longest:,} tokens would."
    )


def test_a_batch_at_the_end_of_the_search_is_not_called_the_largest(memory):
    ones = dict.fromkeys(("layers", "heads", "kv_heads", "feed_forward", "vocabulary", "sequence"), 1)
    for batch in (1, LARGEST):
        memory.set(**ones, width=2, batch=batch)
        assert fits(dataclasses.replace(plan_of(memory), batch=LARGEST + 1))
        assert memory.screen.meaning.endswith(" left. A batch of 1,048,576 fits, too.")


def test_a_preset_gives_the_same_answer_after_any_moves(memory):
    moved = {"batch": 7, "fused": False, "fused_norm": False, "recompute": True}
    on = {"machine": "T4", "machines": 3, "stage": 2, "recipe": "fp32 adamw"}
    opening, *models = PRESETS
    for preset, left in [(opening, {}), *((name, on) for name in models)]:
        memory.set(**on)
        memory.preset(preset)
        values, said = memory.values, memory.screen.meaning
        memory.set(**moved, **on)
        memory.preset(preset)
        assert (memory.values, memory.screen.meaning) == (values, said)
        assert left.items() <= memory.values.items()  # a model is asked of the machines that were chosen
        assert memory.values["batch"] == 1


@settings(untimed, max_examples=30)
@given(plans)
def test_however_many_changes_it_takes_they_are_said_in_two_lines(plan):
    assert len(meaning(plan)) < 250


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
    memory.preset("Llama 3.1 405B?")
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
        "sharding stage 3, fused attention, fused norms, recompute layers, a batch of at most 1, at least 2,000 machines "
        "and the recipe fp32 sgd"
    )


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
        ({"layers": "1.5"}, "layers is a size"),
        ({"feed_forward": "many"}, "MLP width is a size"),
    ],
)
def test_sizes_that_do_not_go_together_get_a_sentence(memory, values, sentence):
    memory.set(**values)
    assert sentence in memory.screen.mistake
    memory.act("Make it fit")
    assert sentence in memory.screen.mistake
    memory.preset("do 8 H100s hold 8B?")
    assert memory.screen.mistake == ""


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
    asked = labs.lab_named("memory").asks(
        kind, **sizes, **more, recipe=recipe, batch=batch, sequence=sequence, machines=1, **ways
    )
    counted = transformers.held_bytes(asked.plan.shape, recipe, batch, sequence, **ways)
    assert counted == held_by(asked.plan)


def test_the_master_is_what_the_optimizer_moves_and_the_parameters_are_rounded_from_it():
    torch.manual_seed(0)
    begin = torch.randn(4, 3).bfloat16()
    p, reference = begin.clone().requires_grad_(), begin.float().requires_grad_()
    ours = models.WithMaster([p], torch.optim.AdamW, keep_gradients=False)
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
    alone = held_by(dataclasses.replace(plan_of(memory), machines=1))
    counted = column(memory, "on one alone, counted")
    assert counted == column(memory, "on one alone, predicted") == alone | {"total": sum(alone.values())}
    total = f"{sum(alone.values()):,} bytes on one machine alone, every part exactly as predicted"
    assert total in words(memory)
    memory.set(stage=0, machines=9, machine="L4")  # no part of what was counted
    assert total in words(memory)
    memory.set(batch=2)
    assert "not yet: press Count it" in words(memory)


def test_a_difference_is_told_and_not_hidden(memory):
    memory.set(recipe="fp32 adamw")
    plan = plan_of(memory)
    alone = plan.alone.held
    more = Ledger({**alone, "optimizer": alone["optimizer"] + 8}, unit="bytes")
    swapped = Ledger({**alone, "parameters": 1, "gradients": 2 * alone["gradients"] - 1}, unit="bytes")
    assert swapped.total == alone.total
    for found in (more, swapped):
        shown = {row[0]: row[3] for row in table(plan, found)}
        assert {part: shown[part] for part in found} == {part: f"{n:,}" for part, n in found.items()}
        *_, (name, said, _) = formulas(plan, found)
        assert (name, said.endswith("not as predicted: see the table")) == ("counted", True)


def test_a_count_that_was_stopped_is_none(memory):
    memory.preset("Llama 3.1 405B?")
    memory.start("Count it")
    memory.stop()
    memory.wait()
    assert memory.screen.report.startswith("Stopped.")
    assert "not yet: press Count it" in words(memory)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"layers": "401"}, "401 would take minutes. Take 400 layers or fewer."),
        ({"batch": 2**20, "sequence": 2**20}, "more than torch can address"),
    ],
)
def test_what_cannot_be_counted_is_refused_before(memory, monkeypatch, values, sentence):
    monkeypatch.setattr(transformers, "held_bytes_in_process", None)  # whoever calls it fails otherwise
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
    monkeypatch.setattr(jobs, "LONGEST_S", 0.0)
    before = set(psutil.Process().children())
    memory.start("Count it")
    with pytest.raises(ValueError, match="which is the most that this lab waits"):
        memory.wait()
    assert set(psutil.Process().children()) == before


def test_a_count_reports_its_layers_and_what_fails_apart_comes_out_as_a_sentence():
    said, result = timing_of(transformers.held_bytes_in_process(TINY, "fp32 sgd", 1, 8))
    assert result == held_by(TrainingPlan(TINY, "fp32 sgd", 1, 8, "T4", 1))
    assert {"Forward, 2 of 2 layers.", "Backward, 1 of 2 layers."} <= {step.report for step in said}
    assert sorted(step.fraction for step in said) == [step.fraction for step in said]
    with pytest.raises(ValueError, match=r"The model was built for 16 positions; got 17 tokens\."):
        list(transformers.held_bytes_in_process(TINY, "fp32 sgd", 1, 17))


def test_layers_are_told_in_order_forward_and_backward():
    said = []
    transformers.held_bytes(TINY, "fp32 sgd", 1, 8, say=said.append)
    once = [f"{way}, {n} of 2 layers." for way in ("Forward", "Backward") for n in (1, 2)]
    assert [step.report for step in said] == once * 2  # once more, for the peak
    assert [round(10 * step.fraction) for step in said] == [1, 2, 3, 4, 6, 7, 8, 9]


def test_work_apart_ends_with_whoever_started_it():
    before = set(psutil.Process().children())
    steps = process.steps_of(transformers.counted, {})
    next(steps)
    (child,) = set(psutil.Process().children()) - before
    steps.close()
    assert not child.is_running()
