"""Which questions come back on a day, by what the reader's record has of them.

    due.three(folder, course, date.today())

gives the questions to ask today. A question comes due a day after the reader has met it, which is
after the first guess or turn in its section. After each right answer it stays away for longer, and
after a wrong one it returns the next day.

A reader may ask for more on the same day. A question that is asked before it is due is an extra: if
it is missed, it returns the next day as usual, and if it is right, it stays where it was, because
it has not waited.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from course_utils.core import record
from course_utils.core.say.closeness import SPOT_ON, WORDS
from course_utils.stage.recall import lines
from course_utils.stage.recall.bank import QUESTIONS
from course_utils.stage.recall.question import Question
from course_utils.stage.recall.sections import Section, section_of

INTERVALS_DAYS = (1, 4, 12, 30, 90)  # the last one is kept
AT_ONCE = 3  # questions of a day


@dataclass(frozen=True)
class Standing:
    """A question that the reader has met: when it comes due, and how far off the reader was.

    `word` is one of closeness.WORDS: that of the last answer, or else the worst in the section.
    """

    question: Question
    due: date
    word: str


def three(folder: Path, course: Path, day: date) -> list[Question]:
    """Return the questions to ask on that day, at most three, less those answered on it already.

    Those come first whose answer was farthest off, and of these the ones that have waited longest.
    They are from two notebooks or more, if more than one notebook has a question that is due.
    `folder` has the record, and `course` the notebooks.
    """
    answered = [QUESTIONS[one.guess.asked] for one in answered_on(folder, day) if not one.is_extra]
    chosen = list(answered)
    waiting = due(folder, course, day)
    while waiting and len(chosen) < AT_ONCE:
        chosen.append(_next(chosen, waiting))
        waiting.remove(chosen[-1])
    return chosen[len(answered) :]


def due(folder: Path, course: Path, day: date) -> list[Question]:
    """Return all questions that are due on that day, the farthest off first."""
    waiting = [standing for standing in standings(folder, course) if standing.due <= day]
    waiting.sort(key=lambda standing: (-WORDS.index(standing.word), standing.due))
    return [standing.question for standing in waiting]


def more(folder: Path, course: Path, day: date) -> list[Standing]:
    """Return the questions that can be asked besides the three, those first that come due first.

    What was answered on that day already is not among them.
    """
    answered = {one.guess.asked for one in answered_on(folder, day)}
    found = standings(folder, course)
    left = [standing for standing in found if standing.question.name not in answered]
    left.sort(key=lambda standing: (standing.due, -WORDS.index(standing.word)))
    return left


def next_day(folder: Path, course: Path, day: date) -> date | None:
    """Return the first later day on which a question is due; None if the reader has met none."""
    days = [max(standing.due, day + timedelta(1)) for standing in standings(folder, course)]
    return min(days, default=None)


def answered_on(folder: Path, day: date) -> list[lines.Recalled]:
    """Return the first answer of that day to each question."""
    first: dict[str, lines.Recalled] = {}
    for one in lines.recalled(folder):
        if one.day == day and one.guess.asked in QUESTIONS:
            first.setdefault(one.guess.asked, one)
    return list(first.values())


def standings(folder: Path, course: Path) -> list[Standing]:
    """Return how each question stands that the reader has met, in the course's order."""
    first_days = lines.first_days(folder)
    words = _words(folder)
    answers: dict[str, list[lines.Recalled]] = defaultdict(list)
    for one in lines.recalled(folder):
        if not (one.is_extra and one.is_right):
            answers[one.guess.asked].append(one)
    found = []
    for question in QUESTIONS.values():
        section = section_of(question, course)
        days = [first_days[name] for name in section.names if name in first_days]
        if answers[question.name]:
            found.append(_standing_by_answers(question, answers[question.name]))
        elif days:
            due_on = min(days) + timedelta(INTERVALS_DAYS[0])
            found.append(Standing(question, due_on, _worst(section, words)))
    return found


def _standing_by_answers(question: Question, answers: Sequence[lines.Recalled]) -> Standing:
    """Return the standing of a question that has come back before."""
    rights = 0  # right answers in a row
    for one in answers:
        rights = rights + 1 if one.is_right else 0
    interval = INTERVALS_DAYS[min(rights, len(INTERVALS_DAYS) - 1)]
    last = answers[-1]
    # By its tolerance, a right answer need not be spot on.
    word = SPOT_ON if last.is_right else last.guess.word
    return Standing(question, last.day + timedelta(interval), word)


def _next(chosen: Sequence[Question], waiting: Sequence[Question]) -> Question:
    """Return the first of the waiting questions, or of those from another notebook.

    The last place goes to another notebook if the questions before it are all of one.
    """
    chapters = {question.chapter for question in chosen}
    if len(chosen) == AT_ONCE - 1 and len(chapters) == 1:
        for question in waiting:
            if question.chapter not in chapters:
                return question
    return waiting[0]


def _words(folder: Path) -> dict[tuple[str, str], str]:
    """Return the word for each first guess and each turn in the record.

    A turn that is right is spot on. One that was tried and is not right yet has missed.
    """
    words = {}
    for chapter, guesses in record.guesses(folder).items():
        for guess in guesses:
            words[chapter, guess.cell or str(guess.asked)] = guess.word
    for check, done in record.done(folder).items():
        chapter, _, exercise = check.partition(".")
        words[chapter, exercise] = SPOT_ON if done.first_right else WORDS[-1]
    return words


def _worst(section: Section, words: dict[tuple[str, str], str]) -> str:
    """Return the word for the guess or turn of the section that was farthest off."""
    here = [words[name] for name in section.names if name in words]
    return max(here, key=WORDS.index, default=SPOT_ON)
