"""An exercise is a generator: it yields the right answer first, then the tempting wrong ones.

    @value(wanted="the days", tolerance=0.01)
    def days() -> Answers:
        '''The days that GPT-3's training takes.'''
        right = 6 * parameters * tokens / flop_per_sec / 86_400
        yield right, "6PN FLOPs, and 86,400 seconds a day."
        yield right / 3, "That is the forward pass alone."

Each answer comes with a sentence: why it is right, or the advice on the mistake. The decorator
makes a check of the exercise: `days(answer)` is a verdict. Where the reader writes a function, the
exercise takes the arguments of that function and yields the answers for them. Where many answers
are right, the exercise takes the reader's function, and raises a NotYetError if it is wrong.
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
Outcome = tuple[tuple, object, BaseException | None]  # the case, the result, the error or None


class NotAttemptedError(Exception):
    """The reader's function still returns `...`, or nothing in it has been changed.

    A function that was handed out complete, to be mended, has no `...` to fill in. For such a
    function, `words` say what to do.
    """

    def __init__(self, words: str = NOT_ATTEMPTED.words) -> None:
        super().__init__(words)


def _unchanged(came: object, *_: object) -> object:
    """The `read` of an exercise whose answers come in one form: returns the answer as it is."""
    return came


def value(
    *,
    wanted: str,
    tolerance: Number = 0.0,
    read: Callable[[object], object] = _unchanged,
) -> Callable[[Callable[[], Answers]], Check]:
    """A decorator for an exercise whose answer is one value, exact or within the tolerance.

    The tolerance is relative. `wanted` names the quantity and its unit; the verdict quotes it if
    the answer matches none of the listed ones. If an answer may be written in several ways, `read`
    brings it into one form.
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
            raise NotYetError(f"{sentences.wrong_value(answer, expected)} Wanted: {wanted}.")

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
    """A decorator for an exercise whose answer is a function, called with one case after the other.

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
        # With these arguments, `drawing` makes the check again for other cases.
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
    """Call the reader's function with each case; returns why it is right.

    Raises NotYetError at the first case in which its result is not the expected one.
    """
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
    """The NotYetError for a function whose outcome in one case is not as expected.

    `listed` is the advice on a listed mistake, or empty if the exercise does not list it.
    """
    case, came, error = outcome
    if error:
        sentence = sentences.stopped(answer, error)
        advice = listed or sentences.advice_on_calling(answer, case)
        brief = sentences.stopped_briefly(error)
    else:
        sentence = sentences.gave(came, expected, tolerance)
        advice = listed or sentences.advice_on_kind(came, expected)
        brief = "In one of the cases, what came is not what was expected."
    words = f"{sentences.called(answer, case)} {sentence} {advice}".strip()
    return NotYetError(words, listed, without_case=advice or brief)


def objection(because: str, *, ours: object = ...) -> Callable[[Callable[..., None]], Check]:
    """A decorator for an exercise with many right answers: it objects to the wrong ones.

    The exercise takes the reader's function, and raises a NotYetError on what is wrong with it.
    `because` says why an answer without objection is right. `ours` is a right answer, for the cells
    that go on with it.
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
    """The check that judges an answer by `judge`. It has the exercise's name and docstring."""

    def check(answer: object) -> Verdict:
        verdict = _verdict(judge, answer)
        return replace(verdict, exercise=exercise.__name__, answer=answer, ours=ours, check=check)

    # update_wrapper makes `exercise` the check's __wrapped__, and help() would show its signature.
    check.__signature__ = inspect.signature(check)
    copied = ("__module__", "__name__", "__qualname__", "__doc__")
    return functools.update_wrapper(check, exercise, assigned=copied, updated=())


def _verdict(judge: Callable[[object], str], answer: object) -> Verdict:
    """The verdict on the answer. `judge` returns why it is right, or raises what is wrong."""
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
    """The answer itself; NotYetError if it is no function."""
    if not callable(answer):
        raise NotYetError(f"A function is wanted here, not {sentences.shown(answer)}.")
    return answer


def names_used(answer: Callable[..., object]) -> set[str]:
    """The names in the function's code.

    While grading, the function is in another process, and `answer` only stands in for it. That
    process has sent the names, and `names_told` has them.
    """
    names = getattr(answer, "names_told", None)
    if names is not None:
        return names
    code = getattr(inspect.unwrap(answer), "__code__", None)
    return _names_in(code)


def _names_in(code: CodeType | None) -> set[str]:
    """Every attribute and global name that the code and the functions inside it use."""
    if code is None:
        return set()
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_in(constant)
    return names


def _advice(answers: Callable[..., Answers], outcomes: list[Outcome], tolerance: Number) -> str:
    """The advice on the first listed mistake that explains the outcome of every case so far.

    It is empty if none does. Two listed answers with the same advice are one mistake, since two
    ways may lead to it: one answer may explain the first case, and the other the second.
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
    """Whether a listed mistake, a value or an error, is the outcome of the reader's function."""
    if error or isinstance(wrong, Exception):
        return type(wrong) is type(error) and sentences.said_by(wrong) == sentences.said_by(error)
    return agree(came, wrong, tolerance)


def call(
    function: Callable[..., object], *arguments: object
) -> tuple[object, BaseException | None]:
    """Call the function; returns its result and None, or None and the error that stopped it.

    If the function has changed one of its arguments, the error is an InPlaceError, beside the
    result. NotAttemptedError is raised if the function returns `...`.
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
    """What the function returns, or the error that stops it, since a listed mistake may be one."""
    came, error = call(function)
    return error or came
