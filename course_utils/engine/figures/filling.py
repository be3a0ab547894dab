"""What a picture refuses that a reader fills in: in one sentence, without the course's own lines.

A reader types names and values into the call, and should not have to find the sentence below a
traceback.
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real

from course_utils.core.say import number_text
from course_utils.core.say.alone import alone
from course_utils.core.say.language import template, translated

UNNAMED = template("Every value is named here, as in {example}. Put a name and = before {value}.")
NO_BOX = template("There is no box {name}. There are: {names}.")
NO_PART = template("There is no part {name}. There are: {names}.")
TEXT_FOR_NUMBER = template(
    "{name} wants a number, as in {example}, and {value} is text: leave out the quotes."
)
NO_NUMBER = template("{name} wants a number, as in {example}, and {value} is none.")
LONGEST = 60  # characters of a value that a sentence quotes


def refusal(sentence: str) -> ValueError:
    """Return an error of which a notebook shows the sentence alone."""
    return alone(ValueError(sentence), sentence)


def refuse_names(
    names: Sequence[str],
    unnamed: Sequence[object],
    named: Iterable[str],
    example: str,
    unknown: str = NO_BOX,
) -> None:
    """Raise a refusal for a value without a name, or for a name that is none of `names`.

    `example` is an argument as it should be, such as "input=768". `unknown` is the sentence on a
    name, as a template.
    """
    if unnamed:
        raise refusal(translated(UNNAMED, example=example, value=quoted(unnamed[0])))
    for name in named:
        if name not in names:
            raise refusal(translated(unknown, name=repr(name), names=", ".join(names)))


def refuse_other_than_numbers(filled: Mapping[str, object], example: str) -> None:
    """Raise a refusal for a value that is no number."""
    for name, value in filled.items():
        if not isinstance(value, Real):
            sentence = TEXT_FOR_NUMBER if isinstance(value, str) else NO_NUMBER
            raise refusal(translated(sentence, name=name, example=example, value=quoted(value)))


def size_text(size: Real | str) -> str:
    """Return a size as a box shows it: a text as it is, a number with commas."""
    return size if isinstance(size, str) else number_text(size)


def quoted(value: object) -> str:
    """Return a value as a sentence quotes it: short, and on one line."""
    words = " ".join(repr(value).split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}…"
