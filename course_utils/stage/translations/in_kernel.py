"""An IPython extension: the sentences of the package come in the reader's language.

`course_utils.stage.kernel` loads it in a kernel whose server shows the course in another language.
"""

from IPython.core.interactiveshell import InteractiveShell

from course_utils.core.say.language import speak
from course_utils.stage.translations import language
from course_utils.stage.translations.spoken import sentences_in


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Have sentences translated from now on. IPython calls this when the kernel starts."""
    try:
        speak(sentences_in(language.chosen()))
    except ValueError:  # no language of the course, so its sentences stay English
        return
