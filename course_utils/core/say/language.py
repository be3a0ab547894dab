"""A reader's sentences in their own language: whole templates with named gaps, as gettext has them.

A sentence is never made of pieces, because another language orders them differently. English needs
no catalogue. For another language, what surrounds a notebook calls `speak`.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

# A template has a space beside a gap for numbers and Latin letters. If Chinese fills the gap, there
# is none: 你的猜测 和 实测 becomes 你的猜测和实测.
_SPACE_IN_CHINESE = re.compile(
    r"(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])"
)
# By the English template. It is one dict for the whole kernel, since a kernel has one reader.
_translations: dict[str, str] = {}


def speak(translations: Mapping[str, str]) -> None:
    """From now on, use these translations; with none, English."""
    _translations.clear()
    _translations.update(translations)


@contextmanager
def speaking(translations: Mapping[str, str]) -> Iterator[None]:
    """Use these translations for a while, and then again those that were used before."""
    before = dict(_translations)
    speak(translations)
    try:
        yield
    finally:
        speak(before)


def in_english() -> AbstractContextManager[None]:
    """Say everything in English for a while, as for a picture whose font has no other letters."""
    return speaking({})


def translated(english: str, **gaps: object) -> str:
    """Return the sentence in the reader's language, with `gaps` filled in.

    Whoever lists what is to be translated reads the code, and not the sentences that were made. So
    `english` is a literal, or a literal marked by `template`, or the advice of an exercise. What
    has no translation is returned in English.

    >>> translated("{number} too low", number="1,024")
    '1,024 too low'
    """
    sentence = _translations.get(english, english)
    if not gaps:  # advice without gaps may have braces of its own, as {name: tensor} has
        return sentence
    filled = sentence.format(**gaps)
    return _SPACE_IN_CHINESE.sub("", filled) if _translations else filled


def in_a_row(*sentences: str) -> str:
    """Return whole sentences as one text, without those that are empty.

    What stands between two of them depends on the language: in Chinese, nothing.

    >>> in_a_row("One.", "", "Two.")
    'One. Two.'
    """
    text = ""
    for sentence in sentences:
        if text and sentence:
            text = translated("{text} {sentence}", text=text, sentence=sentence)
        else:
            text += sentence
    return text


def template(english: str) -> str:
    """Mark a sentence that is kept, as a constant is, and translated later. Returns it as it is."""
    return english
