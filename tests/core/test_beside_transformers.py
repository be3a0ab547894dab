"""The accountant beside the library that everybody uses: stored cases of `make beside`."""

import json

import pytest

from course_utils.core.accountant import model_from
from tests.tools.beside_kept import outside_windows
from tests.tools.beside_transformers import DTYPES, FAMILIES, STORED, differences, run_of

CASES = json.loads(STORED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", FAMILIES)
def test_what_each_family_has_computes_keeps_and_peaks_at_is_what_torch_counts_of_transformers(
    kind,
):
    of_kind = [case for case in CASES if case["config"]["model_type"] == kind]
    assert len(of_kind) >= 3
    for case in of_kind:
        assert differences(case) == []


def test_among_the_stored_cases_are_windows_shorter_than_the_sequence_and_both_dtypes():
    in_windows = set()
    for case in CASES:
        m = model_from(case["config"])
        if outside_windows(run_of(case, m)):
            in_windows.add(case["config"]["model_type"])
    assert in_windows >= {"mistral", "gemma2", "gemma3_text", "gpt_oss"}
    assert {case["dtype"] for case in CASES} == set(DTYPES)


@pytest.mark.parametrize("name", ["parameters", "flops", "kept", "peak"])
def test_a_number_that_differs_is_named(name):
    wrong = CASES[0] | {name: CASES[0][name] + 1}
    (said,) = differences(wrong)
    assert said.startswith(f"{name}: ")


def test_a_config_that_is_refused_is_named():
    wrong = CASES[0]
    refused = wrong | {"config": wrong["config"] | {"num_experts": 4}}
    assert differences(refused) == [
        "The config has num_experts: this program does not know what that changes."
    ]
