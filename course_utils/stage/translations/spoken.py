"""Has the package's own sentences said in a language: in a kernel, a server, or a page's build."""

from contextlib import AbstractContextManager

from course_utils.core.say import language
from course_utils.stage.translations import catalogue
from course_utils.stage.translations.sources import EXERCISES, SENTENCES_OF_CODE

ALL = (EXERCISES, SENTENCES_OF_CODE)


def sentences_in(spoken: str, sources: tuple[str, ...] = ALL) -> dict[str, str]:
    """Return the translations of what the package says, by the English, without stale ones."""
    found = {}
    for source in sources:
        found |= catalogue.translations(spoken, source).by_english
    return found


def speaking(spoken: str) -> AbstractContextManager[None]:
    """Have sentences said in this language for a while, as a page of it is made."""
    return language.speaking(sentences_in(spoken))
