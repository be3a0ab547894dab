"""What the room was asked and has guessed: two rounds of each question, each open until it is shown. No HTTP here.

A phone is any string that tells it from others. A state is what the wall shows, ready for JSON: it has counts, and
never a phone.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from course_utils.stage.poll import typed

MOST_PHONES = 2_000
FEW = 5  # a round of fewer guesses is not kept: it could tell whose they were
HERE_S = 60  # a phone asks every few seconds; one that is locked, or has left, does not
MANY_ADDRESSES = 8  # from here on, phones plainly do not all share one address
CROWD = 4  # one address is one if it has more than a quarter of the guesses
LONGEST = {"key": 80, "words": 600, "unit": 80}
ANSWER = ("measured", "shown", "how", "bands", "tempting")

Value = int | float | str
Json = dict[str, object]


@dataclass
class Question:
    """`rounds` holds what each phone guessed, in the first round and, once it has begun, in the second."""

    said: Json  # its key, words, unit and choices
    rounds: list[dict[str, Value]] = field(default_factory=lambda: [{}])
    phase: str = "asking"  # then "shown", then "revealed"
    answer: Json = field(default_factory=lambda: dict.fromkeys(ANSWER))
    left_out: set[str] = field(default_factory=set)  # addresses whose guesses are not counted

    @classmethod
    def of(cls, given: Json) -> "Question":
        """From what the wall says, each text of bounded length."""
        texts = {name: str(given.get(name, ""))[:most] for name, most in LONGEST.items()}
        return cls(
            texts | {"choices": [str(one)[:80] for one in list(given.get("choices") or [])[:12]]}
        )

    def asked(self) -> Json:
        """What phones and the wall both see."""
        return self.said | {"round": len(self.rounds), "phase": self.phase}

    def read(self, text: str) -> Value:
        """What was typed or chosen."""
        choices = self.said["choices"]
        if choices and text not in choices:
            raise ValueError(f"Choose one of these: {', '.join(choices)}.")
        return text if choices else typed.read(text, self.said["unit"])


@dataclass
class Phone:
    """Where it is, as far as the network says, and when it last asked for the question."""

    address: str
    seen: float


class Room:
    """All questions of a lecture, and the phones that are there."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.phones: dict[str, Phone] = {}
        self._clock = clock
        self._questions: dict[str, Question] = {}
        self._current: Question | None = None

    # What a phone does.

    def admit(self, phone: str, address: str = "") -> bool:
        """Whether there is room for it. Without an address it is known to be a person's only one."""
        if phone in self.phones:
            self.phones[phone].seen = self._clock()
        elif len(self.phones) < MOST_PHONES:
            self.phones[phone] = Phone(address, self._clock())
        return phone in self.phones

    def question(self, phone: str | None) -> Json:
        """What stands on the wall now, and what this phone has guessed in this round."""
        now = self._current
        if phone is None:
            return {"key": None, "waits": True}
        return now.asked() | {"mine": now.rounds[-1].get(phone)} if now else {"key": None}

    def guess(self, phone: str | None, given: Json) -> Value:
        """Take a guess in place of the phone's former one, and say how it was read."""
        now = self._current
        if now is None or (given.get("key"), given.get("round")) != (
            now.said["key"],
            len(now.rounds),
        ):
            raise ValueError("The wall asks something else now. It comes here in a moment.")
        if now.phase != "asking":
            raise ValueError("It is shown now, and takes no more guesses.")
        if phone not in self.phones:
            raise ValueError(
                "This phone is not known yet. Reload the page, and allow it its one cookie."
            )
        value = now.rounds[-1][phone] = now.read(str(given.get("guess", "")))
        return value

    # What the wall does.

    def ask(self, given: Json) -> Json:
        """Make this the question. Asked again, it keeps its guesses, unless there are other choices."""
        asked = Question.of(given)
        before = self._questions.get(asked.said["key"])
        if before and before.said["choices"] == asked.said["choices"]:
            asked.rounds, asked.phase, asked.answer = before.rounds, before.phase, before.answer
            asked.left_out = before.left_out
        self._current = self._questions[asked.said["key"]] = asked
        return self._state(asked)

    def reveal(self, given: Json) -> Json:
        """Close the question, and set the answer beside what was guessed. What was not asked has no rounds."""
        asked = Question.of(given)
        question = self._questions.get(asked.said["key"], asked)
        question.phase, question.answer = "revealed", {name: given.get(name) for name in ANSWER}
        return self._state(question) | ({"rounds": []} if question is asked else {})

    def move(self, given: Json) -> Json:
        """Show the round that is open, let all guess again, begin anew, or leave a crowd's guesses out."""
        question, move = self._questions.get(str(given.get("key"))), given.get("move")
        if question and move == "anew":
            self._current = self._questions[question.said["key"]] = question = Question(
                question.said
            )
            return self._state(question)
        if question and move in ("leave out", "count all"):
            question.left_out = {self._crowd(question)[0]} - {""} if move == "leave out" else set()
            return self._state(question)
        possible = question and {"asking": "show", "shown": "again"}.get(question.phase)
        if not possible or move != possible or (move == "again" and len(question.rounds) == 2):
            raise ValueError(
                "Not now: a question is asked, then show, again once, show, and then its answer."
            )
        question.phase = "shown" if move == "show" else "asking"
        question.rounds += [{}] if move == "again" else []
        return self._state(question)

    def state(self, key: str) -> Json | None:
        """None if it was never asked."""
        return self._state(self._questions[key]) if key in self._questions else None

    def states(self, at_least: int = 0) -> list[Json]:
        """All of them, without what was guessed in a round of fewer."""

        def enough(guessed: list[list[Value]]) -> bool:
            return sum(count for _, count in guessed) >= at_least

        all_of_them = map(self._state, self._questions.values())
        return [
            s | {"rounds": [one if enough(one) else [] for one in s["rounds"]]} for s in all_of_them
        ]

    def here(self) -> int:
        """How many phones have asked for the question in the last minute."""
        return len(self._here())

    def _here(self) -> set[str]:
        now = self._clock()
        return {one for one, phone in self.phones.items() if now - phone.seen <= HERE_S}

    def _crowd(self, question: Question) -> tuple[str, int]:
        """The address that sent far more of this round's guesses than any one phone could, and how many.

        Where all come through one address, as behind one router, that is no sign of anything, and it is nobody's.
        """
        addresses = {phone.address for phone in self.phones.values()} - {""}
        of_each = Counter(
            self.phones[one].address for one in question.rounds[-1] if one in self.phones
        )
        del of_each[""]
        address, most = max(of_each.items(), key=lambda one: one[1], default=("", 0))
        is_one = len(addresses) >= MANY_ADDRESSES and most > max(
            FEW, len(question.rounds[-1]) / CROWD
        )
        return (address, most) if is_one else ("", 0)

    def _state(self, question: Question) -> Json:
        counted = [self._counted(question, guessed) for guessed in question.rounds]
        shown = counted[: len(counted) - (question.phase == "asking")]
        rounds = [[list(pair) for pair in sorted(Counter(one.values()).items())] for one in shown]
        crowd = self._crowd(question)[1]
        about = {
            "count": len(counted[-1]),
            "phones": len(self._here() | counted[-1].keys()),
            "crowd": crowd,
            "left_out": len(question.rounds[-1]) - len(counted[-1]),
            "rounds": rounds,
        }
        return question.asked() | about | question.answer

    def _counted(self, question: Question, guessed: dict[str, Value]) -> dict[str, Value]:
        """The guesses of a round without those of an address that is left out."""
        return {
            one: value
            for one, value in guessed.items()
            if self.phones[one].address not in question.left_out
        }
