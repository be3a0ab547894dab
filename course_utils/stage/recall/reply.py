"""What is said after an answer: whether it is right, how far off it is, and how it follows."""

from dataclasses import dataclass

from course_utils.core.say import Number
from course_utils.core.say.language import translated
from course_utils.stage.recall.question import Drawn

NO_ANSWER = "no answer"  # stands in the record where the reader had the answer shown


@dataclass(frozen=True)
class Reply:
    """What the page says, in sentences; `advice` is empty unless it was a tempting mistake."""

    is_right: bool
    verdict: str
    derivation: str
    advice: str = ""


def reply(drawn: Drawn, said: Number | str) -> Reply:
    """Return the reply to an answer; `said` is NO_ANSWER if the reader gave none.

    >>> from course_utils.stage.recall.bank import QUESTIONS
    >>> stops = QUESTIONS["floats.stops"].draw(1)  # with 4 fraction bits
    >>> reply(stops, 32).verdict, reply(stops, 16).verdict
    ('Right. Spot on: 32.', 'It is 32. Right power of ten: a factor of 2 too small.')
    """
    asked = drawn.asked
    if isinstance(said, str):
        verdict = translated("It is {answer}.", answer=asked.answer_text)
        return Reply(False, verdict, asked.derivation)
    how_far = _sentence(asked.how_far(said))
    if asked.is_right(said):
        right = translated("Right. {sentence}", sentence=how_far)
        return Reply(True, right, asked.derivation)
    verdict = translated("It is {answer}. {sentence}", answer=asked.answer_text, sentence=how_far)
    return Reply(False, verdict, asked.derivation, asked.advice(said))


def _sentence(words: str) -> str:
    # The second one is the question mark of Chinese.
    return words if words.endswith(("?", "\uff1f")) else translated("{words}.", words=words)
