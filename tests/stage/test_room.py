"""What the kernel asks the room and reveals to it, for each guess; and what ROOM starts."""

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
    check = importlib.import_module(f"course_utils.chapters.{path.stem[3:]}.check")
    known = outline(as_handed_out(read(path)))
    asked = list(asking.asked(known.parts, path.stem[:2], check))
    ids = [part.id for part in known.parts]
    found = {}
    for cell, name, asks in asked:
        below = known.parts[ids.index(cell) + 1 :]
        reveals = [part.id for part in below if part.is_code and reveals_guess(part.text, name)]
        assert len(reveals) == 1
        for ask in asks:
            found[ask["key"]] = [ask["choices"] or ask["unit"], reveals[0]]
            assert 20 < len(ask["words"]) <= 600
            assert not re.search(r"\]\(|\*\*|`|^#", ask["words"])
    wanted = {key: asked for key, asked in ASKED.items() if key.startswith(path.stem[:2])}
    assert found == wanted
    assert {guess.id for guess in known.guesses} <= {cell for cell, _, _ in asked}


def reveals_guess(text: str, name: str) -> bool:
    return name in asking.revealed(text)


TALK = {  # the cells of a notebook, by their ids
    "words": "How many?",
    "asks": "my_days = ask(['a', 'b'], 'days')",
    "value": "really = ...",
    "check": "check.name_of_f32(really)",
}
IMPORTS = (
    "from course_utils import ask\n"
    "from course_utils.chapters.flops import check\n"
    "from course_utils.core.say import Comparison"
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a cell of a notebook as its kernel does, and says what the page of its frame is told."""
    stored = []
    for name, text in TALK.items():
        kind = "markdown" if name == "words" else "code"
        stored.append({"id": name, "cell_type": kind, "source": text})
    (tmp_path / "05_x.ipynb").write_text(json.dumps({"cells": stored}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", "some/05_x.ipynb")
    monkeypatch.setenv("COURSE_ROOM", "http://127.0.0.1:1/secret/")
    shell = InteractiveShell()
    frames = []
    asking.load_ipython_extension(shell)
    monkeypatch.setattr(asking, "display", lambda shown: frames.append(shown.data))

    def run(cell: str) -> list[dict]:
        frames.clear()
        shell.run_cell(TALK.get(cell, cell), cell_id=cell)
        told = []
        for frame in frames:
            match = re.search(r'src="http://127.0.0.1:1/secret/wall.html#([^"]*)"', frame)
            told.extend(json.loads(unquote(match[1])))
        return told

    run(IMPORTS)
    return run


def test_several_guesses_are_asked_one_by_one_and_each_finds_its_number(run):
    reveal = "Comparison({'a': 1, 'b': 2}, {'a': 1.5, 'b': 2}, guess=my_days, digits=3)"
    run("my_days = ask(['a', 'b'], 'days')")
    assert run(reveal) == [], "what was not asked is not revealed"
    first, second = run("asks")
    assert first["key"] == "05.my_days.1"
    assert first["unit"] == "days"
    assert first["words"] == "How many?\n\na"
    answers = [(told["key"], told["measured"], told["shown"]) for told in run(reveal)]
    assert answers == [(first["key"], 1.5, "1.50 days"), (second["key"], 2, "2 days")]
    assert run("Comparison({'a': 1}, guess=my_days") == [], "no Python"


def test_a_guess_below_a_heading_alone_is_asked_by_its_words():
    cells = [
        {"id": "a", "cell_type": "markdown", "source": "# How many days?"},
        {"id": "b", "cell_type": "code", "source": 'my_days = ask("all of it", "days")'},
    ]
    asked = list(asking.asked(outline({"cells": cells}).parts, "04", None))
    assert len(asked) == 1
    _, _, (ask,) = asked[0]
    assert ask["words"] == "How many days?"


def test_a_checked_value_is_revealed_with_the_tempting_answers_of_its_check(run):
    (ask,) = run("value")
    assert ask["key"] == "05.really"
    assert "tempting" not in ask
    (answer,) = run("check")
    (right, _), *tempting = flops.name_of_f32.listed()
    assert answer["measured"] == right
    assert [tuple(pair) for pair in answer["tempting"]] == tempting
    assert tempting


# What the notebooks measured when each was judged by hand: a wrong answer that the question is
# about has to fall outside what the wall calls right. In a row: what is measured, its unit, its
# item, and what was predicted if the number is shown in a few digits; the words; right guesses;
# wrong ones.
JUDGED = [
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


@pytest.mark.parametrize("judged", JUDGED, ids=lambda judged: f"{judged[0]} {judged[1]}")
def test_what_counts_as_right_fits_the_question_and_is_said(judged):
    measured, unit, item, predicted, words, right, wrong = judged
    found = bands(measured, unit, item, predicted)
    assert [said for _, _, said in found] == words
    low, high, _ = found[0]
    for guess in right:
        assert low <= guess <= high
    for guess in wrong:
        assert not low <= guess <= high


def test_an_answer_is_called_as_the_table_calls_it_and_has_its_bands(run):
    options = "guess=my_days, digits=3, heads=('supposed', 'reported')"
    run("asks")
    told = run(f"Comparison({{'a': 50, 'b': 2}}, {{'a': 27.6, 'b': 2}}, {options})")
    assert len(told) == 2
    for answer in told:
        assert answer["how"] == "reported"
        assert [words for _, _, words in answer["bands"]] == ["Within a factor of two"]
    run("value")
    assert run("check")[0]["how"] == "answer"


@pytest.fixture
def walls(monkeypatch):
    """Where the wall is, for each presentation that is begun."""
    walls = []
    monkeypatch.setattr("os.environ", os.environ | {"COURSE_ROOM": "http://left.over/"})
    monkeypatch.setattr(
        present, "present", lambda *_, **__: walls.append(os.environ.get("COURSE_ROOM"))
    )
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
    said = capsys.readouterr().out
    (wall,) = walls
    assert re.search(r"http://127\.0\.0\.1:\d+/[a-z2-9]{6}/\n", said)
    assert {f"{wall}start.html", f"{wall}kept.html"} <= {*said.split()}
    port = int(re.search(r":(\d+)/", wall)[1])
    with pytest.raises(OSError, match="refused"):
        present.socket.create_connection(("127.0.0.1", port))


OTHER_ADDRESS = "Name an address of this machine, such as 192.168.1.5."


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("192.0.2.77", OTHER_ADDRESS),
        ("0.0.0.0", OTHER_ADDRESS),
        ("nonsense", OTHER_ADDRESS),
        ("1", "This machine has no network"),
    ],
)
def test_an_address_that_is_not_this_machines_and_no_network_get_a_sentence(
    walls, capfd, monkeypatch, address, sentence
):
    def no_network(*_):
        raise OSError("Network is unreachable")

    monkeypatch.setattr(present.socket, "socket", no_network)
    os.environ["ROOM"] = address
    assert present.main(["04"]) == 2
    assert sentence in capfd.readouterr().err
    assert walls == []
