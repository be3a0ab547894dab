"""An exercise is a generator: it yields the right answer first, then the tempting wrong ones.

    @value(wanted="the days", tolerance=0.01)
    def days() -> Answers:
        '''The days that GPT-3's training takes.'''
        right = 6 * parameters * tokens / flop_per_sec / 86_400
        yield right, "6PN FLOPs, and 86,400 seconds a day."
        yield right / 3, "That is the forward pass alone."

Each answer comes with a sentence: why it is right, or the advice on the mistake. The decorator
makes a check of the exercise: `days(answer)` returns a verdict. Where the reader writes a function,
the exercise has the decorator `function`, takes the arguments of that function, and yields the
answers for them. Where many answers are right, the exercise has the decorator `objection`, takes
the reader's function, and raises a NotYetError if the function is wrong.
"""

import copy
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType

from course_utils.core.say import Number
from course_utils.core.say.language import translated
from course_utils.engine.judging import sentences
from course_utils.engine.judging.agreement import agree, same
from course_utils.engine.judging.limits import Clock, TooLongError
from course_utils.engine.judging.verdict import NOT_ATTEMPTED, NotYetError, Verdict

Answers = Iterator[tuple[object, str]]  # an answer, and the sentence on it
Check = Callable[[object], Verdict]  # takes the reader's answer
# A case has the arguments of one call of the reader's function.
Cases = Iterable[tuple] | Callable[[], Iterable[tuple]]
PartsOf = Callable[..., Mapping[str, Number]]  # takes a case; the sizes of a sum's parts, by name
Outcome = tuple[tuple, object, BaseException | None]  # the case, the result, the error or None


class NotAttemptedError(Exception):
    """The reader's function still returns `...`, or nothing in it has been changed.

    A function that was handed out complete, to be mended, has no `...` to fill in. For such a
    function, `words` say what to do.
    """

    def __init__(self, words: str = NOT_ATTEMPTED.words) -> None:
        super().__init__(words)


def _unchanged(result: object, *_: object) -> object:
    """Return the result as it is: the `read` of an exercise whose answers have one form only."""
    return result


def value(
    *,
    wanted: str,
    tolerance: Number = 0.0,
    read: Callable[[object], object] = _unchanged,
    hints: Sequence[str] = (),
) -> Callable[[Callable[[], Answers]], Check]:
    """A decorator for an exercise whose answer is one value, exact or within the tolerance.

    The tolerance is relative. `wanted` names the quantity and its unit; the verdict quotes `wanted`
    if the answer is none of those that the exercise yields. `read` returns an answer in one form,
    such as "FP16" as "fp16". Each new wrong answer is shown the next one of the `hints`.
    """

    def exercise(answers: Callable[[], Answers]) -> Check:
        def judge(answer: object) -> str:
            """Return why the answer is right; NotYetError if it is not."""
            answer = read(answer)
            expected, why_right = next(answers())  # the right answer is the first that it yields
            if agree(answer, expected, tolerance):
                return why_right
            from course_utils.engine.judging.accusing import advice_on_value  # a wrong answer's

            advice = advice_on_value(answers, answer, tolerance)
            if advice:
                raise NotYetError(sentences.listed_value(answer, advice), advice)
            raise NotYetError(sentences.wrong_value(answer, expected, wanted))

        def ours() -> object:
            right, _ = next(answers())
            return right

        def listed() -> list[tuple[object, str]]:
            return list(answers())

        check = _check(answers, judge, ours, hints)
        check.listed = listed  # for what shows the wrong answers, too, such as the room's wall
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
    gives: Sequence[str] = (),
    unit: str = "",
    hints: Sequence[str] = (),
) -> Callable[[Callable[..., Answers]], Check]:
    """A decorator for an exercise whose answer is a function, called with one case after the other.

    `tolerance` is relative to each number; in a tensor, to its largest number. Where cases are
    expensive, `cases` is a function that makes them. `read` takes a result and the arguments of its
    case, and returns the result in one form. `without` maps each name that not even a right answer
    may use to a sentence on the reason.

    A verdict on a wrong answer names the case by its arguments, or by what `case_words` returns for
    them, such as "For Qwen2.5 0.5B". If the right answer is a sum, `parts` takes the arguments of a
    case and returns the parts by name; the parts add up to the right answer, within the tolerance.
    If it is a tuple, `gives` has the names of its values. `unit` is the unit of the answer, and of
    each of its values. Each new wrong answer is shown the next one of the `hints`.
    """
    asked = dict(locals())  # the options above, by their names

    def exercise(answers: Callable[..., Answers]) -> Check:
        check = _check_of_function(answers, asked)
        check.asked = asked  # with these options, `drawing` makes the check again for other cases
        return check

    return exercise


def _check_of_function(answers: Callable[..., Answers], asked: Mapping[str, object]) -> Check:
    """Return the check of an exercise whose answer is a function.

    `asked` has the options of the decorator `function`.
    """
    cases = asked["cases"]
    forbidden = asked["without"] or {}
    exercise = Exercise(
        answers,
        asked["tolerance"],
        asked["read"],
        _case_words(answers, asked["case_words"]),
        asked["parts"],
        asked["gives"],
        asked["unit"],
    )

    def judge(answer: object) -> str:
        """Return why the answer is right; NotYetError if it is not."""
        all_cases = cases() if callable(cases) else cases
        why_right = _try_cases(answer, iter(all_cases), exercise)
        for name in names_used(answer):
            if name in forbidden:
                reason = forbidden[name]
                raise NotYetError(reason, advice=reason)
        return why_right

    def our_function(*case: object) -> object:
        right, _ = next(answers(*case))
        return right

    # `ours` of a check is a function that returns the right answer, here a function as well.
    return _check(answers, judge, lambda: our_function, asked["hints"])


@dataclass(frozen=True)
class Exercise:
    """An exercise with cases: its answers, and `function`'s options of the same names."""

    answers: Callable[..., Answers]  # takes the arguments of a case, as most of what follows
    tolerance: Number
    read: Callable[..., object]
    case_words: Callable[..., str]
    parts: PartsOf | None
    gives: Sequence[str]
    unit: str

    def try_on(self, answer: object, case: tuple, longest_s: Number | None = None) -> Outcome:
        """Call the reader's function with a case. `longest_s` is the processor time it may take."""
        result, error = call(_callable(answer), *case, longest_s=longest_s)
        # After an error the result is None, and `read` accepts that.
        return case, self.read(result, *case), error


def _case_words(
    answers: Callable[..., Answers], case_words: Callable[..., str] | None
) -> Callable[..., str]:
    """Return `case_words`; if it is None, a function that names each argument of a case."""
    if case_words:
        return case_words
    names = list(inspect.signature(answers).parameters)
    return lambda *case: sentences.case_in_words(names, case)


def _try_cases(answer: object, cases: Iterator[tuple], exercise: Exercise) -> str:
    """Call the reader's function with each case, and return the sentence on why it is right.

    NotYetError at the first case in which its result is not the expected one.
    """
    why_right = ""
    outcomes = []
    for case in cases:
        _, result, error = exercise.try_on(answer, case)
        outcomes.append((case, result, error))
        expected, why_right = next(exercise.answers(*case))
        if error or not agree(result, expected, exercise.tolerance):
            # Only a notebook with a wrong answer has to load the words on it.
            from course_utils.engine.judging.faults import complaint

            raise complaint(answer, expected, outcomes, cases, exercise)
    return why_right


def objection(
    because: str, *, ours: object = ..., hints: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Check]:
    """A decorator for an exercise with many right answers: the exercise objects to wrong ones.

    The exercise takes the reader's function, and raises a NotYetError if the function is wrong.
    `because` is the sentence on why any other function is right. `ours` is a right answer, for the
    cells that go on with it. Each new wrong answer is shown the next one of the `hints`.
    """

    def exercise(object_to: Callable[..., None]) -> Check:
        """Return the check of `object_to`, the decorated exercise."""

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
    """Return the check that judges an answer by `judge`, with the exercise's name and docstring.

    `judge` takes the answer, and returns why it is right or raises an error. `ours` returns a right
    answer.
    """

    def check(answer: object) -> Verdict:
        """Return the verdict on the answer, with what else a verdict has of its exercise."""
        return replace(
            _verdict(judge, answer),
            exercise=exercise.__name__,
            answer=answer,
            ours=ours,
            check=check,
            hints=tuple(hints),
        )

    # update_wrapper sets check.__wrapped__ to `exercise`, and help(check) would then show the
    # signature of the exercise. With a __signature__, it shows that of the check: (answer).
    check.__signature__ = inspect.signature(check)
    copied = ("__module__", "__name__", "__qualname__", "__doc__")
    return functools.update_wrapper(check, exercise, assigned=copied, updated=())


def _verdict(judge: Callable[[object], str], answer: object) -> Verdict:
    """Return the verdict on the answer, from what `judge` returns or raises."""
    if answer is ...:  # as the stub in the notebook has it
        return replace(NOT_ATTEMPTED, words=translated(NOT_ATTEMPTED.words))
    try:
        return Verdict("right", translated(judge(answer)))
    except NotAttemptedError as untouched:
        return replace(NOT_ATTEMPTED, words=translated(str(untouched)))
    except NotYetError as error:
        words, advice = error.args  # as NotYetError passes them on to Exception
        return Verdict(
            "not yet",
            translated(words),
            looks_like=advice or words,
            advice=advice,
            without_case=error.without_case,
        )


def _callable(answer: object) -> Callable[..., object]:
    """Return the answer, which has to be a function: NotYetError if it is something else."""
    if not callable(answer):
        shown = sentences.shown(answer)
        raise NotYetError(translated("A function is wanted here, not {answer}.", answer=shown))
    return answer


def names_used(answer: Callable[..., object]) -> set[str]:
    """Return the names of the attributes and global variables that the function uses.

    While grading, the reader's function is in another process, and `answer` only stands in for it.
    That process has sent the names, and `answer.names_told` has them.
    """
    names = getattr(answer, "names_told", None)
    if names is not None:
        return names
    code = getattr(inspect.unwrap(answer), "__code__", None)
    return _names_in(code)


def _names_in(code: CodeType | None) -> set[str]:
    """Return every attribute and global name that the code and the functions inside it use."""
    if code is None:  # of a function that is not written in Python
        return set()
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_in(constant)
    return names


def call(
    function: Callable[..., object], *arguments: object, longest_s: Number | None = None
) -> tuple[object, BaseException | None]:
    """Call the function; return its result and None, or None and the error that stopped it.

    It may take `longest_s` of a processor's time, or else what `limits` allows to any answer.
    If the function has changed one of its arguments, the error is an InPlaceError, beside the
    result. NotAttemptedError is raised if the function returns `...`.
    """
    are_immutable = all(isinstance(x, int | float | str) for x in arguments)
    # The function gets copies, so that a change in place shows, and does not reach the next call.
    given = arguments if are_immutable else copy.deepcopy(arguments)
    try:
        with Clock(longest_s):
            result = function(*given)
    # These are all that can stop an answer: exit() and an interrupted cell among them.
    except (Exception, SystemExit, KeyboardInterrupt, TooLongError) as error:
        return None, error
    if result is ...:
        raise NotAttemptedError
    if are_immutable or same(given, arguments):
        return result, None
    from course_utils.engine.judging.errors import InPlaceError  # only after such a change

    return result, InPlaceError()


def outcome(function: Callable[[], object]) -> object:
    """Return what the function returns, or the error that stops it.

    An exercise calls this for a listed answer that may be an error on some cases, such as a product
    of matrices whose shapes do not fit.
    """
    result, error = call(function)
    return result if error is None else error
