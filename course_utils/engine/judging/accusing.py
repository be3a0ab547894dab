"""The advice on a listed mistake, which is said only if the mistake explains every case.

In one case, quite another fault may lead to the number of a listed mistake. So before a reader is
told that they made it, their function is called with the cases that follow.
"""

import contextlib
import io
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from course_utils.core.say import Number
from course_utils.engine.judging import limits
from course_utils.engine.judging.agreement import agree
from course_utils.engine.judging.errors import said_by
from course_utils.engine.judging.exercises import Answers, Exercise, NotAttemptedError, Outcome

MOST_FURTHER = 60  # cases that are tried after the first wrong one; one of the checks has 5,000


def further_outcomes(answer: object, cases: Iterator[tuple], exercise: Exercise) -> list[Outcome]:
    """Call the reader's function with the cases that are left, and return what came of them.

    All of them together take at most the time that is allowed to one answer. They end early at a
    call that is stopped, because its time is up, for example. What the function prints is not
    shown: it was shown for the cases before.
    """
    outcomes = []
    ends_s = time.process_time() + limits.LONGEST_S
    with contextlib.redirect_stdout(io.StringIO()):
        for case in islice(cases, MOST_FURTHER):
            left_s = ends_s - time.process_time()
            if left_s <= 0:
                break
            try:
                outcome = exercise.try_on(answer, case, left_s)
            except NotAttemptedError:  # in this case the function returns `...`
                break
            _, _, error = outcome
            if error and not isinstance(error, Exception):
                break
            outcomes.append(outcome)
    return outcomes


def advice_on(exercise: Exercise, past: Sequence[Outcome], further: Sequence[Outcome]) -> str:
    """Return the advice on the first listed mistake that explains the outcome of every case.

    `past` has the cases up to the first wrong one, and `further` those after it. The advice is
    empty if no mistake explains them. Two listed answers with the same advice are one mistake,
    which can be made in two ways: one of them may explain the first case, and the other one the
    second case.
    """
    explaining = _explaining(exercise.answers, past[-1], exercise.tolerance)
    for outcome in past[:-1]:
        fitting = _explaining(exercise.answers, outcome, exercise.tolerance)
        explaining = [advice for advice in explaining if advice in fitting]
    for outcome in further:
        if explaining:  # the listed answers of a case may take a while
            refuted = _refuted(exercise, outcome)
            explaining = [advice for advice in explaining if advice not in refuted]
    return explaining[0] if explaining else ""


def advice_on_value(answers: Callable[[], Answers], value: object, tolerance: Number) -> str:
    """Return the advice on the first listed mistake that comes to this value; else empty."""
    # A value is judged as a function without arguments that has returned it, with no error.
    fitting = _explaining(answers, ((), value, None), tolerance)
    return fitting[0] if fitting else ""


def _explaining(answers: Callable[..., Answers], outcome: Outcome, tolerance: Number) -> list[str]:
    """Return the advice on each listed mistake that leads to this outcome."""
    case, result, error = outcome
    _right, *mistakes = answers(*case)
    return [advice for wrong, advice in mistakes if _is_alike(wrong, result, error, tolerance)]


def _refuted(exercise: Exercise, outcome: Outcome) -> set[str]:
    """Return the advice on each mistake that a reader with this outcome has not made.

    A case says nothing on a mistake that comes to the right answer in it, or to an error. Nor does
    an error of the reader's function, which may have another reason.
    """
    case, result, error = outcome
    if error:
        return set()
    (right, _), *mistakes = exercise.answers(*case)
    told = set()
    fitting = set()
    for mistaken, advice in mistakes:
        if isinstance(mistaken, Exception):
            fitting.add(advice)
            continue
        wrong = exercise.read(mistaken, *case)  # in the form that the result has as well
        if not agree(wrong, right, exercise.tolerance):
            told.add(advice)
        if agree(result, wrong, exercise.tolerance) or agree(result, mistaken, exercise.tolerance):
            fitting.add(advice)
    return told - fitting


def _is_alike(
    wrong: object, result: object, error: BaseException | None, tolerance: Number
) -> bool:
    """Whether a listed mistake, a value or an error, is the outcome of the reader's function.

    Two errors are alike if they have the same type and the same message.
    """
    if error or isinstance(wrong, Exception):
        return type(wrong) is type(error) and said_by(wrong) == said_by(error)
    return agree(result, wrong, tolerance)
