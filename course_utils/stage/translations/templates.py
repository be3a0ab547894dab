"""Translates the templates of pages: the words inside an element are a unit, placeholders and all.

So a template stays plain English, and its translation is checked like any other: what Jinja puts
in, and every tag, has to be in it as often.
"""

import re
from collections.abc import Callable, Iterator

from course_utils.stage.translations.units import ENGLISH

CONTENTS = "contents"  # the catalogue of all templates
PAGE = "pages/page.html"
ACCOUNT_PAGE = "pages/account.html"
RECALL_PAGE = "pages/recall_page/recall.html"
NAPKIN_PAGE = "recall/napkin.html"  # on paper
TEMPLATES = (
    "workspace/contents.html",
    "front/parts.html",
    "pages/contents.html",
    PAGE,
    ACCOUNT_PAGE,
    RECALL_PAGE,
    "workspace/recall_pages/three.html",
    "workspace/recall_pages/napkin.html",
    "workspace/recall_pages/parts.html",
    NAPKIN_PAGE,
)
# What the site says of itself, to search engines as well.
DESCRIPTION = (
    "An interactive course on what it costs to train a neural network: bytes, FLOPs and seconds, "
    "from a single float to a run on thousands of GPUs."
)
# What stands below a guess, and over what tells its answer, until the guess's cell has run.
WAITS = (
    "Your guess comes first: run the cell that asks for it (Shift+Enter). "
    "What follows comes up with Show."
)
# Whole sentences that Python fills in; `sentences` does it.
MINUTES = "{minutes} minutes."
MINUTES_BEYOND = "{minutes} minutes, and {beyond} beyond."
NEEDS = "You need: {needs}."
NEEDS_NOTEBOOK = "You need: notebook {needs}."
NEEDS_NOTEBOOKS = "You need: notebooks {needs}."
START = "Start: {number}, {title}"
GO_ON = "Continue: {number}, {title}"
AND = "{items} and {last}"
COMMA = "{items}, {next}"
IN_A_ROW = "{text} {sentence}"  # in Chinese, nothing stands between two sentences
# An answer can be shown without a guess, so nothing is said of guesses.
FINISHED = (
    "You have finished notebook {number}: on its main path, all turns are right and all answers "
    "have been shown."
)
ALL_FINISHED = (
    "You have finished all eight notebooks: on their main paths, all turns are right and all "
    "answers have been shown."
)
TAKE_NAPKIN = "Take the napkin: ten questions"
SENTENCES = (
    MINUTES,
    MINUTES_BEYOND,
    NEEDS,
    NEEDS_NOTEBOOK,
    NEEDS_NOTEBOOKS,
    START,
    GO_ON,
    AND,
    COMMA,
    IN_A_ROW,
    FINISHED,
    ALL_FINISHED,
    TAKE_NAPKIN,
    DESCRIPTION,
    # What stands around the text, on a page, in a deck, and below a guess in a copy.
    "Imports",
    "Sections",
    "Go on",
    "Show everything, guesses aside",
    "Your guess?",
    "Your guess ({unit})?",
    "Your answer?",
    WAITS,
)
# An element that is translated as a whole, whatever is inside it; an item of a list that is only a
# text; or a macro that is one.
ELEMENT = re.compile(
    r"(?P<begin><(?P<tag>p|h[123]|summary|dt|dd|figcaption|title|nav)\b[^<>]*>)"
    r"(?P<words>.*?)(?P<end></(?P=tag)>)"
    r"|(?P<item><li>)(?P<words_of_item>(?:(?!<(?:p|h[1-6])\b).)*?)(?=</li>)"
    r"|(?P<macro>{% macro \w+\(\) %}\n)(?P<text>[^<{].*?)(?=\n{%- endmacro)",
    re.DOTALL,
)
NO_WORDS = re.compile(r"{{.*?}}|{%.*?%}|<[^>]*>|&\w+;|\$\w+", re.DOTALL)
WORD = re.compile(r"[A-Za-z]{2}")
HTML = '<html lang="en">'


def units_of(template: str) -> Iterator[str]:
    """Yield the units of a template.

    >>> list(units_of('<h1>Start</h1><p>{{ said }}</p>'))
    ['Start']
    """
    for match in ELEMENT.finditer(template):
        words = _words(match)
        if _has_words(words):
            yield words


def translated(template: str, find: Callable[[str], str | None], tag: str) -> str:
    """Return the template in another language, whose tag is such as "zh-CN".

    An element whose words have no translation is marked as English.
    """

    def shown(match: re.Match[str]) -> str:
        words = _words(match)
        if not _has_words(words):
            return match[0]
        translation = find(words)
        if match["macro"]:
            return match["macro"] + (translation or words)
        begin = match["begin"] or match["item"]
        if translation is None:
            begin = begin.removesuffix(">") + f' lang="{ENGLISH}">'
        return begin + (translation or words) + (match["end"] or "")

    return ELEMENT.sub(shown, template).replace(HTML, f'<html lang="{tag}">')


def _words(match: re.Match[str]) -> str:
    """Return what stands in an element or a macro that was found."""
    return match["words"] or match["words_of_item"] or match["text"] or ""


def _has_words(text: str) -> bool:
    return bool(WORD.search(NO_WORDS.sub("", text)))
