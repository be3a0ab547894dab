"""The course as HTML: a page for each notebook with its stored results, the contents, and the glossary."""

import json
import os
import re
from collections.abc import Sequence
from html import escape
from itertools import starmap
from pathlib import Path
from string import Template

import nbformat
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.formatters import HtmlFormatter

from course_utils.core.say import listed
from course_utils.engine.labs.lab import Lab
from course_utils.engine.labs.session import NEEDS_A_KERNEL
from course_utils.stage.notebook.about import about
from course_utils.stage.notebook.code import Figure
from course_utils.stage.notebook.files import WIDGET, read
from course_utils.stage.notebook.outline import Outline, Part, outline
from course_utils.stage.pages.host import Precomputed, answer_of, session_of
from course_utils.stage.pages.precomputed import FIRST, precomputed
from course_utils.stage.slides import choice, deck
from course_utils.stage.workspace import contents, copies

HERE = Path(__file__).parent
Found = dict[str, Precomputed | None]  # by the lab's name, what it computed with torch
DESCRIPTION = (
    "An interactive course on what it costs to train a neural network: bytes, FLOPs and seconds, "
    "from a single float to a run on thousands of GPUs."
)
REPOSITORY = re.compile(r"(?:https://github\.com/)?([\w-]+/[\w.-]+)/?")
PICTURE = "timeline.png"
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
        url = re.sub(r"^([\w-]+)\.ipynb", r"\1.html", url).replace(
            copies.GLOSSARY, "glossary.html", 1
        )
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
    raise ValueError(
        f"REPO={asked} is no repository. Say owner/name, or its whole address: https://…"
    )


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


def notebook_page(path: Path, found: Found) -> str:
    """A notebook as it is stored, with its labs; `found` keeps what they computed with torch."""
    notebook, shown, folds = nbformat.read(path, as_version=4), [], 0
    known = outline(notebook)
    for cell, part in zip(notebook.cells, known.parts, strict=True):
        if cell.cell_type == "markdown":
            shown.append(prose(cell.source))
        elif part.is_guess:
            # All that follows is folded, and not the answer alone: the text says it, too.
            shown.append(_guess(part, known) + FOLD)
            folds += 1
        else:
            shown.append(deck.rendered("code", cell.source)[1])
            shown.append(_outputs(cell, part, found))
            if part.is_drawn_guess:
                shown.append(FOLD)
                folds += 1
    shown.append("</details>" * folds)
    shown.insert(1, _outline([one.title for one in known.sections]))
    script = ALIVE if any("data-lab=" in html for html in shown) else ""
    question = about(notebook, path.name).question
    return page(known.heading, "\n".join(shown), script=script, description=question or DESCRIPTION)


def _guess(part: Part, known: Outline) -> str:
    """A field for the guess, with the row of the answer that it is about; a cell of several guesses as it stands."""
    asked, *others = part.asked
    if others or asked.is_a_dict:
        return deck.rendered("code", part.text)[1]
    reveal, unit = known.revealed(asked.name), escape(asked.comment)
    of = f' data-row="{escape(reveal.row)}"' if reveal and reveal.row else ""
    field = f'<input data-guess="{asked.name}"{of} size="16" autocomplete="off">'
    return f'<p class="guess"><label>Your guess{f" ({unit})" if unit else ""}: {field}</label></p>'


def _outputs(cell: nbformat.NotebookNode, part: Part, found: Found) -> str:
    """What the cell shows; where it reveals guesses, named after them."""
    outputs = [output.data for output in cell.outputs if "data" in output]
    shown = [data for data in outputs if not choice.waits_for_the_reader(data)]
    html = "\n".join(_output(part.figure, data, found) for data in shown)
    answers = " ".join(reveal.name for reveal in part.reveals)
    return f'<div data-answers="{answers}">{html}</div>' if answers else html


def _outline(sections: Sequence[str]) -> str:
    """Links to the parts of a page, and a button that unfolds all of it."""
    links = "".join(
        f'<li><a href="#{_anchor(words)}">{escape(words)}</a></li>' for words in sections
    )
    everything = (
        '<button type="button" data-everything hidden>Show everything, guesses aside</button>'
    )
    return f'<details class="outline"><summary>Sections</summary><ol>{links}</ol></details><p>{everything}</p>'


def _output(figure: Figure | None, data: nbformat.NotebookNode, found: Found) -> str:
    if WIDGET not in data or figure is None:
        return deck.rendered("output", data)[1]
    name = figure.lab
    if name not in found:
        found[name] = precomputed(name)
    begun = {"set": [{**FIRST.get(name, {}), **figure.answers}]}
    if figure.presets:
        begun["preset"] = [figure.presets[0]]
    return lab(name, found[name], begun, figure.controls)


def lab(
    name: str, known: Precomputed | None, begun: dict[str, list[object]], only: Sequence[str] = ()
) -> str:
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
    away = [
        f"<em>{escape(one)}</em>" for one in (*lab.jobs, *lab.actions) if one in lab.needs_kernel
    ]
    how = f'{NEEDS_A_KERNEL} <a href="index.html#kernel">How to get one</a>'
    return f'<p class="needs">Not on this page: {listed(away)}. {how}</p>' if away else ""


def _row(number: int, path: Path) -> str:
    known = about(read(path), path.name)
    link = f'<a href="{path.stem}.html">{number} · {escape(known.title)}</a>'
    question, needs = escape(known.question), escape(known.minutes_and_needs)
    return f'<li><h2>{link}</h2><p class="question">{question}</p><p class="small">{needs}</p></li>'


def contents_page() -> str:
    """What each notebook answers, and how to get a kernel."""
    rows = "".join(starmap(_row, enumerate(copies.notebooks(), 1)))
    repository = repository_url()
    clone = (
        f'<a href="{repository}">the course\'s repository</a>'
        if repository
        else "the course's repository"
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

    contents_css = re.search(r"<style>(.*?)</style>", contents.HTML, re.DOTALL)[1]
    dark = r"@media (prefers-color-scheme: dark) { \1 }"
    screen = re.sub(
        r'^\[data-jp-theme-light="false"\] (.*)$', dark, Screen._css, flags=re.MULTILINE
    )
    codes = [
        "\n".join(HtmlFormatter(style=name).get_token_style_defs((".code", ".highlight")))
        for name in ("xcode", "github-dark")
    ]
    own = (HERE / "site.css").read_text(encoding="utf-8")
    return f"{contents_css}\n{screen}\n{codes[0]}\n@media (prefers-color-scheme: dark) {{\n{codes[1]}\n}}\n{own}"
