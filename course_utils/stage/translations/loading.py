"""Loads the templates of pages in another language."""

from collections.abc import Callable

from jinja2 import Environment, FileSystemLoader

from course_utils.stage.translations.catalogue import FOLDER
from course_utils.stage.translations.edition import Edition
from course_utils.stage.translations.templates import CONTENTS, translated

STAGE = FOLDER.parent  # a template's context is its path below this folder


def in_language(environment: Environment, spoken: str) -> Environment:
    """Return the environment with its templates in that language."""
    if Edition(spoken, CONTENTS).is_english:
        return environment
    return environment.overlay(loader=Loader(environment.loader.searchpath, spoken))


def in_edition(edition: Edition, context: str, template: str) -> str:
    """Return a template's text translated, as far as the edition of all templates has it."""
    if edition.is_english:
        return template
    find = edition.translations.find
    return translated(template, lambda words: find(context, words), edition.shown_language)


class Loader(FileSystemLoader):
    """Loads templates translated."""

    def __init__(self, folders: list[str], spoken: str) -> None:
        """Make it for templates in these folders."""
        super().__init__(folders)
        self._edition = Edition(spoken, CONTENTS)

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        """Return the template's text, the path of its file, and whether that is as it was."""
        text, path, is_as_it_was = super().get_source(environment, template)
        # Jinja gives a path with slashes on every system.
        context = path.removeprefix(f"{STAGE.as_posix()}/")
        shown = in_edition(self._edition, context, text)
        return shown, path, is_as_it_was
