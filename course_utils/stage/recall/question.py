"""A question with sizes that are drawn, and what is said of an answer to it."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from course_utils.core.say import Guess, Number, OpenGuess, in_words, number_text, three_digits
from course_utils.core.say.closeness import SPOT_ON
from course_utils.core.say.language import translated
from course_utils.core.say.open_guesses import with_unit

Size = Number | str
# A wrong answer that is off by no more than this share might count as right.
WITHIN = 0.055
TRIES = 1000  # to draw sizes that make a good question
SEEDS = range(200)  # among which `distinct` finds different sizes


@dataclass(frozen=True)
class Mistake:
    """A tempting wrong answer, and the advice for whoever gives it."""

    said: Number
    advice: str


@dataclass(frozen=True)
class Asked:
    """A question with its sizes filled in, its answer, and how the answer follows from the sizes.

    An answer is right if it is spot on, in the course's sense, or off by no more than `tolerance`
    times the answer. If the answer `is_exact`, nothing else is right: neighbours of a position in
    memory are other positions, however large it is.
    """

    text: str
    answer: Number
    derivation: str
    unit: str = ""
    mistakes: tuple[Mistake, ...] = ()
    tolerance: float = 0.05
    is_exact: bool = False

    @property
    def answer_text(self) -> str:
        """The answer with its unit: in full if it is exact, else with three digits.

        >>> Asked("", 14_400, "", "GB").answer_text, Asked("", 5203, "", is_exact=True).answer_text
        ('14.4 TB', '5,203')
        """
        if self.is_exact:
            return self.with_unit(self.answer)
        if self.unit == "seconds":  # as asked, because minutes are not understood in the field
            return f"{three_digits(self.answer)} seconds"
        if not self.unit:  # with six digits, so that powers of two are seen to be such
            return number_text(self.answer)
        return in_words(self.answer, self.unit)

    def with_unit(self, number: Number) -> str:
        """Return the number in full, with the unit that is asked for."""
        return with_unit(number, self.unit)

    def is_right(self, said: Number) -> bool:
        """Whether this answer counts as right."""
        if self.is_exact:
            return said == self.answer
        is_near = abs(said - self.answer) <= self.tolerance * abs(self.answer)
        return is_near or self._guess(said).word == SPOT_ON

    def how_far(self, said: Number) -> str:
        """Return how far off the answer is, in the words that the course has for a guess.

        >>> Asked("", 12.0, "", "GB").how_far(6)
        'Right power of ten: a factor of 2 too small'
        """
        guess = self._guess(said)
        if self.is_exact and said != self.answer and guess.word == SPOT_ON:
            return translated(
                "Near, but it has to be exact: {said} for {right}",
                said=number_text(said),
                right=self.answer_text,
            )
        return guess.words

    def advice(self, said: Number) -> str:
        """Return the advice for the tempting mistake that leads to this answer; "" if none does."""
        if self.is_right(said):
            return ""
        near = [one for one in self.mistakes if replace(self, answer=one.said).is_right(said)]
        if not near:
            return ""
        nearest = min(near, key=lambda mistake: abs(mistake.said - said))
        return nearest.advice

    def _guess(self, said: Number) -> Guess:
        return Guess(self.text, said, self.answer, kind="calculated", unit=self.unit)


@dataclass(frozen=True)
class Question:
    """A question of a notebook: `sizes` has what each size is drawn from.

    `name` begins with the notebook's chapter, as in "floats.stops". `cell` is the id of the cell
    that teaches it. `asked` fills the sizes in. It returns None for sizes that make no good
    question, and then others are drawn.
    """

    name: str
    cell: str
    asked: Callable[..., Asked | None]
    sizes: Mapping[str, Sequence[Size]]

    @property
    def chapter(self) -> str:
        chapter, _, _ = self.name.partition(".")
        return chapter

    def draw(self, seed: int) -> "Drawn":
        """Return the question with the sizes that this seed draws; they are the same everywhere."""
        # With the name, so that a seed does not draw the first of the sizes everywhere.
        chance = random.Random(f"{self.name} {seed}")
        for _ in range(TRIES):
            sizes = {name: chance.choice(options) for name, options in self.sizes.items()}
            asked = self.asked(**sizes)
            # Where a size happens to be the answer, the question would give it away.
            if asked is not None and asked.answer not in sizes.values():
                return Drawn(self, seed, sizes, _with_useful_mistakes(asked))
        raise ValueError(f"No sizes of {self.name} make a good question.")


def distinct(question: Question, count: int) -> "list[Drawn]":
    """Return the question as the first seeds draw it, `count` times and each with another text.

    Of two seeds that draw the same sizes, the first one is taken.
    """
    with_text: dict[str, Drawn] = {}
    for drawn in map(question.draw, SEEDS):
        with_text.setdefault(drawn.asked.text, drawn)
    return list(with_text.values())[:count]


@dataclass(frozen=True)
class Drawn:
    """A question, the seed, and the sizes that the seed has drawn for the question."""

    question: Question
    seed: int
    sizes: Mapping[str, Size]
    asked: Asked

    def read(self, typed: str) -> Number:
        """Return the number that was typed into the field; ValueError, with a sentence, if none."""
        name = self.question.name
        guess = OpenGuess((name,), self.asked.unit)
        guess.say(name, typed)
        return guess.said[name]

    def guess(self, said: Number) -> Guess:
        """Return the answer as the record keeps it, under the question's name."""
        return Guess(
            self.question.name, said, self.asked.answer, kind="calculated", unit=self.asked.unit
        )


def _with_useful_mistakes(asked: Asked) -> Asked:
    """Return the question without the mistakes that lead to the right answer for these sizes."""
    useful: dict[Number, Mistake] = {}  # of several that lead to the same answer, the first
    for mistake in asked.mistakes:
        if not asked.is_right(mistake.said):
            useful.setdefault(mistake.said, mistake)
    return replace(asked, mistakes=tuple(useful.values()))
