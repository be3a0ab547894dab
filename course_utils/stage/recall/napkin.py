"""Ten questions over the whole course, drawn from a seed: in the browser, or on paper.

`make napkin SEEDS=30` writes thirty of them into napkin/napkin.html, each with its answers on a
sheet of its own.
"""

import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from course_utils.core.say import listed
from course_utils.core.say.language import in_a_row, translated
from course_utils.stage.recall.bank import MODULES, QUESTIONS
from course_utils.stage.recall.question import Drawn
from course_utils.stage.translations import language
from course_utils.stage.translations.edition import ENGLISH, Edition
from course_utils.stage.translations.loading import in_edition
from course_utils.stage.translations.templates import CONTENTS, NAPKIN_PAGE

QUESTIONS_EACH = 10
MINUTES = 20
MOST_SEEDS = 500
FILE = Path("napkin") / "napkin.html"
HTML = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
ENVIRONMENT = Environment(autoescape=True, trim_blocks=True)
CHAPTERS = tuple(module.QUESTIONS[0].chapter for module in MODULES)


def number_of(chapter: str) -> int:
    """Return the number of the notebook that has the chapter, from 1 to 8."""
    return CHAPTERS.index(chapter) + 1


def napkin(seed: int) -> list[Drawn]:
    """Return ten questions, in the order of the notebooks: one of each, and two more.

    No question comes twice.
    """
    chance = random.Random(f"napkin {seed}")
    chosen = {chance.choice(module.QUESTIONS).name for module in MODULES}
    others = [name for name in QUESTIONS if name not in chosen]
    chosen.update(chance.sample(others, QUESTIONS_EACH - len(chosen)))
    return [question.draw(seed) for name, question in QUESTIONS.items() if name in chosen]


def to_keep(seed: int, right: Sequence[Drawn]) -> str:
    """Return the one line that a reader keeps of a napkin; `right` are those answered right.

    >>> to_keep(7, napkin(7)[:9])
    'Napkin 7: 9 of 10 right. To read again: notebook 8.'
    """
    chapters = [drawn.question.chapter for drawn in napkin(seed) if drawn not in right]
    numbers = [str(number_of(chapter)) for chapter in dict.fromkeys(chapters)]
    line = translated(
        "Napkin {seed}: {right} of {of} right.", seed=seed, right=len(right), of=QUESTIONS_EACH
    )
    if not numbers:
        return line
    if len(numbers) == 1:
        again = translated("To read again: notebook {number}.", number=numbers[0])
    else:
        again = translated("To read again: notebooks {numbers}.", numbers=listed(numbers))
    return in_a_row(line, again)


def page(seeds: Sequence[int], spoken: str = ENGLISH) -> str:
    """Return the HTML of the napkins of these seeds, all questions first and then all answers.

    What stands around the questions is in the language `spoken`.
    """
    edition = Edition(spoken, CONTENTS)
    template = ENVIRONMENT.from_string(in_edition(edition, NAPKIN_PAGE, HTML))
    napkins = [(seed, napkin(seed)) for seed in seeds]
    english = str if edition.is_english else _marked
    return template.render(napkins=napkins, number_of=number_of, minutes=MINUTES, english=english)


def _marked(text: str) -> Markup:
    """Return a text of a question marked as English."""
    return Markup('<span lang="en">{}</span>').format(text)


def main(count: str) -> int:
    """Write the napkins of so many seeds, counted from 1; returns the exit code.

    The code is 2 if `count` is no such number, or if there is no such language, and 1 if the file
    cannot be written.
    """
    count = count or "1"
    if not count.isdecimal() or not 1 <= int(count) <= MOST_SEEDS:
        print(f"SEEDS is how many napkins to draw, from 1 to {MOST_SEEDS}.", file=sys.stderr)
        return 2
    try:
        html = page(range(1, int(count) + 1), language.chosen())
    except ValueError as error:  # there is no such language
        print(error, file=sys.stderr)
        return 2
    try:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(html, encoding="utf-8")
    except OSError as error:
        print(f"Nothing was written: {error.strerror}, {FILE}.", file=sys.stderr)
        return 1
    print(f"{FILE}: {count} with ten questions each, and behind them the answers. Print it.")
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ.get("SEEDS", "")))
