"""What is wrong with a call of the reader's function: an error, or another result than expected."""

from dataclasses import dataclass

from course_utils.core.say import Number
from course_utils.core.say.language import translated
from course_utils.engine.judging import errors, sentences
from course_utils.engine.judging.exercises import Outcome, Wording
from course_utils.engine.judging.parts import NO_PART, Told, in_parts


@dataclass(frozen=True)
class Fault:
    """The sentences on an outcome that is not as expected."""

    sentence: str  # without its subject, which is the reader's function in that case
    advice: str  # on the kind of the outcome, if the exercise lists no such mistake; or empty
    brief: str  # takes the place of `sentence` where the cases of a graded class are kept secret
    remark: str = ""  # follows `sentence` if there is no advice


def fault_of_error(answer: object, case: tuple, error: BaseException) -> Fault:
    """Return the sentences on an error that has stopped the reader's function.

    `answer` is that function, and `case` has the arguments with which it was called.
    """
    return Fault(
        sentence=errors.stopped(answer, error),
        advice=errors.advice_on_calling(answer, case),  # if it cannot take these arguments
        brief=errors.stopped_briefly(error),
    )


def fault_of_result(
    answer: object,
    outcomes: list[Outcome],
    expected: object,
    tolerance: Number,
    wording: Wording,
    *,
    is_advised: bool,
) -> Fault:
    """Return the sentences on the last outcome, whose result is not the expected one.

    In the outcomes before it, which are those of earlier cases, the result of the reader's function
    `answer` was right. `is_advised`
    says whether the exercise has advice on this mistake.
    """
    case, result, _error = outcomes[-1]
    advice = sentences.advice_on_kind(result, expected)
    brief = "In one of the cases, what came is not what was expected."
    if wording.parts:  # the right answer is a sum, whose parts have names
        past = [(past_case, past_result) for past_case, past_result, _error in outcomes]
        sentence, is_explained = in_parts(past, wording.parts, wording.unit, is_advised=is_advised)
        if is_explained:
            # A sentence that names the wrong part needs no advice on the kind.
            return Fault(sentence, advice="", brief=brief)
        if sentence:
            remark = wording.parts.told(answer, case) if isinstance(wording.parts, Told) else ""
            return Fault(sentence, advice, brief, remark=remark or translated(NO_PART))
    return Fault(sentences.gave(result, expected, tolerance, wording.unit), advice, brief)
