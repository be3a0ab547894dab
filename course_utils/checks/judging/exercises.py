"""An exercise is a function that yields its answers, each with what is said of it: the right one, then the tempting ones.

    @value(wanted="the days", tolerance=0.01)
    def days() -> Answers:
        '''The days that GPT-3's training takes.'''
        right = 6 * parameters * tokens / flop_per_sec / 86_400
        yield right, "6PN FLOPs, and 86,400 seconds a day."
        yield right / 3, "That is the forward pass alone."

The decorator makes a check of it: `days(answer)` is a verdict. Where the reader writes a function, the exercise takes
what theirs takes, and yields the answers for it. Where many answers are right, it says what is wrong with one.
"""

import copy
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from course_utils.checks.judging.agreement import agree, is_number, near, plain, same
from course_utils.checks.judging.sentences import (
    IN_PLACE,
    NO_NUMBER,
    advice_on_calling,
    advice_on_kind,
    argument,
    beginning,
    gave,
    name_of,
    said_by,
    shown,
    stopped,
)
from course_utils.checks.judging.verdict import NOT_ATTEMPTED, Verdict
from course_utils.quantities import Number

Answers = Iterator[tuple[object, str]]
Check = Callable[[object], Verdict]
Cases = Iterable[tuple] | Callable[[], Iterable[tuple]]


class NotAttemptedError(Exception):
    """The reader's function is the stub still."""


def as_it_is(answer: object) -> object:
    """Nothing about it may be written in several ways."""
    return answer


def value(
    *, wanted: str, tolerance: Number = 0.0, read: Callable[[object], object] = as_it_is
) -> Callable[[Callable[[], Answers]], Check]:
    """The answer is one value, exact or within that share of it.

    `wanted` names the quantity and its unit, for those who answer with something else altogether. `read` takes what may
    be written in several ways; what it cannot take raises a ValueError, which is what the reader is told.
    """

    def exercise(answers: Callable[[], Answers]) -> Check:
        def judge(answer: object) -> Verdict:
            try:
                answer = read(answer)
            except ValueError as error:
                return Verdict("not yet", str(error))
            (expected, because), *tempting = answers()
            if agree(answer, expected, tolerance):
                return Verdict("right", because)
            advice = next((advice for wrong, advice in tempting if agree(answer, wrong, tolerance)), "")
            said = (
                f"{shown(answer)} is not it. {advice}"
                if advice
                else f"{_off(answer, expected)} Wanted: {wanted}."
            )
            return Verdict("not yet", said)

        return _check(answers, judge)

    return exercise


def function(
    cases: Cases, *, tolerance: Number = 0.0, read: Callable[[object], object] = as_it_is
) -> Callable[[Callable[..., Answers]], Check]:
    """The answer is a function, called with one case after the other.

    `tolerance` is a share of each number; of a tensor, a share of its largest one. Cases that are dear to make are made
    by a function.
    """

    def exercise(answers: Callable[..., Answers]) -> Check:
        def judge(answer: object) -> Verdict:
            if not callable(answer):
                return no_function(answer)
            return _case_by_case(read(answer), answers, cases() if callable(cases) else cases, tolerance)

        return _check(answers, judge)

    return exercise


def objection(because: str, *, pattern: str = "") -> Callable[[Callable[..., str]], Check]:
    """Many answers are right: the exercise says what is wrong with one, or nothing.

    The answer is a function; or a pattern, where an example of one is given.
    """

    def exercise(object_to: Callable[..., str]) -> Check:
        def judge(answer: object) -> Verdict:
            if not pattern and not callable(answer):
                return no_function(answer)
            if pattern and not isinstance(answer, str):
                return Verdict(
                    "not yet", f"A pattern is a string, like '{pattern}'; {shown(answer)} is none."
                )
            words = object_to(answer)
            return Verdict("not yet", words) if words else Verdict("right", because)

        return _check(object_to, judge)

    return exercise


def _check(exercise: Callable[..., object], judge: Check) -> Check:
    """The check of that exercise, under its name and with its question."""

    def check(answer: object) -> Verdict:
        try:
            return NOT_ATTEMPTED if answer is ... else judge(answer)
        except NotAttemptedError:
            return NOT_ATTEMPTED

    check.__signature__ = inspect.signature(check)
    return functools.update_wrapper(
        check, exercise, ("__module__", "__name__", "__qualname__", "__doc__"), ()
    )


def no_function(answer: object) -> Verdict:
    """What is said of an answer that cannot be called."""
    return Verdict("not yet", f"A function is wanted here, not {shown(answer)}.")


def _off(answer: object, expected: object) -> str:
    """What is said of a value that nobody thought of."""
    number = plain(answer)
    if not is_number(expected):
        return f"{beginning(answer)} is not it."
    if not is_number(number):
        advice = ": write it without quotes or a unit" if isinstance(number, str) else ""
        return f"{beginning(answer)} is not one plain number{advice}."
    if number != number:  # which holds of NaN alone
        return NO_NUMBER
    if near(number, expected, 0.03):
        return f"{shown(answer)} is close, but something is rounded or left out."
    return f"{shown(answer)} is too {'large' if number > expected else 'small'}."


def _case_by_case(
    answer: Callable[..., object], answers: Callable[..., Answers], cases: Iterable[tuple], tolerance: Number
) -> Verdict:
    """Right if it is right in all cases; otherwise what it did in the first one where it is not, and advice."""
    because, outcomes = "", []
    for case in cases:
        lasting = all(isinstance(x, int | float | str) for x in case)  # nobody can change these in place
        given = case if lasting else copy.deepcopy(case)
        came, error = call(answer, *given)
        expected, because = next(answers(*case))
        if isinstance(expected, bool) and isinstance(plain(came), int) and plain(came) in (0, 1):
            came = bool(came)
        outcomes.append((case, came, error))
        changed = not lasting and not same(given, case)
        if not error and not changed and agree(came, expected, tolerance):
            continue
        advice = _advice(answers, outcomes, tolerance)
        if error:
            said = f"{stopped(answer, error)} {advice or advice_on_calling(answer, case)}"
        elif changed:
            said = IN_PLACE
        else:
            said = f"{gave(came, expected, tolerance)}. {advice or advice_on_kind(came, expected)}"
        return Verdict("not yet", f"{name_of(answer)}({', '.join(map(argument, case))}) {said}".strip())
    return Verdict("right", because)


def _advice(answers: Callable[..., Answers], outcomes: list[tuple], tolerance: Number) -> str:
    """What is said of the first tempting answer that went the same way in all cases until now, if one did."""
    alike = None
    for case, came, error in outcomes:
        tempting = enumerate(islice(answers(*case), 1, None))
        now = {n: advice for n, (wrong, advice) in tempting if _alike(wrong, came, error, tolerance)}
        alike = now if alike is None else {n: advice for n, advice in alike.items() if n in now}
        if not alike:
            return ""
    return next(iter(alike.values()))


def _alike(wrong: object, came: object, error: BaseException | None, tolerance: Number) -> bool:
    """Whether that is what came, or how it stopped."""
    if error or isinstance(wrong, BaseException):
        return type(wrong) is type(error) and said_by(wrong) == said_by(error)
    return agree(wrong, came, tolerance)


def call(function: Callable[..., object], *arguments: object) -> tuple[object, BaseException | None]:
    """What the function returned, or the error that it stopped with."""
    try:
        came = function(*arguments)
    except (Exception, SystemExit) as error:
        return None, error
    if came is ...:
        raise NotAttemptedError
    return came, None


def outcome(function: Callable[[], object]) -> object:
    """What it returns, or the error that it stops with: how some mistakes show."""
    came, error = call(function)
    return error or came
