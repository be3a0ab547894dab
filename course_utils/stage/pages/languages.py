"""The pages of a language lie beside the English ones, and each leads to the same page in another.

So the browser keeps guesses in one place, whatever the language.
"""

import re
from html import escape

from course_utils.stage.translations import language
from course_utils.stage.translations.edition import ENGLISH
from course_utils.stage.translations.sentences import said

# What stands around the text of each page, and links to a page that exists in each language.
FIXED = re.compile(
    r"(<summary>|<button[^<>]*>)(Imports|Sections|Go on|Show everything, guesses aside)(?=</)"
)
TO_A_PAGE = re.compile(r'(href="(?:\d\d_\w+|glossary|index|account|recall))\.html')


def ending(spoken: str) -> str:
    """Return how the names of a language's pages end.

    >>> ending("en"), ending("zh_CN")
    ('.html', '.zh_CN.html')
    """
    return ".html" if spoken == ENGLISH else f".{spoken}.html"


def there_are() -> list[str]:
    """Return the languages in which pages are written: English, and those with anything in them."""
    return [ENGLISH, *(code for _, code in language.others(ENGLISH))]


def within(html: str, spoken: str) -> str:
    """Return the HTML in that language: its links lead to such pages, and its buttons are in it.

    >>> within('<a href="glossary.html#gb">', "zh_CN"), within('<a href="style.html">', "zh_CN")
    ('<a href="glossary.zh_CN.html#gb">', '<a href="style.html">')
    """
    linked = TO_A_PAGE.sub(rf"\1{ending(spoken)}", html)
    return FIXED.sub(lambda match: match[1] + said(spoken, match[2]), linked)


def switch(stem: str, spoken: str) -> str:
    """Return links to the same page in the other languages, behind a dot; "" if there are none."""
    links = []
    for name, other in language.others(spoken):
        tag = other.replace("_", "-")
        href = f"{stem}{ending(other)}"
        links.append(f' · <a href="{href}" lang="{tag}" hreflang="{tag}">{escape(name)}</a>')
    return "".join(links)
