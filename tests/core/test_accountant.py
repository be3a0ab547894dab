"""The accountant that a reader writes, beside predict: what the file prints, and what its terms come to."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.chapters import by_torch
from course_utils.core import accountant, predict
from course_utils.core.accountant_file import OURS, TERMS, theirs
from course_utils.core.datasheets import MACHINES
from course_utils.core.predict.known import CONFIGS
from course_utils.stage.workspace import copies
from tests.core.test_keeping import KEPT, Workspace
from tests.helpers.notebooks import exercises

KNOWN = {
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "mistral-7b": 7_241_732_096,
    "llama-3-8b": 8_030_261_248,
}
KNOWN |= {"gpt2-medium": 354_823_168, "gpt2-large": 774_030_080}
KNOWN |= {"llama-3-70b": 70_553_706_496, "llama-2-13b": 13_015_864_320}
KNOWN |= {"qwen2.5-0.5b": 494_032_768, "qwen3-4b": 4_022_468_096, "smollm2-135m": 134_515_008}
IN_BF16 = {"recipe": "bf16 adamw", "accumulate": True}
SIZES = st.integers(1, 6)


def test_the_folded_solutions_of_all_notebooks_make_every_term_of_the_file_the_readers(
    tmp_path, monkeypatch
):
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setattr(copies, "COURSE", tmp_path / "notebooks")
    workspace = Workspace(tmp_path, "course_utils.engine.judging")
    workspace.start()
    monkeypatch.chdir(workspace.mine)
    for exercise in (each for each in exercises() if each.check.endswith(".kept")):
        assert KEPT in workspace.run(exercise.imports, exercise.solution, exercise.check), (
            exercise.name
        )
    assert set(theirs(workspace.file.read_text(encoding="utf-8"))) == set(TERMS)
    for config in CONFIGS.glob("*.json"):
        assert_it_prints_what_predict_says(workspace.file, config)


def assert_it_prints_what_predict_says(program, config):
    """Run by a Python that has neither the course nor any other package."""
    command = [sys.executable, "-I", "-S", program, config, "--gpus", "1024"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    said = {line[:34].strip(): line[34:].strip().replace(",", "") for line in lines}
    shape, h100 = predict.shape_of(predict.known(config.stem)), MACHINES["H100 SXM"]
    state = predict.training_bytes(shape.parameters, "bf16+master adamw", machines=1024)
    sequence = min(predict.known(config.stem).context, 8192)
    flops = shape.training_flops(1, sequence).total * 15e12 / sequence
    assert int(said["tokens of a sequence"]) == sequence
    assert int(said["parameters"]) == shape.parameters == KNOWN.get(config.stem, shape.parameters)
    assert {part: int(said[f"bytes of {part}"]) for part in state} == dict(state)
    assert float(said["FLOPs"]) == pytest.approx(flops, rel=1e-4)
    days = predict.training_days(flops / 6 / 15e12, 15e12, h100, 1024, 0.4)
    assert float(said["days without saves and failures"]) == pytest.approx(days, rel=1e-4)


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
        layers,
        width,
        2 * heads,
        2 * heads // shared,
        head,
        3 * width,
        16 * width,
        4 * width,
        gated,
        **kinds,
    )
    shape, sequence = predict.shape_of(m), width
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


KINDS = {
    "gpt2": {"gated": False, "norm_vectors": 2, "learned_positions": True}
    | {"biases": ("query", "key", "value", "out", "up", "down")},
    "llama": {},
    "qwen2": {"biases": ("query", "key", "value")},
    "qwen3": {"head_norms": True},
}
RECIPES = ("fp32 adamw", "bf16 adamw", "bf16+master adamw", "bf16+master adamw, fp32 gradients")


@st.composite
def models(draw):
    """Small ones of each kind, with any vocabulary from an eighth of a width up; and published ones."""
    if draw(st.booleans()):
        return predict.known(draw(st.sampled_from(sorted(KNOWN))))
    kv_heads, shared = draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 4]))
    head, heads = draw(st.sampled_from([8, 16, 32])), kv_heads * shared
    width = heads * head if draw(st.booleans()) else 2 * draw(st.integers(4, 300))
    inner = max(width, -(-4 * heads * head // 3)) * draw(st.integers(1, 8))
    vocabulary = 2 + int(width * 2 ** draw(st.floats(-3, 8)))
    sizes = (heads, kv_heads, head, inner, vocabulary, 2 ** draw(st.integers(0, 11)))
    kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    return accountant.Model(
        draw(st.integers(1, 5)), width, *sizes, **kind, tied=draw(st.booleans())
    )


@settings(max_examples=60)
@given(
    models(),
    st.data(),
    st.sampled_from([1, 1, 2, 5]),
    st.sampled_from(RECIPES),
    st.booleans(),
    st.sampled_from([1, 8, 512]),
    st.integers(0, 3),
)
def test_a_plan_holds_what_the_timeline_says_and_fits_only_where_it_fits_there(
    m, data, batch, recipe, again, gpus, stage
):
    sequence = data.draw(st.integers(1, m.context))
    where = {
        "recipe": recipe,
        "recompute": again,
        "machines": gpus,
        "stage": stage,
        "gathered": True,
    }
    step, first = (
        predict.timeline(m, batch, sequence, accumulate=several, **where)
        for several in (True, False)
    )
    asked = (gpus, 1e12, recipe, stage, batch, sequence, m.layers * again)
    lines = accountant.account(m, *asked, step.peak - 1, 1e15, 0.5)
    assert step.peak <= lines["bytes together"] <= step.peak + lines["bytes of the rest"]
    assert lines["fits"] == "no"
    assert first.peak <= step.peak


FULLEST = [
    ("llama-3-70b", 1, 8192, "bf16 adamw", 80, "the loss", "cross-entropy"),
    ("gpt2", 1, 256, "fp32 adamw", 0, "the embedding's gradient", "token embedding"),
    ("llama-2-13b", 1, 512, "fp32 adamw", 0, "the output's gradient", "output"),
    ("mistral-7b", 1, 4096, "fp32 adamw", 32, "the last layer's gradients", "down"),
]


@pytest.mark.parametrize(
    ("name", "batch", "sequence", "recipe", "recomputed", "moment", "where"), FULLEST
)
def test_each_moment_is_the_fullest_of_some_published_model(
    name, batch, sequence, recipe, recomputed, moment, where
):
    m = predict.known(name)
    lines = accountant.account(m, 1, 1e12, recipe, 0, batch, sequence, recomputed, 80e9, 1e15, 0.5)
    ways = {"recipe": recipe, "recompute": recomputed > 0, "accumulate": True}
    step = predict.timeline(m, batch, sequence, **ways)
    assert (lines["fullest moment of a step"], step.fullest.where) == (moment, where)


def test_torch_holds_no_more_where_only_some_layers_are_recomputed():
    m = accountant.Model(3, 64, 4, 2, 16, 192, 150, 32, tied=True)
    for recomputed in range(4):
        for dtype in ("fp32", "bf16"):
            most = max(accountant.moments(m, 2, 32, dtype, dtype, recomputed).values())
            counted = by_torch.step_bytes(m, 2, 32, dtype, recomputed)
            assert most <= counted <= most + accountant.rest_bytes(m, 2, 32, dtype)


def test_a_405b_on_512_h100s_does_not_fit_since_weights_and_gradients_are_gathered():
    m = predict.MODELS["Llama 3.1 405B"]
    asked = (512, 15e12, "bf16+master adamw", 3, 1, 8192, 126, 80e9, 989.5e12, 0.4)
    lines = accountant.account(m, *asked)
    assert lines["fits"] == "no"
    assert lines["bytes gathered then"] == pytest.approx(31.7e9, rel=0.01)
    assert lines["bytes together"] == pytest.approx(84.4e9 + lines["bytes of gradients"], rel=0.001)


def test_of_a_70b_two_tables_are_gathered_at_the_loss_and_three_at_the_embeddings_gradient():
    m = predict.known("llama-3-70b")
    table, norm = 2 * m.vocabulary * m.width, 2 * m.width
    gathered = {
        moment: accountant.gathered_bytes(m, "bf16", 1024, 3, moment)
        for moment in accountant.moments(m, 1, 8192, "bf16", "bf16", m.layers)
    }
    assert gathered["the loss"] == gathered["the output's gradient"] == 2 * table + norm
    assert gathered["the embedding's gradient"] == 3 * table + 2 * norm


def test_where_it_is_not_known_when_a_step_is_fullest_a_sentence_says_so():
    narrow = accountant.Model(2, 64, 4, 4, 16, 48, 900, 32)
    with pytest.raises(ValueError, match="it is not known here when a step is fullest"):
        accountant.moments(narrow, 1, 32, "bf16", "bf16", 0)


# What it reads, and what it refuses.

LLAMA = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 2}
LLAMA |= {"num_attention_heads": 4, "vocab_size": 100, "max_position_embeddings": 128}
NOT_READ = [
    ({"model_type": "mixtral"}, "gpt2, llama, mistral, qwen2, qwen3; its model_type is 'mixtral'"),
    ({"model_type": None}, "its model_type is None"),
    ({"model_type": ["llama"]}, r"its model_type is \['llama'\]"),
    ({"mlp_bias": True}, "has mlp_bias: this program does not know"),
    ({"num_experts_per_tok": 2}, "has num_experts_per_tok: "),
    ({"quantization_config": {"bits": 4}}, "has quantization_config: "),
    ({"model_type": "gpt2", "add_cross_attention": True}, "has add_cross_attention: "),
    (
        {"model_type": "mistral", "attention_bias": True},
        "has attention_bias, which a model of type mistral",
    ),
    ({"layer_types": ["full_attention", "linear_attention"]}, "layer_types names full_attention"),
    ({"layer_types": 5}, "layer_types names full_attention"),
    ({"hidden_size": None}, "The config has no hidden_size"),
    ({"intermediate_size": None}, "The config has no intermediate_size"),
    ({"hidden_size": "64"}, "hidden_size is a whole number from 1 up; the config has '64'"),
    ({"vocab_size": -1}, "vocab_size is a whole number from 1 up"),
    ({"num_hidden_layers": True}, "num_hidden_layers is a whole number from 1 up"),
    ({"num_attention_heads": 5}, "hidden_size 64 is no multiple of num_attention_heads, 5"),
    ({"num_key_value_heads": 3}, "num_attention_heads 4 is no multiple of num_key_value_heads, 3"),
]


@pytest.mark.parametrize(("fields", "said"), NOT_READ)
def test_a_config_that_it_cannot_count_gets_a_sentence_that_names_the_field(fields, said):
    with pytest.raises(ValueError, match=said):
        accountant.model_from(LLAMA | fields)


def test_a_field_that_says_no_changes_nothing():
    plain = accountant.model_from(LLAMA)
    for fields in (
        {"num_experts_per_tok": 0, "mlp_bias": False, "quantization_config": None},
        {"attention_bias": False, "sliding_window": None, "num_key_value_heads": None},
        {"sliding_window": 16, "use_sliding_window": False, "layer_types": ["full_attention"] * 2},
    ):
        assert accountant.model_from(LLAMA | fields) == plain


def test_what_a_config_leaves_out_is_what_transformers_takes():
    heads = {"num_attention_heads": 32, "hidden_size": 2048, "intermediate_size": 8192}
    for kind, kv_heads, context in (("mistral", 8, 4096), ("qwen2", 32, 9000), ("llama", 32, 9000)):
        config = LLAMA | heads | {"model_type": kind, "max_position_embeddings": 9000}
        m = accountant.model_from(config)
        assert (m.kv_heads, m.context) == (kv_heads, context)
    qwen = accountant.model_from(LLAMA | heads | {"model_type": "qwen3"})
    assert (qwen.head_width, qwen.kv_heads) == (128, 32)


def test_a_window_of_attention_is_as_long_as_a_sequence_can_be():
    m = accountant.model_from(LLAMA | {"sliding_window": 32})
    with pytest.raises(ValueError, match="at most 32 tokens here"):
        accountant.account(m, 8, 1e9, "bf16 adamw", 3, 1, 33, 0, 80e9, 1e15, 0.4)


IMPOSSIBLE = [
    ({"--sequence": "0"}, "sequence is a number above 0; got 0"),
    ({"--sequence": "129"}, "at most 128 tokens here"),
    ({"--recipe": "bf16 lion"}, "then one of sgd, momentum, adamw"),
    ({"--recipe": "bf16+x adamw"}, "got 'bf16+x adamw'"),
    ({"--recipe": "bf16+master adamw, bf16 gradients"}, "fp32 gradients"),
    ({"--recipe": ""}, "A recipe is one of fp64"),
    ({"--stage": "4"}, "ZeRO's stage is 0, 1, 2 or 3; got 4"),
    ({"--recomputed": "3"}, "Of 2 layers, 0 to 2 can be recomputed"),
    ({"--share": "1.5"}, "share is a share of the peak, at most 1"),
    ({"--tokens": "nan"}, "tokens is a number above 0"),
    ({"--gpus": "-1"}, "gpus is a number above 0"),
    ({"--gpus": "1.5"}, "invalid int value"),
    ({"--recipe": "fp32 adamw"}, "is a peak of 16 bits: say --peak"),
    ({"--peak": "inf"}, "peak is a number above 0"),
    ({"file": "missing.json"}, "No such file"),
    ({"file": "."}, "Is a directory"),
    ({"text": "{no JSON"}, "is no JSON: Expecting property name"),
    ({"text": "[1, 2]"}, "holds one object, in { }; this one holds a list"),
    ({"text": "[" * 100_000}, "nested too deeply"),
    ({"text": b"\xff\xfe\x00"}, "no text in UTF-8"),
    (
        {"text": json.dumps(LLAMA | {"hidden_size": 4 * 10**400, "intermediate_size": 10**500})},
        "too large",
    ),
]


@pytest.mark.parametrize(("asked", "said"), IMPOSSIBLE)
def test_whatever_is_asked_of_the_program_it_answers_in_a_sentence(tmp_path, asked, said):
    text = asked.get("text", json.dumps(LLAMA))
    (tmp_path / "config.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    options = [
        word for name, value in asked.items() if name.startswith("--") for word in (name, value)
    ]
    command = [sys.executable, "-I", "-S", OURS, asked.get("file", "config.json"), *options]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    assert said in run.stderr.splitlines()[-1]


@pytest.mark.parametrize("gpus", [1, 1024, 16_384, 10**5, 10**6, 10**7])
def test_no_less_time_is_said_to_be_lost_than_is_lost_and_no_more_than_all(gpus):
    m = accountant.model_from(LLAMA)
    lines = accountant.account(m, gpus, 1e9, "bf16 adamw", 3, 1, 128, 0, 80e9, 1e15, 0.4)
    failure_s = accountant.GPU_DAYS_PER_FAILURE * accountant.SECONDS_PER_DAY / gpus
    waits = lines["seconds between two saves"], accountant.SAVE_S, failure_s, accountant.RESTART_S
    assert predict.wasted_share(*waits) <= lines["share that is lost, at most"] <= 1


def test_a_model_that_is_not_among_ours_gets_a_sentence():
    with pytest.raises(ValueError, match=r"There is no 'gpt5' here\. There are: gpt2, "):
        predict.known("gpt5")
