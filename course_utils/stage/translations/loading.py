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
        shown = translated(
            text,
            lambda words: self._edition.translations.find(context, words),
            self._edition.shown_language,
        )
        return shown, path, is_as_it_was
