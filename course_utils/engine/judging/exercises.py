"""An exercise is a generator: it yields the right answer first, then the tempting wrong ones, each with a sentence.

    @value(wanted="the days", tolerance=0.01)
    def days() -> Answers:
        '''The days that GPT-3's training takes.'''
        right = 6 * parameters * tokens / flop_per_sec / 86_400
        yield right, "6PN FLOPs, and 86,400 seconds a day."
        yield right / 3, "That is the forward pass alone."

The decorator makes a check of it: `days(answer)` is a verdict. Where the reader writes a function, the exercise takes
the same arguments and yields the answers for them. Where many answers are right, it takes the reader's and raises
what is wrong with it.
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


class NotAttemptedError(Exception):
    """The reader's function still returns `...`, or is as it came in: then `words` say what to do in place of filling it in."""

    def __init__(self, words: str = NOT_ATTEMPTED.words) -> None:
        super().__init__(words)


def value(
    *,
    wanted: str,
    tolerance: Number = 0.0,
    read: Callable[[object], object] = lambda answer: answer,
) -> Callable[[Callable[[], Answers]], Check]:
    """The answer is one value, exact or within that share of it.

    `wanted` names the quantity and its unit, for an answer that matches no listed one. `read` gives an answer that may
    be written in several ways one form.
    """

    def exercise(answers: Callable[[], Answers]) -> Check:
        def judge(answer: object) -> str:
            answer = read(answer)
            expected, because = next(answers())
            if agree(answer, expected, tolerance):
                return because
            if advice := _advice(answers, [((), answer, None)], tolerance):
                raise NotYetError(f"{sentences.shown(answer)} is not it. {advice}", advice)
            raise NotYetError(f"{sentences.off(answer, expected)} Wanted: {wanted}.")

        check = _check(answers, judge, lambda: next(answers())[0])
        check.listed = lambda: list(
            answers()
        )  # the right answer, then the tempting ones, each with its words
        return check

    return exercise


def function(
    cases: Cases,
    *,
    tolerance: Number = 0.0,
    read: Callable[..., object] = lambda came, *case: came,
    without: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., Answers]], Check]:
    """The answer is a function, called with one case after the other.

    `tolerance` is a share of each number; in a tensor, of its largest number. Where cases are expensive, `cases` is a
    function that makes them. `read` takes a result and its case, and gives the result one form. `without` has the
    names that a right answer's code may not use either, each with the words that say why.
    """
    forbidden = without or {}

    def exercise(answers: Callable[..., Answers]) -> Check:
        def judge(answer: object) -> str:
            because, outcomes = "", []
            for case in cases() if callable(cases) else cases:
                came, error = call(_callable(answer), *case)
                came, (expected, because) = read(came, *case), next(answers(*case))
                outcomes.append((case, came, error))
                if error or not agree(came, expected, tolerance):
                    listed = _advice(answers, outcomes, tolerance)
                    raise _not_yet(answer, outcomes[-1], expected, tolerance, listed)
            for name in names_used(answer):
                if name in forbidden:
                    raise NotYetError(forbidden[name], forbidden[name])
            return because

        def ours(*case: object) -> object:
            return next(answers(*case))[0]

        check = _check(answers, judge, lambda: ours)
        check.asked = {"cases": cases, "tolerance": tolerance, "read": read, "without": without}
        return check

    return exercise


def _not_yet(
    answer: object, outcome: tuple, expected: object, tolerance: Number, listed: str
) -> NotYetError:
    """What is said of a function whose outcome in one case, (case, what came, error), is not as expected."""
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
    """Many answers are right: the exercise raises a NotYetError that says what is wrong with the reader's function.

    `ours` is a right answer, which what follows the exercise uses.
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
        try:
            verdict = NOT_ATTEMPTED if answer is ... else Verdict("right", judge(answer))
        except NotAttemptedError as untouched:
            verdict = replace(NOT_ATTEMPTED, words=str(untouched))
        except NotYetError as words:
            looks_like = [one for one in words.args if one][-1]
            verdict = Verdict(
                "not yet", words.args[0], looks_like=looks_like, without_case=words.without_case
            )
        return replace(verdict, exercise=exercise.__name__, answer=answer, ours=ours, check=check)

    check.__signature__ = inspect.signature(check)
    return functools.update_wrapper(
        check, exercise, ("__module__", "__name__", "__qualname__", "__doc__"), ()
    )


def _callable(answer: object) -> Callable[..., object]:
    if not callable(answer):
        raise NotYetError(f"A function is wanted here, not {sentences.shown(answer)}.")
    return answer


def names_used(answer: Callable[..., object]) -> set[str]:
    """Those in the function's code. Where it lies in another process, that one has told them."""
    told = getattr(answer, "names_told", None)
    return _names_in(getattr(inspect.unwrap(answer), "__code__", None)) if told is None else told


def _names_in(code: CodeType | None) -> set[str]:
    """Every attribute and global name that the code uses, that of functions inside it, too."""
    if code is None:
        return set()
    inner = (_names_in(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)


def _advice(answers: Callable[..., Answers], outcomes: list[tuple], tolerance: Number) -> str:
    """The advice on the first listed mistake that explains the outcome of every case so far; else an empty string.

    A mistake is known by its advice. Where two ways lead to one mistake, the exercise lists both with the same advice.
    """
    explaining = None
    for case, came, error in outcomes:
        _, *mistakes = answers(*case)
        here = [advice for wrong, advice in mistakes if _is_alike(wrong, came, error, tolerance)]
        explaining = (
            here if explaining is None else [advice for advice in explaining if advice in here]
        )
        if not explaining:
            return ""
    return explaining[0]


def _is_alike(wrong: object, came: object, error: BaseException | None, tolerance: Number) -> bool:
    """Whether a mistake's outcome, a value or an error, is what the reader's function gave or stopped with."""
    if error or isinstance(wrong, Exception):
        return type(wrong) is type(error) and sentences.said_by(wrong) == sentences.said_by(error)
    return agree(came, wrong, tolerance)


def call(
    function: Callable[..., object], *arguments: object
) -> tuple[object, BaseException | None]:
    """What the function returned, or the error that it stopped with: InPlaceError if it has changed what it was given."""
    lasting = all(
        isinstance(x, int | float | str) for x in arguments
    )  # nobody can change these in place
    given = arguments if lasting else copy.deepcopy(arguments)
    try:
        with Clock():
            came = function(*given)
    except (Exception, SystemExit, KeyboardInterrupt, TooLongError) as error:
        return None, error
    if came is ...:
        raise NotAttemptedError
    return came, None if lasting or same(given, arguments) else sentences.InPlaceError()


def outcome(function: Callable[[], object]) -> object:
    """What the function returns, or the error that it stops with: some mistakes are errors."""
    came, error = call(function)
    return error or came
