"""The accountant that a reader writes, against predict: what the file prints, and its terms."""

import json
import math
import os
import shlex
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.chapters import by_torch
from course_utils.core import accountant, predict
from course_utils.core.accountant_file import ADDED, OURS, TERMS, theirs
from course_utils.core.datasheets import MACHINES
from course_utils.core.predict.known import CONFIGS
from course_utils.stage.workspace import copies
from tests.core.test_keeping import KEPT, Workspace
from tests.helpers.notebooks import exercises

KNOWN = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama-2-13b": 13_015_864_320,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "mistral-7b": 7_241_732_096,
    "qwen2.5-0.5b": 494_032_768,
    "qwen3-4b": 4_022_468_096,
    "smollm2-135m": 134_515_008,
}
SIZES = st.integers(1, 6)


def account(m, **asked):
    """The lines of a run in 16 bits on one GPU, but for what is asked."""
    usual = {
        "gpus": 1,
        "tokens": 1e12,
        "recipe_name": "bf16 adamw",
        "stage": 0,
        "batch": 1,
        "sequence": None,
        "recomputed": 0,
        "memory": 80e9,
        "peak": 1e15,
        "share": 0.5,
    }
    return accountant.account(m, **{**usual, **asked})


def test_the_folded_solutions_of_all_notebooks_make_every_term_of_the_file_the_readers(
    tmp_path, monkeypatch
):
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setattr(copies, "COURSE", tmp_path / "notebooks")
    workspace = Workspace(tmp_path, "course_utils.engine.judging")
    workspace.start()
    monkeypatch.chdir(workspace.mine)
    for exercise in exercises():
        if exercise.check.endswith(".kept"):
            said = workspace.run(exercise.imports, exercise.solution, exercise.check)
            assert KEPT in said, exercise.name
    assert theirs(workspace.file.read_text(encoding="utf-8")) == [*TERMS, *ADDED]
    for name in ("deepseek-v3", "gemma-3-1b", "gpt-oss-20b"):
        of_2026 = [CONFIGS / f"{name}.json", "--all", "--exact", "--peak", "1e15", "--stage", "1"]
        assert printed_by(workspace.file, *of_2026) == printed_by(OURS, *of_2026)
    for name in sorted(KNOWN):
        assert_it_prints_what_predict_says(workspace.file, CONFIGS / f"{name}.json")


def printed_by(program, *asked):
    """The lines that it prints, run by a Python that has no package."""
    command = [sys.executable, "-I", "-S", program, *asked]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def assert_it_prints_what_predict_says(program, config):
    """Run by a Python that has neither the course nor any other package."""
    shape = predict.shape_of(predict.known(config.stem))
    sequence = min(shape.context, 8192)
    asked = ["--gpus", "1024", "--sequence", str(sequence), "--exact"]
    said = {}
    for line in printed_by(program, config, *asked):
        name = line[:38].strip()
        said[name] = line[38:].strip().replace(",", "")

    assert int(said["tokens of a sequence"]) == sequence
    assert int(said["parameters"]) == shape.parameters
    assert shape.parameters == KNOWN[config.stem]
    state = predict.training_bytes(shape.parameters, "bf16+master adamw", machines=1024)
    for part, nbytes in state.items():
        assert int(said[f"bytes of {part}"]) == nbytes

    tokens = 15e12
    flops = shape.training_flops(1, sequence).total * tokens / sequence
    assert float(said["FLOPs"]) == pytest.approx(flops, rel=1e-4)
    flops_a_token = flops / tokens
    days = predict.training_days(flops_a_token / 6, tokens, MACHINES["H100 SXM"], 1024, 0.4)
    assert float(said["days without saves and failures"]) == pytest.approx(days, rel=1e-4)


def test_what_a_person_reads_has_units_and_says_of_which_gpu_and_who_counted_it():
    report = printed_by(OURS, CONFIGS / "llama-3-70b.json", "--gpus", "1024")
    text = "\n".join(report)
    for line in (
        "The model: 80 layers, 8,192 wide",
        "On each GPU, at the fullest moment of a step, the loss",
        "It does not fit: each GPU has 80 GB.",
    ):
        assert line in text
    for name, number, term in (
        ("parameters", "70.6 billion", "parameters"),
        ("parameters", "138 MB", "state_bytes"),
        ("optimizer", "551 MB", "state_bytes"),
        ("what the step adds", "230 GB", "step_bytes"),
        ("gathered from the other GPUs", "4.2 GB", "gathered_bytes"),
        ("without saves and failures", "206 days", "days"),
        ("between two saves", "77.1 minutes", "interval"),
        ("lost to saves and failures, at most", "2.8 %", "lost_share"),
    ):
        assert f"  {name:<36}{number:>14}    {term}" in report
    assert "It fits: each GPU has 80 GB." in printed_by(OURS, CONFIGS / "gpt2.json")


# What is asked or assumed, in other words than the defaults', and the option that repeats it.
ASKED = {
    "--tokens": ("3e9", "3 billion tokens"),
    "--gpus": ("1", "1 GPU"),
    "--memory": ("24e9", "of 24 GB each"),
    "--batch": ("2", "2 sequences on each GPU at a time"),
    "--sequence": ("512", "of 512 tokens"),
    "--recipe": ('"fp32 adamw, fp32 gradients"', "recipe fp32 adamw, fp32 gradients"),
    "--stage": ("1", "ZeRO 1: optimizer and master are sharded"),
    "--recomputed": ("7", "7 of 12 layers are recomputed"),
    "--peak": ("67e12", "a GPU does 67 TFLOP/s at most, dense"),
    "--share": ("0.25", "25 % of that is reached"),
}


def test_every_assumption_is_repeated_beside_what_changes_it():
    options = []
    for name, (value, _) in ASKED.items():
        options += [name, value.strip('"')]
    report = printed_by(OURS, CONFIGS / "gpt2.json", *options)
    for name, (value, words) in ASKED.items():
        assert f"  {words:<56}{name} {value}" in report
    constants = [name for line in report for name in line.split() if name in vars(accountant)]
    assert {"SAVE_S", "RESTART_S", "GPU_DAYS_PER_FAILURE"} <= {*constants}
    repeated = shlex.split(" ".join(line[58:] for line in report if line[58:60] == "--"))
    assert printed_by(OURS, CONFIGS / "gpt2.json", *repeated) == report
    usage = "\n".join(printed_by(OURS, "--help"))
    assert "(default: 15e12)" in usage
    assert "(default: 80e9)" in usage


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (accountant.bytes_text(80e9), "80 GB"),
        (accountant.bytes_text(3_042_210), "3.04 MB"),
        (accountant.bytes_text(12), "12 bytes"),
        (accountant.count_text(124_439_808), "124 million"),
        (accountant.count_text(15e12), "15 trillion"),
        (accountant.power_text(7.2217e24), "7.22 × 10^24"),
        (accountant.time_text(119), "119 seconds"),
        (accountant.time_text(2 * 86_400), "2 days"),
        (accountant.typed(15e12), "15e12"),
        (accountant.typed(50_000), "50000"),
    ],
)
def test_a_number_is_said_as_a_person_says_it(text, said):
    assert text == said


LIKE_GPT2 = {
    "gated": False,
    "norm_vectors": 2,
    "learned_positions": True,
    "biases": ("query", "key", "value", "out", "up", "down"),
}


@st.composite
def drawn_models(draw):
    """Of GPT-2's kind or of Llama's, with a vocabulary so large that the loss is fullest."""
    pairs_of_heads = draw(SIZES)
    heads = 2 * pairs_of_heads
    head_width = draw(st.sampled_from([8, 16]))
    width = heads * head_width
    return accountant.Model(
        layers=draw(SIZES),
        width=width,
        heads=heads,
        kv_heads=draw(st.sampled_from([heads, pairs_of_heads])),
        head_width=head_width,
        inner=3 * width,
        vocabulary=16 * width,
        context=4 * width,
        **draw(st.sampled_from([LIKE_GPT2, {}])),
    )


@given(drawn_models())
def test_a_drawn_models_parameters_and_flops_are_those_that_predict_counts(m):
    shape = predict.shape_of(m)
    assert accountant.parameters(m) == shape.parameters
    assert accountant.forward_flops(m, 2, m.width) == shape.forward_flops(2, m.width).total


@given(drawn_models(), st.booleans())
def test_a_drawn_models_step_is_the_one_that_predict_counts(m, recompute):
    batch = 2
    sequence = m.width
    recomputed = m.layers if recompute else 0
    step = predict.timeline(
        m,
        batch,
        sequence,
        recipe="bf16 adamw",
        recompute=recompute,
        accumulate=True,
    )
    added = accountant.step_bytes(m, batch, sequence, "bf16", recomputed)
    # The accountant leaves out LayerNorm's statistics and rotary angles.
    assert added == pytest.approx(step.peak - step.state.total, rel=0.01)

    flops = accountant.step_flops(m, batch, sequence, recomputed)
    last_products = recomputed * 2 * batch * sequence * m.inner * m.width  # torch stops before
    all_flops = predict.shape_of(m).training_flops(batch, sequence, recompute=recompute).total
    assert flops == all_flops - last_products


KINDS = {
    "gpt2": LIKE_GPT2,
    "llama": {},
    "qwen2": {"biases": ("query", "key", "value")},
    "qwen3": {"head_norms": True},
}
RECIPES = ("fp32 adamw", "bf16 adamw", "bf16+master adamw", "bf16+master adamw, fp32 gradients")


@st.composite
def models(draw):
    """Published ones, and small ones of each kind, with any vocabulary from width / 8 up."""
    if draw(st.booleans()):
        return predict.known(draw(st.sampled_from(sorted(KNOWN))))
    kv_heads = draw(st.integers(1, 4))
    heads = kv_heads * draw(st.sampled_from([1, 2, 4]))
    head_width = draw(st.sampled_from([8, 16, 32]))
    queries = heads * head_width
    width = draw(st.just(queries) | st.integers(4, 300).map(lambda half: 2 * half))
    least_inner = max(width, math.ceil(4 * queries / 3))
    kind = draw(st.sampled_from(sorted(KINDS)))
    return accountant.Model(
        layers=draw(st.integers(1, 5)),
        width=width,
        heads=heads,
        kv_heads=kv_heads,
        head_width=head_width,
        inner=least_inner * draw(st.integers(1, 8)),
        vocabulary=2 + int(width * 2 ** draw(st.floats(-3, 8))),
        context=2 ** draw(st.integers(0, 11)),
        tied=draw(st.booleans()),
        **KINDS[kind],
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
    m, data, batch, recipe, recompute, gpus, stage
):
    sequence = data.draw(st.integers(1, predict.shape_of(m).context))
    step_of = partial(
        predict.timeline,
        m,
        batch,
        sequence,
        recipe=recipe,
        recompute=recompute,
        machines=gpus,
        stage=stage,
        gathered=True,
    )
    peak = step_of(accumulate=True).peak
    lines = account(
        m,
        gpus=gpus,
        recipe_name=recipe,
        stage=stage,
        batch=batch,
        sequence=sequence,
        recomputed=m.layers if recompute else 0,
        memory=peak - 1,
    )
    assert peak <= lines["bytes together"] <= peak + lines["bytes of the rest"]
    assert lines["fits"] == "no"
    assert step_of(accumulate=False).peak <= peak


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
    lines = account(
        m,
        recipe_name=recipe,
        batch=batch,
        sequence=sequence,
        recomputed=recomputed,
    )
    step = predict.timeline(
        m,
        batch,
        sequence,
        recipe=recipe,
        recompute=recomputed > 0,
        accumulate=True,
    )
    assert lines["fullest moment of a step"] == moment
    assert step.fullest.where == where


def test_torch_holds_no_more_where_only_some_layers_are_recomputed():
    m = accountant.Model(
        layers=3,
        width=64,
        heads=4,
        kv_heads=2,
        head_width=16,
        inner=192,
        vocabulary=150,
        context=32,
        tied=True,
    )
    for recomputed in range(4):
        for dtype in ("fp32", "bf16"):
            most = max(accountant.moments(m, 2, 32, dtype, dtype, recomputed).values())
            counted = by_torch.step_bytes(m, 2, 32, dtype, recomputed)
            assert most <= counted <= most + accountant.rest_bytes(m, 2, 32, dtype)


def test_a_405b_on_512_h100s_does_not_fit_since_weights_and_gradients_are_gathered():
    lines = account(
        predict.MODELS["Llama 3.1 405B"],
        gpus=512,
        recipe_name="bf16+master adamw",
        stage=3,
        sequence=8192,
        recomputed=126,
    )
    assert lines["fits"] == "no"
    assert lines["bytes gathered then"] == pytest.approx(31.7e9, rel=0.01)
    assert lines["bytes together"] == pytest.approx(84.4e9 + lines["bytes of gradients"], rel=0.001)


def test_of_a_70b_two_tables_are_gathered_at_the_loss_and_three_at_the_embeddings_gradient():
    m = predict.known("llama-3-70b")
    table = 2 * m.vocabulary * m.width
    norm = 2 * m.width

    def gathered(moment):
        return accountant.gathered_bytes(m, "bf16", gpus=1024, stage=3, moment=moment)

    assert gathered("the loss") == 2 * table + norm
    assert gathered("the output's gradient") == 2 * table + norm
    assert gathered("the embedding's gradient") == 3 * table + 2 * norm


def test_where_it_is_not_known_when_a_step_is_fullest_a_sentence_says_so():
    narrow = accountant.Model(
        layers=2,
        width=64,
        heads=4,
        kv_heads=4,
        head_width=16,
        inner=48,
        vocabulary=900,
        context=32,
    )
    with pytest.raises(ValueError, match="it is not known here when a step is fullest"):
        accountant.moments(narrow, 1, 32, "bf16", "bf16", 0)


# What it reads, and what it refuses.

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "max_position_embeddings": 128,
}
NOT_READ = [
    ({"model_type": "mamba"}, "deepseek_v2, deepseek_v3, kimi_k2; its model_type is 'mamba'"),
    ({"model_type": "qwen"}, "its model_type is 'qwen'"),  # the first one, before Qwen 2
    ({"model_type": None}, "its model_type is None"),
    ({"model_type": ["llama"]}, r"its model_type is \['llama'\]"),
    ({"mlp_bias": True}, "has mlp_bias: this program does not know"),
    ({"num_experts_per_tok": 2}, "has num_experts_per_tok: "),
    ({"quantization_config": {"bits": 4}}, "has quantization_config: "),
    ({"model_type": "gpt2", "add_cross_attention": True}, "has add_cross_attention: "),
    (
        {"model_type": "mistral", "attention_bias": True},
        "has attention_bias, which is not counted of a model of type mistral",
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
    larger = LLAMA | {
        "num_attention_heads": 32,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "max_position_embeddings": 9000,
    }
    llama = accountant.model_from(larger)
    assert llama.kv_heads == 32
    assert llama.context == 9000
    mistral = accountant.model_from(larger | {"model_type": "mistral"})
    assert mistral.kv_heads == 8
    assert mistral.window == 4096
    qwen2 = accountant.model_from(larger | {"model_type": "qwen2"})
    assert qwen2.kv_heads == 32
    assert qwen2.context == 9000
    qwen3 = accountant.model_from(larger | {"model_type": "qwen3"})
    assert qwen3.kv_heads == 32
    assert qwen3.head_width == 128


def test_what_is_predicted_operation_by_operation_ends_with_the_window():
    fields = {"model_type": "mistral", "num_key_value_heads": 4, "sliding_window": 32}
    m = accountant.model_from(LLAMA | fields)
    assert m.context == 128
    assert predict.shape_of(m).context == 32
    with pytest.raises(ValueError, match="without latent attention"):
        predict.shape_of(predict.known("deepseek-v2"))


TOO_LARGE = LLAMA | {"hidden_size": 4 * 10**400, "intermediate_size": 10**500}
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
    ({"text": json.dumps(TOO_LARGE)}, "too large"),
]


@pytest.mark.parametrize(("asked", "said"), IMPOSSIBLE)
def test_whatever_is_asked_of_the_program_it_answers_in_a_sentence(tmp_path, asked, said):
    text = asked.get("text", json.dumps(LLAMA))
    if isinstance(text, str):
        text = text.encode()
    (tmp_path / "config.json").write_bytes(text)
    command = [sys.executable, "-I", "-S", OURS, asked.get("file", "config.json")]
    for name, value in asked.items():
        if name.startswith("--"):
            command += [name, value]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stdout == ""
    # argparse's own refusals stand below its usage, and ours stand alone.
    last_line = run.stderr.splitlines()[-1]
    assert run.stderr.startswith("usage: ") or run.stderr == f"{last_line}\n"
    assert "Traceback" not in run.stderr
    assert said in last_line


def test_a_reader_of_its_report_may_stop_early():
    command = [sys.executable, OURS, CONFIGS / "gpt2.json", "--all"]
    read_end, write_end = os.pipe()
    os.close(read_end)  # as `head` does once it has its lines
    run = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert run.stderr == ""


@pytest.mark.parametrize("gpus", [1, 1024, 16_384, 10**5, 10**6, 10**7])
def test_no_less_time_is_said_to_be_lost_than_is_lost_and_no_more_than_all(gpus):
    lines = account(accountant.model_from(LLAMA), gpus=gpus)
    failure_s = accountant.GPU_DAYS_PER_FAILURE * accountant.SECONDS_PER_DAY / gpus
    lost = predict.wasted_share(
        lines["seconds between two saves"],
        accountant.SAVE_S,
        failure_s,
        accountant.RESTART_S,
    )
    assert lost <= lines["share that is lost, at most"] <= 1


def test_a_model_that_is_not_among_ours_gets_a_sentence():
    with pytest.raises(ValueError, match=r"There is no 'gpt5' here\. There are: deepseek-v2, "):
        predict.known("gpt5")
