"""What the contents page says of the reader's accountant: which terms are theirs, and are right.

A term that was right when it was kept may have been edited since. So whenever the file's text is
not the one that was judged last, it is judged again. That runs the reader's file, and takes the
seconds in which torch is loaded. So a process of its own does it, and not the server.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from markupsafe import Markup

from course_utils.core import keeping
from course_utils.core.accountant_file import NAME, TERMS, program_text, theirs
from course_utils.core.record import HIDDEN

MOST_S = 60  # then the system ends the process, since the reader's file may never end
PROGRAM = """
import signal
signal.alarm({})
from pathlib import Path
from course_utils.chapters.accountant.readers_file import judge
judge(Path.cwd())
"""
PACKAGE = str(Path(__file__).parents[3])  # the folder that has the package


class Judge:
    """The verdicts on the terms of the file in the folder `mine`."""

    def __init__(self, mine: Path) -> None:
        self._mine = mine
        self._text = ""  # what the process judges, or has judged
        self._process: subprocess.Popen | None = None
        self._said = mine / HIDDEN / "judging.txt"  # what the process writes to its stderr

    def wrong(self, text: str) -> dict[str, str] | None:
        """Return the verdict's words for each wrong term of the file, whose content is `text`.

        As long as the file is being judged, return None; a later call has the result. Raise a
        ValueError, with the reason, if the file fails when it runs, or does not end.
        """
        # This comes first. In the other order, a process that remembers its result and ends between
        # the two lines would seem to have ended without a result.
        is_running = self._process is not None and self._process.poll() is None
        judged_text, wrong = keeping.remembered(self._mine)
        if judged_text == text:
            return wrong
        if self._text != text:
            self._begin(text)
            return None
        if is_running:
            return None
        raise ValueError(self._why())

    def _begin(self, text: str) -> None:
        """Start the process, in place of one that judges an earlier text."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        paths = [PACKAGE]  # so that the process finds the course from the reader's folder
        if os.environ.get("PYTHONPATH"):
            paths.append(os.environ["PYTHONPATH"])
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM.format(MOST_S)],
                cwd=self._mine,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
        self._text = text

    def _why(self) -> str:
        """Return why the process has ended without a result."""
        if self._process.returncode == -signal.SIGALRM:
            return f"the file has not ended within {MOST_S} seconds"
        lines = self._said.read_text(errors="replace").split("\n")
        # `judge` raises a ValueError for what is wrong with the file, and Python prints it.
        errors = [line for line in lines if line.startswith("ValueError: ")]
        if errors:
            return errors[-1].removeprefix("ValueError: ").rstrip(".")
        return "the process that judges it was ended"


def sentences(link: str, mine: Path, judge: Judge) -> Markup:
    """Return a link to the file, and sentences on which terms are the reader's, right or wrong.

    If the file cannot be used, they say why. While it is being checked, they say so.
    """
    try:
        text = program_text(mine / NAME)
        names = theirs(text)
        wrong = judge.wrong(text) if names else {}  # of no terms, none is wrong
    except (OSError, ValueError) as error:
        broken = Markup("{} is not used: {}. Mend it, or delete it to begin it anew.")
        return broken.format(NAME, error)
    file = Markup('<a href="{0}" target="{1}">{1}</a>').format(link, NAME)
    begin = Markup("{}, of {} terms.").format(file, len(TERMS))
    if wrong is None:  # it is being judged; a page with data-soon in it soon asks again
        checked = Markup(
            "{} You wrote: {}. <span data-soon>The file has changed, and is being checked.</span>"
        )
        return checked.format(begin, ", ".join(names))
    right = [name for name in names if name not in wrong]
    names_right = ", ".join(right) if right else "none yet"
    shown = [Markup("{} Yours are: {}.").format(begin, names_right)]
    for name, words in wrong.items():
        not_right = Markup(
            "<br><b>{}</b> is not right as it stands there, so the notebooks use the course's. {}"
        )
        shown.append(not_right.format(name, words))
    return Markup(" ").join(shown)
