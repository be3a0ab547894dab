"""The contents page: each notebook's question, the reader's turns, and how far off guesses were.

It is a page of the server that JupyterLab runs in, made anew whenever somebody looks at it. It
works without JavaScript, too, because links and buttons are the browser's own.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from markupsafe import Markup
from tornado import web

from course_utils.core import record
from course_utils.core.accountant_file import NAME, TERMS, program_text, theirs
from course_utils.core.say import Guess
from course_utils.stage.notebook.about import About, about, unknown
from course_utils.stage.notebook.files import read
from course_utils.stage.notebook.outline import Turn, turns
from course_utils.stage.workspace import copies, estimates
from course_utils.stage.workspace.place import place

ADDRESS = "/contents"
LAB = "lab/tree"
# What `make colab` puts into the README, if the course has a public address.
ONE_CLICK = re.compile(r"\[(Colab|Codespaces|Binder)\]\((https:[^)\s]+)\)")
HTML = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
PAGE = Environment(autoescape=True, trim_blocks=True).from_string(HTML)
SAID = "course_said"  # the setting with what the last button did


@dataclass(frozen=True)
class Known:
    """One of the course's notebooks: its file's name, what it is about, and its turns."""

    name: str
    about: About
    turns: tuple[Turn, ...] = ()


class Contents(JupyterHandler):
    def initialize(self, mine: Path, news: list[str]) -> None:
        """Tornado calls this with the folder of the copies, and what the start said about them.

        The page repeats `news`, because few look at the terminal.
        """
        self.mine = mine
        self.news = news

    @web.authenticated
    def get(self) -> None:
        """Show the page. It says once what a button did, and not to the script that looks for news.

        That script asks with `look`.
        """
        copies.make_missing(self.mine, contents=self.request.path)
        self.set_header("Cache-Control", "no-store")
        said = ""
        if not self.get_query_argument("look", ""):
            said = self.settings.pop(SAID, "")
        self.finish(self._page(said))

    @web.authenticated
    def post(self) -> None:
        """Do what a button is for; then show the page, which says what was done."""
        button = self.get_body_argument("do", "")
        what = self.get_body_argument("what", "")
        try:
            said = _do(self.mine, button, what)
        except (OSError, ValueError) as error:
            said = str(error)
        self.settings[SAID] = said
        self.redirect(self.request.path)

    def _page(self, said: str) -> str:
        done = record.done(self.mine)
        guesses = record.guesses(self.mine)
        notebooks = []
        by_notebook = {}
        for number, path in enumerate(copies.notebooks(copies.COURSE), 1):
            known = _known(path)
            by_notebook[number] = guesses.get(known.about.chapter, [])
            notebooks.append(self._notebook(known, done, by_notebook[number]))
        return PAGE.render(
            said=said,
            news=self.news,
            form=Markup(self.xsrf_form_html()),
            notebooks=notebooks,
            guesses=estimates.picture(by_notebook),
            accountant=_accountant(self._link(NAME), self.mine),
            elsewhere=ONE_CLICK.findall(copies.readme()),
            lab=url_path_join(self.base_url, LAB),
            folder=self.mine.name,
            place=place(),
        )

    def _notebook(
        self, known: Known, done: Mapping[str, record.Done], guesses: Sequence[Guess]
    ) -> dict[str, object]:
        """What the page says of that notebook."""
        return {
            "title": known.about.title,
            "name": known.name,
            "question": known.about.question,
            "needs": known.about.minutes_and_needs,
            "guesses": estimates.summary(guesses),
            "link": self._link(known.name),
            "place": self._place(known.about.chapter),
            "turns": [(turn, _done(turn, done)) for turn in known.turns],
            "right": _right_of(known.turns, done),
            "is_begun": any(turn.check in done for turn in known.turns),
        }

    def _place(self, chapter: str) -> str:
        """Where the reader was in that notebook, as a link's fragment; empty if nothing has run."""
        cell = record.place(self.mine, chapter)
        return f"#cell-id={cell}" if cell else ""

    def _link(self, name: str) -> str:
        path = where_it_opens(name, self.mine)
        return url_path_join(self.base_url, LAB, path) if path else ""


def where_it_opens(name: str, mine: Path) -> str:
    """The path of the reader's copy under the server's root, as an address has it.

    Without a copy, it is the course's own file, if that lies under the root; else it is empty.
    """
    root = mine.parent
    for folder in (mine, copies.COURSE):
        path = folder / name
        if os.path.isfile(path) and path.is_relative_to(root):
            return quote(path.relative_to(root).as_posix())
    return ""


def _do(mine: Path, button: str, what: str) -> str:
    """Do what the button is for; returns the sentence to show. `what` is a notebook, and a turn."""
    if button == "forget":
        return _forget(mine)
    name, _, turn = what.partition(" ")
    if button == "results":
        return copies.show_results(copies.named(name), mine)
    if button == "anew":
        return copies.begin_anew(copies.named(name), turn if turn else None, mine)
    raise ValueError("There is no such button on this page.")


def _forget(mine: Path) -> str:
    path = mine / record.RECORD
    if not path.is_file():
        return "There is no record."
    kept = copies.keep_earlier(path)
    path.unlink()
    return (
        f"The record begins anew. As it was: {mine.name}/{copies.EARLIER}/{kept.name}, "
        "for you to delete. Your answers stay in your notebooks."
    )


def _accountant(link: str, mine: Path) -> Markup:
    """Which terms are the reader's, and a link that opens the file; or why it cannot be read."""
    try:
        names = theirs(program_text(mine / NAME))
    except ValueError as error:
        broken = Markup("{} is not used: {}. Mend it, or delete it to begin it anew.")
        return broken.format(NAME, error)
    file = Markup('<a href="{0}" target="{1}">{1}</a>').format(link, NAME)
    yours = ", ".join(names) if names else "none yet"
    return Markup("{}, of {} terms. Yours are: {}.").format(file, len(TERMS), yours)


def _done(turn: Turn, done: Mapping[str, record.Done]) -> record.Done:
    """What the record has on that turn; an empty entry if it has nothing."""
    return done.get(turn.check, record.Done())


def _right_of(there_are: Sequence[Turn], done: Mapping[str, record.Done]) -> str:
    """How many turns are right, on the main path and, if there are any, beyond it.

    >>> on_the_path = Turn(1, "Edge", "floats.edge", cells=())
    >>> beyond = Turn(2, "Ends", "floats.ends", cells=(), is_beyond=True)
    >>> _right_of([on_the_path, beyond], {})
    '0 of 1 right on the main path, 0 of 1 beyond'
    """
    counts = []
    for is_beyond, where in ((False, "right on the main path"), (True, "beyond")):
        here = [turn for turn in there_are if turn.is_beyond == is_beyond]
        right = [turn for turn in here if _done(turn, done).status == "right"]
        if here:
            counts.append(f"{len(right)} of {len(here)} {where}")
    return ", ".join(counts)


def _known(path: Path) -> Known:
    try:
        notebook = read(path)
    except (OSError, ValueError):
        # The course's own file is broken, as the start has said. The other notebooks are not.
        return Known(path.name, unknown(path.name))
    return Known(path.name, about(notebook, path.name), turns(notebook))
