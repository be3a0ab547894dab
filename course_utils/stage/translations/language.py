"""Which language the course is shown in: the one that was asked for, or else the system's.

`make lab LANG=zh_CN` asks for one. The same variable in the environment says the system's language,
as LC_ALL and LC_MESSAGES do, and counts only if the course has something in it.
"""

import os
from collections.abc import Mapping

from course_utils.stage.translations import catalogue
from course_utils.stage.translations.catalogue import languages
from course_utils.stage.translations.edition import ENGLISH, Edition

ASKED = "COURSE_LANG"  # the variable in which the Makefile passes on its LANG
OF_THE_SYSTEM = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first one that is set counts
NAMES = {ENGLISH: "English", "zh_CN": "中文"}  # as its readers call it; others have their code


def chosen(environment: Mapping[str, str] = os.environ) -> str:
    """Return the language, such as "zh_CN", or "en".

    ValueError if there is no such language, unless it is only the system's.
    """
    asked = environment.get(ASKED, "")
    if asked:
        language = known(asked)
        if not language:
            there_is = ", ".join([ENGLISH, *languages()])
            raise ValueError(f"The course does not exist in {asked}. There is: {there_is}.")
        return language
    language = known(_of_the_system(environment))
    return language if language and has_anything(language) else ENGLISH


def _of_the_system(environment: Mapping[str, str]) -> str:
    for name in OF_THE_SYSTEM:
        if environment.get(name):
            return environment[name]
    return ""


def known(locale: str) -> str:
    """Return the course's language for a locale, or "".

    >>> known("en_GB.UTF-8"), known("zh_CN.UTF-8"), known("zh_TW"), known("xx")
    ('en', 'zh_CN', 'zh_CN', '')
    """
    name, _, _ = locale.replace("-", "_").partition(".")
    spoken, _, _ = name.partition("_")
    if spoken in (ENGLISH, "C", "POSIX"):
        return ENGLISH
    for language in languages():
        if language == name:
            return language
    # Of a country that has no edition of its own, whoever speaks the language gets the other one's.
    alike = [language for language in languages() if language.partition("_")[0] == spoken]
    return alike[0] if alike else ""


def has_anything(language: str) -> bool:
    """Whether anything at all is translated."""
    names = [path.stem for path in (catalogue.FOLDER / language).glob("*.po")]
    return any(not Edition(language, name).is_english for name in names)


def others(spoken: str) -> list[tuple[str, str]]:
    """Return the names and codes of the other languages that have anything."""
    there_are = [ENGLISH, *(other for other in languages() if has_anything(other))]
    return [(NAMES.get(other, other), other) for other in there_are if other != spoken]


def pass_on(spoken: str) -> None:
    """Let the kernels of this server know the language: they inherit its environment."""
    os.environ[ASKED] = spoken


def how_to_change(language: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a sentence on the language, if nobody has asked for it; else ""."""
    if language == ENGLISH or environment.get(ASKED):
        return ""
    name = NAMES.get(language, language)
    return (
        f"The course is shown in {name}, your system's language. "
        f"In English: make lab LANG={ENGLISH}. Your answers stay."
    )
