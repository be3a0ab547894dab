"""The pages on which questions come back: three a day, and ten at the end of the course.

JupyterLab's server serves them beside the contents page. They work without JavaScript.
"""

import random
from datetime import date
from pathlib import Path

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from markupsafe import Markup
from tornado import web

from course_utils.core.say import Number
from course_utils.stage.front import drawing
from course_utils.stage.recall import due, lines
from course_utils.stage.recall.bank import QUESTIONS
from course_utils.stage.recall.napkin import MINUTES, napkin, number_of, to_keep
from course_utils.stage.recall.question import Drawn
from course_utils.stage.recall.reply import NO_ANSWER, reply
from course_utils.stage.recall.sections import notebook_of, section_of
from course_utils.stage.workspace import copies
from course_utils.stage.workspace.contents import ADDRESS, LAB, where_it_opens

RECALL = f"{ADDRESS}/recall"
NAPKIN = f"{ADDRESS}/napkin"
# Of a napkin that is drawn for a reader; by the address, any may be asked for.
LARGEST_SEED = 10_000
TEMPLATES = drawing.environment(Path(__file__).parent)


class Page(JupyterHandler):
    """What both pages have: the reader's folder, and links into the notebooks."""

    def initialize(self, mine: Path) -> None:
        """Tornado calls this method for each request. `mine` is the folder of the copies."""
        self.mine = mine

    def show(self, template: str, **values: object) -> None:
        """Answer with the page of that template."""
        self.set_header("Cache-Control", "no-store")
        addresses = {"contents": ADDRESS, "recall": RECALL, "napkin": NAPKIN}
        links = {name: url_path_join(self.base_url, path) for name, path in addresses.items()}
        given = {"style": Markup(drawing.base()), "form": Markup(self.xsrf_form_html())}
        self.finish(TEMPLATES.get_template(template).render(**given, **links, **values))

    def about(self, drawn: Drawn, said: Number | str | None = None) -> dict[str, object]:
        """Return what the templates show of a question, and of the answer if there is one."""
        question = drawn.question
        name = notebook_of(question, copies.COURSE)
        path = where_it_opens(name, self.mine) if name else ""
        link = url_path_join(self.base_url, LAB, path) if path else ""
        shown = {
            "drawn": drawn,
            "number": number_of(question.chapter),
            "section": section_of(question, copies.COURSE).title,
            "name": name,
            "link": f"{link}#cell-id={question.cell}" if link else "",
        }
        if said is None:
            return shown
        said_words = "You gave no answer."
        if not isinstance(said, str):
            said_words = f"You said: {drawn.asked.with_unit(said)}"
        return shown | {"said": said_words, "reply": reply(drawn, said)}


class Recall(Page):
    """The handler of the page with the three questions of today."""

    @web.authenticated
    def get(self) -> None:
        """Show what was answered today, and the next question."""
        self._show_today()

    @web.authenticated
    def post(self) -> None:
        """Take the answer to the next question, and show the page again with what it says of it."""
        today = date.today()
        name = self.get_body_argument("question", "")
        seed = self.get_body_argument("seed", "")
        waiting = {question.name for question in due.three(self.mine, copies.COURSE, today)}
        if name not in waiting or not seed.isdecimal():
            self.redirect(self.request.path)  # the form was sent twice, or is of another day
            return
        drawn = QUESTIONS[name].draw(int(seed))
        if self.get_body_argument("do", "answer") == "show":
            said = NO_ANSWER
        else:
            typed = self.get_body_argument("typed", "", strip=True)
            try:
                said = drawn.read(typed)
            except ValueError as error:
                self._show_today(typed, str(error))
                return
        lines.note_recalled(
            self.mine,
            drawn.question.chapter,
            drawn.guess(said),
            drawn.seed,
            is_right=reply(drawn, said).is_right,
        )
        self.redirect(self.request.path)

    def _show_today(self, typed: str = "", refused: str = "") -> None:
        """Show the page; `refused` says what is wrong with the answer `typed`, if something is."""
        today = date.today()
        answered = self._answered(today)
        waiting = due.three(self.mine, copies.COURSE, today)
        following = due.next_day(self.mine, copies.COURSE, today)
        self.show(
            "three.html",
            answered=answered,
            next=self.about(waiting[0].draw(today.toordinal())) if waiting else None,
            count=len(answered) + len(waiting),
            next_day=f"{following:%A}, {following.day} {following:%B}" if following else "",
            typed=typed,
            refused=refused,
        )

    def _answered(self, today: date) -> list[dict[str, object]]:
        """Return what was answered today, in its order."""
        shown = []
        for one in lines.recalled(self.mine):
            if one.day == today and one.guess.asked in QUESTIONS:
                drawn = QUESTIONS[one.guess.asked].draw(one.seed)
                shown.append(self.about(drawn, one.guess.said))
        return shown


class Napkin(Page):
    """The handler of the page with ten questions over the whole course."""

    @web.authenticated
    def get(self) -> None:
        """Ask the ten questions of a seed: the one in the address, or else a new one."""
        seed = self.get_query_argument("seed", "")
        if not seed.isdecimal():
            self.redirect(f"{self.request.path}?seed={_other_seed()}")
            return
        self._ask(int(seed), {})

    @web.authenticated
    def post(self) -> None:
        """Show what was right, unless an answer is no number: then ask for it again."""
        seed = self.get_body_argument("seed", "")
        if not seed.isdecimal():
            self.redirect(self.request.path)
            return
        drawn = napkin(int(seed))
        typed = {}
        for number in range(1, len(drawn) + 1):
            typed[number] = self.get_body_argument(f"typed-{number}", "", strip=True)
        answers: list[Number | str] = []
        for number, one in enumerate(drawn, 1):
            try:
                answers.append(one.read(typed[number]) if typed[number] else NO_ANSWER)
            except ValueError:
                self._ask(int(seed), typed)
                return
        asked = [self.about(one, said) for one, said in zip(drawn, answers, strict=True)]
        right = [one["drawn"] for one in asked if one["reply"].is_right]
        missed = {one["section"]: one for one in asked if not one["reply"].is_right}
        self._show(int(seed), asked, keep=to_keep(int(seed), right), again=missed.values())

    def _ask(self, seed: int, typed: dict[int, str]) -> None:
        """Show the ten fields, with what was typed so far and what is wrong with it."""
        asked = []
        for number, drawn in enumerate(napkin(seed), 1):
            text = typed.get(number, "")
            asked.append(self.about(drawn) | {"typed": text, "refused": _refused(drawn, text)})
        self._show(seed, asked, keep="", again=())

    def _show(self, seed: int, asked: list[dict[str, object]], **values: object) -> None:
        self.show(
            "napkin.html", seed=seed, asked=asked, minutes=MINUTES, other=_other_seed(), **values
        )


def _refused(drawn: Drawn, typed: str) -> str:
    """Return what is wrong with the answer, as a sentence; "" if nothing is, or if it is empty."""
    if typed:
        try:
            drawn.read(typed)
        except ValueError as error:
            return str(error)
    return ""


def _other_seed() -> int:
    return random.randint(1, LARGEST_SEED)
