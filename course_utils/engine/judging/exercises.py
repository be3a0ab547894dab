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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType

from course_utils.core.say import Number
from course_utils.engine.judging import sentences
from course_utils.engine.judging.agreement import agree, same
from course_utils.engine.judging.limits import Clock, TooLongError
from course_utils.engine.judging.parts import NO_PART, PartsOf, in_parts
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
    hints: Sequence[str] = (),
) -> Callable[[Callable[[], Answers]], Check]:
    """A decorator for an exercise whose answer is one value, exact or within the tolerance.

    The tolerance is relative. `wanted` names the quantity and its unit; the verdict quotes it if
    the answer matches none of the listed ones. If an answer may be written in several ways, `read`
    brings it into one form. Of the `hints`, each new wrong answer is shown the next one.
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

        check = _check(answers, judge, ours, hints)
        check.listed = listed
        return check

    return exercise


def function(
    cases: Cases,
    *,
    tolerance: Number = 0.0,
    read: Callable[..., object] = _unchanged,
    without: Mapping[str, str] | None = None,
    case_words: Callable[..., str] | None = None,
    parts: PartsOf | None = None,
    unit: str = "",
    hints: Sequence[str] = (),
) -> Callable[[Callable[..., Answers]], Check]:
    """A decorator for an exercise whose answer is a function, called with one case after the other.

    `tolerance` is relative to each number; in a tensor, to its largest number. Where cases are
    expensive, `cases` is a function that makes them. `read` takes a result and its case, and brings
    the result into one form. `without` has the names that not even a right answer may use, each
    with the words that say why.

    A verdict on a wrong answer names the case by its arguments, or as `case_words` says it: "For
    Qwen2.5 0.5B". If the right answer is a sum, `parts` takes a case and returns the parts by name;
    they add up to the right answer, within the tolerance. `unit` is that of the answer. Of the
    `hints`, each new wrong answer is shown the next one.
    """
    asked = {
        "cases": cases,
        "tolerance": tolerance,
        "read": read,
        "without": without,
        "case_words": case_words,
        "parts": parts,
        "unit": unit,
        "hints": hints,
    }

    def exercise(answers: Callable[..., Answers]) -> Check:
        check = _check_of_function(answers, asked)
        check.asked = asked  # with them, `drawing` makes the check again for other cases
        return check

    return exercise


def _check_of_function(answers: Callable[..., Answers], asked: Mapping[str, object]) -> Check:
    """The check of an exercise whose answer is a function; `asked` has `function`'s options."""
    cases = asked["cases"]
    forbidden = asked["without"] or {}
    tell = _Telling(_case_words(answers, asked["case_words"]), asked["parts"], asked["unit"])

    def judge(answer: object) -> str:
        all_cases = cases() if callable(cases) else cases
        because = _try_cases(answer, answers, all_cases, asked["tolerance"], asked["read"], tell)
        for name in names_used(answer):
            if name in forbidden:
                raise NotYetError(forbidden[name], forbidden[name])
        return because

    def our_function(*case: object) -> object:
        right, _ = next(answers(*case))
        return right

    return _check(answers, judge, lambda: our_function, asked["hints"])


@dataclass(frozen=True)
class _Telling:
    """How a wrong answer is described: the case in words, the parts of a sum, and its unit."""

    case_words: Callable[..., str]
    parts: PartsOf | None
    unit: str


def _case_words(
    answers: Callable[..., Answers], case_words: Callable[..., str] | None
) -> Callable[..., str]:
    """The function that says a case in words; if there is no other, it names each argument."""
    if case_words:
        return case_words
    names = list(inspect.signature(answers).parameters)
    return lambda *case: sentences.case_in_words(names, case)


def _try_cases(
    answer: object,
    answers: Callable[..., Answers],
    cases: Iterable[tuple],
    tolerance: Number,
    read: Callable[..., object],
    tell: _Telling,
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
            if error:
                said = _on_an_error(answer, case, error)
            else:
                said = _on_a_difference(
                    outcomes, expected, tolerance, tell, is_advised=bool(advice)
                )
            called = sentences.called(answer, tell.case_words(*case))
            further = advice or said.advice or said.remark
            words = f"{called} {said.sentence} {further}".strip()
            raise NotYetError(words, advice, without_case=advice or said.advice or said.brief)
    return because


@dataclass(frozen=True)
class _Said:
    """What is said of an outcome that is not as expected."""

    sentence: str
    advice: str  # by the kind of the outcome, where the exercise lists no mistake; or empty
    brief: str  # for those who are not to know the case
    remark: str = ""  # where there is no advice


def _on_an_error(answer: object, case: tuple, error: BaseException) -> _Said:
    return _Said(
        sentences.stopped(answer, error),
        sentences.advice_on_calling(answer, case),
        sentences.stopped_briefly(error),
    )


def _on_a_difference(
    outcomes: list[Outcome],
    expected: object,
    tolerance: Number,
    tell: _Telling,
    *,
    is_advised: bool,
) -> _Said:
    """What is said of the last outcome, which differs from the expected one."""
    _, came, _ = outcomes[-1]
    advice = sentences.advice_on_kind(came, expected)
    brief = "In one of the cases, what came is not what was expected."
    if tell.parts:
        past = [(case, came) for case, came, _ in outcomes]
        sentence, is_explained = in_parts(past, tell.parts, tell.unit, is_advised=is_advised)
        if is_explained:
            return _Said(sentence, "", brief)
        if sentence:
            return _Said(sentence, advice, brief, NO_PART)
    return _Said(sentences.gave(came, expected, tolerance, tell.unit), advice, brief)


def objection(
    because: str, *, ours: object = ..., hints: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Check]:
    """A decorator for an exercise with many right answers: it objects to the wrong ones.

    The exercise takes the reader's function, and raises a NotYetError on what is wrong with it.
    `because` says why an answer without objection is right. `ours` is a right answer, for the cells
    that go on with it. Of the `hints`, each new wrong answer is shown the next one.
    """

    def exercise(object_to: Callable[..., None]) -> Check:
        def judge(answer: object) -> str:
            object_to(_callable(answer))
            return because

        return _check(object_to, judge, lambda: ours, hints)

    return exercise


def _check(
    exercise: Callable[..., object],
    judge: Callable[[object], str],
    ours: Callable[[], object],
    hints: Sequence[str],
) -> Check:
    """The check that judges an answer by `judge`. It has the exercise's name and docstring."""

    def check(answer: object) -> Verdict:
        return replace(
            _verdict(judge, answer),
            exercise=exercise.__name__,
            answer=answer,
            ours=ours,
            check=check,
            hints=tuple(hints),
        )

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
