"""Makes a deck of a notebook: one HTML file, with everything that its pieces need."""

import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template

import nbformat
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_utils.core.say.language import translated
from course_utils.stage.notebook.outline import outline
from course_utils.stage.notebook.prose import headings
from course_utils.stage.present import cuts
from course_utils.stage.slides import choice, formulas
from course_utils.stage.translations import package, sentences
from course_utils.stage.translations.edition import (
    BEGIN_OF_ENGLISH,
    END_OF_ENGLISH,
    ENGLISH,
    Edition,
)
from course_utils.stage.translations.sources import anchor_of
from course_utils.stage.translations.spoken import speaking
from course_utils.stage.translations.units import units
from course_utils.stage.workspace.copies import GLOSSARY

HERE = Path(__file__).parent
CODE = HtmlFormatter(nowrap=True, style="xcode")
# The end of a lab's text: "(A live lab: run this cell to move its controls.)".
ONLY_IN_A_NOTEBOOK = re.compile(r"\s*\(A live lab: .*?\)$")
INSTRUCTORS = "INSTRUCTORS"  # the page with the notes
LABEL = re.compile(r"\*\*(.+?)\*\*")  # "**Minutes:**" at the beginning of a note


class Renderer(IPythonRenderer):
    """Renders Markdown with drawn formulas. A link to a notebook leads to its deck.

    Links to the glossary and the README are dropped, because neither lies beside the decks.
    """

    def __init__(
        self, *arguments: object, titles: Mapping[str, str] = {}, **options: object
    ) -> None:
        """Make it. `titles` has the English of translated headings, by which notes are found."""
        super().__init__(*arguments, **options)
        self._titles = titles

    def heading(self, text: str, level: int, **attrs: object) -> str:
        """Return the heading; a translated one says its English, for the deck's script."""
        html = super().heading(text, level, **attrs)
        english = self._titles.get(_without_marks(text))
        if not english:
            return html
        return html.replace(f"<h{level}", f'<h{level} data-english="{escape(english)}"', 1)

    def strong(self, text: str) -> str:
        """Return words in bold; a translated name, by which notes are found, says its English."""
        html = super().strong(text)
        english = self._titles.get(_without_marks(text))
        if not english:
            return html
        return html.replace("<strong", f'<strong data-english="{escape(english)}"', 1)

    def inline_html(self, html: str) -> str:
        """Return the marks of what is English in a translated text; escape everything else."""
        return html if html in (BEGIN_OF_ENGLISH, END_OF_ENGLISH) else super().inline_html(html)

    def block_math(self, body: str) -> str:
        """Return a formula, drawn as a picture."""
        return formulas.svg(body)

    inline_math = block_math

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Return the link, or only its text where the link would lead nowhere."""
        if url.startswith((GLOSSARY, "../")):
            return text
        # "02_tensors.ipynb#views" becomes "02_tensors.html#views".
        of_deck = re.sub(r"^([\w-]+)\.ipynb", r"\1.html", url)
        return super().link(text, of_deck, title)


def decks(path: Path, spoken: str = ENGLISH) -> dict[str, str]:
    """Return the decks of the notebook's main path and of *Beyond*, as HTML by file name.

    `spoken` is the language of their text.
    """
    notebook = nbformat.read(path, as_version=4)
    beyond = f"{path.stem}_beyond.html"
    return {
        f"{path.stem}.html": deck(path, choice.main_part(notebook), beyond, spoken=spoken),
        beyond: deck(path, choice.beyond_part(notebook), spoken=spoken),
    }


def deck_of_cut(path: Path, minutes: str, spoken: str = ENGLISH) -> dict[str, str]:
    """Return the deck of a lecture of that many minutes, such as "25", as HTML by file name."""
    lecture = cuts.plan(path, minutes)
    whole = nbformat.read(path, as_version=4)
    notebook = nbformat.from_dict(cuts.cut(whole, lecture))  # `cut` returns a plain dict
    html = deck(path, notebook, is_whole=False, spoken=spoken)
    return {f"{path.stem}_{minutes}.html": html}


def deck(
    path: Path,
    part: nbformat.NotebookNode | None = None,
    beyond: str = "",
    *,
    is_whole: bool = True,
    spoken: str = ENGLISH,
) -> str:
    """Return the deck of the notebook at `path`, or of a part of it, as HTML.

    The main path ends with a list of the sections of *Beyond*. `beyond`, if given, is the file of
    the deck that has them, and a link leads there. The presenter sees how many minutes each section
    takes, but only if the deck `is_whole`: not cut for a lecture.
    """
    with speaking(spoken):
        return _deck(path, part, beyond, is_whole, Edition(spoken, path.stem))


def _deck(
    path: Path,
    part: nbformat.NotebookNode | None,
    beyond: str,
    is_whole: bool,
    edition: Edition,
) -> str:
    notebook = nbformat.read(path, as_version=4)
    shown = notebook if part is None else part
    spoken = edition.language
    titles = english_titles(notebook, edition)
    # Pairs of a kind, such as "prose" or "picture", and HTML.
    pieces = [
        rendered(kind, content, titles, spoken) for kind, content in choice.pieces(shown, edition)
    ]
    if beyond:
        pieces.append(("prose", f"<p>{_where_beyond_is(beyond)}</p>"))
    divs = [f'<div class="cell" data-kind="{kind}">{html}</div>' for kind, html in pieces]
    _, notes_html = rendered("prose", *translated_notes(path, titles, spoken))
    of_code = "\n".join(CODE.get_token_style_defs((".code", ".highlight")))
    script = _text("deck.js")
    return Template(_text("deck.html")).substitute(
        title=escape(edition.words(outline(notebook).heading)),
        language=edition.shown_language,
        style=_text("deck.css") + of_code,
        notes=notes_html,
        minutes=escape(json.dumps(minutes(path) if is_whole else {})),
        script=script,
        words=_words_of(script, spoken),
        slide=escape(translated("Slide")),
        pieces="\n".join(divs),
    )


def _where_beyond_is(beyond: str) -> str:
    return translated('<a href="{deck}">A deck of its own</a> has them.', deck=beyond)


def _words_of(script: str, spoken: str) -> str:
    """Return an attribute with what the deck's script says in another language; "" in English."""
    if spoken == ENGLISH:
        return ""
    words = {english: translated(english) for english in package.said_in(script)}
    return f' data-words="{escape(json.dumps(words, ensure_ascii=False))}"'


def english_titles(notebook: nbformat.NotebookNode, edition: Edition) -> dict[str, str]:
    """Return the English of each translated heading, both without Markdown's marks."""
    titles = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for heading in headings(cell.source):
                shown = edition.words(heading.title, cell.id)
                if shown != heading.title:
                    titles[_without_marks(shown)] = _without_marks(heading.title)
    return titles


def _without_marks(text: str) -> str:
    """Return a heading's words, whether it is in Markdown or rendered, for a comparison."""
    return re.sub(r"<[^>]*>|[*`\[\]]|\([^()]*\.md[^()]*\)", "", text)


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def notes(path: Path) -> str:
    """Return the part of INSTRUCTORS.md on that notebook, with "your turn 3" in bold.

    The deck's script finds the notes on a slide by words in bold: by the names of sections, which
    are in bold already, and by turns.
    """
    return re.sub(r"your turn \d+", r"**\g<0>**", _notes(path), flags=re.IGNORECASE)


def _notes(path: Path) -> str:
    text = path.with_name(f"{INSTRUCTORS}.md").read_text(encoding="utf-8")
    number = int(path.stem[:2])  # 4 of "04_flops"
    # From the heading "## 4 · …" to the next heading of that level.
    own = rf"^## {number} · .*?(?=^## )"
    (part,) = re.findall(own, text, re.MULTILINE | re.DOTALL)  # there is exactly one
    return part


def translated_notes(
    path: Path, titles: Mapping[str, str], spoken: str
) -> tuple[str, dict[str, str]]:
    """Return the notes in that language, and the English of what is in bold in them.

    `titles` has the English of the notebook's translated headings.
    """
    edition = Edition(spoken, INSTRUCTORS)
    if edition.is_english:
        return notes(path), {}
    english = _notes(path)
    heading = english.splitlines()[0].removeprefix("## ")
    context = anchor_of(heading)
    text = edition.text(context, english)
    turns = _turns(titles)
    for shown in sorted(turns, key=len, reverse=True):  # "turn 12" before "turn 1"
        text = re.sub(rf"(?<!\*){re.escape(shown)}(?!\d)", r"**\g<0>**", text)
    return text, {**titles, **turns, **_labels(english, edition, context)}


def _turns(titles: Mapping[str, str]) -> dict[str, str]:
    """Return the English of "your turn 3" by its translation, from the headings of turns."""
    turns = {}
    for shown, english in titles.items():
        if re.match(r"Your turn \d+ · ", english):
            turns[shown.partition(" · ")[0]] = english.partition(" · ")[0]
    return turns


def _labels(english: str, edition: Edition, context: str) -> dict[str, str]:
    """Return the English of the words with which notes begin in bold, by their translation."""
    labels = {}
    for unit in units(english):
        before = LABEL.match(unit)
        after = LABEL.match(edition.words(unit, context))
        if before and after:
            labels[_without_marks(after[1])] = _without_marks(before[1])
    return labels


def minutes(path: Path) -> dict[str, int]:
    """Return the minutes of each section of that notebook by its title, from INSTRUCTORS.md.

    The line there is like "- **Minutes:** the opening 4, **One strip** 12; all of it 16."
    """
    (line,) = re.findall(r"^- \*\*Minutes:\*\* (.+);", notes(path), re.MULTILINE)
    return {title: int(stated) for title, stated in re.findall(r"\*\*(.+?)\*\* (\d+)", line)}


def rendered(
    kind: str,
    content: str | nbformat.NotebookNode,
    titles: Mapping[str, str] = {},
    spoken: str = ENGLISH,
) -> tuple[str, str]:
    """Return the kind of a piece on a slide, and the piece as HTML.

    The kind stays as it is, but an output becomes a "picture" or a "result". `titles` has the
    English of translated headings, and `spoken` is the language of what the slide asks.
    """
    if kind in ("prose", "folded"):
        renderer = Renderer(escape=True, exclude_anchor_links=True, titles=titles)
        return kind, MarkdownWithMath(renderer=renderer).render(content)
    if kind == "code":
        # At most one blank line in a row.
        compact = re.sub(r"\n{3,}", "\n\n", content)
        highlighted = highlight(compact, PythonLexer(), CODE).rstrip()
        return kind, f'<pre class="code">{highlighted}</pre>'
    if kind == "guess":
        return kind, _guess(sentences.asked(spoken, content), "Your guess", spoken)
    if kind == "turn":
        return kind, _guess(sentences.said(spoken, "Your answer?"), "Your answer", spoken)
    return _rendered_output(content)


def _guess(words: str, english: str, spoken: str) -> str:
    """Return what a slide asks the room; translated, it says its English for the deck's script."""
    mark = "" if spoken == ENGLISH else f' data-english="{english}"'
    return f'<p class="guess"{mark}>{escape(words)}</p>'


def _rendered_output(data: nbformat.NotebookNode) -> tuple[str, str]:
    """Return the kind of an output on a slide, "picture" or "result", and the output as HTML."""
    text = data.get("text/plain", "")
    if "image/png" in data:
        words = escape(ONLY_IN_A_NOTEBOOK.sub("", text))
        png = data["image/png"].replace("\n", "")
        return "picture", f'<img alt="{words}" src="data:image/png;base64,{png}">'
    if "text/html" in data:
        return "result", f'<div class="table">{data["text/html"]}</div>'
    return "result", f'<pre class="result">{escape(text)}</pre>'
