"""What the kernel asks the room and reveals to it, for each guess of the notebooks; and what ROOM starts."""

import importlib
import json
import os
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from IPython.core.interactiveshell import InteractiveShell

from course_utils.chapters.flops import check as flops
from course_utils.stage.notebook.files import read
from course_utils.stage.notebook.outline import outline
from course_utils.stage.present import asking
from course_utils.stage.present import server as present
from course_utils.stage.present.bands import bands
from course_utils.stage.workspace.copies import as_handed_out
from tests import NOTEBOOKS

# Of each question of the notebooks: its unit or its choices, and the cell that reveals it.
ASKED = json.loads(Path(__file__).with_name("asked_in_the_room.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_typed_guess_is_asked_in_plain_words_and_finds_its_reveal(path):
    check, notebook = (
        importlib.import_module(f"course_utils.chapters.{path.stem[3:]}.check"),
        as_handed_out(read(path)),
    )
    known = outline(notebook)
    asked = list(asking.asked(known.parts, path.stem[:2], check))
    ids, found = [part.id for part in known.parts], {}
    for cell, name, asks in asked:
        below = known.parts[ids.index(cell) + 1 :]
        (reveal,) = [one.id for one in below if one.is_code and name in asking.revealed(one.text)]
        found |= {one["key"]: [one["choices"] or one["unit"], reveal] for one in asks}
        for one in asks:
            assert 20 < len(one["words"]) <= 600
            assert not re.search(r"\]\(|\*\*|`|^#", one["words"])
    assert found == {key: one for key, one in ASKED.items() if key.startswith(path.stem[:2])}
    assert {guess.id for guess in known.guesses} <= {cell for cell, *_ in asked}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a cell of a notebook as its kernel does, and says what the page of its frame is told."""
    cells = {"words": "How many?", "asks": "my_days = {'a': ..., 'b': ...}  # days"}
    cells |= {"value": "really = ...", "check": "check.name_of_f32(really)"}
    kinds = {name: "markdown" if name == "words" else "code" for name in cells}
    stored = [
        {"id": name, "cell_type": kinds[name], "source": text} for name, text in cells.items()
    ]
    (tmp_path / "05_x.ipynb").write_text(json.dumps({"cells": stored}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", "some/05_x.ipynb")
    monkeypatch.setenv("COURSE_ROOM", "http://127.0.0.1:1/secret/")
    shell, frames = InteractiveShell(), []
    asking.load_ipython_extension(shell)
    monkeypatch.setattr(asking, "display", lambda shown: frames.append(shown.data))

    def run(cell: str) -> list[dict]:
        frames.clear()
        shell.run_cell(cells.get(cell, cell), cell_id=cell)
        told = [
            re.search(r'src="http://127.0.0.1:1/secret/wall.html#([^"]*)"', one)[1]
            for one in frames
        ]
        return [one for text in told for one in json.loads(unquote(text))]

    run(
        "from course_utils.chapters.flops import check\nfrom course_utils.core.say import Comparison"
    )
    return run


def test_a_dict_of_guesses_is_asked_item_by_item_and_each_finds_its_number(run):
    reveal = "Comparison({'a': 1, 'b': 2}, {'a': 1.5, 'b': 2}, guess=my_days, digits=3)"
    run("my_days = {'a': ..., 'b': ...}")
    assert run(reveal) == [], "what was not asked is not revealed"
    first, second = run("asks")
    assert [first[name] for name in ("key", "unit", "words")] == [
        "05.my_days.1",
        "days",
        "How many?\n\na",
    ]
    answers = [(one["key"], one["measured"], one["shown"]) for one in run(reveal)]
    assert answers == [(first["key"], 1.5, "1.50 days"), (second["key"], 2, "2 days")]
    assert run("Comparison({'a': 1}, guess=my_days") == [], "no Python"


def test_a_guess_below_a_heading_alone_is_asked_by_its_words():
    cells = [
        {"id": "a", "cell_type": "markdown", "source": "# How many days?"},
        {"id": "b", "cell_type": "code", "source": "my_days = ...  # days"},
    ]
    ((_, _, (ask,)),) = asking.asked(outline({"cells": cells}).parts, "04", None)
    assert ask["words"] == "How many days?"


def test_a_checked_value_is_revealed_with_the_tempting_answers_of_its_check(run):
    (ask,), (answer,) = run("value"), run("check")
    assert (ask["key"], "tempting" in ask) == ("05.really", False)
    (right, _), *tempting = flops.name_of_f32.listed()
    assert (answer["measured"], [*map(tuple, answer["tempting"])]) == (right, tempting)
    assert tempting


# What the notebooks measure, as they stood when each was judged by hand: a wrong answer that the question is about has
# to fall outside what the wall calls right.
JUDGED = [
    # measured, unit, item, predicted if it is shown in a few digits; the words; right guesses; wrong ones
    (2, "times the forward pass", "", None, ["Exactly 2"], [2], [1, 1.2, 3]),
    (16.0003, "bytes for each weight", "", 16, ["Exactly 16"], [16], [8, 12, 15.9]),
    (10.0, "times SGD's step", "", 1 / (1 - 0.9), ["Exactly 10"], [10], [9, 11]),
    (12, "of 18", "", None, ["Exactly 12"], [12], [9, 11]),
    (0, "bytes", "", None, ["Exactly 0"], [0], [8192]),
    (200, "of 200", "", None, ["Within 10 of 200"], [195], [150]),
    (27.6, "percent", "MFU", 50, ["Within 5 points"], [25, 30, 32.6], [50, 20, 35]),
    (0.338, "percent of the peak", "", 0.339, ["Within a factor of two"], [0.5], [5, 0.1]),
    (0.126, "", "share of time lost", 0.131, ["Within 0.05"], [0.1], [0.25]),
    (0.979167, "", "share of 6BP", None, ["Within 1 %"], [0.98], [0.9375]),
    (81.1, "times", "", 16, ["Within a factor of two"], [100], [16]),
    (1.16667, "times", "", None, ["Within 1 %"], [7 / 6], [4 / 3, 1]),
    (1.62, "times", "", 1, ["Within 10 %"], [1.6], [2, 1]),
    (40.0, "billions of parameters", "", 40, ["Within a factor of two"], [30], [5]),
    (143.927, "days", "", None, ["Within 1 %", "Within a factor of two"], [144], [72]),
    (65_504.0, "", "", None, ["Exactly 65,504", "Within a factor of two"], [65_504], [65_536]),
    (44_193_349_632, "bytes", "", None, ["Within 1 %", "Within a factor of two"], [44e9], [16e9]),
]


@pytest.mark.parametrize("judged", JUDGED, ids=lambda one: f"{one[0]} {one[1]}")
def test_what_counts_as_right_fits_the_question_and_is_said(judged):
    measured, unit, item, predicted, words, right, wrong = judged
    found = bands(measured, unit, item, predicted)
    (low, high, _), *_ = found
    assert [said for _, _, said in found] == words
    assert [one for one in right if not low <= one <= high] == []
    assert [one for one in wrong if low <= one <= high] == []


def test_an_answer_is_called_as_the_table_calls_it_and_has_its_bands(run):
    heads = "heads=('supposed', 'reported')"
    run("asks")
    told = run(
        f"Comparison({{'a': 50, 'b': 2}}, {{'a': 27.6, 'b': 2}}, guess=my_days, digits=3, {heads})"
    )
    assert [one["how"] for one in told] == ["reported", "reported"]
    assert [[words for _, _, words in one["bands"]] for one in told] == [
        ["Within a factor of two"]
    ] * 2
    run("value")
    assert run("check")[0]["how"] == "answer"


@pytest.fixture
def walls(monkeypatch):
    """Where the wall is, for each presentation that is begun."""
    walls = []
    monkeypatch.setattr("os.environ", os.environ | {"COURSE_ROOM": "http://left.over/"})
    monkeypatch.setattr(present, "present", lambda *_: walls.append(os.environ.get("COURSE_ROOM")))
    return walls


def test_without_room_no_process_is_started_and_no_port_is_opened(walls, monkeypatch):
    monkeypatch.setattr(present, "socket", None)
    monkeypatch.setattr(present, "subprocess", None)
    assert present.main(["04"]) == 0
    assert walls == [None]


def test_with_room_the_addresses_are_printed_and_the_process_ends_with_the_presentation(
    walls, capsys
):
    os.environ["ROOM"] = "127.0.0.1"
    assert present.main(["04", "--no-browser"]) == 0
    said, (wall,) = capsys.readouterr().out, walls
    assert re.search(r"http://127\.0\.0\.1:\d+/[a-z2-9]{6}/\n", said)
    assert {f"{wall}start.html", f"{wall}kept.html"} <= {*said.split()}
    with pytest.raises(OSError, match="refused"):
        present.socket.create_connection(("127.0.0.1", int(re.search(r":(\d+)/", wall)[1])))


@pytest.mark.parametrize("address", ["192.0.2.77", "0.0.0.0", "nonsense", "1"])
def test_an_address_that_is_not_this_machines_and_no_network_get_a_sentence(
    walls, capfd, monkeypatch, address
):
    def no_network(*_):
        raise OSError("Network is unreachable")

    monkeypatch.setattr(present.socket, "socket", no_network)
    os.environ["ROOM"] = address
    assert present.main(["04"]) == 2
    said = (
        "This machine has no network"
        if address == "1"
        else "Name an address of this machine, such as 192.168.1.5."
    )
    assert said in capfd.readouterr().err
    assert walls == []
