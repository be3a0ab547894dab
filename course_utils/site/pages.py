"""The course as HTML: a page for each notebook with its stored results, the contents, and the glossary."""

import ast
import json
import re
from html import escape
from pathlib import Path
from string import Template

import nbformat
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.formatters import HtmlFormatter

from course_utils import labs
from course_utils.desk import contents, copies
from course_utils.desk.notebooks import WIDGET
from course_utils.room.slides import choice, deck
from course_utils.site import controls
from course_utils.site.host import Host, Recorded
from course_utils.site.recorded import FIRST, NOT_ALIVE, recorded

HERE = Path(__file__).parent
MADE = re.compile(r"labs\.(\w+)_lab\(\)")
PRESET = re.compile(r'\.preset\("(.+?)"\)')
PAGE = Template((HERE / "page.html").read_text(encoding="utf-8"))
NOT_YET = "A still picture. The lab moves where the browser runs scripts and WebAssembly, on a page that a web server sends."


class Renderer(deck.Renderer):
    """As on a slide; but every heading can be linked to, and the glossary is a page like the others."""

    def heading(self, text: str, level: int, **attrs: object) -> str:
        """With its anchor: the words, with hyphens for blanks."""
        anchor = re.sub(r"<[^>]*>", "", text).replace(" ", "-")
        return f'<h{level} id="{anchor}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """To a page of these."""
        url = re.sub(r"^([\w-]+)\.ipynb", r"\1.html", url).replace(copies.GLOSSARY, "glossary.html", 1)
        return IPythonRenderer.link(self, text, url, title)


def prose(text: str) -> str:
    """Markdown with formulas, and with the HTML that the course itself has in it."""
    return MarkdownWithMath(renderer=Renderer(escape=False)).render(text)


def notebook_page(path: Path, found: dict[str, Recorded | None]) -> str:
    """A notebook as it is stored, with its labs; `found` keeps what these have found out."""
    notebook = nbformat.read(path, as_version=4)
    parts, guesses = [], set()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(prose(cell.source))
            continue
        parts.append(deck.rendered("code", cell.source)[1])
        outputs = [output.data for output in cell.outputs if "data" in output]
        shown = [data for data in outputs if not choice.waits_for_the_reader(data)]
        html = "\n".join(_output(cell.source, data, found) for data in shown)
        guessed = {name for name in guesses if re.search(rf"\b{name}\b", cell.source)}
        parts.append(f"<details><summary>The answer</summary>{html}</details>" if guessed and html else html)
        stubs = filter(choice.is_stub, ast.parse(cell.source).body)
        guesses |= {node.targets[0].id for node in stubs if isinstance(node, ast.Assign)}
    title = re.search(r"^# (.+)", notebook.cells[0].source)[1]
    script = (
        '<script type="module" src="lab.js"></script>' if any("data-lab=" in part for part in parts) else ""
    )
    return PAGE.substitute(title=escape(title), main="\n".join(parts), script=script)


def _output(source: str, data: nbformat.NotebookNode, found: dict[str, Recorded | None]) -> str:
    if WIDGET not in data:
        return deck.rendered("output", data)[1]
    name, preset = MADE.search(source)[1], PRESET.search(source)
    if name not in found:
        found[name] = recorded(name)
    if name in NOT_ALIVE:
        still = deck.rendered("output", data)[1]
        return still + controls.needs(f"A still picture of a lab. {NOT_ALIVE[name]}")
    return lab(name, found[name], FIRST.get(name, {}), preset[1] if preset else None)


def lab(name: str, known: Recorded | None, first: dict[str, object], preset: str | None) -> str:
    """A lab as it stands before it is alive: its picture and what that means; its controls wait for the script."""
    host = Host(labs.lab_named(name), known)
    begun = {"set": first} | ({"preset": preset} if preset else {})
    shown = host.answer(begun)
    return f"""<section class="course-lab" data-lab="{name}" data-begun="{escape(json.dumps(begun))}" role="group" aria-label="{host.lab.name}">
<div class="rows" hidden>{controls.rows(name, host)}</div>
<p class="course-note" role="status">{NOT_YET}</p>
<div class="course-screen"><div class="course-meaning">{escape(shown["meaning"])}</div><div class="course-picture" role="group" aria-label="{host.lab.name}, picture">{shown["svg"]}</div></div>
{controls.elsewhere(host.lab)}</section>"""


def contents_page() -> str:
    """What each notebook answers, and how to get a kernel."""
    readme = copies.readme()
    rows = "".join(
        f'<li><h2><a href="{Path(name).stem}.html">{number} · {escape(title)}</a></h2><p class="question">{escape(question)}</p>'
        f'<p class="small">{escape(contents.minutes_and_needs(minutes, needs))}</p></li>'
        for number, (title, name, question, minutes, needs) in enumerate(contents.ROW.findall(readme), 1)
    )
    main = Template((HERE / "contents.html").read_text(encoding="utf-8")).substitute(notebooks=rows)
    return PAGE.substitute(title="Where the memory and the compute go", main=main, script="")


def glossary_page() -> str:
    """Every word."""
    text = (copies.COURSE / copies.GLOSSARY).read_text(encoding="utf-8")
    return PAGE.substitute(title="Glossary", main=prose(text), script="")


def style() -> str:
    """Of all pages: the contents page's, the labs', and what is between them; dark where the reader's system is."""
    from course_utils.labs.screen import Screen

    desk = re.search(r"<style>(.*?)</style>", contents.PAGE.template, re.DOTALL)[1]
    dark = r"@media (prefers-color-scheme: dark) { \1 }"
    screen = re.sub(r'^\[data-jp-theme-light="false"\] (.*)$', dark, Screen._css, flags=re.MULTILINE)
    codes = [
        "\n".join(HtmlFormatter(style=name).get_token_style_defs((".code", ".highlight")))
        for name in ("xcode", "github-dark")
    ]
    own = (HERE / "site.css").read_text(encoding="utf-8")
    return f"{desk}\n{screen}\n{codes[0]}\n@media (prefers-color-scheme: dark) {{\n{codes[1]}\n}}\n{own}"
