"""Writes translated pages beside the English ones, for those who read on a code-hosting page."""

import re
from pathlib import Path

from course_utils.core.record import write_whole
from course_utils.stage.translations import catalogue
from course_utils.stage.translations.edition import Edition
from course_utils.stage.translations.sources import PAGES, ROOT
from course_utils.stage.translations.units import TO_A_LANGUAGE


def write(language: str) -> None:
    """Write the pages of which anything is translated."""
    for path, text in pages(language).items():
        write_whole(path, text.encode())


def pages(language: str) -> dict[Path, str]:
    """Return the pages of a language by their paths."""
    translated = {}
    for page in PAGES:
        edition = Edition(language, Path(page).stem)
        if not edition.is_english:
            translated[page] = edition.page((ROOT / page).read_text(encoding="utf-8"))
    found = {}
    for page, text in translated.items():
        path = ROOT / page
        back = f"[English]({path.name})"  # the way to the page in English
        others = re.sub(TO_A_LANGUAGE.pattern + r"\n", "", text)  # the way here is not needed
        linked = _with_links(others, language, [Path(other).name for other in translated])
        found[path.with_name(named(path.name, language))] = f"{back}\n\n{linked}"
    return found


def named(name: str, language: str) -> str:
    """Return the name of a page in a language: "README.zh.md", with the country if there are two.

    >>> named("README.md", "zh_CN")
    'README.zh.md'
    """
    spoken, _, _ = language.partition("_")
    alike = [other for other in catalogue.languages() if other.partition("_")[0] == spoken]
    stem, _, suffix = name.rpartition(".")
    return f"{stem}.{language if len(alike) > 1 else spoken}.{suffix}"


def _with_links(text: str, language: str, names: list[str]) -> str:
    """Return the text with its links leading to those pages that are translated, too."""
    for name in names:
        link = rf"(\]\((?:notebooks/|\.\./)?){re.escape(name)}(?=[#)])"
        text = re.sub(link, rf"\1{named(name, language)}", text)
    return text
