"""The page without a kernel on which questions come back: the browser keeps what was answered.

The questions are drawn here, each in several sizes and with all that is said of an answer, so that
Python alone knows how to draw and to calculate. The page's scripts only choose which of them are
due (`due.js`), compare an answer with numbers that are given, and keep what was answered in the
browser (`met.js`). Nothing is sent anywhere.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from course_utils.core.say.closeness import WORDS, bounds, whole_judged_by
from course_utils.stage.notebook.code import asks_ahead
from course_utils.stage.notebook.files import read
from course_utils.stage.notebook.outline import Part, outline
from course_utils.stage.pages.guesses import Json
from course_utils.stage.pages.languages import ending
from course_utils.stage.recall import due
from course_utils.stage.recall.bank import QUESTIONS
from course_utils.stage.recall.napkin import number_of
from course_utils.stage.recall.question import Asked, Question, distinct
from course_utils.stage.recall.sections import notebook_of, section_of
from course_utils.stage.translations.edition import ENGLISH, Edition
from course_utils.stage.workspace import copies

HERE = Path(__file__).parent
SCRIPTS = ("recall.js", "due.js", "met.js")
MAIN = (HERE / "recall.html").read_text(encoding="utf-8")
SIZES_EACH = 6  # with which a question can come before it comes with the first ones again


def script() -> str:
    """Return all questions, and the numbers of the schedule, as a module of JavaScript."""
    everything = {
        "questions": [_question(question) for question in QUESTIONS.values()],
        "intervals": due.INTERVALS_DAYS,
        "atOnce": due.AT_ONCE,
        "words": WORDS,
    }
    lines = []
    for name, value in everything.items():
        lines.append(f"export const {name} = {json.dumps(value, allow_nan=False)};\n")
    return "".join(lines)


def _question(question: Question) -> Json:
    """Return what the page needs of a question: where it is taught, what it follows, its draws.

    `link` is the title of the section, which the page makes into an address.
    """
    notebook = notebook_of(question, copies.COURSE)
    page = notebook.removesuffix(".ipynb")
    section = section_of(question, copies.COURSE).title
    return {
        "name": question.name,
        "chapter": question.chapter,
        "number": number_of(question.chapter),
        "section": section,
        "link": f"{page}.html#{section.replace(' ', '-')}",
        "met": [f"{page} {name}" for name in met_by(question)],
        "draws": [_draw(drawn.asked) for drawn in distinct(question, SIZES_EACH)],
    }


def sections_in(spoken: str) -> str:
    """Return where questions are taught on the pages of another language, as HTML; "" in English.

    The page's script has the sections of the English pages from `script`.
    """
    if spoken == ENGLISH:
        return ""
    sections = {}
    for question in QUESTIONS.values():
        stem = notebook_of(question, copies.COURSE).removesuffix(".ipynb")
        title = section_of(question, copies.COURSE).title
        shown = Edition(spoken, stem).words(title)
        link = f"{stem}{ending(spoken)}#{shown.replace(' ', '-')}"
        sections[question.name] = {"section": shown, "link": link}
    as_json = json.dumps(sections, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" data-sections>{as_json}</script>'


def met_by(question: Question) -> list[str]:
    """Return the names of the typed guesses after which a reader of the pages has met the question.

    They are those of its section. If it has none, it is the last one before the section, because
    what comes behind a guess is folded until the guess is made; or else the notebook's first.
    """
    parts = _parts_of(copies.COURSE / notebook_of(question, copies.COURSE))
    (teaches,) = (place for place, part in enumerate(parts) if part.id == question.cell)
    section = parts[teaches].section
    here = [part for part in parts if part.section == section and _is_typed(part)]
    before = [part for part in parts[:teaches] if _is_typed(part)]
    after = [part for part in parts[teaches:] if _is_typed(part)]
    chosen = here or before[-1:] or after[:1]
    return [name for part in chosen for name in _names(part)]


@cache  # because each notebook has several questions
def _parts_of(path: Path) -> tuple[Part, ...]:
    return outline(read(path)).parts


def _is_typed(part: Part) -> bool:
    """Whether a page has a field for the guess, which it has not where the notebook asks ahead."""
    return part.is_guess and not asks_ahead(part.text)


def _names(part: Part) -> Iterator[str]:
    for asked in part.asked:
        yield from (question.item for question in asked.questions)


def _draw(asked: Asked) -> Json:
    """Return what the page shows of one draw, and the numbers by which it judges an answer."""
    mistakes = []
    for mistake in asked.mistakes:
        as_answer = replace(asked, answer=mistake.said)
        mistakes.append({**_judged_by(as_answer), "advice": mistake.advice})
    return {
        "text": asked.text,
        "unit": asked.unit,
        "shown": asked.answer_text,
        "derivation": asked.derivation,
        "tolerance": asked.tolerance,
        "isExact": asked.is_exact,
        "whole": whole_judged_by(asked.answer, asked.unit),
        **_judged_by(asked),
        "mistakes": mistakes,
    }


def _judged_by(asked: Asked) -> Json:
    """Return the answer, and the bounds of each word for how close another one is."""
    answer = asked.answer
    return {"answer": answer, "bounds": bounds(answer, asked.unit)}
