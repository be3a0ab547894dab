"""The contents page: what each notebook answers, which of the reader's turns are done, and how far off guesses were.

A page of the same server that JupyterLab runs in, made anew whenever it is looked at. Without a script it
is whole, too: links and buttons are the browser's own.
"""

import os
import re
from collections.abc import Sequence
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

ADDRESS, LAB = "/contents", "lab/tree"
# What `make colab` puts into the README, if the course has a public address.
ONE_CLICK = re.compile(r"\[(Colab|Codespaces|Binder)\]\((https:[^)\s]+)\)")
HTML = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
PAGE = Environment(autoescape=True, trim_blocks=True).from_string(HTML)


@dataclass(frozen=True)
class Known:
    """One of the course's notebooks: its file's name, what it is about, and its turns."""

    name: str
    about: About
    turns: tuple[Turn, ...] = ()


class Contents(JupyterHandler):
    def initialize(self, mine: Path, news: list[str]) -> None:
        """`said` is what the start printed about the copies. The page repeats it, as the terminal has scrolled on."""
        self.mine, self.news = mine, news

    @web.authenticated
    def get(self) -> None:
        """Show the page. What a button did is said once: to the reader, and not to the script that looks for changes."""
        copies.make_missing(self.mine, contents=self.request.path)
        self.set_header("Cache-Control", "no-store")
        looks = self.get_query_argument("look", "")
        self.finish(self._page("" if looks else self.settings.pop("course_said", "")))

    @web.authenticated
    def post(self) -> None:
        """Begin an exercise or a notebook anew, or delete the record; then show the page and what was done."""
        try:
            said = _do(
                self.mine, self.get_body_argument("do", ""), self.get_body_argument("what", "")
            )
        except (OSError, ValueError) as error:
            said = str(error)
        self.settings["course_said"] = said
        self.redirect(self.request.path)

    def _page(self, said: str) -> str:
        done, guesses = record.done(self.mine), record.guesses(self.mine)
        there_are = [*map(_known, copies.notebooks(copies.COURSE))]
        guessed = [guesses.get(known.about.chapter, []) for known in there_are]
        return PAGE.render(
            said=said,
            news=self.news,
            form=Markup(self.xsrf_form_html()),
            notebooks=[
                self._notebook(known, done, some)
                for known, some in zip(there_are, guessed, strict=True)
            ],
            guesses=estimates.picture(dict(enumerate(guessed, 1))),
            accountant=_accountant(self._link(NAME), self.mine),
            elsewhere=ONE_CLICK.findall(copies.readme()),
            lab=url_path_join(self.base_url, LAB),
            folder=self.mine.name,
            place=place(),
        )

    def _notebook(
        self, known: "Known", done: dict[str, record.Done], guesses: list[Guess]
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
            "turns": [(each, done.get(each.check, record.Done())) for each in known.turns],
            "right": _right_of(known.turns, done),
            "is_begun": any(each.check in done for each in known.turns),
        }

    def _place(self, chapter: str) -> str:
        """Where the reader was in that notebook, as a link's fragment; empty if nothing has run."""
        cell = record.place(self.mine, chapter)
        return f"#cell-id={cell}" if cell else ""

    def _link(self, name: str) -> str:
        path = where_it_opens(name, self.mine)
        return path and url_path_join(self.base_url, LAB, path)


def where_it_opens(name: str, mine: Path) -> str:
    """The path of the reader's copy under the server's root; without a copy, the course's own notebook if it lies there."""
    there_are = [path for folder in (mine, copies.COURSE) if os.path.isfile(path := folder / name)]
    under_root = [
        path.relative_to(mine.parent) for path in there_are if path.is_relative_to(mine.parent)
    ]
    return quote(under_root[0].as_posix()) if under_root else ""


def _do(mine: Path, what: str, on: str) -> str:
    if what == "forget":
        if not (mine / record.RECORD).is_file():
            return "There is no record."
        kept = copies.keep_earlier(mine / record.RECORD)
        (mine / record.RECORD).unlink()
        there = f"{mine.name}/{copies.EARLIER}/{kept.name}"
        return f"The record begins anew. As it was: {there}, for you to delete. Your answers stay in your notebooks."
    name, _, turn = on.partition(" ")
    if what == "results":
        return copies.show_results(copies.named(name), mine)
    if what != "anew":
        raise ValueError("There is no such button on this page.")
    return copies.begin_anew(copies.named(name), turn or None, mine)


def _accountant(link: str, mine: Path) -> Markup:
    """Which terms are the reader's, and a link that opens the file; or why it cannot be read."""
    try:
        names = ", ".join(theirs(program_text(mine / NAME))) or "none yet"
    except ValueError as error:
        return Markup("{} is not used: {}. Mend it, or delete it to begin it anew.").format(
            NAME, error
        )
    file = Markup('<a href="{0}" target="{1}">{1}</a>').format(link, NAME)
    return Markup("{}, of {} terms. Yours are: {}.").format(file, len(TERMS), names)


def _right_of(there_are: Sequence[Turn], done: dict[str, record.Done]) -> str:
    """How many turns are right, on the main path and, if there are any, beyond it.

    >>> _right_of([Turn(1, "Edge", "floats.edge", ()), Turn(2, "Ends", "floats.ends", (), True)], {})
    '0 of 1 right on the main path, 0 of 1 beyond'
    """
    said = []
    for is_beyond, where in ((False, "right on the main path"), (True, "beyond")):
        part = [each for each in there_are if each.is_beyond == is_beyond]
        right = sum(done.get(each.check, record.Done()).status == "right" for each in part)
        said += [f"{right} of {len(part)} {where}"] if part else []
    return ", ".join(said)


def _known(path: Path) -> Known:
    try:
        notebook = read(path)
    except (
        OSError,
        ValueError,
    ):  # the course's own is broken, as is said at the start: the others are not
        return Known(path.name, unknown(path.name))
    return Known(path.name, about(notebook, path.name), turns(notebook))
