"""An exercise is a generator: it yields the right answer first, then the tempting wrong ones.

    @value(wanted="the days", tolerance=0.01)
    def days() -> Answers:
        '''The days that GPT-3's training takes.'''
        right = 6 * parameters * tokens / flop_per_sec / 86_400
        yield right, "6PN FLOPs, and 86,400 seconds a day."
        yield right / 3, "That is the forward pass alone."

Each answer comes with the sentence that the reader is told about it. The decorator makes a check
of the exercise: `days(answer)` is a verdict. Where the reader writes a function, the exercise takes
the same arguments and yields the answers for them. Where many answers are right, it takes the
reader's function and raises what is wrong with it.
"""

import copy
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import CodeType

from course_utils.core.say import Number
from course_utils.engine.judging import sentences
from course_utils.engine.judging.agreement import agree, same
from course_utils.engine.judging.limits import Clock, TooLongError
from course_utils.engine.judging.verdict import NOT_ATTEMPTED, NotYetError, Verdict

Answers = Iterator[tuple[object, str]]
Check = Callable[[object], Verdict]
Cases = Iterable[tuple] | Callable[[], Iterable[tuple]]
Outcome = tuple[tuple, object, BaseException | None]  # the case, what came, the error or None


class NotAttemptedError(Exception):
    """The reader's function still returns `...`, or nothing in it has been changed.

    In the second case there is no `...` to fill in, and `words` say what to do instead.
    """

    def __init__(self, words: str = NOT_ATTEMPTED.words) -> None:
        super().__init__(words)


def _unchanged(came: object, *_: object) -> object:
    return came


def value(
    *,
    wanted: str,
    tolerance: Number = 0.0,
    read: Callable[[object], object] = _unchanged,
) -> Callable[[Callable[[], Answers]], Check]:
    """The answer is one value, exact or within the relative tolerance.

    `wanted` names the quantity and its unit; it is said if the answer matches none of the listed
    ones. If an answer may be written in several ways, `read` brings it into one form.
    """

    def exercise(answers: Callable[[], Answers]) -> Check:
        def judge(answer: object) -> str:
            answer = read(answer)
            expected, because = next(answers())
            if agree(answer, expected, tolerance):
                return because
            no_case = ()
            advice = _advice(answers, [(no_case, answer, None)], tolerance)
            if advice:
                raise NotYetError(f"{sentences.shown(answer)} is not it. {advice}", advice)
            raise NotYetError(f"{sentences.off(answer, expected)} Wanted: {wanted}.")

        def ours() -> object:
            right, _ = next(answers())
            return right

        def listed() -> list[tuple[object, str]]:
            return list(answers())

        check = _check(answers, judge, ours)
        check.listed = listed
        return check

    return exercise


def function(
    cases: Cases,
    *,
    tolerance: Number = 0.0,
    read: Callable[..., object] = _unchanged,
    without: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., Answers]], Check]:
    """The answer is a function, called with one case after the other.

    `tolerance` is relative to each number; in a tensor, to its largest number. Where cases are
    expensive, `cases` is a function that makes them. `read` takes a result and its case, and brings
    the result into one form. `without` has the names that not even a right answer may use, each
    with the words that say why.
    """
    forbidden = without or {}

    def exercise(answers: Callable[..., Answers]) -> Check:
        def judge(answer: object) -> str:
            all_cases = cases() if callable(cases) else cases
            because = _try_cases(answer, answers, all_cases, tolerance=tolerance, read=read)
            for name in names_used(answer):
                if name in forbidden:
                    raise NotYetError(forbidden[name], forbidden[name])
            return because

        def our_function(*case: object) -> object:
            right, _ = next(answers(*case))
            return right

        check = _check(answers, judge, lambda: our_function)
        check.asked = {
            "cases": cases,
            "tolerance": tolerance,
            "read": read,
            "without": without,
        }
        return check

    return exercise


def _try_cases(
    answer: object,
    answers: Callable[..., Answers],
    cases: Iterable[tuple],
    *,
    tolerance: Number,
    read: Callable[..., object],
) -> str:
    """Why the reader's function is right; a NotYetError on the first case in which it is not."""
    because = ""
    outcomes = []
    for case in cases:
        came, error = call(_callable(answer), *case)
        came = read(came, *case)
        expected, because = next(answers(*case))
        outcomes.append((case, came, error))
        if error or not agree(came, expected, tolerance):
            advice = _advice(answers, outcomes, tolerance)
            raise _not_yet(answer, outcomes[-1], expected, tolerance, advice)
    return because


def _not_yet(
    answer: object, outcome: Outcome, expected: object, tolerance: Number, listed: str
) -> NotYetError:
    """The error on a function whose outcome in one case is not as expected.

    `listed` is the advice on a listed mistake; it is empty if the mistake is none of those.
    """
    case, came, error = outcome
    if error:
        said = sentences.stopped(answer, error)
        advice = listed or sentences.advice_on_calling(answer, case)
        brief = sentences.stopped_briefly(error)
    else:
        said = sentences.gave(came, expected, tolerance)
        advice = listed or sentences.advice_on_kind(came, expected)
        brief = "In one of the cases, what came is not what was expected."
    words = f"{sentences.called(answer, case)} {said} {advice}".strip()
    return NotYetError(words, listed, without_case=advice or brief)


def objection(because: str, *, ours: object = ...) -> Callable[[Callable[..., None]], Check]:
    """Many answers are right, so the exercise looks for what is wrong with the reader's function.

    It raises a NotYetError that says so. `ours` is a right answer, which what follows the exercise
    uses.
    """

    def exercise(object_to: Callable[..., None]) -> Check:
        def judge(answer: object) -> str:
            object_to(_callable(answer))
            return because

        return _check(object_to, judge, lambda: ours)

    return exercise


def _check(
    exercise: Callable[..., object], judge: Callable[[object], str], ours: Callable[[], object]
) -> Check:
    """The check: it has the exercise's name and docstring."""

    def check(answer: object) -> Verdict:
        verdict = _verdict(judge, answer)
        return replace(verdict, exercise=exercise.__name__, answer=answer, ours=ours, check=check)

    # update_wrapper makes `exercise` the check's __wrapped__, whose signature would be shown.
    check.__signature__ = inspect.signature(check)
    copied = ("__module__", "__name__", "__qualname__", "__doc__")
    return functools.update_wrapper(check, exercise, assigned=copied, updated=())


def _verdict(judge: Callable[[object], str], answer: object) -> Verdict:
    """The verdict that a judge comes to, who returns why the answer is right, or raises."""
    if answer is ...:
        return NOT_ATTEMPTED
    try:
        return Verdict("right", judge(answer))
    except NotAttemptedError as untouched:
        return replace(NOT_ATTEMPTED, words=str(untouched))
    except NotYetError as error:
        words, advice = error.args
        return Verdict(
            "not yet", words, looks_like=advice or words, without_case=error.without_case
        )


def _callable(answer: object) -> Callable[..., object]:
    if not callable(answer):
        raise NotYetError(f"A function is wanted here, not {sentences.shown(answer)}.")
    return answer


def names_used(answer: Callable[..., object]) -> set[str]:
    """The names in the function's code.

    A function that lies in another process has been asked for them there: `names_told` has them.
    """
    told = getattr(answer, "names_told", None)
    if told is not None:
        return told
    code = getattr(inspect.unwrap(answer), "__code__", None)
    return _names_in(code)


def _names_in(code: CodeType | None) -> set[str]:
    """Every attribute and global name that the code uses, and that functions inside it use."""
    if code is None:
        return set()
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_in(constant)
    return names


def _advice(answers: Callable[..., Answers], outcomes: list[Outcome], tolerance: Number) -> str:
    """The advice on the first listed mistake that explains the outcome of every case so far.

    If none does, an empty string. A mistake is known by its advice: where two ways lead to one
    mistake, the exercise lists both with the same advice.
    """
    explaining = None
    for case, came, error in outcomes:
        _, *mistakes = answers(*case)
        fitting = [advice for wrong, advice in mistakes if _is_alike(wrong, came, error, tolerance)]
        if explaining is None:
            explaining = fitting
        else:
            explaining = [advice for advice in explaining if advice in fitting]
        if not explaining:
            return ""
    return explaining[0]


def _is_alike(wrong: object, came: object, error: BaseException | None, tolerance: Number) -> bool:
    """Whether a mistake's outcome, a value or an error, is what the reader's function came to."""
    if error or isinstance(wrong, Exception):
        return type(wrong) is type(error) and sentences.said_by(wrong) == sentences.said_by(error)
    return agree(came, wrong, tolerance)


def call(
    function: Callable[..., object], *arguments: object
) -> tuple[object, BaseException | None]:
    """What the function returned, or None and the error that it stopped with.

    It is an InPlaceError if the function has changed what it was given.
    """
    are_immutable = all(isinstance(x, int | float | str) for x in arguments)
    given = arguments if are_immutable else copy.deepcopy(arguments)
    try:
        with Clock():
            came = function(*given)
    except (Exception, SystemExit, KeyboardInterrupt, TooLongError) as error:
        return None, error
    if came is ...:
        raise NotAttemptedError
    if are_immutable or same(given, arguments):
        return came, None
    return came, sentences.InPlaceError()


def outcome(function: Callable[[], object]) -> object:
    """What the function returns, or the error that it stops with: some mistakes are errors."""
    came, error = call(function)
    return error or came
