"""A wrong sum is told in parts: the part that explains the difference, and never a wrong one."""

import itertools
import re
from dataclasses import replace

import pytest

from course_utils.chapters.small_models import LLAMA
from course_utils.core.accountant import Model
from course_utils.engine.judging import function
from course_utils.engine.judging.agreement import near
from course_utils.engine.judging.parts import Told
from course_utils.engine.judging.sentences import NO_NUMBER
from tests.engine.test_checks import LISTING, each

IN_PARTS = [e for e in LISTING if getattr(e.judge, "asked", {}).get("parts")]


def sizes(size, other=0):
    return {"walls": 10 * size, "roof": 3 * size, "door": 6, "chimney": other}


@function([(1, 0), (2, 0), (3, 7)], parts=sizes, unit="bricks")
def house(size, other):
    """The check of a house's bricks."""
    yield sum(sizes(size, other).values()), "As counted."
    yield 3 * size, "That is the roof."


def told(answer):
    """What stands behind the name of the function in the verdict on this answer."""
    _, _, words = house(answer).words.partition("your function gave ")
    return words


WITHOUT_ROOF = "16 instead of 19 bricks. Walls ✓, door ✓, roof left out: 3 short."


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda size, other: 10 * size + 6 + other, WITHOUT_ROOF),
        (lambda size, other: 10.0 * size + 6 + other, WITHOUT_ROOF),
        (
            lambda size, other: 13 * size + 12 + other,
            "25 instead of 19 bricks. Walls ✓, roof ✓, door counted twice: 6 too many.",
        ),
        (
            lambda size, other: 10 * size,
            "10 instead of 19 bricks. Walls ✓, roof and door left out: 9 short.",
        ),
        (
            lambda size, other: 6 * size + 6 + other,
            "12 instead of 19 bricks. Roof ✓, door ✓, walls as large as roof: 7 short.",
        ),
        (
            lambda size, other: 8 * size + 6 + other,
            "14 instead of 19 bricks. Roof ✓, door ✓, walls only half counted: 5 short.",
        ),
        (
            lambda size, other: 13 * size + 6,  # right as long as there is no chimney
            "45 instead of 52 bricks. Walls ✓, roof ✓, door ✓, chimney left out: 7 short.",
        ),
        (
            lambda size, other: 13 * size + 105 + other,
            "118 instead of 19 bricks, 99 too many. The difference does not show which part is "
            "wrong, and it may be more than one.",
        ),
        (
            lambda size, other: 5 * size + 3 * size + 12 + other,
            "20 instead of 19 bricks. Roof ✓, walls only half counted, door counted twice: 1 too "
            "many.",
        ),
        (
            # The roof in place of the walls, counted twice, or the walls wrong and the roof twice.
            lambda size, other: 6 * size + 3 * size + 6 + other,
            "15 instead of 19 bricks, 4 short. The difference does not show which part is wrong, "
            "and it may be more than one.",
        ),
        (
            # No case but the last has a chimney.
            lambda size, other: 5 * size + 3 * size + 6,
            "14 instead of 19 bricks. Roof ✓, door ✓, walls only half counted: 5 short.",
        ),
        (
            lambda size, other: 13 * size + 6 + other + (1 if size == 1 else 0),
            # Walls half and door twice, but in this case alone.
            "20 instead of 19 bricks, 1 too many. The difference does not show which part is "
            "wrong, and it may be more than one.",
        ),
        (
            lambda size, other: 13 * size + (6 if size < 3 else 0) + other,
            # The door has the same size in the cases before, in which the sum was right.
            "46 instead of 52 bricks. Door ✓, walls or roof or chimney not yet right: 6 short.",
        ),
        (
            lambda size, other: 3 * size,
            "3 instead of 19 bricks. Roof ✓, walls and door left out: 16 short. That is the roof.",
        ),
        (
            lambda size, other: float("nan"),
            f"nan; expected 19 bricks. {NO_NUMBER}",
        ),
        (lambda size, other: "17", "'17'; expected 19 bricks. One plain number is wanted."),
    ],
)
def test_the_part_that_explains_the_difference_in_every_case_is_named(answer, words):
    assert told(answer) == words


def cases_of(check):
    cases = check.asked["cases"]
    return itertools.islice(cases() if callable(cases) else cases, 20)


def parts_that_add_up(check, case):
    """The parts of the right answer in that case; it is an error if they do not add up to it."""
    right, _ = next(check.__wrapped__(*case))
    parts = check.asked["parts"](*case)
    assert near(sum(parts.values()), right, check.asked["tolerance"] or 1e-12)
    return parts


# tests/engine/test_drawn_anew.py has the same of drawn cases, which take long to draw.
@each(IN_PARTS)
def test_the_parts_add_up_to_the_right_answer_and_a_part_left_out_is_named(exercise):
    check = exercise.judge
    for case in cases_of(check):
        parts = parts_that_add_up(check, case)
    for name in parts:
        said = check(lambda *case, name=name: without(check, name, case)).words
        left_out = re.search(r"([^,]*) left out: ", said)
        assert left_out, said
        assert name.lower() in left_out[1].lower()


def without(check, name, case):
    parts = check.asked["parts"](*case)
    return sum(parts.values()) - parts[name]


def test_every_sum_of_the_accountant_is_judged_in_parts():
    names = {exercise.judge.__name__ for exercise in IN_PARTS}
    assert names >= {"parameters", "forward_flops", "layer_bytes", "step_bytes", "step_flops"}
    for exercise in LISTING:
        first = next(iter(exercise.judge.__wrapped__.__annotations__.values()), None)
        if first is Model:
            said = exercise.judge(lambda *case: object()).words
            assert said.startswith("For "), said
            assert "Model(" not in said


def test_a_layer_in_place_of_all_is_found_beside_another_slip_with_the_same_part():
    def rooms(m, doors):
        return {"walls": m.layers * m.width, "doors": doors, "roof": m.vocabulary}

    @function(
        [(replace(LLAMA, layers=5), 7), (replace(LLAMA, layers=9), 11)], parts=rooms, unit="bricks"
    )
    def storeys(m, doors):
        """The check of a house of several storeys."""
        yield sum(rooms(m, doors).values()), "As counted."

    said = storeys(lambda m, doors: m.width / 2 + doors + m.vocabulary).words
    assert said.endswith(
        "Doors ✓, roof ✓, walls of one layer alone, and only half counted: 432 short."
    )


@each([e for e in IN_PARTS if not isinstance(e.judge.asked["parts"], Told)])
def test_of_two_slips_no_right_part_is_accused(exercise):
    """Two parts are wrong by shares that no slip has, so that nothing can be said of either."""
    check = exercise.judge
    (_, *_, case) = cases_of(check)
    names = list(check.asked["parts"](*case))
    for one, other in itertools.combinations(names, 2):
        shares = {one: 0.377, other: 1.791}

        def answer(*case, shares=shares):
            parts = check.asked["parts"](*case)
            return sum(shares.get(name, 1) * size for name, size in parts.items())

        said = check(answer).words
        assert " ✓" not in said, said
