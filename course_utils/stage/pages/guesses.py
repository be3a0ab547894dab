"""Guesses on the pages: their fields, and their answers with a picture for any guess.

`guesses.js` shows the fields and fills in the pictures; `numbers.js` reads what is typed. Answers
are found in the HTML tables that notebooks store as outputs: `ROW` finds their rows, and `CELL` the
cells of a row.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from html import escape, unescape
from typing import NamedTuple

from course_utils.core.say import (
    Guess,
    answer_units,
    in_words,
    listed,
    picture,
    refusals,
    typed,
)
from course_utils.core.say.closeness import bounds, bounds_between, is_counted, whole_judged_by
from course_utils.core.say.language import translated
from course_utils.engine.guessing.field import IN_FULL_BELOW, WORKED_OUT, labels
from course_utils.stage.notebook.outline import Asked, Outline, Part
from course_utils.stage.notebook.prose import Question

ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
CELL = re.compile(r"<t[hd]>(.*?)</t[hd]>", re.DOTALL)
Json = dict[str, object]


class Row(NamedTuple):
    """A question of the guess of that name, with its row of the answer's table.

    `heads` are the names of the numbers in the row, such as ["predicted", "measured"], and `cells`
    are the numbers themselves, as texts. Two numbers without a ratio behind them `are_estimates`.
    """

    guess: str
    question: Question
    cells: list[str]
    heads: list[str]
    are_estimates: bool


def field(asked: Asked) -> str:
    """Return the element in which the page's script makes a field for each question of the guess.

    Without the script, its sentence says what is asked for.
    """
    first = asked.questions[0]
    items = [question.item for question in asked.questions]
    lines = [{"name": item, "options": first.choices} for item in items]
    ask = {"name": asked.name, "unit": first.unit, "between": asked.between, "lines": lines}
    sentence = escape(_asked_for(listed(items), first))
    return f'<div class="guess" data-ask="{escape(json.dumps(ask))}"><p>{sentence}</p></div>'


def _asked_for(items: str, question: Question) -> str:
    """Return the sentence on what is guessed, with the options or the unit if there are any."""
    if question.choices:
        options = ", ".join(question.choices)
        return translated("Your guess: {items}: {options}", items=items, options=options)
    if question.unit:
        return translated("Your guess: {items}, in {unit}", items=items, unit=question.unit)
    return translated("Your guess: {items}", items=items)


def answer(result: str, part: Part, known: Outline) -> str:
    """Wrap an output of a cell that reveals guesses in what the page's script needs.

    The script draws a picture for whatever the reader has guessed, from templates that are made
    here, and folds the table once there is a guess. `result` is the output's HTML. It is returned
    as it is if it has no table with an answer.
    """
    rows = list(_rows_of(result, part, known))
    if not rows:
        return result
    if rows[0].question.choices:  # a cell asks for one choice, or for one or several numbers
        questions, templates = _choice(rows[0])
    else:
        questions, templates = _numbers(rows)
    heading = escape(translated("The numbers"))
    return (
        f'<div class="answer" data-questions="{escape(json.dumps(questions, allow_nan=False))}">'
        f'{"".join(templates)}<div class="seen" hidden></div>'
        f'<details class="numbers" open><summary hidden>{heading}</summary>{result}</details>'
        "</div>"
    )


def _rows_of(result: str, part: Part, known: Outline) -> Iterator[Row]:
    """Yield the questions that the output answers, each with its row of the table.

    `result` is the output's HTML, and `known` the outline of the whole notebook, because a guess
    may be asked many cells before.
    """
    rows = []
    for row in ROW.findall(result):
        rows.append([unescape(cell) for cell in CELL.findall(row)])
    if len(rows) < 2:  # no table with a head and a row
        return
    guesses_by_name = {}
    for cell_of_guess in known.guesses:
        for guess in cell_of_guess.asked:
            guesses_by_name[guess.name] = guess
    # The head is like ["GB", "predicted", "measured", "measured / predicted"].
    head, *body = rows
    by_name = {row[0]: row for row in body}
    # Behind the measured number stands its ratio to the predicted one.
    has_ratio = " / " in head[-1]
    end = len(head) - 1 if has_ratio else len(head)
    for reveal in part.reveals:
        guess = guesses_by_name.get(reveal.name)
        questions = guess.questions if guess else ()
        for question in questions:
            # A reveal of one row answers only one of several questions.
            if reveal.row and len(questions) > 1 and question.item != reveal.row:
                continue
            name = reveal.row if reveal.row else question.item
            row = by_name.get(name, body[0])  # the first row if no row has the question's name
            # Without the first cell, which has the row's name.
            yield Row(reveal.name, question, row[1:end], head[1:end], not has_ratio)


def _choice(row: Row) -> tuple[list[Json], list[str]]:
    """Return the data of a question with options for the page's script, and a picture for each.

    The script shows the picture of the option that the reader has chosen.
    """
    *_, measured = row.cells  # the last cell has the right option
    templates = []
    for option in row.question.choices:
        guess = Guess(row.question.item, option, measured)
        drawn = picture.of_choice(guess, row.question.choices)
        words = f"<p>{escape(translated('{words}.', words=guess.words))}</p>"
        templates.append(f'<template data-option="{escape(option)}">{drawn}{words}</template>')
    return [{"guess": row.guess, "name": row.question.item, "right": measured}], templates


def _numbers(rows: Sequence[Row]) -> tuple[list[Json], list[str]]:
    """Return the questions' data for the page's script, and pictures on several axes.

    The script puts the guess into the picture whose axis has a place for it.
    """
    questions = []
    several = []
    for row in rows:
        # The last two numbers of a row; in front of them there may be the reader's guess.
        predicted, measured = [float(cell.replace(",", "")) for cell in row.cells[-2:]]
        unit = row.question.unit
        first, second = row.heads[-2:]  # such as "predicted" and "measured"
        questions.append(_question(row, predicted, measured))
        # The picture needs some guess to be drawn, and the script puts the reader's in its place.
        some_guess = measured if math.isfinite(measured) else 1.0
        guess = Guess(row.question.item, some_guess, measured, second, unit=unit)
        numbers = (predicted, measured)
        several.append(picture.Shown(guess, *numbers, (first, second), row.are_estimates))
    templates = []
    for axis, drawn in picture.for_any_guess(several):
        data = escape(json.dumps(asdict(axis)))
        templates.append(f'<template data-axis="{data}">{drawn}</template>')
    return questions, templates


def _question(row: Row, predicted: float, measured: float) -> Json:
    """Return what the page's script needs to judge a guess at the number in that row."""
    unit = row.question.unit
    first, second = row.heads[-2:]
    within = bounds(measured, unit)
    if row.are_estimates:
        within = bounds_between(predicted, measured, unit)
    return {
        "guess": row.guess,
        "name": row.question.item,
        "unit": unit,
        "measured": measured if math.isfinite(measured) else None,
        "other": predicted if row.are_estimates else None,
        "words": in_words(measured, unit),
        "kind": second,
        "predicted": in_words(predicted, unit),
        # The same for a picture that keeps the unit; see Axis.unit_for.
        "kept": {
            "words": in_words(measured, f"{unit} "),
            "predicted": in_words(predicted, f"{unit} "),
        },
        "first": first,  # what the other number is called
        "whole": whole_judged_by(measured, unit),
        "counted": is_counted(measured, unit),
        # Each is like (28.0, 32.0, "spot on"). Those of an infinite number are left out: they are
        # no JSON, and nobody can guess within them.
        "bounds": [bound for bound in within if math.isfinite(bound[0])],
    }


def tables() -> str:
    """Return the tables of `typed`, the colours and the field's words, as a module of JavaScript.

    With these tables, the pages read what is typed as Python does in a notebook.
    """
    of_python = {
        "longest": refusals.LONGEST,
        "shown": refusals.SHOWN,
        "largestWhole": typed.LARGEST_WHOLE,
        "inFullBelow": IN_FULL_BELOW,
        "workedOut": WORKED_OUT.pattern,
        "how": answer_units.HOW,
        "howMany": answer_units.HOW_MANY,
        "whole": answer_units.WHOLE,
        "range": refusals.RANGE.pattern,
        "operations": typed.OPERATIONS,
        "thousand": typed.THOUSAND,
        "times": typed.TIMES,
        "between": typed.BETWEEN,
        # SIGNS has the numbers of characters, as str.translate wants them.
        "signs": {chr(sign): chr(ascii_sign) for sign, ascii_sign in typed.SIGNS.items()},
        "forms": typed.FORMS,
        "otherUnits": answer_units.OTHER_UNITS,
        "endings": answer_units.ENDINGS,
        "aSecond": answer_units.A_SECOND,
        "eachSecond": answer_units.EACH_SECOND,
        "percent": answer_units.PERCENT,
        "inPercent": answer_units.IN_PERCENT,
        "fractions": typed.FRACTIONS,
        "about": typed.ABOUT,
        "measureWord": typed.MEASURE_WORD,
        # In JavaScript, ^ and $ are the beginning and the end of the text.
        "term": typed.TERM.pattern.replace(r"\A", "^").replace(r"\Z", "$"),
        "colours": picture.COLOUR_OF_WORD,
        "labels": labels(),  # of the field
    }
    return f"export default {json.dumps(of_python, indent=1)};\n"
