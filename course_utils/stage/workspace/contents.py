"""The contents page: each notebook's question, the reader's turns, and how far off guesses were.

JupyterLab's server serves the page, and makes it anew for each request. The page works without
JavaScript, too, because its links and buttons are the browser's own.
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
from course_utils.core.accountant_file import NAME
from course_utils.core.say import Guess
from course_utils.stage.notebook.about import About, about, unknown
from course_utils.stage.notebook.files import read
from course_utils.stage.notebook.outline import Turn, turns
from course_utils.stage.workspace import copies, estimates, own_terms
from course_utils.stage.workspace.place import place

ADDRESS = "/contents"
LAB = "lab/tree"
# What `make colab` puts into the README, if the course has a public address.
ONE_CLICK = re.compile(r"\[(Colab|Codespaces|Binder)\]\((https:[^)\s]+)\)")
HTML = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
PAGE = Environment(autoescape=True, trim_blocks=True).from_string(HTML)
SAID = "course_said"  # the server's setting with the sentence on what the last button did


@dataclass(frozen=True)
class Known:
    """One of the course's notebooks: its file's name, what it is about, and its turns."""

    name: str
    about: About
    turns: tuple[Turn, ...] = ()


class Contents(JupyterHandler):
    """The handler of the contents page."""

    def initialize(self, mine: Path, news: list[str], judge: own_terms.Judge) -> None:
        """Tornado calls this method for each request. `mine` is the folder of the copies.

        `judge` has the verdicts on the reader's accountant in that folder. `news` are the sentences
        about the copies that the server wrote when it started. The page repeats them, because few
        look at the terminal.
        """
        self.mine = mine
        self.judge = judge
        self.news = news

    @web.authenticated
    def get(self) -> None:
        """Show the page. After a button was pressed, a sentence on it says once what was done.

        The page's script loads the page again, with `look`, to see what has changed. Nobody reads
        that answer, so it does not use the sentence up.
        """
        copies.make_missing(self.mine, contents=self.request.path)
        self.set_header("Cache-Control", "no-store")
        said = ""
        if not self.get_query_argument("look", ""):
            said = self.settings.pop(SAID, "")
        self.finish(self._page(said))

    @web.authenticated
    def post(self) -> None:
        """Do what a button is for, and then show the page with a sentence on what was done."""
        # Each button is a form, whose fields "do" and "what" say what it is for.
        button = self.get_body_argument("do", "")
        what = self.get_body_argument("what", "")
        try:
            said = _do(self.mine, button, what)
        except (OSError, ValueError) as error:
            said = str(error)
        self.settings[SAID] = said  # `get` shows it, after the redirect
        self.redirect(self.request.path)

    def _page(self, said: str) -> str:
        """Return the page's HTML. `said` is the sentence on what a button did, or empty."""
        done = record.done(self.mine)  # which turns were tried or are right, by the check's name
        guesses = record.guesses(self.mine)
        notebooks = []
        by_notebook = {}
        for number, path in enumerate(copies.notebooks(copies.COURSE), 1):
            known = _known(path)
            # The record knows a notebook by its chapter.
            by_notebook[number] = guesses.get(known.about.chapter, [])
            notebooks.append(self._notebook(known, done, by_notebook[number]))
        return PAGE.render(
            said=said,
            news=self.news,
            form=Markup(self.xsrf_form_html()),
            notebooks=notebooks,
            guesses=estimates.picture(by_notebook),
            accountant=own_terms.sentences(self._link(NAME), self.mine, self.judge),
            elsewhere=ONE_CLICK.findall(copies.readme()),
            lab=url_path_join(self.base_url, LAB),
            folder=self.mine.name,
            place=place(),
        )

    def _notebook(
        self, known: Known, done: Mapping[str, record.Done], guesses: Sequence[Guess]
    ) -> dict[str, object]:
        """Return what the template contents.html needs to show the notebook."""
        return {
            "title": known.about.title,
            "name": known.name,
            "question": known.about.question,
            "needs": known.about.minutes_and_needs,
            "guesses": estimates.summary(guesses),
            "link": self._link(known.name),
            "place": self._place(known.about.chapter),
            "turns": [(turn, _entry_on(turn, done)) for turn in known.turns],
            "right": _right_of(known.turns, done),
            "is_begun": any(turn.check in done for turn in known.turns),
        }

    def _place(self, chapter: str) -> str:
        """Return the end of a link, "#cell-id=…", that opens the cell which the reader ran last.

        It is empty if none has run.
        """
        cell = record.place(self.mine, chapter)
        return f"#cell-id={cell}" if cell else ""

    def _link(self, name: str) -> str:
        """Return the address that opens the file in JupyterLab; "" if it is outside the root."""
        path = where_it_opens(name, self.mine)
        return url_path_join(self.base_url, LAB, path) if path else ""


def where_it_opens(name: str, mine: Path) -> str:
    """Return the path of the reader's copy under the server's root, quoted for an address.

    Without a copy, it is the path of the course's own file if that is under the root; else empty.
    """
    root = mine.parent
    for folder in (mine, copies.COURSE):
        path = folder / name
        if os.path.isfile(path) and path.is_relative_to(root):
            return quote(path.relative_to(root).as_posix())
    return ""


def _do(mine: Path, button: str, what: str) -> str:
    """Do what the button is for; returns the sentence to show.

    `what` is the notebook's name, such as "04_flops.ipynb". For a turn, a space and the check of
    the turn follow, as in "04_flops.ipynb flops.days".
    """
    if button == "forget":
        return _forget(mine)
    name, _, turn = what.partition(" ")
    if button == "results":
        return copies.show_results(copies.named(name), mine)
    if button == "anew":
        turn_or_all = turn if turn else None  # None: the whole notebook begins anew
        return copies.begin_anew(copies.named(name), turn_or_all, mine)
    raise ValueError("There is no such button on this page.")


def _forget(mine: Path) -> str:
    """Begin the record anew; returns the sentence to show."""
    path = mine / record.RECORD
    if not path.is_file():
        return "There is no record."
    kept = copies.keep_earlier(path)
    path.unlink()
    return (
        f"The record begins anew. As it was: {mine.name}/{copies.EARLIER}/{kept.name}, "
        "for you to delete. Your answers stay in your notebooks."
    )


def _entry_on(turn: Turn, done: Mapping[str, record.Done]) -> record.Done:
    """Return the record's entry on the turn; an empty entry if the record has none."""
    return done.get(turn.check, record.Done())


def _right_of(all_turns: Sequence[Turn], done: Mapping[str, record.Done]) -> str:
    """Return in words how many turns are right, on the main path and, if there are any, beyond it.

    >>> on_the_path = Turn(1, "Edge", "floats.edge", cells=())
    >>> beyond = Turn(2, "Ends", "floats.ends", cells=(), is_beyond=True)
    >>> _right_of([on_the_path, beyond], {})
    '0 of 1 right on the main path, 0 of 1 beyond'
    """
    counts = []
    for is_beyond, where in ((False, "right on the main path"), (True, "beyond")):
        here = [turn for turn in all_turns if turn.is_beyond == is_beyond]
        right = [turn for turn in here if _entry_on(turn, done).status == "right"]
        if here:
            counts.append(f"{len(right)} of {len(here)} {where}")
    return ", ".join(counts)


def _known(path: Path) -> Known:
    """Return what is known of the notebook: of one that cannot be read, what its name says."""
    try:
        notebook = read(path)
    except (OSError, ValueError):
        # The course's own file is broken, as `news` says. The page still shows the other notebooks.
        return Known(path.name, unknown(path.name))
    return Known(path.name, about(notebook, path.name), turns(notebook))
