"""A notebook into a deck: its pieces as HTML in the template, with all that they need inside."""

import json
import re
from html import escape
from pathlib import Path
from string import Template

import nbformat
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_utils.stage.notebook.outline import outline
from course_utils.stage.present import cuts
from course_utils.stage.slides import choice, formulas
from course_utils.stage.workspace.copies import GLOSSARY

HERE = Path(__file__).parent
CODE = HtmlFormatter(nowrap=True, style="xcode")
ONLY_IN_A_NOTEBOOK = re.compile(r"\s*\(A live lab: .*?\)$")


class Renderer(IPythonRenderer):
    """Markdown with drawn formulas. Links to notebooks lead to their decks; links to the glossary are dropped."""

    def block_math(self, body: str) -> str:
        """A formula, drawn as a picture."""
        return formulas.svg(body)

    inline_math = block_math

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """The link; one to a notebook leads to its deck."""
        if url.startswith((GLOSSARY, "../")):
            return text
        return super().link(text, re.sub(r"^([\w-]+)\.ipynb", r"\1.html", url), title)


def decks(path: Path) -> dict[str, str]:
    """The notebook as HTML files by their names: its main path, and what goes beyond it in one of its own."""
    notebook = nbformat.read(path, as_version=4)
    beyond = f"{path.stem}_beyond.html"
    made = {f"{path.stem}.html": deck(path, choice.main_part(notebook), beyond)}
    return made | {beyond: deck(path, choice.beyond_part(notebook))}


def deck_of_cut(path: Path, minutes: str) -> dict[str, str]:
    """What a lecture of so many minutes shows of the notebook, as one HTML file by its name."""
    lecture = cuts.plan(path, minutes)
    notebook = nbformat.from_dict(cuts.cut(nbformat.read(path, as_version=4), lecture))
    return {f"{path.stem}_{minutes}.html": deck(path, notebook, is_whole=False)}


def deck(
    path: Path,
    part: nbformat.NotebookNode | None = None,
    beyond: str = "",
    *,
    is_whole: bool = True,
) -> str:
    """That notebook, or a part of it, as one HTML file; where it ends, it may lead to another one.

    Only where its sections are whole does the presenter see how many minutes each takes.
    """
    notebook = nbformat.read(path, as_version=4)
    title = outline(notebook).heading
    shown = [rendered(*piece) for piece in choice.pieces(part or notebook)]
    if beyond:
        shown.append(("prose", f'<p><a href="{beyond}">A deck of its own</a> has them.</p>'))
    template = Template((HERE / "deck.html").read_text(encoding="utf-8"))
    of_code = "\n".join(CODE.get_token_style_defs((".code", ".highlight")))
    return template.substitute(
        title=escape(title),
        style=(HERE / "deck.css").read_text(encoding="utf-8") + of_code,
        notes=rendered("prose", notes(path))[1],
        minutes=escape(json.dumps(minutes(path) if is_whole else {})),
        script=(HERE / "deck.js").read_text(encoding="utf-8"),
        pieces="\n".join(
            f'<div class="cell" data-kind="{kind}">{html}</div>' for kind, html in shown
        ),
    )


def notes(path: Path) -> str:
    """What INSTRUCTORS.md says of that notebook, its turns set in bold like its sections."""
    text = path.with_name("INSTRUCTORS.md").read_text(encoding="utf-8")
    (said,) = re.findall(rf"^## {int(path.stem[:2])} · .*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    return re.sub(r"your turn \d+", r"**\g<0>**", said, flags=re.IGNORECASE)


def minutes(path: Path) -> dict[str, int]:
    """What INSTRUCTORS.md says that each section of that notebook takes, by its title."""
    (line,) = re.findall(r"^- \*\*Minutes:\*\* (.+);", notes(path), re.MULTILINE)
    return {title: int(said) for title, said in re.findall(r"\*\*(.+?)\*\* (\d+)", line)}


def rendered(kind: str, content: str | nbformat.NotebookNode) -> tuple[str, str]:
    """The piece's kind on a slide, and its HTML."""
    if kind in ("prose", "folded"):
        renderer = Renderer(escape=True, exclude_anchor_links=True)
        return kind, MarkdownWithMath(renderer=renderer).render(content)
    if kind == "code":
        close = re.sub(r"\n{3,}", "\n\n", content)
        return kind, f'<pre class="code">{highlight(close, PythonLexer(), CODE).rstrip()}</pre>'
    if kind == "guess":
        return kind, f'<p class="guess">Your guess{f" ({escape(content)})" if content else ""}?</p>'
    if kind == "turn":
        return kind, '<p class="guess">Your answer?</p>'
    text = content.get("text/plain", "")
    if "image/png" in content:
        source, words = content["image/png"].replace("\n", ""), ONLY_IN_A_NOTEBOOK.sub("", text)
        return "picture", f'<img alt="{escape(words)}" src="data:image/png;base64,{source}">'
    if "text/html" in content:
        return "result", f'<div class="table">{content["text/html"]}</div>'
    return "result", f'<pre class="result">{escape(text)}</pre>'
