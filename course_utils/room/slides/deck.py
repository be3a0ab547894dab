"""A notebook into a deck: its pieces as HTML in the template, with all that they need inside."""

import re
from html import escape
from pathlib import Path
from string import Template

import nbformat
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_utils.desk.copies import GLOSSARY
from course_utils.room.slides import formulas
from course_utils.room.slides.choice import Piece, pieces

HERE = Path(__file__).parent
CODE = HtmlFormatter(nowrap=True, style="xcode")
ONLY_IN_A_NOTEBOOK = re.compile(r"\s*\(A live lab: .*?\)$")


class Renderer(IPythonRenderer):
    """Markdown, with formulas drawn, links to notebooks leading to their decks, and none to the glossary, which has none."""

    def block_math(self, body: str) -> str:
        """A formula on its own line, drawn."""
        return formulas.svg(body)

    def inline_math(self, body: str) -> str:
        """A formula in a sentence, drawn."""
        return formulas.svg(body)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """To a deck where it led to a notebook."""
        if url.startswith(GLOSSARY):
            return text
        return super().link(text, re.sub(r"^([\w-]+)\.ipynb", r"\1.html", url), title)


def deck(path: Path) -> str:
    """The notebook as one HTML file."""
    notebook = nbformat.read(path, as_version=4)
    title = re.search(r"^# (.+)", notebook.cells[0].source)[1]
    template = Template((HERE / "deck.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(title),
        style=(HERE / "deck.css").read_text(encoding="utf-8")
        + "\n".join(CODE.get_token_style_defs((".code", ".highlight"))),
        script=(HERE / "deck.js").read_text(encoding="utf-8"),
        pieces="\n".join(cells(notebook)),
    )


def cells(notebook: nbformat.NotebookNode) -> list[str]:
    """The notebook's pieces as HTML."""
    return [
        f'<div class="cell" data-kind="{kind}">{html}</div>' for kind, html in map(rendered, pieces(notebook))
    ]


def rendered(piece: Piece) -> tuple[str, str]:
    """What kind of thing this piece is on a slide, and its HTML."""
    if piece.kind == "prose":
        return "prose", MarkdownWithMath(renderer=Renderer(escape=True, exclude_anchor_links=True)).render(
            piece.text
        )
    if piece.kind == "code":
        close = re.sub(r"\n{3,}", "\n\n", piece.text)
        return "code", f'<pre class="code">{highlight(close, PythonLexer(), CODE).rstrip()}</pre>'
    text = piece.data.get("text/plain", "")
    if "image/png" in piece.data:
        source, words = piece.data["image/png"].replace("\n", ""), ONLY_IN_A_NOTEBOOK.sub("", text)
        return "picture", f'<img alt="{escape(words)}" src="data:image/png;base64,{source}">'
    if "text/html" in piece.data:
        return "result", f'<div class="table">{piece.data["text/html"]}</div>'
    return "result", f'<pre class="result">{escape(text)}</pre>'
