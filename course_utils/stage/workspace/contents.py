"""The contents page: where to go on, each notebook's question, and what the reader has done so far.

JupyterLab's server serves the page, and makes it anew for each request. The page works without
JavaScript, too, because its links and buttons are the browser's own.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Template
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from markupsafe import Markup
from tornado import web

from course_utils.core import record
from course_utils.core.accountant_file import NAME, TERMS
from course_utils.core.say import Guess
from course_utils.core.say.language import translated
from course_utils.stage.front import bricks, cards, drawing
from course_utils.stage.front.motion import motion
from course_utils.stage.notebook.outline import Turn
from course_utils.stage.recall import due
from course_utils.stage.translations import language, sentences
from course_utils.stage.translations.edition import ENGLISH, Edition
from course_utils.stage.translations.loading import in_language
from course_utils.stage.workspace import copies, estimates, own_terms, progress
from course_utils.stage.workspace.going_on import go_on
from course_utils.stage.workspace.place import place
from course_utils.stage.workspace.progress import Known

ADDRESS = "/contents"
RECALL = f"{ADDRESS}/recall"
NAPKIN = f"{ADDRESS}/napkin"
LAB = "lab/tree"
# What `make colab` puts into the README, if the course has a public address.
ONE_CLICK = re.compile(r"\[(Colab|Codespaces|Binder)\]\((https:[^)\s]+)\)")
TEMPLATES = drawing.environment(Path(__file__).parent)
PAGE = TEMPLATES.get_template("contents.html")
# A turn's heading is "Your turn 3 · Its title".
BEFORE_A_TITLE = "Your turn "
DOT = " · "
SAID = "course_said"  # the server's setting with the sentence on what the last button did


class Contents(JupyterHandler):
    """The handler of the contents page."""

    def initialize(
        self, mine: Path, news: list[str], judge: own_terms.Judge, spoken: str = ENGLISH
    ) -> None:
        """Tornado calls this method for each request. `mine` is the folder of the copies.

        `judge` has the verdicts on the reader's accountant in that folder. `news` are the sentences
        about the copies that the server wrote when it started. The page repeats them, because few
        look at the terminal.
        """
        self.mine = mine
        self.judge = judge
        self.news = news
        self.language = spoken

    @web.authenticated
    def get(self) -> None:
        """Show the page. After a button was pressed, a sentence on it says once what was done.

        The page's script loads the page again, with `look`, to see what has changed. Nobody reads
        that answer, so it does not use the sentence up.
        """
        copies.make_missing(self.mine, contents=self.request.path, language=self.language)
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
        course = [progress.known(path) for path in copies.notebooks(copies.COURSE)]
        by_notebook = {}
        for number, known in enumerate(course, 1):
            # The record knows a notebook by its chapter.
            by_notebook[number] = guesses.get(known.about.chapter, [])
        terms = own_terms.own(self.mine, self.judge)
        return _page_in(self.language).render(
            style=Markup(drawing.style()),
            script=Markup(drawing.SCRIPT),
            motion=motion(self.language),
            said=said,
            news=self.news,
            form=Markup(self.xsrf_form_html()),
            go_on=go_on(self.mine, course, self._link, self._page_at(NAPKIN), self.language),
            recall=self._page_at(RECALL),
            due=len(due.three(self.mine, copies.COURSE, date.today())),
            has_met=bool(due.standings(self.mine, copies.COURSE)),
            notebooks=[
                self._notebook(known, done, by_notebook[number])
                for number, known in enumerate(course, 1)
            ],
            guesses=estimates.picture(by_notebook),
            bricks=bricks.wall(self._places_of_terms(course), terms.right),
            laid=len([name for name in terms.right if name in TERMS]),
            model=bricks.MODEL,
            accountant=own_terms.sentences(self._link(NAME), terms),
            account_lab=self._account_lab(course),
            elsewhere=ONE_CLICK.findall(copies.readme()),
            lab=url_path_join(self.base_url, LAB),
            folder=self.mine.name,
            languages=language.others(self.language) if place().kind == "clone" else [],
            place=place(),
        )

    def _edition(self, known: Known) -> Edition:
        """Return the notebook in the language of the page."""
        return Edition(self.language, known.name.removesuffix(".ipynb"))

    def _places_of_terms(self, course: Sequence[Known]) -> dict[str, bricks.Place]:
        """Return where the terms of the accountant are written: each is a turn of that name."""
        places = {}
        for number, known in enumerate(course, 1):
            link = self._link(known.name)
            for turn in known.turns:
                if turn.exercise in TERMS:
                    to_turn = f"{link}#cell-id={turn.cells[0]}" if link else ""
                    places[turn.exercise] = bricks.Place(number, to_turn, known.name)
        return places

    def _notebook(
        self, known: Known, done: Mapping[str, record.Done], guesses: Sequence[Guess]
    ) -> dict[str, object]:
        """Return what the template contents.html needs to show the notebook."""
        turns_done = progress.turns_done(known.turns, done)
        edition = self._edition(known)
        return {
            "title": edition.words(known.about.title, "title"),
            "name": known.name,
            "picture": cards.picture(known.about.chapter),
            "question": edition.words(known.about.question, "question"),
            "needs": sentences.minutes_and_needs(self.language, known.about, edition),
            "guesses": estimates.summary(guesses),
            "guesses_made": progress.guesses_made(known, guesses),
            "link": self._link(known.name),
            "place": self._place(known.about.chapter),
            "turns": [
                (_in_words_of(edition, turn), progress.entry_on(turn, done)) for turn in known.turns
            ],
            "turns_done": turns_done,
            "right": progress.in_words(turns_done),
            "is_begun": any(turn.check in done for turn in known.turns),
        }

    def _place(self, chapter: str) -> str:
        """Return the end of a link, "#cell-id=…", that opens the cell which the reader ran last.

        It is empty if none has run.
        """
        cell = record.place(self.mine, chapter)
        return f"#cell-id={cell}" if cell else ""

    def _account_lab(self, course: Sequence[Known]) -> bricks.Place | None:
        """Return where the lab is that says what any model takes; None if no notebook has it."""
        for number, known in enumerate(course, 1):
            link = self._link(known.name)
            if known.account_lab and link:
                return bricks.Place(number, f"{link}#cell-id={known.account_lab}", known.name)
        return None

    def _page_at(self, path: str) -> str:
        return url_path_join(self.base_url, path)

    def _link(self, name: str) -> str:
        """Return the address that opens the file in JupyterLab; "" if it is outside the root."""
        path = where_it_opens(name, self.mine)
        return url_path_join(self.base_url, LAB, path) if path else ""


def get_ready(mine: Path, judge: own_terms.Judge, spoken: str = ENGLISH) -> None:
    """Read what every page needs of the course, so that the first reader does not wait for it."""
    for path in copies.notebooks(copies.COURSE):
        progress.known(path)
    due.three(mine, copies.COURSE, date.today())
    motion(spoken)
    own_terms.own(mine, judge)


@cache
def _page_in(spoken: str) -> Template:
    """Return the page's template in that language; it is cached, since to read it takes long."""
    return in_language(TEMPLATES, spoken).get_template(PAGE.name)


def _in_words_of(edition: Edition, turn: Turn) -> Turn:
    """Return the turn with its title in the edition's language."""
    english = f"{BEFORE_A_TITLE}{turn.number}{DOT}{turn.title}"  # as its heading has it
    _, _, title = edition.words(english, turn.cells[0]).rpartition(DOT)
    return replace(turn, title=title)


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
        return translated("There is no record.")
    kept = copies.keep_earlier(path)
    path.unlink()
    return translated(
        "The record begins anew. As it was: {path}, for you to delete. "
        "Your answers stay in your notebooks.",
        path=f"{mine.name}/{copies.EARLIER}/{kept.name}",
    )
