"""The course as HTML: a page for each notebook with its stored results, the contents, and the glossary."""

import json
import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

import nbformat
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.formatters import HtmlFormatter

from course_utils.chapters import labs
from course_utils.core.say import listed
from course_utils.engine.labs.lab import Lab
from course_utils.engine.labs.session import NEEDS_A_KERNEL
from course_utils.stage.pages.host import Recorded, answer_of, session_of
from course_utils.stage.pages.recorded import FIRST, recorded
from course_utils.stage.slides import choice, deck
from course_utils.stage.workspace import contents, copies
from course_utils.stage.workspace.notebooks import WIDGET
from course_utils.stage.workspace.stubs import asks_in_the_picture, is_guess

HERE = Path(__file__).parent
DESCRIPTION = (
    "An interactive course on what it costs to train a neural network: bytes, FLOPs and seconds, "
    "from a single float to a run on thousands of GPUs."
)
REPOSITORY = re.compile(r"(?:https://github\.com/)?([\w-]+/[\w.-]+)/?")
PICTURE = "timeline.png"
PRESET = re.compile(r'\.preset\("(.+?)"\)')
SECTION = re.compile(r"^(?:## |# (?=Beyond$))(.+)$", re.MULTILINE)
GUESSED = re.compile(r"\b(my_\w+)\b")
FOLD = '<details class="fold"><summary>Go on</summary>'
ALIVE = '<script type="module" src="lab.js"></script>'
PAGE = Template((HERE / "page.html").read_text(encoding="utf-8"))
NOT_YET = "A still picture. The lab moves where the browser runs scripts and WebAssembly, on a page that a web server sends."


class Renderer(deck.Renderer):
    """A slide's renderer; in addition every heading has an anchor, and the glossary is a page like the others."""

    def heading(self, text: str, level: int, **attrs: object) -> str:
        """The heading with its anchor."""
        return f'<h{level} id="{_anchor(text)}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """The link; one to a notebook or to the glossary leads to its page."""
        url = re.sub(r"^([\w-]+)\.ipynb", r"\1.html", url).replace(copies.GLOSSARY, "glossary.html", 1)
        url = url.replace("../README.md#the-notebooks", "index.html")
        return IPythonRenderer.link(self, text, url, title)


def _anchor(heading: str) -> str:
    """The words, with hyphens for blanks."""
    return re.sub(r"<[^>]*>", "", heading).replace(" ", "-")


def prose(text: str) -> str:
    """Markdown with formulas, and with the HTML that the course itself has in it."""
    return MarkdownWithMath(renderer=Renderer(escape=False)).render(text)


def repository_url() -> str:
    """Where the repository is, as REPO=owner/name says; nothing, if nobody has said."""
    asked = os.environ.get("REPO", "").strip()
    if not asked:
        return ""
    if found := REPOSITORY.fullmatch(asked):
        return f"https://github.com/{found[1]}"
    if asked.startswith("https://") and not re.search(r"[\s<>\"']", asked):
        return asked
    raise ValueError(f"REPO={asked} is no repository. Say owner/name, or its whole address: https://…")


def page(title: str, main: str, *, script: str = "", description: str = DESCRIPTION) -> str:
    """A page of the site around that HTML."""
    repository = repository_url()
    return PAGE.substitute(
        title=escape(title),
        main=main,
        script=script,
        description=escape(description),
        repository=f' Its source is <a href="{repository}">here</a>.' if repository else "",
        repository_short=f' · <a href="{repository}">Source</a>' if repository else "",
    )


def _question(stem: str) -> str:
    """What that notebook answers, as the README says it."""
    rows = contents.ROW.findall(copies.readme())
    return next(question for _, name, question, *_ in rows if Path(name).stem == stem)


def notebook_page(path: Path, found: dict[str, Recorded | None]) -> str:
    """A notebook as it is stored, with its labs; `found` keeps what they computed with torch."""
    cells, parts, folds = nbformat.read(path, as_version=4).cells, [], 0
    for at, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            parts.append(prose(cell.source))
        elif is_guess(cell, cells[at + 1 :]):
            # All that follows is folded, and not the answer alone: the text says it, too.
            parts.append(_guess(cell.source, cells[at + 1 :]) + FOLD)
            folds += 1
        else:
            parts.append(deck.rendered("code", cell.source)[1])
            outputs = [output.data for output in cell.outputs if "data" in output]
            shown = [data for data in outputs if not choice.waits_for_the_reader(data)]
            html = "\n".join(_output(cell.source, data, found) for data in shown)
            answers = " ".join(GUESSED.findall(cell.source) if "guess=" in cell.source else [])
            parts.append(f'<div data-answers="{answers}">{html}</div>' if answers else html)
            if asks_in_the_picture(cell.source):
                parts.append(FOLD)
                folds += 1
    parts.append("</details>" * folds)
    title = re.search(r"^# (.+)", cells[0].source)[1]
    sections = [section for cell in cells for section in SECTION.findall(cell.source)]
    parts.insert(1, _outline(sections))
    script = ALIVE if any("data-lab=" in part for part in parts) else ""
    return page(title, "\n".join(parts), script=script, description=_question(path.stem))


def _guess(source: str, below: Sequence[nbformat.NotebookNode]) -> str:
    """A field for the guess, with the row of the answer that it is about; a cell of several guesses as it stands."""
    one = re.fullmatch(r"(my_\w+) = \.\.\.(?:  # (.*))?", source)
    if not one:
        return deck.rendered("code", source)[1]
    name, unit = one.groups()
    rows = (re.search(rf'"([^"]+)": {name}\b', cell.source) for cell in below if "guess=" in cell.source)
    row = next(filter(None, rows), None)
    of = f' data-row="{escape(row[1])}"' if row else ""
    field = f'<input data-guess="{name}"{of} size="16" autocomplete="off">'
    return f'<p class="guess"><label>Your guess{f" ({escape(unit)})" if unit else ""}: {field}</label></p>'


def _outline(sections: Sequence[str]) -> str:
    """Links to the parts of a page, and a button that unfolds all of it."""
    links = "".join(f'<li><a href="#{_anchor(words)}">{escape(words)}</a></li>' for words in sections)
    everything = '<button type="button" data-everything hidden>Show everything, guesses aside</button>'
    return (
        f'<details class="outline"><summary>Sections</summary><ol>{links}</ol></details><p>{everything}</p>'
    )


def _output(source: str, data: nbformat.NotebookNode, found: dict[str, Recorded | None]) -> str:
    if WIDGET not in data:
        return deck.rendered("output", data)[1]
    name, only, answers = labs.made_by(source)
    if name not in found:
        found[name] = recorded(name)
    preset = PRESET.search(source)
    begun = {"set": [FIRST.get(name, {}) | answers]} | ({"preset": [preset[1]]} if preset else {})
    return lab(name, found[name], begun, only)


def lab(name: str, known: Recorded | None, begun: dict[str, list[object]], only: Sequence[str] = ()) -> str:
    """A lab as it stands before it is alive: its picture and what that means; its controls wait for the script.

    A figure has only those controls.
    """
    session = session_of(name, known)
    shown, made = answer_of(session, begun), session.lab
    rows = [[one for one in only if one in made.fields]] if only else made.rows or [[*made.fields]]
    asked = {"rows": rows, "parts": shown["parts"]}
    asked["headings"] = {name: field.heading for name, field in made.fields.items()}
    for move, labels in (("preset", made.presets), ("start", made.jobs), ("act", made.actions)):
        here = [label for label in labels if label in only or not only]
        asked[move] = [label for label in here if label not in made.needs_kernel]
    return f"""<div class="course-lab" data-lab="{name}" data-begun="{escape(json.dumps(begun))}" data-controls="{escape(json.dumps(asked))}" role="group" aria-label="{made.name}">
<div class="rows" hidden></div>
<p class="course-note" role="status">{NOT_YET}</p>
<div class="course-screen"><div class="course-meaning">{escape(shown["meaning"])}</div><div class="course-picture" role="group" aria-label="{made.name}, picture">{shown["svg"]}</div></div>
{"" if only else _elsewhere(made)}</div>"""


def _elsewhere(lab: Lab) -> str:
    """The buttons of a lab that need a kernel, and where to get one."""
    away = [f"<em>{escape(one)}</em>" for one in (*lab.jobs, *lab.actions) if one in lab.needs_kernel]
    how = f'{NEEDS_A_KERNEL} <a href="index.html#kernel">How to get one</a>'
    return f'<p class="needs">Not on this page: {listed(away)}. {how}</p>' if away else ""


def contents_page() -> str:
    """What each notebook answers, and how to get a kernel."""
    readme = copies.readme()
    rows = "".join(
        f'<li><h2><a href="{Path(name).stem}.html">{number} · {escape(title)}</a></h2><p class="question">{escape(question)}</p>'
        f'<p class="small">{escape(contents.minutes_and_needs(minutes, needs))}</p></li>'
        for number, (title, name, question, minutes, needs) in enumerate(contents.ROW.findall(readme), 1)
    )
    repository = repository_url()
    clone = (
        f'<a href="{repository}">the course\'s repository</a>' if repository else "the course's repository"
    )
    header = (copies.COURSE / "pictures" / PICTURE).read_bytes()[:24]
    size = {
        "width": int.from_bytes(header[16:20]),
        "height": int.from_bytes(header[20:24]),
    }  # as a PNG begins
    main = Template((HERE / "contents.html").read_text(encoding="utf-8")).substitute(
        notebooks=rows, clone=clone, description=DESCRIPTION, **size
    )
    return page("Where the memory and the compute go", main)


def glossary_page() -> str:
    """The page with every word of the glossary."""
    text = (copies.COURSE / copies.GLOSSARY).read_text(encoding="utf-8")
    return page("Glossary", prose(text), description="Every word of the course, explained.")


def style() -> str:
    """The style sheet of all pages. It is dark if the reader's system is."""
    from course_utils.engine.labs.screen import Screen

    desk = re.search(r"<style>(.*?)</style>", contents.HTML, re.DOTALL)[1]
    dark = r"@media (prefers-color-scheme: dark) { \1 }"
    screen = re.sub(r'^\[data-jp-theme-light="false"\] (.*)$', dark, Screen._css, flags=re.MULTILINE)
    codes = [
        "\n".join(HtmlFormatter(style=name).get_token_style_defs((".code", ".highlight")))
        for name in ("xcode", "github-dark")
    ]
    own = (HERE / "site.css").read_text(encoding="utf-8")
    return f"{desk}\n{screen}\n{codes[0]}\n@media (prefers-color-scheme: dark) {{\n{codes[1]}\n}}\n{own}"
