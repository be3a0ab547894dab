"""An IPython extension: the sentences of the package come in the reader's language.

`course_utils.stage.kernel` loads it in a kernel whose server shows the course in another language.
"""

from IPython.core.interactiveshell import InteractiveShell

from course_utils.core.say.language import speak
from course_utils.stage.translations import catalogue, language
from course_utils.stage.translations.sources import EXERCISES, SENTENCES_OF_CODE


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Have sentences translated from now on. IPython calls this when the kernel starts."""
    try:
        speak(sentences_in(language.chosen()))
    except ValueError:  # no language of the course, so its sentences stay English
        return


def sentences_in(spoken: str) -> dict[str, str]:
    """Return the translations of what the package says, by the English, without stale ones."""
    found = {}
    for source in (EXERCISES, SENTENCES_OF_CODE):
        found |= catalogue.translations(spoken, source).by_english
    return found
