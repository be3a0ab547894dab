"""What is said of a text that is no answer: what is wrong with it, and what an answer looks like.

The pages without a kernel say the same in JavaScript: see numbers.js.
"""

import re
from collections.abc import Callable

from course_utils.core.say.answer_units import HOW, HOW_MANY, OTHER_UNITS, WHOLE, first_word
from course_utils.core.say.closeness import how_many_in
from course_utils.core.say.language import in_a_row, translated
from course_utils.core.say.open_guesses import with_unit
from course_utils.core.say.wording import Number, number_text

LONGEST = 60  # characters of an answer
SHOWN = 20  # characters of it that a sentence repeats
# Two numbers, with what people write between the two ends of a range.
RANGE = re.compile(r"(.+?)\s*(?:[-–—~]|\.\.+|\s(?:to|or)\s)\s*(.+)", re.DOTALL)
NUMBER_THEN_WORDS = re.compile(r"(.*\d[.,]?)\s*(\D+)", re.DOTALL)
WORDS_THEN_NUMBER = re.compile(r"(\D+)(\d.*)", re.DOTALL)


def no_number(
    typed: str, unit: str, *, is_number: Callable[[str], bool], is_too_large: bool
) -> str:
    """Return the sentences on a text that is no number: what is wrong, and how to write one.

    `is_number` says whether a part of the text would be an answer by itself.
    """
    return in_a_row(_fault(typed, unit, is_number, is_too_large=is_too_large), _how(unit))


def out_of_bounds(number: Number, unit: str) -> str:
    """Return the sentences on a number that this unit cannot have; empty if it can have it."""
    fault = _out_of_bounds(number, unit)
    return in_a_row(fault, _how(unit)) if fault else ""


def _out_of_bounds(number: Number, unit: str) -> str:
    # Without a unit, the number may be an exponent, for example, and those can be below 0.
    if unit and number < 0:
        return translated("It cannot be below 0: {number}.", number=with_unit(number, unit))
    if unit == "share" and number > 1:
        return translated("A share is between 0 and 1; with a % sign, between 0 % and 100 %.")
    most = how_many_in(unit)
    if (most or unit in WHOLE) and number != int(number):
        return translated("{number} is not a whole number.", number=number_text(number))
    if most and number > most:
        return translated("{number} is more than there are.", number=number_text(number))
    return ""


def _fault(typed: str, unit: str, is_number: Callable[[str], bool], *, is_too_large: bool) -> str:
    """Return what is wrong with a text that is no number."""
    if not typed:
        return translated("Type a number.")
    if len(typed) > LONGEST:
        return translated(
            "{typed} is too long: only {most} characters are read.",
            typed=_quoted(typed),
            most=f"{LONGEST}",
        )
    if is_too_large:
        return translated("{typed} is too large.", typed=_quoted(typed))
    ends = RANGE.fullmatch(typed)
    if ends and is_number(ends[1]) and is_number(ends[2]):
        return translated("{typed} is two numbers, and the answer is one.", typed=_quoted(typed))
    after = NUMBER_THEN_WORDS.fullmatch(typed)
    if after and _has_letters(after[2]) and is_number(after[1]):
        return _cut_short(after[1], after[2].strip(), unit) or _wrong_unit(
            _quoted(after[2].strip()), unit
        )
    before = WORDS_THEN_NUMBER.fullmatch(typed)
    if before and is_number(before[2]):
        return translated(
            "Leave out {words}, and type the number alone.", words=_quoted(before[1].strip())
        )
    return translated("{typed} is not a number here.", typed=_quoted(typed))


def _has_letters(words: str) -> bool:
    """Whether the words may be a unit."""
    return "%" in words or any(letter.isalpha() for letter in words)


def _cut_short(number: str, letters: str, unit: str) -> str:
    """Return the sentence on a unit of bytes without its B, as in 44 G; empty for other letters."""
    if f"{letters}b".lower() not in OTHER_UNITS.get(first_word(unit), {}):
        return ""
    prefix = "k" if letters in "kK" else letters.capitalize()  # but KiB
    meant = f"{number.strip()} {prefix}B"
    return translated(
        "{words} is no unit here. Do you mean {meant}?", words=_quoted(letters), meant=meant
    )


def _wrong_unit(words: str, unit: str) -> str:
    """Return the sentence on a unit that was typed, and that does not lead to the one asked for."""
    if not unit:
        return translated(
            "{words} does not fit here, because the answer is a number without a unit.",
            words=words,
        )
    if unit == "share":
        return translated("{words} does not fit here, because the answer is a share.", words=words)
    if how_many_in(unit):
        return translated("{words} does not fit here, because the answer is a count.", words=words)
    return translated(
        "{words} does not fit here, because the answer is in {unit}.", words=words, unit=unit
    )


def _quoted(typed: str) -> str:
    """Return the text in quotes, or its beginning."""
    beginning = typed if len(typed) <= SHOWN else f"{typed[:SHOWN].rstrip()}…"
    quoted = repr(beginning)  # with double quotes if a quote is in the text
    inside = quoted[1:-1]
    if quoted.startswith("'"):
        return translated("'{typed}'", typed=inside)
    return translated('"{typed}"', typed=inside)


def _how(unit: str) -> str:
    """Return how an answer in that unit can be written."""
    most = how_many_in(unit)
    if most:
        return translated(HOW_MANY, most=number_text(most))
    return translated(HOW.get(first_word(unit), HOW[""]))
