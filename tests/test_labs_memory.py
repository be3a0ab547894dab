"""The memory lab: its bars and formulas against the formulas' own ledgers, its advice, and its count."""

import re
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import given

from course_utils import labs, measure, models, predict
from course_utils.labs.memory.asked import PRESETS, Asked, sizes_of
from course_utils.labs.memory.picture import BAR, LEFT, LENGTH, STAGES_TOP
from course_utils.labs.memory.words import formulas, table
from course_utils.predict import TrainingPlan
from course_utils.quantities import Ledger, decimal_bytes_text
from course_utils.workers import transformers
from tests.labs import answers, fresh, lines, nodes, run, steps_here
from tests.test_fitting import fits, held_by, plans
from tests.test_labs_contract import states
from tests.test_step import LLAMA

LAB = labs.lab_named("memory")
lab = fresh("memory")
PARTS = ("parameters", "gradients", "optimizer", "master", "activations")
STATE = ("parameters", "optimizer", "master")
TINY = sizes_of(predict.Transformer(2, 32, 4, 50, 16)) | {"sequence": 8}
del TINY["kind"]
OPENING, *MODELS = PRESETS


def plan_of(lab) -> TrainingPlan:
    return LAB.read(lab.values).plan


# What it shows.


def number(cell: str) -> int:
    return int(cell.replace(",", ""))


def readable(count):
    for state in states("memory", count):
        try:
            yield LAB.read(state)
        except ValueError:  # sizes that do not go together
            continue


def test_bars_are_as_long_as_their_bytes_cut_at_their_end_and_said_beside():
    seen = set()
    for asked in readable(25):
        plan, view = asked.plan, LAB.view(asked, {})
        memory = plan.machine.bytes
        full = 1.04 * max(sum(held_by(plan).values()), memory)
        said = "".join(ElementTree.fromstring(view.picture).itertext())
        bars = [node for part in PARTS for node in nodes(view.picture, "rect", f"part {part}")]
        stages = [(STAGES_TOP + 8 + 22 * stage, stage) for stage in range(4)]
        for top, stage in ((BAR, plan.stage), *stages):
            if stage > plan.stage:  # is still to be guessed
                assert not any(bar.get("y") == f"{top}" for bar in bars)
                continue
            other = replace(plan, stage=stage)
            held = held_by(other)
            drawn = [
                (float(bar.get("x")), float(bar.get("width"))) for bar in bars if bar.get("y") == f"{top}"
            ]
            ends = [LEFT + min(LENGTH, LENGTH * n / full) for n in accumulate(held.values(), initial=0)]
            expected = [(begin, end - begin) for begin, end in pairwise(ends) if end > begin]
            assert [*chain(*drawn)] == pytest.approx([*chain(*expected)], rel=1e-4, abs=0.02)
            total = sum(held.values())
            left = f"{decimal_bytes_text(abs(memory - total))} {'left' if fits(other) else 'over'}"
            assert f"{decimal_bytes_text(total)}{left if top == BAR else f', {left}'}" in said
        limits = [points[0][0] for points in lines(view.picture, "line")]
        assert limits == [pytest.approx(LEFT + LENGTH * memory / full, abs=0.06)] * 2
        assert f"{decimal_bytes_text(memory)}: the data sheet's memory, GB = 10^9" in said
        assert view.meaning.startswith("Fits: " if fits(plan) else "Does not fit: ")
        seen.add(fits(plan))
    assert seen == {True, False}


@given(plans)
def test_the_table_is_what_the_formulas_say_to_the_byte(plan):
    _, *rows, _, _ = table(plan, None)
    shown = {row[0]: [number(cell) for cell in row[1:3]] for row in rows}
    here, alone = held_by(plan), held_by(replace(plan, machines=1))
    assert {part: shown[part] for part in PARTS} == {part: [here[part], alone[part]] for part in PARTS}
    assert shown["total"] == [sum(here.values()), sum(alone.values())]
    kept = sum(n for name, (n, _) in shown.items() if name.startswith("kept by autograd: "))
    ways = {"fused": plan.fused, "fused_norm": plan.fused_norm, "recompute": plan.recompute}
    each = {"batch": plan.batch, "sequence": plan.sequence, "dtype": plan.dtype}
    assert kept == plan.shape.activation_bytes(**each, **ways, loss=True).total


def test_the_table_ends_in_the_nearest_run_that_others_reported():
    """69.8 GiB are predicted of torchtitan's eager run on 8 H100s, and 82.4 were reported."""
    asked = Asked(batch=2, stage=3, recompute=True).plan
    *_, predicted, reported = table(asked, None)
    assert predicted[0].startswith("torchtitan 8B 8 × H100, eager, nearest run that others reported")
    assert [round(number(row[1]) / 2**30, 1) for row in (predicted, reported)] == [69.8, 82.4]
    assert reported[0] == "reserved there, as reported"


def worked_out(formula: str) -> int:
    """The left side of a formula, by Python."""
    left = formula.partition(" = ")[0].replace(",", "").replace("×", "*")
    rounded = re.sub(r"\((\d+) / (\d+) rounded up\)", lambda pair: f"-(-{pair[1]} // {pair[2]})", left)
    return eval(re.sub("[a-z ]+", "", rounded.replace(" / ", "//")))


@given(plans)
def test_the_formulas_come_to_what_stands_behind_the_equals_sign(plan):
    said = {name: formula for name, formula, _ in formulas(plan, None)}
    held = held_by(plan)
    state, step = (sum(held[part] for part in parts) for parts in (STATE, ("gradients", "activations")))
    assert worked_out(said["state"]) == state
    assert said["state"].endswith(f"= {state:,}")
    assert worked_out(said["together"]) == state + step
    assert said["step"].endswith(f"= {step:,}")


XL = {"recipe": "bf16+master adamw", "machine": "L4"}
XL_SPLIT = XL | {"machines": 8, "stage": 1}
SHARDED = {"preset": "Llama 3 70B?", "recipe": "bf16+master adamw", "machines": 64, "stage": 3}
MORE = SHARDED | {"machines": 1000, "stage": 1}
ALONE = {"preset": "Llama 3 70B?", "machines": 1, "recipe": "fp32 sgd"}
SAYS = [
    (
        {"preset": OPENING},
        "Does not fit: each of the 8 machines would hold 169 GB and has 80 GB, 89.2 GB over.",
    ),
    (SHARDED, "70,553,706,496 / 64 × (2 parameters + 8 optimizer + 4 master)"),
    (SHARDED, " + 4 × 723 step counters = 15,433,626,188"),
    (SHARDED, "1 × 8,192 tokens in bf16, at the loss: activations 218 GB + log-probabilities and their"),
    (SHARDED, "15,433,626,188 + 230,479,101,960 = 245,912,728,148 bytes = 229 GiB = 246 GB on each machine"),
    (
        SHARDED | {"accumulate": True},
        "15,433,626,188 + 232,683,905,288 = 248,117,531,476 bytes = 231 GiB = 248 GB on",
    ),
    (MORE, "× (2 parameters) + (70,553,706,496 / 1,000, rounded up) × (8 optimizer + 4 master)"),
    (ALONE, "70,553,706,496 × (4 parameters) = 282,214,825,984"),
    (XL | {"machines": 1}, "Does not fit: one L4 would hold 25.2 GB and has 24 GB, 1.24 GB over."),
    (XL | {"machines": 1, "accumulate": True}, "would hold 28.1 GB and has 24 GB, 4.07 GB over."),
    (XL_SPLIT, "Fits: each of the 8 machines holds 8.89 GB of 24 GB, with 15.1 GB left."),
    (XL_SPLIT, "A batch of up to 5 fits."),
    (XL_SPLIT | {"accumulate": True}, "A batch of up to 4 fits."),
    (
        XL | {"sequence": 1},
        "1 × 1 tokens in bf16, at the embedding: gradients 2.95 GB + gradients of the embedding",
    ),
]


@pytest.mark.parametrize(("asked", "sentence"), SAYS)
def test_its_formulas_and_its_advice_have_their_numbers(lab, asked, sentence):
    assert sentence in answers(lab, **{"preset": "GPT-2 XL?"} | asked)


def test_the_opening_question_can_be_read_off(lab):
    between = {"bf16+master adamw": ["14.5", "21.3"], "fp32 adamw": ["8.9", "14.5"]}
    for recipe, billions in between.items():
        said = answers(lab, OPENING, recipe=recipe, stage=3)
        assert re.findall(r"(?:left|over) ([\d.]+) billion", said) == ["5.0", *billions, "40.0"]


def test_a_preset_fills_the_fields_with_its_model_and_leaves_the_machine_that_was_chosen(lab):
    on = {"machine": "T4", "recipe": "fp32 adamw"}
    for preset in PRESETS:
        said = answers(lab, preset)
        name = "Llama 3 8B" if preset == OPENING else preset.removesuffix("?")
        assert plan_of(lab).shape == predict.MODELS[name]
        assert f"{name}: {predict.MODELS[name].parameters:,} parameters" in said
        lab.set(**on, machines=3, stage=2, batch=7, fused=False, fused_norm=False, recompute=True)
        lab.preset(preset)
        assert [lab.values[name] for name in ("batch", "machines", "stage")] == [1, 8, 0]
        assert [lab.values[name] for name in ("fused", "fused_norm", "recompute")] == [True, True, False]
        assert (on.items() <= lab.values.items()) == (preset != OPENING)


def test_the_fields_are_those_of_the_kind(lab):
    for kind, hidden in (("GPT", {"kv_heads", "feed_forward"}), ("Llama", {"positions"})):
        assert "A model of these sizes: " in answers(lab, kind=kind, layers="3", sequence=8)
        assert {n for n, c in lab.controls.items() if c.layout.display == "none"} == hidden


def test_a_model_whose_peak_is_not_known_is_predicted_with_a_reservation_and_can_be_counted():
    few_words = replace(LLAMA, width=512, heads=4, vocabulary=2, feed_forward=64)
    for shape, known in ((LLAMA, True), (few_words, False)):
        asked = Asked(**sizes_of(shape) | {"sequence": 4, "recipe": "bf16 adamw"})
        ways = {way: on for way, on in asked.plan.ways.items() if way != "fused_loss"}
        counted = transformers.counted_bytes(shape, "bf16 adamw", 1, 4, **ways)
        assert (counted == asked.plan.alone.held) == known
        assert counted.total >= asked.plan.alone.held.total
        said = "The vocabulary is small beside the width, so a step can hold more: count it."
        assert (said in LAB.view(asked, {}).meaning) != known


# What it advises.


def test_make_it_fit_moves_the_controls_until_it_does(lab):
    for name in PRESETS:
        lab.preset(name)
        lab.set(machines=1, stage=0, fused=False, recompute=False, batch=8)
        fitted = lab.screen.meaning.startswith("Fits: ")
        lab.act("Make it fit")
        assert lab.screen.mistake == "It fits as it is." * fitted
        assert lab.screen.meaning.startswith("Fits: ")
    lab.preset("Llama 3.1 405B?")
    lab.set(machine="T4", batch=8, recompute=True)
    lab.act("Make it fit")
    end = f"batch, machines and recipe makes it fit. At most {predict.longest_sequence(plan_of(lab)):,} tokens fit"
    for said in (lab.screen.mistake, lab.screen.meaning):
        assert end in said


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"heads": "7"}, "The width has to be a multiple of the heads; 4096 is not one of 7."),
        ({"kind": "GPT", "positions": "1,000", "sequence": 1001}, "cannot read a sequence of 1,001"),
    ],
)
def test_sizes_that_do_not_go_together_get_a_sentence(lab, values, sentence):
    lab.set(**values)
    assert sentence in lab.screen.mistake
    lab.act("Make it fit")
    assert sentence in lab.screen.mistake


# What it counts.


@pytest.mark.parametrize(("place", "recipe"), [*enumerate(predict.RECIPES)])
def test_every_recipe_is_counted_exactly_as_predicted(place, recipe, monkeypatch):
    monkeypatch.setattr("course_utils.workers.process.steps_of", steps_here)
    kind, tiny = ("GPT", "Llama")[place % 2], TINY | {"kv_heads": 2}
    asked = Asked(kind, **tiny, recipe=recipe, batch=2, fused=place % 3 == 0, machines=4, stage=3)
    with measure.cpu_threads(1):
        *said, last = LAB.count(asked, {})
    assert last.report == "Counted: 5 of 5 parts are as predicted, to the byte."
    assert last.change.found({}) == {asked.plan.step: held_by(replace(asked.plan, machines=1))}
    once = [f"{way}, {n} of 2 layers." for way in ("Forward", "Backward") for n in (1, 2)]
    assert [step.report for step in said[1:]] == once * 2  # once more, for the peak
    assert [round(10 * step.fraction) for step in said] == [0, 1, 2, 3, 4, 6, 7, 8, 9]


def test_the_master_is_what_the_optimizer_moves_and_the_parameters_are_rounded_from_it():
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


def test_counting_sets_what_was_counted_beside_what_was_predicted(lab):
    said = answers(lab, kind="GPT", **TINY, recipe="bf16+master adamw", batch=3, machines=4, stage=3)
    assert "not yet" in said
    assert run(lab, "Count it") == "Counted: 5 of 5 parts are as predicted, to the byte."
    alone = held_by(replace(plan_of(lab), machines=1))
    head, *rows = lab.screen.table
    assert head == ["bytes", "on each machine", "on one alone, predicted", "on one alone, counted"]
    for name, _, *both in rows[: len(PARTS) + 1]:
        assert [*map(number, both)] == [(alone | {"total": sum(alone.values())})[name]] * 2
    total = f"{sum(alone.values()):,} bytes on one machine alone, every part exactly as predicted"
    assert total in answers(lab, stage=0, machines=9, machine="L4")  # no part of what was counted
    assert "not yet" in answers(lab, batch=2)


def test_a_count_that_differs_from_the_prediction_is_shown():
    plan = Asked().plan
    alone = plan.alone.held
    more = {**alone, "optimizer": alone["optimizer"] + 8}
    swapped = {**alone, "parameters": 1, "gradients": alone["gradients"] + alone["parameters"] - 1}
    for found in (Ledger(more, unit="bytes"), Ledger(swapped, unit="bytes")):
        shown = {row[0]: row[3] for row in table(plan, found)}
        assert {part: shown[part] for part in found} == {part: f"{n:,}" for part, n in found.items()}
        *_, (name, said, _) = formulas(plan, found)
        assert (name, said.endswith("not as predicted: see the table")) == ("counted", True)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"layers": 401}, "401 would take minutes. Take 400 layers or fewer."),
        ({"batch": 2**20, "sequence": 2**20}, "more than torch can address"),
    ],
)
def test_what_cannot_be_counted_is_refused_before(monkeypatch, values, sentence):
    monkeypatch.setattr("course_utils.workers.process.steps_of", None)  # whoever calls it fails otherwise
    with pytest.raises(ValueError, match=sentence):
        next(LAB.count(Asked(**values), {}))
