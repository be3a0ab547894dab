"""Three questions of earlier notebooks at the head of one that is presented to a class.

`make present NB=04 RECALL=1` puts their cells into the copy that is shown. Each question has a cell
with `ask`, so that the room guesses by phone as it does elsewhere, and a cell that says the answer
and how it follows.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from course_utils.core.say import Number, OpenGuess
from course_utils.core.say.language import template, translated
from course_utils.stage.notebook.files import Cell, read
from course_utils.stage.notebook.outline import outline
from course_utils.stage.recall.bank import MODULES, QUESTIONS
from course_utils.stage.recall.question import Drawn, Question
from course_utils.stage.recall.reply import NO_ANSWER, reply

COUNT = 3
# In place of a name, so that the field and the phones show which of the three it is.
ITEMS = ("the first", "the second", "the third")
HEADING = template("From earlier notebooks")
HEAD = template(
    "Three questions come back, with new sizes. "
    "Two minutes: guess, then see how the answer follows."
)
IMPORTS = "from course_utils import ask\nfrom course_utils.stage.recall.in_class import recalled"


@dataclass(frozen=True)
class Recalled:
    """The answer to a question that has come back in class, shown with how it follows."""

    drawn: Drawn
    said: Number | str

    @property
    def answer(self) -> Number:
        return self.drawn.asked.answer

    @property
    def unit(self) -> str:
        return self.drawn.asked.unit

    def _repr_markdown_(self) -> str:
        told = reply(self.drawn, self.said)
        parts = [told.verdict, told.advice, told.derivation]
        return "\n\n".join(part for part in map(_as_markdown, parts) if part)


def recalled(name: str, seed: int, guess: OpenGuess) -> Recalled:
    """Return the answer to the question of that name, as that seed draws its sizes."""
    said = next(iter(guess.said.values()), NO_ANSWER)
    return Recalled(QUESTIONS[name].draw(seed), said)


def chosen(number: int, day: date, course: Path) -> list[Question]:
    """Return three questions of the notebooks before that number, chosen by the day.

    They are of the main paths. One is of the notebook before, and they are of three notebooks if
    there are so many. ValueError if there is no notebook before.
    """
    if number < 2:
        raise ValueError("Before notebook 1 there is nothing to recall: leave out RECALL.")
    chance = random.Random(f"{number} {day}")
    earlier = [_on_the_path(module.QUESTIONS, course) for module in MODULES[: number - 1]]
    *others, before = earlier
    chance.shuffle(others)
    questions = [chance.choice(before)]
    for module in others[: COUNT - 1]:
        questions.append(chance.choice(module))
    left = [one for module in earlier for one in module if one not in questions]
    questions += chance.sample(left, COUNT - len(questions))
    return [one for one in QUESTIONS.values() if one in questions]


def _on_the_path(questions: tuple[Question, ...], course: Path) -> list[Question]:
    """Return those of a notebook's questions that its main path teaches."""
    (path,) = course.glob(f"*_{questions[0].chapter}.ipynb")
    main_path = {part.id for part in outline(read(path)).parts if not part.is_beyond}
    return [question for question in questions if question.cell in main_path]


def cells(number: int, day: date, course: Path) -> list[Cell]:
    """Return the cells that ask three questions at the head of the notebook of that number."""
    head = f"## {translated(HEADING)}\n\n{translated(HEAD)}"
    made = [_cell("recall-head", head), _cell("recall-imports", IMPORTS, is_code=True)]
    for place, question in enumerate(chosen(number, day, course)):
        made.extend(_cells_of(question.draw(day.toordinal()), place))
    return made


def _cells_of(drawn: Drawn, place: int) -> Iterator[Cell]:
    """Yield the cells of a question: its words, the guess, and the answer."""
    name = drawn.question.name
    guess = f"my_recall_{place + 1}"
    unit = f', "{drawn.asked.unit}"' if drawn.asked.unit else ""
    yield _cell(f"recall-{place}-words", _as_markdown(drawn.asked.text))
    yield _cell(f"recall-{place}-ask", f'{guess} = ask("{ITEMS[place]}"{unit})', is_code=True)
    answer = f'recalled("{name}", {drawn.seed}, guess={guess})'
    yield _cell(f"recall-{place}-answer", answer, is_code=True)


def _as_markdown(text: str) -> str:
    """Return a text without markup as Markdown that shows it as it is."""
    for sign in "\\*_`$<":
        text = text.replace(sign, f"\\{sign}")
    return text


def _cell(name: str, text: str, *, is_code: bool = False) -> Cell:
    cell: Cell = {"id": name, "metadata": {}, "source": text}
    if is_code:
        return cell | {"cell_type": "code", "execution_count": None, "outputs": []}
    return cell | {"cell_type": "markdown"}
