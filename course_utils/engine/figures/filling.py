"""What a picture refuses that a reader fills in: in one sentence, without the course's own lines.

A reader types names and values into the call, and should not have to find the sentence below a
traceback.
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real

from course_utils.core.say.language import template, translated

UNNAMED = template(
    "Every value is named here, as in {example}. {value} has no name in front, with a =."
)
NO_BOX = template("There is no box {name}. There are: {names}.")
NO_PART = template("There is no part {name}. There are: {names}.")
TEXT_FOR_NUMBER = template(
    "{name} wants a number, as in {example}, and {value} is text: leave out the quotes."
)
NO_NUMBER = template("{name} wants a number, as in {example}, and {value} is none.")
NO_PAIR = template(
    "{name} wants a pair, its inputs and then its outputs, as in {example}; {value} is none."
)
NO_SIZE = template(
    "{name} wants its inputs and outputs as numbers or as text in quotes, as in {example}; {value} "
    "is neither."
)
NO_WORDS = template("{name} wants a size as text in quotes, as in {example}; {value} is none.")
NO_STAGES = template(
    "A dict is wanted that maps each part to its first stage, a whole number, as in {example}; "
    "{value} is none."
)
NO_STAGE = template(
    "{name} wants its first stage, a whole number, as in {example}; {value} is none."
)
LONGEST = 60  # characters of a value that a sentence quotes


def refusal(sentence: str) -> ValueError:
    """Return an error of which a notebook shows the sentence alone."""
    error = ValueError(sentence)
    error._render_traceback_ = lambda: [sentence]  # IPython shows these lines as the traceback
    return error


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
        raise refusal(translated(UNNAMED, example=example, value=_quoted(unnamed[0])))
    for name in named:
        if name not in names:
            raise refusal(translated(unknown, name=repr(name), names=", ".join(names)))


def refuse_other_than_numbers(filled: Mapping[str, object], example: str) -> None:
    """Raise a refusal for a value that is no number."""
    for name, value in filled.items():
        if not isinstance(value, Real):
            sentence = TEXT_FOR_NUMBER if isinstance(value, str) else NO_NUMBER
            raise refusal(translated(sentence, name=name, example=example, value=_quoted(value)))


def refuse_other_than_pairs(filled: Mapping[str, object], example: str) -> None:
    """Raise a refusal for a value that is no pair of sizes, each of them a number or a text."""
    for name, value in filled.items():
        is_pair = isinstance(value, tuple | list) and len(value) == 2
        if not is_pair:
            raise refusal(translated(NO_PAIR, name=name, example=example, value=_quoted(value)))
        for size in value:
            if not isinstance(size, Real | str):
                said = translated(NO_SIZE, name=name, example=example, value=_quoted(size))
                raise refusal(said)


def refuse_other_than_text(filled: Mapping[str, object], example: str) -> None:
    """Raise a refusal for a size that is neither a text nor a number, which is written as one."""
    for name, value in filled.items():
        if not isinstance(value, Real | str):
            raise refusal(translated(NO_WORDS, name=name, example=example, value=_quoted(value)))


def refuse_other_than_stages(stages: object, example: str) -> None:
    """Raise a refusal for what is no dict, or for a stage that is no whole number."""
    if not isinstance(stages, Mapping):
        raise refusal(translated(NO_STAGES, example=example, value=_quoted(stages)))
    for name, value in stages.items():
        if not isinstance(value, Integral):
            raise refusal(translated(NO_STAGE, name=name, example=example, value=_quoted(value)))


def size_text(size: Real | str) -> str:
    """Return a size as a box shows it: a text as it is, a number with commas."""
    return size if isinstance(size, str) else f"{size:,}"


def _quoted(value: object) -> str:
    """Return a value as a sentence quotes it: short, and on one line."""
    words = " ".join(repr(value).split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}…"
