"""Which questions come back on which day, by a clock of the test's own."""

import itertools
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest

from course_utils.core import record
from course_utils.core.say import Guess
from course_utils.stage.recall import due, lines
from course_utils.stage.recall.bank import QUESTIONS
from course_utils.stage.recall.sections import section_of
from tests import ROOT

COURSE = ROOT / "notebooks"
MADE_BY_HAND = """\
2026-01-01 floats guessed {"asked": "sums in bf16 that are rounded once", "said": 200, \
"measured": 25, "unit": "of 200"}
2026-01-01 floats.tensor_bytes tried
2026-01-01 floats.tensor_bytes right
2026-01-02 tensors guessed {"asked": "time of a column over that of a row", "said": 6, \
"measured": 8.1, "unit": "times"}
2026-01-03 flops.cache_bytes tried
2026-01-05 checkpointing.days_with_failures right
"""


class Clock(date):
    """A calendar whose today the test sets."""

    now = date(2026, 1, 1)

    @classmethod
    def today(cls):
        return cls.now


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(record, "date", Clock)
    monkeypatch.setattr(Clock, "now", date(2026, 1, 1))
    return Clock


def answer(folder: Path, name: str, *, is_right: bool) -> None:
    """Answer the question as the page does: right, or ten times too much."""
    drawn = QUESTIONS[name].draw(1)
    said = drawn.asked.answer if is_right else 10 * drawn.asked.answer
    lines.note_recalled(
        folder, drawn.question.chapter, drawn.guess(said), drawn.seed, is_right=is_right
    )


# What comes on each of forty days, if every question is answered on its day. The reader misses
# "floats.stops" at its first return, and "flops.cache" at its first two.
COMES = {
    # Met on 1 January: a guess that was far off comes before a turn that was right.
    date(2026, 1, 2): ["floats.stops", "floats.matrices"],
    # The miss returns on the next day, and the column's guess was close.
    date(2026, 1, 3): ["floats.stops", "tensors.lines"],
    # A turn that is not right yet has missed.
    date(2026, 1, 4): ["flops.one_user", "flops.cache"],
    date(2026, 1, 5): ["flops.cache"],
    # Four days after the first right answer; the turn of 5 January is new.
    date(2026, 1, 6): ["flops.cache", "floats.matrices", "checkpointing.fails_every"],
    date(2026, 1, 7): ["floats.stops", "tensors.lines"],
    date(2026, 1, 8): ["flops.one_user"],
    date(2026, 1, 10): ["flops.cache", "checkpointing.fails_every"],
    # Twelve days after the second.
    date(2026, 1, 18): ["floats.matrices"],
    date(2026, 1, 19): ["floats.stops", "tensors.lines"],
    date(2026, 1, 20): ["flops.one_user"],
    date(2026, 1, 22): ["flops.cache", "checkpointing.fails_every"],
    # Thirty days after the third would be from 17 February on.
}
MISSES = {"floats.stops": 1, "flops.cache": 2}


def test_on_each_of_forty_following_days_exactly_these_questions_come(tmp_path, clock):
    (tmp_path / record.RECORD).write_text(MADE_BY_HAND)
    misses_left = Counter(MISSES)
    came = {}
    for days in range(1, 41):
        clock.now = date(2026, 1, 1) + timedelta(days)
        asked = [question.name for question in due.three(tmp_path, COURSE, clock.now)]
        for name in asked:
            answer(tmp_path, name, is_right=misses_left[name] <= 0)
            misses_left[name] -= 1
        assert due.three(tmp_path, COURSE, clock.now) == []  # all of the day's are answered
        if asked:
            came[clock.now] = asked
    assert came == COMES
    assert due.next_day(tmp_path, COURSE, clock.now) == date(2026, 2, 17)


def test_after_ninety_days_a_question_keeps_returning_every_ninety(tmp_path, clock):
    (tmp_path / record.RECORD).write_text("2026-01-01 tensors.steps_that_fit right\n")
    days = []
    for day in range(400):
        clock.now = date(2026, 1, 1) + timedelta(day)
        for question in due.three(tmp_path, COURSE, clock.now):
            answer(tmp_path, question.name, is_right=True)
            days.append(day)
    assert [later - day for day, later in itertools.pairwise([0, *days])] == [
        1,
        4,
        12,
        30,
        90,
        90,
        90,
    ]


def test_three_come_at_a_time_from_at_least_two_notebooks_and_stay_when_one_is_answered(
    tmp_path, clock
):
    """Five questions of notebook 1 have missed, and one of notebook 2 was right."""
    checks = ("floats.tensor_bytes", "floats.by_formula", "floats.ends")
    lines = [f"2026-01-01 {check} tried" for check in checks]
    lines.append("2026-01-01 tensors.element right")
    (tmp_path / record.RECORD).write_text("\n".join(lines) + "\n")
    clock.now = date(2026, 1, 2)
    assert len(due.due(tmp_path, COURSE, clock.now)) == 5
    left = [question.name for question in due.three(tmp_path, COURSE, clock.now)]
    assert left == ["floats.matrices", "floats.largest", "tensors.position"]
    for _ in range(3):
        answer(tmp_path, left.pop(0), is_right=True)
        assert [q.name for q in due.three(tmp_path, COURSE, clock.now)] == left
    # Two more are due, but three were asked today.
    assert len(due.due(tmp_path, COURSE, clock.now)) == 2
    clock.now = date(2026, 1, 3)
    came = [question.name for question in due.three(tmp_path, COURSE, clock.now)]
    assert came == ["floats.gap", "floats.pattern"]


def test_every_question_can_come_because_its_section_has_a_guess_or_a_turn():
    sections = [section_of(question, COURSE) for question in QUESTIONS.values()]
    assert all(section.names and section.title for section in sections)


def test_with_all_of_the_course_in_the_record_every_question_comes_within_three_weeks(
    tmp_path, clock
):
    names = sorted(set().union(*(section_of(q, COURSE).names for q in QUESTIONS.values())))
    lines = [f"2026-01-01 {chapter}.{name} right" for chapter, name in names if name.isidentifier()]
    guessed = '{"asked": "%s", "said": 1, "measured": 1}'
    lines += [
        f"2026-01-01 {chapter} guessed {guessed % name}"
        for chapter, name in names
        if not name.isidentifier()
    ]
    (tmp_path / record.RECORD).write_text("\n".join(lines))
    come = set()
    for days in range(1, 60):
        clock.now = date(2026, 1, 1) + timedelta(days)
        asked = due.three(tmp_path, COURSE, clock.now)
        assert len(asked) == 3
        assert len({question.chapter for question in asked}) >= 2
        for question in asked:
            answer(tmp_path, question.name, is_right=True)
            come.add(question.name)
        if len(come) == len(QUESTIONS):
            break
    assert len(come) == len(QUESTIONS)
    assert days <= 28


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "\x00\xff no record at all",
        "2026-02-31 floats.tensor_bytes right",
        '2026-01-01 floats guessed {"asked": ["a list"], "said": 1, "measured": 2}',
        "2026-01-01 floats recalled {",
        "2026-01-01 floats recalled []",
        '2026-01-01 floats recalled {"asked": "floats.stops", "said": 8, "measured": 8}',
        '2026-01-01 floats recalled {"asked": "floats.gone", "said": 8, "measured": 8, "seed": 1, '
        '"right": true}',
        '2026-01-01 floats recalled {"asked": 7, "said": 8, "measured": 8, "seed": 1, '
        '"right": true}',
        '2026-02-31 floats recalled {"asked": "floats.stops", "said": 8, "measured": 8, "seed": 1, '
        '"right": true}',
        '2026-01-01 floats recalled {"asked": "floats.stops", "said": 8, "measured": 8, "seed": '
        '"1", "right": true}',
    ],
)
def test_a_damaged_line_is_ignored(damaged, tmp_path):
    (tmp_path / record.RECORD).write_text(f"{damaged}\n2026-01-01 tensors.steps_that_fit right\n")
    asked = due.three(tmp_path, COURSE, date(2026, 1, 2))
    assert [question.name for question in asked] == ["tensors.steps"]


def test_without_a_record_nothing_comes(tmp_path):
    assert due.three(tmp_path, COURSE, date(2026, 1, 2)) == []
    assert due.next_day(tmp_path, COURSE, date(2026, 1, 2)) is None


def test_an_answer_is_a_line_of_the_record_which_what_read_it_before_leaves_alone(tmp_path, clock):
    answer(tmp_path, "tensors.kept", is_right=False)
    asked = QUESTIONS["tensors.kept"].draw(1).asked
    (line,) = (tmp_path / record.RECORD).read_text().splitlines()
    assert line == (
        f'2026-01-01 tensors recalled {{"asked": "tensors.kept", "said": {10 * asked.answer}, '
        f'"measured": {asked.answer}, "kind": "calculated", "unit": "bytes", "seed": 1, '
        '"right": false}'
    )
    (one,) = lines.recalled(tmp_path)
    assert one == lines.Recalled(
        date(2026, 1, 1),
        Guess("tensors.kept", 10 * asked.answer, asked.answer, kind="calculated", unit="bytes"),
        is_right=False,
        seed=1,
    )
    assert record.guesses(tmp_path) == {}
    assert record.done(tmp_path) == {}
    assert record.said_so_far(tmp_path, "tensors") == {}


# More than the three of a day.


def answer_an_extra(folder: Path, name: str, *, is_right: bool) -> None:
    drawn = QUESTIONS[name].draw(1)
    said = drawn.asked.answer if is_right else 10 * drawn.asked.answer
    chapter = drawn.question.chapter
    lines.note_recalled(folder, chapter, drawn.guess(said), 1, is_right=is_right, is_extra=True)


def test_more_are_those_that_come_due_first_and_not_those_answered_today(tmp_path, clock):
    (tmp_path / record.RECORD).write_text(MADE_BY_HAND)
    clock.now = date(2026, 1, 2)
    met = [(s.question.name, s.due.day) for s in due.more(tmp_path, COURSE, clock.now)]
    assert met == [
        ("floats.stops", 2),
        ("floats.matrices", 2),
        ("tensors.lines", 3),
        ("flops.one_user", 4),
        ("flops.cache", 4),
        ("checkpointing.fails_every", 6),
    ]
    answer(tmp_path, "floats.stops", is_right=True)
    answer_an_extra(tmp_path, "flops.cache", is_right=False)
    names = [one.question.name for one in due.more(tmp_path, COURSE, clock.now)]
    assert names == [
        "floats.matrices",
        "tensors.lines",
        "flops.one_user",
        "checkpointing.fails_every",
    ]


def test_an_extra_that_is_right_changes_nothing_and_a_miss_returns_the_next_day(tmp_path, clock):
    (tmp_path / record.RECORD).write_text("2026-01-01 tensors.steps_that_fit right\n")
    clock.now = date(2026, 1, 2)
    answer(tmp_path, "tensors.steps", is_right=True)  # due again on the 6th
    clock.now = date(2026, 1, 3)
    answer_an_extra(tmp_path, "tensors.steps", is_right=True)
    assert due.next_day(tmp_path, COURSE, clock.now) == date(2026, 1, 6)
    clock.now = date(2026, 1, 4)
    answer_an_extra(tmp_path, "tensors.steps", is_right=False)
    assert due.next_day(tmp_path, COURSE, clock.now) == date(2026, 1, 5)
    clock.now = date(2026, 1, 5)
    (question,) = due.three(tmp_path, COURSE, clock.now)
    answer(tmp_path, question.name, is_right=True)
    # The row of right answers begins anew, as after every miss: four days.
    assert due.next_day(tmp_path, COURSE, clock.now) == date(2026, 1, 9)


def test_an_extra_of_a_question_that_never_came_leaves_its_first_day(tmp_path, clock):
    (tmp_path / record.RECORD).write_text("2026-01-01 tensors.steps_that_fit right\n")
    answer_an_extra(tmp_path, "tensors.steps", is_right=True)
    clock.now = date(2026, 1, 2)
    assert [q.name for q in due.three(tmp_path, COURSE, clock.now)] == ["tensors.steps"]


def test_extras_of_a_day_take_no_place_of_its_three(tmp_path, clock):
    (tmp_path / record.RECORD).write_text(MADE_BY_HAND)
    clock.now = date(2026, 1, 2)
    for name in ("flops.cache", "flops.one_user", "checkpointing.fails_every"):
        answer_an_extra(tmp_path, name, is_right=True)
    names = [question.name for question in due.three(tmp_path, COURSE, clock.now)]
    assert names == ["floats.stops", "floats.matrices"]


def test_an_edited_word_for_an_extra_is_ignored(tmp_path, clock):
    answer_an_extra(tmp_path, "tensors.steps", is_right=True)
    path = tmp_path / record.RECORD
    path.write_text(path.read_text().replace('"extra": true', '"extra": "yes"'))
    assert lines.recalled(tmp_path) == []
