"""The questions of a lecture and the guesses of the room. There is no HTTP here.

Each question has up to two rounds. A round takes guesses until it is shown. A phone is named by any
string that no other phone has. A state is what the wall shows, ready for JSON: it has counts of
guesses, and never the name of a phone.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from course_utils.core.say import typed

MOST_PHONES = 2_000
MOST_ROUNDS = 2
MOST_CHOICES = 12
LONGEST_CHOICE = 80  # characters
FEW = 5  # a round of fewer guesses is not kept: one could find out whose guesses they are
# So long after its last request a phone counts as here. A phone asks for the question every few
# seconds; one that is locked, or has left, does not.
HERE_S = 60
MANY_ADDRESSES = 8  # with so many, the room is not behind one router
CROWD = 4  # an address is a crowd if it has more than a quarter of the guesses
LONGEST = {"key": 80, "words": 600, "unit": 80}  # characters
# The fields of an answer: its value; the value as text; what the wall calls it, such as "measured";
# the bands (low, high, words) in which a guess is right; and wrong answers with advice, as pairs.
ANSWER = ("measured", "shown", "how", "bands", "tempting")

Value = int | float | str
Guesses = dict[str, Value]  # by phone
Json = dict[str, object]


@dataclass
class Question:
    """A question, and the guesses of each of its rounds, of which there is one at first.

    Its phase is "asking" at first. Then the round is "shown", and at last the answer is "revealed".
    """

    fields: Json  # its key, words, unit and choices
    rounds: list[Guesses] = field(default_factory=lambda: [{}])  # one, without guesses so far
    phase: str = "asking"
    answer: Json = field(default_factory=lambda: dict.fromkeys(ANSWER))  # each None at first
    left_out: set[str] = field(default_factory=set)  # addresses whose guesses are not counted

    @classmethod
    def of(cls, given: Json) -> "Question":
        """Return the question that a request of the wall describes, with too long texts cut.

        `given` has the key, such as "04.my_days", and the words, the unit and the choices.
        """
        fields: Json = {}
        for name, longest in LONGEST.items():
            fields[name] = str(given.get(name, ""))[:longest]
        choices = list(given.get("choices") or [])[:MOST_CHOICES]
        fields["choices"] = [str(choice)[:LONGEST_CHOICE] for choice in choices]
        return cls(fields)

    @property
    def guessed(self) -> Guesses:
        """What each phone guessed in the round that began last."""
        return self.rounds[-1]

    def asked(self) -> Json:
        """Return the part of the question's state that is sent to phones as well as to the wall."""
        return {**self.fields, "round": len(self.rounds), "phase": self.phase}

    def read(self, text: str) -> Value:
        """Return the choice or number that the text means; ValueError, with a sentence, if none."""
        choices = self.fields["choices"]
        if not choices:
            return typed.read(text, self.fields["unit"])
        if text not in choices:
            raise ValueError(f"Choose one of these: {', '.join(choices)}.")
        return text

    def allows(self, move: object) -> bool:
        """Whether the wall can make this move now: see `Room.move`."""
        if move == "show":
            return self.phase == "asking"
        if move == "again":
            return self.phase == "shown" and len(self.rounds) < MOST_ROUNDS
        return move in ("anew", "leave out", "count all")


@dataclass
class Phone:
    """The address that a phone's requests come from, and when it last asked for the question."""

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
        """Let the phone in, or note that it is still here; return whether it is in the room.

        On a hub the address is empty: there, a log-in makes sure that each person has one phone.
        """
        if phone in self.phones:
            self.phones[phone].seen_s = self._clock()
        elif len(self.phones) < MOST_PHONES:
            self.phones[phone] = Phone(address, self._clock())
        return phone in self.phones

    def question(self, phone: str | None) -> Json:
        """Return the question with this phone's guess; `key` is None if there is no question.

        A phone that is None has to wait until it is let in.
        """
        if phone is None:
            return {"key": None, "waits": True}
        if self._current is None:
            return {"key": None}
        return {**self._current.asked(), "mine": self._current.guessed.get(phone)}

    def guess(self, phone: str | None, given: Json) -> Value:
        """Take a guess in place of the phone's former one, and return how it was read.

        `given` has the "guess" as it was typed, and the "key" and the "round" that it is about.
        ValueError, with a sentence for the phone, if the guess cannot be taken.
        """
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
        """Make the question that a request describes the current one, and return its state.

        A question that was asked before, with the same choices, keeps its guesses and its answer.
        """
        question = Question.of(given)
        before = self._questions.get(question.fields["key"])  # if the cell is run again, say
        if before and before.fields["choices"] == question.fields["choices"]:
            question.rounds = before.rounds
            question.phase = before.phase
            question.answer = before.answer
            question.left_out = before.left_out
        self._make_current(question)
        return self._state(question)

    def reveal(self, given: Json) -> Json:
        """Close the question, and return its state with the answer.

        If the question was never asked, as when its cell did not run, the state has no rounds, and
        the room does not keep the question.
        """
        described = Question.of(given)
        asked = self._questions.get(described.fields["key"])
        question = asked or described
        question.phase = "revealed"
        question.answer = {name: given.get(name) for name in ANSWER}  # a field may be missing
        state = self._state(question)
        if asked is None:  # it was never asked
            state["rounds"] = []
        return state

    def move(self, given: Json) -> Json:
        """Make one of the moves that `Question.allows` lists, and return the question's state.

        "show" shows the guesses, "again" starts the second round, and "anew" begins the question
        anew. "leave out" leaves out the guesses that one address sent in great number, a crowd, and
        "count all" counts them again.

        ValueError, with a sentence for the presenter, if the question does not allow the move.
        """
        question = self._questions.get(str(given.get("key")))
        move = given.get("move")
        if question is None or not question.allows(move):
            raise ValueError(
                "Not now: a question is asked, then show, again once, show, and then its answer."
            )
        if move == "anew":
            question = Question(question.fields)
            self._make_current(question)
        elif move == "leave out":
            address, _ = self._crowd(question)  # "" if there is no crowd any more
            question.left_out = {address} if address else set()
        elif move == "count all":
            question.left_out = set()
        elif move == "show":
            question.phase = "shown"
        else:  # "again"
            question.phase = "asking"
            question.rounds.append({})
        return self._state(question)

    def state(self, key: str) -> Json | None:
        """Return the state of the question of that key; None if it was never asked."""
        question = self._questions.get(key)
        return None if question is None else self._state(question)

    def states(self, at_least: int = 0) -> list[Json]:
        """Return each question's state; a round with fewer than `at_least` guesses shows none."""
        states = [self._state(question) for question in self._questions.values()]
        for state in states:
            state["rounds"] = [_unless_fewer(counts, at_least) for counts in state["rounds"]]
        return states

    def here(self) -> int:
        """Return how many phones have asked for the question in the last minute."""
        return len(self._here())

    def _here(self) -> set[str]:
        """Return the phones that have asked for the question in the last HERE_S seconds."""
        now_s = self._clock()
        return {name for name, phone in self.phones.items() if now_s - phone.seen_s <= HERE_S}

    def _make_current(self, question: Question) -> None:
        self._questions[question.fields["key"]] = question
        self._current = question

    def _crowd(self, question: Question) -> tuple[str, int]:
        """Return the address with more guesses than FEW and than a quarter of all, and how many.

        "" and 0 if no address has, or if the room has fewer than MANY_ADDRESSES: then its phones
        are probably behind one router, and share its address.
        """
        addresses = {phone.address for phone in self.phones.values()}
        addresses.discard("")  # that of a phone on a hub
        by_address: Counter[str] = Counter()  # how many guesses
        for name in question.guessed:
            if name in self.phones and self.phones[name].address:  # on a hub, it is empty
                by_address[self.phones[name].address] += 1
        if len(addresses) < MANY_ADDRESSES or not by_address:
            return "", 0
        address, most = by_address.most_common(1)[0]
        if most <= max(FEW, len(question.guessed) / CROWD):
            return "", 0
        return address, most

    def _state(self, question: Question) -> Json:
        """Return what the wall shows of the question, without the guesses of an open round."""
        counted = [self._counted(question, guessed) for guessed in question.rounds]
        last = counted[-1]
        shown = counted[:-1] if question.phase == "asking" else counted
        _, of_crowd = self._crowd(question)
        return {
            **question.asked(),
            "count": len(last),
            # Also phones that have guessed and are locked now.
            "phones": len(self._here() | last.keys()),
            "crowd": of_crowd,
            # Who has guessed in this round, but from an address that is left out: see `_counted`.
            "left_out": len(question.guessed) - len(last),
            "rounds": [_counts(guessed) for guessed in shown],
            **question.answer,
        }

    def _counted(self, question: Question, guessed: Guesses) -> Guesses:
        """Return the guesses of a round without those of an address that is left out."""
        counted = {}
        for name, value in guessed.items():
            if self.phones[name].address not in question.left_out:
                counted[name] = value
        return counted


def _is_about(question: Question, given: Json) -> bool:
    """Whether a guess names this question and its round."""
    return given.get("key") == question.fields["key"] and given.get("round") == len(question.rounds)


def _counts(guessed: Guesses) -> list[list[Value]]:
    """Return each value that was guessed, in order, and how many guessed it: [[2.4, 17], …]."""
    counts = Counter(guessed.values())
    return [[value, count] for value, count in sorted(counts.items())]


def _unless_fewer(counts: list[list[Value]], at_least: int) -> list[list[Value]]:
    """Return the counts of a round, or none if they are of fewer guesses than `at_least`."""
    total = sum(count for _, count in counts)
    return counts if total >= at_least else []
