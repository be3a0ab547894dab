"""What the room was asked and has guessed. There is no HTTP here.

Each question has two rounds, and a round is open until it is shown. A phone is any string that
tells it from others. A state is what the wall shows, ready for JSON: it has counts, and never a
phone.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from course_utils.stage.poll import typed

MOST_PHONES = 2_000
MOST_ROUNDS = 2
MOST_CHOICES = 12
LONGEST_CHOICE = 80  # characters
FEW = 5  # a round of fewer guesses is not kept: it could tell whose they were
HERE_S = 60  # a phone asks every few seconds; one that is locked, or has left, does not
MANY_ADDRESSES = 8  # from here on, phones plainly do not all share one address
CROWD = 4  # an address is a crowd if it has more than a quarter of the guesses
LONGEST = {"key": 80, "words": 600, "unit": 80}  # characters
ANSWER = ("measured", "shown", "how", "bands", "tempting")

Value = int | float | str
Guesses = dict[str, Value]  # of each phone
Json = dict[str, object]


@dataclass
class Question:
    """`rounds` holds what each phone guessed: in the first round, and in the second once it began.

    Its phase is "asking" at first. Then the round is "shown", and at last the answer is "revealed".
    """

    said: Json  # its key, words, unit and choices
    rounds: list[Guesses] = field(default_factory=lambda: [{}])
    phase: str = "asking"
    answer: Json = field(default_factory=lambda: dict.fromkeys(ANSWER))
    left_out: set[str] = field(default_factory=set)  # addresses whose guesses are not counted

    @classmethod
    def of(cls, given: Json) -> "Question":
        """The question that the wall asks, with each text cut to a bounded length."""
        said: Json = {}
        for name, longest in LONGEST.items():
            said[name] = str(given.get(name, ""))[:longest]
        choices = list(given.get("choices") or [])[:MOST_CHOICES]
        said["choices"] = [str(choice)[:LONGEST_CHOICE] for choice in choices]
        return cls(said)

    @property
    def guessed(self) -> Guesses:
        """What each phone guessed in the round that began last."""
        return self.rounds[-1]

    def asked(self) -> Json:
        """What phones and the wall both see."""
        return {**self.said, "round": len(self.rounds), "phase": self.phase}

    def read(self, text: str) -> Value:
        """The choice or the number that this text means; ValueError with a sentence if none."""
        choices = self.said["choices"]
        if not choices:
            return typed.read(text, self.said["unit"])
        if text not in choices:
            raise ValueError(f"Choose one of these: {', '.join(choices)}.")
        return text

    def allows(self, move: object) -> bool:
        """Whether the wall can make this move now."""
        if move == "show":
            return self.phase == "asking"
        if move == "again":
            return self.phase == "shown" and len(self.rounds) < MOST_ROUNDS
        return move in ("anew", "leave out", "count all")


@dataclass
class Phone:
    """Where it is, as far as the network says, and when it last asked for the question."""

    address: str
    seen_s: float


class Room:
    """All questions of a lecture, and the phones that are there."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.phones: dict[str, Phone] = {}
        self._clock = clock
        self._questions: dict[str, Question] = {}
        self._current: Question | None = None

    # What a phone does.

    def admit(self, phone: str, address: str = "") -> bool:
        """Let the phone in, and return whether there was room for it.

        It has no address where a log-in makes sure that each person has one phone only.
        """
        if phone in self.phones:
            self.phones[phone].seen_s = self._clock()
        elif len(self.phones) < MOST_PHONES:
            self.phones[phone] = Phone(address, self._clock())
        return phone in self.phones

    def question(self, phone: str | None) -> Json:
        """What the wall asks now, and what this phone has guessed in this round."""
        if phone is None:
            return {"key": None, "waits": True}
        if self._current is None:
            return {"key": None}
        return {**self._current.asked(), "mine": self._current.guessed.get(phone)}

    def guess(self, phone: str | None, given: Json) -> Value:
        """Take a guess in place of the phone's former one, and say how it was read."""
        question = self._current
        if question is None or not _is_about(question, given):
            raise ValueError("The wall asks something else now. It comes here in a moment.")
        if question.phase != "asking":
            raise ValueError("It is shown now, and takes no more guesses.")
        if phone not in self.phones:
            raise ValueError(
                "This phone is not known yet. Reload the page, and allow it its one cookie."
            )
        value = question.read(str(given.get("guess", "")))
        question.guessed[phone] = value
        return value

    # What the wall does.

    def ask(self, given: Json) -> Json:
        """Make this the question. Asked again with the same choices, it keeps its guesses."""
        question = Question.of(given)
        before = self._questions.get(question.said["key"])
        if before and before.said["choices"] == question.said["choices"]:
            question.rounds = before.rounds
            question.phase = before.phase
            question.answer = before.answer
            question.left_out = before.left_out
        self._make_current(question)
        return self._state(question)

    def reveal(self, given: Json) -> Json:
        """Close the question, and set the answer beside what was guessed.

        What was never asked has no rounds.
        """
        asked_now = Question.of(given)
        question = self._questions.get(asked_now.said["key"], asked_now)
        question.phase = "revealed"
        question.answer = {name: given.get(name) for name in ANSWER}
        state = self._state(question)
        if question is asked_now:
            state["rounds"] = []
        return state

    def move(self, given: Json) -> Json:
        """Show the round that is open, let all guess again, begin anew, or leave a crowd out."""
        question = self._questions.get(str(given.get("key")))
        move = given.get("move")
        if question is None or not question.allows(move):
            raise ValueError(
                "Not now: a question is asked, then show, again once, show, and then its answer."
            )
        if move == "anew":
            question = Question(question.said)
            self._make_current(question)
        elif move == "leave out":
            address, _ = self._crowd(question)
            question.left_out = {address} if address else set()
        elif move == "count all":
            question.left_out = set()
        elif move == "show":
            question.phase = "shown"
        else:
            question.phase = "asking"
            question.rounds.append({})
        return self._state(question)

    def state(self, key: str) -> Json | None:
        """The state of the question of that key; None if it was never asked."""
        question = self._questions.get(key)
        return None if question is None else self._state(question)

    def states(self, at_least: int = 0) -> list[Json]:
        """The state of each question, without the guesses of rounds that have fewer."""
        states = [self._state(question) for question in self._questions.values()]
        for state in states:
            state["rounds"] = [_unless_fewer(counts, at_least) for counts in state["rounds"]]
        return states

    def here(self) -> int:
        """How many phones have asked for the question in the last minute."""
        return len(self._here())

    def _here(self) -> set[str]:
        now_s = self._clock()
        return {name for name, phone in self.phones.items() if now_s - phone.seen_s <= HERE_S}

    def _make_current(self, question: Question) -> None:
        self._questions[question.said["key"]] = question
        self._current = question

    def _crowd(self, question: Question) -> tuple[str, int]:
        """The address that sent far more of this round's guesses than a phone can, and how many.

        If no address did, it is "" and 0. So it is where few addresses are known: behind one router
        all phones share an address, and that means nothing.
        """
        addresses = {phone.address for phone in self.phones.values()}
        addresses.discard("")
        of_each: Counter[str] = Counter()
        for name in question.guessed:
            if name in self.phones and self.phones[name].address:
                of_each[self.phones[name].address] += 1
        if len(addresses) < MANY_ADDRESSES or not of_each:
            return "", 0
        address, most = of_each.most_common(1)[0]
        if most <= max(FEW, len(question.guessed) / CROWD):
            return "", 0
        return address, most

    def _state(self, question: Question) -> Json:
        counted = [self._counted(question, guessed) for guessed in question.rounds]
        last = counted[-1]
        shown = counted[:-1] if question.phase == "asking" else counted
        _, of_crowd = self._crowd(question)
        return {
            **question.asked(),
            "count": len(last),
            "phones": len(self._here() | last.keys()),
            "crowd": of_crowd,
            "left_out": len(question.guessed) - len(last),
            "rounds": [_counts(guessed) for guessed in shown],
            **question.answer,
        }

    def _counted(self, question: Question, guessed: Guesses) -> Guesses:
        """The guesses of a round without those of an address that is left out."""
        counted = {}
        for name, value in guessed.items():
            if self.phones[name].address not in question.left_out:
                counted[name] = value
        return counted


def _is_about(question: Question, given: Json) -> bool:
    """Whether a guess names this question and its round."""
    return given.get("key") == question.said["key"] and given.get("round") == len(question.rounds)


def _counts(guessed: Guesses) -> list[list[Value]]:
    """Each value that was guessed, in order, and how many guessed it."""
    counts = Counter(guessed.values())
    return [[value, count] for value, count in sorted(counts.items())]


def _unless_fewer(counts: list[list[Value]], at_least: int) -> list[list[Value]]:
    total = sum(count for _, count in counts)
    return counts if total >= at_least else []
