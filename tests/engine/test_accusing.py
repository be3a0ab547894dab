"""A reader is told of a mistake only if it explains their answer in every case."""

import itertools
import time

import pytest

from course_utils.engine.judging import accusing, function, limits

FORGOTTEN = "The corners are counted twice."


@function([(2, 2), (3, 3), (4, 5), (6, 2)], unit="posts")
def posts(length, width):
    """The check of a reader's posts(length, width): those of a fence, one metre apart."""
    yield 2 * (length + width), "As walked around."
    yield length * width + 8, FORGOTTEN  # 12 in the first case
    yield 3 * (length + width), "A fence has two sides of each length."  # 12 as well
    square = 2 * (length + width) if length != width else 0
    yield square, "A square has a fence, too."


def told(answer):
    return posts(answer).words.partition("posts.")[2].strip()


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (lambda length, width: length * width + 8, FORGOTTEN),
        # Of two mistakes with one number in the first case, the one that explains the others.
        (lambda length, width: 3 * (length + width), "A fence has two sides of each length."),
        (lambda length, width: 12, ""),
        (lambda length, width: 12 if length == 2 else 2 * (length + width), ""),
        # Where the mistake is right, a case says nothing, whatever the answer is there.
        (lambda length, width: 0, "A square has a fence, too."),
    ],
)
def test_a_mistake_is_believed_only_if_it_explains_every_case(answer, advice):
    assert told(answer) == advice


def test_a_later_case_in_which_the_answer_stops_says_nothing():
    def stops_later(length, width):
        if length > 3:
            raise ValueError("too long")
        return length * width + 8

    def gives_up_later(length, width):
        return length * width + 8 if length == 2 else ...

    def leaves_later(length, width):
        if length > 2:
            raise SystemExit
        return length * width + 8

    for answer in (stops_later, gives_up_later, leaves_later):
        assert told(answer) == FORGOTTEN


def test_an_answer_that_does_not_end_later_is_ended_within_the_time_of_one_answer(monkeypatch):
    monkeypatch.setattr(limits, "LONGEST_S", 0.2)

    def hangs_later(length, width):
        while length > 2:
            pass
        return length * width + 8

    begun_s = time.process_time()
    assert told(hangs_later) == FORGOTTEN
    assert time.process_time() - begun_s < 10


def test_at_most_so_many_further_cases_are_tried_and_none_without_a_suspicion(capsys):
    calls = []

    @function(lambda: ((n, n) for n in itertools.count(2)))
    def endless(a, b):
        """The check of one of endless cases."""
        yield a + b, "Added."
        yield a * b - 5, "Multiplied, less five."

    def listed(a, b):
        calls.append(a)
        print("seen", a)
        return a * b - 5

    assert endless(listed).words.endswith("Multiplied, less five.")
    assert len(calls) == 1 + accusing.MOST_FURTHER
    # What is printed is printed for the case that is told of, as before.
    assert capsys.readouterr().out == "seen 2\n"
    calls.clear()

    def unlisted(a, b):
        calls.append(a)
        return -7

    assert not endless(unlisted).right
    assert len(calls) == 1


def test_an_answer_by_chance_is_told_of_no_mistake():
    numbers = itertools.chain([12], itertools.count(100))
    assert told(lambda length, width: next(numbers)) == ""
