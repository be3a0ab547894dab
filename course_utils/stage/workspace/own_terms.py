"""What the contents page says of the reader's accountant: which terms are theirs, and are right.

A term that was right when it was kept may have been edited since. So whenever the file's text is
not the one that was judged last, it is judged again. That runs the reader's file, and takes the
seconds in which torch is loaded. So a process of its own does it, and not the server.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from markupsafe import Markup

from course_utils.core import keeping
from course_utils.core.accountant_file import ADDED, NAME, TERMS, program_text, theirs
from course_utils.core.record import HIDDEN
from course_utils.core.say.language import translated

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


@dataclass(frozen=True)
class Own:
    """The reader's terms: their names, and the verdict's words for each that is wrong.

    `wrong` is None while the file is being judged. If the file cannot be used, `why_not` says why.
    """

    names: Sequence[str] = ()
    wrong: Mapping[str, str] | None = None
    why_not: str = ""

    @property
    def right(self) -> list[str]:
        """The names of the terms that are known to be right."""
        if self.wrong is None:
            return []
        return [name for name in self.names if name not in self.wrong]


def own(mine: Path, judge: Judge) -> Own:
    """Return what is known of the terms in the file of the folder `mine`."""
    try:
        state = (mine / NAME).stat()
        text, names = _written(mine / NAME, state.st_mtime_ns, state.st_size)
        wrong = judge.wrong(text) if names else {}  # of no terms, none is wrong
    except (OSError, ValueError) as error:
        return Own(why_not=getattr(error, "strerror", None) or str(error))
    return Own(names, wrong)


@lru_cache(4)
def _written(path: Path, changed_ns: int, nbytes: int) -> tuple[str, tuple[str, ...]]:
    """Return the file's text, and the names of the reader's terms in it.

    It is cached, with the file's time and size, because to parse it takes longer than all else that
    the page needs.
    """
    text = program_text(path)
    return text, tuple(theirs(text))


def sentences(link: str, terms: Own) -> Markup:
    """Return a link to the file, and sentences on which terms are the reader's, right or wrong.

    If the file cannot be used, they say why. While it is being checked, they say so.
    """
    if terms.why_not:
        broken = translated("{file} is not used: {why}. Mend it, or delete it to begin it anew.")
        return Markup(broken).format(file=NAME, why=terms.why_not)
    file = Markup('<a href="{0}" target="{1}">{1}</a>').format(link, NAME)
    first = Markup(translated("{file}, of {terms} terms, and {added} that 2026 adds."))
    begin = first.format(file=file, terms=len(TERMS), added=len(ADDED))
    if terms.wrong is None:  # it is being judged; a page with data-soon in it soon asks again
        checked = translated(
            "{begin} You wrote: {names}. "
            "<span data-soon>The file has changed, and is being checked.</span>"
        )
        return Markup(checked).format(begin=begin, names=", ".join(terms.names))
    names_right = ", ".join(terms.right) if terms.right else translated("none yet")
    yours = Markup(translated("{begin} Yours are: {names}."))
    shown = [yours.format(begin=begin, names=names_right)]
    for name, words in terms.wrong.items():
        not_right = translated(
            "<b>{name}</b> is not right as it stands there, "
            "so the notebooks use the course's. {words}"
        )
        shown.append(Markup("<br>") + Markup(not_right).format(name=name, words=words))
    return Markup(" ").join(shown)
