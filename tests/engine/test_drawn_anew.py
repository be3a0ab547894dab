"""Cases drawn anew: what is right stays right, each mistake gets the same advice.

An answer that only knows the open cases fails.
"""

import functools
import itertools

import pytest

from course_utils.engine.judging import drawing
from course_utils.engine.judging.agreement import same
from course_utils.engine.judging.drawing import MOST
from course_utils.stage.workspace import copies
from tests.engine.test_checks import LISTING, TRIED, answer, first_case
from tests.engine.test_parts import IN_PARTS, parts_that_add_up
from tests.engine.tried import Tried
from tests.helpers.notebooks import exercises
from tests.helpers.thorough import few

drawn_anew = functools.cache(drawing.drawn_anew)  # four tests look at each
# Exercises without other cases. Their answers are one value, a pattern, a loop, a file's way to the
# disk, or one of only nine names.
WITHOUT_OTHERS = {
    "recipe",
    "patterns",
    "write_whole",
    "mended_a",
    "mended_b",
    "mended_c",
    "mended_d",
    "mended_e",
}
EXERCISES = [e for e in exercises() if not e.judge.__name__.startswith("mended_")]
WITH_CASES = [e for e in EXERCISES if hasattr(e.judge, "asked")]
EACH = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
SEEDS = pytest.mark.parametrize("seed", few([1, 20], [1]))


def cases(check):
    """The cases of a check, or as many of them as are drawn anew."""
    all_cases = check.asked["cases"]
    if callable(all_cases):
        all_cases = all_cases()
    return list(itertools.islice(all_cases, MOST))


def verdict(exercise, seed, text):
    """The drawn check's verdict on the answer that the text defines, as a reader would have it."""
    names = {}
    exec(exercise.imports, names)
    exec(text, names)
    _, _, argument = exercise.call.partition("(")
    handed_in = eval(argument.removesuffix(")"), names)
    return drawn_anew(exercise.judge, seed)(handed_in)


@SEEDS
@EACH
def test_on_drawn_cases_what_is_right_is_right_and_what_is_open_is_not_attempted(exercise, seed):
    assert verdict(exercise, seed, exercise.stub).status == "not attempted yet"
    drawn = drawn_anew(exercise.judge, seed)
    told = [verdict(exercise, seed, exercise.solution)]
    for another_way in TRIED.get(exercise.judge, Tried()).right:
        told.append(drawn(another_way))
    for one in told:
        assert one.right, one
        assert one.exercise == exercise.judge.__name__


@SEEDS
@EACH
def test_on_drawn_cases_each_mistake_gets_the_advice_that_it_gets_on_the_open_ones(exercise, seed):
    drawn = drawn_anew(exercise.judge, seed)
    for mistaken, _ in TRIED.get(exercise.judge, Tried()).wrong:
        assert drawn(mistaken).status == "not yet"
    if exercise in LISTING:
        _, *listed = exercise.judge.__wrapped__(*first_case(exercise.judge))
        for number, (_, advice) in enumerate(listed, 1):
            made = answer(exercise.judge, number)
            told = drawn(made if exercise.wants_function else made())
            assert told.status == "not yet"
            assert told.words.endswith(f" {advice}"), told


@SEEDS
@pytest.mark.parametrize("exercise", WITH_CASES, ids=lambda e: e.name)
def test_who_knows_the_open_cases_is_right_on_them_and_fails_on_drawn_ones(exercise, seed):
    open_ones = []
    for case in cases(exercise.judge):
        right, _ = next(exercise.judge.__wrapped__(*case))
        open_ones.append((case, right))
    in_order = itertools.cycle([right for _, right in open_ones])

    def by_the_order(*asked):
        return next(in_order)

    def by_the_case(*asked):
        for case, right in open_ones:
            if same(case, asked):
                return right
        return None

    if len(open_ones) < MOST:
        assert exercise.judge(by_the_case).right
    drawn = drawn_anew(exercise.judge, seed)
    if exercise.judge.__name__ not in WITHOUT_OTHERS:
        assert drawn(by_the_case).status == "not yet"
        assert drawn(by_the_order).status == "not yet"


@SEEDS
@pytest.mark.parametrize("exercise", IN_PARTS, ids=lambda e: e.name)
def test_on_drawn_cases_the_parts_add_up_to_the_right_answer(exercise, seed):
    drawn_ones = cases(drawn_anew(exercise.judge, seed))
    assert drawn_ones
    for case in drawn_ones:
        parts_that_add_up(exercise.judge, case)


def test_data_that_a_check_draws_itself_are_others_too():
    (check,) = (e.judge for e in exercises() if e.judge.__name__ == "accumulated")
    seen = []

    def noting(model, loss_of, batch, parts):
        seen.append(batch.clone())
        for part in batch.chunk(parts):
            (loss_of(model(part)) / parts).backward()

    assert check(noting).right
    assert drawn_anew(check, 1)(noting).right
    assert not same(seen[0], seen[-1])


@pytest.mark.parametrize("exercise", WITH_CASES[3:9], ids=lambda e: e.name)
def test_a_seed_draws_the_same_cases_each_time_and_another_seed_others(exercise):
    first = cases(drawing.drawn_anew(exercise.judge, 3))
    again = cases(drawing.drawn_anew(exercise.judge, 3))
    others = cases(drawing.drawn_anew(exercise.judge, 4))
    assert same(first, again)
    assert not same(first, others)


def test_what_an_assistant_is_told_lies_beside_the_copies_and_a_readers_edit_of_it_stays(tmp_path):
    mine = tmp_path / "my_notebooks"
    assert list(copies.bring_up_to_date(mine=mine)) == []
    own = mine / "AGENTS.md"
    assert "Do not write the answer to a turn" in own.read_text(encoding="utf-8")
    own.write_text("Mine.", encoding="utf-8")
    assert list(copies.bring_up_to_date(mine=mine)) == []
    assert own.read_text(encoding="utf-8") == "Mine."
