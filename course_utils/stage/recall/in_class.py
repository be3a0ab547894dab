"""Three questions of earlier notebooks at the head of one that is presented to a class.

`make present NB=04 RECALL=1` puts their cells into the copy that is shown. Each question has a cell
with `ask`, so that the room guesses by phone as it does elsewhere, and a cell that says the answer
and how it follows.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from html import escape
from pathlib import Path

from course_utils.core.say import Number, OpenGuess, picture
from course_utils.core.say.language import template, translated
from course_utils.stage.notebook.files import Cell, read
from course_utils.stage.notebook.outline import outline
from course_utils.stage.recall.bank import MODULES, QUESTIONS
from course_utils.stage.recall.items import ITEMS
from course_utils.stage.recall.question import Drawn, Question
from course_utils.stage.recall.reply import NO_ANSWER, reply

COUNT = 3
LARGE = "font-size:30px;font-weight:bold;line-height:1.3"  # as a reveal's number
HEADING = template("From earlier notebooks")
HEAD = template(
    "Three questions come back, with new sizes. "
    "Two minutes: guess, then see how the answer follows."
)
# It names the questions and their day here, so that a cell with an answer needs only the guess.
IMPORTS = """\
from course_utils import ask
from course_utils.stage.recall.in_class import answers_of

recalled = answers_of("{day}", {names})"""


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return " ".join(self._sentences())

    def _repr_html_(self) -> str:
        """Return the question, the guess beside the answer, and what there is to say.

        The question is said again, because the cell with the answer comes to the window's top.
        Without a picture, the verdict is in large letters.
        """
        question = f"<p>{escape(self.drawn.asked.text)}</p>"
        drawn = self._picture()
        verdict, *others = [escape(words) for words in self._sentences()]
        large = "" if drawn else f' style="{LARGE}"'
        paragraphs = [f"<p{large}>{verdict}</p>", *(f"<p>{words}</p>" for words in others)]
        return question + drawn + "".join(paragraphs)

    def _sentences(self) -> list[str]:
        """Return the verdict, the advice if there is some, and how the answer follows."""
        told = reply(self.drawn, self.said)
        return [words for words in (told.verdict, told.advice, told.derivation) if words]

    def _picture(self) -> str:
        """Return the guess beside the answer, as a reveal draws them; "" if there is no guess.

        A guess that has to be exact has no picture, in which all that is near would look right.
        """
        if isinstance(self.said, str) or self.drawn.asked.is_exact:
            return ""
        guess = self.drawn.guess(self.said)
        answer = guess.measured
        heads = (guess.kind, guess.kind)
        return picture.of_numbers([picture.Shown(guess, answer, answer, heads)])


def answers_of(day: str, *names: str) -> Callable[..., Recalled]:
    """Return a function that shows the answer to one of these questions, drawn for that day.

    The function takes what `ask` has returned, and finds by its name which question it was.
    """
    seed = date.fromisoformat(day).toordinal()
    drawn = {ITEMS[name]: QUESTIONS[name].draw(seed) for name in names}

    def recalled(guess: OpenGuess) -> Recalled:
        """Return the answer to what was asked, and take no other guess once it has been seen."""
        (item,) = guess.names
        guess.when_seen(guess.close)
        return Recalled(drawn[item], guess.said.get(item, NO_ANSWER))

    return recalled


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
    questions = chosen(number, day, course)
    names = ", ".join(f'"{question.name}"' for question in questions)
    imports = IMPORTS.format(day=day, names=names)
    made = [_cell("recall-head", head), _folded(_cell("recall-imports", imports, is_code=True))]
    for place, question in enumerate(questions):
        item = ITEMS[question.name]
        made.extend(_cells_of(question.draw(day.toordinal()), item, place))
    return made


def _folded(cell: Cell) -> Cell:
    """Return the cell folded, as the imports of a copy are: it says nothing to a room."""
    return {**cell, "metadata": {"jupyter": {"source_hidden": True}}}


def _cells_of(drawn: Drawn, item: str, place: int) -> Iterator[Cell]:
    """Yield the cells of a question: its words, the guess, and the answer.

    `item` says what is guessed, in the few words that stand in the call of `ask`.
    """
    guess = f"my_recall_{place + 1}"
    unit = f', "{drawn.asked.unit}"' if drawn.asked.unit else ""
    yield _cell(f"recall-{place}-words", _as_markdown(drawn.asked.text))
    yield _cell(f"recall-{place}-ask", f'{guess} = ask("{item}"{unit})', is_code=True)
    yield _cell(f"recall-{place}-answer", f"recalled(guess={guess})", is_code=True)


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
