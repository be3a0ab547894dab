"""The accountant that a reader writes, beside predict: what the file prints, and what its terms come to."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils import predict
from course_utils.accountant import accountant, shapes
from course_utils.accountant.file import TERMS, theirs
from course_utils.datasheets import MACHINES
from course_utils.desk import copies
from tests.notebooks import exercises
from tests.test_keeping import KEPT, Desk

KNOWN = {
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "mistral-7b": 7_241_732_096,
    "llama-3-8b": 8_030_261_248,
}
KNOWN |= {"llama-3-70b": 70_553_706_496, "llama-2-13b": 13_015_864_320}
KNOWN |= {"qwen2.5-0.5b": 494_032_768, "qwen3-4b": 4_022_468_096, "smollm2-135m": 134_515_008}
IN_BF16 = {"recipe": "bf16 adamw", "accumulate": True}
SIZES = st.integers(1, 6)


def test_the_folded_solutions_of_all_notebooks_make_every_term_of_the_file_the_readers(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setattr(copies, "COURSE", tmp_path / "notebooks")
    desk = Desk(tmp_path)
    desk.start()
    monkeypatch.chdir(desk.mine)
    for exercise in (each for each in exercises() if each.check.endswith(".kept")):
        assert KEPT in desk.run(exercise.imports, exercise.solution, exercise.check), exercise.name
    assert set(theirs(desk.file.read_text(encoding="utf-8"))) == set(TERMS)
    for config in shapes.CONFIGS.glob("*.json"):
        assert_it_prints_what_predict_says(desk.file, config)


def assert_it_prints_what_predict_says(program, config):
    """Run by a Python that has neither the course nor any other package."""
    command = [sys.executable, "-I", "-S", program, config, "--gpus", "1024"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    said = {line[:32].strip(): line[32:].strip().replace(",", "") for line in lines}
    shape, h100 = shapes.transformer(shapes.known(config.stem)), MACHINES["H100 SXM"]
    state = predict.training_bytes(shape.parameters, "bf16+master adamw", machines=1024)
    flops = shape.training_flops(1, shape.context).total * 15e12 / shape.context
    assert int(said["parameters"]) == shape.parameters == KNOWN.get(config.stem, shape.parameters)
    assert {part: int(said[f"bytes of {part}"]) for part in state} == dict(state)
    assert float(said["FLOPs"]) == pytest.approx(flops, rel=1e-4)
    days = predict.training_days(flops / 6 / 15e12, 15e12, h100, 1024, 0.4)
    assert float(said["days"]) == pytest.approx(days, rel=1e-4)


@given(
    layers=SIZES,
    heads=SIZES,
    shared=st.sampled_from([1, 2]),
    head=st.sampled_from([8, 16]),
    gated=st.booleans(),
)
def test_a_drawn_models_parameters_flops_and_step_are_those_that_predict_counts(
    layers, heads, shared, head, gated
):
    width = 2 * heads * head
    kinds = (
        {}
        if gated
        else {
            "norm_vectors": 2,
            "learned_positions": True,
            "biases": ("query", "key", "value", "out", "up", "down"),
        }
    )
    m = accountant.Model(
        layers, width, 2 * heads, 2 * heads // shared, head, 3 * width, 16 * width, 4 * width, gated, **kinds
    )
    shape, sequence = shapes.transformer(m), width
    assert accountant.parameters(m) == shape.parameters
    assert accountant.forward_flops(m, 2, sequence) == shape.forward_flops(2, sequence).total
    for again in (False, True):
        step = predict.timeline(shape, 2, sequence, recompute=again, **IN_BF16)
        ours = accountant.step_bytes(m, 2, sequence, "bf16", layers * again)
        assert ours == pytest.approx(
            step.peak - step.state.total, rel=0.01
        )  # LayerNorm's statistics, rotary angles
        stopped_early = (
            layers * again * 2 * 2 * sequence * 3 * width * width
        )  # without each layer's last product
        plain = shape.training_flops(2, sequence, recompute=again).total
        assert accountant.step_flops(m, 2, sequence, layers * again) == plain - stopped_early


def test_what_the_accountant_cannot_count_gets_a_sentence():
    for config in ({"model_type": "mixtral", "num_local_experts": 8}, {"model_type": "bert"}, {}):
        with pytest.raises(ValueError, match="gpt2, llama, mistral, qwen2 and qwen3, without experts"):
            accountant.model_from(config)
    with pytest.raises(ValueError, match=r"There is no 'gpt5' here\. There are: gpt2, "):
        shapes.known("gpt5")
    four = accountant.Model(1, 8, 2, 2, 4, 16, 10, 8, biases=("query", "key", "value", "out"))
    with pytest.raises(ValueError, match="here query, key, value, out have one"):
        shapes.transformer(four)
