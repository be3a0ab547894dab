"""What others published, compared with `predict`: what agrees, and that nothing got worse."""

import json
import re
import statistics
from pathlib import Path

import pytest

from course_utils.subjects import reported
from course_utils.subjects.reported import run_named
from tests.tools import reported as tool
from tests.tools.reported import RUNS

APART = Path(__file__).with_name("reported_apart.json")  # by how many times each number is apart
FILES = [tool.PUBLISHED, tool.FOUNDRY]
FOUNDRY = [run for name, run in RUNS.items() if name.startswith("llm-foundry")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_run_is_complete_and_its_source_has_an_address_and_a_version(path):
    data = json.loads(path.read_text(encoding="utf-8"))
    assert list(tool.faults_of(data)) == []
    for source in data["sources"].values():
        assert source["where"].startswith("https://")
        assert re.search(r"@[0-9a-f]{9,10}|arXiv|discussion", source["what"]) or source["not_read"]


def test_all_runs_of_both_files_are_read():
    in_files = 0
    for path in FILES:
        data = json.loads(path.read_text(encoding="utf-8"))
        in_files += len(data["runs"])
    assert in_files == len(RUNS)


def test_all_of_llm_foundrys_216_rows_have_their_parameters_to_the_last_and_fit():
    assert len(FOUNDRY) == 216
    assert all(run.shape.parameters == run.reported["parameters"] for run in FOUNDRY)
    assert all(tool.fits(run) for run in FOUNDRY)


def test_what_fits_64_a100s_and_what_did_not_is_told_right():
    cases = [run for name, run in RUNS.items() if name.startswith("torchtitan 64 × A100")]
    ran = [run.reported["fits"] for run in cases]
    assert (len(ran), ran.count(False)) == (10, 2)
    assert [tool.fits(run) for run in cases] == ran


def test_llm_cs_memory_agrees_by_part():
    ratios = {row.what: row.ratio for row in tool.rows([run_named("llm.c")])}
    for part in ("parameters", "gradients", "optimizer", "master"):
        assert ratios[f"memory, {part}"] == pytest.approx(1, rel=0.002)
    assert ratios["memory, activations"] == pytest.approx(1, rel=0.01)


def test_the_conventions_are_those_that_their_programs_compute():
    """train_gpt2.cu of llm.c counts 6P + 6LHS, and torchtitan's utils.py 6P + 12LHS.

    Both multiply that with the tokens a second, and divide by the peak.
    """
    llm_c = run_named("llm.c")
    causal = 6 * 48 * 1600 * 1024
    by_hand = (6 * 1_557_686_400 + causal) * 47_687.5 / 989.4e12
    assert llm_c.mfu_by_convention["6P + causal"] == pytest.approx(by_hand, rel=1e-3)
    matrices = 48 * 12 * 1600**2 + 50_304 * 1600
    by_hand = (6 * matrices + causal) * 47_687.5 / 989.4e12
    assert llm_c.mfu_by_convention["causal"] == pytest.approx(by_hand, rel=1e-3)
    titan = run_named("torchtitan 64 × A100, 8B selective op")
    by_hand = (6 * 8_030_261_248 + 12 * 32 * 4096 * 8192) * 2973 / 312e12
    assert titan.mfu_by_convention["6P + all pairs"] == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("beside", [reported.mfu, reported.memory])
def test_prediction_and_report_meet_in_a_comparison_that_says_so(beside):
    table = beside(run_named("llm.c"))
    assert table.heads == ("predicted", "reported")
    assert "reported / predicted" in repr(table)
    if beside is not reported.memory:
        assert list(table.predicted) == ["all pairs", "causal", "6P", "6P + causal"]


def test_no_number_is_further_apart_than_it_was_and_the_medians_hold():
    """If a change of `predict` makes a row better, its number in the file is to be lowered.

    `python -m tests.subjects.test_reported` does that.
    """
    before = json.loads(APART.read_text(encoding="utf-8"))
    now = apart()
    for name, times in now.items():
        assert times <= before.get(name, 1) + 1e-4, name
    assert set(before) <= set(now)
    most_by_kind = {"parameters": 1, "MFU": 1.0002, "memory": 1.103, "HFU": 1.006}
    for kind, most in most_by_kind.items():
        of_kind = [times for name, times in now.items() if f": {kind}" in name]
        assert statistics.median(of_kind) <= most


def apart() -> dict[str, float]:
    """Each reported number, and by how many times it is apart, if it is."""
    rows = tool.rows(RUNS.values())
    return {f"{row.run.name}: {row.what}": round(row.apart, 4) for row in rows}


def test_make_reported_begins_with_the_largest_disagreement_and_names_a_cause_or_unknown():
    _, *lines, fits = tool.lines(RUNS.values())
    ratios = [float(line.split()[0]) for line in lines]
    times_apart = [max(ratio, 1 / ratio) for ratio in ratios]
    assert times_apart == pytest.approx(sorted(times_apart, reverse=True), rel=1e-3)
    for line, times in zip(lines, times_apart, strict=True):
        assert times <= 1.011 or ": " in line, "it names no cause"
    assert fits == "Whether a run fits its memory: 226 of 226 as reported."


ADDED = {
    "name": "mine",
    "model": "GPT-2 small",
    "machine": "T4",
    "gpus": 1,
    "batch": 8,
    "sequence": 1024,
    "reported": {"tokens_per_sec": 9000},
    "source": "here",
    "not_said": "",
}
HERE = {"what": "a log", "where": "https://example.org", "licence": "CC0", "not_read": ""}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "runs.json is complete: 1 runs"),
        ({"machine": "T5"}, "mine: machine is T5. Allowed are: A100"),
        ({"gpu": "T4"}, "mine: a field is gpu. Allowed are: batch"),
        ({"reported": {}}, "mine: report at least one of fits"),
        ({"reported": {"mfu": 40}}, "mine: reported is mfu. Allowed are: fits"),
        ({"reported": {"mfu_percent": 40}}, "mine: counts is None. Allowed are: 6P"),
        ({"reported": {"gpu_hours": 40}}, "and with GPU hours the tokens"),
    ],
)
def test_an_added_file_is_complete_or_a_sentence_says_what_is_not(tmp_path, capsys, changed, said):
    path = tmp_path / "runs.json"
    data = {"models": {}, "sources": {"here": HERE}, "runs": [ADDED | changed]}
    path.write_text(json.dumps(data))
    assert tool.main([str(path)]) == ("not complete" in capsys.readouterr().out)
    tool.main([str(path)])
    assert said in capsys.readouterr().out


def test_what_a_file_or_a_source_lacks_is_named():
    assert next(tool.faults_of({})).startswith("The file has no models, runs, sources.")
    without_licence = HERE | {"licence": ""}
    data = {"models": {}, "sources": {"here": without_licence}, "runs": [{"name": "mine"}]}
    source, run = tool.faults_of(data)
    assert source == (
        "Source 'here' has no 'licence'. If all was read at the source, 'not_read' is ''."
    )
    assert run.startswith("mine: batch, gpus, machine, model")


if __name__ == "__main__":
    rows = {name: times for name, times in apart().items() if times > 1}
    APART.write_text(json.dumps(rows, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
