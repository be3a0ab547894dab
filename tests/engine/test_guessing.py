"""The field of a guess, and what the record keeps of it, so that a restart changes nothing."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from course_utils import ask, reveal
from course_utils.chapters.floats.ahead import ask_ahead
from course_utils.core import record
from course_utils.core.record import Said
from course_utils.core.say import Guess, OpenGuess
from course_utils.core.say.typed import read
from course_utils.engine import guessing
from course_utils.engine.guessing.field import (
    CLOSED,
    CLOSED_WITHOUT,
    NO_ANSWER,
    WIDGET,
    Field,
)
from course_utils.engine.judging import after_cell

NAME = "one matrix"


@pytest.fixture(autouse=True)
def fields(monkeypatch):
    """The fields that have been shown, in their order."""
    shown = []
    monkeypatch.setattr(guessing, "display", shown.append)
    return shown


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A reader's folder, with the notebook `floats` open in it."""
    (tmp_path / record.HIDDEN).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(record, "notebook", "floats")
    return tmp_path


@pytest.fixture
def run(mine, monkeypatch) -> Callable[[str], object]:
    """Runs a cell as the reader's kernel does, and returns its result."""
    quiet = Config(HistoryManager={"enabled": False})
    shell = InteractiveShell(config=quiet, ipython_dir=str(mine / "ipython"))
    check = SimpleNamespace(__name__="course_utils.chapters.floats.check")
    shell.user_ns.update(ask=ask, reveal=reveal, check=check)
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    after_cell.note_what_is_shown()

    def run_cell(text: str, cell_id: str = "c1") -> object:
        with capture_output():
            result = shell.run_cell(text, cell_id=cell_id)
        result.raise_error()
        return result.result

    return run_cell


def test_a_guess_that_is_drawn_is_recorded_with_the_cell_of_its_picture(run, mine):
    """The same lab asks in three cells, with the same words."""
    run("from course_utils.chapters import labs")
    for cell, steps, landing in (("c2", 1, 7), ("c3", 2, 9), ("c4", 3, 9)):
        run(f"figure = labs.figure('walk', 'shown', steps={steps})", cell)
        run(f"figure.set(landing=({landing},))", "c9")  # the cell that runs when the mark is set
        run("figure.set(shown=True)", "c9")
    (guesses,) = record.guesses(mine).values()
    assert [guess.cell for guess in guesses] == ["c2", "c3", "c4"]
    assert [guess.said for guess in guesses] == [7, 9, 9]
    assert len({guess.asked for guess in guesses}) == 1


def test_who_shows_the_answer_in_a_picture_without_a_mark_has_seen_it(run, mine):
    run("from course_utils.chapters import labs")
    run("figure = labs.figure('walk', 'shown')", "c2")
    run("figure.set(shown=True)", "c3")
    assert record.guesses(mine) == {}
    assert record.said_so_far(mine, "floats") == {"c2": Said(is_closed=True)}


def lines(mine: Path) -> list[str]:
    """The lines of the record without their dates."""
    path = mine / record.RECORD
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [line.partition(" ")[2] for line in text.splitlines()]


def send(field: Field, **message: object) -> None:
    """Do what the page does with that message."""
    field._on_message(field, message, [])


# The field.


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("44", "44 bytes"),
        ("2^12", "4,096 bytes"),
        ("44e9", "44 GB"),
        ("16,100,000,000", "16.1 GB"),
        ("15 GiB", "16.1 GB"),
    ],
)
def test_bytes_are_echoed_in_the_unit_in_which_a_person_would_say_them(fields, typed, said):
    ask("one matrix", "bytes")
    (field,) = fields
    send(field, say={"name": "one matrix", "typed": typed})
    assert field.lines[0]["said"] == said


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("4*12288**2/1e9", "0.604 GB"),
        ("1/3", "0.333 GB"),
        ("365.25 * 3", "1095.75 GB"),  # it has no more digits
        ("0.603979", "0.603979 GB"),  # the reader has typed them
        ("2 * 10^9", "2,000,000,000 GB"),
    ],
)
def test_what_was_worked_out_is_echoed_with_three_digits(fields, typed, said):
    guess = ask("one matrix", "GB")
    (field,) = fields
    send(field, say={"name": "one matrix", "typed": typed})
    assert field.lines[0]["said"] == said
    assert guess.said["one matrix"] == read(typed, "GB"), "the guess itself is not rounded"


def test_the_field_shows_how_a_guess_was_read_and_what_makes_no_sense_in_its_own_line(fields):
    guess = ask(["sending", "pauses"], "days")
    (field,) = fields
    send(field, say={"name": "sending", "typed": "1 week"})
    send(field, say={"name": "pauses", "typed": "some"})
    assert guess.said == {"sending": 7}
    first, second = field.lines
    assert first == {
        "name": "sending",
        "options": [],
        "said": "7 days",
        "typed": "1 week",
        "fault": "",
    }
    assert (second["said"], second["typed"]) == ("", "some")
    assert second["fault"].startswith("'some' is not a number here.")
    send(field, say={"name": "pauses", "typed": "1e"})
    send(field, say={"name": "pauses", "typed": "2"})
    assert [(line["typed"], line["fault"]) for line in field.lines] == [("1 week", ""), ("2", "")]


def test_show_lifts_the_curtain_and_settles_the_guess(fields, mine):
    guess = ask("the format", among=("fp16", "bf16"))
    (field,) = fields
    assert field.lines[0]["options"] == ["fp16", "bf16"]
    assert (field.has_gone_on, field.is_closed, field.words) == (False, False, "")
    send(field, say={"name": "the format", "typed": "bf16"})
    send(field, show=True)
    assert (field.has_gone_on, field.is_closed, field.words) == (True, True, CLOSED)
    send(field, say={"name": "the format", "typed": "fp16"})
    assert guess.said == {"the format": "bf16"}
    after_a_restart = ask("the format", among=("fp16", "bf16"))
    assert (after_a_restart.said, after_a_restart.is_closed) == ({"the format": "bf16"}, True)
    send(fields[1], say={"name": "the format", "typed": "fp16"})
    record.note_said(mine, "floats", "the format", "fp16")  # as an older version would write
    assert record.said_so_far(mine, "floats")["the format"].said == "bf16"


def test_a_field_that_closes_without_a_guess_does_not_speak_of_one(fields):
    ask(NAME, "GB").close()
    assert fields[0].words == CLOSED_WITHOUT


@pytest.mark.parametrize(
    "message",
    ["hide", None, {}, {"say": "2"}, {"say": {}}, {"say": {"name": "another", "typed": "2"}}],
)
def test_a_message_of_another_form_changes_nothing(fields, message):
    guess = ask(NAME, "GB")
    fields[0]._on_message(fields[0], message, [])
    assert guess.said == {}
    assert not guess.has_gone_on
    assert fields[0].failure == ""


def test_a_failure_of_the_field_itself_is_seen_in_it(fields):
    guess = ask(NAME, "GB")

    def fail() -> None:
        raise OSError("no space left")

    guess.on_change.append(fail)
    send(fields[0], say={"name": NAME, "typed": "2"})
    assert fields[0].failure == "The field itself failed: OSError: no space left"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ask(NAME, "GB"), "Your guess: one matrix, in GB? (To type it, run this cell.)"),
        (lambda: ask("sums", "of 200"), "sums, of 200?"),
        (lambda: ask("a part", "share"), "a part, from 0 to 1?"),
        (lambda: ask(["a", "b"]), "Your guess: a, b?"),
        (lambda: ask("a", among=("x", "y")), "a? One of these: x, y."),
    ],
)
def test_where_no_kernel_runs_a_sentence_says_what_is_asked(fields, call, words):
    call()
    bundle, _ = fields[0]._repr_mimebundle_()
    assert words in bundle["text/plain"]
    assert set(bundle) == {WIDGET, "text/plain"}


def test_parts_of_a_sum_have_bars_between_two_numbers(fields):
    guess = ask(["sending", "pauses"], "days", between={"at the peak": 82.5, "reported": 260})
    (field,) = fields
    assert field.between == [["at the peak", 82.5], ["reported", 260]]
    assert [line["number"] for line in field.lines] == [None, None]
    send(field, say={"name": "sending", "typed": "1 week"})
    assert [line["number"] for line in field.lines] == [7, None]
    assert guess.said == {"sending": 7}
    bundle, _ = field._repr_mimebundle_()
    assert bundle["text/plain"] == (
        "Your guess: sending, pauses, in days? (To type it, run this cell.)"
    )


@pytest.mark.parametrize(
    ("typed", "number"),
    [("-5", -5), ("−2.45 days", -2.45), ("- 1 week", -7), ("-5 + 8", 3), ("4 - 0", None)],
)
def test_a_part_of_a_sum_can_be_below_0(fields, typed, number):
    guess = ask(["sending", "pauses"], "days", between={"at the peak": 82.5, "reported": 260})
    (field,) = fields
    send(field, say={"name": "sending", "typed": typed})
    assert field.lines[0]["number"] == number
    assert guess.said.get("sending") == number
    assert (field.lines[0]["fault"] == "") == (number is not None)


@pytest.mark.parametrize(
    ("typed", "said"),
    [("3 years", "1,096 days"), ("1.5 years", "547.875 days"), ("40 years", "14,610 days")],
)
def test_years_are_read_back_in_days_that_can_be_read(fields, typed, said):
    guess = ask("training", "days")
    (field,) = fields
    send(field, say={"name": "training", "typed": typed})
    assert field.lines[0]["said"] == said
    assert guess.said["training"] == pytest.approx(365.25 * float(typed.split()[0]))


def test_of_several_numbers_that_are_no_parts_none_can_be_below_0(fields):
    ask(["sending", "pauses"], "days")
    (field,) = fields
    send(field, say={"name": "sending", "typed": "-5"})
    assert field.lines[0]["fault"].startswith("It cannot be below 0: -5 days.")


@pytest.mark.parametrize(
    ("names", "more"),
    [
        ("sending", {"between": {"from": 1, "to": 2}}),
        (["a", "b"], {"between": {"to": 2}}),
        (["a", "b"], {"between": {"from": 2, "to": 1}}),
        (["a", "b"], {"between": {"from": -1, "to": 1}}),
        (["a", "b"], {"among": ("x", "y"), "between": {"from": 1, "to": 2}}),
    ],
)
def test_bars_are_refused_where_there_is_no_sum_of_parts(fields, names, more):
    with pytest.raises(ValueError, match="two of its own, the smaller one first"):
        ask(names, "days", **more)
    assert fields == []


@pytest.mark.parametrize("names", ["", [], ["a", ""], ["a", "b", "a"]])
def test_each_question_has_a_name_of_its_own(fields, names):
    with pytest.raises(ValueError, match="name"):
        ask(names, "GB")
    assert fields == []


# The record.


def test_each_change_is_one_line_and_the_first_that_made_sense_is_there(mine, fields):
    ask(NAME, "GB")
    for typed in ("two", "2", "2.0", "", "3"):
        send(fields[0], say={"name": NAME, "typed": typed})
    send(fields[0], show=True)
    send(fields[0], show=True)
    assert lines(mine) == [
        'floats said {"asked": "one matrix", "said": 2}',
        'floats said {"asked": "one matrix", "said": 3}',
        'floats shown {"asked": "one matrix"}',
    ]


def test_after_a_restart_the_same_cell_has_the_guess_the_curtain_and_the_closed_field(mine, fields):
    first = ask(["a", "b"], "GB")
    send(fields[0], say={"name": "b", "typed": "1/3"})
    again = ask(["a", "b"], "GB")
    assert again.said == first.said == {"b": 1 / 3}
    assert (again.has_gone_on, again.is_closed) == (False, False)
    assert fields[1].lines[1]["typed"] == "0.333333"
    send(fields[0], show=True)
    assert ask(["a", "b"], "GB").has_gone_on
    record.note_guess(mine, "floats", Guess("b", 1 / 3, 0.5, unit="GB"))
    last = ask(["a", "b"], "GB")
    assert (last.said, last.has_gone_on, last.is_closed) == ({"b": 1 / 3}, True, True)
    written = lines(mine)
    ask(["a", "b"], "GB")
    assert lines(mine) == written, "to ask again is no change"


def test_a_guess_that_was_revealed_in_another_version_comes_with_its_curtain_lifted(mine):
    record.note_guess(mine, "floats", Guess(NAME, 2, 3, unit="GB"))
    guess = ask(NAME, "GB")
    assert (guess.said, guess.has_gone_on, guess.is_closed) == ({NAME: 2}, True, True)


def test_nothing_is_written_outside_a_workspace_or_before_the_notebook_is_known(
    mine, monkeypatch, fields, tmp_path_factory
):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for folder, notebook in ((elsewhere, "floats"), (mine, "")):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(record, "notebook", notebook)
        ask(NAME, "GB")
        send(fields[-1], say={"name": NAME, "typed": "2"})
        send(fields[-1], show=True)
        assert not (folder / record.RECORD).exists()
        assert ask(NAME, "GB").said == {}


def test_two_notebooks_have_a_question_of_the_same_name_each(mine, monkeypatch, fields):
    ask(NAME, "GB")
    send(fields[0], say={"name": NAME, "typed": "2"})
    monkeypatch.setattr(record, "notebook", "tensors")
    assert ask(NAME, "GB").said == {}
    send(fields[1], say={"name": NAME, "typed": "3"})
    assert record.said_so_far(mine, "floats") == {NAME: Said(2)}
    assert record.said_so_far(mine, "tensors") == {NAME: Said(3)}


def test_a_guess_made_ahead_waits_in_the_field_of_the_notebook_that_asks_again(
    mine, monkeypatch, fields
):
    ask_ahead(NAME, "GB", notebook="tensors")
    assert (fields[0].has_gone_on, fields[0].unit) == (True, "GB"), "it has no Show"
    send(fields[0], say={"name": NAME, "typed": "500 MB"})
    assert lines(mine) == ['tensors said {"asked": "one matrix", "said": 0.5}']
    monkeypatch.setattr(record, "notebook", "tensors")
    guess = ask(NAME, "GB")
    assert (guess.said, guess.has_gone_on, guess.is_closed) == ({NAME: 0.5}, False, False)
    record.note_guess(mine, "tensors", Guess(NAME, 0.5, 3, unit="GB"))
    monkeypatch.setattr(record, "notebook", "floats")
    ask_ahead(NAME, "GB", notebook="tensors")
    assert (fields[-1].lines[0]["typed"], fields[-1].words) == ("0.5", CLOSED)


def test_a_guess_made_ahead_is_written_nowhere_outside_a_workspace(monkeypatch, fields, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(record, "notebook", "floats")
    ask_ahead(NAME, "GB", notebook="tensors")
    send(fields[0], say={"name": NAME, "typed": "2"})
    assert fields[0].lines[0]["said"] == "2 GB"
    assert not (tmp_path / record.RECORD).exists()


def test_for_a_room_that_guesses_by_phone_no_field_is_shown_ahead(mine, monkeypatch, fields):
    monkeypatch.setattr(guessing, "shows_fields", False)
    ask_ahead(NAME, "GB", notebook="tensors")
    assert fields == []


def test_an_answer_that_was_seen_without_a_guess_is_known_after_a_restart(mine, fields):
    ask(NAME, "GB").close()
    after_a_restart = ask(NAME, "GB")
    assert after_a_restart.has_gone_on
    assert fields[1].words == CLOSED_WITHOUT
    send(fields[1], say={"name": NAME, "typed": "2"})
    assert after_a_restart.said == {}
    assert record.guesses(mine) == {}
    record.note_asked_anew(mine, "floats")
    assert not ask(NAME, "GB").is_closed


def test_a_notebook_that_begins_anew_has_empty_fields(mine, fields):
    ask(NAME, "GB")
    send(fields[0], say={"name": NAME, "typed": "2"})
    record.note_guess(mine, "floats", Guess(NAME, 2, 3))
    record.note_asked_anew(mine, "tensors")
    assert ask(NAME, "GB").said == {NAME: 2}
    record.note_asked_anew(mine, "floats")
    anew = ask(NAME, "GB")
    assert (anew.said, anew.has_gone_on, anew.is_closed) == ({}, False, False)


def test_lines_that_somebody_has_edited_are_passed_over(mine):
    deep = '{"asked":' * 100_000 + "1" + "}" * 100_000
    edited = [
        'said {"asked": "one matrix"}',
        'said {"said": 2}',
        "said {2}",
        'said {"asked": ["one matrix"], "said": 2}',
        f"said {deep}",
        'whispered {"asked": "one matrix", "said": 2}',
        'said {"asked": "another", "said": 2}',
        'said {"asked": "one matrix", "said": NaN}',
        'said {"asked": "one matrix", "said": -2}',
        'said {"asked": "one matrix", "said": "2"}',
    ]
    text = "".join(f"2026-11-27 floats {line}\n" for line in edited)
    (mine / record.RECORD).write_text(f"{text}2026-11-27 floats said", encoding="utf-8")
    assert ask(NAME, "GB").said == {}
    record.note_said(mine, "floats", NAME, 3)
    assert ask(NAME, "GB").said == {NAME: 3}


# A reveal, in a kernel.

REVEAL = "reveal(my_gb, predicted=2, measured=2.5)"
GUESSED = (
    'floats guessed {"asked": "one matrix", "said": 3, "measured": 2.5, '
    '"kind": "measured", "unit": "GB"}'
)


@pytest.fixture
def field(run, fields) -> Field:
    """The field of the guess my_gb."""
    run('my_gb = ask("one matrix", "GB")')
    return fields[0]


def test_a_guess_that_is_revealed_is_recorded_and_closed(mine, run, field):
    send(field, say={"name": NAME, "typed": "3"})
    send(field, show=True)
    assert run(REVEAL).guesses == [Guess(NAME, 3, 2.5, unit="GB")]
    assert lines(mine)[-1] == GUESSED
    assert field.is_closed
    assert record.guesses(mine) == {"floats": [Guess(NAME, 3, 2.5, unit="GB")]}


def test_a_reveal_that_ran_out_of_view_is_recorded_when_it_is_seen(mine, run, field):
    send(field, say={"name": NAME, "typed": "3"})
    run(REVEAL)
    assert not field.is_closed
    assert record.guesses(mine) == {}
    send(field, show=True)
    assert field.is_closed
    assert record.guesses(mine) == {"floats": [Guess(NAME, 3, 2.5, unit="GB")]}


@pytest.mark.parametrize("before", [None, "2"])
def test_a_guess_made_after_all_cells_ran_is_recorded_when_its_reveal_runs_again(
    mine, run, field, before
):
    if before:
        send(field, say={"name": NAME, "typed": before})
    run(REVEAL)
    send(field, say={"name": NAME, "typed": "3"})
    send(field, show=True)
    assert record.guesses(mine) == {}, "what is seen compares another guess"
    assert field.is_closed, "because the measured number is seen"
    run(REVEAL)
    assert record.guesses(mine) == {"floats": [Guess(NAME, 3, 2.5, unit="GB")]}


def test_without_a_guess_the_record_has_of_a_reveal_only_that_it_was_seen(mine, run, field):
    send(field, show=True)
    run(REVEAL)
    assert field.is_closed
    asked = '{"asked": "one matrix"}'
    assert lines(mine) == [f"floats shown {asked}", f"floats seen {asked}"]


def test_one_of_several_is_recorded_by_its_name_and_a_result_that_is_not_shown_is_none(
    mine, run, fields
):
    run('my_days = ask(["sending", "pauses"], "days")')
    send(fields[0], say={"name": "pauses", "typed": "2"})
    run("kept = reveal(my_days['pauses'], predicted=1, measured=2)")
    send(fields[0], show=True)
    assert record.guesses(mine) == {}
    run("reveal(my_days['pauses'], predicted=1, measured=2)")
    assert fields[0].is_closed
    assert record.guesses(mine) == {"floats": [Guess("pauses", 2, 2, unit="days")]}


def test_a_table_of_several_units_judges_and_records_the_guess_in_its_own(mine, run, field):
    send(field, say={"name": NAME, "typed": "3"})
    send(field, show=True)
    run(
        "from course_utils.core.say import Comparison\n"
        "Comparison({'one matrix': 2, 'days': 1}, {'one matrix': 2.5, 'days': 1}, guess=my_gb)"
    )
    assert lines(mine)[-1] == GUESSED


def test_what_ask_returns_says_what_it_is():
    assert isinstance(ask(NAME, "GB"), OpenGuess)
    assert repr(ask(NAME, "GB")) == "one matrix: no guess"


def test_with_show_a_text_that_was_refused_gives_way_to_the_guess_that_is_kept():
    guess = OpenGuess(("share",), "share", ())
    field = Field(guess)
    field.say("share", "0.97")
    field.say("share", "96")
    assert field.lines[0]["fault"]
    field.show_what_follows()
    assert (field.lines[0]["typed"], field.lines[0]["fault"]) == ("0.97", "")


def test_with_show_a_text_that_was_refused_without_a_guess_before_it_stays_and_does_not_count():
    guess = OpenGuess(("a", "b", "c"), "GB")
    field = Field(guess)
    for name, typed in (("a", "2"), ("b", "16 M"), ("c", "3")):
        field.say(name, typed)
    field.show_what_follows()
    assert guess.said == {"a": 2, "c": 3}
    assert field.words == CLOSED
    said = [(line["typed"], line["fault"]) for line in field.lines]
    assert said == [("2", ""), ("16 M", NO_ANSWER), ("3", "")]


@pytest.mark.parametrize(
    ("typed", "fault", "words"), [("lots", NO_ANSWER, ""), ("", "", CLOSED_WITHOUT)]
)
def test_with_show_a_field_without_a_guess_says_what_is_true(typed, fault, words):
    field = Field(OpenGuess((NAME,), "GB"))
    field.say(NAME, typed)
    field.show_what_follows()
    (line,) = field.lines
    assert (line["typed"], line["fault"], field.words) == (typed, fault, words)


def test_a_guess_that_was_worked_out_is_said_alike_before_and_after_a_text_that_is_refused():
    field = Field(OpenGuess((NAME,), "times"))
    field.say(NAME, "4/3")
    said = field.lines[0]["said"]
    field.say(NAME, "lots")
    assert said == field.lines[0]["said"] == "1.33 times"
