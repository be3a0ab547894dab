"""The contents page: what each notebook answers, which of the reader's turns are done, and how far off guesses were.

A page of the same server that JupyterLab runs in, made anew whenever it is looked at. Without a script it
is whole, too: links and buttons are the browser's own.
"""

import re
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from tornado import web

from course_utils.desk import copies, estimates, record
from course_utils.desk.notebooks import Exercise, exercises, read
from course_utils.quantities import Guess

ADDRESS = "/contents"
ROW = re.compile(r"^\| \d \| \[(.+?)\]\(notebooks/(\S+?)\) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
PAGE = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
NEWS: list[str] = []  # what was said when this server started: the terminal has long scrolled on


class Contents(JupyterHandler):
    """The page, and the buttons on it."""

    @web.authenticated
    def get(self) -> None:
        """Show it; what was done is said once, and not to the page's script, which only looks what is new."""
        self.set_header("Cache-Control", "no-store")
        looks = self.get_query_argument("look", "")
        self.finish(self._page("" if looks else self.settings.pop("course_said", "")))

    @web.authenticated
    def post(self) -> None:
        """Begin an exercise or a notebook anew, or delete the record; then show the page and what was done."""
        try:
            said = _do(self.get_body_argument("do", ""), self.get_body_argument("what", ""))
        except (OSError, ValueError) as error:
            said = str(error)
        self.settings["course_said"] = said
        self.redirect(self.request.path)

    def _page(self, said: str) -> str:
        lab = url_path_join(self.base_url, "lab/tree")
        done, guesses = record.done(copies.MINE), record.guesses(copies.MINE)
        readme = (copies.ROOT / "README.md").read_text(encoding="utf-8")
        form = self.xsrf_form_html()
        numbered = list(enumerate(ROW.findall(readme), 1))
        guessed = {number: guesses.get(_name(row[1]), []) for number, row in numbered}
        rows = "".join(_notebook(number, row, lab, done, guessed[number], form) for number, row in numbered)
        said = f'<p role="status" class="said">{escape(said)}</p>' if said else ""
        if NEWS:
            said += f'<div class="said small">{"".join(f"<p>{escape(each)}</p>" for each in NEWS)}</div>'
        folder = escape(copies.MINE.name)
        drawn = estimates.picture(guessed)
        return PAGE.substitute(
            said=said, notebooks=rows, guesses=drawn, form=form, lab=escape(lab), folder=folder
        )


def _do(what: str, on: str) -> str:
    if what == "forget":
        (copies.MINE / record.RECORD).unlink(missing_ok=True)
        return "The record is deleted. Your answers are still in your notebooks."
    name, _, number = on.partition(" ")
    if what == "results":
        return copies.show_results(copies.named(name), copies.MINE)
    if what != "anew":
        raise ValueError("There is no such button on this page.")
    return copies.begin_anew(copies.named(name), int(number) if number else None, copies.MINE)


def _name(notebook: str) -> str:
    """What the record calls it: floats for 01_floats.ipynb."""
    return notebook.partition("_")[2].partition(".")[0]


def _notebook(
    number: int, row: tuple[str, ...], lab: str, done: dict[str, record.Done], guesses: list[Guess], form: str
) -> str:
    title, name, question, minutes, needs = row
    there_are = _exercises(copies.COURSE / name)
    right = sum(done.get(each.check, record.Done()).status == "right" for each in there_are)
    folder = copies.MINE if (copies.MINE / name).is_file() else copies.COURSE
    link = url_path_join(lab, quote(folder.name), quote(name))
    listed = "".join(_exercise(each, name, done.get(each.check, record.Done()), form) for each in there_are)
    return f"""<li>
<h2><a href="{escape(link)}" target="{escape(name)}">{number} · {escape(title)}</a></h2>
<p class="question">{escape(question)}</p>
<p class="small">{escape(minutes_and_needs(minutes, needs))}</p>
<p class="small">{escape(estimates.summary(guesses))}</p>
<details{" open" if any(each.check in done for each in there_are) else ""}>
<summary>Your turns: {right} of {len(there_are)} right</summary>
<ol class="exercises">{listed}</ol>
{_button(form, "results", name, f"Show the results of notebook {number}")}
{_button(form, "anew", name, f"Begin notebook {number} anew")}
</details>
</li>"""


def minutes_and_needs(minutes: str, needs: str) -> str:
    """The table's "35, and 40 beyond" and "3, 4" as sentences."""
    notebooks = f"notebook{'s' * (',' in needs)} " if needs[0].isdecimal() else ""
    needed = " and ".join(needs.rsplit(", ", 1))
    return f"{minutes.replace(',', ' minutes,', 1)}. You need: {notebooks}{needed}."


def _exercises(path: Path) -> list[Exercise]:
    try:
        return exercises(read(path))
    except (OSError, ValueError):  # the course's own is broken, as is said at the start: the others are not
        return []


def _exercise(each: Exercise, name: str, done: record.Done, form: str) -> str:
    mark, words = {
        "right": ("✓", f"right since {done.first_right}"),
        "tried": ("…", f"tried {done.tries} time{'s' * (done.tries > 1)}"),
        "not attempted": ("○", "not attempted"),
    }[done.status]
    label = f"Begin anew: your turn {each.number}, {each.title}"
    button = _button(form, "anew", f"{name} {each.number}", "Begin anew", label) if done.tries else ""
    return (
        f'<li class="{done.status.replace(" ", "-")}"><span aria-hidden="true">{mark}</span> '
        f'{each.number} · {escape(each.title)} <span class="small">{words}</span> {button}</li>'
    )


def _button(form: str, do: str, what: str, words: str, label: str = "") -> str:
    label = f' aria-label="{escape(label)}"' if label else ""
    return (
        f'<form method="post">{form}<input type="hidden" name="what" value="{escape(what)}">'
        f'<button name="do" value="{do}"{label}>{escape(words)}</button></form>'
    )


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "course_utils.desk.contents"}]


def _load_jupyter_server_extension(server: ServerApp) -> None:
    address = url_path_join(server.web_app.settings["base_url"], ADDRESS)
    server.web_app.add_handlers(".*$", [(address, Contents)])
