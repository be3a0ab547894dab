"""Nothing is asserted that is not measured or cited: every number of the prose has something that holds it."""

import copy

import pytest

from tests import NOTEBOOKS
from tests.notebooks import read
from tests.tools import claims as tool
from tests.tools.claims import TEXTS, Claim, claims, file_of, main, reasons, written

every_text = pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@every_text
def test_every_number_is_held_and_by_what_is_written_down(path):
    found = claims(path)
    loose = [f"{claim.place}: {claim.number!r} in: {claim.sentence}" for claim in found if not claim.held_by]
    assert loose == [], "Put each into a cell, cite it, or give tests/claims/reasons.toml a reason."
    before, now = file_of(path).read_text(encoding="utf-8").splitlines(), written(found).splitlines()
    assert now == before, "If the new numbers are right, `make claims` writes down what holds them."


def altered(text: str, claim: Claim) -> str:
    """The text with another last digit of that number."""
    last = claim.at + max(at for at, character in enumerate(claim.number) if character.isdigit())
    return f"{text[:last]}{(int(text[last]) + 1) % 10}{text[last + 1 :]}"


@every_notebook
def test_one_number_that_is_altered_does_not_go_unnoticed(path):
    as_written, notebook = file_of(path).read_text(encoding="utf-8"), copy.deepcopy(read(path))
    for claim in claims(path)[::10]:
        (cell,) = (cell for cell in notebook.cells if cell.id == claim.place)
        before, cell.source = cell.source, altered(cell.source, claim)
        assert written(claims(path, notebook)) != as_written, f"{claim.place}: {claim.number}"
        cell.source = before
    assert written(claims(path, notebook)) == as_written


@every_notebook
def test_an_output_that_no_longer_says_a_number_does_not_hold_it(path):
    as_written, notebook = file_of(path).read_text(encoding="utf-8"), copy.deepcopy(read(path))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    lost = set(as_written.splitlines()) - set(written(claims(path, notebook)).splitlines())
    assert len(lost) > 5


def test_the_list_of_reasons_is_short_and_each_is_needed():
    found = {path.stem: claims(path) for path in TEXTS}
    by_reason = [
        claim for of_text in found.values() for claim in of_text if claim.held_by.startswith("reason: ")
    ]
    assert len(by_reason) < 60
    for name, reason in reasons().items():
        assert reason.why.endswith(".")
        for text, listed in reason.where.items():
            for words in listed:
                held = [claim for claim in found[text] if claim.held_by == f"reason: {name}"]
                assert any(words in claim.sentence for claim in held), f"{name}: {words}"


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("2.25 GiB", (2.25, 2.25 * 2**30)),
        ("1,024 H100s", (1024,)),
        ("2^-24.", (2**-24,)),
        ("3.14 × 10^23 FLOPs", (3.14e23,)),
        ("70-billion-parameter", (70, 70e9)),
        ("58.7 %", (58.7, 0.587)),
        ("43.8 ZFLOPs", (43.8, 43.8e21)),
        ("x = 16_384", (16384,)),
        ("E4M3, GPT-2, fp16, H100, v1.2", ()),
    ],
)
def test_a_number_is_read_with_what_stands_behind_it(said, values):
    found = [number for _, number in tool.numbers(said)]
    assert [value for number in found for value in number.values] == pytest.approx(values)


@pytest.mark.parametrize(
    ("ours", "theirs", "held"),
    [
        ("44.2 GB", "44,193,349,632", True),
        ("44.3 GB", "44,193,349,632", False),
        ("144 days", "143.9", True),
        ("145 days", "143.9", False),
        ("8 bytes", "8.2", False),
        ("0.39 %", "0.00390625", True),
    ],
)
def test_a_number_holds_another_if_rounded_it_is_the_same(ours, theirs, held):
    (_, number), (_, source) = next(tool.numbers(ours)), next(tool.numbers(theirs))
    assert number.is_said_by(source) == held


def test_a_claim_without_a_source_is_named(tmp_path, monkeypatch):
    page = tmp_path / "PAGE.md"
    page.write_text(
        "# A page\n\nIt takes 4711 steps. That is 2 + 3 = 5, as [they say](https://example.org): 17.\n"
    )
    monkeypatch.setattr(tool, "TEXTS", (page,))
    monkeypatch.setattr(tool, "FOLDER", tmp_path)
    monkeypatch.setattr(tool, "reasons", dict)
    said = []
    assert main(said.append) == 0  # the link stands in the same paragraph
    page.write_text("# A page\n\nIt takes 4711 steps. That is 2 + 3 = 5.\n")
    assert main(said.append) == 1
    assert "nothing holds '4711' in: It takes 4711 steps." in said[1]
    assert "5" in file_of(page).read_text()
    assert "arithmetic" in file_of(page).read_text()
