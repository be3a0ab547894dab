"""The account lab: each formula gives its number, and all numbers are those of the accountant."""

import json
import math
import random
import re

import pytest

from course_utils.chapters import labs
from course_utils.chapters.checkpointing.account_lab.asked import (
    A_SMALL_ONE,
    NAMES,
    PASTED,
    RECIPES,
    TOKENS,
    Asked,
)
from course_utils.chapters.checkpointing.account_lab.picture import days_of
from course_utils.chapters.checkpointing.counted import Counted, counted
from course_utils.core import accountant
from course_utils.core.datasheets import MACHINES
from course_utils.engine.labs.session import Session

CEILING = re.compile(r"⌈([^⌉]*)⌉")


def computed(formula: str) -> float:
    """What a formula gives, read as arithmetic: · is a product, ⌈ ⌉ rounds up."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", formula).replace("·", "*")
    text = CEILING.sub(r"math.ceil(\1)", text)
    assert re.fullmatch(r"[\d\s.,+*/()e-]|(?:[\d\s.,+*/()e-]|math\.ceil|max|min)+", text), formula
    return eval(text, {"math": math, "max": max, "min": min})


def drawn(draw: random.Random) -> Asked:
    """A run that somebody could ask for."""
    return Asked(
        model=draw.choice(list(NAMES)),
        machine=draw.choice(list(MACHINES)),
        gpus=draw.choice([1, 2, 7, 8, 64, 1000, 16384]),
        tokens=draw.choice(list(TOKENS.values())),
        recipe=draw.choice(RECIPES),
        stage=draw.randrange(4),
        batch=draw.choice([1, 2, 3, 8]),
        sequence=draw.choice([128, 1000, 4096, 8192]),
        recomputed=draw.random() < 0.5,
        percent=draw.randrange(1, 101),
        users=draw.choice([1, 3, 64, 500]),
        cached=draw.choice([100, 8192, 100_000]),
        serving=draw.choice([1, 8]),
        watts=700,
        price=2.0,
    )


def by_key(asked: Asked) -> dict[str, Counted]:
    return {one.key: one for one in counted(asked)}


def test_each_formula_gives_its_number_for_every_model_and_300_runs():
    draw = random.Random(51)
    keys = set()
    for asked in [Asked(model=name) for name in NAMES] + [drawn(draw) for _ in range(300)]:
        if not {asked.dtype, "fp32", "tf32"} & {*asked.sheet.peak_flop_per_sec}:
            with pytest.raises(ValueError, match=f"{asked.machine} has no rate for"):
                counted(asked)
            continue
        for one in counted(asked):
            keys.add(one.key)
            shown = computed(one.formula)
            if isinstance(one.number, int):
                assert shown == one.number, (asked, one)
            else:  # factors have six digits
                assert math.isclose(shown, one.number, rel_tol=1e-4), (asked, one)
    assert keys == set(labs.lab_named("account").fields["opened"].options)


def test_the_numbers_are_those_of_the_program_that_the_reader_keeps(tmp_path):
    """`python accountant.py config.json --exact` says the same of the same run."""
    asked = Asked(model="Llama 3 70B", gpus=512, sequence=4096, batch=2, users=16, cached=2000)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(asked._config), encoding="utf-8")
    arguments = [
        *(str(path), "--exact", "--gpus=512", "--sequence=4096", "--batch=2"),
        *("--users=16", "--cached=2000"),
    ]
    printed = accountant.answer(accountant.parser().parse_args(arguments))
    exact = {line[:38].strip(): line[38:].strip() for line in printed}
    lines = {
        "parameters": "parameters",
        "together": "bytes together",
        "days": "days without saves and failures",
        "lost": "share that is lost, at most",
        "cache": "bytes of the cache for a token",
        "decoding": "tokens a second for each user",
        "hours": "GPU hours",
        "energy": "kilowatt-hours",
        "money": "dollars",
    }
    numbers = by_key(asked)
    for key, line in lines.items():
        assert exact[line] == accountant.written(numbers[key].number)


@pytest.mark.parametrize("name", ["Llama 3 8B", "Qwen2.5 0.5B", "GPT-2 small", "Mistral 7B"])
@pytest.mark.parametrize("recomputed", [False, True])
def test_what_is_drawn_over_time_never_exceeds_what_is_said_at_most(name, recomputed):
    """The picture is counted operation by operation, the number by the terms."""
    for stage in (0, 3):
        asked = Asked(model=name, gpus=64, sequence=2048, stage=stage, recomputed=recomputed)
        together = by_key(asked)["together"].number
        assert 0.97 * together < asked.step.most <= together


@pytest.mark.parametrize("recomputed", [False, True])
def test_a_mixtures_step_is_drawn_over_time_and_many_experts_as_their_fullest_moment(recomputed):
    """Tokens are drawn as spread evenly, and the number holds for whatever the routers pick."""
    for stage in (0, 3):
        options = {"gpus": 64, "sequence": 2048, "stage": stage, "recomputed": recomputed}
        asked = Asked(model="Mixtral 8x7B", **options)
        together = by_key(asked)["together"].number
        assert 0.97 * together < asked.step.most <= together
        session = Session(labs.lab_named("account"))
        session.set({"model": "Qwen3 30B-A3B", **options})
        assert by_key(Asked(model="Qwen3 30B-A3B", **options))["together"].how == "at most"
        assert "at the fullest moment, at most" in session.shown["svg"]


def test_of_latent_attention_and_sinks_only_what_is_known_is_said():
    numbers = by_key(Asked(model="DeepSeek-V3"))
    assert {"gathered", "together"}.isdisjoint(numbers)
    assert numbers["step"].how == "at least"
    assert Asked(model="DeepSeek-V3").step is None
    session = Session(labs.lab_named("account"))
    session.set({"model": "gpt-oss 120B", "recomputed": True})
    assert "step" not in by_key(Asked(model="gpt-oss 120B")), "what sinks keep is not counted"
    assert "Whether it fits is not known" in session.shown["meaning"]
    assert "What recomputing costs is not counted" in session.shown["meaning"]
    assert "What its attention keeps" in session.shown["meaning"]
    session.set({"model": "DeepSeek-V3"})
    assert "What its attention keeps" not in session.shown["meaning"]


def test_a_config_is_pasted_and_one_that_is_not_known_is_refused_by_name():
    session = Session(labs.lab_named("account"))
    session.set({"model": PASTED, "config": A_SMALL_ONE})
    assert "1.24 billion" in session.shown["svg"]
    for text in ("", "{", "[1]", "nonsense", '"' * 1000, "[" * 100_000):
        session.set({"config": text})
        assert session.shown["mistake"].startswith("Paste the whole text of a model's config.json")
    session.set({"config": A_SMALL_ONE.replace('"tie', '"moe_experts": 3, "tie')})
    assert "moe_experts" in session.shown["mistake"]
    session.set({"config": A_SMALL_ONE.replace("128256", "9" * 400)})
    assert session.shown["mistake"]
    session.set({"config": A_SMALL_ONE})
    assert session.shown["mistake"] == ""


def test_a_click_opens_the_formula_and_a_number_that_is_not_there_opens_the_first():
    session = Session(labs.lab_named("account"))
    session.set({})
    session.pick("energy")
    assert "energy = " in session.shown["svg"]
    session.set({"opened": "used"})  # Llama has no experts
    assert "parameters = " in session.shown["svg"]


def test_the_days_grow_from_the_data_sheet_to_the_run():
    bars = days_of(Asked(percent=25))
    (_, at_peak, _, _), (_, at_mfu, _, _), (_, with_failures, _, _) = bars
    assert math.isclose(at_mfu, 4 * at_peak)
    lost = by_key(Asked(percent=25))["lost"].number
    assert math.isclose(with_failures * (1 - lost), at_mfu)
