"""The prose asserts only what is measured or cited.

Each of its numbers is held by something: a cell, a citation, or a reason why it needs neither.
"""

import copy
import functools
from pathlib import Path

import pytest

from tests import NOTEBOOKS
from tests.helpers.notebooks import read
from tests.tools import claims as tool
from tests.tools.claims import TEXTS, claims, file_of, written

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@functools.cache
def found(path: Path) -> list[tool.Claim]:
    """The claims of a text as it stands now."""
    return claims(path)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_every_number_is_held_and_by_what_is_written_down(path):
    loose = []
    for claim in found(path):
        if not claim.held_by:
            loose.append(f"{claim.place}: {claim.number!r} in: {claim.sentence}")
    assert loose == [], "Put each into a cell, cite it, or give tests/claims/reasons.toml a reason."
    before = file_of(path).read_text(encoding="utf-8")
    now = written(found(path))
    assert now.splitlines() == before.splitlines(), (
        "If they are right, `make claims` writes down what holds them."
    )


@every_notebook
def test_a_number_that_is_altered_in_a_text_or_an_output_does_not_go_unnoticed(path):
    as_written = written(found(path))
    notebook = copy.deepcopy(read(path))
    cells = {cell.id: cell for cell in notebook.cells}
    for claim in found(path)[::10]:
        cell = cells[claim.place]
        before = cell.source
        cell.source = altered(before, claim)
        assert written(claims(path, notebook)) != as_written, f"{claim.place}: {claim.number}"
        cell.source = before
    assert written(claims(path, notebook)) == as_written

    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    without_outputs = written(claims(path, notebook))
    changed = set(as_written.splitlines()) - set(without_outputs.splitlines())
    assert len(changed) > 5


def altered(text: str, claim: tool.Claim) -> str:
    """The text with another last digit of that number."""
    last = max(i for i, character in enumerate(claim.number) if character.isdigit())
    at = claim.at + last
    digit = (int(text[at]) + 1) % 10
    return f"{text[:at]}{digit}{text[at + 1 :]}"


def test_the_list_of_reasons_is_short_and_each_is_needed():
    held: dict[tuple[str, str], list[str]] = {}  # sentences, by the reason and the text's name
    for path in TEXTS:
        for claim in found(path):
            if claim.held_by.startswith("reason: "):
                held.setdefault((claim.held_by, path.stem), []).append(claim.sentence)
    assert sum(len(sentences) for sentences in held.values()) < 60

    for name, reason in tool.reasons().items():
        assert reason["why"].endswith(".")
        for text, listed in reason.items():
            if text == "why":
                continue
            sentences = held.get((f"reason: {name}", text), [])
            for words in listed:
                assert any(words in sentence for sentence in sentences), (name, text, words)


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
def test_a_number_supports_another_that_equals_it_when_rounded(ours, theirs, held):
    _, number = next(tool.numbers(ours))
    _, source = next(tool.numbers(theirs))
    assert number.is_said_by(source) == held


def test_a_claim_without_a_source_is_named(tmp_path, monkeypatch, capsys):
    page = tmp_path / "PAGE.md"
    monkeypatch.setattr(tool, "TEXTS", (page,))
    monkeypatch.setattr(tool, "FOLDER", tmp_path)
    monkeypatch.setattr(tool, "reasons", dict)
    page.write_text("# A page\n\nIt takes 4711 steps, as [they say](https://example.org): 17.\n")
    assert tool.main() == 0  # the link stands in the same paragraph
    page.write_text("# A page\n\nIt takes 4711 steps.\n")
    assert tool.main() == 1
    assert "nothing holds '4711' in: It takes 4711 steps." in capsys.readouterr().out
