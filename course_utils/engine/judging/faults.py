"""What is wrong with a call of the reader's function: an error, or another result than expected."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from course_utils.core.say.language import in_a_row, translated
from course_utils.engine.judging import errors, powers, sentences
from course_utils.engine.judging.accusing import advice_on, further_outcomes
from course_utils.engine.judging.exercises import Exercise, Outcome
from course_utils.engine.judging.parts import NO_PART, Told, in_parts
from course_utils.engine.judging.verdict import NotYetError


@dataclass(frozen=True)
class Fault:
    """The sentences on an outcome that is not as expected."""

    sentence: str  # without its subject, which is the reader's function in that case
    advice: str  # on the kind of the outcome, if the exercise lists no such mistake; or empty
    brief: str  # takes the place of `sentence` where the cases of a graded class are kept secret
    remark: str = ""  # follows `sentence` if there is no advice


def complaint(
    answer: object,
    expected: object,
    past: Sequence[Outcome],
    cases: Iterator[tuple],
    exercise: Exercise,
) -> NotYetError:
    """Return the error to raise on a wrong answer.

    `answer` is the reader's function. `past` has the outcomes so far, of which the last one is not
    the expected one. `cases` has the cases that are left.
    """
    case, _, error = past[-1]
    further: Sequence[Outcome] = ()
    # Without a suspicion, no further case is needed.
    if (exercise.parts and not error) or advice_on(exercise, past, further):
        further = further_outcomes(answer, cases, exercise)
    advice = advice_on(exercise, past, further)
    if error:
        fault = _fault_of_error(answer, case, error)
    else:
        fault = _fault_of_result(answer, past, further, expected, exercise, is_advised=bool(advice))
    beginning = sentences.called(answer, exercise.case_words(*case))
    known_advice = advice or fault.advice  # on this mistake, or on any of its kind
    last_sentence = translated(known_advice) or fault.remark
    words = in_a_row(f"{beginning} {fault.sentence}", last_sentence)
    # For students who are graded on cases kept from them: `brief` names no case.
    return NotYetError(words, advice, without_case=known_advice or fault.brief)


def _fault_of_error(answer: object, case: tuple, error: BaseException) -> Fault:
    """Return the sentences on an error that has stopped the reader's function.

    `answer` is that function, and `case` has the arguments with which it was called.
    """
    # The first is for a function that cannot take these arguments.
    advice = errors.advice_on_calling(answer, case) or errors.advice_on_error(error)
    return Fault(
        sentence=errors.stopped(answer, error),
        advice=advice or powers.advice_on_stop(answer, error),
        brief=errors.stopped_briefly(error),
    )


def _fault_of_result(
    answer: object,
    past: Sequence[Outcome],
    further: Sequence[Outcome],
    expected: object,
    exercise: Exercise,
    *,
    is_advised: bool,
) -> Fault:
    """Return the sentences on the last outcome in `past`, whose result is not the expected one.

    In the outcomes before it, which are those of earlier cases, the result of the reader's function
    `answer` was right; `further` has those of later cases. `is_advised` says whether the exercise
    has advice on this mistake.
    """
    case, result, _error = past[-1]
    advice = sentences.advice_on_kind(result, expected, exercise.gives)
    advice = advice or powers.advice_on_result(answer)
    brief = "In one of the cases, what came is not what was expected."
    if exercise.parts:  # the right answer is a sum, whose parts have names
        sentence, is_explained = in_parts(past, further, exercise, is_advised=is_advised)
        if is_explained:
            # A sentence that names the wrong part needs no advice on the kind.
            return Fault(sentence, advice="", brief=brief)
        if sentence:
            told = exercise.parts.told(answer, case) if isinstance(exercise.parts, Told) else ""
            return Fault(sentence, advice, brief, remark=told or translated(NO_PART))
        # Within the tolerance, this is the expected number as well. One number alone is told.
        expected = sum(exercise.parts(*case).values())
    asked = (exercise.tolerance, exercise.unit, exercise.gives)
    return Fault(sentences.gave(result, expected, *asked), advice, brief)
