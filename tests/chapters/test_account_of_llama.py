"""The table of the whole accountant that each notebook shows once."""

import pytest
import torch

from course_utils import accountant, predict
from course_utils.chapters import by_torch
from course_utils.chapters.accountant.account_of_llama import LINES, SoFar
from course_utils.core.accountant_file import NAME, TERMS
from course_utils.core.record import HIDDEN
from course_utils.core.say.language import speak
from course_utils.core.say.wording import in_words
from tests import NOTEBOOKS
from tests.helpers.notebooks import code


def said(table: SoFar) -> dict[str, tuple[str, str]]:
    """By the term, what the line says and whose the term is."""
    return {term: (value, whose) for _, value, term, whose in table.rows[1:]}


def test_each_term_has_one_line_in_the_order_of_the_notebooks():
    assert sorted(line.term for line in LINES) == sorted(TERMS)
    numbers = [line.notebook for line in LINES]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_shows_it_once_with_its_own_number(path):
    calls = [cell.source for cell in code(path) if "so_far(" in cell.source]
    assert calls == [
        f"from course_utils import accountant\n\naccountant.so_far(notebook={path.stem[1]})"
    ]


@pytest.mark.parametrize("number", range(1, 9))
def test_a_line_has_a_number_from_its_notebook_on_and_names_that_notebook_before(number):
    lines = said(accountant.so_far(notebook=number))
    for line in LINES:
        value, whose = lines[line.term]
        if line.notebook <= number:
            assert any(character.isdigit() for character in value)
            assert whose == "the course's"
        else:
            assert (value, whose) == ("?", f"notebook {line.notebook}")


def test_its_numbers_are_those_of_other_routes():
    lines = {term: value for term, (value, _) in said(accountant.so_far(notebook=8)).items()}
    embedding = torch.empty(128_256, 4096, dtype=torch.bfloat16, device="meta")
    assert lines["tensor_bytes"] == lines["storage_bytes"] == in_words(embedding.nbytes, "bytes")
    # torch counts on fake tensors.
    parameters, step_flops, added = by_torch.whole(predict.known("llama-3-8b"), 1, 8192, "bf16")
    assert lines["parameters"] == in_words(parameters / 1e9, "billions of parameters")
    assert lines["state_bytes"] == in_words(16 * parameters, "bytes")
    assert lines["step_flops"] == in_words(step_flops, "FLOPs")
    assert lines["step_bytes"] == in_words(added, "bytes")
    forward = predict.MODELS["Llama 3 8B"].forward_flops(1, 8192).total
    assert lines["forward_flops"] == in_words(forward, "FLOPs")
    days = 3 * forward / 8192 * 15e12 / (1024 * 989.5e12 * 0.5) / 86_400
    assert lines["days"] == in_words(days, "days")


@pytest.mark.parametrize("number", [-1, 0, 9])
def test_another_number_is_refused_with_what_is_allowed(number):
    with pytest.raises(ValueError, match="it is a number from 1 to 8"):
        accountant.so_far(notebook=number)


def test_a_term_that_the_reader_has_written_is_theirs_and_counts(tmp_path, monkeypatch):
    (tmp_path / HIDDEN).mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).write_text(
        "import math\nfrom course_utils.core.accountant import BYTES\n\n\n"
        "def tensor_bytes(shape, dtype):\n    return math.prod(shape) * BYTES[dtype]\n",
        encoding="utf-8",
    )
    table = accountant.so_far(notebook=2)
    assert said(table)["tensor_bytes"] == ("1.05 GB", "yours")
    assert said(table)["storage_bytes"] == ("1.05 GB", "the course's")
    assert repr(table).endswith(
        "2 of 13 lines have a number. "
        "1 of them is counted by a term that you wrote, and 1 by the course's."
    )


def test_a_wrong_term_does_not_count(tmp_path, monkeypatch, capsys):
    (tmp_path / HIDDEN).mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).write_text("def tensor_bytes(shape, dtype):\n    return 7\n", "utf-8")
    table = accountant.so_far(notebook=1)
    assert said(table)["tensor_bytes"] == ("1.05 GB", "the course's")
    assert "tensor_bytes" in capsys.readouterr().out


def test_the_table_is_shown_in_the_readers_language_and_kept_in_english():
    table = accountant.so_far(notebook=4)
    english = repr(table)
    sentence = "{counted} of {lines} lines have a number."
    speak(
        {
            "term": "Größe",
            "parameters": "Parameter",  # also the name of a term, which stays
            "the whole model": "das ganze Modell",
            "8.03 billion parameters": "8,03 Milliarden Parameter",
            "the course's": "des Kurses",
            "notebook {number}": "Heft {number}",
            sentence: "Von {lines} Zeilen haben {counted} eine Zahl.",
        }
    )
    try:
        shown = repr(table)
    finally:
        speak({})
    assert repr(table) == english
    head, *lines, below = [" ".join(line.split()) for line in shown.splitlines()]
    assert head == "Llama 3 8B Größe whose"
    assert "das ganze Modell 8,03 Milliarden Parameter parameters des Kurses" in lines
    assert "time between two saves ? interval Heft 8" in lines
    assert below == f"Von {len(LINES)} Zeilen haben 6 eine Zahl."


def test_one_line_and_terms_of_the_reader_have_sentences_of_their_own():
    head = ["", "model", "term", "whose"]
    ours = ["words", "1", "term", "the course's"]
    own = ["words", "1", "term", "yours"]

    def below(*lines: list[str]) -> str:
        return repr(SoFar([head, *lines])).splitlines()[-1]

    assert below(ours) == f"1 of {len(LINES)} lines has a number."
    one = f"1 of {len(LINES)} lines has a number."
    two = f"2 of {len(LINES)} lines have a number."
    three = f"3 of {len(LINES)} lines have a number."
    yours = "counted by a term that you wrote"
    assert below(own) == f"{one} It is {yours}."
    assert below(own, own) == f"{two} All of them are counted by terms that you wrote."
    assert below(ours, own) == f"{two} 1 of them is {yours}, and 1 by the course's."
    two_of_them = "2 of them are counted by terms that you wrote"
    assert below(own, ours, own) == f"{three} {two_of_them}, and 1 by the course's."
