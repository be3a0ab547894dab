"""The pages of a language lie beside the English ones, and each leads to the same page in another.

So the browser keeps guesses in one place, whatever the language.
"""

from html import escape

from course_utils.stage.translations import catalogue, language
from course_utils.stage.translations.edition import ENGLISH


def ending(spoken: str) -> str:
    """Return how the names of a language's pages end.

    >>> ending("en"), ending("zh_CN")
    ('.html', '.zh_CN.html')
    """
    return ".html" if spoken == ENGLISH else f".{spoken}.html"


def there_are() -> list[str]:
    """Return the languages in which pages are written: English, and those with anything in them."""
    others = [spoken for spoken in catalogue.languages() if language.has_anything(spoken)]
    return [ENGLISH, *others]


def switch(stem: str, spoken: str) -> str:
    """Return links to the same page in the other languages, behind a dot; "" if there are none."""
    links = []
    for other in there_are():
        if other != spoken:
            tag = other.replace("_", "-")
            name = escape(language.NAMES.get(other, other))
            href = f"{stem}{ending(other)}"
            links.append(f' · <a href="{href}" lang="{tag}" hreflang="{tag}">{name}</a>')
    return "".join(links)
