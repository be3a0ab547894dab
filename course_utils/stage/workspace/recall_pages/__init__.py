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
from course_utils.core.say.language import template, translated
from course_utils.stage.front import drawing
from course_utils.stage.recall import due, lines
from course_utils.stage.recall.bank import QUESTIONS
from course_utils.stage.recall.napkin import MINUTES, napkin, number_of, to_keep
from course_utils.stage.recall.question import Drawn, Question
from course_utils.stage.recall.reply import NO_ANSWER, reply
from course_utils.stage.recall.sections import notebook_of, section_of
from course_utils.stage.translations.edition import ENGLISH, Edition
from course_utils.stage.translations.loading import in_language
from course_utils.stage.workspace import copies, progress
from course_utils.stage.workspace.contents import ADDRESS, LAB, NAPKIN, RECALL, where_it_opens
from course_utils.stage.workspace.going_on import GoOn, go_on

# Of a napkin that is drawn for a reader; by the address, any may be asked for.
LARGEST_SEED = 10_000
WEEKDAYS = (
    template("Monday"),
    template("Tuesday"),
    template("Wednesday"),
    template("Thursday"),
    template("Friday"),
    template("Saturday"),
    template("Sunday"),
)
MONTHS = (
    template("January"),
    template("February"),
    template("March"),
    template("April"),
    template("May"),
    template("June"),
    template("July"),
    template("August"),
    template("September"),
    template("October"),
    template("November"),
    template("December"),
)
TEMPLATES = drawing.environment(Path(__file__).parent)


class Page(JupyterHandler):
    """What both pages have: the reader's folder, and links into the notebooks."""

    def initialize(self, mine: Path, spoken: str = ENGLISH) -> None:
        """Tornado calls this method for each request. `mine` is the folder of the copies."""
        self.mine = mine
        self.language = spoken

    def show(self, template: str, **values: object) -> None:
        """Answer with the page of that template."""
        self.set_header("Cache-Control", "no-store")
        addresses = {"contents": ADDRESS, "recall": RECALL, "napkin": NAPKIN}
        links = {name: url_path_join(self.base_url, path) for name, path in addresses.items()}
        given = {"style": Markup(drawing.base()), "form": Markup(self.xsrf_form_html())}
        if self.language != ENGLISH:  # the questions are
            given["in_english"] = Markup(' lang="en"')
        templates = in_language(TEMPLATES, self.language)
        self.finish(templates.get_template(template).render(**given, **links, **values))

    def link(self, name: str) -> str:
        """Return the address that opens the notebook of that name; "" if there is none."""
        path = where_it_opens(name, self.mine)
        return url_path_join(self.base_url, LAB, path) if path else ""

    def about(self, drawn: Drawn, said: Number | str | None = None) -> dict[str, object]:
        """Return what the templates show of a question, and of the answer if there is one."""
        question = drawn.question
        name = notebook_of(question, copies.COURSE)
        link = self.link(name) if name else ""
        shown = {
            "drawn": drawn,
            "number": number_of(question.chapter),
            "section": self._title(question),
            "name": name,
            "link": f"{link}#cell-id={question.cell}" if link else "",
        }
        if said is None:
            return shown
        said_words = translated("You gave no answer.")
        if not isinstance(said, str):
            said_words = translated("You said: {answer}", answer=drawn.asked.with_unit(said))
        return shown | {"said": said_words, "reply": reply(drawn, said)}

    def _title(self, question: Question) -> str:
        """Return the title of the section that teaches the question."""
        section = section_of(question, copies.COURSE)
        stem = notebook_of(question, copies.COURSE).removesuffix(".ipynb")
        return Edition(self.language, stem).words(section.title)


class Recall(Page):
    """The handler of the page with the three questions of today, and with more if they are wanted.

    The address or the form says `until` how many answers of today there shall be more.
    """

    @web.authenticated
    def get(self) -> None:
        """Show what was answered today, and the next question."""
        self._show_today(_number(self.get_query_argument("until", "")))

    @web.authenticated
    def post(self) -> None:
        """Take the answer to the next question, and show the page again with what it says of it."""
        today = date.today()
        name = self.get_body_argument("question", "")
        seed = self.get_body_argument("seed", "")
        until = _number(self.get_body_argument("until", ""))
        waiting = {one.question.name: one for one in self._waiting(today, until)}
        if name not in waiting or not _number(seed):
            self._again(until)  # the form was sent twice, or is of another day
            return
        drawn = QUESTIONS[name].draw(_number(seed))
        if self.get_body_argument("do", "answer") == "show":
            said = NO_ANSWER
        else:
            typed = self.get_body_argument("typed", "", strip=True)
            try:
                said = drawn.read(typed)
            except ValueError as error:
                self._show_today(until, typed, str(error))
                return
        lines.note_recalled(
            self.mine,
            drawn.question.chapter,
            drawn.guess(said),
            drawn.seed,
            is_right=reply(drawn, said).is_right,
            is_extra=waiting[name].due > today,
        )
        self._again(until)

    def _again(self, until: int) -> None:
        """Let the browser ask for the page, so that to load it again sends no form."""
        self.redirect(f"{self.request.path}?until={until}" if until else self.request.path)

    def _waiting(self, today: date, until: int) -> list[due.Standing]:
        """Return the questions to ask now: those of today, or else more until so many answers."""
        left = due.more(self.mine, copies.COURSE, today)
        names = [question.name for question in due.three(self.mine, copies.COURSE, today)]
        if names:
            by_name = {standing.question.name: standing for standing in left}
            return [by_name[name] for name in names]
        answered = len(due.answered_on(self.mine, today))
        return left[: max(0, until - answered)]

    def _show_today(self, until: int, typed: str = "", refused: str = "") -> None:
        """Show the page; `refused` says what is wrong with the answer `typed`, if something is."""
        today = date.today()
        answered = [self._answered(one) for one in due.answered_on(self.mine, today)]
        waiting = self._waiting(today, until)
        following = due.next_day(self.mine, copies.COURSE, today)
        self.show(
            "three.html",
            answered=answered,
            next=self._next(waiting[0], today) if waiting else None,
            count=len(answered) + len(waiting),
            next_day=in_words(following) if following else "",
            until=until,
            more=bool(due.more(self.mine, copies.COURSE, today)),
            at_once=due.AT_ONCE,
            go_on=self._go_on(),
            typed=typed,
            refused=refused,
        )

    def _next(self, standing: due.Standing, today: date) -> dict[str, object]:
        """Return what is shown of the next question; its sizes are drawn by the day."""
        extra = in_words(standing.due) if standing.due > today else ""
        return self.about(standing.question.draw(today.toordinal())) | {"extra": extra}

    def _answered(self, one: lines.Recalled) -> dict[str, object]:
        """Return what is shown of an answer."""
        drawn = QUESTIONS[one.guess.asked].draw(one.seed)
        return self.about(drawn, one.guess.said) | {"extra": one.is_extra}

    def _go_on(self) -> GoOn | None:
        """Return where the reader goes on after the three, as the contents page says it."""
        course = [progress.known(path) for path in copies.notebooks(copies.COURSE)]
        napkin = url_path_join(self.base_url, NAPKIN)
        return go_on(self.mine, course, self.link, napkin, self.language)


class Napkin(Page):
    """The handler of the page with ten questions over the whole course."""

    @web.authenticated
    def get(self) -> None:
        """Ask the ten questions of a seed: the one in the address, or else a new one."""
        seed = self.get_query_argument("seed", "")
        if not _number(seed):
            self.redirect(f"{self.request.path}?seed={_other_seed()}")
            return
        self._ask(_number(seed), {})

    @web.authenticated
    def post(self) -> None:
        """Show what was right, unless an answer is no number: then ask for it again."""
        seed = _number(self.get_body_argument("seed", ""))
        if not seed:
            self.redirect(self.request.path)
            return
        drawn = napkin(seed)
        typed = {}
        for number in range(1, len(drawn) + 1):
            typed[number] = self.get_body_argument(f"typed-{number}", "", strip=True)
        answers: list[Number | str] = []
        for number, one in enumerate(drawn, 1):
            try:
                answers.append(one.read(typed[number]) if typed[number] else NO_ANSWER)
            except ValueError:
                self._ask(seed, typed)
                return
        asked = [self.about(one, said) for one, said in zip(drawn, answers, strict=True)]
        right = [one["drawn"] for one in asked if one["reply"].is_right]
        missed = {one["section"]: one for one in asked if not one["reply"].is_right}
        self._show(seed, asked, keep=to_keep(seed, right), again=missed.values())

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


def _number(text: str) -> int:
    """Return the number in an address or a form; 0 if there is none, or one of too many digits."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def in_words(day: date) -> str:
    """Return the day as a reader says it, such as "Friday, 4 December"."""
    weekday = translated(WEEKDAYS[day.weekday()])
    month = translated(MONTHS[day.month - 1])
    return translated("{weekday}, {day} {month}", weekday=weekday, day=day.day, month=month)


def _other_seed() -> int:
    return random.randint(1, LARGEST_SEED)
