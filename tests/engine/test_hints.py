"""Hints come one at a time, to those who try: below the advice, never in a verdict's own words."""

import re

import pytest

from course_utils.chapters.einsum import check as einsum_check
from course_utils.engine.judging import function, hints, value
from course_utils.engine.judging.hints import FOLDED
from course_utils.stage.notebook.outline import turns
from tests import NOTEBOOKS
from tests.engine.test_checks import CHECKS, EXERCISES
from tests.helpers.notebooks import read

# Notebooks on whose main path the easy turns have hints, too.
ALL_WITH_HINTS = ("01", "02", "04")


@function([(2,), (3,)], hints=("Think of an area.", "A side times itself."))
def square(side):
    """The check of a square's area."""
    yield side * side, "An area."
    yield 4 * side, "That is the way around."


@value(wanted="the answer", hints=("Half of 84.",))
def answer():
    """The check of a number."""
    yield 42, "Right."


@pytest.fixture(autouse=True)
def new_kernel():
    hints.TRIED.clear()
    hints.ADVISED.clear()


def shown(verdict, capsys):
    verdict._ipython_display_()
    return capsys.readouterr().out


def test_each_new_wrong_answer_gets_the_next_hint_and_the_same_one_the_same(capsys):
    def first(side):
        return side

    def second(side):
        return side + 1

    def third(side):
        return side + 2

    assert "Hint 1 of 2: Think of an area." in shown(square(first), capsys)
    assert "Hint 1 of 2: Think of an area." in shown(square(first), capsys)
    at_second = shown(square(second), capsys)
    assert "Hint 2 of 2: A side times itself." in at_second
    assert at_second.index("Think of an area.") < at_second.rindex("A side times itself.")
    assert FOLDED in shown(square(third), capsys)
    assert "Hint 1 of 2" in shown(square(first), capsys)


def defined(*lines):
    space = {}
    exec("\n".join(["def sum_up(side):", *lines]), space)
    return space["sum_up"]


def test_a_change_inside_an_inner_function_is_a_new_answer_and_a_comment_above_it_is_not(capsys):
    doubled = defined("    return sum(2 * n for n in range(side))")
    commented = defined("    # the numbers below it", "    return sum(2 * n for n in range(side))")
    tripled = defined("    return sum(3 * n for n in range(side))")
    assert "Hint 1 of 2" in shown(square(doubled), capsys)
    assert "Hint 1 of 2" in shown(square(commented), capsys)
    assert "Hint 2 of 2" in shown(square(tripled), capsys)


def test_a_right_answer_begins_the_hints_anew_and_gets_none(capsys):
    assert "Hint 1 of 1: Half of 84." in shown(answer(40), capsys)
    assert FOLDED in shown(answer(41), capsys)
    assert "Hint" not in shown(answer(42), capsys)
    assert "Hint 1 of 1" in shown(answer(41), capsys)
    assert "Hint" not in shown(answer(...), capsys)


def test_advice_on_a_tempting_mistake_comes_without_a_hint_and_no_words_have_one(capsys):
    verdict = square(lambda side: 4 * side)
    assert verdict.words.endswith("That is the way around.")
    assert "Hint" not in shown(verdict, capsys)
    ours = square(lambda side: 5 * side).or_ours
    assert ours(3) == 9
    assert "What follows uses ours. Hint 1 of 2" in capsys.readouterr().out
    for told in (verdict.words, verdict.looks_like, verdict.without_case):
        assert "Hint" not in told


def test_where_the_same_advice_comes_again_the_next_hint_is_due(capsys):
    assert "Hint" not in shown(square(lambda side: 4 * side), capsys)
    assert "Hint" not in shown(square(lambda side: 4 * side), capsys)  # the same answer again
    assert "Hint 1 of 2" in shown(square(lambda side: 2 * side + 2 * side), capsys)
    assert "Hint 2 of 2" in shown(square(lambda side: 3 * side + side), capsys)
    assert FOLDED in shown(square(lambda side: side + 3 * side), capsys)


@function([(2,), (3,)])
def cube(side):
    """The check of a cube's volume, without hints."""
    yield side**3, "A volume."


def test_an_exercise_without_hints_leads_to_the_solution_at_the_third_wrong_answer(capsys):
    assert FOLDED not in shown(cube(lambda side: side), capsys)
    assert FOLDED not in shown(cube(lambda side: side), capsys)
    assert FOLDED not in shown(cube(lambda side: side + 1), capsys)
    assert FOLDED in shown(cube(lambda side: side + 2), capsys)
    assert FOLDED not in shown(cube(lambda side: side), capsys)


def test_a_hint_is_folded_and_the_way_to_the_solution_is_not(capsys):
    folded = square(lambda side: 1)._with_hint()._repr_html_()
    assert '<summary style="cursor: pointer">Hint 1 of 2</summary>Think of an area.' in folded
    square(lambda side: 2)._with_hint()
    last = square(lambda side: 3)._with_hint()._repr_html_()
    assert f'</details><div style="margin-top: 4px">{FOLDED}</div>' in last


def test_hints_that_were_left_folded_stay_within_reach():
    summary = '<summary style="cursor: pointer">'
    first = square(lambda side: 1)._with_hint()._repr_html_()
    second = square(lambda side: 2)._with_hint()._repr_html_()
    last = square(lambda side: 3)._with_hint()._repr_html_()
    assert first.count(summary) == 1
    for shown_later in (second, last):
        assert re.findall(rf"{summary}(.*?)</summary>", shown_later) == [
            "Hint 1 of 2",
            "Hint 2 of 2",
        ]
    again = square(lambda side: 1)._with_hint()._repr_html_()
    assert again == first


@function([(2,), (3,)], hints=("Think of a box.", "Three sides.", "Multiply them."))
def box(side):
    """The check of a cube's volume, with a listed mistake for each answer below."""
    yield side**3, "A volume."
    for number in range(9):
        yield -number, f"Not {number} below zero."


def test_the_way_to_the_solution_never_stands_below_a_hint_that_is_not_the_last():
    verdicts = [box(lambda side: 7 * side)]  # gets a hint, and each of the others only its advice
    verdicts += [box(defined(f"    return {-number}")) for number in range(6)]
    shown = [verdict._with_hint()._repr_html_() for verdict in verdicts]
    assert [html.count("<summary") for html in shown] == [1, 1, 1, 1, 1, 1, 3]
    assert [FOLDED in html for html in shown] == [False] * 6 + [True]
    assert shown[-1].index("Hint 3 of 3") < shown[-1].index(FOLDED)


def test_every_turn_of_a_main_path_that_is_not_easy_has_hints_of_which_none_is_too_long():
    with_hints = 0
    for path in NOTEBOOKS:
        for turn in turns(read(path)):
            check = next(e for e in EXERCISES if e.notebook == path and e.title == turn.title).judge
            own = check(lambda *case: object()).hints
            if path.stem[:2] in ALL_WITH_HINTS and not turn.is_beyond:
                assert own, turn.check
            if turn.difficulty in ("medium", "hard") and not turn.is_beyond:
                assert 2 <= len(own) <= 3, turn.check
                with_hints += 1
            for hint in own:
                assert hint.endswith((".", ")")), hint
                assert len(hint) < 220, hint
    assert with_hints > 15
    assert CHECKS["name_of_f32"](1).hints == ()


def test_patterns_that_are_right_so_far_use_up_no_hint(capsys):
    begun = dict.fromkeys(einsum_check.SIX_PATTERNS, ...)
    in_part = begun | {"sum": "b i d -> b"}
    said = shown(einsum_check.patterns(in_part), capsys)
    assert "Still open: transpose, dot" in said
    assert "Hint" not in said
    assert "Hint 1 of 2" in shown(einsum_check.patterns(in_part | {"dot": "i, j ->"}), capsys)
