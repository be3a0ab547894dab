"""The lines of the reader's record that bring questions back.

They are in the same file as all others: `core.record` says what it is and how it is written.
"""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from course_utils.core import record
from course_utils.core.say import Guess

# Matches '2026-01-31 floats recalled {"asked": "floats.stops", …}'.
RECALLED = re.compile(r"^(\d{4}-\d\d-\d\d) \w+ recalled (\{.*\})$", re.ASCII | re.MULTILINE)
DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Recalled:
    """An answer to a question that has come back; `guess.asked` is the question's name.

    `seed` is that by which the question's sizes were drawn. It `is_extra` if the question was asked
    before it was due.
    """

    day: date
    guess: Guess
    is_right: bool
    seed: int
    is_extra: bool = False


def note_recalled(
    folder: Path,
    notebook: str,
    guess: Guess,
    seed: int,
    *,
    is_right: bool,
    is_extra: bool = False,
) -> None:
    """Add a line with the answer to a question that has come back."""
    fields = {name: value for name, value in vars(guess).items() if value not in (None, "")}
    fields |= {"seed": seed, "right": is_right}
    if is_extra:
        fields["extra"] = True
    record.add(folder, f"{notebook} recalled {json.dumps(fields, ensure_ascii=False)}")


def recalled(folder: Path) -> list[Recalled]:
    """Return the answers to questions that have come back, in the order of the record."""
    answers = []
    for day, as_json in RECALLED.findall(record.text(folder)):
        # A line that somebody has edited raises one of these, or has values of other types.
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            fields = json.loads(as_json)
            seed = fields.pop("seed")
            is_right = fields.pop("right")
            is_extra = fields.pop("extra", False)
            guess = record.guess_in(json.dumps(fields))
            expected = ((guess.asked, str), (seed, int), (is_right, bool), (is_extra, bool))
            if all(isinstance(value, kind) for value, kind in expected):
                when = date.fromisoformat(day)
                answers.append(Recalled(when, guess, is_right, seed, is_extra))
    return answers


def first_days(folder: Path) -> dict[tuple[str, str], date]:
    """Return the day of the first line on each guess and each turn.

    A guess is named by its notebook and what was asked, such as ("floats", "one matrix"), or by the
    cell in whose picture it was drawn; a turn by its check, as in ("floats", "encode").
    """
    first: dict[tuple[str, str], date] = {}
    for line in record.text(folder).splitlines():
        name = _name_in(line)
        match = DAY.match(line)
        if name and match:
            with suppress(ValueError):  # such as 2026-02-31
                day = date.fromisoformat(match[0])
                first[name] = min(day, first.get(name, day))
    return first


def _name_in(line: str) -> tuple[str, str] | None:
    """Return the name of the guess or the turn that the line is on; None if it is on neither."""
    turn = record.LINE.match(line)
    if turn:
        chapter, _, exercise = turn[2].partition(".")
        return chapter, exercise
    guess = record.GUESSED.match(line)
    if guess:
        with suppress(ValueError, TypeError, RecursionError):  # a line that somebody has edited
            said = record.guess_in(guess[2])
            return guess[1], said.cell or str(said.asked)
    return None
