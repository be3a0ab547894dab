"""The accountant beside the library that everybody uses: stored cases of `make beside`."""

import json

import pytest

from tests.tools.beside_transformers import FAMILIES, STORED, differences

CASES = json.loads(STORED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", FAMILIES)
def test_parameters_and_flops_of_each_family_are_those_that_torch_counts_of_transformers(kind):
    of_kind = [case for case in CASES if case["config"]["model_type"] == kind]
    assert len(of_kind) >= 3
    for case in of_kind:
        assert differences(case) == []


def test_a_number_that_differs_is_named():
    wrong = CASES[0] | {"flops": CASES[0]["flops"] + 1}
    (said,) = differences(wrong)
    assert said.startswith("flops: ")
    refused = wrong | {"config": wrong["config"] | {"num_experts": 4}}
    assert differences(refused) == [
        "The config has num_experts: this program does not know what that changes."
    ]
