"""Has the package's own sentences said in a language: in a kernel, a server, or a page's build."""

from collections.abc import Iterator
from contextlib import contextmanager

from course_utils.core.say.language import speak
from course_utils.stage.translations import catalogue
from course_utils.stage.translations.sources import EXERCISES, SENTENCES_OF_CODE

ALL = (EXERCISES, SENTENCES_OF_CODE)


def sentences_in(language: str, sources: tuple[str, ...] = ALL) -> dict[str, str]:
    """Return the translations of what the package says, by the English, without stale ones."""
    found = {}
    for source in sources:
        found |= catalogue.translations(language, source).by_english
    return found


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Have sentences said in this language for a while, as a page of it is made; then English."""
    speak(sentences_in(language))
    try:
        yield
    finally:
        speak({})
